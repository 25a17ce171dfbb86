"""Mistakes of nesting: calls nested too deeply for Python's stack."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, grad, jit, lax, vmap


def nest(kind: str, depth: int, x: Any) -> Any:
    """Apply so many levels of a construct, each within the one before."""

    def inner(v: Any) -> Any:
        return nest(kind, depth - 1, v)

    if depth == 0:
        return tnp.sin(x)
    match kind:
        case "cond":
            return lax.cond(x > 0, inner, lambda v: v, x)
        case "scan":
            return lax.scan(lambda c, _: (inner(c), None), x, None, length=1)[0]
        case "while_loop":
            return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, inner(c[1])), (0, x))[1]
        case "fori_loop":
            return lax.fori_loop(0, 1, lambda _, c: inner(c), x)
        case "jit":
            return jit(inner)(x)
        case "checkpoint":
            return tracer.checkpoint(inner)(x)
        case "vmap":
            return vmap(inner)(x[None])[0]
        case _:
            return grad(inner)(x)


KINDS = ("cond", "scan", "while_loop", "fori_loop", "jit", "checkpoint", "vmap", "grad")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_nests_too_deep_for_python_are_told_with_the_line(kind: str, way: Any) -> None:
    with pytest.raises(errors.NestingError) as caught:
        way(lambda x: nest(kind, 300, x))(tnp.asarray(1.0))
    first, second, third = str(caught.value).split("\n")
    assert first.startswith("calls are nested too deeply at test_nesting.py:")
    assert second.endswith(f"frames are at this line, and Python stops at {sys.getrecursionlimit()}")
    assert third.startswith("  help: write a loop, lax.scan or lax.while_loop, in place of nested calls: ")
    assert isinstance(caught.value, RecursionError)
    assert tracer.jit(lambda x: nest(kind, 2, x))(1.0).shape == ()  # nothing is left open


def test_a_function_that_calls_itself_in_a_branch_is_told() -> None:
    def countdown(n: Any) -> Any:
        return lax.cond(n > 0, lambda: countdown(n - 1), lambda: n)

    with pytest.raises(errors.NestingError, match=r"both branches of a lax\.cond are traced"):
        jit(countdown)(5)


def test_a_recursion_of_the_users_own_stays_python_s_error() -> None:
    def endless(x: Any) -> Any:
        return endless(tnp.sin(x))

    for call in (lambda: endless(tnp.ones(2)), lambda: jit(endless)(1.0)):
        with pytest.raises(RecursionError) as caught:
            call()
        assert type(caught.value) is RecursionError


def test_a_higher_limit_of_python_s_compiles_deeper_nests() -> None:
    """In a process of its own: nothing recurses over depth but what Python's limit allows."""
    text = """
        import sys
        sys.setrecursionlimit(20_000)
        import tracer
        from tests.mistakes.test_nesting import nest
        for kind in ("cond", "scan", "fori_loop", "jit", "checkpoint"):
            f = tracer.jit(lambda x: nest(kind, 120, x))
            assert abs(float(f(1.0)) - 0.8414709848) < 1e-9
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=True, timeout=120)


@pytest.mark.parametrize("way", [jit, grad, vmap])
def test_trees_too_deep_to_flatten_are_told_as_trees(way: Any) -> None:
    tree: list[Any] = [1.0]
    for _ in range(3000):
        tree = [tree]
    with pytest.raises(errors.NestingError, match=r"^a tree is nested too deeply at test_nesting.py:\d+\n  help"):
        way(lambda tree: 1.0)(tree)
