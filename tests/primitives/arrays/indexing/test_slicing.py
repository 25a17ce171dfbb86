"""Gather and scatter: faults and their texts, predicates, effects, dtypes, keys; dynamic slices."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.grids import each
from tests.primitives.structural import lax
from tracer.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from tracer.ir import dtypes
from tracer.ir.primitive import FAULTS, NO_EFFECTS
from tracer.ir.types import KeyType, Type, array_type
from tracer.primitives.arrays.dynamic_slice import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from tracer.primitives.base.reference import run_reference
from tracer.runtime.eager.execute import execute
from tracer.trace.array import Array, concrete
from tracer.trace.stage import stage
from tracer.trace.trace import eager
from tracer.transforms.batch import batch_program

ROW = GatherDimensionNumbers((1,), (0,), (0,))
POINT = GatherDimensionNumbers((), (0,), (0,))
INTO_POINT = ScatterDimensionNumbers((), (0,), (0,))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "execute", execute)


def arr(value: Any, dtype: Any = None) -> Array:
    return concrete(np.array(value, dtype, order="C"))


def points(*indices: int) -> Array:
    return arr(np.array(indices, np.int64)[:, None])


def got(x: Any) -> Any:
    return np.asarray(x)


HELP = (
    '\n  help: index within bounds, or say what to do beyond them: x.at[i].get(mode="clip"), '
    'x.at[i].set(v, mode="drop")'
)


@pytest.mark.parametrize(("index", "shown"), [(10, 10), (3, 3), (-1, -4), (-7, -10)])
def test_an_index_out_of_bounds_raises_and_is_shown_as_the_user_wrote_it(index: int, shown: int) -> None:
    with pytest.raises(OutOfBoundsError) as raised:
        lax.gather(arr([1.0, 2.0, 3.0]), points(0, index), POINT, (1,))
    text = str(raised.value)
    assert text.startswith(f"index {shown} is out of bounds for axis 0 with size 3, at test_slicing.py:")
    assert text.endswith(HELP)


def test_the_first_fault_in_row_major_order_is_reported() -> None:
    numbers = GatherDimensionNumbers((), (0, 1), (0, 1))
    with pytest.raises(OutOfBoundsError, match="index 8 is out of bounds for axis 1 with size 4"):
        lax.gather(arr(np.ones((3, 4))), arr([[0, 0], [1, 8], [9, 9]]), numbers, (1, 1))


@pytest.mark.parametrize("batched", [(True, False, False), (False, True, False), (True, True, False)])
def test_a_batched_fault_names_the_axis_of_the_example(batched: tuple[bool, ...]) -> None:
    types = [array_type(dtypes.F64, (3, 4)), array_type(dtypes.I64, (2, 1)), array_type(dtypes.BOOL, ())]
    numbers = GatherDimensionNumbers((0,), (1,), (1,))
    program = stage(lambda x: [lax.gather(x[0], x[1], numbers, (3, 1), predicate=x[2])], types).program
    operands = [np.ones((3, 4)), np.array([[1], [5]]), np.array(True)]
    stacked = [np.stack([x, x]) if on else x for x, on in zip(operands, batched, strict=True)]
    with pytest.raises(OutOfBoundsError, match="index 5 is out of bounds for axis 1 with size 4"):
        run_reference(batch_program(program, batched, 2).program, stacked)


def test_a_false_predicate_keeps_lanes_from_faulting_and_from_loading() -> None:
    mask = arr([True, False, False])
    y = lax.gather(arr([1.0, 2.0]), points(1, 99, 0), POINT, (1,), predicate=mask)
    np.testing.assert_array_equal(got(y), [2.0, 0.0, 0.0])
    y = lax.gather(arr([1.0, 2.0]), points(1, 99, 0), POINT, (1,), mode="fill", fill_value=7.0, predicate=mask)
    np.testing.assert_array_equal(got(y), [2.0, 0.0, 0.0])
    y = lax.scatter_add(arr([1.0, 2.0]), points(1, 99, 0), arr([5.0, 6.0, 7.0]), INTO_POINT, predicate=mask)
    np.testing.assert_array_equal(got(y), [1.0, 7.0])


def test_a_batched_predicate_guards_unbatched_indices() -> None:
    types: list[Type] = [array_type(dtypes.F64, (2,)), array_type(dtypes.I64, (2, 1)), array_type(dtypes.BOOL, ())]
    program = stage(lambda x: [lax.gather(x[0], x[1], POINT, (1,), predicate=x[2])], types).program
    batch = batch_program(program, (False, False, True), 2).program
    x, out = np.array([3.0, 4.0]), np.array([[1], [8]])
    np.testing.assert_array_equal(run_reference(batch, [x, out, np.array([False, False])])[0], np.zeros((2, 2)))
    with pytest.raises(OutOfBoundsError):
        run_reference(batch, [x, out, np.array([False, True])])


def test_only_checked_indices_fault() -> None:
    for mode in GatherScatterMode:
        types: list[Type] = [array_type(dtypes.F64, (3,)), array_type(dtypes.I64, (2, 1))]
        program = stage(lambda x, mode=mode: [lax.gather(*x, POINT, (1,), mode=mode)], types).program
        assert program.effects == (FAULTS if mode is GatherScatterMode.CHECKED else NO_EFFECTS)
        assert program.equations[0].primitive.guard == 2


def test_nothing_is_in_bounds_of_an_empty_axis() -> None:
    empty = arr(np.zeros(0))
    with pytest.raises(OutOfBoundsError, match="index 0 is out of bounds for axis 0 with size 0"):
        lax.gather(empty, points(0), POINT, (1,))
    np.testing.assert_array_equal(got(lax.gather(empty, points(0, 1), POINT, (1,), mode="fill")), [np.nan, np.nan])
    with pytest.raises(ShapeError, match="slice sizes must lie between 0 and the operand's, not 1 for axis 0"):
        lax.gather(empty, points(0), POINT, (1,), mode="clip")
    assert got(lax.gather(empty, arr(np.zeros((0, 1), np.int64)), POINT, (1,))).shape == (0,)


@each("dtype", ["int8", "uint64", "float16", "bfloat16", "complex64", "bool"])
def test_scatters_work_in_every_dtype(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    x, u = arr([1, 0, 1], kind), arr([1, 1, 0, 1], kind)
    y = got(lax.scatter_add(x, points(1, 1, 0, 2), u, INTO_POINT))
    assert y.dtype == kind
    np.testing.assert_array_equal(y, arr([1, 1 if dtype == "bool" else 2, 2], kind))
    y = got(lax.scatter(x, points(0, 0), arr([1, 0], kind), INTO_POINT))
    np.testing.assert_array_equal(y, np.array([0, 0, 1], kind))
    if dtype != "complex64":
        np.testing.assert_array_equal(got(lax.scatter_max(x, points(1, 0, 1, 1), u, INTO_POINT)), np.ones(3, kind))
        least = got(lax.scatter_min(x, points(2, 2, 2, 2), u, INTO_POINT))
        np.testing.assert_array_equal(least, np.array([1, 0, 0], kind))


def test_extremes_of_scatters_propagate_nan_and_hold_minus_zero_below_zero() -> None:
    x = arr([0.0, -0.0, 1.0, -1.0])
    u = arr([-0.0, 0.0, np.nan, np.nan])
    y = got(lax.scatter_max(x, points(0, 1, 2, 3), u, INTO_POINT))
    np.testing.assert_array_equal(np.signbit(y), [False, False, False, False])
    y = got(lax.scatter_min(x, points(0, 1, 2, 3), u, INTO_POINT))
    np.testing.assert_array_equal(np.signbit(y), [True, True, False, False])
    np.testing.assert_array_equal(y, [0.0, 0.0, np.nan, np.nan])


def test_keys_pass_through_gather_and_slices() -> None:
    words = np.arange(12, dtype=np.uint32).reshape(6, 2)
    indices = np.array([[4], [0]])

    def run(xs: list[Any]) -> list[Any]:
        keys, i = xs
        rows = lax.gather(lax.reshape(keys, (3, 2)), i, ROW, (1, 2), mode="fill")
        return [
            lax.gather(keys, i, POINT, (1,)), rows, lax.dynamic_slice(keys, (5,), (2,)),
            lax.dynamic_update_slice(keys, lax.rev(lax.slice(keys, (0,), (2,)), (0,)), (3,)),
            lax.scatter(keys, i, lax.slice(keys, (1,), (3,)), INTO_POINT),
        ]  # fmt: skip

    program = stage(run, [KeyType((6,)), array_type(dtypes.I64, (2, 1))]).program
    taken, rows, tail, updated, scattered = run_reference(program, [words, indices])
    assert program.output_types[1] == KeyType((2, 2))
    np.testing.assert_array_equal(taken, words[[4, 0]])
    np.testing.assert_array_equal(rows, np.stack([np.zeros((2, 2)), words[:2]]))
    np.testing.assert_array_equal(tail, words[4:])
    np.testing.assert_array_equal(updated, words[[0, 1, 2, 1, 0, 5]])
    np.testing.assert_array_equal(scattered, words[[2, 1, 2, 3, 1, 5]])


def test_a_dynamic_slice_takes_an_array_of_starts_and_unsigned_ones() -> None:
    x = arr(np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(got(lax.dynamic_slice(x, arr([1, -2]), (1, 2))), [[6, 7]])
    np.testing.assert_array_equal(got(lax.dynamic_slice(x, (arr(1, np.uint8), 0), (1, 2))), [[4, 5]])


def test_misuse_says_what_was_expected() -> None:
    x = arr(np.ones((3, 4)))
    with pytest.raises(ShapeError) as shape_error:
        lax.gather(x, points(0), ROW, (2, 4))
    assert (
        str(shape_error.value).splitlines()[0].endswith(": slices must have size 1 along collapsed and batching axes")
    )
    with pytest.raises(DTypeError, match="takes integer indices"):
        lax.gather(x, arr([[0.0]]), ROW, (1, 4))
    with pytest.raises(ShapeError, match="the updates must hold one window for each index vector"):
        lax.scatter_add(x, points(0, 1), arr(np.ones((1, 4))), ScatterDimensionNumbers((1,), (0,), (0,)))
    with pytest.raises(DTypeError, match="the updates must have the operand's dtype"):
        lax.scatter(arr([1.0]), points(0), arr([1]), INTO_POINT)
    with pytest.raises(ArgumentError, match="no mode 'wrong'"):
        lax.gather(x, points(0), ROW, (1, 4), mode="wrong")
    with pytest.raises(ShapeError, match="the predicate must be a bool, or bools of shape"):
        lax.gather(x, points(0, 1), ROW, (1, 4), predicate=arr([True]))
    with pytest.raises(ShapeError) as slice_error:
        lax.dynamic_slice(x, (0,), (1,))
    assert "expected one start per axis, and a slice no larger than the operand" in str(slice_error.value)
