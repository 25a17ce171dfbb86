"""Complex functions as loop IR, against mpmath where they are ordinary and NumPy or C99 where they are special."""

from __future__ import annotations

import builtins
import cmath
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.grids import THOROUGH, covering
from tests.schedule.running import agree, run, staged
from tracer.errors import DTypeError
from tracer.ir.primitive import Pointwise
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.primitives.arrays.reductions.reductions import reduce_prod
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import pointwise
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise import complex as parts
from tracer.primitives.elementwise.arithmetic import add, div, max, min, mul, neg, sub
from tracer.primitives.elementwise.comparison import eq, gt, ne, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.powers import pow

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan
DTYPES = (np.complex64, np.complex128)

EXACT: dict[str, Callable[[Any], Any]] = {
    "sqrt": mpmath.sqrt, "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "exp": mpmath.exp, "exp2": lambda z: mpmath.exp(z * mpmath.log(2)), "expm1": lambda z: mpmath.exp(z) - 1,
    "log": mpmath.log, "log2": lambda z: mpmath.log(z) / mpmath.log(2), "log1p": lambda z: mpmath.log(1 + z),
    "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
}  # fmt: skip
CANCELLING = {"expm1": 4.0, "logistic": 4.0}
"""Their real parts vanish along curves: relative to the whole number these are as good as the rest."""
PERIODIC = ("exp", "exp2", "expm1", "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh")

NUMPY: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
SPECIAL = np.array([complex(a, b) for a in (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 40.0, inf, -inf, nan)
                    for b in (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 40.0, inf, -inf, nan)])  # fmt: skip


def staged_by_name(name: str, z: Array) -> Program:
    return staged(lambda x: pointwise(BY_NAME[name], x), [z])


def apply(name: str, z: Array) -> Array:
    return run(staged_by_name(name, z), [z])[0]


def ordinary(name: str, dtype: Any) -> Array:
    """Numbers of all angles, many of size near 1; for functions without a period also huge and tiny ones."""
    rng = np.random.default_rng(5)
    size = np.concatenate([rng.uniform(0.01, 4, 60), 10 ** rng.uniform(-3, 1.5, 40),
                           1 + rng.standard_normal(40) * 10.0 ** rng.uniform(-8, -1, 40)])  # fmt: skip
    angle = np.concatenate([rng.uniform(-3.1, 3.1, 100), rng.choice([0, 1.6, -1.6, 3.1, 1, 2], 40) + 0.01])
    z = size * np.exp(1j * angle)
    if name not in PERIODIC:
        limit = 300 if dtype == np.complex128 else 36
        x, y = (10.0 ** rng.uniform(-limit, limit, 40) * rng.choice([-1, 1], 40) for _ in range(2))
        z = np.concatenate([z, x + 1j * y, 1 + 1j * x[:20], x[20:] + 1j])
    return z.astype(dtype)


def test_every_complex_function_is_compared() -> None:
    arithmetic = {"add", "sub", "mul", "div", "max", "min", "pow", "abs", "neg"}
    functions = {p.name for p in BY_NAME.values() if _takes_complex(p)}
    assert functions - arithmetic == set(EXACT)


def _takes_complex(primitive: Any) -> bool:
    if not isinstance(primitive.lower, Pointwise):
        return False
    try:
        primitive.infer(array_type(np.dtype("complex64"), ()))
    except (DTypeError, TypeError):
        return False
    return True


@pytest.mark.parametrize(("dtype", "name"), covering(DTYPES, EXACT, least=21))
def test_parts_are_right_to_a_few_units_in_the_last_place(name: str, dtype: Any) -> None:
    z = ordinary(name, dtype)
    info = np.finfo(dtype)
    with mpmath.workprec(2500 if name in ("log1p", "atanh", "atan") else 200):
        tried = list(zip(z, apply(name, z), strict=True))[:: 1 if THOROUGH else 3]  # mpmath takes most of the time
        for x, got in tried:
            exact = mpmath.mpc(EXACT[name](mpmath.mpc(complex(x))))
            scale = abs(exact) if name in CANCELLING else None
            for part, wanted in ((got.real, exact.real), (got.imag, exact.imag)):
                unit = builtins.max(abs(wanted) if scale is None else scale, info.tiny) * info.eps
                assert abs(mpmath.mpf(float(part)) - wanted) <= CANCELLING.get(name, 3.5) * unit, (x, got)


