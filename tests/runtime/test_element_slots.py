"""The slots of `Array` for its items: what compiled code decides, what it hands on, references, memory, threads."""

from __future__ import annotations

import copy
import gc
import operator
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.counted_calls import python_calls
from tracer.errors import MutationError, OutOfBoundsError
from tracer.runtime.element_slots import OFTEN, Slots, slots
from tracer.runtime.jit import entry
from tracer.runtime.native import capi
from tracer.settings import config
from tracer.trace.array import Array

pytestmark = pytest.mark.skipif(capi.why_not() is not None, reason=str(capi.why_not()))


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    before = slots.get is not None
    assert slots.fill()
    yield
    if not before:
        slots.empty()


def values(*shape: int, dtype: Any = "float64") -> Any:
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


BASIC: list[Any] = [
    0, -1, 2, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(2, 0, -1), slice(5, 2),
    slice(-100, 100), None, ..., (), (0,), (0, 1), (-1, -2), (slice(None), 1), (1, slice(None)), (..., 0), (0, ...),
    (None, 0, None), (slice(0, 2), slice(1, None, 2)), (..., slice(None, None, -1)), (slice(3, 3), 0),
    (None, ..., None),
]  # fmt: skip
ADVANCED: list[Any] = [
    [0, 2], [True, False, True], np.array([1, 0]), np.array([[0, 1], [2, 2]]), np.array([2, -1], "int32"),
    np.array([True, False, True]), (slice(None), np.array([1, 0])), (np.array([0, 1]), np.array([1, 2])),
    (np.array([0, 1]), 2), ([0, 1], slice(0, 2)), (None, np.array([1])), (np.array([0, 2]), None, np.array([1, 1])),
]  # fmt: skip
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u1", "?", "c16", "c8", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_reads_are_numpys_and_stay_out_of_python(dtype: str) -> None:
    x = tnp.asarray(values(3, 4)).astype(dtype)
    numpys = np.asarray(x)
    for index in BASIC + ADVANCED:
        ours = tnp.asarray(index) if isinstance(index, np.ndarray) else index
        found: list[Any] = []
        assert python_calls(lambda ours=ours, found=found: found.append(x[ours])) == 1, index
        expected = np.asarray(numpys[index])
        assert found[0].type == tnp.asarray(expected).type, index
        assert found[0]._value.flags.c_contiguous
        assert found[0]._value.flags.owndata
        assert found[0]._value.dtype is x._value.dtype
        np.testing.assert_array_equal(np.asarray(found[0]), expected, err_msg=str(index))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1, 1, 1), (2, 3, 4, 5), (1,) * 32])
def test_shapes_of_every_kind(shape: tuple[int, ...]) -> None:
    x = tnp.asarray(values(*shape))
    for index in BASIC:
        try:
            expected = values(*shape)[index]
        except IndexError:
            with pytest.raises(IndexError):
                x[index]
            continue
        if np.ndim(expected) > 32:
            continue
        np.testing.assert_array_equal(x[index], expected)
        assert x[index].shape == np.shape(expected)


def test_weak_arrays_give_weak_elements() -> None:
    x = tnp.full((2, 2), 7)
    assert x.weak_type
    assert all(x[index].weak_type for index in (0, (0, 1), [1, 0], ...))
    assert not tnp.asarray([1, 2])[0].weak_type


NUMBERS: list[tuple[str, Any]] = [
    ("f8", 2.5), ("f8", 3), ("f8", -(2**24) + 1), ("f8", np.float64(2.5)), ("f4", 0.1), ("f4", float("inf")),
    ("f4", -0.0),
    ("f4", float("nan")), ("f4", 7), ("i8", 7), ("i8", -(2**63)), ("i8", np.int64(-3)), ("i4", 2**31 - 1),
    ("i4", -(2**31)), ("i2", -5), ("i1", -128), ("i1", 127), ("u1", 255), ("u2", 65535), ("u4", 2**32 - 1), ("u8", 3),
    ("?", True), ("?", False),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), NUMBERS)
def test_numbers_are_written_without_python(dtype: str, value: Any) -> None:
    x, expected = tnp.zeros((3, 4), dtype) + tnp.zeros((), dtype), np.zeros((3, 4), dtype)
    for index in (1, (1, 2), (..., -1), slice(None, None, 2), (slice(None), slice(1, 3)), [0, 2]):
        assert python_calls(lambda index=index: operator.setitem(x, index, value)) == 1, index
        expected[index] = value
        np.testing.assert_array_equal(x, expected)
        assert np.array_equal(np.signbit(np.asarray(x)), np.signbit(expected)) or dtype[0] != "f"


