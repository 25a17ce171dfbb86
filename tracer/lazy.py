"""Modules imported at their first use, which keeps `import tracer` fast."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A stand-in for a module, which is imported when an attribute is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
