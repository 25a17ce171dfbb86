"""Calls of NumPy's functions without its warnings. Cheaper than `np.errstate`, which costs as much as a small sum."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


class _Quiet(threading.local):
    """Context of this thread in which NumPy does not warn, since its settings are context variables."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(partial(np.seterr, all="ignore"))


quiet = _Quiet()


def quietly(function: Callable[..., Any], *values: Any) -> Any:
    """Return the function's result on the values. The function must not call `quietly`: contexts do not nest."""
    return quiet.context.run(function, *values)
