"""`tracer.optim` against Optax's trajectories: `reference.npz`, written by tools/optax_reference.py."""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.optim.cases import (
    ADAFACTOR,
    CASES,
    COMPLEX,
    COUNTS,
    LINE_STEPS,
    SCHEDULES,
    SEARCHES,
    SHOWN,
    STEPS,
    VALLEY,
    gradient,
    keywords,
    rosenbrock,
    start,
)
from tracer import jit, lax, optim, tree, tree_util, value_and_grad

REFERENCE = np.load(Path(__file__).with_name("reference.npz"))
SAID = json.loads(REFERENCE["said"].tobytes())
TOGETHER = 16  # optimizers in one program


def stacked(history: Any) -> Any:
    """The numbers of a tree of histories at the steps that are shown."""
    leaves = [np.asarray(leaf).reshape(STEPS, -1) for leaf in tree.leaves(history)]
    return np.concatenate(leaves, axis=1)[list(SHOWN)]


def walked(cases: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The parameters at the steps that are shown, of many optimizers in one program."""
    optimizers = {name: optim.chain(make(optim)) for name, make in cases.items()}

    def step(carry: Any, count: Any) -> Any:
        after = {}
        for name, (params, state) in carry.items():
            extra = keywords(name, tnp, params, count)
            updates, state = optimizers[name].update(gradient(tnp, params, count), state, params, **extra)
            after[name] = optim.apply_updates(params, updates), state
        return after, {name: params for name, (params, _) in after.items()}

    begin = {name: tree.map(tnp.asarray, start(dtype)) for name in optimizers}
    carry = {name: (params, optimizers[name].init(params)) for name, params in begin.items()}
    _, history = jit(lambda carry: lax.scan(step, carry, tnp.arange(STEPS)))(carry)
    return {name: stacked(each) for name, each in history.items()}


REAL = {**CASES, **ADAFACTOR}
# Optax rounds the decay of Adafactor and its own warm-up to float32. A complex rmsprop at rest amplifies roundings.
TOLERANCES = {**dict.fromkeys((*ADAFACTOR, "schedule_free_adamw"), 1e-6), "complex rmsprop": 1e-11}


def cases_of(dtype: str) -> dict[str, Any]:
    return COMPLEX if dtype == "complex128" else REAL if dtype == "float64" else dict([*REAL.items()][::4])


@cache
def trajectories(dtype: str, group: int) -> dict[str, Any]:
    return walked(dict([*cases_of(dtype).items()][group : group + TOGETHER]), dtype)


def trajectory(dtype: str, name: str) -> Any:
    """Of one program for neighbours in the list, which the same process tests."""
    place = [*cases_of(dtype)].index(name)
    return trajectories(dtype, place // TOGETHER * TOGETHER)[name]


@pytest.mark.parametrize("name", REAL)
def test_a_trajectory_is_optaxs(name: str) -> None:
    tolerance = TOLERANCES.get(name, 1e-13)
    np.testing.assert_allclose(trajectory("float64", name), REFERENCE[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", COMPLEX)
def test_a_trajectory_of_complex_numbers_is_optaxs(name: str) -> None:
    tolerance = TOLERANCES.get(f"complex {name}", TOLERANCES.get(name, 1e-13))
    expected = REFERENCE[f"complex {name}"]
    np.testing.assert_allclose(trajectory("complex128", name), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*REAL][::4])
def test_a_trajectory_in_float32_is_as_near_to_that_in_float64_as_optaxs(name: str) -> None:
    found = trajectory("float32", name)
    assert found.dtype == np.float32
    assert abs(found - REFERENCE[name]).max() <= max(2e-6, SAID["errors"][name])


@pytest.mark.parametrize("reset", [False, True])
def test_lookahead_is_optaxs(reset: bool) -> None:
    tx = optim.lookahead(optim.adam(0.1), 4, 0.6, reset_state=reset)

    def step(carry: Any, count: Any) -> Any:
        params, state = carry
        updates, state = tx.update(gradient(tnp, params.fast, count), state, params)
        params = optim.apply_updates(params, updates)
        return (params, state), params

    params = optim.LookaheadParams.init_synced(tree.map(tnp.asarray, start("float64")))
    _, history = jit(lambda carry: lax.scan(step, carry, tnp.arange(STEPS)))((params, tx.init(params)))
    np.testing.assert_allclose(stacked(history), REFERENCE[f"lookahead {reset}"], rtol=1e-13, atol=1e-13)


@cache
def valleys() -> dict[str, Any]:
    """The parameters after each step of every optimizer with a line search."""
    value_fn = lambda params: rosenbrock(tnp, params)  # noqa: E731
    optimizers = {name: make(optim) for name, make in SEARCHES.items()}

    def step(carry: Any, _: Any) -> Any:
        after = {}
        for name, (params, state) in carry.items():
            value, grad = value_and_grad(value_fn)(params)
            updates, state = optimizers[name].update(grad, state, params, value=value, grad=grad, value_fn=value_fn)
            after[name] = optim.apply_updates(params, updates), state
        return after, {name: params for name, (params, _) in after.items()}

    begin = {name: tnp.asarray(x) for name, x in VALLEY.items()}
    carry = {name: (begin, tx.init(begin)) for name, tx in optimizers.items()}
    _, history = jit(lambda carry: lax.scan(step, carry, length=LINE_STEPS))(carry)
    return {name: np.concatenate([np.asarray(x) for x in tree.leaves(each)], axis=1) for name, each in history.items()}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_line_search_is_optaxs(name: str) -> None:
    np.testing.assert_allclose(valleys()[name], REFERENCE[f"search {name}"], rtol=1e-9, atol=1e-9)


@each("name", SCHEDULES)
def test_a_schedule_is_optaxs_at_every_count_and_beyond_the_end(name: str) -> None:
    schedule = SCHEDULES[name](optim)
    found = np.array([float(schedule(n)) for n in COUNTS])
    np.testing.assert_allclose(found, REFERENCE[f"schedule {name}"], rtol=1e-7, atol=1e-9)
    counts = tnp.arange(len(COUNTS), dtype="int32")
    np.testing.assert_allclose(tnp.broadcast_to(schedule(counts), len(COUNTS)), found, rtol=1e-12, atol=1e-15)


@each("name", REAL)
def test_a_state_has_optaxs_names_and_fields(name: str) -> None:
    tx = optim.chain(REAL[name](optim))
    state = tx.init(tree.map(tnp.asarray, start("float32")))
    found = [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(state)]
    assert [path for path in found if not path.endswith(".rate")] == SAID["fields"][name]


SHARED = sorted(set(SAID["signatures"]) & {name for name in optim.__all__ if inspect.isfunction(getattr(optim, name))})
OTHERS = {  # functions, classes and keys as defaults, which print otherwise or are made later
    ("adafactor", "dtype_momentum"), ("add_noise", "key"), ("lbfgs", "linesearch"),
    ("scale_by_factored_rms", "decay_rate_fn"), ("sophia", "hessian_diagonal_fn"),
}  # fmt: skip
LACKING = {"sophia": {"verbose", "print_win_rate_every_n_steps"}}


@each("name", SHARED)
def test_a_signature_has_optaxs_parameters_and_defaults(name: str) -> None:
    mine = inspect.signature(getattr(optim, name)).parameters
    expected = dict(SAID["signatures"][name])
    assert [p for p in mine if p in expected] == [p for p in expected if p not in LACKING.get(name, ())]
    found = {n: "" if p.default is p.empty else repr(p.default) for n, p in mine.items() if n in expected}
    assert {n: d for n, d in found.items() if d != expected[n] and (name, n) not in OTHERS} == {}


def test_the_names_of_optax_are_there() -> None:
    assert len(SHARED) > 110
