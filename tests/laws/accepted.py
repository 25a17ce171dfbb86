"""Where a result, a complex one for the most part, may be another than the reference's, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tests.laws.values import Array
from tracer.ir import dtypes


@dataclass(frozen=True, slots=True)
class Accepted:
    """where: which elements, of the operands broadcast together, what was got and what was expected. real: also of
    real operands."""

    where: Callable[..., Array]
    why: str
    real: bool = False


def _wide(x: Array) -> Array:
    return x.astype(np.complex128)


def _turns_often(y: Array) -> Array:
    """Whether the angle of exp2 has more digits before the point than log 2 in two words leaves behind it."""
    limit = 2.0**60 if y.dtype == np.float64 else 2.0**30
    return np.isfinite(y) & (np.abs(y) > limit)


def _has_long_exponent(x: Array, y: Array) -> Array:
    """Whether y log x is so large that its rounding error is an angle of its own."""
    angle = np.abs(_wide(y)) * np.abs(np.log(_wide(x)))
    return np.isfinite(x) & np.isfinite(y) & (angle > 745)


def _is_lost(got: Array, expected: Array) -> Array:
    """Whether neither is finite."""
    return ~np.isfinite(got) & ~np.isfinite(expected)


_BY_BLAS = Accepted(
    lambda got, expected, *operands: _is_lost(got, expected),
    "BLAS multiplies sums by 1 + 0i, and the 0 makes NaN of infinite parts; NumPy does so for some shapes only",
)
_BY_FFT = Accepted(
    lambda got, expected, *operands: _is_lost(got, expected),
    "an infinity reaches every result; steps in another order cancel it against others elsewhere", real=True,
)  # fmt: skip
_ANY_NAN = Accepted(
    lambda got, expected, *operands: np.isnan(got) & np.isnan(expected), "of several NaN in a window, one"
)


def _is_far(x: Array) -> Array:
    """Which of a stack of matrices have an element that is not finite, or whose products may not be."""
    limit = float(np.finfo(x.dtype).max) * 2.0**-10
    return ~np.all(np.abs(x) <= limit, axis=(-2, -1), keepdims=True)


def _is_of_far_numbers(got: Array, expected: Array, *operands: Array) -> Array:
    flags = _is_far(expected)
    for operand in operands:
        flags = flags | _is_far(operand)
    return np.broadcast_to(flags, expected.shape)


_BY_LAPACK = Accepted(
    _is_of_far_numbers, "steps of elimination in another order, or by reciprocals, overflow elsewhere", real=True
)


def _differs_by_phases(got: Array, expected: Array, *operands: Array) -> Array:
    """Which vectors of matrices, columns or rows, are the expected ones up to a phase."""
    if got.ndim < 2 or got.shape[:-2] != operands[0].shape[:-2] or not got.size:
        return np.zeros(got.shape, bool)
    near = 1e3 * np.finfo(got.dtype).eps
    found = np.zeros(got.shape, bool)
    for axis in (-2, -1):
        inner = np.abs(np.sum(expected.conj() * got, axis=axis, keepdims=True))
        sizes = [np.linalg.norm(x, axis=axis, keepdims=True) for x in (got, expected)]
        found |= (np.abs(inner - sizes[0] * sizes[1]) <= near) & (np.abs(sizes[0] - sizes[1]) <= near)
    return found


def _differs_by_bases(got: Array, expected: Array, *operands: Array) -> Array:
    """Which singular vectors are as good: up to phases, and beyond the singular values another basis of the space."""
    found = _differs_by_phases(got, expected, *operands)
    k, near = min(operands[0].shape[-2:]), 1e3 * np.finfo(got.dtype).eps
    if got.ndim == operands[0].ndim and got.size and got.shape[-1] == got.shape[-2] > k:
        rest, wanted = (x[..., k:] for x in (got, expected))  # of U; the rows of V^H are another such basis
        rows, others = (np.swapaxes(x[..., k:, :], -1, -2) for x in (got, expected))
        for place, x, y in (((..., slice(k, None)), rest, wanted), ((..., slice(k, None), slice(None)), rows, others)):
            spaces = [z @ np.swapaxes(z.conj(), -1, -2) for z in (x, y)]
            found[place] |= np.abs(spaces[0] - spaces[1]).max((-2, -1), keepdims=True) <= near
    return found


_UP_TO_PHASES = Accepted(_differs_by_phases, "vectors are determined up to phases", real=True)


def _is_at_the_limit(z: Array) -> Array:
    """Whether parts are finite, and the modulus is so large that a rounding decides whether it is."""
    return np.isfinite(z) & ~np.isfinite(np.abs(z) * z.real.dtype.type(1 + 1e-6))


# By the name of the primitive; elsewhere products are the plain formula, functions have the values of C99's Annex G.
ACCEPTED: Final[dict[str, Accepted]] = {
    "exp2": Accepted(
        lambda got, expected, z: _turns_often(z.imag), "the angle is y log 2, and log 2 has two words in either width"
    ),
    "pow": Accepted(
        lambda got, expected, x, y: _has_long_exponent(x, y), "exp(y log x), as C99 has it: no angle is left"
    ),
    "sign": Accepted(
        lambda got, expected, z: _is_at_the_limit(z), "z over a modulus that may be infinite, which gives 0"
    ),
    **dict.fromkeys(("triangular_solve", "cholesky", "solve"), _BY_LAPACK),
    **dict.fromkeys(("eigh", "eig", "geev", "schur"), _UP_TO_PHASES),
    "svd": Accepted(
        _differs_by_bases, "vectors are determined up to phases, those of no value up to rotations", real=True
    ),
    "dot_general": _BY_BLAS,
    "conv": _BY_BLAS,
    "fft": _BY_FFT,
    "reduce_window_max": _ANY_NAN,
    "reduce_window_min": _ANY_NAN,
}


def accepted(name: str, operands: Sequence[Array], got: Array, expected: Array) -> Array:
    """The expected result, what was got put where that is as good."""
    if name not in ACCEPTED or not (ACCEPTED[name].real or dtypes.is_complex(operands[0].dtype)):
        return expected
    with np.errstate(all="ignore"):
        where = ACCEPTED[name].where(got, expected, *operands)
    return np.where(where, got, expected).astype(expected.dtype)