@pytest.mark.parametrize(("dtype", "name"), covering(DTYPES, NUMPY, least=15))
def test_special_values_are_those_of_c99(name: str, dtype: Any) -> None:
    """As NumPy has them, but for signs that C99 leaves open: those of what is beside a NaN, and e^(-inf +- i inf)."""
    z = SPECIAL.astype(dtype)
    with np.errstate(all="ignore"):
        expected = NUMPY[name](z)
    if name == "acosh":  # C17 settled what C99 had left open
        expected[(z.real == 0) & np.isnan(z.imag)] = complex(nan, np.pi / 2)
    for x, got, wanted in zip(z, apply(name, z), expected, strict=True):
        open_sign = np.isnan(wanted) or (name == "exp" and x.real == -inf and not np.isfinite(x.imag))
        for a, b in ((got.real, wanted.real), (got.imag, wanted.imag)):
            np.testing.assert_allclose(
                abs(a) if open_sign else a, abs(b) if open_sign else b, rtol=1e-6, err_msg=str(x)
            )
            if not open_sign:
                assert np.signbit(a) == np.signbit(b), (x, got, wanted)


def test_functions_that_numpy_has_wrong_at_infinity() -> None:
    z = np.array([complex(inf, 0.0), complex(-inf, inf), complex(-inf, 2.0), complex(nan, 0.0)])
    np.testing.assert_array_equal(apply("expm1", z), [complex(inf, 0), complex(-1, 0), complex(-1, 0), complex(nan, 0)])
    np.testing.assert_array_equal(apply("logistic", z[:3]), [1, 0, 0])
    np.testing.assert_array_equal(apply("rsqrt", z[:2]), [0, 0])
    assert apply("rsqrt", np.array([0j]))[0].real == inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_large_angles_keep_their_digits(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    z = (rng.uniform(-5, 5, 50) + 1j * rng.choice([-1, 1], 50) * 10.0 ** rng.uniform(1, 6, 50)).astype(dtype)
    with mpmath.workprec(200):
        for x, *found in zip(z, apply(name, z), run_reference(staged_by_name(name, z), [z])[0], strict=True):
            exact = EXACT[name](mpmath.mpc(complex(x)))
            for got in found:
                assert abs(mpmath.mpc(complex(got)) - exact) <= 4 * np.finfo(dtype).eps * abs(exact), (x, found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_exponents_overflow_only_with_the_result(dtype: Any) -> None:
    big = 89.0 if dtype == np.complex64 else 710.0
    z = np.array([complex(big, math.pi / 2 - 0.01), complex(-big, math.pi / 2 - 0.01), complex(big, 1e-3)], dtype)
    for name in ("exp", "sinh", "cosh"):
        got = apply(name, z)
        assert np.isfinite(got.real[0]), name
        with mpmath.workprec(200):
            exact = complex(EXACT[name](mpmath.mpc(complex(z[0]))).real)
        assert abs(got.real[0] - exact.real) < 1e-5 * abs(exact.real)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_is_numpys(dtype: Any) -> None:
    x, y = (g.ravel().astype(dtype) for g in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = [x + y, x - y, x * y, -x, x == y, x != y]
    results = run(staged(lambda a, b: [add(a, b), sub(a, b), mul(a, b), neg(a), eq(a, b), ne(a, b)], [x, y]), [x, y])
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    with np.errstate(all="ignore"):
        quotient = x / y
    got = run(staged(div, [x, y]), [x, y])[0]
    plain = ~np.isnan(quotient)
    np.testing.assert_allclose(got[plain], quotient[plain], rtol=1e-6)
    assert np.isnan(got[~plain]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_neither_overflow_nor_vanish_on_the_way(dtype: Any) -> None:
    large = 1e30 if dtype == np.complex64 else 1e300
    x, y = (
        np.array([large * (1 + 2j), 1 + 1j, 1e-30j], dtype),
        np.array([large * (3 - 1j), large * (1 + 1j), 1e-30], dtype),
    )
    np.testing.assert_allclose(run(staged(div, [x, y]), [x, y])[0], x / y, rtol=1e-6)


def test_magnitudes_do_not_overflow() -> None:
    z = np.array([3e200 + 4e200j, 3e-200 - 4e-200j, complex(inf, nan), complex(nan, 1), 0j, -3 + 4j])
    np.testing.assert_allclose(apply("abs", z), [5e200, 5e-200, inf, nan, 0, 5], rtol=1e-15)


def test_extremes_compare_real_parts_first_and_propagate_nan() -> None:
    x, y = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL))
    results = run(staged(lambda a, b: [max(a, b), min(a, b)], [x, y]), [x, y])
    for got, wanted in zip(results, [np.maximum(x, y), np.minimum(x, y)], strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    z, w = (rng.standard_normal(100) + 1j * rng.standard_normal(100) for _ in range(2))
    z, w = z.astype(dtype), w.astype(dtype)
    exact = np.array([cmath.exp(complex(b) * cmath.log(complex(a))) for a, b in zip(z, w, strict=True)])
    np.testing.assert_allclose(run(staged(pow, [z, w]), [z, w])[0], exact, rtol=40 * np.finfo(dtype).eps)
    z, w = np.array([0, 0, 2, 0], dtype), np.array([0, 2, 0, -1], dtype)
    np.testing.assert_array_equal(run(staged(pow, [z, w]), [z, w])[0].real, [1, 0, 1, nan])


def test_parts_conversions_and_choice_are_fused_like_other_maps() -> None:
    z = np.array([1 + 2j, 0j, complex(0.0, 3.0), complex(nan, 0), complex(-0.0, -0.0)])
    w, keep = np.array([2.5, -1.0, 0.0, 1.0, 3.0]), np.array([True, False, True, False, True])

    def function(z: Any, w: Any, keep: Any) -> list[Any]:
        joined = parts.complex(parts.imag(z), mul(parts.real(z), w))
        changed = [convert_element_type(z, d) for d in ("complex64", "float32", "bool", "int32", "complex128")]
        return [joined, select(keep, z, joined), parts.conj(z), gt(parts.imag(z), w), *changed,
                convert_element_type(w, np.complex64), parts.real(mul(z, 2.0)),
                reduce_sum(parts.imag(z), (0,))]  # fmt: skip

    agree(function, z, w, keep)
    agree(lambda z: [parts.real(z), parts.imag(z), parts.complex(parts.imag(z), parts.real(z)), exp_of(z)], 1.5 - 2j)


def exp_of(z: Any) -> Any:
    return pointwise(BY_NAME["exp"], z)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_rows_and_reductions_take_the_same_formulas(dtype: Any) -> None:
    rng = np.random.default_rng(8)
    z = (rng.standard_normal((3, 37)) + 1j * rng.standard_normal((3, 37))).astype(dtype)
    for name in EXACT if THOROUGH else [*EXACT][DTYPES.index(dtype) :: len(DTYPES)]:
        whole = apply(name, z)
        np.testing.assert_array_equal(apply(name, z[1, :1])[0], whole[1, 0])
        np.testing.assert_array_equal(apply(name, z[1, 0]), whole[1, 0])
    agree(lambda x: [reduce_sum(exp_of(x), (1,)), reduce_prod(x, (0,)), cumsum(x, 1)], z)
