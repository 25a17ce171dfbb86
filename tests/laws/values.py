"""Values for operands: how each operand of a case is drawn, from a NumPy generator and the operand's type.

A draw gives what is in storage: keys as u32 words, everything else as its dtype says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import Type, storage_type

Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, Type], Array]

_SPECIAL_FLOATS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.0, 3.0, 1e-3, 88.0, -300.7)


def limits(dtype: DType) -> tuple[float, float, float]:
    """The largest finite float of a dtype, its smallest normal and its smallest positive number."""
    largest, normal, least = {
        dtypes.F16: (65504.0, 2.0**-14, 2.0**-24),
        dtypes.BF16: (2.0**128 - 2.0**120, 2.0**-126, 2.0**-133),
        dtypes.F32: (float(np.finfo(np.float32).max), 2.0**-126, 2.0**-149),
        dtypes.F64: (float(np.finfo(np.float64).max), 2.0**-1022, 5e-324),
    }[dtype]
    return largest, normal, least


def special(dtype: DType) -> Array:
    """Values of a dtype at which operations change their mind: the ends, zeros of both signs, NaN, infinities."""
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_integer(dtype):
        ends = np.iinfo(dtype)
        near = [0, 1, 2, 3, 7, 8, 31, 32, 63, ends.max, ends.max - 1, ends.max // 2 + 1, ends.min, ends.min + 1]
        return np.array([*near, *((-1, -2, -7, -8) if ends.min else ())], dtype)
    largest, normal, least = limits(dtype)
    edges = [*_SPECIAL_FLOATS, largest, -largest, normal, least, -least]
    return np.array(edges).astype(dtype)


def anything(rng: np.random.Generator, type: Type) -> Array:
    """Special values, ordinary ones and floats of any magnitude, mixed; complex numbers have two such parts."""
    stored = storage_type(type)
    if dtypes.is_complex(stored.dtype):
        return _joined(*(_mixed(rng, dtypes.real_dtype(stored.dtype), stored.shape) for _ in range(2)))
    return _mixed(rng, stored.dtype, stored.shape)


def _mixed(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    values = np.where(rng.random(shape) < 0.4, rng.choice(special(dtype), shape), ordinary_of(rng, dtype, shape))
    if not dtypes.is_float(dtype):
        return values.astype(dtype)
    largest, _, least = limits(dtype)
    exponents = rng.integers(int(np.log2(least)), int(np.log2(largest)), shape)
    sizes = np.ldexp(rng.uniform(1, 2, shape) * rng.choice([1.0, -1.0], shape), exponents)
    return np.where(rng.random(shape) < 0.1, sizes.astype(dtype), values).astype(dtype)


def ordinary(rng: np.random.Generator, type: Type) -> Array:
    """Finite values of moderate size; integers of any bits."""
    stored = storage_type(type)
    return ordinary_of(rng, stored.dtype, stored.shape)


def ordinary_of(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The same for a dtype and a shape."""
    if dtypes.is_bool(dtype):
        return rng.random(shape) < 0.5
    if dtypes.is_integer(dtype):
        ends = np.iinfo(dtype)
        bits = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
        near = rng.integers(0 if ends.min == 0 else -20, 20, shape).astype(dtype)
        extremes = rng.choice(np.array([ends.min, ends.max], dtype), shape)
        return np.choose(rng.choice(3, shape, p=[0.45, 0.45, 0.1]), [bits, near, extremes])
    if dtypes.is_complex(dtype):
        return _joined(*(ordinary_of(rng, dtype.type().real.dtype, shape) for _ in range(2)))
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-2, 4, shape)).astype(dtype)


def additive(rng: np.random.Generator, type: Type) -> Array:
    """For sums: ordinary values, zeros of both signs, now and then infinities or NaN, whose sums no order changes."""
    return _with_rare(rng, ordinary(rng, type), (np.inf, -np.inf, np.nan))


def near_one(rng: np.random.Generator, type: Type) -> Array:
    """For products of many: magnitudes near 1, of either sign, a zero now and then; integers of any bits.

    Of infinite parts a product depends on the order, so that complex numbers have none.
    """
    stored = storage_type(type)
    if not dtypes.is_inexact(stored.dtype):
        return ordinary(rng, type)
    sizes = rng.uniform(0.6, 1.6, stored.shape) * rng.choice([1.0, -1.0], stored.shape)
    sizes = np.where(rng.random(stored.shape) < 0.05, 0.0, sizes)
    if dtypes.is_complex(stored.dtype):
        turned = (sizes * np.exp(1j * rng.uniform(0, 6, stored.shape))).astype(stored.dtype)
        return _with_rare(rng, turned, (np.nan,))
    return _with_rare(rng, sizes.astype(stored.dtype), (np.inf, -np.inf, np.nan))


def _with_rare(rng: np.random.Generator, values: Array, rare: tuple[float, ...]) -> Array:
    """Zeros put among floats and parts, and in every other array what is rare."""
    if dtypes.is_complex(values.dtype):
        return _joined(*(_with_rare(rng, part, rare) for part in (values.real, values.imag)))
    if not dtypes.is_float(values.dtype):
        return values
    special = [0.0, -0.0, *(rare if rng.random() < 0.5 else ())]
    return np.where(rng.random(values.shape) < 0.08, rng.choice(special, values.shape), values).astype(values.dtype)


