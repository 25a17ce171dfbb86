"""Names that guards cover: a jitted function computes anew when one is bound to another object."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

import tracer.numpy as tnp
from tracer import jit
from tracer.runtime.guards.guard_discovery import guards_of


def _function(text: str, **names: Any) -> tuple[Any, dict[str, Any]]:
    """Return the user's function `f` of a text, and its globals."""
    namespace = {**names}
    exec(compile(text, "user.py", "exec"), namespace)
    return namespace["f"], namespace


@pytest.mark.parametrize(
    ("text", "before", "after", "results"),
    [
        ("def f(x): return x * xp.pi", {"xp": math}, {"xp": SimpleNamespace(pi=10.0)}, (math.pi, 10.0)),
        ("def f(x): return sin(x)", {"sin": tnp.sin}, {"sin": tnp.cos}, (math.sin(1.0), math.cos(1.0))),
        ("def f(x): return x * max(2, 3)", {}, {"max": min}, (3.0, 2.0)),
        ("def g(x): return x * xp.e\ndef f(x): return g(x)", {"xp": math}, {"xp": SimpleNamespace(e=7.0)}, (math.e, 7)),
        ("def f(x): return late(x) if 'late' in globals() else x", {}, {"late": lambda x: 5 * x}, (1.0, 5.0)),
    ],
)
def test_every_name_in_the_code_is_guarded(
    text: str, before: dict[str, Any], after: dict[str, Any], results: tuple[float, float]
) -> None:
    function, namespace = _function(text, **before)
    compiled = jit(function)
    assert float(compiled(1.0)) == pytest.approx(results[0])
    namespace.update(after)
    assert float(compiled(1.0)) == pytest.approx(results[1])


def test_functions_of_libraries_are_guarded_by_name_alone() -> None:
    function, namespace = _function("def f(x): return sin(x) + len((1, 2))", sin=tnp.sin)
    found = {(guard.holder is namespace, guard.name) for guard in guards_of(function)}
    assert {(True, "sin"), (True, "len")} <= found
    assert all(holder is namespace or holder is function for holder in (guard.holder for guard in guards_of(function)))


FACTOR = 1.0


class Scaled:
    """Callable object whose call reads a global."""

    def __call__(self, x: Any) -> Any:
        return x * FACTOR


SCALED = Scaled()


def by_name(x: Any) -> Any:
    return SCALED(x) + 0.0


@pytest.mark.parametrize("function", [SCALED, by_name], ids=["the object", "a global that is one"])
def test_the_call_of_an_object_is_followed(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(function)
    assert float(f(2.0)) == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 10.0)
    assert float(f(2.0)) == 20.0


def test_functions_are_followed_to_any_depth() -> None:
    names: dict[str, Any] = {"K": 1.0}
    source = "".join(f"def f{n}(x): return f{n + 1}(x)\n" for n in range(400)) + "def f400(x): return x * K\n"
    exec(compile(source, "chain.py", "exec"), names)
    f = jit(names["f0"])
    assert float(f(2.0)) == 2.0
    names["K"] = 3.0
    assert float(f(2.0)) == 6.0
