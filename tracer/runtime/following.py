"""Following what functions read, from them to everything that they stand among: see `surroundings`.

What is in doubt is refused, as in `dependence`. Objects of the user's classes are looked into where nothing but
`__dict__` and the classes' own functions decides what an attribute is. Any attribute that any of the code names is
looked at in each of them, so that it does not matter by which name the code came to the object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem, is_
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tracer.ir.types import ArrayType, KeyType
from tracer.runtime.contents import is_plain_member, is_plain_record, is_written, users_classes
from tracer.runtime.dependence import (
    MOST_COPIED,
    Refused,
    builtin_of,
    followed,
    has_no_attributes,
    is_known,
    is_known_python,
    is_number,
    is_of_package,
)
from tracer.runtime.guards.guard_discovery import is_users, is_users_class
from tracer.runtime.guards.guards import NOTHING, are_equal
from tracer.runtime.reading import MEMORY, reads_of
from tracer.runtime.surroundings import (
    Step,
    Surroundings,
    given,
    has_bytes,
    in_cell,
    is_array,
    is_dict,
    is_function,
    is_instance,
    is_member,
    is_module,
    is_of,
    is_record,
    is_same_dict,
    is_same_number,
    is_sequence,
    itself,
    named,
    own,
    text_options,
    under_name,
)
from tracer.settings import Config
from tracer.trace.array import Array
from tracer.trace.source import is_ours

_MOST = 512  # steps
_CONSTANT = -1  # the place of what stays what it is
_EQUAL = (type(None), bool, int, float, complex, str, bytes)
_MUTABLE = (list, dict)
_MAKING = frozenset((  # methods that run when objects are made, copied or written to, or as text
    "__class_getitem__", "__copy__", "__deepcopy__", "__del__", "__delattr__", "__dir__", "__format__", "__getstate__",
    "__init__", "__init_subclass__", "__new__", "__post_init__", "__reduce__", "__reduce_ex__", "__replace__",
    "__repr__", "__set_name__", "__setattr__", "__setstate__", "__sizeof__", "__str__", "__annotate__",
    "__annotate_func__", "__dict__", "__weakref__",
))  # fmt: skip


Sorted = tuple[Callable[[Any, Any], bool], Any, Callable[[Any, int], None] | None]


def surroundings_of(functions: Sequence[Any]) -> Surroundings | None:
    """What functions stand among now; None where that cannot be told."""
    names: frozenset[str] = frozenset()
    try:
        while True:
            walker = _Walker(functions, names)
            walker.walk()
            if walker.names <= names:
                return walker.found()
            names |= walker.names
    except (Refused, RecursionError, ValueError):
        return None


class _Walker:
    """Follows what functions read. wanted: the attributes to look at in objects; names: those that the code reads."""

    def __init__(self, functions: Sequence[Any], wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self.names: set[str] = set()
        self.values: list[Any] = [*functions]
        self.roots = len(functions)
        self.steps: list[Step] = []
        self.arrays: list[int] = []
        self.same: list[tuple[int, int]] = []
        self.places: dict[int, int] = {}  # by id of what has an identity
        self.looked: dict[tuple[int, str], int] = {}  # names in dicts
        self.writes = self.formats = self.compares = self.tells = False
        self.holds_mutable = self.holds_objects = self.holds_memory = False
        self.constants: list[Any] = []
        self.bytes = 0

    def walk(self) -> None:
        for place in range(self.roots):
            self.look(place, itself, None)

    def found(self) -> Surroundings:
        """Raises Refused where what the code does is not known after all."""
        if (self.writes and self.holds_mutable) or (self.holds_objects and self.formats):
            raise Refused
        if self.holds_memory and not MEMORY.isdisjoint(self.names):
            raise Refused
        steps = self.steps
        if self.compares:  # by identity, which equal numbers need not have
            steps = [step._replace(holds=is_) if step.holds is are_equal else step for step in steps]
        if self.formats and self.holds_mutable:
            steps = [*steps, Step(0, text_options, None, is_same_dict, text_options(None, None))]
        return Surroundings(
            steps, self.arrays, self.same, [n for n in self.places.values() if n != _CONSTANT], self.tells
        )

    def look(self, source: int, read: Callable[[Any, Any], Any], key: Any) -> int:
        """Go there, and on from there. Returns the value's place."""
        value = read(self.values[source], key)
        if isinstance(value, ModuleType) and read not in (under_name, in_cell):
            raise Refused  # what is read of it goes by names that are not known
        holds, expected, onwards = self.sort(value)
        is_new = self.places.get(id(value), _CONSTANT) is _CONSTANT
        if read is given and holds is is_ and onwards in (None, self.ours) and is_new:  # nothing that could change
            if onwards is not None and id(value) not in self.places:
                self.places[id(value)] = _CONSTANT
                self.constants.append(value)
                self.ours(value, _CONSTANT)
            return _CONSTANT
        place = len(self.values)
        self.values.append(value)
        self.steps.append(Step(source, read, key, holds, expected))
        if place > _MOST:
            raise Refused
        if onwards is not None:
            first = self.places.setdefault(id(value), place)
            if first is _CONSTANT:
                self.steps[-1] = Step(source, read, key, is_, value)
            elif first != place:
                self.same.append((first, place))
            else:
                onwards(value, place)
        return place

    def sort(self, value: Any) -> Sorted:
        """What must be found again in a value's place: a test and what it takes; and how to go on from there."""
        kind = type(value)
        if kind in _EQUAL:
            self.formats |= kind is str and "%" in value
            return are_equal, value, None
        if kind is Array:
            return is_array, value.type, self.array
        if kind is np.ndarray:
            return self.numpys(value)
        if kind is tuple or kind is list:
            return is_sequence, (kind, len(value)), self.items
        if is_plain_record(kind):
            return is_record, (kind, dict(vars(kind))), self.items
        if kind is dict:
            return is_dict, self.keys(value), self.items
        if kind is FunctionType and is_users(value):
            return is_function, (value.__code__, value.__globals__), self.function
        if kind is MethodType:
            return is_of, kind, self.method
        if kind is partial:
            return is_of, kind, self.partial
        if is_number(value):
            return is_same_number, value, None
        if value is NOTHING or value is ... or isinstance(value, np.dtype | Config) or kind is range:
            return is_, value, None
        if isinstance(value, ModuleType):
            return is_module, (value, kind), None
        if is_plain_member(value):
            parts = [(cls, dict(vars(cls))) for cls in users_classes(kind)]
            return is_member, (value, dict(vars(value)), parts), None
        if kind is FunctionType and is_ours(value.__code__):
            return is_, value, self.ours
        if is_of_package(value):
            return is_, value, self.wrapper
        if is_known(value):
            return is_, value, None
        if isinstance(value, type) or (callable(value) and not is_users(type(value).__call__)):
            raise Refused
        return is_instance, _class_of(value), self.instance

    def array(self, value: Array, place: int) -> None:
        if value._trace is not None or value._owner != 0 or not isinstance(value.type, ArrayType | KeyType):
            raise Refused
        self.holds_mutable = True
        self.arrays.append(place)

    def numpys(self, value: np.ndarray[Any, Any]) -> Sorted:
        self.bytes += value.nbytes
        if value.dtype.hasobject or self.bytes > MOST_COPIED:
            raise Refused
        self.holds_mutable = self.holds_memory = True
        return has_bytes, (value.copy(), value.strides, value.flags.num), _nowhere

    def keys(self, value: dict[Any, Any]) -> tuple[Any, ...]:
        if not all(type(key) in _EQUAL for key in value):
            raise Refused
        return tuple(value)

    def items(self, value: Any, place: int) -> None:
        self.holds_mutable |= type(value) in _MUTABLE
        for key in value if type(value) is dict else range(len(value)):
            self.look(place, getitem, key)

    def partial(self, value: Any, place: int) -> None:
        for name in ("func", "args", "keywords"):
            self.look(place, getattr, name)

    def method(self, value: MethodType, place: int) -> None:
        for name in ("__func__", "__self__"):
            self.look(place, getattr, name)

    # functions

    def function(self, function: FunctionType, place: int) -> None:
        """One of the user's: what it reads."""
        reads = reads_of(function.__code__)
        if reads is None or not has_no_attributes(function):
            raise Refused
        self.writes |= reads.writes
        self.formats |= reads.formats
        self.compares |= reads.compares
        self.tells |= reads.tells_kinds
        self.names |= reads.attributes
        for name in ("__defaults__", "__kwdefaults__"):
            self.look(place, getattr, name)
        for number in range(len(function.__code__.co_freevars)):
            self.look(place, in_cell, number)
        for chain in reads.chains:
            self.chain(function, *chain)

    def chain(self, function: FunctionType, kind: str, name: str, *attributes: str) -> None:
        """A name of a function's, and the names after its dots: those of modules are looked up."""
        if kind == "global":
            value = self.named(function.__globals__, name)
            if value is NOTHING:
                value = builtin_of(function.__globals__, name)
                self.once(function.__globals__, name, builtin_of)
        elif name in function.__code__.co_freevars:
            value = in_cell(function, function.__code__.co_freevars.index(name))
        else:
            return  # a variable of its own
        value, is_new = followed(value, attributes, self.in_module)
        if isinstance(value, ModuleType):
            raise Refused  # handed on, under another name
        if is_new:
            self.look(0, given, value)

    def in_module(self, module: ModuleType, name: str) -> Any:
        value = self.named(vars(module), name)
        if value is NOTHING:
            raise Refused
        return value

    def named(self, names: dict[str, Any], name: str) -> Any:
        """What a name of a module stands for; NOTHING if it has none."""
        return self.once(names, name, named)

    def once(self, names: dict[str, Any], name: str, read: Callable[[dict[str, Any], str], Any]) -> Any:
        key = id(names), f"{read.__name__} {name}"
        if key not in self.looked:
            self.looked[key] = -1
            self.look(0, under_name, (read, names, name))
        return read(names, name)

    def ours(self, function: FunctionType, place: int) -> None:
        """A function of this package, which may run one of the user's."""
        if not is_known_python(function):
            raise Refused
        for inside in (getattr(function, "__wrapped__", None), *map(_content, function.__closure__ or ())):
            if inside is not None and callable(inside) and not isinstance(inside, type):
                self.look(0, given, inside)

    def wrapper(self, value: Any, place: int) -> None:
        """An object of this package. Its rules may be set anew."""
        held = getattr(value, "__dict__", None) or {}
        if type(value).__module__ == "tracer.runtime.jit.jit":
            self.look(place, getattr, "__wrapped__")
            return
        if any(callable(item) for item in held.values()):
            raise Refused

    # objects

    def instance(self, value: Any, place: int) -> None:
        """An object of the user's: the attributes that the code names, its own and those of its classes."""
        self.holds_mutable = self.holds_objects = True
        for name in sorted(self.wanted):
            self.look(place, own, name)
        for cls in type(value).__mro__:
            for name, member in [*vars(cls).items()] if cls is not object else ():
                special = name.startswith("__") and name.endswith("__") and name not in _MAKING
                if name in self.wanted or (special and (callable(member) or hasattr(type(member), "__get__"))):
                    self.member(cls, name, member)

    def member(self, cls: Any, name: str, member: Any) -> None:
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, staticmethod):
            member = member.__func__
        elif isinstance(member, classmethod):
            raise Refused
        if is_users(member) and is_written(member, name, cls):
            self.names |= {name for name in member.__code__.co_names if not name.startswith("__")}
            return
        self.look(0, given, member)


def _class_of(value: Any) -> tuple[Any, ...]:
    """The class of an object, with what is in it. Raises Refused where attributes are not found in the usual way."""
    cls = type(value)
    if type(cls) is not type:
        raise Refused
    parts = []
    for one in cls.__mro__:
        if one is object:
            continue
        members = dict(vars(one))
        has_hooks = any(name in members for name in ("__getattr__", "__getattribute__", "__slots__", "__get__"))
        if has_hooks or isinstance(members.get("__dict__"), property) or not is_users_class(one):
            raise Refused
        parts.append((one, members))
    if type(getattr(value, "__dict__", None)) is not dict:
        raise Refused
    return cls, cls.__mro__, tuple(parts)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned
        raise Refused from None


def _nowhere(value: Any, place: int) -> None:
    """There is nothing to look at, but it matters which object it is."""
