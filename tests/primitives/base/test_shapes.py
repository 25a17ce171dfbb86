"""Shapes, reductions and sorting beyond the shared laws: errors, keys, signed zeros, short floats, every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.grids import each
from tests.primitives.structural import lax
from tracer.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tracer.ir import dtypes
from tracer.ir.types import KeyType, Type, array_type
from tracer.primitives.base.reference import run_reference
from tracer.runtime.eager.execute import execute
from tracer.trace.array import Array, concrete
from tracer.trace.stage import stage
from tracer.trace.trace import eager
from tracer.transforms.batch import batch_program

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "execute", execute)


def arr(value: Any, dtype: Any = None) -> Array:
    return concrete(np.array(value, dtype, order="C"))


def got(x: Any) -> Any:
    return np.asarray(x)


def error_of(call: Callable[[], Any]) -> list[str]:
    with pytest.raises((ShapeError, ArgumentError, DTypeError)) as raised:
        call()
    first, *rest = str(raised.value).splitlines()
    place = first.index(" at test_shapes.py:")
    return [first[:place] + first[first.index(":", place + 19) if ":" in first[place + 19 :] else len(first) :], *rest]


def test_misuse_states_operation_place_expected_got_and_remedy() -> None:
    x = arr(np.ones((2, 3)))
    assert error_of(lambda: lax.reshape(x, (4,))) == [
        "reshape: a reshape keeps the number of elements",
        "  got f64[2,3], 6 elements, to [4], 4",
        "  help: pad or slice the operand, or correct the sizes",
    ]
    assert error_of(lambda: lax.transpose(x, (0, 0))) == [
        "transpose: the permutation must name every axis once",
        "  got permutation=(0, 0) for f64[2,3]",
        "  help: reorder (0, 1)",
    ]
    assert error_of(lambda: lax.broadcast_in_dim(x, (4, 2, 5), (1, 2))) == [
        "broadcast_in_dim: sizes must be 1 or equal to the result's",
        "  got f64[2,3] to [4,2,5] with broadcast_dimensions=(1, 2)",
        "  help: reshape or slice the operand",
    ]
    assert error_of(lambda: lax.slice(x, (0, 2), (2, 4))) == [
        "slice: expected 0 <= start <= limit <= size and stride >= 1 along every axis",
        "  got f64[2,3], start_indices=(0, 2), limit_indices=(2, 4), strides=(1, 1)",
        "  help: x[a:b] clips as NumPy does; rev gives negative strides",
    ]
    assert error_of(lambda: lax.concatenate([x, arr(np.ones((2, 3), np.float32))], 0)) == [
        "concatenate: operands must have equal dtypes",
        "  got f64[2,3], f32[2,3]",
        "  help: tracer.numpy.concatenate promotes; here, cast with .astype(...)",
    ]
    assert error_of(lambda: lax.concatenate([x, arr(np.ones((3, 3)))], 1)) == [
        "concatenate: shapes must agree except along axis 1",
        "  got f64[2,3], f64[3,3]",
        "  help: reshape, pad or slice the operands",
    ]
    assert error_of(lambda: lax.concatenate([], 0)) == [
        "concatenate: expected one array or more, each with an axis",
        "  got none",
        "  help: reshape scalars to shape (1,)",
    ]
    assert error_of(lambda: lax.pad(x, 0.0, [(-2, -1, 0), (0, 0, 0)])) == [
        "pad: negative padding removes more elements than there are",
        "  got f64[2,3], padding_config=((-2, -1, 0), (0, 0, 0))",
        "  help: low + high + size + (size - 1) * interior must not be negative",
    ]
    assert error_of(lambda: lax.squeeze(x, (0,))) == [
        "squeeze: only axes of size 1 can be dropped",
        "  got f64[2,3], dimensions (0,)",
        "  help: index or reduce the axis instead",
    ]
    assert error_of(lambda: lax.split(x, (1, 1), axis=1)) == [
        "split: the sizes must add up to the size of the axis",
        "  got sizes=(1, 1) for axis 1 of f64[2,3]",
        "  help: tracer.numpy.array_split takes any number of parts",
    ]
    assert error_of(lambda: lax.full((-1,), 0.0)) == [
        "broadcast_in_dim: sizes must not be negative",
        "  got [-1]",
        "  help: pass sizes >= 0",
    ]
    assert error_of(lambda: lax.top_k(x, 4)) == [
        "top_k: k must lie between 0 and the size of the axis",
        "  got k=4 for axis 1 of f64[2,3]",
        "  help: pad the operand, or take a smaller k",
    ]
    assert error_of(lambda: lax.sort((x, x), num_keys=3)) == [
        "sort: num_keys must lie between 1 and the number of operands",
        "  got num_keys=3 for 2",
        "  help: the first num_keys operands are compared, all other operands follow",
    ]
    with pytest.raises(AxisError, match="axis 2 is out of range for 2 axes"):
        lax.cumsum(x, 2)
    with pytest.raises(AxisError, match="repeated axis"):
        lax.reduce_sum(x, (0, -2))
    for axes in ((0,), ()):
        with pytest.raises(DTypeError, match="takes bool, integers"):
            lax.reduce_or(arr([1.0]), axes)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "argmax", "argmin"])
def test_extremes_of_nothing_raise_while_tracing(name: str) -> None:
    empty = array_type(dtypes.F64, (2, 0))
    operand = (1,) if name.startswith("reduce") else 1
    with pytest.raises(ShapeError, match="a reduction over no elements has no value"):
        stage(lambda xs: [getattr(lax, name)(xs[0], operand)], [empty])
    other = (0,) if name.startswith("reduce") else 0
    (type_,) = stage(lambda xs: [getattr(lax, name)(xs[0], other)], [empty]).program.output_types
    assert type_.shape == (0,)


def test_sums_of_short_floats_accumulate_in_float32() -> None:
    for dtype, many in ((np.float16, 5000), (BF16, 1000)):
        x = arr(np.ones(many), dtype)
        assert float(got(lax.reduce_sum(x, (0,)))) == float(np.asarray(many, dtype))
        assert float(got(lax.cumsum(x))[-1]) == float(np.asarray(many, dtype))
        assert got(lax.reduce_prod(x, (0,))).dtype == dtype


def test_integers_wrap_in_sums_and_products() -> None:
    x = arr([100, 100, 3], np.int8)
    assert got(lax.reduce_sum(x, (0,))) == np.int8(-53)
    assert got(lax.reduce_prod(x, (0,))) == np.int8(48)
    np.testing.assert_array_equal(got(lax.cumprod(x)), np.array([100, 16, 48], np.int8))


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64])
def test_minus_zero_is_below_zero_in_every_extreme(dtype: Any) -> None:
    x = arr([[0.0, -0.0, -0.0], [-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0], [-1.0, np.nan, 0.0]], dtype)
    greatest, least = got(lax.reduce_max(x, (1,))), got(lax.reduce_min(x, (1,)))
    np.testing.assert_array_equal(np.signbit(greatest), [False, False, True, False])
    np.testing.assert_array_equal(np.signbit(least), [True, True, True, False])
    assert np.isnan(greatest[3])
    assert np.isnan(least[3])
    np.testing.assert_array_equal(np.signbit(got(lax.cummax(x, 1))[:3]), [[0, 0, 0], [1, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(np.signbit(got(lax.cummin(x, 1))[:3]), [[0, 1, 1], [1, 1, 1], [1, 1, 1]])


HOLDING_0_AND_1 = [dtype for dtype in dtypes.ALL if dtype not in (dtypes.F8E8M0FNU, dtypes.I1)]


@each("dtype", HOLDING_0_AND_1, ids=dtypes.short_name)
def test_structure_and_order_work_in_every_dtype(dtype: Any) -> None:
    values = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    x = arr(values)
    for y, expected in (
        (lax.transpose(x, (1, 0)), values.T), (lax.rev(x, (1,)), values[:, ::-1]),
        (lax.slice(x, (0, 1), (2, 3)), values[:, 1:]), (lax.concatenate([x, x], 0), np.concatenate([values, values])),
        (lax.pad(x, 1, [(1, 0, 0), (0, 0, 0)]), np.concatenate([np.ones((1, 3), dtype), values])),
        (lax.reshape(x, (6,)), values.reshape(6)), (lax.sort(x, 1), np.array([[0, 1, 1], [0, 1, 1]]).astype(dtype)),
        (lax.copy(x), values),
    ):  # fmt: skip
        assert got(y).dtype == dtype
        np.testing.assert_array_equal(got(y), expected)
    if not dtypes.is_complex(dtype):
        np.testing.assert_array_equal(got(lax.argmax(x, 1)), [0, 1])
        np.testing.assert_array_equal(got(lax.reduce_min(x, (0,))), np.array([0, 0, 1]).astype(dtype))
        np.testing.assert_array_equal(got(lax.cummax(x, 1)), np.array([[1, 1, 1], [0, 1, 1]]).astype(dtype))
        np.testing.assert_array_equal(got(lax.top_k(x, 1)[1]), [[0], [1]])


def test_a_sort_is_stable_and_puts_nan_last() -> None:
    x = arr([0.0, np.nan, -0.0, -np.nan, -1.0, 0.0])
    _, order = lax.sort((x, lax.iota(np.dtype(np.int32), 6)))
    np.testing.assert_array_equal(got(order), [4, 0, 2, 5, 1, 3])


def test_keys_pass_through_structural_primitives() -> None:
    words = np.arange(12, dtype=np.uint32).reshape(2, 3, 2)

    def run(xs: list[Any]) -> list[Any]:
        (keys,) = xs
        return [
            lax.broadcast_in_dim(keys, (2, 2, 3), (0, 2)), lax.reshape(keys, (3, 2)), lax.transpose(keys, (1, 0)),
            lax.rev(keys, (0,)), lax.slice(keys, (0, 1), (2, 3)), lax.concatenate([keys, keys], 1),
            lax.split(keys, (1, 2), axis=1)[1], lax.copy(keys), lax.expand_dims(keys, (0,)),
            lax.squeeze(lax.expand_dims(keys, (0,)), (0,)),
        ]  # fmt: skip

    def same(w: Any) -> list[Any]:
        return [
            np.stack([w, w], 1), w.reshape(3, 2, 2), w.transpose(1, 0, 2), w[::-1], w[:, 1:],
            np.concatenate([w, w], 1), w[:, 1:], w, w[None], w,
        ]  # fmt: skip

    program = stage(run, [KeyType((2, 3))]).program
    assert all(isinstance(type_, KeyType) for type_ in program.output_types)
    for value, expected in zip(run_reference(program, [words]), same(words), strict=True):
        np.testing.assert_array_equal(value, expected)
    several = np.stack([words, words + 50])
    batch = batch_program(program, (True,), 2).program
    lanes = zip(same(words), same(words + 50), strict=True)
    for value, expected in zip(run_reference(batch, [several]), lanes, strict=True):
        np.testing.assert_array_equal(value, np.stack(expected))


def test_a_no_op_returns_its_operand() -> None:
    x = arr(np.ones((2, 3)))
    assert lax.moveaxis(x, 1, -1) is x
    assert lax.reshape(x, (2, 3)) is x
    assert lax.transpose(x, (0, 1)) is x
    assert lax.reduce_sum(x, ()) is x
    assert lax.broadcast_in_dim(x, (2, 3), (0, 1)) is x
    assert lax.concatenate([x], 0) is x


def test_batching_along_a_middle_axis_transposes_nothing() -> None:
    inner: list[Type] = [array_type(dtypes.F64, (2, 3))]
    for call in (
        lambda x: lax.broadcast_in_dim(x, (2, 5, 3), (0, 2)), lambda x: lax.reshape(x, (6, 1)),
        lambda x: lax.reduce_sum(x, (1,)), lambda x: lax.rev(x, (0,)), lambda x: lax.cumsum(x, 1),
    ):  # fmt: skip
        program = stage(lambda xs, call=call: [call(xs[0])], inner).program
        (primitive,) = [equation.primitive.name for equation in batch_program(program, (True,), 4).program.equations]
        assert primitive != "transpose"
