"""NumPy's functions without its warnings, for less than `np.errstate` costs, which is as much as a small sum."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


class _Quiet(threading.local):
    """A context of this thread in which NumPy does not warn: its settings are variables of the context."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(partial(np.seterr, all="ignore"))


quiet = _Quiet()


def quietly(function: Callable[..., Any], *values: Any) -> Any:
    """The function's result on the values. It must not call back here: a context is entered once at a time."""
    return quiet.context.run(function, *values)
