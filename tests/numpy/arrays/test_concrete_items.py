"""`x[i] = v` of known values: NumPy's elements, in the array's own memory where nobody else holds it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tracer.errors import OutOfBoundsError
from tracer.numpy.arrays import concrete_items, methods

counted = pytest.mark.skipif(concrete_items._ALONE == 0, reason="this Python counts no references")


def address(x: Any) -> int:
    """Where the elements are. The view that tells it is gone on return."""
    return int(np.asarray(x).ctypes.data)


@counted
def test_a_loop_over_elements_writes_to_one_memory() -> None:
    x = tnp.zeros(8)
    before = address(x)
    for i in range(8):
        x[i] = 2.0 * i
    x[1:3] = tnp.asarray([7.0, 8.0])
    x[x > 9] += 1
    assert address(x) == before
    np.testing.assert_array_equal(x, [0, 7, 8, 6, 8, 11, 13, 15])


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "another handle": lambda x: tnp.reshape(x, x.shape),
    "a copy": copy.copy,
    "a transpose": lambda x: x.T,
    "a row": lambda x: x[0],
    "a flat one": lambda x: x.ravel(),
    "rows": list,
    "the real part": lambda x: x.real,
    "a cast to its dtype": lambda x: x.astype(x.dtype),
    "asarray of it": np.asarray,
    "a view of asarray of it": lambda x: np.asarray(x)[0, 1:],
    "a buffer": lambda x: memoryview(np.asarray(x)),
    "DLPack": np.from_dlpack,
    "DLPack both ways": lambda x: tnp.from_dlpack(np.from_dlpack(x)),
    "what jit returns": tracer.jit(lambda x: x),
    "what jit computes": tracer.jit(lambda x: x + 0),
    "a gradient's factor": lambda x: tracer.vjp(lambda y: y * x, x)[1](tnp.ones((2, 3)))[0],
    "broadcast": lambda x: tnp.broadcast_to(x, (1, 2, 3)),
    "where": lambda x: tnp.where(True, x, 0.0),
    "a pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "at": lambda x: x.at[0, 0].set(x[0, 0]),
}


@each("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_what_was_taken_from_an_array_keeps_its_values_when_it_is_written_to(holder: Callable[[Any], Any]) -> None:
    for _ in range(2):  # prepared, then run prepared
        x = tnp.asarray(np.arange(6.0).reshape(2, 3))
        held = holder(x)
        values = np.array(held)
        x[0, 1] = 9.0
        x[:, 2] = -1.0
        np.testing.assert_array_equal(np.array(held), values)
        np.testing.assert_array_equal(x, [[0, 9, -1], [3, 4, -1]])


def test_a_result_that_is_written_to_leaves_its_argument() -> None:
    x = tnp.asarray(np.arange(6.0).reshape(2, 3))
    for _ in range(2):  # prepared, then run prepared
        for function in (tnp.reshape, tnp.broadcast_to):
            y = function(x, (2, 3))
            y[0] = 5.0
            np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))


def test_a_pullback_keeps_the_values_that_it_was_made_with() -> None:
    x, y = tnp.asarray([1.0, 2.0]), tnp.asarray([3.0, 4.0])
    _, pull = tracer.vjp(lambda x: tnp.sin(x) * y, x)
    x[0], y[1] = 9.0, 9.0
    np.testing.assert_allclose(pull(tnp.ones(2))[0], np.cos([1.0, 2.0]) * [3.0, 4.0])


def test_jitted_functions_see_what_is_written_to_captured_arrays() -> None:
    x = tnp.asarray([1.0, 2.0])
    total = tracer.jit(lambda: x.sum() + 0)
    assert total() == 3
    x[0] = 5.0
    assert total() == 7


def test_jitted_functions_trace_again_where_they_looked_at_what_is_written_to() -> None:
    n = tnp.asarray(np.array(2))

    @tracer.jit
    def ones() -> Any:
        return tnp.ones(int(n))

    assert ones().shape == (2,)
    n[...] = 4
    assert ones().shape == (4,)


INDICES: list[Any] = [
    1, -1, slice(None), slice(1, None, 2), slice(None, None, -1), ..., None, (0, 2), (slice(None), 1), (..., 1),
    (1, None), [0, 1], [1, 1], np.array([1, 0]), (np.array([0, 1]), 2),
    np.array([[True, False, True], [False, True, False]]),
    [True, False], np.int32(1), tnp.asarray(1), (tnp.asarray([0, 1]), slice(0, 2)), (slice(0, 0), 0),
]  # fmt: skip
VALUES: list[Any] = [
    7, 2.5, True, -0.0, float("nan"), float("inf"), np.float32(1.5), np.int8(-3), tnp.asarray(4.25), [8.5],
    np.array([[2.5]]), tnp.full(1, 3), np.float64(1e300), np.arange(3.0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1", "?", "c16", "c8"])
def test_writes_of_every_kind_give_what_at_gives(dtype: str) -> None:
    start = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    written = 0
    for index in INDICES:
        for value in VALUES:
            x = tnp.asarray(start)
            try:
                expected = x.at[index].set(value)
            except (ValueError, TypeError, IndexError) as error:
                with pytest.raises(type(error)):
                    x[index] = value
                np.testing.assert_array_equal(x, start)
                continue
            x[index] = value
            assert x.type == expected.type
            np.testing.assert_array_equal(x, expected)
            assert np.array_equal(np.signbit(x.real), np.signbit(expected.real))
            written += 1
    assert written > len(INDICES) * len(VALUES) / 2


WRONG = [
    (0, 2**70), (5, 1.0), ((0, 3), 1.0), (slice(None), [1, 2]), ([0, 9], 1.0), (0, "text"), ((0, 0, 0), 1), ("a", 1),
]  # fmt: skip


@each(("index", "value"), WRONG)
def test_writes_that_fail_change_nothing(index: Any, value: Any) -> None:
    x = tnp.zeros((2, 3), int)
    with pytest.raises((ValueError, TypeError, IndexError)):
        x[index] = value
    np.testing.assert_array_equal(x, 0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_one_element_combined_with_a_number_is_as_all_ways_have_it(dtype: str) -> None:
    x = tnp.asarray(np.arange(6).reshape(2, 3), dtype=dtype)
    extreme = tnp.asarray([1e308, -0.0, np.inf])
    for value in (2, 0.5 if dtype != "int64" else 5, -3):
        for index in ((1, 2), (-1, 0), (0, slice(None)), 1):
            for name in ("add", "multiply"):
                quick = getattr(x.at[index], name)(value)
                slow = getattr(x.at[index], name)(value, mode="promise_in_bounds")
                assert quick.type == slow.type
                assert quick.tolist() == slow.tolist()
    assert extreme.at[0].add(1e308).tolist() == [np.inf, -0.0, np.inf]
    assert np.isnan(extreme.at[2].add(-np.inf)[2])
    assert extreme.at[0].multiply(10.0)[0] == np.inf
    with pytest.raises(OutOfBoundsError):
        x.at[2, 0].add(1.0 if dtype != "int64" else 1)


@pytest.mark.parametrize(("number", "dtype"), [*enumerate(["f8", "f4", "i8", "u1", "?", "c16"])])
def test_what_at_gives_of_known_values_is_as_all_ways_have_it(
    number: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all cases each dtype has a sixth; together they have all."""
    start = tnp.asarray(np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype))

    def outcome(x: Any, index: Any, name: str, value: Any) -> Any:
        try:
            found = getattr(x.at[index], name)(value)
        except (ValueError, TypeError, IndexError) as error:
            return type(error), str(error).partition("\n")[0]
        return found.type, np.asarray(found).tobytes()

    cases = [
        (x, index, name, value)
        for x in (start, tnp.full((2, 3), 2))
        for index in (*INDICES, (0, 3), 5, "a")
        for name in ("set", "add", "multiply", "mul")
        for value in (*VALUES, 10**400, "text", [1, 2])
    ][slice(None) if THOROUGH else slice(number, None, 6)]
    quick = [outcome(*case) for case in cases]
    monkeypatch.setattr(methods, "written", lambda *args: None)
    for case, found in zip(cases, quick, strict=True):
        assert found == outcome(*case), case
