"""dot_general: its types, values in every dtype, derivatives and batches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.grids import each
from tests.primitives.linalg.bilinear import check_batch, check_derivatives, draw, program_of, value_of
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.ir import dtypes
from tracer.ir.types import array_type
from tracer.primitives.linalg.dot_general import batch_matmul, dot, dot_general

# (lhs shape, rhs shape, dimension numbers, the same in einsum's letters)
PATTERNS = [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    ((4, 3), (5, 4), (((0,), (1,)), ((), ())), "ji,kj->ik"),
    ((4,), (4,), (((0,), (0,)), ((), ())), "j,j->"),
    ((3,), (2, 2), (((), ()), ((), ())), "i,jk->ijk"),
    ((), (), (((), ()), ((), ())), ",->"),
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,))), "bij,bjk->bik"),
    ((3, 4, 2), (4, 2, 5), (((1,), (0,)), ((2,), (1,))), "ijb,jbk->bik"),
    ((2, 3, 4, 5), (5, 2, 6, 3), (((3, 1), (0, 3)), ((0,), (1,))), "bijk,kbni->bjn"),
    ((2, 3, 4), (4, 2, 3), (((), ()), ((2, 0), (0, 1))), "bic,cbk->cbik"),
    ((2, 3, 4), (3, 4, 2), (((1, 0, 2), (0, 2, 1)), ((), ())), "ijk,jki->"),
]
IDS = [pattern[3] for pattern in PATTERNS]


@each(("left", "right", "numbers", "letters"), PATTERNS, ids=IDS)
def test_every_pattern_is_the_einsum_of_its_letters(left: Any, right: Any, numbers: Any, letters: str) -> None:
    rng = np.random.default_rng(1)
    for dtype in (np.float64, np.int16, np.complex64):
        x, y = draw(rng, left, dtype), draw(rng, right, dtype)
        got = value_of(lambda a, b: dot_general(a, b, numbers), x, y)
        np.testing.assert_array_equal(got, np.einsum(letters, x, y))
        assert got.dtype == x.dtype


@each(("left", "right", "numbers", "letters"), PATTERNS, ids=IDS)
def test_every_pattern_differentiates_forward_and_back(left: Any, right: Any, numbers: Any, letters: str) -> None:
    rng = np.random.default_rng(2)
    for dtype in (np.float64, np.complex128):
        x, y = draw(rng, left, dtype), draw(rng, right, dtype)
        check_derivatives(lambda a, b: dot_general(a, b, numbers), x, y)


@each(("left", "right", "numbers", "letters"), PATTERNS, ids=IDS)
def test_every_pattern_batches_along_every_axis(left: Any, right: Any, numbers: Any, letters: str) -> None:
    rng = np.random.default_rng(3)
    check_batch(lambda a, b: dot_general(a, b, numbers), draw(rng, left, np.float64), draw(rng, right, np.float64))


@each("dtype", dtypes.INTEGERS, ids=dtypes.short_name)
def test_integers_wrap(dtype: Any) -> None:
    x = np.full((1, 3), np.iinfo(dtype).max, dtype)
    got = value_of(lambda a, b: dot_general(a, b, (((1,), (1,)), ((), ()))), x, x)
    expected = 3 * int(np.iinfo(dtype).max) ** 2 % 2 ** (8 * dtype.itemsize)
    assert int(got[0, 0]) % 2 ** (8 * dtype.itemsize) == expected
    assert got.dtype == dtype


def test_bool_is_or_of_and() -> None:
    x = np.array([[True, True], [True, False], [False, False]])
    y = np.array([[True, False], [True, False]])
    np.testing.assert_array_equal(value_of(dot, x, y), [[True, False], [True, False], [False, False]])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=str)
def test_short_floats_accumulate_in_single_precision_and_round_once(dtype: Any) -> None:
    x = np.array([2048.0, 1.0, 1.0, 1.0, 1.0], dtype)  # in float16, 2048 + 1 is 2048
    assert value_of(dot, x, np.ones(5, dtype)) == np.float32(2052).astype(dtype)


def test_the_preferred_dtype_is_that_of_the_sums() -> None:
    small = np.full(4, 100, np.int8)
    got = value_of(lambda a, b: dot(a, b, preferred_element_type=np.int32), small, small)
    assert (int(got), got.dtype) == (40000, np.int32)
    half = np.full(4, 300.0, np.float16)
    got = value_of(lambda a, b: dot(a, b, preferred_element_type="float32"), half, half)
    assert (float(got), got.dtype) == (360000.0, np.float32)
    got = value_of(lambda a, b: dot(a, b, preferred_element_type="float64"), small, small)
    assert (float(got), got.dtype) == (40000.0, np.float64)


def test_cotangents_have_the_operands_dtypes_under_a_preferred_dtype() -> None:
    rng = np.random.default_rng(4)
    x, y = draw(rng, (3, 4), np.float32), draw(rng, (4, 2), np.float32)
    check_derivatives(lambda a, b: dot(a, b, preferred_element_type=np.float64), x, y)
    x, y = draw(rng, (3, 4), np.float16), draw(rng, (4, 2), np.float16)
    check_derivatives(lambda a, b: dot(a, b, preferred_element_type=np.float32), x, y)


def test_sums_over_nothing_are_zero_and_empty_results_have_their_shape() -> None:
    assert not value_of(dot, np.ones((2, 0)), np.ones((0, 3))).any()
    assert value_of(dot, np.ones((0, 2)), np.ones((2, 3))).shape == (0, 3)
    assert value_of(batch_matmul, np.ones((0, 2, 3)), np.ones((0, 3, 4))).shape == (0, 2, 4)


def test_different_dtypes_are_promoted() -> None:
    assert value_of(dot, np.ones(3, np.int32), np.ones(3, np.float32)).dtype == np.float32


def test_weak_operands_give_a_weak_result() -> None:
    from tracer.trace.stage import stage

    types = [array_type(dtypes.F64, (3,), weak) for weak in (True, False)]
    program = stage(lambda v: [dot(v[0], v[0]), dot(v[0], v[1])], types).program
    assert [str(t) for t in program.output_types] == ["f64*[]", "f64[]"]


def message_of(error: type[Exception], function: Any, x: Any, y: Any) -> str:
    with pytest.raises(error) as caught:
        program_of(function, x, y)
    first, *rest = str(caught.value).split("\n")
    return "\n".join([first.split(" at ")[0] + first[first.index(": ") if ": " in first else len(first) :], *rest])


def test_unequal_sizes_are_named_with_the_remedy() -> None:
    assert message_of(ShapeError, dot, np.ones((2, 3)), np.ones((4, 5))) == (
        "dot_general: contracted axes must have equal sizes\n"
        "  got f64[2,3] and f64[4,5]\n"
        "  axes (1,) of the first have sizes (3,), axes (0,) of the second (4,)\n"
        "  help: x @ y contracts the last axis of x with the last but one of y; transpose one of them"
    )


@each(
    ("error", "pattern", "call"),
    [
        (ShapeError, "named twice", lambda a, b: dot_general(a, b, (((0, 0), (0, 1)), ((), ())))),
        (ShapeError, "equally many axes", lambda a, b: dot_general(a, b, (((0,), ()), ((), ())))),
        (ShapeError, "out of range", lambda a, b: dot_general(a, b, (((2,), (0,)), ((), ())))),
        (ArgumentError, "unknown precision 'exact'", lambda a, b: dot(a, b, precision="exact")),
        (
            DTypeError,
            "got f32 for products of c128",
            lambda a, b: dot(a * 1j, b * 1j, preferred_element_type=np.float32),
        ),
        (
            DTypeError,
            "got i8 for products of i32",
            lambda a, b: dot(a.astype("int32"), b.astype("int32"), preferred_element_type=np.int8),
        ),
        (ShapeError, "two stacks of matrices", lambda a, b: batch_matmul(a, dot_general(b, b, (((), ()), ((), ()))))),
    ],
)
def test_mistakes_are_told(error: type[Exception], pattern: str, call: Any) -> None:
    with pytest.raises(error, match=pattern):
        program_of(call, np.ones((3, 3)), np.ones((3, 3)))
