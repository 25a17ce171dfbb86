"""`jit` and what surrounds it: captured arrays, other traces, settings, threads."""

from __future__ import annotations

import operator
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.runtime.programs import arange, double, same, scaled
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.runtime.jit.jit import disable_jit, jit
from tracer.settings import config
from tracer.trace.convert import as_array
from tracer.transforms.gradients import grad

pytestmark = pytest.mark.usefixtures("way")


def test_captured_arrays_are_read_at_each_call() -> None:
    captured = arange(3)
    f = jit(lambda x: add(x, captured))
    same(f(np.ones(3)), [1.0, 2.0, 3.0])
    captured._rebind(as_array(np.full(3, 10.0)))
    same(f(np.ones(3)), [11.0, 11.0, 11.0])
    assert f.explain().startswith("lambda compiled once")


def test_a_captured_array_of_another_type_is_traced_again() -> None:
    captured = arange(3)
    f = jit(lambda x: captured)
    same(f(1.0), [0.0, 1.0, 2.0])
    captured._rebind(arange(2, "float32"))
    for _ in range(2):
        same(f(1.0), np.array([0, 1], "f4"))
    assert f.explain().splitlines()[-1].endswith("a captured array: f64[3] -> f32[2]")


def test_jit_in_jit_is_a_call_or_its_equations() -> None:
    kept, inlined = jit(double), jit(double, inline=True)
    program = jit(lambda x: kept(inlined(x))).lower(1.0).program()
    assert [e.primitive.name for e in program.equations] == ["add", "call"]
    same(jit(lambda x: kept(inlined(x)))(1.0), 4.0)


def test_a_nested_jit_of_constants_runs_within_the_trace() -> None:
    inner = jit(double)
    same(jit(lambda x: add(x, inner(2.0)))(1.0), 5.0)
    same(inner(3.0), 6.0)


def test_a_captured_traced_array_is_not_kept() -> None:
    def outer(x: Any) -> Any:
        inner = jit(lambda y: mul(x, y))
        return add(inner(x), inner(x))

    same(jit(outer)(np.float64(3)), 18.0)
    same(grad(outer)(np.float64(3)), 12.0)


def test_grad_of_jit_and_jit_of_grad() -> None:
    f = jit(lambda x: mul(x, mul(x, x)))
    for _ in range(2):
        same(grad(f)(np.float64(2)), 12.0)
        same(jit(grad(f))(np.float64(2)), 12.0)
        same(jit(grad(grad(f)))(np.float64(2)), 12.0)


def test_settings_that_tracing_reads_are_part_of_the_key() -> None:
    f = jit(lambda x: as_array(0.5))
    assert f(1.0).dtype == np.float64
    with config.using(default_float="float32"):
        assert f(1.0).dtype == np.float32
        assert f(1.0).dtype == np.float32
    assert f(1.0).dtype == np.float64
    config.default_float = "float32"  # type: ignore[assignment]
    try:
        assert f(1.0).dtype == np.float32
    finally:
        config.default_float = "float64"  # type: ignore[assignment]
    assert f(1.0).dtype == np.float64
    assert "config.default_float: float64 -> float32" in f.explain()
    assert f.explain().startswith("lambda compiled 2 times")


def test_disable_jit_runs_python() -> None:
    seen: list[Any] = []
    f = jit(lambda x: seen.append(x) or x)
    f(1.0)
    assert seen[0]._trace is not None
    with disable_jit():
        x = np.arange(2.0)
        f(x)
        assert seen[1] is x
    f(1.0)
    assert len(seen) == 2


def test_threads_compile_once_and_agree() -> None:
    traced: list[int] = []

    @jit
    def f(x: Any) -> Any:
        traced.append(1)
        return scaled(x, 3.0)

    results: list[Any] = []
    barrier = threading.Barrier(4)

    def work(number: float) -> None:
        barrier.wait()
        results.extend((number, float(f(np.float64(number)))) for _ in range(200))

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traced) == 1
    assert len(results) == 800
    assert all(y == 3 * x for x, y in results)


def test_a_trace_on_another_thread_does_not_see_our_calls() -> None:
    f = jit(double)
    f(np.float64(1))
    inside, done = threading.Event(), threading.Event()

    def trace() -> None:
        def body(x: Any) -> Any:
            inside.set()
            assert done.wait(10)
            return x

        jit(body)(1.0)

    thread = threading.Thread(target=trace)
    thread.start()
    assert inside.wait(10)
    try:
        same(f(np.float64(2)), 4.0)
    finally:
        done.set()
        thread.join()


