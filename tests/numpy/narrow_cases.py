"""The narrow dtypes by name, their values, and floats at and beside the places where conversions to them turn."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

FLOATS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
)  # fmt: skip
INTEGERS = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
NAMES = FLOATS + INTEGERS


def values(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Every value of a narrow dtype, by its bits in order."""
    info = ml_dtypes.finfo if dtype.name in FLOATS else ml_dtypes.iinfo
    return np.arange(1 << info(dtype).bits, dtype=np.uint8).view(dtype)


def samples(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Floats in f32: the values, the middles between neighbours, and the floats next to both; ends, and beyond."""
    with np.errstate(all="ignore"):
        own = values(dtype).astype(np.float32)
        own = np.unique(own[np.isfinite(own)])
        middles = ((own[1:].astype(np.float64) + own[:-1]) / 2).astype(np.float32)
        places = np.concatenate([own, middles])
        beside = [np.nextafter(places, np.float32(end)) for end in (-np.inf, np.inf)]
        ends = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, 0.0, -0.0, 1.5 * own[-1], 2 * own[-1], 1e10, -1e10]
        return np.concatenate([places, *beside, np.array(ends, np.float32)])
