"""Programs of nested control flow under nested transforms grow with their depth, and not by a factor for each level.

Sizes are equations, nested programs included. Twice the depth makes twice the program; a derivative repeats or hands on
something for each level that it is under, and may grow with the square of the depth: three times, and four times in the
second order. What doubled with every level would grow thirty-two times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracer.numpy as tnp
from tests.grids import covering
from tracer import checkpoint, grad, jit, lax, vmap
from tracer.ir.visit import equations

Function = Callable[[Any], Any]
DEPTH = 5


def branches(inner: Function, depth: int) -> Function:
    return lambda x: lax.cond(x > 0.1 * depth, lambda v: inner(v) * v, tnp.cos, x)


def scans(inner: Function, depth: int) -> Function:
    return lambda x: lax.scan(lambda c, _: (inner(c) * c, None), x, None, length=2)[0]


def loops(inner: Function, depth: int) -> Function:
    return lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, inner(s[1]) * s[1]), (0, x))[1]


def remembered(inner: Function, depth: int) -> Function:
    return lambda x: checkpoint(inner)(x) * x


def compiled(inner: Function, depth: int) -> Function:
    return lambda x: jit(inner)(x) * x


def in_turn(inner: Function, depth: int) -> Function:
    return (branches, scans, remembered, loops, compiled)[depth % 5](inner, depth)


def over_lanes(f: Function) -> Function:
    return lambda x: vmap(f)(x * tnp.ones(3)).sum()


TRANSFORMS: dict[str, tuple[Function, float]] = {  # by what factor the program may grow with twice the depth
    "f": (lambda f: f, 2.0),
    "vmap": (over_lanes, 2.0),
    "grad": (grad, 3.0),
    "grad of vmap": (lambda f: grad(over_lanes(f)), 3.0),
    "vmap of grad": (lambda f: over_lanes(grad(f)), 3.0),
    "grad of checkpoint": (lambda f: grad(checkpoint(f)), 3.0),
    "grad of vmap of checkpoint": (lambda f: grad(over_lanes(checkpoint(f))), 3.0),
    "grad of grad": (lambda f: grad(grad(f)), 4.2),
}


def size(make: Callable[[Function, int], Function], transform: Function, depth: int) -> tuple[int, int]:
    """How many equations there are, as traced and as optimised."""
    function: Function = lambda x: tnp.sin(x) * x  # noqa: E731
    for level in range(depth):
        function = make(function, level)
    lowered = jit(transform(function)).lower(0.7)
    programs = lowered.program(), lowered.optimized()
    return sum(1 for _ in equations(programs[0])), sum(1 for _ in equations(programs[1]))


MAKERS = [branches, scans, loops, remembered, compiled, in_turn]


@pytest.mark.parametrize(("make", "name"), covering(MAKERS, TRANSFORMS, least=24))
def test_nested_control_flow_grows_with_its_depth(make: Any, name: str) -> None:
    transform, bound = TRANSFORMS[name]
    once, twice = size(make, transform, DEPTH), size(make, transform, 2 * DEPTH)
    assert all(b <= bound * a for a, b in zip(once, twice, strict=True)), (once, twice)


def test_the_whole_of_a_deep_nest_compiles() -> None:
    function: Function = lambda x: tnp.sin(x) * x  # noqa: E731
    for level in range(2 * DEPTH):
        function = in_turn(function, level)
    found = jit(vmap(grad(function)))(tnp.asarray([0.7, 0.2]))
    step = 1e-6
    for x, slope in zip((0.7, 0.2), found, strict=True):
        expected = (float(function(x + step)) - float(function(x - step))) / (2 * step)
        assert float(slope) == pytest.approx(expected, rel=1e-5, abs=1e-9)
