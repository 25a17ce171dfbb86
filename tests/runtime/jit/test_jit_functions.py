"""A jitted function sees what becomes of functions that it runs: their code and defaults may be assigned to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp


def plain(x: Any, scale: Any = 2.0) -> Any:
    return x * scale


def named(x: Any, *, scale: Any = 2.0) -> Any:
    return x * scale


def thrice(x: Any, scale: Any = 2.0) -> Any:
    return 3.0 * x * scale


class Model:
    """A function that stands in a class."""

    def method(self, x: Any, scale: Any = 2.0) -> Any:
        return x * scale


def applied(x: Any, function: Any = plain) -> Any:
    return 1.0 * function(x)


def given(function: Any, x: Any) -> Any:
    return 1.0 * function(x)


def composed() -> Any:
    def run(*functions: Any) -> Any:
        return tracer.jit(lambda x: [function(x) for function in functions][-1])

    return run(thrice, plain)


model, jitted = Model(), tracer.jit(plain)
written = ModuleType("written")
written.__dict__.update(__file__="/home/user/written.py", __name__="written", plain=plain, factor=2.0)

CALLERS: dict[str, tuple[Callable[[], Any], FunctionType]] = {
    "itself": (lambda: tracer.jit(plain), plain),
    "a global": (lambda: tracer.jit(lambda x: 1.0 * plain(x)), plain),
    "a closure variable": (lambda f=plain: tracer.jit(lambda x: 1.0 * f(x)), plain),  # type: ignore[misc]
    "a function behind another": (lambda: tracer.jit(tracer.vmap(lambda x: 1.0 * plain(x))), plain),
    "a jitted function": (lambda: tracer.jit(lambda x: 1.0 * jitted(x)), plain),
    "a bound method": (lambda: tracer.jit(model.method), Model.method),  # type: ignore[dict-item]
    "functions of a closure": (composed, plain),
    "a default": (lambda: tracer.jit(applied), plain),
    "an argument of partial": (lambda: tracer.jit(partial(given, plain)), plain),
}


@pytest.fixture(autouse=True)
def _as_they_were() -> Iterator[None]:
    functions = [plain, named, Model.method]
    kept: list[Any] = [(f, f.__code__, f.__defaults__, dict(f.__kwdefaults__ or {})) for f in functions]
    yield
    for f, f.__code__, f.__defaults__, keywords in kept:
        f.__kwdefaults__ = keywords or None
    written.__dict__.update(plain=plain, factor=2.0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("caller", CALLERS)
def test_assigned_defaults_are_seen(caller: str) -> None:
    make, function = CALLERS[caller]
    f, x = make(), tnp.ones(2)
    assert [float(f(x)[0]) for _ in range(3)] == [2.0] * 3
    function.__defaults__ = (5.0,)
    assert [float(f(x)[0]) for _ in range(3)] == [5.0] * 3
    function.__defaults__ = (2.0,)
    assert float(f(x)[0]) == 2.0


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("caller", ["itself", "a global", "a function behind another"])
def test_assigned_code_is_seen(caller: str) -> None:
    make, function = CALLERS[caller]
    f, x = make(), tnp.ones(2)
    assert [float(f(x)[0]) for _ in range(3)] == [2.0] * 3
    function.__code__ = thrice.__code__
    assert [float(f(x)[0]) for _ in range(3)] == [6.0] * 3


@pytest.mark.usefixtures("way")
def test_defaults_by_keyword_are_seen_assigned_and_changed_in_place() -> None:
    f, x = tracer.jit(lambda x: 1.0 * named(x)), tnp.ones(2)
    assert [float(f(x)[0]) for _ in range(3)] == [2.0] * 3
    assert named.__kwdefaults__ is not None
    named.__kwdefaults__["scale"] = 5.0
    assert [float(f(x)[0]) for _ in range(3)] == [5.0] * 3
    named.__kwdefaults__ = {"scale": 7.0}
    assert [float(f(x)[0]) for _ in range(3)] == [7.0] * 3


@pytest.mark.usefixtures("way")
def test_attributes_items_and_methods_are_constants_of_the_trace() -> None:
    several, x = [plain], tnp.ones(2)
    f = tracer.jit(lambda x: several[0](x) * written.factor * model.method(1.0))
    assert [float(f(x)[0]) for _ in range(3)] == [8.0] * 3
    written.factor = 3.0
    several[0] = thrice
    Model.method.__defaults__ = (5.0,)  # type: ignore[attr-defined]
    assert float(f(x)[0]) == 8.0
    f.clear_cache()
    assert float(f(x)[0]) == 6.0 * 3.0 * 5.0


@pytest.mark.usefixtures("way")
def test_what_changed_is_told() -> None:
    f, x = tracer.jit(lambda x: plain(x) + named(x)), tnp.ones(2)

    def reason() -> str:
        f(x)
        return str(f.explain()).splitlines()[-1].split(": ", 1)[1]

    reason()
    plain.__defaults__ = (5.0,)
    assert reason() == "default of 'scale' in plain: 2.0 -> 5.0"
    named.__kwdefaults__["scale"] = 6.0  # type: ignore[index]
    assert reason() == "default of 'scale' in named: 2.0 -> 6.0"
    named.__kwdefaults__ = {"scale": tnp.ones(2)}
    assert reason() == "named has other defaults"
    plain.__code__ = thrice.__code__
    assert reason() == "plain has other code"
    plain.__defaults__ = (tnp.ones(2),)
    assert reason() == "plain has other defaults"


@pytest.mark.usefixtures("way")
def test_equal_defaults_compile_nothing() -> None:
    f, x = tracer.jit(lambda x: 1.0 * plain(x)), tnp.ones(2)
    f(x)
    for scale in (float("2.0"), 4.0 / 2.0):
        plain.__defaults__ = (scale,)
        f(x)
    assert f._calls.history.compilations == 1


def test_looking_for_functions_runs_no_code_of_the_user() -> None:
    class Loud:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        @property
        def loud(self) -> Any:
            raise AssertionError

    loud = Loud()
    f = tracer.jit(lambda x: x if x.ndim else loud.loud + loud.other)
    assert f(tnp.ones(2)).shape == (2,)
