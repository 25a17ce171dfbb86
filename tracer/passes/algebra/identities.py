"""Identities of arithmetic and bits that hold bit for bit.

NaN, infinities and signed zeros are kept: x + 0 is x for integers, but for floats only x + (-0) is.
The machine chooses which of two NaNs, and which payload, comes through.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.types import ArrayType
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.elementwise.arithmetic import add_p, clamp_p, div_p, max_p, min_p, mul_p, neg_p, sub_p
from tracer.primitives.elementwise.bits import (
    and_p,
    not_p,
    or_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from tracer.primitives.elementwise.complex import abs_p, conj_p
from tracer.primitives.elementwise.powers import integer_pow_p
from tracer.primitives.elementwise.rounding import ceil_p, floor_p, round_away_p, round_even_p


def dtype_of(atom: Atom) -> DType | None:
    """Return the dtype of an array; None for keys, stacks and float0."""
    return atom.type.dtype if isinstance(atom.type, ArrayType) else None


def is_literal(atom: Atom, value: Any) -> bool:
    """Whether the atom is a literal with exactly this value, the sign of zero included."""
    if not isinstance(atom, Literal):
        return False
    with np.errstate(all="ignore"):
        return atom.bits == np.asarray(value).astype(atom.type.dtype).tobytes()


def beside(equation: Equation, value: Any) -> Atom | None:
    """Return the operand beside a literal of this value, on either side."""
    x, y = equation.inputs
    if is_literal(y, value):
        return x
    return y if is_literal(x, value) else None


def same(equation: Equation) -> bool:
    """Whether both operands are equal."""
    x, y = equation.inputs
    return x is y or (isinstance(x, Literal) and x == y)


def is_exact(atom: Atom) -> bool:
    """Whether the dtype is an integer or bool."""
    dtype = dtype_of(atom)
    return dtype is not None and not dtypes.is_inexact(dtype)


def is_complex(atom: Atom) -> bool:
    """Whether the dtype is complex."""
    dtype = dtype_of(atom)
    return dtype is not None and dtypes.is_complex(dtype)


# Arithmetic


def add_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """x + 0 = x for integers and bool; x + (-0) = x for floats."""
    if is_exact(equation.inputs[0]):
        return beside(equation, 0)
    return beside(equation, complex(-0.0, -0.0) if is_complex(equation.inputs[0]) else -0.0)


def subtract_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """x - 0 = x, the zero being +0."""
    x, y = equation.inputs
    return x if is_literal(y, 0) else None


def subtract_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """x - x = 0 and 0 - x = -x, for integers."""
    x, y = equation.inputs
    if not is_exact(x):
        return None
    if same(equation):
        return at.number(0, equation.outputs[0].type)
    return at.emit(neg_p, y) if is_literal(x, 0) else None


def multiply_by_one(equation: Equation, at: Rewriter) -> Atom | None:
    """x * 1 = x, but for complex x."""
    return None if is_complex(equation.inputs[0]) else beside(equation, 1)


def multiply_by_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """x * 0 = 0 for integers and bool."""
    if not is_exact(equation.inputs[0]) or beside(equation, 0) is None:
        return None
    return at.number(0, equation.outputs[0].type)


def divide_by_one(equation: Equation, at: Rewriter) -> Atom | None:
    """x / 1 = x, but for complex x."""
    x, y = equation.inputs
    return x if is_literal(y, 1) and not is_complex(x) else None


def divide_by_power_of_two(equation: Equation, at: Rewriter) -> Atom | None:
    """x / 2^k = x * 2^-k for floats: both are the one correct rounding, and products are cheaper."""
    x, y = equation.inputs
    if not isinstance(y, Literal) or not dtypes.is_float(y.type.dtype):
        return None
    value = float(y.value)
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        reciprocal = np.asarray(1.0 / value).astype(y.type.dtype)[()]
    if float(reciprocal) * value != 1.0:  # it overflows or loses bits
        return None
    return at.emit(mul_p, x, Literal(reciprocal, y.type))


def undo_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """-(-x), ~~x and conj(conj(x)) are x."""
    inner = at.definition(equation.inputs[0], equation.primitive)
    return inner.inputs[0] if inner is not None else None


def repeat_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """floor(floor(x)) = floor(x); likewise ceil, the roundings and abs of real x."""
    inner = at.definition(equation.inputs[0], equation.primitive)
    return equation.inputs[0] if inner is not None and inner.params == equation.params else None


def forget_sign(equation: Equation, at: Rewriter) -> Atom | None:
    """abs(-x) = abs(x)."""
    inner = at.definition(equation.inputs[0], neg_p)
    return at.emit(abs_p, inner.inputs[0]) if inner is not None else None


def extreme_of_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """max(x, x) = x; max(x, lowest) = x, NaN included; likewise min and the highest."""
    x = equation.inputs[0]
    dtype = dtype_of(x)
    if same(equation) and isinstance(x, Var):
        return x
    if dtype is None or dtypes.is_complex(dtype):
        return None
    low, high = limits_of(dtype)
    return beside(equation, low if equation.primitive is max_p else high)


def limits_of(dtype: DType) -> tuple[Any, Any]:
    """Return the lowest and the highest value of an ordered dtype, infinities included."""
    if dtypes.is_bool(dtype):
        return False, True
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
    return -np.inf, np.inf


def clamp_once(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a clamp between the lowest and the highest value of the dtype."""
    low, x, high = equation.inputs
    dtype = dtype_of(x)
    if dtype is None:
        return None
    lowest, highest = limits_of(dtype)
    return x if is_literal(low, lowest) and is_literal(high, highest) and isinstance(x, Var) else None


