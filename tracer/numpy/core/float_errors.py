"""What happens at overflow, division by zero and invalid operands: nothing but their results.

The functions are NumPy's, of whose settings programs say that they ignore such errors, or that they are to be told of
them. NumPy's own arrays, which such programs may hold beside ours, follow them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.trace.source import here


def errstate(**kwargs: Any) -> np.errstate:
    """A context, or a decorator, in which NumPy's arrays follow settings of floating-point errors; ours never tell.

    kwargs: all, divide, over, under, invalid: "ignore" or "warn". Raises ArgumentError for those that stop or call.

    >>> with tnp.errstate(divide="ignore"):
    ...     tnp.asarray([1.0]) / 0.0
    Array([inf], f64)
    """
    return np.errstate(**_silent("errstate", kwargs))


def seterr(
    all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> dict[str, Any]:
    """Set how NumPy's arrays tell of floating-point errors; ours never do. Returns the settings before.

    all, divide, over, under, invalid: "ignore", "warn", or None for no change. Raises ArgumentError for others.

    >>> tnp.seterr(**tnp.seterr(all="ignore"))["over"]
    'ignore'
    """
    given = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
    return {**np.seterr(**_silent("seterr", given))}


def geterr() -> dict[str, Any]:
    """How NumPy's arrays tell of floating-point errors.

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
