"""Pickles of functions: by reference where the name leads back to them."""

from __future__ import annotations

import sys
from functools import partial
from types import FunctionType
from typing import Any

from tracer.trace.source import is_ours

_MAIN = "__main__"


def name_at_home(value: Any) -> str | None:
    """Return the qualified name under which the value's module has it, or None if it is not found there."""
    name = getattr(value, "__qualname__", None)
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(name, str) or found is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value or (value.__module__ == _MAIN and takes_functions()):
        return None
    return name


def takes_functions() -> bool:
    """Whether the pickler at work is cloudpickle's, which writes functions themselves; Dask's and joblib's are.

    It loads them in processes that lack the caller's main module, so a name in there is not enough.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return "cloudpickle" in frame.f_globals.get("__name__", "").split(".")


def reduce_named(self: Any, protocol: Any) -> Any:
    """Return the name that pickle stores of a decorated function, or its state if the name does not find it.

    A class has it as `__reduce_ex__`.
    """
    return name_at_home(self) or object.__reduce_ex__(self, protocol)


def nameless(value: Any) -> str | None:
    """Return a text for a function in the value that no process finds by name; None if there is none."""
    if isinstance(value, partial):
        return next((text for part in (value.func, *value.args) if (text := nameless(part)) is not None), None)
    if not isinstance(value, FunctionType) or takes_functions() or name_at_home(value) is not None:
        return None
    code = value.__code__
    return f"{value.__qualname__} at {code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
