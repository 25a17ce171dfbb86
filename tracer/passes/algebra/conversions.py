"""Rewrites of repeated conversions, and of complex numbers split into parts and rejoined. All hold bit for bit."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.program import Atom, Equation
from tracer.passes.algebra.identities import dtype_of
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.elementwise.complex import complex_p, imag_p, real_p
from tracer.primitives.elementwise.conversion import bitcast_convert_type_p, convert_element_type_p

_DIGITS = {dtypes.F64: 53, dtypes.F32: 24, dtypes.F16: 11, dtypes.BF16: 8}
"""Bits of a float's significand: integers of no more bits are exact, and within its range."""


@lru_cache(maxsize=1024)
def holds(wide: DType, narrow: DType) -> bool:
    """Whether `wide` has every value of `narrow`.

    >>> holds(np.dtype("float64"), np.dtype("int32")), holds(np.dtype("float32"), np.dtype("int32"))
    (True, False)
    """
    if wide == narrow:
        return True
    if dtypes.is_narrow(wide):  # some lack zero, some have a max below the integers that fit their digits
        return False
    if dtypes.is_bool(narrow):
        return True
    if dtypes.is_bool(wide) or (dtypes.is_complex(narrow) and not dtypes.is_complex(wide)):
        return False
    wide, narrow = dtypes.real_dtype(wide), dtypes.real_dtype(narrow)
    if dtypes.is_integer(wide):
        if not dtypes.is_integer(narrow):
            return False
        outer, inner = dtypes.iinfo(wide), dtypes.iinfo(narrow)
        return bool(outer.min <= inner.min and inner.max <= outer.max)
    if wide == narrow:
        return True
    if dtypes.is_integer(narrow):
        return dtypes.bits(narrow) - dtypes.is_signed(narrow) <= _DIGITS[wide]
    if narrow == dtypes.F8E8M0FNU:
        return wide != dtypes.F16
    return wide.itemsize > narrow.itemsize  # a longer float has more range and digits


def convert_to_same(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a conversion to the operand's own type."""
    x = equation.inputs[0]
    return x if x.type == equation.outputs[0].type else None


def convert_twice(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a conversion of a lossless conversion into one conversion.

    Not from integers through floats to integers: integers wrap where floats saturate.
    """
    inner = at.definition(equation.inputs[0], convert_element_type_p)
    if inner is None:
        return None
    x = inner.inputs[0]
    first, middle, last = dtype_of(x), dtype_of(equation.inputs[0]), equation.params["new_dtype"]
    if first is None or middle is None or not holds(middle, first):
        return None
    saturates = dtypes.is_integer(first) and dtypes.is_inexact(middle) and dtypes.is_integer(last)
    if saturates and not holds(last, first):
        return None
    return at.emit(convert_element_type_p, x, **equation.params)


def reread_bits(equation: Equation, at: Rewriter) -> Atom | None:
    """Merge a bitcast of a bitcast into one bitcast, or none."""
    inner = at.definition(equation.inputs[0], bitcast_convert_type_p)
    if inner is None:
        return None
    x = inner.inputs[0]
    return x if x.type == equation.outputs[0].type else at.emit(bitcast_convert_type_p, x, **equation.params)


def part_of_parts(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite real(complex(x, y)) = x and imag(complex(x, y)) = y."""
    inner = at.definition(equation.inputs[0], complex_p)
    if inner is None:
        return None
    return at.fit(inner.inputs[0 if equation.primitive is real_p else 1], equation.outputs[0].type)


def parts_of_one(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite complex(real(z), imag(z)) = z."""
    real, imag = at.definition(equation.inputs[0], real_p), at.definition(equation.inputs[1], imag_p)
    return real.inputs[0] if real is not None and imag is not None and real.inputs == imag.inputs else None


CONVERSIONS: Final[Rules] = (
    ((convert_element_type_p,), (convert_to_same, convert_twice)),
    ((bitcast_convert_type_p,), (reread_bits,)),
    ((real_p, imag_p), (part_of_parts,)),
    ((complex_p,), (parts_of_one,)),
)