def test_a_closure_variable_that_changes_is_traced_again() -> None:
    power = 2
    f = jit(lambda x: mul(x, power))
    same(f(3.0), 6.0)
    power = 5
    same(f(3.0), 15.0)
    same(f(3.0), 15.0)
    assert f.explain().splitlines()[-1].endswith("closure variable 'power': 2 -> 5")
    power = int("5")
    same(f(3.0), 15.0)
    assert f.explain().startswith("lambda compiled 2 times")


FACTOR = 2.0


def scaled_by_global(x: Any) -> Any:
    return mul(x, FACTOR)


def test_a_global_and_a_callee_that_change_are_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: add(scaled_by_global(x), 0.0))
    same(f(3.0), 6.0)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    same(f(3.0), 9.0)  # that of a function which is called
    assert "global 'FACTOR': 2.0 -> 3.0" in f.explain()
    monkeypatch.setitem(globals(), "scaled_by_global", lambda x: mul(x, 10.0))
    same(f(3.0), 30.0)
    assert "global 'scaled_by_global' is another function" in f.explain()
    monkeypatch.delitem(globals(), "FACTOR")
    same(f(3.0), 30.0)  # nobody reads it any more
    assert f.explain().startswith("lambda compiled 3 times")


def test_functions_of_libraries_under_names_of_the_users_are_guarded() -> None:
    activation, join, kind = tnp.sin, operator.mul, float
    f = jit(lambda x: join(activation(x), kind(2.5)))
    same(f(1.0), 2.5 * np.sin(1.0))
    activation = tnp.cos
    same(f(1.0), 2.5 * np.cos(1.0))
    assert "closure variable 'activation' is another function" in f.explain()
    join = operator.add
    same(f(1.0), 2.5 + np.cos(1.0))
    kind = int
    same(f(1.0), 2.0 + np.cos(1.0))


def test_a_class_of_the_users_that_is_written_anew_is_noticed() -> None:
    class Settings:
        scale = 2.0

    f = jit(lambda x: mul(x, Settings.scale))
    same(f(3.0), 6.0)

    class Settings:  # type: ignore[no-redef]  # noqa: F811
        scale = 3.0

    same(f(3.0), 9.0)


def test_an_array_under_a_name_may_be_another() -> None:
    w = arange(3)
    f = jit(lambda x: mul(x, w))
    same(f(arange(3)), [0.0, 1.0, 4.0])
    w = as_array(np.ones(3))
    same(f(arange(3)), [0.0, 1.0, 2.0])
    assert "closure variable 'w' is another array" in f.explain()


def test_names_behind_transforms_and_methods_are_guarded() -> None:
    power = 2.0

    def square(x: Any) -> Any:
        return mul(mul(x, x), power)

    class Model:
        def apply(self, x: Any) -> Any:
            return square(x)

    for f in (jit(grad(square)), jit(partial(square)), jit(jit(square)), jit(Model().apply)):
        before = float(f(3.0))
        power *= 2.0
        same(f(3.0), 2.0 * before)


def test_a_counter_of_traces_is_not_guarded() -> None:
    traces = 0

    def f(x: Any) -> Any:
        nonlocal traces
        traces += 1
        return double(x)

    g = jit(f)
    for _ in range(3):
        same(g(2.0), 4.0)
    assert traces == 1


def test_attributes_are_constants_of_the_trace() -> None:
    class Settings:
        factor = 2.0

    settings = Settings()
    f = jit(lambda x: mul(x, settings.factor))
    same(f(3.0), 6.0)
    settings.factor = 3.0
    same(f(3.0), 6.0)


@each("transform", [tracer.grad, tracer.jacrev, lambda f: lambda x: tracer.jvp(f, (x,), (x,))[1]])
def test_a_captured_array_that_is_differentiated_around_is_read_at_every_call(transform: Any) -> None:
    weights = tnp.ones(3)
    derivative = tracer.jit(transform(lambda x: tnp.sum(x * weights)))
    before = np.sum(derivative(tnp.ones(3)))
    weights[1] = 5.0
    assert np.sum(derivative(tnp.ones(3))) == before + 4.0
