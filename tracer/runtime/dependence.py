"""What a function of the user's depends on, where its code tells: then a call may be replayed though nobody said `jit`.

`jit` takes attributes of objects, items of containers and functions of libraries for constants, and says so. Outside it
a function runs whenever it is called. It is traced for later calls only if its code, and that of the functions that it
names, reads nothing but arguments and names that are guarded, and writes nothing that others see. Whatever is in doubt
is refused: a user's object, a class of the user's, a function of a library other than NumPy's, `print`.
"""

from __future__ import annotations

import dis
import inspect
import math
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import optree

from tracer.runtime.guards import Guard, ValueGuard, are_equal
from tracer.runtime.places import guards_of, is_stable, is_users
from tracer.settings import Config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.outside import Seen
from tracer.trace.source import is_ours

_DEEPEST = 8  # functions that call each other
PLAIN = (type(None), bool, int, float, complex, str, bytes, slice, range, EllipsisType)
MOST_COPIED = 1 << 17  # bytes of NumPy arrays that are compared at every call
_WRITES = frozenset((
    "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME", "STORE_ATTR", "DELETE_ATTR", "IMPORT_NAME",
    "LOAD_NAME", "LOAD_BUILD_CLASS", "LOAD_LOCALS", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS",
    "LOAD_FROM_DICT_OR_DEREF",
))  # fmt: skip
_ITEM_WRITES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_FREE_WRITES = ("STORE_DEREF", "DELETE_DEREF")
_READS = {"LOAD_GLOBAL": "global", "LOAD_DEREF": "cell"}
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_WRITING = frozenset((  # methods and functions that write to containers and arrays
    "append", "clear", "copyto", "extend", "fill", "fill_diagonal", "insert", "itemset", "partition", "place", "pop",
    "popitem", "put", "put_along_axis", "putmask", "remove", "resize", "reverse", "setdefault", "setfield", "setflags",
    "shuffle", "sort", "update",
))  # fmt: skip
_TEXT = ("FORMAT_", "CONVERT_VALUE")
_TEXT_NAMES = ("str", "format", "format_map", "join")
_ASK = frozenset(("get_printoptions", "getbufsize", "geterr", "geterrcall"))  # what becomes of NumPy's errors and text
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_BUILTINS = (
    abs, all, any, bool, complex, dict, divmod, enumerate, filter, float, int, isinstance, len, list, map, max, min,
    pow, range, reversed, round, set, slice, sorted, str, sum, tuple, zip,
)  # fmt: skip
_MODULES = (math, sys.modules["_operator"])
_PACKAGES = ("numpy", "tracer", "ml_dtypes")
_NUMPY = ("numpy", "numpy.linalg", "numpy.fft")  # not numpy.random, whose functions draw


class Refused(Exception):  # noqa: N818  # an answer, not an error
    """It depends on more than can be told."""


class Snapshot(NamedTuple):
    """A container of arrays and numbers, and what was in it."""

    container: Any
    structure: trees.Structure
    leaves: Sequence[Any]

    def holds(self) -> bool:
        leaves, structure = trees.flatten(self.container)
        return structure == self.structure and all(map(are_equal, leaves, self.leaves))


class Dependence(NamedTuple):
    """What must be as it was for functions to do as they did: names, the bytes of NumPy's arrays, and containers."""

    guards: Sequence[Guard]
    values: Sequence[ValueGuard]
    containers: Sequence[Snapshot]

    def is_untouched(self) -> bool:
        """Whether everything is as it was."""
        names = all(g.holds() for g in self.guards) and all(v.holds() for v in self.values)
        return names and all(c.holds() for c in self.containers)


def dependence_of(functions: Sequence[Any]) -> Dependence | None:
    """What the functions depend on besides their arguments; None where that cannot be told."""
    reader = _Reader()
    try:
        for function in functions:
            reader.function(function, _DEEPEST)
    except Refused:
        return None
    if reader.writes and reader.holds_mutable:
        return None
    found = [*reader.guards, *(guard for function in reader.users for guard in guards_of(function))]
    guards = {(id(g.holder), g.name): g for g in found}
    values = [ValueGuard(Seen(array, array.copy())) for array in reader.arrays]
    return Dependence([*guards.values()], values, reader.containers)


def is_plain_tree(structure: trees.Structure) -> bool:
    """Whether a tree has no node of a class with code of the user's, which functions could run."""
    kind = structure.type
    if kind is not None and kind not in _NODES and not is_plain_record(kind):
        return False
    return all(map(is_plain_tree, structure.children()))


