"""Floating-point errors: overflow, division by zero and invalid operands give inf and NaN, and nothing else happens.

The functions set NumPy's own handling, because programs use them to silence or request warnings. They affect NumPy
arrays, which such programs may use beside Array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.trace.source import here


def errstate(**kwargs: Any) -> np.errstate:
    """Return a context manager or decorator that sets how NumPy arrays report floating-point errors; Array never does.

    kwargs: all, divide, over, under, invalid: "ignore" or "warn". Raises ArgumentError for settings that raise or call.

    >>> with tnp.errstate(divide="ignore"):
    ...     tnp.asarray([1.0]) / 0.0
    Array([inf], f64)
    """
    return np.errstate(**_silent("errstate", kwargs))


def seterr(
    all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> dict[str, Any]:
    """Set how NumPy arrays report floating-point errors; Array never does. Returns the previous settings.

    all, divide, over, under, invalid: "ignore", "warn", or None for no change. Raises ArgumentError for any other.

    >>> tnp.seterr(**tnp.seterr(all="ignore"))["over"]
    'ignore'
    """
    given = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
    return {**np.seterr(**_silent("seterr", given))}


def geterr() -> dict[str, Any]:
    """Return how NumPy arrays report floating-point errors.

    >>> sorted(tnp.geterr())
    ['divide', 'invalid', 'over', 'under']
    """
    return {**np.geterr()}


def _silent(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    for kind, setting in settings.items():
        if setting not in (None, "ignore", "warn"):
            raise ArgumentError(
                message(
                    f"{name}{here()}: floating-point errors never stop a program, nor call anything",
                    f"got {kind}={setting!r}",
                    help='they give inf and NaN, which isfinite finds; "ignore" and "warn" are taken',
                )
            )
    return settings
