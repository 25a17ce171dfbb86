"""The names of `jax.dtypes`: float0, the dtype of random keys, canonical dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.absent import absent
from tracer.ir import dtypes as _dtypes
from tracer.ir.dtypes import FLOAT0
from tracer.numpy.core.conversion import dtype_of_argument
from tracer.numpy.core.dtypes import finfo, iinfo, issubdtype, result_type
from tracer.settings import config

bfloat16 = _dtypes.BF16
float0 = FLOAT0


class prng_key(np.generic):  # noqa: N801  # the name that users know
    """The abstract dtype of random keys: `issubdtype(key.dtype, prng_key)`.

    >>> tracer.dtypes.issubdtype(tracer.random.key(0).dtype, tracer.dtypes.prng_key)
    True
    """

    is_key_kind = True


extended = prng_key


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """Return the dtype as NumPy's; nothing is narrowed.

    dtype: a dtype, or its name; allow_extended_dtype: whether to accept the dtype of random keys.

    >>> tracer.dtypes.canonicalize_dtype("int64")
    dtype('int64')
    """
    del allow_extended_dtype
    return dtype_of_argument("canonicalize_dtype", dtype)


def scalar_type_of(x: Any) -> type:
    """Return the Python type of the dtype's kind: bool, int, float or complex.

    x: an array, a number or a dtype.

    >>> tracer.dtypes.scalar_type_of(np.float32(1))
    <class 'float'>
    """
    dtype = result_type(x)
    if _dtypes.is_bool(dtype):
        return bool
    if _dtypes.is_integer(dtype):
        return int
    return complex if _dtypes.is_complex(dtype) else float


def default_float() -> _dtypes.DType:
    """Return the dtype of Python floats: `config.default_float`.

    >>> with tracer.config.using(default_float="float32"):
    ...     tracer.dtypes.default_float()
    dtype('float32')
    """
    return config.default_float


__all__ = [
    "bfloat16", "canonicalize_dtype", "default_float", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