UNFIT: list[tuple[str, Any]] = [
    ("i1", 128), ("i1", -129), ("i2", 2**15), ("i4", 2**31), ("u1", 256), ("u1", -1), ("u2", 2**16), ("u4", 2**32),
    ("u8", -1), ("i8", 2**63), ("u8", 2**64), ("i8", 2**100),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "value"), UNFIT)
def test_integers_that_do_not_fit_are_refused_and_nothing_is_written(dtype: str, value: int) -> None:
    x = tnp.zeros(3, dtype) + tnp.zeros((), dtype)
    for index in (1, slice(None), [0, 1]):
        with pytest.raises((OverflowError, TypeError, ValueError)):
            x[index] = value
    np.testing.assert_array_equal(x, np.zeros(3))


def test_the_largest_integer_of_64_bits_without_a_sign() -> None:
    x = tnp.zeros(2, "u8")
    x[0] = 2**64 - 1
    assert int(x[0]) == 2**64 - 1


CAST = [
    ("f8", 2**24 + 1),
    ("f4", 3.1e38),
    ("f4", 1e300),
    ("f2", 1.5),
    ("c16", 1.5),
    ("i8", 2.5),
    ("f8", True),
    ("i8", True),
]


@pytest.mark.parametrize(("dtype", "value"), CAST)
def test_numbers_that_need_a_cast_are_written_as_at_writes_them(dtype: str, value: Any) -> None:
    x = tnp.zeros(3, dtype)
    slots.empty()
    expected = x.at[1].set(value)
    slots.fill()
    x[1] = value
    np.testing.assert_array_equal(x, expected)
    assert x.type == expected.type


