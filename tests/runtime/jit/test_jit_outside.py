"""What a jitted function reads from outside by value: NumPy arrays that are written to, and values that tracing saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.runtime.programs import same
from tracer.trace.trace import Trace, stage_process

WHOLE = np.array([1.0, 2.0, 3.0])


class Labelled(np.ndarray[Any, Any]):
    """A subclass, as memory maps are."""


def compilations(f: Any) -> int:
    return int(f._calls.history.compilations)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([1.0, 2.0, 3.0]),
        lambda: np.arange(12.0).reshape(4, 3)[::2].T[:, 0],  # strides of its own
        lambda: np.array([1.0, 2.0, 3.0]).astype(">f8"),
        lambda: np.array([1.0, np.nan, -0.0]),
        lambda: np.array([1.0, 2.0, 3.0]).view(Labelled),
        lambda: np.ones((0, 3)),
    ],
    ids=["plain", "strided", "big-endian", "nan", "subclass", "empty"],
)
def test_a_numpy_array_that_is_written_to_is_read_anew(make: Callable[[], Any]) -> None:
    captured = make()
    f = tracer.jit(lambda x: x * captured + captured.shape[0])
    for round in range(3):
        same(f(2.0), 2.0 * np.asarray(captured, "f8") + captured.shape[0])
        captured[...] = captured + 1.0 + round
    assert compilations(f) == 1


@pytest.mark.usefixtures("way")
def test_results_never_share_memory_with_a_captured_array() -> None:
    captured = WHOLE.copy()
    result = tracer.jit(lambda: captured)()
    captured[0] = 10.0
    same(result, WHOLE)


@pytest.mark.usefixtures("way")
def test_a_captured_numpy_array_of_another_type_is_traced_again() -> None:
    captured = WHOLE.copy()
    f = tracer.jit(lambda x: x + captured)
    same(f(1.0), [2.0, 3.0, 4.0])
    captured.shape = (3, 1)
    same(f(1.0), [[2.0], [3.0], [4.0]])
    assert f.explain().splitlines()[-1].endswith("a captured array: f64[3] -> f64[3,1]")


@pytest.mark.usefixtures("way")
def test_buffers_that_tracing_writes_to_are_as_they_were_when_they_were_used() -> None:
    outer = np.zeros(3)

    def f(x: Any) -> Any:
        buffer = np.zeros(3)
        for i in range(3):
            buffer[i] = i + 1.0
            outer[i] = 10.0 * i
            x = x + buffer * tnp.asarray(buffer) + outer
        return x

    expected = [3.0, 28.0, 29.0]
    g = tracer.jit(f)
    same(g(np.zeros(3)), expected)
    same(g(np.zeros(3)), expected)


@pytest.mark.usefixtures("way")
def test_arrays_that_only_the_trace_has_seen_are_not_compared() -> None:
    f = tracer.jit(lambda x: x[np.array([True, False, True])] * np.arange(4.0).reshape(2, 2)[1])
    same(f(WHOLE), [2.0, 9.0])
    traced = next(iter(f._calls.cache.values())).traced
    assert not traced.values
    assert {type(array) for array in traced.captured} == {tracer.Array}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("read", "before", "after"),
    [
        (lambda x, v: x * float(v), 2.0, 3.0),
        (lambda x, v: x if v else -x, 2.0, 0.0),
        (tnp.repeat, [1, 2, 0], [2, 0, 2]),
        (lambda x, v: x[v], [True, False, True], [False, True, False]),
        (lambda x, v: x * np.asarray(v), [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
        (lambda x, v: tracer.lax.fori_loop(0, int(v), lambda i, y: y + x, x), 2, 4),
    ],
    ids=["float", "if", "repeat", "mask", "asarray", "bound"],
)
def test_values_of_a_handle_that_tracing_looked_at_are_compared(read: Any, before: Any, after: Any) -> None:
    v = tnp.asarray(before)
    f = tracer.jit(lambda x: read(x, v))
    for value in (before, before, after, after, before):
        v[...] = tnp.asarray(value)
        same(f(WHOLE), read(tnp.asarray(WHOLE), tnp.asarray(value)))
    assert compilations(f) <= 3


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("read", "before", "after"),
    [
        (tnp.repeat, [1, 2, 0], [2, 0, 2]),
        (lambda x, v: x[v], [True, False, True], [False, True, False]),
        (lambda x, v: x[v], [0, 1], [2, 2]),
        (lambda x, v: x.at[v].set(0.0), [0, 1], [2, 2]),
        (tnp.delete, [0], [2]),
    ],
    ids=["repeat", "mask", "places", "update", "delete"],
)
def test_values_of_a_numpy_array_that_tracing_looked_at_are_compared(read: Any, before: Any, after: Any) -> None:
    v = np.asarray(before)
    f = tracer.jit(lambda x: read(x, v))
    for value in (before, before, after, after, before):
        v[...] = value
        same(f(WHOLE), read(tnp.asarray(WHOLE), np.asarray(value)))
    assert compilations(f) <= 3


@pytest.mark.usefixtures("way")
def test_explain_names_the_value() -> None:
    scale, mask = tnp.asarray(2.0), np.array([True, False, True])
    f = tracer.jit(lambda x: x[mask] * float(scale))
    f(WHOLE)
    scale[()] = 5.0
    f(WHOLE)
    assert f.explain().splitlines()[-1].endswith("the values of a captured array that tracing looked at: 2. -> 5.")
    mask[1] = True
    f(WHOLE)
    assert (
        f.explain()
        .splitlines()[-1]
        .endswith(
            "the values of a captured NumPy array that tracing looked at: [ True False  True] -> [ True  True  True]"
        )
    )


@pytest.mark.usefixtures("way")
def test_what_an_inner_function_read_holds_for_the_outer_one() -> None:
    scale, weights = tnp.asarray(2.0), WHOLE.copy()
    inner = tracer.jit(lambda x: x * weights * float(scale))
    inner(1.0)
    outer = tracer.jit(lambda x: inner(x) + 1.0)
    same(outer(1.0), 2.0 * WHOLE + 1.0)
    weights[:] = 10.0
    same(outer(1.0), [21.0, 21.0, 21.0])
    scale[()] = 3.0
    same(outer(1.0), [31.0, 31.0, 31.0])


def test_what_a_pullback_keeps_stays_as_it_was() -> None:
    weights = WHOLE.copy()
    f = tracer.jit(lambda x: (x * weights).sum())
    _, pullback = tracer.vjp(f, 2.0)
    tangent_map = tracer.linearize(f, 2.0)[1]
    weights[:] = 100.0
    same(pullback(1.0)[0], 6.0)
    same(tangent_map(1.0), 6.0)
    same(tracer.grad(f)(2.0), 300.0)
    same(tracer.vmap(f)(np.ones(2)), [300.0, 300.0])


@pytest.mark.usefixtures("way")
def test_a_compiled_function_reads_captured_arrays_too() -> None:
    weights = WHOLE.copy()
    compiled = tracer.jit(lambda x: x * weights).lower(1.0).compile()
    same(compiled(2.0), 2.0 * WHOLE)
    weights[1] = 7.0
    same(compiled(2.0), [2.0, 14.0, 6.0])


def test_a_copy_at_every_call_is_said() -> None:
    captured = np.arange(6.0).reshape(2, 3).T
    f = tracer.jit(lambda x: x @ captured)
    same(f(np.ones(3)), [3.0, 12.0])
    assert f.explain().endswith("note: a captured NumPy array is not C-contiguous: it is copied at every call")


def test_a_captured_array_that_became_traced_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = tnp.ones(3)
    f = tracer.jit(lambda x: x + captured)
    f(1.0)
    traced = next(iter(f._calls.cache.values())).traced
    monkeypatch.setattr(captured, "_trace", Trace(stage_process, "g"))
    assert not traced.is_valid
    assert traced.changes() == ["a captured array: f64[3] -> f64[3], traced"]


class World:
    """Things outside a function, in every guise in which a function may read them."""

    def __init__(self) -> None:
        self.numpy = np.array([1.0, 2.0, 3.0])
        self.mask = np.array([True, False, True])
        self.ours = tnp.asarray([4.0, 5.0, 6.0])
        self.switch = tnp.asarray(1.0)
        self.number = 2.0

    def function(self) -> tuple[Callable[[Any], Any], Callable[[float], None]]:
        number = self.number
        inner = tracer.jit(lambda x: x * self.numpy)

        def f(x: Any) -> Any:
            y = inner(x) + self.ours * number
            y = y.at[self.mask].add(1.0)
            return tnp.sin(y) if self.switch else y

        def rebind(value: float) -> None:
            nonlocal number
            number = value

        return f, rebind


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["numpy", "mask", "ours", "switch", "number", "setting"]), st.integers(0, 2),
        st.sampled_from([-1.0, 0.0, 2.0, np.nan]),
    ),
    max_size=8,
)  # fmt: skip


@given(STEPS)
def test_nothing_stale_is_served(steps: list[tuple[str, int, float]]) -> None:
    world = World()
    f, rebind = world.function()
    g = tracer.jit(f)
    x = tnp.asarray([0.5, 1.5, 2.5])
    default = "float64"
    for what, place, value in [("nothing", 0, 0.0), *steps]:
        if what in ("numpy", "mask", "ours"):
            getattr(world, what)[place] = bool(value > 0) if what == "mask" else value
        elif what == "switch":
            world.switch[()] = value
        elif what == "number":
            rebind(value)
        elif what == "setting":
            default = "float32" if default == "float64" else "float64"
        with tracer.config.using(default_float=default):
            np.testing.assert_allclose(np.asarray(g(x)), np.asarray(f(x)), rtol=1e-12)
