"""CONVERT and BITCAST on NumPy values, by dtypes: the exact meaning in `tracer.ir.scalar`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tracer.ir.dtypes import BOOL, F32, F64, DType, iinfo, is_float, is_integer, is_narrow, wide_dtype

Value = Any  # a NumPy scalar or array of the dtype in question; ml_dtypes scalars are unknown to typing
Function = Callable[..., Value]

WIDE: Final = (F32, F64)


def is_short(dtype: DType) -> bool:
    """Whether operations on the dtype compute in f32 and round."""
    return is_float(dtype) and dtype not in WIDE


def cast(value: Value, dtype: DType) -> Value:
    """Convert as NumPy does; scalars stay scalars."""
    return np.asarray(value).astype(dtype)[()]


def choose(condition: Value, then: Value, otherwise: Value) -> Value:
    """Return `np.where`, with scalars kept as scalars."""
    return np.asarray(np.where(condition, then, otherwise))[()]


@cache
def conversion(source: DType, target: DType) -> Function:
    """Return CONVERT from one dtype to another."""
    if source == target:
        return lambda x: x
    if is_narrow(source) and not is_float(source):
        wide = wide_dtype(source)
        from_wide = conversion(wide, target)
        return lambda x: from_wide(cast(x, wide))
    if target == BOOL:
        return lambda x: widened(x) != 0
    if is_float(source) and is_integer(target):
        return lambda x: _saturate(widened(x), target)
    if is_short(target):
        first = round_to_odd if source == F64 else lambda x: cast(x, F32)
        return lambda x: cast(_quiet(first(x)) if is_narrow(target) else first(x), target)
    return lambda x: cast(x, target)


def _quiet(x: Value) -> Value:
    """Return an f32 with positive NaNs: formats without NaN would keep the sign."""
    return choose(x == x, x, np.float32(np.nan))


def bitcast(target: DType) -> Function:
    """Return BITCAST to a dtype of equal width."""
    return lambda x: np.asarray(x).view(target)[()]


def widened(value: Value) -> Value:
    """Return short floats as f32, any other value unchanged."""
    return cast(value, F32) if is_short(np.asarray(value).dtype) else value


def _saturate(x: Value, target: DType) -> Value:
    """Truncate, saturating, and 0 for NaN. The bounds are exact in any float."""
    limits, kind = iinfo(target), np.asarray(x).dtype.type
    low, high = float(limits.min), float(int(limits.max) + 1)
    with np.errstate(all="ignore"):
        inside = (x >= kind(low)) & (x < kind(high))
        whole = cast(choose(inside, x, kind(0)), target)
        ends = choose(x >= kind(high), target.type(limits.max), target.type(limits.min))
    return choose(inside, whole, choose(np.isnan(x), target.type(0), ends))


def round_to_odd(x: Value) -> Value:
    """Return an f64 as the f32 that rounds to any shorter float as the f64 itself would (Boldo & Melquiond 2008)."""
    x = np.asarray(x, F64)
    with np.errstate(all="ignore"):
        near = x.astype(F32)
        back = near.astype(F64)
        inward = np.where(np.abs(back) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = (inward.view(np.uint32) | np.uint32(1)).view(F32)
    exact = (back == x) | ~np.isfinite(x)
    return np.where(exact, near, odd)[()]