_NODES = (tuple, list, dict, type(None))


def is_plain_record(kind: Any) -> bool:
    """Whether it is a class of named tuples, and nothing more."""
    if not optree.is_namedtuple_class(kind) or kind.__mro__[1:] != tuple.__mro__:
        return False
    return not any(map(_runs_users_code, vars(kind).values()))


def is_plain_member(value: Any) -> bool:
    """Whether it is a member of an enumeration, of a value that stays what it is, and of no code of the user's."""
    if not isinstance(value, Enum) or type(value._value_) not in PLAIN:
        return False
    return not any(_runs_users_code(member) for cls in type(value).__mro__ for member in vars(cls).values())


def _runs_users_code(member: Any) -> bool:
    """Whether a member of a class is a function of the user's. `collections` writes one, from a string."""
    function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return is_users(function) and function.__code__.co_filename != "<string>"


class _Reader:
    """Looks at functions and at what they name; raises Refused at what it does not know.

    users: the functions of the user's that it met. writes: whether one of them changes some container or array.
    holds_mutable: whether one of them reads such from outside, which that could be.
    """

    def __init__(self) -> None:
        self.users: list[FunctionType] = []
        self.guards: list[Guard] = []
        self.containers: list[Snapshot] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.writes = self.holds_mutable = False
        self._seen: set[int] = set()
        self._bytes = 0

    def function(self, value: Any, depth: int) -> None:
        """One that is called."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, partial):
            self.function(value.func, depth)
            for item in (*value.args, *value.keywords.values()):
                self.value(item, depth)
        elif not isinstance(value, FunctionType):
            self._callable(value, depth)
        elif is_ours(value.__code__):
            self._ours(value, depth)
        elif is_users(value) and depth:
            self._users(value, depth)
        else:
            raise Refused

    def value(self, value: Any, depth: int) -> None:
        """Whatever a name stands for."""
        kind = type(value)
        if kind in PLAIN or isinstance(value, np.generic | np.dtype | Config) or is_plain_member(value):
            return
        if kind is tuple or is_plain_record(kind):
            for item in value:
                self.value(item, depth)
        elif kind is Array:
            self.holds_mutable = True
        elif kind is np.ndarray:
            self._array(value)
        elif kind is list or kind is dict:
            leaves, structure = trees.flatten(value)
            self.containers.append(Snapshot(value, structure, leaves))
            self.holds_mutable = True
            for leaf in leaves:
                self.value(leaf, depth)
        elif callable(value):
            self.function(value, depth)
        else:
            raise Refused

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        self._bytes += value.nbytes
        if value.dtype.hasobject or self._bytes > MOST_COPIED:
            raise Refused
        self.holds_mutable = True
        self.arrays.append(value)

    def _users(self, function: FunctionType, depth: int) -> None:
        reads = reads_of(function.__code__)
        if reads is None or not has_no_attributes(function):
            raise Refused
        self.users.append(function)
        self.writes |= reads.writes
        for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.value(item, depth - 1)
        for chain in reads.chains:
            self._chain(function, chain, depth - 1)

    def _chain(self, function: FunctionType, chain: tuple[str, ...], depth: int) -> None:
        """A name of a function's, and the names after its dots: those of modules are looked up."""
        kind, name, *attributes = chain
        if kind == "global":
            names = function.__globals__
            if name in names:
                value = self._named(names, name)
            else:
                value = builtin_of(names, name)
                self.guards.append(Guard(names, name))  # a name of the module would come before Python's
        elif name in function.__code__.co_freevars:
            assert function.__closure__ is not None
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            value = content_of(cell)
            self.guards.append(Guard(cell, name))
        else:
            return  # a variable of its own
        for attribute in attributes:
            if is_odd(value, attribute):
                raise Refused
            if not isinstance(value, ModuleType):
                break  # of a value that is known
            if is_stable(value):
                value = member_of(value, attribute)
            else:
                value = self._named(vars(value), attribute)
        self.value(value, depth)

    def _named(self, names: dict[str, Any], name: str) -> Any:
        """What a name stands for, whatever it is: another function of a library would be missed by `jit`."""
        if name not in names:
            raise Refused
        self.guards.append(Guard(names, name))
        return names[name]

    def _ours(self, function: FunctionType, depth: int) -> None:
        """A function of this package, which may run one of the user's."""
        if hasattr(function, "__wrapped__"):
            self.function(function.__wrapped__, depth)
        for cell in function.__closure__ or ():
            inside = content_of(cell)
            if callable(inside):
                self.function(inside, depth)

    def _callable(self, value: Any, depth: int) -> None:
        """A class, a function in C, or an object of ours that wraps a function of the user's."""
        if is_of_package(value):
            self._wrapper(value, depth)
        elif not is_known(value):
            raise Refused

    def _wrapper(self, value: Any, depth: int) -> None:
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.function(wrapped, depth)
        held = getattr(value, "__dict__", {})
        rules = [item for item in held.values() if callable(item) and item is not wrapped]
        if rules:  # of derivatives, which may be set anew
            self.containers.append(Snapshot(held, *reversed(trees.flatten(held))))
        for rule in rules:
            self.function(rule, depth)


