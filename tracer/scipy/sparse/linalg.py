"""Iterative solvers of linear systems given as functions: cg, bicgstab, gmres. Vectors are trees.

With A x = b, dx = A^-1 (db - dA x). So derivatives are solutions by the same iteration, from zero, to the first one's
relative tolerance. So an initial x has no derivative, and small tangents are as exact as large ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracer.absent import absent
from tracer.errors import ArgumentError, ShapeError, message
from tracer.flatten_util import ravel_pytree
from tracer.ir import dtypes
from tracer.lax import custom_linear_solve, custom_root
from tracer.numpy import isnan, maximum, promote_types, result_type, where, zeros_like
from tracer.numpy.core.conversion import array_of, inexact_dtype
from tracer.runtime.jit.trace_call import eval_shape
from tracer.scipy.sparse.krylov import (
    Iteration,
    Map,
    Tolerances,
    conjugate_gradients,
    minimal_residuals,
    norm,
    solved,
    stabilised_gradients,
)
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import boundary, call_user, set_boundaries
from tracer.transforms.custom.closures import hoisted

__all__ = ["bicgstab", "cg", "gmres"]

Tree = Any
Staged = tuple[
    Callable[..., Any], Sequence[Array]
]  # a function, and the traced arrays that it takes after its argument


def cg(
    A: Any, b: Tree, x0: Tree = None, *, tol: Any = None, atol: Any = 0.0, maxiter: Any = None, M: Any = None,
    rtol: Any = None,
) -> tuple[Tree, None]:  # fmt: skip
    """Solve A x = b for x by conjugate gradients, for hermitian positive definite A.

    M is hermitian and positive definite, too. Returns (x, None). Raises ShapeError where trees do not fit.

    >>> a = tnp.asarray([[4.0, 1.0], [1.0, 3.0]])
    >>> x, _ = tracer.scipy.sparse.linalg.cg(lambda v: a @ v, tnp.asarray([1.0, 2.0]))
    >>> x
    Array([0.09090909, 0.63636364], f64)
    >>> tracer.grad(lambda b: tracer.scipy.sparse.linalg.cg(a, b)[0].sum())(tnp.asarray([1.0, 2.0]))
    Array([0.18181818, 0.27272727], f64)
    """
    return _System("cg", A, b, x0, (_tolerance("cg", tol, rtol), atol), maxiter, M).solution(
        conjugate_gradients, hermitian=True
    ), None


def bicgstab(
    A: Any, b: Tree, x0: Tree = None, *, tol: Any = None, atol: Any = 0.0, maxiter: Any = None, M: Any = None,
    rtol: Any = None,
) -> tuple[Tree, None]:  # fmt: skip
    """Solve A x = b for x by stabilised biconjugate gradients, for any A, with two products a step.

    A step that breaks down, since a product of vectors is 0, is the last one. Returns (x, None). Raises ShapeError
    where trees do not fit.

    >>> a = tnp.asarray([[4.0, 1.0], [-1.0, 3.0]])
    >>> x, _ = tracer.scipy.sparse.linalg.bicgstab(a, tnp.asarray([5.0, 2.0]))
    >>> x
    Array([1., 1.], f64)
    """
    return _System("bicgstab", A, b, x0, (_tolerance("bicgstab", tol, rtol), atol), maxiter, M).solution(
        stabilised_gradients
    ), None


def gmres(
    A: Any, b: Tree, x0: Tree = None, *, tol: Any = None, atol: Any = 0.0, restart: int = 20, maxiter: Any = None,
    M: Any = None, solve_method: str = "batched", rtol: Any = None,
) -> tuple[Tree, Array]:  # fmt: skip
    """Solve A x = b for x by generalised minimal residuals, for any A.

    restart: a concrete integer, the directions and vectors kept per iteration. maxiter: iterations, by default 10 n.
    solve_method: "incremental", which checks the residual after every direction and may end an iteration early, or
    "batched", which does not. M preconditions from the right: the residual is A's. Returns (x, info): an int32, -1
    where x is NaN, else 0. Raises ShapeError where trees do not fit, ArgumentError for another method, and for no
    directions.

    >>> a = tnp.asarray([[4.0, 1.0], [-1.0, 3.0]])
    >>> x, info = tracer.scipy.sparse.linalg.gmres(a, tnp.asarray([5.0, 2.0]), solve_method="incremental")
    >>> x, info
    (Array([1., 1.], f64), Array(0, i32))
    """
    if solve_method not in ("batched", "incremental"):
        text = f'gmres{here()}: solve_method is "batched" or "incremental"'
        raise ArgumentError(message(text, f"got {solve_method!r}"))
    system = _System("gmres", A, b, x0, (_tolerance("gmres", tol, rtol), atol), maxiter, M)
    directions = min(integer("gmres", "restart", restart), system.side.size)
    if directions < 1 <= system.side.size:
        raise ArgumentError(
            message(f"gmres{here()}: an iteration needs one direction at least", f"got restart={restart}")
        )
    x = system.solution(partial(minimal_residuals, restart=directions, early=solve_method == "incremental"))
    unknown = isnan(ravel_pytree(x)[0]).any()
    return x, where(unknown, -1, 0).astype("int32")


class _System:
    """A system A x = b on vectors: the concatenated leaves of trees, in one dtype with A's results."""

    def __init__(
        self, name: str, A: Any, b: Tree, x0: Tree, tolerances: tuple[Any, Any], maxiter: Any, M: Any
    ) -> None:  # fmt: skip
        self.name = name
        leaves, self.structure = trees.flatten(b)
        sides = [array_of(name, leaf) for leaf in leaves]
        starts = sides if x0 is None else self._like(sides, x0, "x0")
        functions = [_linear(name, A, "A"), *([] if M is None else [_linear(name, M, "M")])]
        dtype = _dtype([*sides, *starts])
        for function, which in zip(functions if sides else (), "AM", strict=False):
            found = eval_shape(function, trees.unflatten(self.structure, [x.astype(dtype) for x in sides]))
            dtype = _dtype([dtype, *self._like(sides, found, f"what {which} returns")])
        self.dtype = dtype
        self.side, self.unravel = ravel_pytree(trees.unflatten(self.structure, [x.astype(dtype) for x in sides]))
        self.start = zeros_like(self.side) if x0 is None else self._vector(x0)
        self.apply = self._of_vectors(functions[0])
        self.precondition = (_same, ()) if M is None else self._of_vectors(functions[1])
        self.steps = 10 * self.side.size if maxiter is None else _steps(name, maxiter)
        width = promote_types(dtypes.real_dtype(dtype), "float32")
        self.tol, self.atol = (array_of(name, limit).astype(width) for limit in tolerances)

    def solution(self, iterate: Iteration, *, hermitian: bool = False) -> Tree:
        """Return the tree x, differentiable in b and in the arrays that A closes over."""
        if not self.side.size:
            return self.unravel(self.side)
        length = norm(self.side)
        share = where(length > 0, maximum(self.tol, self.atol / where(length > 0, length, 1.0)), self.tol)
        symmetric = hermitian and not dtypes.is_complex(self.dtype)
        wanted = Tolerances(self.tol, self.atol, self.steps)
        first = partial(_first, iterate, self.apply, self.precondition, self.side, wanted)
        derivative = partial(
            _derivative, iterate, self.precondition, Tolerances(share, zeros_like(share), self.steps), symmetric
        )
        apply, held = self.apply
        return self.unravel(custom_root(lambda x: apply(x, *held) - self.side, self.start, first, derivative))

    def _of_vectors(self, function: Callable[[Tree], Tree]) -> Staged:
        return hoisted(
            lambda v: self._vector(call_user(function, (self.unravel(v),), {})), (self.side,), lambda _: True
        )

    def _vector(self, tree: Tree) -> Array:
        return ravel_pytree(tree)[0].astype(self.dtype)

    def _like(self, sides: list[Array], tree: Tree, role: str) -> list[Any]:
        """Return the leaves of a tree. Raises ShapeError unless it has b's structure and shapes."""
        leaves, structure = trees.flatten(tree)
        if structure == self.structure and [np.shape(x) for x in leaves] == [x.shape for x in sides]:
            return leaves
        raise ShapeError(
            message(
                f"{self.name}{here()}: {role} must be a tree like b",
                f"expected {trees.structure_text(self.structure)} of shapes {[x.shape for x in sides]}",
                f"got {trees.structure_text(structure)} of shapes {[np.shape(x) for x in leaves]}",
            )
        )


