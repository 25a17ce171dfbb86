"""Users' functions on vectors, and solutions differentiated by the implicit function theorem.

A method iterates on a vector [n], the concatenated leaves of x0, with a function whose captured arrays are arguments.
At the solution, F(x, p) = 0 for the residual F: dx = -(dF/dx)^-1 dF/dp dp. Up to 256 unknowns dF/dx is a matrix, which
is factored; beyond it the system is solved by BiCGSTAB, with products alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Number
from typing import Any

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.flatten_util import ravel_pytree
from tracer.ir import dtypes
from tracer.lax import custom_linear_solve, custom_root
from tracer.numpy import asarray, eye, linalg, promote_types
from tracer.numpy.core.conversion import array_of, floating
from tracer.scipy.sparse.linalg import bicgstab
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user
from tracer.transforms.custom.closures import hoisted
from tracer.transforms.functions import check_callable
from tracer.transforms.vectorize import vmap

DENSE = 256  # unknowns up to which the implicit function theorem factors a matrix


class Unknowns:
    """Vector of all unknowns, its restoration into a tree like x0, and the user's further arguments."""

    def __init__(self, name: str, x0: Any, args: Any) -> None:
        self.name = name
        vector, restored = ravel_pytree(trees.tree_map(lambda x: floating(array_of(name, x)), as_vector(x0)))
        if dtypes.is_complex(vector.dtype):
            text = f"{name}{here()}: unknowns are real numbers"
            raise DTypeError(
                message(text, f"got {vector.type}", help="take real and imaginary parts as unknowns of their own")
            )
        if not vector.size:
            raise ShapeError(message(f"{name}{here()}: x0 has no elements", help="give at least one unknown"))
        self.start, self.restored = vector, restored
        self.args = args if isinstance(args, tuple) else (args,)

    def scalar(self, fun: Any) -> tuple[Callable[..., Array], list[Array]]:
        """Return a user's scalar function as a function of the vector and captured arrays, and the captured arrays."""
        return self._hoisted(fun, self._scalar)

    def vector(self, fun: Any) -> tuple[Callable[..., Array], list[Array]]:
        """Return a user's function of trees as a function of vectors and captured arrays, and the captured arrays."""
        return self._hoisted(fun, self._vector)

    def tree(self, vector: Array) -> Any:
        """Return the vector as a tree like x0."""
        return self.restored(vector)

    def _hoisted(self, fun: Any, convert: Callable[[Any], Array]) -> tuple[Callable[..., Array], list[Array]]:
        check_callable(fun, self.name)
        return hoisted(
            lambda x: convert(call_user(fun, (self.restored(x), *self.args), {})), (self.start,), lambda _: True
        )

    def _scalar(self, value: Any) -> Array:
        found = array_of(self.name, value)
        if found.size != 1 or dtypes.is_complex(found.dtype):
            text = f"{self.name}{here()}: the function returns one real number"
            raise ShapeError(message(text, f"got {found.type}", help="sum, or take the norm"))
        return found.reshape(()).astype(self.start.dtype)

    def _vector(self, value: Any) -> Array:
        found = ravel_pytree(value)[0]
        return found.astype(promote_types(found.dtype, self.start.dtype))


def as_vector(x0: Any) -> Any:
    """Return a list or tuple of numbers as an array [n], as SciPy does, and another tree as it is."""
    if type(x0) not in (list, tuple) or not x0:
        return x0
    return asarray(x0) if all(isinstance(x, Number) or getattr(x, "shape", None) == () for x in x0) else x0


def solution(
    residual: Callable[..., Any], start: Array, solve: Callable[..., Any], held: list[Array], *more: Any
) -> tuple[Array, Any]:  # fmt: skip
    """Return x and aux of solve(start, *more, *held), x with the derivative of the root of residual(x, *more, *held).

    Arrays of `more` and `held` may be traced.
    """
    return custom_root(  # type: ignore[no-any-return]
        lambda x: residual(x, *more, *held), start, partial(_solved, solve, more, held), linear_solution, has_aux=True
    )


def _solved(solve: Callable[..., Any], more: Any, held: list[Array], _: Any, start: Array) -> Any:
    return solve(start, *more, *held)


def linear_solution(apply: Callable[[Array], Array], side: Array) -> Any:
    """Return the vector that a linear function maps to `side`; linear in `side`, for derivatives of solutions."""
    if side.size <= DENSE:
        return linalg.solve(vmap(apply, out_axes=1)(eye(side.size, dtype=side.dtype)), side)

    def iterated(apply: Callable[[Array], Array], side: Array) -> Any:
        return bicgstab(apply, side, tol=1e3 * rounding(side))[0]

    return custom_linear_solve(apply, side, iterated, iterated)


def rounding(x: Array) -> float:
    """Return the relative rounding error of the array's dtype."""
    return float(dtypes.finfo(x.dtype).eps)


def options_of(name: str, given: Any, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults with the given options. Raises ArgumentError for an option that the method lacks."""
    unknown = sorted(set(given or {}) - set(defaults) - {"disp"})
    if unknown:
        raise ArgumentError(
            message(f"{name}{here()}: no such option", f"got {unknown}", help=f"there are {', '.join(defaults)}")
        )
    return {**defaults, **{key: value for key, value in (given or {}).items() if key != "disp" and value is not None}}