def is_odd(value: Any, attribute: str) -> bool:
    """Whether an attribute of a value is nothing that code which only computes reads."""
    return isinstance(value, FunctionType) or attribute in _ASK or (attribute == "at" and isinstance(value, np.ufunc))


def member_of(module: ModuleType, name: str) -> Any:
    """What a name of a library's module stands for. Raises Refused for other libraries than those that compute."""
    if module.__name__.partition(".")[0] not in _PACKAGES and not _is_among(module, _MODULES):
        raise Refused
    return getattr(module, name, None)


def is_of_package(value: Any) -> bool:
    """Whether it is an object of ours that may wrap a function of the user's."""
    return not isinstance(value, type) and type(value).__module__.partition(".")[0] == "tracer"


def is_known(value: Any) -> bool:
    """Whether it is a class, or a function in C, that does nothing but compute."""
    if isinstance(value, type):
        if value.__module__ == "builtins":
            return _is_among(value, _BUILTINS) or issubclass(value, Exception)
        return value.__module__.partition(".")[0] in _PACKAGES or is_plain_record(value)
    if isinstance(value, BuiltinFunctionType):
        return _is_among(value, _BUILTINS) or _is_among(value.__self__, _MODULES) or value.__module__ in _NUMPY
    if isinstance(value, np.ufunc):
        return not all("O" in kinds for kinds in value.types)  # which run Python
    return type(value) is type(np.sum) and value.__module__ in _NUMPY  # those that `__array_function__` may take over


def has_no_attributes(function: FunctionType) -> bool:
    """Whether nobody gave a function attributes, which code could read."""
    return all(name.startswith("__") for name in function.__dict__)


def content_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned
        raise Refused from None


def _is_among(value: Any, known: Iterable[Any]) -> bool:
    return any(value is one for one in known)


def builtin_of(names: dict[str, Any], name: str) -> Any:
    builtins = names.get("__builtins__", {})
    found = builtins.get(name) if isinstance(builtins, dict) else getattr(builtins, name, None)
    if found is None:
        raise Refused
    return found


class Reads(NamedTuple):
    """What code reads from outside. chains: (kind, name, attribute, ...). writes: whether it changes some container.

    attributes: all that it reads, of whatever. formats: whether it may make text of objects.
    """

    chains: tuple[tuple[str, ...], ...]
    writes: bool
    attributes: frozenset[str]
    formats: bool


def _may_write(method: str) -> bool:
    return method in _WRITING or (method.startswith("__") and method != "__call__")


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads | None:
    """The same for a function's code, and for functions in it; None where it writes outside, or runs later."""
    chains: dict[tuple[str, ...], None] = {}
    writes = any(type(constant) is tuple and "out" in constant for constant in code.co_consts)  # names of keywords
    chain: tuple[str, ...] = ()
    attributes: set[str] = set()
    formats = any(type(constant) is str and "%" in constant for constant in code.co_consts)
    if code.co_flags & _RUNS_LATER and code.co_name != "<genexpr>":
        return None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        formats = formats or name.startswith(_TEXT) or instruction.argval in _TEXT_NAMES
        if name in _ATTRIBUTES:
            attributes.add(instruction.argval)
        if chain and name in _ATTRIBUTES:
            writes = writes or _may_write(instruction.argval)
            chain = (*chain, instruction.argval)
            continue
        if chain:
            chains[chain] = None
        chain = ()
        if name in _READS:
            chain = (_READS[name], instruction.argval)
        elif name in _WRITES or (name in _FREE_WRITES and instruction.argval in code.co_freevars):
            return None
        writes = writes or name in _ITEM_WRITES or (name in _ATTRIBUTES and _may_write(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads_of(constant)
            if inner is None:
                return None
            chains.update(dict.fromkeys(inner.chains))
            writes = writes or inner.writes
            attributes |= inner.attributes
            formats = formats or inner.formats
    return Reads(tuple(chains), writes, frozenset(attributes), formats)
