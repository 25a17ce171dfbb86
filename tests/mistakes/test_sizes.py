"""Mistakes of size: results that no memory can hold, and results that this machine's cannot."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, jit, lax, vmap

SIDE = 2**32
LONG = np.ones(2**20)  # its outer product takes 8 TiB

TOO_LARGE: dict[str, Any] = {
    "broadcast_to": lambda x: tnp.broadcast_to(x[0], (SIDE, SIDE)),
    "broadcast_to and sum": lambda x: tnp.broadcast_to(x[0], (SIDE, SIDE)).sum(),
    "zeros": lambda x: tnp.zeros((SIDE, SIDE)) + x[0],
    "an axis beyond 64 bits": lambda x: tnp.zeros((2**70,)) + x[0],
    "arange": lambda x: tnp.arange(2**62) + x[0],
    "arange beyond 64 bits": lambda x: tnp.arange(2**63, dtype="f4") + x[0],
    "blackman": lambda x: tnp.blackman(2**63) + x[0],
    "eye": lambda x: tnp.eye(2**31) + x[0],
    "reshape of nothing": lambda x: x[:0].reshape(2**40, 2**40, 0),
    "tile": lambda x: tnp.tile(x, 2**61),
    "repeat": lambda x: tnp.repeat(x, 2**61),
    "pad": lambda x: lax.pad(x, 0.0, [(2**61, 2**61, 0)]),
    "vmap": vmap(lambda v: tnp.broadcast_to(v, (2**60,))),
    "axes": lambda x: x.reshape((1,) * 70 + (3,)),
}


@pytest.mark.parametrize("name", TOO_LARGE)
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_results_that_no_memory_can_hold_are_refused_with_the_line(name: str, way: Any) -> None:
    with pytest.raises(errors.ShapeError, match=r"at test_sizes.py:\d+: the result is too large\n  got "):
        way(TOO_LARGE[name])(tnp.ones(3))


@pytest.mark.parametrize("last", [np.inf, -np.inf, np.nan])
def test_ranges_without_a_number_of_values_are_refused(last: float) -> None:
    with pytest.raises(errors.ArgumentError) as caught:
        tnp.arange(1, last)
    assert str(caught.value) == (
        f"arange at test_sizes.py:{caught.tb.tb_lineno}: the number of values is not finite\n  got 1 to {last} by 1"
    )


DOES_NOT_FIT: dict[str, Any] = {
    "a result": lambda x: tnp.outer(x, x),
    "zeros": lambda x: tnp.zeros((2**20, 2**20)) + x[0],
    "a temporary": lambda x: tnp.sort(tnp.outer(x, x).ravel())[0],
    "samples": lambda x: tracer.random.normal(tracer.random.key(0), (2**40,)) + x[0],
}


@pytest.mark.parametrize("name", DOES_NOT_FIT)
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_what_does_not_fit_in_memory_is_told_with_the_line(name: str, way: Any) -> None:
    f = way(DOES_NOT_FIT[name])
    for _ in range(2):
        with pytest.raises(errors.OutOfMemoryError) as caught:
            f(LONG)
        assert str(caught.value).startswith("memory does not suffice at test_sizes.py:")
        assert isinstance(caught.value, MemoryError)
        frames = traceback.extract_tb(caught.tb)
        assert frames[-1].filename == __file__


def test_the_user_s_own_memory_errors_stay() -> None:
    def f(x: Any) -> Any:
        raise MemoryError("mine")

    with pytest.raises(MemoryError, match=r"^mine$") as caught:
        jit(f)(1.0)
    assert type(caught.value) is MemoryError


def test_integers_beyond_64_bits_are_no_bounds() -> None:
    with pytest.raises(errors.DTypeError, match=r"^arange at .*: 73786976294838206464 does not fit in 64 bits"):
        tnp.arange(2**66)


class Capsule:
    """Producer that hands out one capsule again and again."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("make", [lambda: tnp.ones(3), lambda: np.ones(3)], ids=["ours", "numpy"])
def test_a_capsule_is_taken_once(make: Any) -> None:
    source = Capsule(make().__dlpack__())
    assert tnp.from_dlpack(source).tolist() == [1.0, 1.0, 1.0]
    for given in (source, Capsule(None), Capsule(5)):
        with pytest.raises(errors.ExportError, match=r"^from_dlpack at .*: Capsule.__dlpack__ gave no capsule, or one"):
            tnp.from_dlpack(given)