# `custom_root` looks for captured traced arrays in these arguments.


def _first(
    iterate: Iteration, apply: Staged, precondition: Staged, side: Array, wanted: Tolerances, _: Any, start: Array
) -> Array:
    return solved(iterate, _bound(apply), side, start, wanted, _bound(precondition))


def _derivative(
    iterate: Iteration, precondition: Staged, wanted: Tolerances, symmetric: bool, apply: Map, side: Array
) -> Any:
    def from_zero(apply: Map, side: Array) -> Array:
        return solved(iterate, apply, side, zeros_like(side), wanted, _bound(precondition))

    return custom_linear_solve(apply, side, from_zero, from_zero, symmetric=symmetric)


def _bound(staged: Staged) -> Map:
    function, held = staged
    return lambda v: function(v, *held)


def _tolerance(name: str, tol: Any, rtol: Any) -> Any:
    """Return the relative tolerance, by JAX's name or by SciPy's."""
    if tol is not None and rtol is not None:
        raise ArgumentError(
            message(
                f"{name}{here()}: tol and rtol are two names of one tolerance",
                f"got tol={tol!r} and rtol={rtol!r}",
                help="give one of them",
            )
        )
    given = tol if rtol is None else rtol
    return 1e-5 if given is None else given


def _steps(name: str, maxiter: Any) -> Any:
    """Return an integer, or an array of one, concrete or traced."""
    known = maxiter if isinstance(maxiter, Array) and dtypes.is_integer(maxiter.dtype) else None
    return integer(name, "maxiter", maxiter) if known is None else known


