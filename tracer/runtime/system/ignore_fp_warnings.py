"""Calls of NumPy's functions without its warnings. Cheaper than `np.errstate`, which costs as much as a small sum."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


class _Quiet(threading.local):
    """Context of this thread in which NumPy does not warn, since its settings are context variables.

    run: calls a function on values in that context. It raises RuntimeError within another such call: see `again`.
    """

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(partial(np.seterr, all="ignore"))
        self.run = self.context.run


quiet = _Quiet()


def quietly(function: Callable[..., Any], *values: Any) -> Any:
    """Return the function's result on the values."""
    try:
        return quiet.run(function, *values)
    except RuntimeError as error:
        return again(error, function, *values)


def again(error: RuntimeError, function: Callable[..., Any], *values: Any) -> Any:
    """Return the function's result after `quiet.run` raised an error. Raises the error if the function raised it.

    A debugger, a finalizer or a signal handler may call operations within another one, whose context is entered.
    """
    is_entered = str(error).startswith("cannot enter context") and error.__traceback__.tb_next is None  # type: ignore[union-attr]
    if not is_entered:
        raise error
    return quiet.context.copy().run(function, *values)
