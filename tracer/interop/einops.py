"""Registration of tracer's arrays with einops, which chooses a backend by the array's class.

einops asks the subclasses of its `AbstractBackend` whether an array is theirs. Our subclass is made when einops is
imported, before `tracer` or after it; tracer itself does not import einops.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tracer import numpy as tnp
from tracer.trace.array import Array

_WHERE = "einops._backends"
_backends: list[type] = []  # einops finds subclasses by a weak list


class _Watch:
    """An import hook that registers the backend when einops is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _WHERE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _join(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _join(einops: ModuleType) -> None:
    """Define the backend class for tracer's arrays."""
    members: dict[str, Any] = {
        "framework_name": "tracer",
        "is_appropriate_type": lambda self, tensor: isinstance(tensor, Array),
        "from_numpy": lambda self, x: tnp.asarray(x),
        "to_numpy": lambda self, x: x.__array__(copy=True),
        "arange": lambda self, start, stop: tnp.arange(start, stop),
        "stack_on_zeroth_dimension": lambda self, tensors: tnp.stack(tensors),
        "add_axis": lambda self, x, new_position: tnp.expand_dims(x, new_position),
        "tile": lambda self, x, repeats: tnp.tile(x, repeats),
        "concat": lambda self, tensors, axis: tnp.concatenate(tensors, axis=axis),
        "is_float_type": lambda self, x: tnp.issubdtype(x.dtype, tnp.floating),
        "einsum": lambda self, pattern, *x: tnp.einsum(pattern, *x),
    }
    _backends.append(type("TracerBackend", (einops.AbstractBackend,), members))


def install() -> None:
    """Register with einops, now or when it is imported. Called once, by `tracer/__init__`."""
    if _WHERE in sys.modules:
        _join(sys.modules[_WHERE])
    else:
        sys.meta_path.insert(0, _Watch())
