"""Solutions of equations, differentiated by the implicit function theorem: `custom_root`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.ir.dtypes import FLOAT0
from tracer.ir.types import is_differentiable
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.elementwise.arithmetic import neg
from tracer.trace import trees
from tracer.trace.array import is_recorded
from tracer.trace.captures import captured_arrays
from tracer.trace.convert import as_array
from tracer.trace.state import state
from tracer.trace.tracebacks import call_user
from tracer.transforms.custom.closures import hoisted
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.functions import check_callable
from tracer.transforms.jacobian_products import jvp


def custom_root(
    f: Callable[[Any], Any], initial_guess: Any, solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any], has_aux: bool = False,
) -> Any:  # fmt: skip
    """Find a root of `f` by `solve`, differentiable in the arrays that `f` closes over.

    f: maps a tree of arrays to one of the same structure, shapes and dtypes. solve(f, initial_guess): the root, of
    these shapes and dtypes as well, or (root, aux) if `has_aux`; it is not differentiated. tangent_solve(g, y): the x
    with g(x) = y, for linear g; must itself be linear in y for derivatives in reverse. All three may close over
    anything. Returns the result of `solve`; aux has no derivative. Raises ArgumentError for an argument that is not a
    function.

    With f(x, p) = 0, dx = -g^-1(df/dp dp), where g is the derivative of f by x.

    >>> def square_root(y):
    ...     def newton(f, x):
    ...         return tracer.lax.fori_loop(0, 6, lambda _, x: x - f(x) / (2 * x), x)
    ...     return tracer.lax.custom_root(lambda x: x * x - y, 1.0, newton, lambda g, y: y / g(1.0))
    >>> tracer.grad(square_root)(4.0)
    Array(0.25, f64*)
    """
    for function in (f, solve, tangent_solve):
        check_callable(function, "custom_root")
    guess = trees.tree_map(lambda x: as_array(x, "custom_root"), initial_guess)
    converted, captured = hoisted(f, (guess,), lambda _: True)

    def from_guess(guess: Any, captured: Any) -> Any:
        return call_user(solve, (lambda x: converted(x, *captured), guess), {})

    def from_residual(found: Any, captured: Any, residual: Any) -> Any:
        def linear(x: Any) -> Any:
            return jvp(lambda x: converted(x, *captured), (found,), (trees.tree_map(as_array, x),))[1]

        return call_user(tangent_solve, (linear, residual), {})

    solver, held = _held_constant(from_guess, solve, guess, captured)
    tangent_solver, tangent_held = _held_constant(from_residual, tangent_solve, guess, captured, guess)

    @custom_jvp
    def root(guess: Any, captured: Any, held: Any, tangent_held: Any) -> Any:
        result = solver(guess, captured, *held)
        return result if has_aux else (result, ())

    def rule(primals: Any, tangents: Any) -> Any:
        _, given, _, tangent_held = primals
        found, aux = root(*primals)
        still = trees.tree_map(_still, aux)
        if not given:
            return (found, aux), (trees.tree_map(_still, found), still)
        residual = jvp(lambda *c: converted(found, *c), tuple(given), tuple(tangents[1]))[1]
        solved = tangent_solver(found, given, residual, *tangent_held)
        return (found, aux), (trees.tree_map(neg, solved), still)

    root.defjvp(rule)
    found, aux = root(guess, captured, held, tangent_held)
    return (found, aux) if has_aux else found


def _held_constant(run: Callable[..., Any], given: Callable[..., Any], *examples: Any) -> tuple[Any, list[Any]]:
    """Return the function with its captured traced arrays as last arguments, and these arrays.

    given: the user's function called by `run`. If all values are concrete and it captures no traced arrays, `run` is
    returned unchanged. Then Python's `while` may read values.
    """
    if state.staging is None and not any(map(is_recorded, captured_arrays(given))):
        return run, []
    return hoisted(run, examples, lambda _: True)


def _still(x: Any) -> Any:
    """Return the zero tangent of x."""
    type = as_array(x).type
    return zeros(type) if is_differentiable(type) else np.zeros(type.shape, FLOAT0)
