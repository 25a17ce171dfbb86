"""How far results may lie apart: one table by dtype, and what is wider than that, with the reason.

A primitive that is not in `TOLERANCES` must agree bit for bit, all NaNs alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.laws.values import Array, limits
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.primitives.linalg.least_squares import LEAST_SQUARES
from tracer.primitives.linalg.orthogonal import ORTHOGONAL
from tracer.primitives.linalg.similarity import SIMILARITY
from tracer.primitives.linalg.spectral import SPECTRAL
from tracer.primitives.linalg.tridiagonal_solve import TRIDIAGONAL_SOLVES

DECOMPOSITIONS: Final = tuple(
    p.name for p in (*ORTHOGONAL, *SPECTRAL, *SIMILARITY, *TRIDIAGONAL_SOLVES, *LEAST_SQUARES)
)

# The distance of neighbouring floats at 1.
EPSILON: Final[dict[DType, float]] = {
    dtypes.F16: 2.0**-10, dtypes.BF16: 2.0**-7, dtypes.F32: 2.0**-23, dtypes.F64: 2.0**-52,
}  # fmt: skip

# The unit of every tolerance, in epsilons, by dtype: f16 and bf16 compute in f32 and round once at the end.
UNITS: Final[dict[DType, float]] = {dtypes.F16: 1.0, dtypes.BF16: 1.0, dtypes.F32: 1.0, dtypes.F64: 1.0}

# Derivatives against differences of fourth order, in float64; see `differences`.
DIFFERENCE: Final = 2e-7
# <Jv, w> against <v, J^T w>, relative to the sum of the magnitudes of the products.
ADJOINT: Final = 1e-11


@dataclass(frozen=True, slots=True)
class Tolerance:
    """units: how many epsilons, relative to the result (for sums: to the sum of the magnitudes).

    absolute: in epsilons of 1, where a result near zero has lost its digits. of_terms: the results are sums.
    near_poles: relative to the result's square where it is large, for what is the reciprocal of a small difference.
    """

    units: float
    why: str
    absolute: float = 0.0
    of_terms: bool = False
    near_poles: bool = False


_FUNCTION = "SciPy's and NumPy's are up to 2 ulp off, ours as well"
_COMPLEX = "complex functions are composed of real ones, and lose digits where parts cancel: relative to the modulus"
_SUMS = "the order of the sum differs"
_PRODUCTS = "the order of the sum differs; large products of bf16 take subnormal numbers for zeros where machines do"
_SOLVES = "sums in another order, and reciprocals in place of divisions; matrices are well-conditioned, and of size 1"
_ITERATED = "NumPy computes f32 in f64; a rounding error for every row, relative to the largest of up to 33 values"
_REAL_FUNCTIONS = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log1p logistic pow "
    "cbrt rsqrt hypot erf erf_inv"
)

TOLERANCES: Final[dict[str, Tolerance]] = {
    **{name: Tolerance(4, _FUNCTION) for name in _REAL_FUNCTIONS.split()},
    "erfc": Tolerance(512, "SciPy's loses up to 8 bits in the tail; ours is held to 1 ulp in tests/schedule"),
    "lgamma": Tolerance(4, "bounded absolutely near its roots at 1 and 2", absolute=4),
    "digamma": Tolerance(
        16,
        "SciPy's is 6 ulp off between the poles, 83 beside them; bounded absolutely near its roots",
        absolute=16,
        near_poles=True,
    ),
    "polygamma": Tolerance(64, "a series of powers, each rounded", absolute=4),
    "reduce_sum": Tolerance(8, _SUMS, of_terms=True),
    "reduce_window_sum": Tolerance(8, _SUMS, of_terms=True),
    "cumsum": Tolerance(8, _SUMS, of_terms=True),
    "reduce_prod": Tolerance(40, "a rounding error for every factor"),
    "cumprod": Tolerance(40, "a rounding error for every factor"),
    "cumlogsumexp": Tolerance(32, "a rounding error for every step", absolute=16),
    "dot_general": Tolerance(8, _PRODUCTS, of_terms=True),
    "conv": Tolerance(8, _SUMS, of_terms=True),
    "row_products": Tolerance(8, _SUMS, of_terms=True),
    "triangular_solve": Tolerance(256, _SOLVES, absolute=64),
    "cholesky": Tolerance(64, _SOLVES, absolute=64),
    "solve": Tolerance(512, _SOLVES, absolute=256),
    "lu": Tolerance(256, _SOLVES, absolute=64),
    "fft": Tolerance(8, "sums in another order, of up to a thousand terms of size 1", absolute=256),
    **{name: Tolerance(2048, _ITERATED, absolute=2048) for name in DECOMPOSITIONS},
    "scatter_add": Tolerance(8, _SUMS, of_terms=True),
    "scatter_mul": Tolerance(16, "a rounding error for every factor"),
}

_COMPLEX_FUNCTIONS = "sqrt rsqrt exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"

# Complex arithmetic beyond parts: name -> the same, where an operand is complex.
COMPLEX_TOLERANCES: Final[dict[str, Tolerance]] = {
    **{name: Tolerance(16, _COMPLEX) for name in _COMPLEX_FUNCTIONS.split()},
    "logistic": Tolerance(16, _COMPLEX, near_poles=True),
    "exp2": Tolerance(1024, "NumPy's is exp(z log 2): the product's error grows by |z log 2|, which may be 745"),
    "pow": Tolerance(1024, "exp(y log x): the logarithm's error grows by |y log x|, which may be 745"),
    "mul": Tolerance(4, _COMPLEX),
    "square": Tolerance(4, _COMPLEX),
    "integer_pow": Tolerance(64, _COMPLEX),
    "div": Tolerance(8, _COMPLEX),
    "abs": Tolerance(4, "hypot"),
    "sign": Tolerance(8, "hypot, and a division"),
    "reduce_window_max": Tolerance(0, "of several NaN in a window, one"),
    "reduce_window_min": Tolerance(0, "of several NaN in a window, one"),
}


# Programs around a primitive, and equations that a pass or a composite lowering writes in others.
COMPOSED: Final = Tolerance(64, "several roundings, and functions within their own tolerances", absolute=64)


def tolerance_of(name: str, dtype: DType, *, is_complex: bool) -> Tolerance | None:
    """None where results must agree bit for bit. is_complex: whether an operand is."""
    if not dtypes.is_inexact(dtype):
        return None
    if is_complex and name in COMPLEX_TOLERANCES:
        return COMPLEX_TOLERANCES[name]
    return TOLERANCES.get(name)


def same_bits(got: Array, expected: Array) -> Array:
    """Element by element: equal bits, all NaNs alike.

    Beside a NaN part the sign of the other one is open, as C99 leaves it: it comes from the sign of a NaN somewhere,
    which processors choose as they like.
    """
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if dtypes.is_complex(got.dtype):
        parts = ((got.real, expected.real), (got.imag, expected.imag))
        same = [same_bits(x, y) for x, y in parts]
        lost = [np.isnan(x) & np.isnan(y) for x, y in parts]
        turned = [np.abs(x) == np.abs(y) for x, y in parts]
        return np.asarray((same[0] & same[1]) | (lost[0] & turned[1]) | (lost[1] & turned[0]))
    if not dtypes.is_float(got.dtype):
        return np.asarray(got == expected)
    word = np.dtype(f"u{got.dtype.itemsize}")
    equal = np.ascontiguousarray(got).view(word) == np.ascontiguousarray(expected).view(word)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return np.asarray(equal | ((got != got) & (expected != expected)))


def close(got: Array, expected: Array, tolerance: Tolerance, scale: Array | None = None) -> Array:
    """Element by element: within the tolerance, relative to the result or to `scale`.

    Complex numbers relative to the modulus; part by part where one is not finite. See `same_bits` for what is open.
    """
    whole = _near(got, expected, tolerance, scale)
    if not dtypes.is_complex(got.dtype):
        return whole
    parts = ((got.real, expected.real), (got.imag, expected.imag))
    beside = [np.where(np.isfinite(x), np.abs(x), 0) for x in (expected.imag, expected.real)]
    scales = [x if scale is None else np.maximum(x, np.abs(scale)) for x in beside]
    each = [_near(x, y, tolerance, size) for (x, y), size in zip(parts, scales, strict=True)]
    turned = [_near(np.abs(x), np.abs(y), tolerance, size) for (x, y), size in zip(parts, scales, strict=True)]
    lost = [np.isnan(x) & np.isnan(y) for x, y in parts]
    apart = (each[0] & each[1]) | (lost[0] & turned[1]) | (lost[1] & turned[0])
    return np.where(np.isfinite(got) & np.isfinite(expected), whole, apart)


def _near(got: Array, expected: Array, tolerance: Tolerance, scale: Array | None) -> Array:
    part = dtypes.real_dtype(got.dtype)
    wide: Any = np.complex128 if dtypes.is_complex(got.dtype) else np.float64
    with np.errstate(invalid="ignore"):  # signalling NaN
        g, e = got.astype(wide), expected.astype(wide)
    largest, _, least = limits(part)
    with np.errstate(all="ignore"):
        size = np.abs(e) if scale is None else np.maximum(np.abs(e), np.abs(scale.astype(np.complex128)))
        size = np.maximum(size, size * size) if tolerance.near_poles else size
        epsilon = EPSILON[part] * UNITS[part]
        allowed = tolerance.units * (epsilon * size + least) + tolerance.absolute * epsilon
        distance = np.abs(g - e)
        near = (distance <= allowed) & np.isfinite(distance)
        top = np.abs(e) >= largest * (1 - 4 * tolerance.units * epsilon)  # one side may have overflowed
        over = top & (np.abs(g) >= largest * (1 - 4 * tolerance.units * epsilon))
        over &= (np.sign(g.real) == np.sign(e.real)) & (np.sign(g.imag) == np.sign(e.imag))
    return np.asarray(near | (g == e) | (np.isnan(g) & np.isnan(e)) | over)
