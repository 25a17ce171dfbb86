"""Zeros by construction, for custom rules: arrays of zeros, or a `SymbolicZero` if the rule asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.ir.dtypes import FLOAT0
from tracer.ir.primitive import Zero
from tracer.ir.types import is_differentiable, tangent_type
from tracer.primitives.arrays.zeros import zeros
from tracer.trace import trees
from tracer.trace.convert import as_array


class SymbolicZero:
    """Tangent or cotangent that is zero by construction, given to rules that ask for `symbolic_zeros`.

    It has the `shape` and the `dtype` of its value, and no elements. type: an IR type, as `tracer.typeof` returns.

    >>> import tracer
    >>> zero = tracer.custom_derivatives.SymbolicZero(tracer.typeof(np.ones((2, 3))))
    >>> zero, zero.shape, zero.dtype
    (SymbolicZero(f64[2,3]), (2, 3), dtype('float64'))
    """

    __slots__ = ("_type",)

    def __init__(self, type: Any) -> None:
        self._type = type

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the zeros that it stands for."""
        shape: tuple[int, ...] = self._type.shape
        return shape

    @property
    def dtype(self) -> Any:
        """Dtype of the zeros; float0 for the tangents of integers."""
        return self._type.dtype if is_differentiable(self._type) else FLOAT0

    def __repr__(self) -> str:
        return f"SymbolicZero({self._type})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return zero tangents of the values of a tree, float0 for integers; each a `SymbolicZero` if `symbolic_zeros`.

    val: a tree of arrays [*s] and scalars. Returns zeros [*s] of their dtypes.

    >>> tracer.custom_derivatives.zero_from_primal({"w": np.ones(2, np.float32)})
    {'w': Array([0., 0.], f32)}
    """

    def zero(leaf: Any) -> Any:
        absent = Zero(tangent_type(as_array(leaf).type))
        return symbolic_zero(absent) if symbolic_zeros else dense_zero(absent)

    return trees.tree_map(zero, val)


@dataclass(frozen=True, slots=True)
class CustomVJPPrimal:
    """Argument of a forward function under `symbolic_zeros`: its value, and whether it is differentiated.

    value: an array or a scalar; perturbed: a bool. A leaf of trees, as in JAX.

    >>> import tracer
    >>> @tracer.custom_vjp
    ... def scaled(x, y): return x * y
    >>> def forward(x, y):
    ...     print(x.perturbed, y.perturbed)
    ...     return x.value * y.value, y.value
    >>> scaled.defvjp(forward, lambda y, g: (g * y, None), symbolic_zeros=True)
    >>> tracer.grad(scaled)(2.0, 3.0)
    True False
    Array(3., f64*)
    """

    value: Any
    perturbed: bool


def dense_zero(dx: Any) -> Any:
    """Return a tangent as an array; float0 for zeros of integers."""
    if not isinstance(dx, Zero):
        return dx
    return zeros(dx.type) if is_differentiable(dx.type) else np.zeros(dx.type.shape, FLOAT0)


def symbolic_zero(dx: Any) -> Any:
    """Return a tangent, or the `SymbolicZero` of one that is zero by construction."""
    return SymbolicZero(dx.type) if isinstance(dx, Zero) else dx


def instantiated(tangent: Any) -> Any:
    """Return an array of zeros for a `SymbolicZero`, any other tangent as it is."""
    return dense_zero(Zero(tangent._type)) if isinstance(tangent, SymbolicZero) else tangent
