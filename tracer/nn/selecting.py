"""`at`: parts of a model by path, class or function: to read, replace, freeze, or mask them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from tracer.errors import ArgumentError, message
from tracer.nn.layout import Role, interned
from tracer.nn.module import Module, put_together
from tracer.trace import trees
from tracer.trace.source import here

T = TypeVar("T")
Where = str | type | Callable[[str, Any], bool]
_FREEZE = {Role.PARAM: Role.FROZEN, Role.STATE: Role.FROZEN_STATE}
_THAW = {new: old for old, new in _FREEZE.items()}


def at(model: Any, where: Where) -> Selection:
    """Select parts of a model.

    where: a pattern of paths, in which `*` is any part of one name or index, and `**` any number of names:
    "blocks[*].attention", "**.weight"; or a class of modules; or a function of (path, part). Parts are modules,
    containers and arrays; below a selected part nothing more is selected. Raises ArgumentError if nothing is.

    >>> model = nn.MLP([4, 8, 2], key=tracer.random.key(0))
    >>> nn.at(model, "layers[*].bias").paths()
    ['layers[0].bias', 'layers[1].bias']
    >>> nn.at(model, "layers[0]").freeze().layers[0].is_frozen
    True
    """
    return Selection(model, where)


class Selection:
    """Selected parts of a model; see `at`."""

    def __init__(self, model: Any, where: Where) -> None:
        self._model = model
        self._matches = _predicate(where)
        self._found: list[tuple[str, Any]] = []
        self._visit(model, "", self._note)
        if not self._found:
            raise ArgumentError(
                message(
                    f"nn.at{here()} selects nothing",
                    f"got {where!r} for {type(model).__name__}",
                    help='nn.paths(model) has the paths of arrays, and "**" stands for any number of names',
                )
            )

    def __repr__(self) -> str:
        return f"Selection({', '.join(self.paths())})"

    def paths(self) -> list[str]:
        """Return the paths of the selected parts, in the model's order."""
        return [path for path, _ in self._found]

    def get(self) -> list[Any]:
        """Return the selected parts, in the model's order."""
        return [part for _, part in self._found]

    def set(self, value: Any) -> Any:
        """Return the model with `value` in place of every selected part."""
        return self.map(lambda _: value)

    def map(self, function: Callable[[Any], Any]) -> Any:
        """Return the model with `function(part)` in place of every selected part."""
        return self._visit(self._model, "", lambda path, part: function(part))

    def freeze(self) -> Any:
        """Return the model with its selected arrays frozen: no gradients, no updates, and no writes of state."""
        return self._with_roles(_FREEZE)

    def thaw(self) -> Any:
        """Return the model with its selected arrays as they were before `freeze`."""
        return self._with_roles(_THAW)

    def mask(self) -> Any:
        """Return the model's tree with True for the selected arrays and False for all other arrays."""
        false = trees.tree_map(lambda _: False, self._model)
        return Selection._of(false, self._matches)._visit(
            false, "", lambda path, part: trees.tree_map(lambda _: True, part)
        )

    @classmethod
    def _of(cls, model: Any, matches: Callable[[str, Any], bool]) -> Selection:
        made = cls.__new__(cls)
        made._model, made._matches, made._found = model, matches, []
        return made

    def _note(self, path: str, part: Any) -> Any:
        self._found.append((path, part))
        return part

    def _with_roles(self, roles: dict[Role, Role]) -> Any:
        selected = set(self.paths())

        def changed(value: Any, path: str, inside: bool) -> Any:
            inside = inside or path in selected
            if isinstance(value, Module):
                return _with_layout(
                    value,
                    lambda name, role: roles.get(role, role) if inside or _below(path, name) in selected else role,
                    lambda name, child: changed(child, _below(path, name), inside),
                )
            return _rebuilt(value, path, lambda child, at: changed(child, at, inside))

        return changed(self._model, "", False)

    def _visit(self, value: Any, path: str, found: Callable[[str, Any], Any]) -> Any:
        if self._matches(path, value):
            return found(path, value)
        if isinstance(value, Module):
            layout = value.layout  # kept, so that trees of masks and gradients remember their origin
            parts = [self._visit(value.__dict__[name], _below(path, name), found) for name in layout.names]
            return put_together(type(value), layout, parts)
        return _rebuilt(value, path, lambda child, at: self._visit(child, at, found))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _rebuilt(value: Any, path: str, visit: Callable[[Any, str], Any]) -> Any:
    if isinstance(value, dict):
        return type(value)({key: visit(item, f"{path}[{key!r}]") for key, item in value.items()})
    if isinstance(value, list | tuple):
        items = [visit(item, f"{path}[{n}]") for n, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _with_layout(module: Module, role: Callable[[str, Role], Role], child: Callable[[str, Any], Any]) -> Module:
    layout = module.layout
    roles = tuple(role(name, old) for name, old in zip(layout.names, layout.roles, strict=True))
    new = interned(layout.names, roles, layout.settings)
    copy: Module = put_together(type(module), new, [child(name, module.__dict__[name]) for name in layout.names])
    return copy


def _predicate(where: Where) -> Callable[[str, Any], bool]:
    if isinstance(where, str):
        pattern = _pattern(where)
        return lambda path, part: bool(path) and pattern.fullmatch(path) is not None
    if isinstance(where, type):
        return lambda path, part: isinstance(part, where)
    if callable(where):
        return lambda path, part: bool(where(path, part))
    raise ArgumentError(
        message(
            f"nn.at{here()} takes a pattern, a class, or a function of (path, part)",
            f"got {type(where).__name__}",
            help='"blocks[*].attention", nn.Linear',
        )
    )


@cache
def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*\.?|\*)", text)
    rule = {"**.": r"(?:.*\.)?", "**": r".*", "*": r"[^.\[\]]*"}
    return re.compile("".join(rule.get(part, re.escape(part)) for part in parts))
