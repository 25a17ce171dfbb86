"""Elementwise primitives at the values where meanings differ, their conventions for derivatives, and their errors."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.ir.primitive import Composite
from tracer.ir.types import array_type
from tracer.primitives.base.reference import reference_outputs, run_reference
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.elementwise.arithmetic import clamp, div, max, min
from tracer.primitives.elementwise.bits import population_count, shift_left, shift_right_arithmetic, shift_right_logical
from tracer.primitives.elementwise.comparison import lt, select, select_n
from tracer.primitives.elementwise.complex import abs, complex, conj, sign
from tracer.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type, converted
from tracer.primitives.elementwise.exponential import log1p, logistic
from tracer.primitives.elementwise.hyperbolic import acosh, asinh, tanh
from tracer.primitives.elementwise.powers import hypot, integer_pow, pow, sqrt
from tracer.primitives.elementwise.precision import reduce_precision
from tracer.primitives.elementwise.rounding import RoundingMethod, nextafter, rem, round
from tracer.primitives.elementwise.special import digamma, lgamma, polygamma
from tracer.primitives.elementwise.trigonometric import asin, atan2
from tracer.trace.stage import stage
from tracer.transforms.jvp import jvp_program

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
BF16 = np.dtype(ml_dtypes.bfloat16)


def run(function: Callable[..., Any], *xs: Any) -> Array:
    arrays = [np.asarray(x) for x in xs]
    staged = stage(lambda inputs: [function(*inputs)], [array_type(x.dtype, x.shape) for x in arrays])
    return np.asarray(run_reference(staged.program, arrays)[0])


def slopes(function: Callable[..., Any], *xs: Any) -> list[Any]:
    """The derivative by each operand, others held."""
    arrays = [np.asarray(x) for x in xs]
    program = stage(lambda inputs: [function(*inputs)], [array_type(x.dtype, x.shape) for x in arrays]).program
    result = []
    for position, x in enumerate(arrays):
        active = tuple(i == position for i in range(len(arrays)))
        derived = jvp_program(program, active, True)
        result.append(run_reference(derived.program, [*arrays, np.ones_like(x)])[1])
    return result


def bits(values: Any) -> list[str]:
    """Values with the signs of zeros and without the payloads of NaN."""
    return [repr(float(v)) for v in np.ravel(values)]


# Values


def test_integer_division_has_tabled_results() -> None:
    low = -(2**31)
    x, y = np.array([7, -7, 5, low, low, 0], np.int32), np.array([2, 2, 0, -1, 0, 0], np.int32)
    np.testing.assert_array_equal(run(div, x, y), [3, -3, -1, low, -1, -1])
    np.testing.assert_array_equal(run(rem, x, y), [1, -1, 5, 0, low, 0])
    np.testing.assert_array_equal(run(div, np.uint8([5, 200]), np.uint8([0, 3])), [255, 66])


def test_shifts_by_the_width_or_more_leave_nothing_but_the_sign() -> None:
    x, count = np.array([-5, -5, 5, -5, -5], np.int8), np.array([1, 8, 8, -1, 127], np.int8)
    np.testing.assert_array_equal(run(shift_left, x, count), [-10, 0, 0, 0, 0])
    np.testing.assert_array_equal(run(shift_right_logical, x, count), [125, 0, 0, 0, 0])
    np.testing.assert_array_equal(run(shift_right_arithmetic, x, count), [-3, -1, 0, -1, -1])
    np.testing.assert_array_equal(run(shift_right_arithmetic, np.uint8([200]), np.uint8([1])), [228])


def test_population_count_of_a_negative_integer_counts_its_bits() -> None:
    np.testing.assert_array_equal(run(population_count, np.array([-1, -2, 0], np.int16)), [16, 15, 0])


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64], ids=str)
def test_max_and_min_order_zeros_and_propagate_nan(dtype: Any) -> None:
    x = np.array([0.0, -0.0, -0.0, nan, 1.0, inf]).astype(dtype)
    y = np.array([-0.0, 0.0, -0.0, 1.0, nan, 2.0]).astype(dtype)
    assert bits(run(max, x, y)) == ["0.0", "0.0", "-0.0", "nan", "nan", "inf"]
    assert bits(run(min, x, y)) == ["-0.0", "-0.0", "-0.0", "nan", "nan", "2.0"]


def test_max_of_complex_numbers_compares_real_parts_first() -> None:
    x, y = np.array([1 + 5j, 2 + 1j, nan + 0j]), np.array([1 + 2j, 1 + 9j, 1 + 0j])
    np.testing.assert_array_equal(run(max, x, y), [1 + 5j, 2 + 1j, nan])
    np.testing.assert_array_equal(run(min, x, y), [1 + 2j, 1 + 9j, nan])


def test_sign_keeps_zeros_and_nan() -> None:
    assert bits(run(sign, np.array([0.0, -0.0, nan, -inf, 3.0]))) == ["0.0", "-0.0", "nan", "-1.0", "1.0"]
    np.testing.assert_array_equal(run(sign, np.uint8([0, 3])), [0, 1])
    np.testing.assert_array_equal(run(sign, np.array([3 + 4j, 0j])), [0.6 + 0.8j, 0])


def test_round_has_both_ways_for_halves() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994, -0.2, inf, nan, 2.0**52 + 1])
    away = ["1.0", "2.0", "3.0", "-1.0", "-3.0", "0.0", "-0.0", "inf", "nan", "4503599627370497.0"]
    even = ["0.0", "2.0", "2.0", "-0.0", "-2.0", "0.0", "-0.0", "inf", "nan", "4503599627370497.0"]
    assert bits(run(round, x)) == away
    assert bits(run(lambda a: round(a, RoundingMethod.TO_NEAREST_EVEN), x)) == even


def test_clamp_takes_bounds_without_axes_and_propagates_nan() -> None:
    x = np.array([-1.0, 0.5, 9.0, nan])
    np.testing.assert_array_equal(run(lambda a: clamp(0.0, a, 1.0), x), [0, 0.5, 1, nan])
    np.testing.assert_array_equal(run(clamp, np.asarray(0.0), x, np.asarray(1.0)), [0, 0.5, 1, nan])
    np.testing.assert_array_equal(run(clamp, np.asarray(nan), x[:1], np.asarray(1.0)), [nan])


def test_floats_saturate_on_their_way_to_integers() -> None:
    x = np.array([nan, inf, -inf, 1e30, -1e30, -1.9, 255.9, 127.5])
    np.testing.assert_array_equal(converted(x, np.dtype("int8")), [0, 127, -128, 127, -128, -1, 127, 127])
    np.testing.assert_array_equal(converted(x, np.dtype("uint8")), [0, 255, 0, 255, 0, 0, 255, 127])
    for dtype in (np.dtype("int64"), np.dtype("uint64"), np.dtype("int32")):
        limits = np.iinfo(dtype)
        edge = np.float32(limits.max)  # rounds up, beyond the end
        got = converted(np.array([edge, np.nextafter(edge, np.float32(0)), -edge * 2], np.float32), dtype)
        inside = int(np.nextafter(edge, np.float32(0)))
        assert [int(v) for v in got] == [limits.max, inside, limits.min]


@given(st.floats(-6e4, 6e4), st.integers(-3, 3))
def test_a_wide_float_rounds_once_to_a_short_one(near: float, ulps: int) -> None:
    """Neighbours of ties of the short format are where rounding by way of f32 goes wrong."""
    for dtype in (np.dtype(np.float16), BF16):
        below = np.float32(near).astype(dtype)
        above = np.nextafter(below, dtype.type(inf))
        x = (float(below) + float(above)) / 2
        for _ in range(builtins.abs(ulps)):
            x = math.nextafter(x, math.copysign(inf, ulps))
        got = converted(np.asarray(x), dtype)
        if ulps:
            assert float(got) == float(below if ulps < 0 else above)
        else:
            assert float(got) in (float(below), float(above))
            assert got.view(np.uint16) % 2 == 0


@given(st.integers(-(2**63), 2**64 - 1))
def test_a_wide_integer_rounds_once_to_a_short_float(value: int) -> None:
    dtype = np.dtype("uint64") if value >= 2**63 else np.dtype("int64")
    got = converted(np.asarray(value, dtype), BF16)
    neighbours = [np.nextafter(got, BF16.type(side)) for side in (inf, -inf)]
    error = value - Fraction(float(got))
    for other in neighbours:
        further = value - Fraction(float(other))
        assert error * error <= further * further


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_a_wide_integer_next_to_a_tie_rounds_to_its_own_side(dtype: str) -> None:
    top = 2**60 if dtype != "int32" else 2**30
    for sign_of in (1, -1) if dtype != "uint64" else (1,):
        for off, expected in ((1, top + top // 128), (-1, top), (0, top)):
            got = converted(np.asarray(sign_of * (top + top // 256 + off), dtype), BF16)
            assert int(got) == sign_of * expected


def test_a_complex_number_is_true_unless_both_parts_are_zero() -> None:
    np.testing.assert_array_equal(run(lambda x: convert_element_type(x, bool), np.array([0j, 1j, nan])), [0, 1, 1])


@pytest.mark.parametrize(("words", "floats"), [("uint16", "float16"), ("uint32", "float32"), ("uint64", "float64")])
def test_bitcast_keeps_the_payload_of_nan(words: str, floats: str) -> None:
    limits = np.finfo(floats)
    infinity = np.array(np.inf, floats).view(words)
    payloads = infinity + np.arange(1, 100).astype(words) * np.array(2 ** (limits.nmant - 7), words)
    payloads = np.concatenate([payloads, infinity + np.array([1, 2, 3], words)])  # the last ones signal
    cast = tracer.jit(lambda x: bitcast_convert_type(x, floats))
    for found in (bitcast_convert_type(tnp.asarray(payloads), floats), cast(payloads)):
        np.testing.assert_array_equal(np.asarray(found).view(words), payloads)


def test_bitcast_to_another_width_adds_or_takes_the_last_axis() -> None:
    x = np.array([[0x0102030405060708, -1]], np.int64)
    narrow = run(lambda a: bitcast_convert_type(a, np.uint8), x)
    assert narrow.shape == (1, 2, 8)
    np.testing.assert_array_equal(narrow[0, 0], [8, 7, 6, 5, 4, 3, 2, 1])
    np.testing.assert_array_equal(run(lambda a: bitcast_convert_type(a, np.int64), narrow), x)


def test_reduce_precision_to_a_format_is_the_cast_there_and_back_for_normal_numbers() -> None:
    x = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    for dtype, fields in ((np.dtype(np.float16), (5, 10)), (BF16, (8, 7))):
        got = run(lambda a, f=fields: reduce_precision(a, *f), x)
        np.testing.assert_array_equal(got, x.astype(dtype).astype(np.float32))


def test_reduce_precision_flushes_what_the_format_holds_denormalised() -> None:
    x = np.array([2.0**-6, -(2.0**-6), 0.015, -0.008, 0.0155, 247.0, 248.0, -1e9])
    got = run(lambda a: reduce_precision(a, 4, 3), x)
    assert bits(got) == ["0.015625", "-0.015625", "0.0", "-0.0", "0.015625", "240.0", "inf", "-inf"]


def test_nextafter_of_equal_zeros_is_the_second() -> None:
    for dtype in (np.float16, BF16, np.float32):
        got = run(nextafter, np.array([0.0, -0.0, 1.0]).astype(dtype), np.array([-0.0, 0.0, nan]).astype(dtype))
        assert bits(got) == ["-0.0", "0.0", "nan"]


def test_integer_powers_wrap_and_reciprocals_are_of_the_power() -> None:
    np.testing.assert_array_equal(run(lambda x: integer_pow(x, 8), np.int8([3, -2])), [-95, 0])
    np.testing.assert_array_equal(run(lambda x: integer_pow(x, -2), np.array([2.0, 0.0])), [0.25, inf])
    np.testing.assert_array_equal(run(lambda x: integer_pow(x, 0), np.array([nan, 0.0])), [1, 1])


def test_pow_casts_an_integer_exponent() -> None:
    got = run(pow, np.float32([2.0, -3.0]), np.int64([10, 3]))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [1024, -27])


def test_select_takes_scalars_on_either_side_and_a_selector_without_axes() -> None:
    pred, x = np.array([True, False]), np.float32([1, 2])
    np.testing.assert_array_equal(run(lambda p, a: select(p, a, 0.0), pred, x), np.float32([1, 0]))
    np.testing.assert_array_equal(run(lambda p, a: select(p, 7, a), np.asarray(True), x), np.float32([7, 7]))
    np.testing.assert_array_equal(run(select, np.asarray(False), x, x + 1), x + 1)
    np.testing.assert_array_equal(run(lambda p, a: select_n(p, a, 5.0), pred, x), np.float32([5, 2]))


def test_select_n_takes_the_ends_for_selectors_beyond_them() -> None:
    which = np.array([-3, 0, 1, 2, 9], np.int32)
    np.testing.assert_array_equal(run(lambda w: select_n(w, 10, 20, 30), which), [10, 10, 20, 30, 30])
    lower = BY_NAME["select_n"].lower
    assert isinstance(lower, Composite)
    cases = [np.full(5, float(v)) for v in (10, 20, 30)]
    np.testing.assert_array_equal(run(lower.expand, which, *cases), [10, 10, 20, 30, 30])


def test_a_real_number_conjugates_to_a_complex_one() -> None:
    got = run(conj, np.float32([1.5]))
    assert got.dtype == np.complex64
    np.testing.assert_array_equal(got, [1.5])


def test_complex_keeps_infinite_parts() -> None:
    got = run(complex, np.array([inf, 1.0]), np.array([1.0, inf]))
    np.testing.assert_array_equal(got.real, [inf, 1])
    np.testing.assert_array_equal(got.imag, [1, inf])


@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("form", ["reference", "expansion"])
def test_polygamma_agrees_with_mpmath(order: int, form: str) -> None:
    x = np.array([0.01, 0.3, 0.5, 0.7, 1.0, 2.5, 9.0, 40.0, 1e5, -0.3, -0.75, -5.4])
    lower = BY_NAME["polygamma"].lower
    assert isinstance(lower, Composite)
    if form == "reference":
        got = reference_outputs(BY_NAME["polygamma"], [x], {"order": order})[0]
    else:
        got = run(lambda a: lower.expand(a, order=order), x)
    expected = [float(mpmath.polygamma(order, mpmath.mpf(v))) for v in x.tolist()]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_gamma_functions_at_their_poles() -> None:
    x = np.array([0.0, -0.0, -1.0, -inf, inf, nan])
    assert bits(run(lgamma, x)) == ["inf", "inf", "inf", "inf", "inf", "nan"]
    assert bits(run(digamma, x)) == ["nan", "nan", "nan", "nan", "inf", "nan"]
    assert bits(run(lambda a: polygamma(1, a), x[:3])) == ["inf", "inf", "inf"]


def test_complex_log1p_keeps_small_real_parts() -> None:
    z = np.array([1e-10 + 1e-10j, -1e-12 + 1e-6j])
    with mpmath.workdps(40):
        expected = [builtins.complex(mpmath.log(1 + mpmath.mpc(v))) for v in z.tolist()]
    got = run(log1p, z)
    np.testing.assert_allclose(got.real, np.real(expected), rtol=1e-14)
    np.testing.assert_allclose(got.imag, np.imag(expected), rtol=1e-14)


# Conventions for derivatives


CONVENTIONS: list[tuple[Callable[..., Any], Sequence[Any], Sequence[float]]] = [
    (max, (1.0, 1.0), (0.5, 0.5)),
    (min, (0.0, -0.0), (0.5, 0.5)),
    (max, (1.0, 2.0), (0.0, 1.0)),
    (abs, (0.0,), (0.0,)),
    (abs, (-2.0,), (-1.0,)),
    (pow, (0.0, 0.0), (0.0, 0.0)),
    (pow, (0.0, 1.0), (1.0, 0.0)),
    (pow, (0.0, 2.0), (0.0, 0.0)),
    (pow, (-2.0, 2.0), (-4.0, nan)),
    (hypot, (0.0, 0.0), (0.0, 0.0)),
    (sqrt, (0.0,), (inf,)),
    (rem, (7.5, 2.0), (1.0, -3.0)),
    (rem, (-7.5, 2.0), (1.0, 3.0)),
    (rem, (1.0, inf), (1.0, 0.0)),
    (clamp, (0.0, 0.5, 1.0), (0.0, 1.0, 0.0)),
    (clamp, (0.0, -3.0, 1.0), (1.0, 0.0, 0.0)),
    (clamp, (0.0, 3.0, 1.0), (0.0, 0.0, 1.0)),
    (clamp, (2.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    (lambda x: integer_pow(x, 0), (0.0,), (0.0,)),
    (lambda x: integer_pow(x, 1), (0.0,), (1.0,)),
    (round, (0.7,), (0.0,)),
    (sign, (2.0,), (0.0,)),
]


@each(("function", "xs", "expected"), CONVENTIONS)
def test_derivatives_at_kinks_follow_the_convention(
    function: Callable[..., Any], xs: Sequence[Any], expected: Sequence[float]
) -> None:
    np.testing.assert_array_equal(slopes(function, *xs), expected)


EXTREMES: list[tuple[Callable[..., Any], Sequence[float], Sequence[float]]] = [
    (atan2, (3e200, 4e200), (4 / 25 * 1e-200, -3 / 25 * 1e-200)),
    (atan2, (3e-200, 4e-200), (4 / 25 * 1e200, -3 / 25 * 1e200)),
    (asinh, (1e300,), (1e-300,)),
    (acosh, (1e300,), (1e-300,)),
    (asin, (1 - 2.0**-52,), (1 / math.sqrt(2.0**-51),)),
    (hypot, (3e200, 4e200), (0.6, 0.8)),
    (tanh, (1e-200,), (1.0,)),
    (logistic, (-800.0,), (0.0,)),
    (log1p, (1e-300,), (1.0,)),
]


@each(("function", "xs", "expected"), EXTREMES)
def test_derivatives_stay_accurate_at_the_extremes(
    function: Callable[..., Any], xs: Sequence[float], expected: Sequence[float]
) -> None:
    np.testing.assert_allclose(slopes(function, *xs), expected, rtol=1e-14)


def test_the_derivative_of_a_complex_magnitude_is_real_and_0_at_0() -> None:
    (slope,) = slopes(abs, np.array([3 + 4j, 0j]))
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope, [0.6, 0.0])


def test_acosh_of_a_complex_number_has_its_derivative_in_the_left_half_plane_too() -> None:
    z = np.array([-2 + 0.5j, -0.3 - 2j])
    with mpmath.workdps(30):
        expected = [builtins.complex(mpmath.diff(mpmath.acosh, mpmath.mpc(v))) for v in z.tolist()]
    np.testing.assert_allclose(slopes(acosh, z)[0], expected, rtol=1e-13)


# Errors


def raised(function: Callable[..., Any], *xs: Array) -> str:
    with pytest.raises((ArgumentError, DTypeError, ShapeError)) as caught:
        run(function, *xs)
    return re.sub(r" at \S+:\d+", " at <line>", str(caught.value))


def test_errors_name_the_operation_the_place_and_the_remedy() -> None:
    f, i, b, c = np.float32([1]), np.int32([1]), np.array([True]), np.complex64([1])
    assert raised(lt, c, c) == (
        "lt at <line> takes bool, integers, floats\n  got c64[1]\n  help: take its .real, .imag or abs(...)"
    )
    assert raised(select, f, f, f) == (
        "select at <line>: the predicate must be bool\n  got f32[1]\n  help: compare it: x != 0"
    )
    assert raised(select, b, np.float32([1, 2]), np.float32([1, 2])) == (
        "select at <line>: the selector must have the shape of the cases, or none\n"
        "  got a selector bool[1] for cases f32[2]\n  help: broadcast the selector to the shape of the cases"
    )
    assert raised(lambda p, x: select_n(p, x, x, x), b, f) == (
        "select_n at <line>: a bool selects between two cases\n  got 3\n"
        '  help: select with an integer, which.astype("int32")'
    )
    assert raised(lambda x: select_n(x, x, x), f) == (
        "select_n at <line>: the selector must be bool or an integer\n  got f32[1]\n"
        '  help: cast it, which.astype("int32"), or compare it'
    )
    assert raised(lambda x: integer_pow(x, -1), i) == (
        "integer_pow at <line>: integers have no negative powers\n"
        "  got i32[1] to the power -1\n  help: cast it to a float with .astype(...)"
    )
    assert raised(lambda x: bitcast_convert_type(x, np.int64), f) == (
        "bitcast_convert_type at <line>: the last axis must hold the 8 bytes of one result\n"
        "  got f32[1] to i64\n  help: reshape it so that the last axis has size 2"
    )
    assert raised(lambda x: bitcast_convert_type(x, np.int64), c) == (
        "bitcast_convert_type at <line>: dtypes must be integers or floats of whole bytes\n"
        "  got c64[1] to i64\n  help: convert with .astype(...), or take real and imaginary parts first"
    )
    assert raised(lambda x: convert_element_type(x, "text"), f).startswith(
        "convert_element_type at <line>: no such dtype\n  got 'text'\n  help: the dtypes are bool, int8 to int64"
    )
    assert raised(lambda x: reduce_precision(x, 0, 3), f) == (
        "reduce_precision at <line>: expected at least 1 exponent bit and 0 mantissa bits\n"
        "  got exponent_bits=0, mantissa_bits=3\n  help: bfloat16 is 8 and 7, float16 is 5 and 10"
    )
    assert raised(complex, np.float16([1]), np.float16([1])) == (
        "complex at <line>: the parts must be f32 or f64\n  got f16[1]\n  help: cast with .astype(...)"
    )
    assert raised(lambda x: round(x, 5), f) == (
        "round at <line>: no such rounding method\n  got 5\n"
        "  help: RoundingMethod.AWAY_FROM_ZERO or RoundingMethod.TO_NEAREST_EVEN"
    )
    assert raised(lambda x: polygamma(-1, x), f) == (
        "polygamma at <line>: the order must be 1 or more, and at most 170: f64 holds no larger factorial\n"
        "  got -1\n  help: order 0 is digamma"
    )