def _same(v: Array) -> Array:
    return v


def _dtype(values: list[Any]) -> Any:
    """Return the float or complex dtype to which arrays are promoted."""
    dtype = result_type(*(getattr(x, "dtype", x) for x in values)) if values else np.dtype("float64")
    return dtype if dtypes.is_inexact(dtype) else inexact_dtype(dtype)


def _linear(name: str, given: Any, which: str) -> Callable[[Tree], Tree]:
    """Return a function, or the product with a matrix, as a function."""
    if type(given).__module__.startswith("scipy.sparse"):
        raise ArgumentError(
            message(
                f"{name}{here()}: {which} is a function of arrays of ours, or a square matrix",
                f"got {type(given).__name__} of scipy.sparse, which computes with NumPy's arrays",
                help=f"{which}.toarray(), or the product written with tracer.numpy",
            )
        )
    if callable(given):
        return given  # type: ignore[no-any-return]
    matrix = given if hasattr(given, "__matmul__") else array_of(name, given)
    sizes = np.shape(matrix)
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ShapeError(
            message(
                f"{name}{here()}: {which} is a function, or a square matrix", f"got an array of shape {list(sizes)}"
            )
        )
    if isinstance(matrix, np.ndarray):
        matrix = array_of(name, matrix)
    return partial(operator.matmul, matrix)


set_boundaries(globals(), __all__, partial(boundary, named=True))
say(
    [globals()[name] for name in __all__],
    {
        "A": "a linear function from trees like b to such, or a matrix [n, n].",
        "b": "a tree of arrays [*s]; x is such a tree, of the dtype to which all are promoted; integers become floats.",
        "x0": "where the iteration starts, a tree like b; by default zero.",
        "tol": "the iteration ends where the norm of b - A x is at most `tol` (1e-5) times that of b, or `atol`.",
        "rtol": "SciPy's name of `tol`.",
        "atol": "the iteration ends where the norm of b - A x is at most `tol` times that of b, or `atol`.",
        "maxiter": "how many steps there are at most; by default 10 n.",
        "M": "what comes near the inverse of A, as A is given: by default nothing. Derivatives use it as it is.",
    },
)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
