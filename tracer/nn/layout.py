"""Layouts of modules: the attributes that are children, their roles, and the settings, decided once by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class Role(Enum):
    """Use of a child. Gradients and optimisers see `PARAM` and look into `TREE`; layers write `STATE`."""

    PARAM = "param"
    STATE = "state"
    FROZEN = "frozen"
    FROZEN_STATE = "frozen state"
    TREE = "tree"  # modules, and containers of children


TRAINED: Final = frozenset((Role.PARAM, Role.TREE))


class Layout:
    """Attributes of a module in their order: names and roles of children, and settings.

    Equal layouts are one object.
    """

    __slots__ = ("__weakref__", "_hash", "children", "constants", "key", "names", "roles", "settings", "trained")

    def __init__(self, names: tuple[str, ...], roles: tuple[Role, ...], settings: Mapping[str, Any]) -> None:
        self.names = names
        self.roles = roles
        self.settings = dict(settings)
        self.constants = {**settings, "_layout": self}
        self.key = _key(names, roles, settings)
        self.trained = tuple(role in TRAINED for role in roles)
        self.children: Callable[[Any], tuple[Any, ...]] = _getter(names)
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and self.key == other.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return interned, (self.names, self.roles, self.settings)

    def __repr__(self) -> str:
        return ", ".join(f"{name}={shown(value)}" for name, value in self.settings.items())

    def role(self, name: str) -> Role | None:
        """Return the role of an attribute; None for settings and unknown names."""
        return self.roles[self.names.index(name)] if name in self.names else None


_layouts: WeakValueDictionary[Any, Layout] = WeakValueDictionary()


def interned(names: tuple[str, ...], roles: tuple[Role, ...], settings: Mapping[str, Any]) -> Layout:
    """Return the one layout with these names, roles and settings."""
    return _layouts.setdefault(_key(names, roles, settings), Layout(names, roles, settings))


def _key(names: tuple[str, ...], roles: tuple[Role, ...], settings: Mapping[str, Any]) -> Any:
    return names, roles, tuple((name, type(value), _hashable(value)) for name, value in settings.items())


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return _Unhashable(value)
    return value


class _Unhashable:
    """Setting that has no hash, such as a list of sizes."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashable) and bool(self.value == other.value)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda module: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda module: (get(module),)  # of one name attrgetter returns no tuple


def shown(value: Any) -> str:
    """Return a setting as a user would write it: functions by their names."""
    return str(getattr(value, "__qualname__", None) or repr(value))


class Function:
    """Function in a list of layers: a node without leaves, which belongs to the structure."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return shown(self.function)


trees.register(Function, lambda f: ((), f), lambda f, _: f)


def is_array(value: Any) -> bool:
    """Whether the value is an array of tracer's, or stands for one."""
    return isinstance(value, Array | ShapeDtypeStruct)


def check_array(name: str, value: Any) -> None:
    """Raise ArgumentError for arrays of NumPy with floats, which may be meant to be trained or not."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "iub":
        raise ArgumentError(
            message(
                f"{name}{here()} is an array of NumPy",
                f"got {value.dtype} {list(value.shape)}, which may be meant to be trained or not",
                help="tnp.asarray(x) is trained, nn.State(x) is not",
            )
        )


def with_functions(name: str, value: Any) -> Any:
    """Return a container of children with its functions as nodes. Raises ArgumentError for numbers and text in it."""
    if isinstance(value, dict):
        return type(value)({key: with_functions(f"{name}[{key!r}]", item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        items = [with_functions(f"{name}[{n}]", item) for n, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    check_array(name, value)
    if value is None or isinstance(value, Function | np.ndarray | np.generic) or not trees.is_leaf(value):
        return value
    if is_array(value):
        return value
    if callable(value):
        return Function(value)
    raise ArgumentError(
        message(
            f"{name}{here()} stands beside arrays or modules",
            f"got {value!r}, {type(value).__name__}",
            help="keep numbers and text in an attribute of their own",
        )
    )
