"""Every differentiable function of tracer.numpy under the laws: reverse, forward, batched and compiled derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tests.numpy.breadth_cases import BREADTH
from tests.numpy.derivative_cases import DERIVATIVE_CASES, WITHOUT
from tests.numpy.test_values import groups, named
from tests.numpy.value_cases import CASES, Case


def is_smooth(case: Case) -> bool:
    finite = all(x.dtype.kind == "f" and np.isfinite(x).all() and x.size for x in case.operands)
    return bool(case.operands) and finite and (case in DERIVATIVE_CASES or case.label != "arccosh")  # NaN below 1


SMOOTH = [case for case in [*CASES, *BREADTH, *DERIVATIVE_CASES] if is_smooth(case)]
LABELS = [f"{number} {case.label}" for number, case in enumerate(SMOOTH)]


def total_of(case: Case) -> Any:
    """All floats of the results, weighed and added."""

    def total(*xs: Any) -> Any:
        floats = [y for y in tracer.tree.leaves(case.call(tnp, *xs)) if y.dtype.kind == "f"]
        return sum((tnp.sum(y * np.cos(np.arange(y.size)).reshape(y.shape)) for y in floats), tnp.zeros(()))

    return total


@each("case", SMOOTH, ids=LABELS)
def test_derivatives_agree_in_every_mode(case: Case, rng: np.random.Generator) -> None:
    total, operands = total_of(case), case.operands
    directions = [rng.normal(size=x.shape) for x in operands]
    gradients = tracer.grad(total, argnums=tuple(range(len(operands))))
    reverse = sum(float((np.asarray(g) * d).sum()) for g, d in zip(gradients(*operands), directions, strict=True))
    step = 1e-6
    up, down = (
        float(total(*(x + sign * step * d for x, d in zip(operands, directions, strict=True)))) for sign in (1, -1)
    )
    assert reverse == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-5)
    forward = float(tracer.jvp(total, operands, tuple(directions))[1])
    assert forward == pytest.approx(reverse, rel=1e-9, abs=1e-9)


DATA_SHAPED = ("trim_zeros", "roots")  # how many results there are depends on values


def _compiled() -> Iterator[Case]:
    """The cases made for derivatives, and for every other function its first."""
    seen = {case.label.split()[0] for case in DERIVATIVE_CASES}
    for case in SMOOTH:
        name = case.label.split()[0]
        if case.label not in DATA_SHAPED and (case in DERIVATIVE_CASES or name not in seen):
            seen.add(name)
            yield case


COMPILED = list(_compiled())[:: 1 if THOROUGH else 2]


@groups(COMPILED)
def test_values_and_gradients_compile_in_batches(cases: list[Case]) -> None:
    lanes = [[np.stack([x, x * (1 + 1e-3)]) for x in case.operands] for case in cases]
    each = [tracer.value_and_grad(total_of(case), argnums=tuple(range(len(case.operands)))) for case in cases]

    def together(lanes: Any) -> Any:
        found = []
        for case, both, xs in zip(cases, each, lanes, strict=True):
            with named(case):
                found.append(tracer.vmap(both)(*xs))
        return found

    for case, both, xs, (values, gradients) in zip(cases, each, lanes, tracer.jit(together)(lanes), strict=True):
        with named(case):
            for i in range(2):
                value, slopes = both(*(x[i] for x in xs))
                np.testing.assert_allclose(values[i], value, rtol=1e-9, atol=1e-12)
                for found, wanted in zip(gradients, slopes, strict=True):
                    np.testing.assert_allclose(found[i], wanted, rtol=1e-9, atol=1e-12)


def test_every_function_is_differentiated_or_says_why_not() -> None:
    excused = {name for names in WITHOUT.values() for name in names}
    faces: dict[Any, set[str]] = {}
    for name in tnp.__all__:
        if inspect.isfunction(getattr(tnp, name)):
            faces.setdefault(getattr(tnp, name), set()).add(name)
    tried = {word for case in SMOOTH for word in case.label.split()[:1]} | excused
    assert [sorted(names) for names in faces.values() if not names & tried] == []
    assert excused <= {name for names in faces.values() for name in names}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_slopes_of_quotients_and_remainders_by_zero_and_at_infinity(mode: str) -> None:
    """Those of floor_divide are 0; a remainder's slope by the modulus is the whole quotient, infinite by 0."""
    inf, nan = np.inf, np.nan
    x = tnp.asarray([1.0, -1.0, 0.0, inf, 2.0, 5.5, -5.5, nan, 3.0, inf])
    y = tnp.asarray([0.0, 0.0, 0.0, 2.0, inf, -inf, inf, 1.0, -0.0, inf])

    def slope(f: Any, place: int) -> Any:
        if mode == "reverse":
            return tracer.vmap(tracer.grad(f, place))(x, y)
        along = (lambda v: f(x, v)) if place else (lambda v: f(v, y))
        return tracer.jvp(along, (y if place else x,), (tnp.ones_like(x),))[1]

    for place in (0, 1):
        np.testing.assert_array_equal(slope(tnp.floor_divide, place), np.zeros(10))
    for f, far in ((tnp.remainder, [0, 1, 1]), (tnp.fmod, [0, 0, 0])):
        np.testing.assert_array_equal(slope(f, 0), np.ones(10))
        np.testing.assert_array_equal(slope(f, 1), [-inf, inf, nan, -inf, *far, nan, inf, nan])