ARRAYS: list[tuple[Any, tuple[int, ...]]] = [
    (1, (4,)), (1, (1,)), (1, ()), (slice(None), (3, 4)), (slice(None), (4,)), (slice(None), (3, 1)), ((..., 1), (3,)),
    (slice(None, None, -1), (3, 4)), ((slice(None), slice(None, None, 2)), (3, 2)), ((1, 2), ()),
    ([0, 2], (2, 4)), ([0, 2], (4,)),
    (None, (1, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("index", "shape"), ARRAYS)
@pytest.mark.parametrize(
    "make",
    [np.asarray, tnp.asarray, lambda v: np.asarray(v, order="F"), lambda v: np.repeat(v, 2)[::2].reshape(v.shape)],
)
def test_arrays_are_written_without_python(index: Any, shape: tuple[int, ...], make: Callable[[Any], Any]) -> None:
    x, expected = tnp.asarray(values(3, 4)), values(3, 4)
    new = -values(*shape)
    given = make(new)
    assert python_calls(lambda: operator.setitem(x, index, given)) == 1
    expected[index] = new
    np.testing.assert_array_equal(x, expected)


def test_an_array_is_written_to_itself_as_from_a_copy() -> None:
    x = tnp.asarray(values(3, 3))
    x[...] = x
    x[::-1] = x
    np.testing.assert_array_equal(x, values(3, 3)[::-1])
    x[0] = x[2]
    np.testing.assert_array_equal(x[0], x[2])


def test_a_write_to_a_shared_value_leaves_the_others_as_they_are() -> None:
    x = tnp.asarray(values(4))
    y, z = x.copy(), copy.copy(x)
    view = np.asarray(x)
    assert python_calls(lambda: operator.setitem(x, 0, 9.0)) == 1
    assert float(x[0]) == 9
    for other in (y, z, view):
        np.testing.assert_array_equal(other, values(4))


def test_at_set_stays_out_of_python_but_for_its_own_methods() -> None:
    x = tnp.asarray(values(3, 4))
    for index, value in ((1, 5.0), ((1, 2), 3), (slice(None), -values(4)), ([0, 1], 2.5)):
        expected = values(3, 4)
        expected[index] = value
        found = x.at[index].set(value)
        assert found.type == x.type
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(x, values(3, 4))


# What compiled code does not decide


@pytest.mark.parametrize("index", [3, -4, (0, 4), (0, -5), 2**70, -(2**70), (0, 0, 0), [0, 3], (..., ...), 10**18])
def test_errors_are_pythons_and_name_the_line(index: Any) -> None:
    x = tnp.asarray(values(3, 4))
    for act in (lambda: x[index], lambda: operator.setitem(x, index, 1.0)):
        with pytest.raises(OutOfBoundsError, match=r"at test_element_slots\.py:\d+") as caught:
            act()
        assert caught.traceback[-1].path.name == "test_element_slots.py"
    np.testing.assert_array_equal(x, values(3, 4))


@pytest.mark.parametrize("index", ["a", 1.0, slice(None, None, 0), slice("a"), object(), {1}, (0, "b")])
def test_what_is_no_index_is_refused(index: Any) -> None:
    x = tnp.asarray(values(3, 4))
    for act in (lambda: x[index], lambda: operator.setitem(x, index, 1.0)):
        with pytest.raises((TypeError, IndexError, ValueError)) as caught:
            act()
        assert caught.traceback[-1].path.name == "test_element_slots.py"


def test_rare_indices_go_through_python() -> None:
    x, n = tnp.asarray(values(3, 4)), values(3, 4)

    class Index:
        def __index__(self) -> int:
            return 1

    for index in (True, False, np.bool_(True), Index(), slice(Index(), None), np.uint8(2), np.array(1), range(2),
                  np.array([1, 0], ">i4"), np.array([1], "u8"), (True, 0), np.int32(1)):  # fmt: skip
        np.testing.assert_array_equal(x[index], n[list(index) if isinstance(index, range) else index])


def test_elements_are_deleted_by_nobody() -> None:
    x = tnp.zeros(3)
    with pytest.raises(MutationError, match="del x"):
        del x[0]
    with pytest.raises(MutationError, match="del x"):
        x.__delitem__(0)


def test_traced_arrays_and_keys_go_through_python() -> None:
    y = tnp.asarray(values(3))

    def f(x: Any) -> Any:
        assert isinstance(x[0], Array)
        z = x.copy()
        z[1] = x[2] * y[0]
        return (z * y[1]).sum()

    np.testing.assert_array_equal(tracer.grad(f)(y), [2, 0, 4])
    assert float(tracer.jit(f)(y)) == 14
    keys = tracer.random.split(tracer.random.key(0), 3)
    assert keys[1].type == tracer.random.key(0).type
    np.testing.assert_array_equal(tracer.random.key_data(keys[1]), tracer.random.key_data(keys)[1])


def test_a_traced_index_goes_through_python() -> None:
    y = tnp.asarray(values(4))
    assert float(tracer.jit(lambda i: y[i])(2)) == 3
    assert float(tracer.vmap(lambda i: y[i])(tnp.asarray([2]))[0]) == 3


def test_arrays_from_outside_are_not_written_to_in_a_trace() -> None:
    y = tnp.asarray(values(3))

    def f(x: Any) -> Any:
        y[0] = x
        return y

    with pytest.raises(MutationError, match="does not own this array"):
        tracer.jit(f)(1.0)
    np.testing.assert_array_equal(y, values(3))


def test_overridden_settings_close_the_way_of_compiled_code() -> None:
    x = tnp.asarray(values(3))
    with config.using(default_float="float32"):
        assert python_calls(lambda: x[0]) > 1
        assert float(x[0]) == 1
    assert python_calls(lambda: x[0]) == 1


def test_handles_without_a_value_are_refused_as_before() -> None:
    x = tnp.asarray(values(1 << 10))
    tracer.jit(lambda v: v + 1, donate_argnums=0)(x)
    for act in (lambda: x[0], lambda: operator.setitem(x, 0, 1.0)):
        with pytest.raises(Exception, match="donated"):
            act()


def test_subclasses_have_their_own_methods() -> None:
    class Loud(Array):
        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:
            return "read", super().__getitem__(index)

    class Quiet(Array):
        __slots__ = ()

    base = tnp.asarray(values(3))
    for cls in (Loud, Quiet):
        x = object.__new__(cls)
        for name in ("_value", "_weak", "_trace", "_atom", "_type", "_owner"):
            setattr(x, name, getattr(base, name))
        found = x[1]
        assert float(found[1] if cls is Loud else found) == 2


def test_unset_handles_do_no_harm() -> None:
    empty = object.__new__(Array)
    for act in (lambda: empty[0], lambda: operator.setitem(empty, 0, 1.0)):
        with pytest.raises(AttributeError):
            act()


def test_slots_are_filled_once_calls_come_often(monkeypatch: pytest.MonkeyPatch) -> None:
    slots.empty()
    fresh = Slots()
    fresh.stand_for(slots.functions)
    for _ in range(OFTEN - 1):
        fresh.note()
    assert fresh.get is None
    fresh.note()  # LLVM is there: the fixture filled the slots
    assert fresh.get is not None
    with monkeypatch.context() as patch:
        patch.setattr(entry.switch, "ctypes_only", True)
        assert not Slots().fill()
    slots.empty()
    assert type(vars(Array)["__getitem__"]) is type(python_calls)


# References and memory

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an integer": lambda x, k, v: x[1],
    "integers": lambda x, k, v: x[1, 2],
    "slices": lambda x, k, v: x[1:, ::-1],
    "an array": lambda x, k, v: x[k],
    "a list": lambda x, k, v: x[[0, 1]],
    "arrays in a tuple": lambda x, k, v: x[:, k],
    "iteration": lambda x, k, v: list(x),
    "out of bounds": lambda x, k, v: refused(lambda: x[7]),
    "places out of bounds": lambda x, k, v: refused(lambda: x[[7]]),
    "no index": lambda x, k, v: refused(lambda: x["a"]),
    "writing a number": lambda x, k, v: operator.setitem(x, 1, 2.0),
    "writing an array": lambda x, k, v: operator.setitem(x, 1, v),
    "writing to places": operator.setitem,
    "writing to a copy": lambda x, k, v: operator.setitem(x.copy(), 1, v),
    "writing out of bounds": lambda x, k, v: refused(lambda: operator.setitem(x, 9, v)),
    "writing what is no number": lambda x, k, v: refused(lambda: operator.setitem(x, 0, "text")),
    "deleting": lambda x, k, v: refused(lambda: operator.delitem(x, 0)),
    "at": lambda x, k, v: x.at[1].set(v),
    "at places": lambda x, k, v: x.at[k].set(2.0),
}


def refused(act: Callable[[], Any]) -> None:
    with pytest.raises(Exception, match=r"."):
        act()


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_references_stay_as_many_as_they_were(call: Callable[[Any, Any, Any], Any]) -> None:
    x, k, v = tnp.asarray(values(3, 4)), tnp.asarray([0, 2]), tnp.asarray(values(4))
    held = [x, x._value.dtype, k, k._value, v, v._value, 0, 1, 2, False, None, ..., Array, np.ndarray]
    call(x, k, v)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(thing) for thing in held]

    def grows() -> bool:
        before, blocks = counts(), sys.getallocatedblocks()
        for _ in range(300):
            call(x, k, v)
        apart = max(abs(a - b) for a, b in zip(before, counts(), strict=True))
        return apart >= 100 or sys.getallocatedblocks() - blocks >= 100

    assert not all(grows() for _ in range(3))  # what others left behind goes away once, a leak shows every time