def small_power(equation: Equation, at: Rewriter) -> Atom | None:
    """integer_pow by 0 and 1."""
    power = equation.params["y"]
    if power == 0:
        return at.number(1, equation.outputs[0].type)
    return equation.inputs[0] if power == 1 else None


# Bits


def bits_with_none(equation: Equation, at: Rewriter) -> Atom | None:
    """x & 0 = 0, x | 0 = x, x ^ 0 = x."""
    other = beside(equation, 0)
    if other is None or equation.primitive is not and_p:
        return other
    return at.number(0, equation.outputs[0].type)


def bits_with_all(equation: Equation, at: Rewriter) -> Atom | None:
    """x & ~0 = x, x | ~0 = ~0, x ^ ~0 = ~x."""
    dtype = dtype_of(equation.inputs[0])
    assert dtype is not None
    ones = True if dtypes.is_bool(dtype) else -1
    other = beside(equation, ones)
    if other is None or equation.primitive is and_p:
        return other
    if equation.primitive is xor_p:
        return at.emit(not_p, other)
    return at.full(next(a for a in equation.inputs if isinstance(a, Literal)), equation.outputs[0].type)


def bits_with_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """x & x = x | x = x, x ^ x = 0."""
    if not same(equation) or isinstance(equation.inputs[0], Literal):
        return None
    return at.number(0, equation.outputs[0].type) if equation.primitive is xor_p else equation.inputs[0]


def shift_by_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """x << 0 = x >> 0 = x."""
    x, y = equation.inputs
    return x if is_literal(y, 0) else None


IDENTITIES: Final[Rules] = (
    ((add_p,), (add_nothing,)),
    ((sub_p,), (subtract_nothing, subtract_itself)),
    ((mul_p,), (multiply_by_one, multiply_by_nothing)),
    ((div_p,), (divide_by_one, divide_by_power_of_two)),
    ((neg_p, not_p, conj_p), (undo_itself,)),
    ((floor_p, ceil_p, round_even_p, round_away_p), (repeat_itself,)),
    ((abs_p,), (repeat_itself, forget_sign)),
    ((max_p, min_p), (extreme_of_itself,)),
    ((clamp_p,), (clamp_once,)),
    ((integer_pow_p,), (small_power,)),
    ((and_p, or_p, xor_p), (bits_with_none, bits_with_all, bits_with_itself)),
    ((shift_left_p, shift_right_arithmetic_p, shift_right_logical_p), (shift_by_nothing,)),
)
