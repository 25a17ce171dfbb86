"""Calls that come often enough to be replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp

X = tnp.asarray(np.linspace(0.5, 5.0, 10))
TIMES = 14


def repeated(call: Callable[[], Any]) -> Any:
    """The last of enough calls for machine code."""
    for _ in range(TIMES):
        result = call()
    return result


def slope(function: Any, at: float = 3.0) -> float:
    """The derivative, of a function that is made anew at every call."""
    return float(tracer.grad(function)(at))
