"""Containers and classes whose insides are known: what is in them, and whether it is so still.

Lists, tuples, dicts and named tuples run no code of the user's. A dict is what it is in its order, with the kinds of
its keys: 1 is not True, and 0.0 is not -0.0.
"""

from __future__ import annotations

import gc
from dataclasses import field, fields, is_dataclass, make_dataclass
from enum import Enum
from enum import property as enum_property
from types import DynamicClassAttribute, EllipsisType, FunctionType
from typing import Any, NamedTuple

import optree

from tracer.runtime.guards.guard_discovery import is_users, is_users_class
from tracer.runtime.guards.guards import NOTHING, SIZE, Guard, are_equal
from tracer.trace import trees

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, EllipsisType)
_NODES = (tuple, list, dict, type(None))
_OF_MEMBERS = frozenset(("_value_", "_name_", "__objclass__", "_sort_order_"))
_COMPARING = frozenset(("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"))


class Snapshot(NamedTuple):
    """A container of arrays and numbers, and what was in it."""

    container: Any
    parts: list[Any]

    @property
    def leaves(self) -> list[Any]:
        return [part for part in self.parts if type(part) is not tuple]

    def holds(self) -> bool:
        try:
            now = parts_of(self.container)
        except RecursionError:  # it holds itself by now
            return False
        return len(now) == len(self.parts) and all(map(are_equal, now, self.parts))


def snapshot(container: Any) -> Snapshot:
    """What is in it now."""
    return Snapshot(container, parts_of(container))


def parts_of(container: Any) -> list[Any]:
    """All that is in a container and the containers in it, in order; for each of those, what it is."""
    parts: list[Any] = []
    _add(container, parts)
    return parts


def _add(value: Any, parts: list[Any]) -> None:
    kind = type(value)
    if kind is dict:
        parts.append((kind, *value))
        for item in value.values():
            _add(item, parts)
    elif kind is list or kind is tuple:
        parts.append((kind, len(value)))
        for item in value:
            _add(item, parts)
    else:
        parts.append(value)


def is_plain_tree(structure: trees.Structure) -> bool:
    """Whether a tree has no node of a class with code of the user's, which functions could run."""
    kind = structure.type
    if kind is not None and kind not in _NODES and not is_plain_record(kind):
        return False
    return all(map(is_plain_tree, structure.children()))


class Record(NamedTuple):
    """A class of named tuples, and what was in it."""

    kind: type
    members: dict[str, Any]

    def holds(self) -> bool:
        return has_members(self.kind, self.members)

    def guards(self) -> list[Guard]:
        """The same, for compiled code to look at: the class's own dict, not the view of it."""
        (names,) = gc.get_referents(vars(self.kind))
        return [Guard(names, SIZE), *(Guard(names, name) for name in self.members)]


def records_of(structure: trees.Structure) -> list[Record]:
    """The classes of named tuples in a tree, once each, as they are now: they may be given code later."""
    found: dict[type, Record] = {}

    def visit(node: trees.Structure) -> None:
        if node.type is not None and node.type not in _NODES:
            found[node.type] = Record(node.type, dict(vars(node.type)))
        for child in node.children():
            visit(child)

    visit(structure)
    return [*found.values()]


def is_plain_record(kind: Any) -> bool:
    """Whether it is a class of named tuples, and nothing more."""
    if not optree.is_namedtuple_class(kind) or kind.__mro__[1:] != tuple.__mro__:
        return False
    members = vars(kind)
    if any(isinstance(members.get(name), property) for name in kind._fields):
        return False
    return not any(map(_runs_users_code, members.values()))


def is_plain_member(value: Any) -> bool:
    """Whether it is a member of an enumeration, of a value that stays what it is, and of no code of the user's."""
    if not isinstance(value, Enum) or type(value._value_) not in PLAIN or not _OF_MEMBERS.issuperset(vars(value)):
        return False
    return all(_is_of_enumeration(*item) for cls in users_classes(type(value)) for item in vars(cls).items())


def _is_of_enumeration(name: str, member: Any) -> bool:
    """Whether an item of an enumeration's class is one of those that all of them have, or stays what it is."""
    if name.startswith("_"):
        return not _runs_users_code(member)
    if type(member) is enum_property or type(member) is DynamicClassAttribute:
        return not is_users(member.fget)
    return isinstance(member, Enum) or type(member) in PLAIN


def users_classes(kind: Any) -> list[Any]:
    """The classes of the user's that one is or comes from."""
    return [cls for cls in kind.__mro__ if is_users_class(cls)]


def has_members(cls: type, members: dict[str, Any]) -> bool:
    """Whether a class has the members that it had."""
    now = vars(cls)
    return len(now) == len(members) and all(now.get(name, NOTHING) is member for name, member in members.items())


def _runs_users_code(member: Any) -> bool:
    """Whether a member of a class is a function of the user's. `collections` writes one, in a module of its own."""
    function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return is_users(function) and not str(function.__globals__.get("__name__")).startswith("namedtuple_")


def is_written(function: FunctionType, name: str, cls: Any) -> bool:
    """Whether `dataclasses` wrote a method, which compares the fields and does nothing else."""
    if name not in _COMPARING or not is_dataclass(cls) or function.__code__.co_filename != "<string>":
        return False
    columns = [(f.name, object, field(compare=f.compare, hash=f.hash, default=None)) for f in fields(cls)]
    like = make_dataclass("Like", columns, order=True, unsafe_hash=True)
    code = getattr(like, name).__code__
    return all(getattr(function.__code__, part) == getattr(code, part) for part in ("co_code", "co_names", "co_consts"))
