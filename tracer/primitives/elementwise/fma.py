"""Fused multiply-add: fma."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir.dtypes import F32, F64
from tracer.ir.primitive import Pointwise, Primitive
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Type
from tracer.primitives.base.rules import (
    Value,
    is_linear,
    per_operand,
    pointwise,
    pointwise_batch,
    pointwise_infer,
)
from tracer.primitives.elementwise.arithmetic import mul
from tracer.trace.source import here

_LIBM: Final = ctypes.PyDLL("ucrtbase" if sys.platform == "win32" else None)


def _c_fma(name: str, kind: Any) -> Any:
    function = getattr(_LIBM, name)
    function.restype, function.argtypes = kind, (kind, kind, kind)
    return function


_FMA: Final = {4: _c_fma("fmaf", ctypes.c_float), 8: _c_fma("fma", ctypes.c_double)}


def fused_product(x: Any, y: Any, z: Any) -> Any:
    """Compute x * y + z with one rounding, element by element by the C library: NumPy has no such function."""
    x, y, z = np.broadcast_arrays(x, y, z)
    function = _FMA[x.dtype.itemsize]
    rounded = map(function, x.ravel().tolist(), y.ravel().tolist(), z.ravel().tolist())
    return np.fromiter(rounded, x.dtype, x.size).reshape(x.shape)[()]


_pointwise_type = pointwise_infer("fma", "f")


def _infer(*types: Type) -> Type:
    common: Type = _pointwise_type(*types)
    if common.dtype not in (F32, F64):  # type: ignore[union-attr]
        raise DTypeError(
            message(
                f"fma{here()} takes float32 or float64", f"got {common}", help="cast the operands with .astype(...)"
            )
        )
    return common


def _transpose(ctx: Any, cts: Any, xs: Any) -> list[Any]:
    (ct,), (x, y, z) = cts, xs
    return [mul(ct, y) if is_linear(x) else None, mul(x, ct) if is_linear(y) else None, ct if is_linear(z) else None]


fma_p = Primitive(
    name="fma", infer=_infer, reference=fused_product,
    jvp=per_operand(
        lambda ctx, dx, x, y, z: mul(dx, y), lambda ctx, dy, x, y, z: mul(x, dy), lambda ctx, dz, x, y, z: dz,
    ),
    transpose=_transpose,
    batch=pointwise_batch, lower=Pointwise(ScalarOp.FMA), splat=True,
)  # fmt: skip


def fma(x: Value, y: Value, z: Value) -> Any:
    """Compute x * y + z, rounded once: IEEE 754's fusedMultiplyAdd.

    x, y, z: float32 or float64 [*s] of one dtype, or some of them Python scalars or arrays []. Returns the same dtype,
    [*s]. Raises DTypeError for other dtypes or if they differ, ShapeError if the shapes differ.

    The rounding error of a product is fma(x, y, -(x * y)):

    >>> x = tnp.asarray([0.1])
    >>> fma(x, 10.0, -(x * 10.0))
    Array([5.55111512e-17], f64)
    """
    return pointwise(fma_p, x, y, z)


FUSED = (fma_p,)