def test_threads_read_and_write_the_same_handles() -> None:
    x = tnp.asarray(values(8))
    places = tnp.asarray([1, 3])
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(2000):
                x[number] = float(turn)
                assert float(x[number]) == turn
                assert x[places].shape == (2,)
                y = x.copy()
                y[...] = -1.0
                assert x[:4].shape == (4,)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    tracer.jit(lambda v: v + x[0])(1.0)  # a trace on this thread closes the way for the others
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(x[:4], [1999.0] * 4)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on the collector runs between instructions alone")
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    "act", [lambda x, y, index: x[index], lambda x, y, index: y.__setitem__(index, x)], ids=["read", "written"]
)
def test_an_array_stays_while_an_index_is_read_though_a_finalizer_rebinds_its_handle(act: Callable[..., Any]) -> None:
    index = (None,) * 25 + ([0, 1],)  # the code makes a tuple of it, which may set the collector off
    x, y = tnp.zeros(2), tnp.zeros(2)
    held = weakref.ref(x._value)
    reading, stays = False, []

    class Late:
        def __del__(self) -> None:
            x[...] = np.float32(3)  # by way of Python: the handle has another array
            stays.extend([held() is not None] * reading)

    late = Late()
    late.itself = late  # type: ignore[attr-defined]
    del late
    threshold = gc.get_threshold()
    reading = True
    gc.set_threshold(1)
    try:
        act(x, y, index)
    finally:
        gc.set_threshold(*threshold)
        reading = False
    gc.collect()
    assert stays == [True]
