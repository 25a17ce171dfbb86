"""Solutions of equations, differentiated by the implicit function theorem: `custom_root`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.ir.types import is_differentiable
from tracer.primitives.arithmetic import neg
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.convert import as_array
from tracer.trace.tracebacks import call_user
from tracer.transforms.closures import closure_convert
from tracer.transforms.custom import custom_jvp
from tracer.transforms.functions import check_callable
from tracer.transforms.jacobian_products import jvp
from tracer.transforms.tangents import FLOAT0


def custom_root(
    f: Callable[[Any], Any], initial_guess: Any, solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any], has_aux: bool = False,
) -> Any:  # fmt: skip
    """A root of `f`, f(x) = 0, differentiable in what `f` closes over, however it was found.

    f: maps a tree of arrays to one of the same structure and types. solve(f, initial_guess): the root, or
    (root, aux) if `has_aux`; it is not differentiated. tangent_solve(g, y): the x with g(x) = y, for linear g; must
    itself be linear in y for derivatives in reverse. Returns what `solve` does; aux has no derivative.

    With f(x, p) = 0, dx = -g^-1(df/dp dp), g being the derivative of f by x.

    >>> def square_root(y):
    ...     def newton(f, x):
    ...         return tracer.lax.fori_loop(0, 6, lambda _, x: x - f(x) / (2 * x), x)
    ...     return tracer.lax.custom_root(lambda x: x * x - y, 1.0, newton, lambda g, y: y / g(1.0))
    >>> tracer.grad(square_root)(4.0)
    Array(0.25, f64)
    """
    for function in (f, solve, tangent_solve):
        check_callable(function, "custom_root")
    guess = trees.tree_map(lambda x: as_array(x, "custom_root"), initial_guess)
    converted, captured = closure_convert(f, guess)

    @custom_jvp
    def root(guess: Any, captured: Any) -> Any:
        result = call_user(solve, (lambda x: converted(x, *captured), guess), {})
        return result if has_aux else (result, ())

    def rule(primals: Any, tangents: Any) -> Any:
        (_, given), (_, moved) = primals, tangents
        found, aux = root(*primals)
        residual = jvp(lambda *c: converted(found, *c), tuple(given), tuple(moved))[1] if given else None
        still = trees.tree_map(_still, aux)
        if residual is None:
            return (found, aux), (trees.tree_map(_still, found), still)

        def linear(x: Any) -> Any:
            return jvp(lambda x: converted(x, *given), (found,), (trees.tree_map(as_array, x),))[1]

        solved = call_user(tangent_solve, (linear, residual), {})
        return (found, aux), (trees.tree_map(neg, solved), still)

    root.defjvp(rule)
    found, aux = root(guess, captured)
    return (found, aux) if has_aux else found


def _still(x: Any) -> Any:
    """The tangent of what does not move."""
    type = as_array(x).type
    return zeros(type) if is_differentiable(type) else np.zeros(type.shape, FLOAT0)
