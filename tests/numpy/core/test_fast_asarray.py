"""`asarray` and `array` of plain values: equal to the arrays of the general conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.counted_calls import python_calls
from tests.grids import each
from tracer.errors import ShapeError, TracerError
from tracer.numpy.core import dtypes, fast_asarray
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.fast_asarray import plain_array
from tracer.numpy.shapes import creation
from tracer.settings import config

VALUES: list[Any] = [
    1.5, -0.0, float("nan"), float("inf"), 7, -(2**63), 2**63 - 1, [1.0, 2.5], [1, 2], [[1.0], [2.0]], [[1, 2], [3, 4]],
    [2**63 - 1], np.arange(3.0), np.arange(6, dtype="i2").reshape(2, 3).T, np.zeros((0, 3)), np.array(True),
    np.array(2 + 1j), np.arange(4.0)[::-2], np.float32([1.5]), np.array(3.0), True, [1, 2.5], [True, False], (1.0, 2.0),
    [[[1.0], [2.0]]], ([1, 2], (3, 4)), [np.float64(0.1), np.float64(1.0)], [np.int64(3)], np.float64(1.5),
    np.float32(0.1), np.int8(-3), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("default", ["float64", "float32"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_become_what_all_ways_make_of_them(value: Any, default: str) -> None:
    try:
        config.default_float = default
        found, expected = plain_array(value), array_of("asarray", value)
    finally:
        config.default_float = "float64"
    assert found is not None
    assert found.type == expected.type
    assert found._value.dtype is expected._value.dtype
    assert found._value.flags.c_contiguous
    assert found._value.tobytes() == expected._value.tobytes()
    assert not np.may_share_memory(found._value, value) if isinstance(value, np.ndarray) else True


OTHERS: list[Any] = [
    2**63, -(2**64), [], [[]], [10**39, 1.0], [True, 2], [[1, 2], [3]], [[1.0], 2.0], [2**63], [1.0, None], "text",
    [[[1.0]], [2.0]], np.array([1, 2], ">i4"), np.array(["a"]), np.array([1, None]), [np.float32(1.0)],
    np.str_("a"), [1, 2.0, 1j], np.ma.masked_array([1.0], [True]), np.zeros(1 << 18), range(3), None, 1j,
]  # fmt: skip


@each("value", OTHERS, ids=lambda v: repr(v)[:30])
def test_other_values_are_left_to_the_way_of_all(value: Any) -> None:
    assert plain_array(value) is None
    try:
        expected = array_of("asarray", value)
    except TracerError as error:
        with pytest.raises(type(error)):
            tnp.asarray(value)
        return
    assert tnp.asarray(value).type == expected.type
    np.testing.assert_array_equal(tnp.asarray(value), expected)


DTYPES: list[Any] = [
    "float32", "float64", float, int, tnp.float32, np.float32, np.dtype("f8"), tnp.int8, "uint8", "i4", "uint64", bool,
    "float16", "bfloat16", "complex64",
]  # fmt: skip
ODD: list[Any] = [
    [300, -1], 1e300, [2**60 + 1], [2**53 + 1, 1.0], 3.7, [float("nan")], [2**24 + 1, 2**53 + 1, 2**54 - 1, -(2**63)],
    [1e300, -1e300], [3.4028235677973366e38], [2**31], [2**63], [2**64], [1, 10**400], [10**39, 1.0],
    [10**400, 1.0], [np.int64(300)], [(1,), [2]],
    [np.float64(1e300)], [True], [[True, False]], [[-1], [1]], [[0.1], (0.2,)], [1, True], [[1, 2.5], [3, 4]], [[1], 2],
    [np.array(1.5)], [np.float32(0.1)], [[1, 2], [3]], [[[]]], [[], [1.0]], [[[[[[[[[[1.0]]]]]]]]]],
    np.arange(6.0).reshape(2, 3).T, np.array([1e300, np.nan]), np.array([300, 2**31]), np.array([True]),
    np.array([1.5, -2.5], "f2"), np.array([1, 2], ">i4"), np.zeros(1 << 18),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_a_dtype_gives_what_all_ways_make_of_the_values(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    s, x = tnp.asarray(0.1), tnp.asarray([1.0, 300.0])
    for value in [*VALUES, *ODD, [s, s], (s,), [x, x], [s, x], [[s]], [s, tnp.asarray(1)], [s, 1.0], [tnp.asarray(7)]]:
        found = _of_dtype(value, dtype)
        with monkeypatch.context() as patch:
            patch.setattr(creation, "plain_array", lambda a, dtype=None: None)
            expected = _of_dtype(value, dtype)
        assert found == expected, value


def _of_dtype(value: Any, dtype: Any) -> Any:
    try:
        found = tnp.asarray(value, dtype=dtype)
    except TracerError as error:
        return type(error)
    assert found._value.flags.c_contiguous
    return found.type, np.asarray(found).tobytes()


@each("ndmin", [0, -1, 1, 3, True, np.int64(2), 0.0, None])
def test_axes_are_put_in_front_where_there_are_too_few(ndmin: Any) -> None:
    if not hasattr(ndmin, "__index__"):
        with pytest.raises(TracerError, match=r"^array at test_fast_asarray\.py:\d+: ndmin"):
            tnp.array([1.0], ndmin=ndmin)
        return
    assert tnp.array([1.0], ndmin=ndmin).shape == np.array([1.0], ndmin=ndmin).shape


def test_arrays_in_a_list_are_stacked() -> None:
    x, weak = tnp.asarray([1.0, 2.0]), tnp.asarray(3.0)
    for value, expected in (([x, x + 1], [[1.0, 2.0], [2.0, 3.0]]), ([weak, weak], [3.0, 3.0]), ((x,), [[1.0, 2.0]])):
        found = plain_array(value)
        assert found is not None
        assert found.type == array_of("asarray", [*value]).type
        assert found.tolist() == expected
    keys = tracer.random.split(tracer.random.key(0))
    for value in ([x, weak], [x, tnp.asarray([1, 2])], [*keys], [tnp.zeros(1 << 17)]):
        assert plain_array(value) is None
    assert tnp.asarray([x, [3.0, 4.0]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_list_in_itself_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises((TracerError, RecursionError)):
        tnp.asarray(circle)


def test_dtypes_make_arrays_of_numbers() -> None:
    assert str(tnp.float32(0.1).type) == "f32[]"
    assert str(tnp.int8([1, 2]).type) == "i8[2]"
    with pytest.raises(TracerError, match="does not fit in int8"):
        tnp.int8(300)


NUMBERS: list[Any] = [
    1.5, -0.0, 0.1, float("nan"), float("-inf"), 1e300, 3.1e38, -3.4028235677973366e38, 1e-46, 3.7, -1.5, 0, 7, -1, 127,
    128, 255, 256, -129, 2**24 + 1, 2**53 + 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400, True,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of 1e300 where floats are float32 by default
@pytest.mark.parametrize("default", ["float64", "float32"])
@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "bool_", "complex64", "int8", "uint8",
                                  "int32", "int64", "uint64", "int4", "uint4", "float8_e5m2"])  # fmt: skip
def test_dtypes_of_numbers_give_what_all_ways_make_of_them(
    name: str, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(number: Any) -> Any:
        try:
            found = getattr(tnp, name)(number)
        except TracerError as error:
            return type(error), str(error)
        return found.type, np.asarray(found).tobytes()

    try:
        config.default_float = default
        quick = [outcome(number) for number in NUMBERS]
        for module in (dtypes, fast_asarray):
            monkeypatch.setattr(module, "plain_number", lambda number, wanted: None)
        monkeypatch.setattr(dtypes, "plain_array", lambda a, dtype=None: None)
        for number, found in zip(NUMBERS, quick, strict=True):
            assert found == outcome(number), number
    finally:
        config.default_float = "float64"


def test_lists_of_unequal_rows_are_told_of() -> None:
    with pytest.raises(ShapeError, match=r"asarray at test_fast_asarray\.py:\d+: the elements of a list"):
        tnp.asarray([[1.0, 2.0], [3.0]])


def test_arrays_of_ours_keep_their_handle_unless_they_are_copied() -> None:
    x = tnp.asarray([1.0, 2.0])
    assert tnp.asarray(x) is x
    for y in (tnp.array(x), tnp.asarray(x, copy=True)):
        assert y is not x
        y[0] = 5.0
        assert float(x[0]) == 1.0
    assert tnp.array(x, ndmin=3).shape == (1, 1, 2)


def test_within_traces_values_are_those_of_the_trace() -> None:
    outside = np.array([1.0, 2.0])
    f = tracer.jit(lambda x: tnp.asarray(outside) * x + tnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(f(1.0), [2, 4])
    outside[0] = 5.0
    np.testing.assert_array_equal(f(1.0), [6, 4])  # the array is read at every call
    assert tracer.jit(lambda x: plain_array([x]) is None and plain_array(2.0) is None)(1.0)


def test_overrides_of_the_default_float_are_seen() -> None:
    with config.using(default_float="float32"):
        assert tnp.asarray([1.0, 2.0]).dtype == tnp.asarray(1.0).dtype == np.float32


def test_plain_values_take_few_calls() -> None:
    tnp.asarray([1.0])
    for value in (np.arange(3.0), [1, 2], [[1.0], [2.0]], 1.0):
        assert python_calls(lambda value=value: tnp.asarray(value)) < 9
        assert python_calls(lambda value=value: tnp.asarray(value, "float32")) < 12
    assert creation.plain_array is plain_array


def test_known_elements_are_given_as_numbers_as_numpy_gives_them() -> None:
    x = tnp.asarray(np.arange(6.0).reshape(2, 3))
    assert x.item(4) == x.item(-2) == x.item(1, 1) == x.item((1, 1)) == 4.0
    assert type(x.item(0)) is float
    assert type(tnp.asarray([1, 2]).item(1)) is int
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    for wrong in ((6,), (0, 3), (1, 1, 1), ("a",), (1.0,)):
        with pytest.raises((IndexError, TypeError)):
            x.item(*wrong)
    with pytest.raises(TracerError):
        tracer.jit(lambda v: v.tolist())(x)
    assert tnp.nonzero(x > 3)[1].tolist() == [1, 2]
    view = np.asarray(x)
    assert not view.flags.writeable
    assert np.may_share_memory(view, x._value)
    assert np.asarray(x, dtype="f4").dtype == np.float32
    assert np.array(x).flags.writeable


UNCHANGING = ["around", "ceil", "clip", "conj", "fix", "floor", "nan_to_num", "positive", "real", "round", "trunc"]


@each("name", UNCHANGING)
def test_results_are_no_memory_of_numpys_arguments(name: str) -> None:
    for _ in range(2):  # prepared, then run prepared
        n = np.arange(3)
        result = getattr(tnp, name)(n)
        n[0] = 9
        assert int(result[0]) == 0


def test_folding_in_numbers_gives_the_keys_that_arrays_of_them_give() -> None:
    key = tracer.random.key(3)
    for number in (0, 1, 7, 2**32 - 1):
        data = [tracer.random.key_data(tracer.random.fold_in(key, n)) for n in (number, np.uint32(number))]
        np.testing.assert_array_equal(*data)
    for wrong in (-1, 2**32):
        with pytest.raises(TracerError, match="from 0 to"):
            tracer.random.fold_in(key, wrong)
    with pytest.raises(TracerError, match="single key"):
        tracer.random.fold_in(tracer.random.split(key), 1)
