"""Sizes and axes that are arrays: known ones are what they hold, traced ones say what to do; copy=False of asarray."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, ShapeError, TracerIntegerError

X = np.arange(6.0).reshape(2, 3)

OF_SIZES: dict[str, Any] = {
    "reshape": lambda p, x, n: p.reshape(x, n), "x.reshape": lambda p, x, n: x.reshape(n),
    "tile": lambda p, x, n: p.tile(x, n), "full": lambda p, x, n: p.full(n, 7.0), "zeros": lambda p, x, n: p.zeros(n),
    "resize": lambda p, x, n: p.resize(x, n), "indices": lambda p, x, n: p.indices(n),
    "broadcast_to": lambda p, x, n: p.broadcast_to(2.0, n),
}  # fmt: skip
OF_AXES: dict[str, Any] = {
    "sum": lambda p, x, a: p.sum(x, axis=a), "x.sum": lambda p, x, a: x.sum(a), "mean": lambda p, x, a: p.mean(x, a),
    "median": lambda p, x, a: p.median(x, a), "sort": lambda p, x, a: p.sort(x, axis=a),
    "cumsum": lambda p, x, a: p.cumsum(x, a), "argmax": lambda p, x, a: p.argmax(x, a),
    "flip": lambda p, x, a: p.flip(x, a),
    "concatenate": lambda p, x, a: p.concatenate([x, x], axis=a), "stack": lambda p, x, a: p.stack([x, x], a),
    "expand_dims": lambda p, x, a: p.expand_dims(x, a), "swapaxes": lambda p, x, a: p.swapaxes(x, a, 0),
    "moveaxis": lambda p, x, a: p.moveaxis(x, a, 0), "roll": lambda p, x, a: p.roll(x, 1, a),
    "take": lambda p, x, a: p.take(x, 0, a), "norm": lambda p, x, a: p.linalg.norm(x, axis=a),
}  # fmt: skip


@pytest.mark.parametrize("make", [tnp.asarray, np.asarray], ids=["ours", "NumPy's"])
@pytest.mark.parametrize("name", OF_SIZES)
def test_sizes_may_be_arrays(name: str, make: Any) -> None:
    call, x = OF_SIZES[name], tnp.asarray(X)
    vectors = () if name in ("indices", "reshape", "x.reshape") else (4,)
    for n in ([3, 2], [1, 6], [2, 3], [2, 3], [3, 2], *vectors):
        np.testing.assert_array_equal(call(tnp, x, make(n)), call(np, X, n))
    np.testing.assert_array_equal(tracer.jit(lambda x: call(tnp, x, make([3, 2])))(X), call(np, X, [3, 2]))


def test_one_size_may_follow_from_the_others_in_an_array() -> None:
    x = tnp.asarray(X)
    for given in (np.array([3, -1]), tnp.asarray([-1, 2]), (np.int64(3), np.int64(-1)), (tnp.asarray(-1), 2)):
        assert x.reshape(given).shape == (3, 2)
    assert tnp.ones(range(1, 3)).shape == (1, 2)
    with pytest.raises(
        ShapeError, match=r"^reshape at .*: only one size may be -1.*\n  got f64\[2,3\], 6 .* \(-1, -1\)"
    ):
        x.reshape(-1, -1)
    with pytest.raises(ShapeError, match=r"^reshape at .*: sizes must not be negative"):
        x.reshape(-2, 3)


@each("name", OF_SIZES)
def test_traced_sizes_are_refused(name: str) -> None:
    with pytest.raises(TracerIntegerError, match=r"^\w+ at .*: a shape must be known while tracing\n.*\n.*x\.shape"):
        tracer.jit(lambda n: OF_SIZES[name](tnp, tnp.asarray(X), n))(np.array([3, 2]))


@pytest.mark.parametrize("make", [tnp.asarray, np.asarray, np.int64], ids=["ours", "NumPy's", "a scalar"])
@pytest.mark.parametrize("name", OF_AXES)
def test_an_axis_may_be_an_array(name: str, make: Any) -> None:
    for axis in (0, 1, -1, -1, 0):
        np.testing.assert_allclose(OF_AXES[name](tnp, tnp.asarray(X), make(axis)), OF_AXES[name](np, X, axis))


@each("name", OF_AXES)
def test_a_traced_axis_is_refused(name: str) -> None:
    with pytest.raises(TracerIntegerError, match=r"^\w+ at .*: an axis must be known while tracing\n.*\n.*static"):
        tracer.jit(lambda a: OF_AXES[name](tnp, tnp.asarray(X), a))(1)


def test_several_axes_may_be_in_an_array() -> None:
    x = tnp.ones((2, 3, 4))
    for make in (tnp.asarray, np.asarray):
        assert x.transpose(make([2, 0, 1])).shape == tnp.transpose(x, make([2, 0, 1])).shape == (4, 2, 3)
        assert tnp.moveaxis(x, make([0]), make([2])).shape == (3, 4, 2)
        assert tnp.flip(x, make([0, 1])).shape == x.shape
        assert tracer.jit(lambda x, make=make: x.transpose(make([2, 0, 1])))(x).shape == (4, 2, 3)
        assert tracer.jit(lambda x, make=make: tnp.moveaxis(x, make([0]), make([2])))(x).shape == (3, 4, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tnp.arange(1j), ArgumentError, "arange at .*: complex numbers have no order to count in"),
        (
            lambda: tracer.jit(lambda n: tnp.pad(X, n))(2),
            TracerIntegerError,
            "pad at .*: pad_width must be known while",
        ),
        (
            lambda: tracer.jit(tnp.triu_indices)(2),
            TracerIntegerError,
            "triu_indices at .*: a shape must be known while",
        ),
    ],
)
def test_what_decides_the_shape_must_be_a_known_number(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        call()


@pytest.mark.parametrize("use", [bool, int, float, complex, lambda x: x.item(), lambda x: x and 1])
@pytest.mark.parametrize("size", [0, 2])
def test_many_elements_are_no_number_for_handlers_of_either_error(use: Any, size: int) -> None:
    for error in (ValueError, TypeError):  # NumPy raises the first of bool and item, the second of int and float
        with pytest.raises(error, match="one element is wanted"):
            use(tnp.ones(size))


# asarray(x, copy=False), by the array API


def test_without_a_copy_memory_is_shared() -> None:
    value = np.arange(3.0)
    for given in (value, memoryview(value)):
        assert np.shares_memory(tnp.asarray(given, copy=False)._value, value)
    assert tnp.asarray(array.array("d", [1.0, 2.0]), copy=False).tolist() == [1.0, 2.0]
    x = tnp.asarray(value)
    assert tnp.asarray(x, copy=False) is x is tnp.asarray(x, "float64", copy=False)
    assert tracer.jit(lambda x: tnp.asarray(x, copy=False) + 1)(value).tolist() == [1.0, 2.0, 3.0]


@each(
    ("given", "dtype"),
    [
        (X.T, None), (X[:, ::2], None), (X.astype(">f8"), None), (X, "float32"), (tnp.asarray(X), "float32"),
        ([1.0, 2.0], None), (2.0, None),
    ],
)  # fmt: skip
def test_what_must_be_copied_is_refused_where_that_is_forbidden(given: Any, dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"^asarray at .*: copy=False forbids the copy that is needed\n  got "):
        tnp.asarray(given, dtype, copy=False)
    np.testing.assert_array_equal(tnp.asarray(given, dtype, copy=None), np.asarray(given))
    np.testing.assert_array_equal(tnp.array(given, dtype, copy=False), np.asarray(given))  # as it was before NumPy 2


def test_indices_take_their_sizes_from_an_iterator() -> None:
    np.testing.assert_array_equal(tnp.indices(len(part) for part in ("ab", "abc")), np.indices((2, 3)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tnp.array_split(x, 2**31), lambda x: tnp.split(x[:0], 2**31), lambda x: tnp.vander(x, 2**31),
        lambda x: tnp.polyder(x, 2**31), lambda x: tnp.polyint(x, 2**31),
        lambda x: tracer.scipy.ndimage.maximum_filter(x, 2**31),
        lambda x: tracer.scipy.ndimage.uniform_filter(x, 10**6),
    ],
)  # fmt: skip
def test_numbers_of_operations_without_end_are_refused(call: Any) -> None:
    with pytest.raises(ArgumentError, match="is at most 65536, for each is an operation of its own"):
        call(tnp.arange(3.0))
