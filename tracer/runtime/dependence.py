"""What a function of the user's depends on, where its code tells: then a call may be replayed though nobody said `jit`.

`jit` takes attributes of objects, items of containers and functions of libraries for constants, and says so. Outside it
a function runs whenever it is called. It is traced for later calls only if its code, and that of the functions that it
names, reads nothing but arguments and names that are guarded, and writes nothing that others see. Whatever is in doubt
is refused: a user's object, a class of the user's, a function of a library other than NumPy's, `print`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tracer.runtime.contents import PLAIN, Snapshot, is_plain_record, snapshot
from tracer.runtime.guards.guard_discovery import guards_of, is_stable, is_users, is_users_class
from tracer.runtime.guards.guards import Guard, ValueGuard
from tracer.runtime.reading import MEMORY, reads_of
from tracer.settings import Config
from tracer.trace.array import Array
from tracer.trace.captured_values import Seen
from tracer.trace.source import is_of_this_package, is_ours

_DEEPEST = 8  # functions that call each other
MOST_COPIED = 1 << 17  # bytes of NumPy arrays that are compared at every call
_OUTSIDE = frozenset((  # NumPy's functions and classes that read or write files, settings, the clock, or text
    "datetime64", "from_dlpack", "fromfile", "fromregex", "genfromtxt", "get_include", "get_printoptions", "getbufsize",
    "geterr", "geterrcall", "info", "load", "loadtxt", "memmap", "printoptions", "save", "savetxt", "savez",
    "savez_compressed", "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config", "show_runtime",
))  # fmt: skip
_BUILTINS = (
    abs, all, any, bool, complex, dict, divmod, enumerate, filter, float, int, isinstance, len, list, map, max, min,
    pow, range, reversed, round, set, slice, sorted, str, sum, tuple, zip,
)  # fmt: skip
_MODULES = (math, sys.modules["_operator"])
_OPERATORS_THAT_WRITE = ("setitem", "delitem", "call", *(f"i{n}" for n in (
    "add", "and", "concat", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv",
    "xor",
)))  # fmt: skip
_PACKAGES = ("numpy", "tracer", "ml_dtypes")
_NUMPY = ("numpy", "numpy.linalg", "numpy.fft")  # not numpy.random, whose functions draw


class Refused(Exception):  # noqa: N818  # an answer, not an error
    """It depends on more than can be told."""


class Dependence(NamedTuple):
    """What must be as it was for functions to do as they did: names, the bytes of NumPy's arrays, and containers.

    tells_kinds: see `Reads`.
    """

    guards: Sequence[Guard]
    values: Sequence[ValueGuard]
    containers: Sequence[Snapshot]
    tells_kinds: bool

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
    except (Refused, RecursionError):
        return None
    if reader.holds_mutable and (reader.writes or reader.formats or reader.memory):
        return None
    found = [*reader.guards, *(guard for function in reader.users for guard in guards_of(function))]
    guards = {(id(g.holder), g.name): g for g in found}
    values = [ValueGuard(Seen(array, array.copy())) for array in reader.arrays]
    return Dependence([*guards.values()], values, reader.containers, reader.tells)


class _Reader:
    """Looks at functions and at what they name; raises Refused at what it does not know.

    users: the functions of the user's that it met. writes: whether one of them changes some container or array;
    formats, memory: makes text of some, or asks where arrays lie. holds_mutable: whether one of them reads such from
    outside, which that could be.
    """

    def __init__(self) -> None:
        self.users: list[FunctionType] = []
        self.guards: list[Guard] = []
        self.containers: list[Snapshot] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.writes = self.holds_mutable = self.formats = self.memory = self.tells = False
        self._seen: set[int] = set()
        self._bytes = 0

    def function(self, value: Any, depth: int) -> None:
        """One that is called."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if not isinstance(value, FunctionType):
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
        if kind in PLAIN or isinstance(value, np.dtype | Config) or is_number(value):
            self.formats |= kind is str and "%" in value
            return
        if kind is tuple:
            for item in value:
                self.value(item, depth)
        elif kind is Array:
            self.holds_mutable = True
        elif kind is np.ndarray:
            self._array(value)
        elif kind is list or kind is dict:
            self._container(value, depth)
        elif callable(value):
            self.function(value, depth)
        else:
            raise Refused

    def _container(self, value: Any, depth: int) -> None:
        found = snapshot(value)
        self.containers.append(found)
        self.holds_mutable = True
        for part in found.parts:
            if type(part) is not tuple:
                self.value(part, depth)
            elif part[0] is dict and not all(type(key) in PLAIN for key in part[1:]):
                raise Refused

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        self._bytes += value.nbytes
        if value.dtype.hasobject or self._bytes > MOST_COPIED:
            raise Refused
        self.holds_mutable = True
        self.arrays.append(value)

    def _users(self, function: FunctionType, depth: int) -> None:
        reads = reads_of(function.__code__)
        if reads is None or reads.is_odd or not has_no_attributes(function):
            raise Refused
        self.users.append(function)
        self.formats |= reads.formats
        self.tells |= reads.tells_kinds
        self.memory |= not MEMORY.isdisjoint(reads.attributes)
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
                self.guards.append(Guard(builtins_of(names), name))
        elif name in function.__code__.co_freevars:
            assert function.__closure__ is not None
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            value = content_of(cell)
            self.guards.append(Guard(cell, name))
        else:
            return  # a variable of its own
        self.value(followed(value, attributes, self._in_module)[0], depth)

    def _in_module(self, module: ModuleType, name: str) -> Any:
        if not is_stable(module):
            self.guards.append(Guard(module, "__class__"))
        return self._named(vars(module), name)

    def _named(self, names: dict[str, Any], name: str) -> Any:
        """What a name stands for, whatever it is: another function of a library would be missed by `jit`."""
        if name not in names:
            raise Refused
        self.guards.append(Guard(names, name))
        return names[name]

    def _ours(self, function: FunctionType, depth: int) -> None:
        """A function of this package, which may run one of the user's."""
        if not is_known_python(function):
            raise Refused
        if hasattr(function, "__wrapped__"):
            self.function(function.__wrapped__, depth)
        for cell in function.__closure__ or ():
            inside = content_of(cell)
            if isinstance(inside, partial):  # one of ours, which nobody writes to
                for item in (inside.func, *inside.args, *inside.keywords.values()):
                    self.value(item, depth)
            elif callable(inside):
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
            self.containers.append(snapshot(held))
        for rule in rules:
            self.function(rule, depth)


