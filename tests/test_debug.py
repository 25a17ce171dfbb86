"""debug.print and debug.callback: what is shown, when, in which order, under which transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracer import checkpoint, debug, errors, experimental, grad, jit, jvp, lax, vmap
from tracer import numpy as tnp


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    def lines() -> list[str]:
        return capsys.readouterr().out.splitlines()

    return lines


def same(f: Any) -> Any:
    return f


@pytest.mark.parametrize("way", [same, jit])
def test_values_are_shown_as_str_format_does(way: Any, shown: Any) -> None:
    def f(x: Any) -> Any:
        debug.print("{} {:.2f} {k:>6} {{}} {v[a]}", x, x, k=2 * x, v={"a": x > 0})
        debug.print("{1} {0} {0:{1}}", x.astype(int), 3)
        return x

    way(f)(tnp.asarray(1.5))
    assert shown() == ["1.5 1.50    3.0 {} True", "3 1   1"]


@pytest.mark.parametrize("way", [same, jit])
def test_what_is_no_array_is_shown_as_it_is(way: Any, shown: Any) -> None:
    way(lambda x: debug.print("{}: {} {n}", "loss", x, n=None))(tnp.asarray(2))
    seen: list[Any] = []
    way(lambda x: debug.callback(lambda *args, **named: seen.append((args, named)), "name", x, tag="t"))(tnp.asarray(2))
    assert shown() == ["loss: 2 None"]
    assert [(args[0], int(args[1]), named) for args, named in seen] == [("name", 2, {"tag": "t"})]


@pytest.mark.parametrize("way", [same, jit])
def test_every_lane_is_shown_in_order(way: Any, shown: Any) -> None:
    """Those of an inner map count slowest, as in JAX."""
    way(vmap(lambda x: debug.print("{}", x)))(tnp.arange(3))
    way(vmap(vmap(lambda x: debug.print("{}", x, ordered=True))))(tnp.arange(4).reshape(2, 2))
    assert shown() == ["0", "1", "2", "0", "2", "1", "3"]


def printed_square(x: Any) -> Any:
    debug.print("x = {}", x)
    return x * x


@pytest.mark.parametrize("way", [same, jit])
@pytest.mark.parametrize(
    "transform",
    [
        grad, lambda f: grad(grad(f)), lambda f: lambda x: jvp(f, (x,), (1.0,)), checkpoint,
        lambda f: grad(checkpoint(f)),
    ],
    ids=["grad", "grad of grad", "jvp", "checkpoint", "grad of checkpoint"],
)  # fmt: skip
def test_derivatives_show_values_once(way: Any, transform: Any, shown: Any) -> None:
    way(transform(printed_square))(3.0)
    assert shown() == ["x = 3.0"]


@pytest.mark.parametrize("way", [same, jit])
def test_loops_show_every_step_in_order(way: Any, shown: Any) -> None:
    def step(c: Any, x: Any) -> Any:
        debug.print("{} {}", c, x, ordered=True)
        return c + x, None

    way(grad(lambda c: lax.scan(step, c, tnp.arange(3.0))[0]))(1.0)
    assert shown() == ["1.0 0.0", "1.0 1.0", "2.0 2.0"]
    way(lambda n: lax.while_loop(lambda i: i < n, lambda i: (debug.print("at {}", i), i + 1)[1], 0))(3)
    assert shown() == ["at 0", "at 1", "at 2"]
    way(lambda n: lax.fori_loop(0, n, lambda i, c: (debug.print("{}", i), c)[1], 0))(2)
    assert shown() == ["0", "1"]


@pytest.mark.parametrize("way", [same, jit])
def test_lanes_show_the_branches_and_steps_they_take(way: Any, shown: Any) -> None:
    def show(size: str) -> Any:
        return lambda v: (debug.print(size + " {}", v), v)[1]

    def branch(x: Any) -> Any:
        return lax.cond(x > 1, show("large"), show("small"), x)

    way(branch)(0)
    assert shown() == ["small 0"]
    way(vmap(branch))(tnp.arange(4))
    assert sorted(shown()) == ["large 2", "large 3", "small 0", "small 1"]
    way(vmap(lambda n: lax.fori_loop(0, n, lambda i, c: (debug.print("{} of {}", i, n), c)[1], 0)))(tnp.asarray([1, 2]))
    assert sorted(shown()) == ["0 of 1", "0 of 2", "1 of 2"]


MISSING = "the format names values that were not given\n  got "
LEFT_OUT = (
    "the format leaves values out\n  got 'loss' for 1 values\n"
    "  help: write {} for each of them; an f-string would have formatted them before the code runs"
)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: debug.print("{} {}", x), MISSING + "'{} {}' for 1 values and []"),
        (lambda x: debug.print("{b}", x), MISSING + "'{b}' for 1 values and []"),
        (lambda x: debug.print("loss", x), LEFT_OUT),
        (lambda x: debug.print(x, 1), 'the format comes first\n  got Array\n  help: debug.print("{}", x)'),
    ],
)
def test_formats_that_do_not_fit(call: Any, text: str) -> None:
    with pytest.raises(errors.ArgumentError) as caught:
        jit(call)(1.0)
    first, _, rest = str(caught.value).partition(": ")
    assert first.startswith("debug.print at ")
    assert rest == text


@pytest.mark.parametrize("way", [same, jit])
def test_lanes_that_do_not_take_a_branch_call_nobody(way: Any) -> None:
    called: list[int] = []

    def doubled(v: Any) -> Any:
        called.append(int(v))
        return 2 * v

    def f(x: Any) -> Any:
        return lax.cond(x % 2 == 0, lambda: experimental.io_callback(doubled, x, x), lambda: -x)

    assert way(vmap(f))(tnp.arange(4)).tolist() == [0, -1, 4, -3]
    assert called == [0, 2]
    called.clear()
    assert way(vmap(vmap(f)))(tnp.arange(6).reshape(2, 3)).tolist() == [[0, -1, 4], [-3, 8, -5]]
    assert sorted(called) == [0, 2, 4]


def test_io_callback_is_where_jax_has_it() -> None:
    result = jit(lambda x: experimental.io_callback(lambda v: v * 2, tnp.asarray(0.0), x, ordered=True))(4.0)
    assert float(result) == 8.0
