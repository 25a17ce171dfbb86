"""Convolution: values in every form, lowering, both gradients, batches, and lax's spellings of it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer.numpy as tnp
from tests.grids import each
from tests.primitives.linalg.bilinear import check_batch, check_derivatives, check_lowering, draw, program_of, value_of
from tracer import jit, lax, vjp
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.ir import dtypes
from tracer.primitives.linalg import convolution, convolution_phases
from tracer.primitives.linalg.convolution_layouts import (
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    padtype_to_pads,
)


def by_definition(x: Any, y: Any, settings: dict[str, Any]) -> Any:
    """Every term of every sum, one by one."""
    strides, padding = settings["window_strides"], settings["padding"]
    spread, apart = settings["lhs_dilation"], settings["rhs_dilation"]
    feature_groups, batch_groups = settings["feature_group_count"], settings["batch_group_count"]
    batch, outs, into = x.shape[0] // batch_groups, y.shape[0], y.shape[1]
    group = outs // (feature_groups * batch_groups)
    sizes = [
        (n - 1) * d + 1 + low + high if n else low + high
        for n, d, (low, high) in zip(x.shape[2:], spread, padding, strict=True)
    ]
    extents = [(w - 1) * a + 1 for w, a in zip(y.shape[2:], apart, strict=True)]
    places = [
        max(0, (max(n, 0) - e) // s + 1) if max(n, 0) >= e else 0
        for n, e, s in zip(sizes, extents, strides, strict=True)
    ]
    result = np.zeros((batch, outs, *places), x.dtype)
    for n, o, *place in itertools.product(*map(range, result.shape)):
        for i, *tap in itertools.product(range(into), *map(range, y.shape[2:])):
            at = [p * s + t * a - low for p, s, t, a, (low, _) in zip(place, strides, tap, apart, padding, strict=True)]
            source = [divmod(position, d) for position, d in zip(at, spread, strict=True)]
            if any(rest or not 0 <= q < m for (q, rest), m in zip(source, x.shape[2:], strict=True)):
                continue
            lane = n if batch_groups == 1 else (o // group) * batch + n
            feature = i if feature_groups == 1 else (o // group) * into + i
            result[(n, o, *place)] += x[(lane, feature, *(q for q, _ in source))] * y[(o, i, *tap)]
    return result


@st.composite
def convolutions(draws: st.DrawFn) -> tuple[Any, Any, dict[str, Any]]:
    rank = draws(st.integers(0, 3))
    groups, of_batch = draws(st.sampled_from([(1, False), (2, False), (3, False), (2, True)]))
    size = st.integers(1, 2)
    each = lambda low, high: [draws(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    batch, into, outs = draws(size) * (groups if of_batch else 1), draws(size), draws(size) * groups
    x = (batch, into * (1 if of_batch else groups), *each(0, 4))
    y = (outs, into, *each(1, 3))
    rng = np.random.default_rng(draws(st.integers(0, 99)))
    settings = {
        "window_strides": each(1, 3), "padding": list(zip(each(-1, 3), each(-1, 3), strict=True)),
        "lhs_dilation": each(1, 2), "rhs_dilation": each(1, 2),
        "feature_group_count": 1 if of_batch else groups, "batch_group_count": groups if of_batch else 1,
    }  # fmt: skip
    return draw(rng, x, np.float64), draw(rng, y, np.float64), settings


@given(convolutions())
def test_a_convolution_is_its_definition_and_obeys_every_law(case: tuple[Any, Any, dict[str, Any]]) -> None:
    x, y, settings = case
    function = lambda a, b: conv_general_dilated(a, b, **settings)  # noqa: E731
    np.testing.assert_array_equal(value_of(function, x, y), by_definition(x, y, settings))
    check_lowering(function, x, y)
    check_derivatives(function, x, y)
    check_batch(function, x, y)


@each("dtype", [np.int8, np.int64, np.uint16, np.float16, np.float32, np.complex64], ids=str)
def test_every_dtype_computes_in_itself(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    x, y = draw(rng, (2, 3, 6, 5), dtype), draw(rng, (4, 3, 3, 2), dtype)
    function = lambda a, b: conv(a, b, (2, 1), "SAME")  # noqa: E731
    got = value_of(function, x, y)
    assert got.dtype == dtype
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    expected = value_of(function, x.astype(wide), y.astype(wide))
    np.testing.assert_array_equal(got, expected.astype(dtype) if got.dtype.kind in "fc" else expected)
    check_lowering(function, x, y)


def test_short_floats_accumulate_in_single_precision_and_the_preferred_dtype_is_that_of_the_sums() -> None:
    x = np.array([2048.0, 1.0, 1.0, 1.0, 1.0], np.float16).reshape(1, 1, 5)
    ones = np.ones((1, 1, 5), np.float16)
    assert value_of(lambda a, b: conv(a, b, (1,), "VALID"), x, ones) == np.float16(2052)
    wide = value_of(lambda a, b: conv(a, b, (1,), "VALID", preferred_element_type="float32"), x, ones)
    assert (float(wide[0, 0, 0]), wide.dtype) == (2052.0, np.float32)


def test_axes_come_in_any_order() -> None:
    rng = np.random.default_rng(4)
    x, y = draw(rng, (2, 7, 6, 3), np.float64), draw(rng, (3, 2, 3, 4), np.float64)
    numbers = ("NHWC", "HWIO", "NHWC")
    function = lambda a, b: conv_general_dilated(a, b, (1, 2), "SAME", dimension_numbers=numbers)  # noqa: E731
    got = value_of(function, x, y)
    plain = value_of(lambda a, b: conv(a, b, (1, 2), "SAME"), x.transpose(0, 3, 1, 2), y.transpose(3, 2, 0, 1))
    np.testing.assert_array_equal(got, plain.transpose(0, 2, 3, 1))
    check_derivatives(function, x, y)
    check_batch(function, x, y)
    swapped = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NWCH", "IHWO", "CHNW"))
    assert swapped == ((0, 2, 3, 1), (3, 0, 1, 2), (2, 0, 1, 3))


@pytest.mark.parametrize(
    ("name", "pads"),
    [("VALID", ((0, 0),)), ("SAME", ((1, 2),)), ("SAME_LOWER", ((2, 1),)), ("same", ((1, 2),))],
)
def test_padding_has_names(name: str, pads: Any) -> None:
    assert padtype_to_pads((6,), (5,), (2,), name) == pads


def test_the_transpose_of_a_convolution_is_conv_transpose_with_the_kernel_transposed() -> None:
    rng = np.random.default_rng(5)
    x, y = draw(rng, (2, 8, 6, 3), np.float64), draw(rng, (3, 3, 3, 4), np.float64)
    numbers = ("NHWC", "HWIO", "NHWC")
    value = value_of(lambda a, b: conv_general_dilated(a, b, (2, 2), "SAME", dimension_numbers=numbers), x, y)
    w = draw(rng, value.shape, np.float64)
    back = value_of(lambda a, b: conv_transpose(a, b, (2, 2), "SAME", transpose_kernel=True), w, y)
    assert back.shape == x.shape
    np.testing.assert_array_equal(np.sum(value * w), np.sum(x * back))


def test_conv_transpose_with_consistent_padding_undoes_the_shape() -> None:
    x, y = np.ones((1, 9, 2)), np.ones((3, 2, 2))
    forward = value_of(
        lambda a, b: conv_general_dilated(a, b, (2,), [(1, 1)], dimension_numbers=("NHC", "HIO", "NHC")), x, y
    )
    back = value_of(
        lambda a, b: conv_transpose(a, b, (2,), [(1, 1)], use_consistent_padding=True), np.ones(forward.shape), y
    )
    assert back.shape == x.shape


X, Y = np.ones((2, 4, 5, 5)), np.ones((6, 4, 3, 3))


@each(
    ("error", "pattern", "call", "x", "y"),
    [
        (ShapeError, "same number of axes", lambda a, b: conv(a, b, (1, 1), "SAME"), X, np.ones((6, 4, 3))),
        (ShapeError, "feature_group_count times as many", lambda a, b: conv(a, b, (1, 1), "SAME"), X, Y[:, :3]),
        (ShapeError, "must divide into the groups",
         lambda a, b: conv_general_dilated(a, b, (1, 1), "SAME", feature_group_count=4), X, Y[:, :1]),
        (ShapeError, "lhs's batch must divide",
         lambda a, b: conv_general_dilated(a, b, (1, 1), "SAME", batch_group_count=3), X, Y),
        (ArgumentError, "only one of", lambda a, b: conv_general_dilated(
            a, b, (1, 1), "SAME", feature_group_count=2, batch_group_count=2), X, Y),
        (ArgumentError, "unknown padding 'FULL'", lambda a, b: conv(a, b, (1, 1), "FULL"), X, Y),
        (ArgumentError, "one pair for every spatial axis", lambda a, b: conv(a, b, (1, 1), [(1, 1)]), X, Y),
        (ArgumentError, "window_strides has one positive integer", lambda a, b: conv(a, b, (1,), "SAME"), X, Y),
        (ArgumentError, "window_strides has one positive integer", lambda a, b: conv(a, b, (0, 1), "SAME"), X, Y),
        (ArgumentError, "does not say where a dilated lhs begins",
         lambda a, b: conv_with_general_padding(a, b, (1, 1), "SAME", (2, 2), None), X, Y),
        (ArgumentError, "must be three strings",
         lambda a, b: conv_general_dilated(a, b, (1, 1), "SAME", dimension_numbers="NCHW"), X, Y),
        (ArgumentError, "name every axis once",
         lambda a, b: conv_general_dilated(a, b, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHH", "NCHW")), X, Y),
        (DTypeError, "equal dtypes", lambda a, b: conv(a, b, (1, 1), "SAME"), X > 0, Y),
        (DTypeError, "got f32 for products of f64",
         lambda a, b: conv(a, b, (1, 1), "SAME", preferred_element_type=np.float32), X, Y),
        (DTypeError, "got u32 for products of i32", lambda a, b: conv(
            a, b, (1, 1), "SAME", preferred_element_type=np.uint32), X.astype(np.int32), Y.astype(np.int32)),
    ],
)  # fmt: skip
def test_mistakes_are_told(error: type[Exception], pattern: str, call: Any, x: Any, y: Any) -> None:
    with pytest.raises(error, match=pattern):
        program_of(call, x, y)


@pytest.mark.parametrize(
    ("sizes", "window", "strides", "padding", "groups"),
    [
        ((16, 16), (3, 3), (2, 2), ((1, 1), (1, 1)), 1),
        ((9, 7), (3, 5), (2, 3), ((0, 2), (2, 1)), 2),
        ((11,), (7,), (3,), ((4, 2),), 1),
        ((10,), (5,), (2,), ((-1, -2),), 3),
        ((8, 6), (3, 2), (2, 1), ((1, 0), (0, 1)), 1),
        ((5, 6, 4), (3, 3, 3), (2, 2, 2), ((1, 1), (0, 1), (1, 0)), 1),
        ((6, 6), (5, 5), (4, 4), ((2, 2), (2, 2)), 1),
    ],
)
def test_phases_apart_and_as_features_are_equal(
    sizes: Any, window: Any, strides: Any, padding: Any, groups: int
) -> None:
    rng, rank = np.random.default_rng(0), len(sizes)
    lhs = tnp.asarray(rng.standard_normal((2, 2 * groups, *sizes)))
    rhs = tnp.asarray(rng.standard_normal((3 * groups, 2, *window)))
    given = {"lhs_dilation": (1,) * rank, "rhs_dilation": (1,) * rank, "feature_groups": groups}
    ct = convolution.conv(lhs, rhs, strides=strides, padding=padding, preferred_element_type=dtypes.F64, **given)
    weights = rhs.reshape(groups, 3, 2, *window).swapaxes(1, 2).reshape(2 * groups, 3, *window)
    params = {
        **given, "strides": strides, "padding": padding, "batch_groups": 1, "precision": None,
        "preferred_element_type": dtypes.F64,
    }  # fmt: skip
    apart = convolution_phases._phase_by_phase(convolution.conv, ct, sizes, weights, params)
    at_once = convolution_phases._as_features(convolution.conv, ct, sizes, weights, params)
    np.testing.assert_allclose(apart, at_once, rtol=1e-13, atol=1e-13)
    assert float(tnp.vdot(apart, lhs)) == pytest.approx(float(tnp.vdot(ct, ct)), rel=1e-12)


def test_a_gradient_by_strides_that_the_window_does_not_fill_multiplies_no_zeros() -> None:
    x, w = tnp.zeros((8, 16, 40, 40), "float32"), tnp.zeros((16, 16, 3, 3), "float32")
    y, back = vjp(lambda x: lax.conv_general_dilated(x, w, (2, 2), [(1, 1), (1, 1)]), x)
    products = jit(back).lower(y).cost().flops / 2
    assert products == pytest.approx(y.size * 16 * 9, rel=0.03)