def small_integers(rng: np.random.Generator, type: Type) -> Array:
    """Integers of any dtype between -3 and 3, whose products and sums are exact in any order."""
    stored = storage_type(type)
    low = 0 if stored.dtype.kind in "ub" else -3
    values = rng.integers(low, 2 if stored.dtype.kind == "b" else 4, stored.shape)
    if dtypes.is_complex(stored.dtype):
        return (values + 1j * rng.integers(-3, 4, stored.shape)).astype(stored.dtype)
    return values.astype(stored.dtype)


@dataclass(frozen=True)
class Between:
    """Integers from low to high, both included, within what the dtype holds. ends: and now and then its ends."""

    low: int
    high: int
    ends: bool = False

    def __call__(self, rng: np.random.Generator, type: Type) -> Array:
        stored = storage_type(type)
        ends = np.iinfo(stored.dtype)
        chosen = rng.integers(max(self.low, ends.min), min(self.high, ends.max), stored.shape, endpoint=True)
        chosen = np.asarray(chosen, stored.dtype)
        if not self.ends:
            return chosen
        return np.where(
            rng.random(stored.shape) < 0.2,
            rng.choice(np.array([ends.min, ends.max], stored.dtype), stored.shape),
            chosen,
        )


@dataclass(frozen=True)
class Apart:
    """Numbers from 0 to below `below`, no two alike: places of which none is met twice."""

    below: int

    def __call__(self, rng: np.random.Generator, type: Type) -> Array:
        stored = storage_type(type)
        count = int(np.prod(stored.shape, dtype=np.int64))
        return rng.permutation(self.below)[:count].reshape(stored.shape).astype(stored.dtype)


@dataclass(frozen=True)
class Interval:
    """Distinct reals that lie apart from each other within an interval; complex ones get an imaginary part."""

    low: float
    high: float
    imaginary: tuple[float, float] = (0.2, 0.8)

    def __call__(self, rng: np.random.Generator, type: Type) -> Array:
        stored = storage_type(type)
        if not dtypes.is_inexact(stored.dtype):
            return ordinary(rng, type)
        count = int(np.prod(stored.shape, dtype=np.int64))
        places = rng.permutation(count) + rng.uniform(0.25, 0.75, count)
        values = (self.low + (self.high - self.low) * places / max(count, 1)).reshape(stored.shape)
        if dtypes.is_complex(stored.dtype):
            return np.asarray(values + 1j * rng.uniform(*self.imaginary, stored.shape), stored.dtype)
        return values.astype(stored.dtype)


distinct = Interval(-2.0, 2.0, (-1.0, 1.0))
"""No two values alike or close, so that no extreme is a tie."""


def few(rng: np.random.Generator, type: Type) -> Array:
    """Many ties: a handful of values, the ends of integers among them, and NaN, infinities and both zeros of floats
    and of parts."""
    stored = storage_type(type)
    if dtypes.is_float(stored.dtype):
        chosen = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.nan, np.inf, -np.inf])
        return rng.choice(chosen, stored.shape).astype(stored.dtype)
    if dtypes.is_complex(stored.dtype):
        rare = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), (2, *stored.shape))
        common = rng.choice(np.array([0.0, 0.0, 1.0, 1.0, -1.0]), (2, *stored.shape))
        real, imag = np.where(rng.random((2, *stored.shape)) < 0.25, rare, common)
        return _joined(real, imag).astype(stored.dtype)
    if dtypes.is_bool(stored.dtype):
        return rng.random(stored.shape) < 0.5
    ends = np.iinfo(stored.dtype)
    return rng.choice(np.array([0, 1, 2, 3, ends.min, ends.max], stored.dtype), stored.shape)


def constant(value: Any) -> Draw:
    """The same value everywhere."""

    def draw(rng: np.random.Generator, type: Type) -> Array:
        stored = storage_type(type)
        return np.full(stored.shape, value, stored.dtype)

    return draw


def direction(rng: np.random.Generator, type: Type) -> Array:
    """A tangent or cotangent: standard normal, in both parts where it is complex."""
    stored = storage_type(type)
    values = rng.standard_normal(stored.shape)
    if dtypes.is_complex(stored.dtype):
        values = values + 1j * rng.standard_normal(stored.shape)
    return np.asarray(values, stored.dtype)


def with_zeros(rng: np.random.Generator, type: Type) -> Array:
    """As `direction`, a third of them zero: for products, whose derivatives leave factors out."""
    return np.where(rng.random(storage_type(type).shape) < 1 / 3, 0, direction(rng, type)).astype(
        storage_type(type).dtype
    )


def _joined(real: Array, imag: Array) -> Array:
    result = np.empty(np.shape(real), np.complex64 if real.dtype == dtypes.F32 else np.complex128)
    result.real, result.imag = real, imag
    return result