def followed(
    value: Any, attributes: Sequence[str], read: Callable[[ModuleType, str], Any]
) -> tuple[Any, bool]:  # fmt: skip
    """What stands behind the dots after a name, as far as these are modules; whether its module lists no such name.

    read: looks a name up in a module, and notes that. Raises Refused where code runs that may do more than compute.
    """
    is_new = False
    for attribute in attributes:
        if is_odd(value, attribute):
            raise Refused
        if not isinstance(value, ModuleType):
            break  # of a value that is known
        module = value
        if is_stable(module):
            value, is_new = member_of(module, attribute), attribute not in vars(module)
            if not is_new:
                read(module, attribute)
        else:
            if type(module) is not ModuleType:
                raise Refused  # names are not found in the usual way
            value, is_new = read(module, attribute), False
    return value, is_new


def is_odd(value: Any, attribute: str) -> bool:
    """Whether an attribute of a value is nothing that code which only computes reads."""
    return isinstance(value, FunctionType) or (attribute == "at" and isinstance(value, np.ufunc))


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
        if value.__module__.startswith("numpy.random") or value.__name__ in _OUTSIDE:
            return False
        return value.__module__.partition(".")[0] in _PACKAGES or is_plain_record(value)
    if isinstance(value, BuiltinFunctionType | type(np.sum)) and value.__name__ in _OUTSIDE:
        return False
    if isinstance(value, BuiltinFunctionType):
        if _is_among(value.__self__, _MODULES):
            return not value.__name__.startswith(_OPERATORS_THAT_WRITE)
        return _is_among(value, _BUILTINS) or value.__module__ in _NUMPY
    if isinstance(value, np.ufunc):
        return not all("O" in kinds for kinds in value.types)  # which run Python
    return type(value) is type(np.sum) and value.__module__ in _NUMPY  # those that `__array_function__` may take over


def is_known_python(function: FunctionType) -> bool:
    """Whether a function in Python is of this package, or of NumPy's that compute."""
    package = str(function.__module__).partition(".")[0]
    if package == "numpy":
        return function.__name__ not in _OUTSIDE
    return package in _PACKAGES or is_of_this_package(function.__code__)


def is_number(value: Any) -> bool:
    """Whether it is a number of NumPy's, of no class of the user's, that nobody can write to."""
    return isinstance(value, np.generic) and not isinstance(value, np.void) and not is_users_class(type(value))


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
    found = builtins_of(names).get(name)
    if found is None:
        raise Refused
    return found


def builtins_of(names: dict[str, Any]) -> dict[str, Any]:
    """Python's own names, as a module has them."""
    found = names.get("__builtins__", {})
    return found if isinstance(found, dict) else vars(found)
