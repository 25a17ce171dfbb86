"""Operations on narrow dtypes: operands are widened, results rounded or wrapped to the narrow dtype.

Programs, references and backends only move, select and convert elements of narrow dtypes. An operation of several
steps, such as a sum or a matrix product, rounds once, at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Narrow, Primitive
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, array_type, with_shape
from tracer.primitives.elementwise.conversion import convert_element_type_p, converted
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, Run


def widened(run: Run, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    """Return the outputs of a primitive whose operands or parameters have narrow dtypes.

    run: `bind_all`, or another function that runs primitives. Raises the primitive's errors for such types.
    """
    types = [x.type for x in operands]
    narrow = [t.dtype for t in types if isinstance(t, ArrayType) and dtypes.is_narrow(t.dtype)]
    unsigned = bool(narrow) and dtypes.is_unsigned(narrow[0])
    if primitive.narrow is Narrow.REFUSED or (primitive.narrow is Narrow.UNSIGNED and not unsigned):
        raise DTypeError(
            message(
                f"{primitive.name}{here()} does not compute on {dtypes.short_name(narrow[0])}, which is for storage",
                help="cast the operand with .astype(...)",
            )
        )
    shape = next((x.shape for x in operands if isinstance(x, Array)), ())
    primitive.infer(*(with_shape(t, shape) if primitive.splat else t for t in types), **params)
    asked = [value for value in params.values() if isinstance(value, np.dtype)]
    wide_params = {
        name: dtypes.wide_dtype(value) if isinstance(value, np.dtype) and dtypes.is_narrow(value) else value
        for name, value in params.items()
    }
    outputs = run(primitive, [_wide(run, x) for x in operands], wide_params)
    if len(outputs) > 1 and len(outputs) == len(operands):
        return [_back(run, y, _narrow([x.type.dtype])) for x, y in zip(operands, outputs, strict=True)]  # type: ignore[union-attr]
    target = _narrow(asked or narrow)
    return [_back(run, y, target) for y in outputs]


def _wide(run: Run, x: Operand) -> Operand:
    if not isinstance(x.type, ArrayType) or not dtypes.is_narrow(x.type.dtype):
        return x
    dtype, weak = dtypes.wide_dtype(x.type.dtype), x.type.weak
    if isinstance(x, Literal):
        return Literal(converted(np.asarray(x.value), dtype)[()], array_type(dtype, (), weak))
    return run(convert_element_type_p, [x], {"new_dtype": dtype, "weak": weak})[0]


def _narrow(found: Sequence[DType]) -> DType | None:
    return next((dtype for dtype in found if dtypes.is_narrow(dtype)), None)


def _back(run: Run, y: Array, narrow: DType | None) -> Array:
    if narrow is None or y.dtype != dtypes.wide_dtype(narrow):
        return y
    return run(convert_element_type_p, [y], {"new_dtype": narrow, "weak": y.weak_type})[0]
