"""Search for a leaked array: the name by which the user's code keeps it.

The search begins at the variables of the user's running functions. It goes a few steps down into containers and
attributes. It runs none of the user's code: no properties, no `__getattr__`, no iterators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

from tracer.trace.source import user_frames

_LEVELS = 6  # model.layers[2].cache["h"] takes five
_MAX = 20_000  # examined values


def kept_as(is_it: Callable[[object], bool]) -> str | None:
    """Return the expression by which a value is kept, such as `self.cache[0]` or `hidden`; None if it is not found.

    A global, or a part of another value, is preferred to a local variable, which may come from there.
    """
    local = None
    for frame in user_frames():
        if not _is_users(frame.f_globals.get("__name__", "")):
            continue
        own = _own_variables(frame)
        local = local or next((name for name, value in own.items() if is_it(value)), None)
        others = {name: value for name, value in own.items() if not is_it(value)}
        found = _search({**frame.f_globals, **others}, is_it)
        if found is not None:
            return found
    return local


def _own_variables(frame: FrameType) -> dict[str, Any]:
    """Return the variables of a function, variables of enclosing functions first; none for a module's code."""
    if frame.f_locals is frame.f_globals:
        return {}
    variables = dict(frame.f_locals)
    free = {name: variables[name] for name in frame.f_code.co_freevars if name in variables}
    return {**free, **variables}


def _search(variables: dict[str, Any], is_it: Callable[[object], bool]) -> str | None:
    """Search breadth first, for the shortest path."""
    level = [(name, value) for name, value in variables.items() if not name.startswith("__")]
    seen: set[int] = set()
    for _ in range(_LEVELS):
        below: list[tuple[str, Any]] = []
        for path, value in level:
            if is_it(value):
                return path
            if id(value) not in seen and len(seen) < _MAX:
                seen.add(id(value))
                below += ((path + step, part) for step, part in _parts(value))
        level = below
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value, each with the suffix that reads it from the value."""
    kind = type(value)
    if issubclass(kind, dict):
        yield from ((f"[{key!r}]", part) for key, part in dict.items(value) if type(key) in (str, int))
    elif issubclass(kind, list):
        yield from ((f"[{place}]", part) for place, part in enumerate(list.__iter__(value)))
    elif issubclass(kind, tuple):
        fields = getattr(kind, "_fields", None)
        steps = [f".{name}" for name in fields] if fields else [f"[{place}]" for place in range(tuple.__len__(value))]
        yield from zip(steps, tuple.__iter__(value), strict=False)
    yield from ((f".{name}", part) for name, part in _attributes(value, kind) if not name.startswith("__"))


def _attributes(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, ModuleType | type | FunctionType):
        users = _is_users(value.__name__ if issubclass(kind, ModuleType) else value.__module__)
    else:
        users = _is_users(kind.__module__) or issubclass(kind, SimpleNamespace)
    if not users:
        return
    with suppress(AttributeError):  # it has slots alone
        yield from dict(object.__getattribute__(value, "__dict__")).items()
    slots = [(name, slot) for base in kind.__mro__ for name, slot in vars(base).items()]
    for name, slot in slots:
        if type(slot) is MemberDescriptorType:
            with suppress(AttributeError):  # it is empty
                yield name, slot.__get__(value)


def _is_users(module: Any) -> bool:
    """Whether the named module is the user's own: not Python's, not an installed package, and not this one."""
    top = str(module).partition(".")[0]
    if top == "__main__":  # started from any file
        return True
    if top == "tracer" or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    return file is None or "site-packages" not in file
