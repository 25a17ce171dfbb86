"""A jitted function sees what becomes of functions that it runs: their code and defaults may be assigned to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer.runtime.named_paths import read


def plain(x: Any, scale: Any = 2.0) -> Any:
    return x * scale


def named(x: Any, *, scale: Any = 2.0) -> Any:
    return x * scale


def thrice(x: Any, scale: Any = 2.0) -> Any:
    return 3.0 * x * scale


class Model:
    """Methods of every kind."""

    def __call__(self, x: Any) -> Any:
        return self.method(x)

    def method(self, x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    @staticmethod
    def static(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    @classmethod
    def of_class(cls, x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    @property
    def scale(self) -> float:
        return 2.0


class Derived(Model):
    """Ways to a method of a class before it."""

    def method(self, x: Any, scale: Any = 2.0) -> Any:
        return super().method(x)

    def within(self, x: Any) -> Any:
        return tracer.vmap(lambda y: 1.0 * self.of_class(y))(x)

    def multiplied(self, x: Any) -> Any:
        return x * self.of_class(1.0)

    @partial(tracer.jit, static_argnums=0)
    def jitted(self, x: Any) -> Any:
        return self.of_class(x)


def imports(x: Any) -> Any:
    import written as alias
    from written import plain as function

    return tracer.vmap(lambda y: y * alias.factor)(function(x))


def applied(x: Any, function: Any = plain) -> Any:
    return 1.0 * function(x)


def given(function: Any, x: Any, *, of: Any) -> Any:
    return 1.0 * function(x) * of.of_class(1.0)


class Special:
    """What is called without a name."""

    def __getitem__(self, key: str) -> Any:
        return plain(1.0)

    def __rmul__(self, x: Any) -> Any:
        return plain(x)

    def __iter__(self) -> Iterator[Any]:
        yield plain(1.0)

    def __getattr__(self, name: str) -> Any:
        return plain(1.0)

    def __enter__(self) -> Any:
        return plain(1.0)

    def __exit__(self, *error: object) -> None:
        pass


class Inherits(Special):
    """The same."""


def composed() -> Any:
    def run(*functions: Any) -> Any:
        return tracer.jit(lambda x: [function(x) for function in functions][-1])

    return run(thrice, plain)


def inside(x: Any) -> Any:
    with special as scale:
        return x * scale


class Unit:
    """Leaves alone."""

    def of_class(self, x: Any) -> Any:
        return x


def in_a_cell() -> Any:
    of = Model()
    return tracer.jit(lambda x: 1.0 * tracer.vmap(lambda y: 1.0 * of.of_class(y))(x))


@dataclass(frozen=True)
class Step:
    """A static argument with a method."""

    def method(self, x: Any, scale: Any = 2.0) -> Any:
        return x * scale


model, derived, unit, step, jitted = Model(), Derived(), Unit(), Step(), tracer.jit(plain)
special, several, held = Inherits(), [plain], ({"plain": plain},)
written = ModuleType("written")
written.__dict__.update(__file__="/home/user/written.py", __name__="written", plain=plain, factor=2.0)

CALLERS: dict[str, tuple[Callable[[], Any], FunctionType]] = {
    "itself": (lambda: tracer.jit(plain), plain),
    "a global": (lambda: tracer.jit(lambda x: 1.0 * plain(x)), plain),
    "a closure variable": (lambda f=plain: tracer.jit(lambda x: 1.0 * f(x)), plain),  # type: ignore[misc]
    "a function behind another": (lambda: tracer.jit(tracer.vmap(lambda x: 1.0 * plain(x))), plain),
    "a jitted function": (lambda: tracer.jit(lambda x: 1.0 * jitted(x)), plain),
    "a bound method": (lambda: tracer.jit(model.method), Model.method),  # type: ignore[dict-item]
    "a method of a global": (lambda: tracer.jit(lambda x: 1.0 * model.method(x)), Model.method),  # type: ignore[dict-item]
    "a method of self": (lambda: tracer.jit(model.__call__), Model.method),  # type: ignore[dict-item]
    "a callable object": (lambda: tracer.jit(model), Model.method),  # type: ignore[dict-item]
    "a static method": (lambda: tracer.jit(lambda x: 1.0 * Model.static(x)), Model.static),  # type: ignore[dict-item]
    "a class method": (lambda: tracer.jit(lambda x: 1.0 * Model.of_class(x)), Model.of_class.__func__),  # type: ignore[attr-defined]
    "a function of a module": (lambda: tracer.jit(lambda x: 1.0 * written.plain(x)), plain),
    "a list": (lambda: tracer.jit(lambda x: 1.0 * several[0](x)), plain),
    "a dict in a tuple": (lambda: tracer.jit(lambda x: 1.0 * held[0]["plain"](x)), plain),
    "functions of a closure": (composed, plain),
    "an index": (lambda: tracer.jit(lambda x: x * special["scale"]), plain),
    "an operator": (lambda: tracer.jit(lambda x: 1.0 * special * x), plain),
    "a loop": (lambda: tracer.jit(lambda x: x * sum(special)), plain),
    "an attribute that is not there": (lambda: tracer.jit(lambda x: x * special.scale), plain),
    "a with statement": (lambda: tracer.jit(inside), plain),
    "a method of super()": (lambda: tracer.jit(derived.method), Model.method),  # type: ignore[dict-item]
    "a method of self in an inner function": (lambda: tracer.jit(derived.within), Model.of_class.__func__),  # type: ignore[attr-defined]
    "a method of self beside an argument": (lambda: tracer.jit(derived.multiplied), Model.of_class.__func__),  # type: ignore[attr-defined]
    "a jitted method": (lambda: tracer.jit(derived.jitted), Model.of_class.__func__),  # type: ignore[attr-defined]
    "an object of a cell in an inner function": (in_a_cell, Model.of_class.__func__),  # type: ignore[attr-defined]
    "a default": (lambda: tracer.jit(applied), plain),
    "an argument of partial": (lambda: tracer.jit(partial(given, plain, of=unit)), plain),
    "a method of an argument of partial": (
        lambda: tracer.jit(partial(given, lambda x: x, of=model)),
        Model.of_class.__func__,  # type: ignore[attr-defined]
    ),
    "a method of a static argument": (
        lambda: partial(tracer.jit(lambda s, x: s.method(x), static_argnums=0), step),
        Step.method,  # type: ignore[dict-item]
    ),
}


@pytest.fixture(autouse=True)
def _as_they_were() -> Iterator[None]:
    functions = [plain, named, Model.method, Model.static, Model.of_class.__func__, Step.method]  # type: ignore[attr-defined]
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
@pytest.mark.parametrize("caller", ["itself", "a global", "a function behind another", "a function of a module"])
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
def test_names_of_modules_are_seen() -> None:
    f, x = tracer.jit(lambda x: written.plain(x) * written.factor), tnp.ones(2)
    assert [float(f(x)[0]) for _ in range(3)] == [4.0] * 3
    written.factor = 3.0
    assert [float(f(x)[0]) for _ in range(3)] == [6.0] * 3
    written.plain = thrice
    assert [float(f(x)[0]) for _ in range(3)] == [18.0] * 3
    told = [line.split(": ", 1)[1] for line in f.explain().splitlines()[-2:]]
    assert told == ["written.factor: 2.0 -> 3.0", "written.plain is another function"]


@pytest.mark.usefixtures("way")
def test_names_of_modules_that_a_function_imports_itself_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "written", written)
    f, x = tracer.jit(imports), tnp.ones(2)
    assert [float(f(x)[0]) for _ in range(3)] == [4.0] * 3
    written.factor = 3.0
    assert [float(f(x)[0]) for _ in range(3)] == [6.0] * 3
    plain.__defaults__ = (5.0,)
    assert [float(f(x)[0]) for _ in range(3)] == [15.0] * 3
    written.plain = thrice
    assert [float(f(x)[0]) for _ in range(3)] == [18.0] * 3
    told = [line.split(": ", 1)[1] for line in f.explain().splitlines()[-3:]]
    assert told == ["written.factor: 2.0 -> 3.0", "default of 'scale' in plain: 2.0 -> 5.0",
                    "written.plain is another function"]  # fmt: skip


SOURCES = {
    "import a.b": [("module", "a", "c")],
    "import a.b as b": [("module", "a", "b", "c")],
    "from a import b": [("module", "a", "b", "c")],
    "from .. import b": [("module", "..", "b", "c")],
    "from .a import b": [("module", ".a", "b", "c")],
}


@pytest.mark.parametrize("statement", SOURCES)
def test_paths_of_imported_names(statement: str) -> None:
    name = "a" if statement == "import a.b" else "b"
    space: dict[str, Any] = {}
    exec(f"def f(x):\n {statement}\n return lambda: x * {name}.c", space)
    exec(f"def g(x):\n {statement}\n return x * {name}.c", space)
    assert [path for path in read(space["f"].__code__).paths if path[-1] == "c"] == SOURCES[statement]
    assert [path for path in read(space["g"].__code__).paths if path[-1] == "c"] == SOURCES[statement]


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
    assert f._history.compilations == 1


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
