"""`as_jax`: tracer's modules under JAX's names, for libraries that import JAX.

Each name of JAX's is a module whose names are tracer's, and a few that only JAX has, from `jax_names`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from tracer.errors import ArgumentError, message
from tracer.settings import config
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

# JAX's modules that have their names in tracer too
_SAME: Final = frozenset((
    "ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dtypes", "errors", "experimental",
    "experimental.ode", "experimental.sparse", "flatten_util", "lax", "lax.linalg", "nn", "nn.initializers", "numpy",
    "numpy.fft", "numpy.linalg", "ops", "random", "scipy", "scipy.integrate", "scipy.linalg", "scipy.ndimage",
    "scipy.signal", "scipy.sparse", "scipy.sparse.linalg", "scipy.special", "scipy.stats", "sharding", "test_util",
    "tree", "tree_util", "typing",
))  # fmt: skip


class _Module(ModuleType):
    """Module under a name of JAX: the names in `extra`, then the names of tracer's module `source`."""

    def __init__(self, name: str, source: str | None, extra: dict[str, Any]) -> None:
        super().__init__(name, None if source is None else importlib.import_module(source).__doc__)
        self.__dict__.update(_source=source, __path__=[], **extra)

    def __getattr__(self, name: str) -> Any:
        below = f"{self.__name__}.{name}"
        if not name.startswith("__") and _place(below) is not None:
            return importlib.import_module(below)
        if name.startswith("__") or self._source is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}: tracer stands in for jax")
        value = getattr(importlib.import_module(self._source), name)
        if name in jax_names().PLACING.get(self.__name__, ()):
            value = _anywhere(value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        own = [name for name in vars(self) if not name.startswith("_")]
        return sorted({*own, *(() if self._source is None else dir(importlib.import_module(self._source)))})


def _anywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the parameter `out_sharding`: on one device, there is one place for its result."""

    @functools.wraps(function)
    def placed(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        del out_sharding
        return function(*args, **kwargs)

    own = inspect.signature(function)
    extra = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None)
    if "out_sharding" not in own.parameters:
        parameters = [*own.parameters.values(), extra]
        placed.__signature__ = own.replace(parameters=sorted(parameters, key=lambda p: p.kind))  # type: ignore[attr-defined]
    return placed


class _Finder:
    """Import hook that makes the modules below `jax`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax" or _place(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        source, extra = _place(spec.name) or (None, {})
        return _Module(spec.name, source, extra)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was made: its names come from tracer's when they are asked for."""


def jax_names() -> ModuleType:
    """Return the module of JAX's further names, imported when it is first needed."""
    return importlib.import_module("tracer.interop.jax_names")


def _place(fullname: str) -> tuple[str | None, dict[str, Any]] | None:
    """Return the tracer module and the further names for a module name of JAX; None if JAX has no such module."""
    names = jax_names().MODULES
    relative = fullname.removeprefix("jax").removeprefix(".")
    same = not relative or relative in _SAME or relative.startswith("scipy.stats.")
    if not same and relative not in names:
        return None
    source = ("tracer." + relative).rstrip(".") if same else None
    if relative.startswith("scipy.stats.") and not hasattr(
        importlib.import_module("tracer.scipy.stats"), relative[12:]
    ):
        return None
    return source, dict(names.get(relative, {}))


def as_jax() -> ModuleType:
    """Let `import jax` mean tracer in this process, so that libraries written for JAX run as they are; return it.

    Later imports of `jax`, `jax.numpy` and so on give modules with tracer's functions under JAX's names. Raises
    ArgumentError if the real JAX is imported already. `jax.config.update("jax_enable_x64", False)` sets the default
    dtypes to 32 bits, which they are not at first. docs/as_jax.md says which libraries were tried.

    >>> jax = tracer.interop.as_jax()  # doctest: +SKIP
    >>> import optax  # doctest: +SKIP
    """
    present = sys.modules.get("jax")
    if isinstance(present, _Module):
        return present
    if present is not None or "jaxlib" in sys.modules:
        text = f"as_jax{here()}: the real jax is imported already"
        raise ArgumentError(message(text, help="call as_jax before anything imports jax, or in a process of its own"))
    config.index_errors = False
    sys.meta_path.insert(0, _Finder())
    return importlib.import_module("jax")


set_boundaries(globals(), ["as_jax"])
