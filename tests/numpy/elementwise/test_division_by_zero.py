"""Integer division by zero: tabled values, and errors with the user's line under `config.debug_division`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import config, jit, lax, vmap
from tracer.errors import DivisionError

DIVISIONS = {
    "floor_divide": lambda x, y: x // y, "remainder": lambda x, y: x % y, "fmod": tnp.fmod, "div": lax.div,
    "rem": lax.rem,
}  # fmt: skip
X, ZEROS = np.array([5, 0, -7]), np.array([1, 0, 2])

each = pytest.mark.parametrize("name", DIVISIONS)
ways = pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
@ways
def test_division_by_zero_has_the_tabled_values(way: Any, dtype: str) -> None:
    x, zero = np.array([5, 0, 127], dtype), np.zeros(3, dtype)
    largest = np.iinfo(dtype).max
    expected = [largest] * 3 if dtype[0] == "u" else [-2, -1, -2]
    assert np.asarray(way(DIVISIONS["floor_divide"])(tnp.asarray(x), zero)).tolist() == expected
    for name in ("remainder", "fmod"):
        assert np.asarray(way(DIVISIONS[name])(tnp.asarray(x), zero)).tolist() == [0, 0, 0]


@each
@ways
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int4"])
def test_division_by_zero_raises_with_the_line(way: Any, name: str, dtype: str) -> None:
    x, zeros = tnp.asarray(np.abs(X)).astype(dtype), tnp.asarray(ZEROS).astype(dtype)
    f = way(DIVISIONS[name])
    before = np.asarray(f(x, zeros)).tolist()
    with config.using(debug_division=True):
        assert np.asarray(f(x, tnp.ones_like(zeros))).tolist() == (
            [5, 0, 7] if name in ("floor_divide", "div") else [0, 0, 0]
        )
        with pytest.raises(DivisionError) as caught:
            f(x, zeros)
    assert str(caught.value).startswith(f"{name} at test_division_by_zero.py:")
    assert str(caught.value).endswith(
        ": an integer is divided by zero\n  help: divide by tnp.where(y == 0, 1, y), and choose the result there"
    )
    assert isinstance(caught.value, ZeroDivisionError)
    assert np.asarray(f(x, zeros)).tolist() == before


@ways
def test_a_second_call_at_another_line_names_its_own_line(way: Any) -> None:
    def divided(x: Any) -> Any:
        first = 10 // (x + 1)
        return first % x

    f = way(divided)
    start = divided.__code__.co_firstlineno
    with config.using(debug_division=True):
        assert f(tnp.asarray(3)) == 2
        for x, line in ((0, start + 2), (-1, start + 1), (0, start + 2)):
            with pytest.raises(DivisionError, match=rf"test_division_by_zero.py:{line}: an integer is divided by zero"):
                f(tnp.asarray(x))


def test_the_setting_holds_for_good_and_compiles_anew() -> None:
    f = jit(lambda x, y: x // y)
    assert f(1, 0) == -2
    config.debug_division = True
    try:
        for call in (f, lambda x, y: tnp.asarray(x) // y, lambda x, y: tnp.asarray([x]) // y):
            with pytest.raises(DivisionError):
                call(1, 0)
    finally:
        config.debug_division = False
    assert f(1, 0) == (tnp.asarray(1) // 0) == -2


@config.using(debug_division=True)
def test_divisions_that_are_not_run_do_not_raise() -> None:
    def safe(x: Any, y: Any) -> Any:
        return lax.cond(y == 0, lambda: x, lambda: x // y)

    def halved(x: Any) -> Any:
        return lax.while_loop(lambda c: c[1] > 0, lambda c: (c[0] // c[1], c[1] - 1), (x, 3))[0]

    assert jit(safe)(7, 0) == safe(tnp.asarray(7), tnp.asarray(0)) == 7
    assert vmap(safe)(X, ZEROS).tolist() == jit(vmap(safe))(X, ZEROS).tolist() == [5, 0, -4]
    assert jit(vmap(halved))(X).tolist() == [0, 0, -2]
    assert tnp.gcd(X, ZEROS).tolist() == jit(tnp.gcd)(X, ZEROS).tolist() == [1, 0, 1]
    with pytest.raises(DivisionError):
        jit(vmap(lambda x, y: lax.cond(y == 0, lambda: x // y, lambda: x)))(X, ZEROS)


@config.using(debug_division=True)
def test_derivatives_run_through_checked_divisors() -> None:
    def f(x: Any, n: Any) -> Any:
        return tnp.sum(x * (7 // n))

    n = np.array([1, 2, 3])
    for gradient in (tracer.grad(f), jit(tracer.grad(f))):
        assert np.asarray(gradient(np.ones(3), tnp.asarray(n))).tolist() == [7.0, 3.0, 2.0]
        with pytest.raises(DivisionError):
            gradient(np.ones(3), tnp.zeros(3, int))
    assert np.asarray(vmap(tracer.grad(f), (0, None))(np.ones((2, 3)), n)).tolist() == [[7.0, 3.0, 2.0]] * 2


def test_python_numbers_are_divisors_too() -> None:
    assert lax.rem(tnp.ones(2), 3.0).tolist() == [1.0, 1.0]
    with config.using(debug_division=True):
        assert lax.rem(tnp.ones(2), 3.0).tolist() == [1.0, 1.0]
        assert lax.div(tnp.asarray([4, 5]), 2).tolist() == [2, 2]
        with pytest.raises(DivisionError, match=r"^rem at .*: an integer is divided by zero"):
            lax.rem(tnp.asarray([4, 5]), 0)
