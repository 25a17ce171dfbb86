"""Functions of arrays that are known, by a short way: the same results as by the way of all others, in fewer calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.counted_calls import python_calls
from tests.grids import covering, each
from tracer.errors import ArgumentError, ShapeError
from tracer.numpy.reduce import histograms
from tracer.settings import gate

RNG = np.random.default_rng(3)
SQUARE, TALL, VECTOR = RNG.normal(size=(4, 4)), RNG.normal(size=(6, 4)), RNG.normal(size=9)


def bits(result: Any) -> list[Any]:
    return [(type(x).__name__, x.type, np.asarray(x).tobytes()) for x in tracer.tree.leaves(result)]


def test_transforms_over_no_axes_are_handles_of_their_own() -> None:
    x = tnp.asarray(1 + 2j)
    y = tnp.fft.fftn(x)
    y[()] = 5.0
    assert complex(x) == 1 + 2j
    assert not np.may_share_memory(np.asarray(x), np.asarray(tnp.fft.fftn(x)))


@pytest.mark.parametrize(
    ("dtype", "mode", "sizes"),
    covering(
        ["float64", "float32", "int64", "int8", "bool", "complex128"],
        ["full", "same", "valid"],
        [(1, 1), (7, 3), (3, 7), (130, 40)],
        least=18,
    ),
)
def test_every_convolution_has_the_bits_of_the_first(dtype: str, mode: str, sizes: tuple[int, int]) -> None:
    a, v = (tnp.asarray((9 * RNG.normal(size=size)).astype(dtype)) for size in sizes)
    for x, y in ((a, v), (a, tnp.full(v.shape, np.inf)), (0 * a, -v if dtype != "bool" else v)):
        results = [bits(tnp.convolve(x, y, mode)) for _ in range(2)]
        assert results == results[:1] * 2
    expected = np.convolve(np.asarray(a), np.asarray(v), mode)
    np.testing.assert_allclose(tnp.convolve(a, v, mode), expected, rtol=1e-4, atol=1e-3)


def test_convolutions_say_what_is_wrong() -> None:
    x = tnp.asarray([1.0, 2.0, 3.0])
    tnp.convolve(x, x)
    with pytest.raises(ArgumentError, match=r'^convolve at test_known_values\.py:\d+: mode is "full"'):
        tnp.convolve(x, x, "other")
    with pytest.raises(ShapeError, match=r"^convolve at test_known_values\.py:\d+ takes two vectors with elements"):
        tnp.convolve(x, x[:0])


def test_distinct_elements_are_those_that_come_with_their_counts() -> None:
    for value in ([3, 1, 3, 0], [[1.5, np.nan], [np.nan, -0.0]], [True, True], [1j, 1j, 2], []):
        x = tnp.asarray(np.array(value))
        for equal_nan in (True, False):
            found = tnp.unique(x, equal_nan=equal_nan)
            expected = tnp.unique(x, return_counts=True, equal_nan=equal_nan)[0]
            assert bits(found) == bits(expected)
    assert tnp.unique(tnp.full(3, 2.0)).weak_type is tnp.unique(tnp.full(3, 2.0), return_counts=True)[0].weak_type
    with pytest.raises(tracer.errors.TracerError, match=r"^unique at "):
        tracer.jit(tnp.unique)(tnp.ones(3))


ANY: dict[str, np.ndarray[Any, Any]] = {
    "integers": np.array([3, 1, 0, 3]), "bools": np.array([True, False, True, True]), "negative": np.array([1, -1]),
    "u8": np.array([200, 0], "u1"), "u64": np.array([2**63, 1], "u8"), "floats": np.array([0.0, -0.0, 1.5, np.nan]),
    "matrix": np.array([[0, 3], [2, 0]]).T, "number": np.array(3), "nothing": np.zeros(0, int),
    "complex": np.array([0, 1j]), "ascending": np.arange(4.0),
    "with NaN": np.array([1.0, np.nan, np.nan]), "descending": np.array([3.0, 1.0, 1.0]),
    "NaN first": np.array([np.nan, 2.0, 1.0]),
}  # fmt: skip
COUNTED: dict[str, Callable[[Any], Any]] = {
    "flatnonzero": tnp.flatnonzero,
    "nonzero": tnp.nonzero,
    "bincount": tnp.bincount,
    "bincount of at least 6": lambda x: tnp.bincount(x, minlength=6),
    "bincount of at least True": lambda x: tnp.bincount(x, minlength=True),
    "bincount of less than none": lambda x: tnp.bincount(x, minlength=-1),
    "compress": lambda x: x.compress(x != 1),
    "compress by itself": lambda x: x.compress(x),
    "digitize": lambda x: tnp.digitize(tnp.asarray([0.5, 3.0, np.nan]), x),
}


@pytest.mark.parametrize("value", ANY)
@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_places_are_those_of_all_ways(name: str, value: str) -> None:
    def outcome(x: Any) -> Any:
        try:
            return bits(COUNTED[name](x))
        except (tracer.errors.TracerError, TypeError) as error:
            return type(error), str(error)

    for x in (tnp.asarray(ANY[value]), tnp.full(3, 2)):
        quick = outcome(x)
        gate.close()
        try:
            assert quick == outcome(x)
        finally:
            gate.open()


def test_histograms_between_the_extremes_are_numpys() -> None:
    for value in (VECTOR, TALL, RNG.integers(-5, 5, 40), VECTOR.astype("f4"), np.zeros(0), np.ones(3)):
        counts, edges = tnp.histogram(tnp.asarray(value), bins=4)
        expected = np.histogram(value, bins=4)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected[0])
        np.testing.assert_allclose(edges, expected[1], rtol=1e-6, atol=1e-7)
    with pytest.raises(ArgumentError, match=r"^histogram at test_known_values\.py:\d+: the bins have no finite range"):
        tnp.histogram(tnp.asarray([1.0, np.nan]))
    assert histograms._ends(tnp.asarray([2, 1]))[0].dtype == np.int64


def test_choices_are_handles_of_their_own() -> None:
    x = tnp.asarray([1.0, 2.0])
    for condition in (True, tnp.asarray(True), tnp.asarray([True, True])):
        for _ in range(2):
            y = tnp.where(condition, x, x)
            y[0] = 7.0
            assert x.tolist() == [1.0, 2.0]
            assert not np.may_share_memory(np.asarray(x), np.asarray(tnp.where(condition, x, 0.0)))


LONG, X, M, FLAGS = tnp.arange(16.0), tnp.arange(4.0), tnp.asarray(SQUARE), tnp.asarray([True, False])
MOST: dict[str, tuple[Callable[[], Any], int]] = {
    "sum of two": (lambda: X + X, 7),
    "a number beside an array": (lambda: X + 1.0, 10),
    "sine": (lambda: tnp.sin(X), 6),
    "sum": (X.sum, 7),
    "reshape": (lambda: X.reshape(2, 2), 9),
    "inner product": (lambda: X @ X, 11),
    "seventeen operations": (lambda: X // X, 59),
    "gradient": (lambda: tracer.grad(lambda v: tnp.sum(tnp.sin(v) ** 2))(X), 163),
    "where of one argument": (lambda: tnp.where(FLAGS), 10),
    "convolve": (lambda: tnp.convolve(LONG, X), 90),
    "unique": (lambda: tnp.unique(X), 16),
    "slogdet": (lambda: tnp.linalg.slogdet(M), 14),
    "fft": (lambda: tnp.fft.fft(X), 27),
    "svd": (lambda: tnp.linalg.svd(M), 61),
    "round": (lambda: round(X), 11),
    "NumPy's number times ours": (lambda: np.float64(2.5) * X, 20),
    "float32": (lambda: tnp.float32(1.5), 8),
    "int8": (lambda: tnp.int8(3), 8),
}


@each("name", MOST)
def test_prepared_calls_take_few_calls(name: str) -> None:
    call, most = MOST[name]
    call()
    assert python_calls(call) <= most
