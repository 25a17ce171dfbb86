"""The places that a traced function reads, as far as its code tells: names, attributes of modules, and functions.

Followed are closure variables, globals, modules that code imports itself, defaults of parameters and what `partial`
gives them, and dotted paths from these, from a bound `self` and from `super()`: modules, objects and classes are looked
into without running any of their code. What code reads by name is told in `named_paths`. A function that is reached is
guarded itself: its code and the defaults of its parameters, which may be assigned to; what it reads is guarded in turn.
Modules, classes and functions of libraries are taken to stay what they are, and so are attributes of objects, which are
constants of the trace; of an attribute that is a function, or a method of its class, the function is guarded, not where
it stands.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tracer.once import once
from tracer.runtime.guards.guards import FUNCTION_SLOTS, NOTHING, Guard
from tracer.runtime.named_paths import read
from tracer.trace.source import is_ours

_DEEPEST = 8  # functions that call each other
_MOST = 64  # things in a container that are looked at
_RUN = (FunctionType, MethodType, partial, tuple, list, dict)
_OPERATORS = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"
)  # fmt: skip
_SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        *(before + name for name in _OPERATORS for before in ("", "r", "i")),
        "neg", "pos", "abs", "invert", "round", "lt", "le", "eq", "ne", "gt", "ge", "bool", "int", "float", "complex",
        "index", "len", "iter", "next", "reversed", "contains", "getitem", "missing", "enter", "exit", "getattr",
        "getattribute", "jax_array", "array",
    )
)  # fmt: skip
_NO_ARGUMENTS: Mapping[str, Any] = {}
_PACKAGE = __name__.partition(".")[0]


def guards_of(function: Any, arguments: Mapping[str, Any] = _NO_ARGUMENTS) -> list[Guard]:
    """Guards on what a function reads, and the functions that it names, each place once.

    arguments: those of its parameters that are known Python objects.
    """
    found: dict[tuple[int, str], Guard] = {}
    seen: set[tuple[int, ...]] = set()

    def visit(value: Any, depth: int, given: Mapping[str, Any] = _NO_ARGUMENTS) -> None:
        given = _defaults(value) | dict(given) if is_users(value) else given
        key = id(value), *map(id, given.values())
        if not depth or key in seen:
            return
        seen.add(key)
        if is_users(value):
            for guard in _own(value):
                found.setdefault((id(guard.holder), guard.name), guard)
            for guard in _named(value):
                note(guard, depth)
            for default in given.values():
                visit(default, depth - 1)
            for path in read(value.__code__).paths:
                follow(value, path, depth, given)
        for inner, known in _behind(value):
            visit(inner, depth - 1, known or given)

    def note(guard: Guard, depth: int) -> None:
        if _may_change(guard):
            found.setdefault((id(guard.holder), guard.name), guard)
        visit(guard.value, depth - 1)

    def follow(of: FunctionType, path: tuple[str, ...], depth: int, given: Mapping[str, Any]) -> None:
        if path[0] == "super":
            self, value = _inherited(of, path[1], given)
            visit(value, depth - 1, _self_of(value, self))
            return
        value = _root(of, path[0], path[1], given)
        for name in path[2:]:
            if isinstance(value, ModuleType):
                if is_stable(value) or name not in vars(value):
                    return
                guard = Guard(vars(value), name, f"{value.__name__}.{name}")
                note(guard, depth)
                value = guard.value
            else:
                owner, value = value, _attribute(value, name)
                visit(value, depth - 1, _self_of(value, owner))

    visit(function, _DEEPEST, arguments)
    return list(found.values())


def is_users(value: Any) -> bool:
    return isinstance(value, FunctionType) and not is_ours(value.__code__) and not _is_library(value.__code__)


def _own(function: FunctionType) -> Iterator[Guard]:
    """What a function is, besides what it reads. Defaults that are not set were not missed in tracing."""
    for slot in FUNCTION_SLOTS:
        if getattr(function, slot) is not None:
            yield Guard(function, slot)
    defaults: dict[str, Any] = function.__kwdefaults__ or {}
    for name in defaults:
        yield Guard(defaults, name, f"default of '{name}' in {function.__qualname__}")


def _named(function: FunctionType) -> Iterator[Guard]:
    """The closure variables and globals that a user's function names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Guard(cell, name)
    for name in read(function.__code__).globals:
        if name in function.__globals__:
            yield Guard(function.__globals__, name)


def _behind(value: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Functions that a function or a callable object runs without naming them, and their arguments that are known."""
    if isinstance(value, FunctionType):
        if not is_ours(value.__code__):
            return
        yield getattr(value, "__wrapped__", None), _NO_ARGUMENTS
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents, _NO_ARGUMENTS
            except ValueError:  # not assigned
                continue
    elif isinstance(value, MethodType):
        yield value.__func__, _self_of(value.__func__, value.__self__)
    elif isinstance(value, partial):
        yield value.func, _given(value.func, value.args, value.keywords)
    elif type(value) in (tuple, list, dict):
        items = list(islice(value.values() if type(value) is dict else value, _MOST))
        runs = {kind for kind in {*map(type, items)} if issubclass(kind, _RUN) or is_users_class(kind)}
        yield from ((item, _NO_ARGUMENTS) for item in items if type(item) in runs)
    elif not isinstance(value, type | ModuleType):
        yield _attribute(value, "__wrapped__"), _NO_ARGUMENTS
        called = _attribute(type(value), "__call__")
        yield called, _self_of(called, value)
        for method in _special(type(value)):
            yield method, _self_of(method, value)


def _special(cls: type) -> Iterator[Any]:
    """The functions of a user's class that operators, indices, loops and `with` run."""
    for owner in cls.__mro__:
        if is_users_class(owner):
            yield from (_plain(vars(owner)[name]) for name in _SPECIAL.intersection(vars(owner)))


def _defaults(function: FunctionType) -> dict[str, Any]:
    """The parameters that have defaults, and these: which of them a call takes is not known."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(defaults) :], defaults, strict=False)) | (function.__kwdefaults__ or {})


def _given(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that `partial` gives values."""
    if not is_users(function):
        return _NO_ARGUMENTS
    return {**dict(zip(function.__code__.co_varnames[: function.__code__.co_argcount], args, strict=False)), **keywords}


def _inherited(function: FunctionType, name: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """`self`, and what `super()` finds for it under a name; a pair of None where one of them is not known."""
    self = given.get(function.__code__.co_varnames[0]) if function.__code__.co_argcount else None
    owner = _root(function, "cell", "__class__", _NO_ARGUMENTS)
    classes = self.__mro__ if isinstance(self, type) else type(self).__mro__
    if owner not in classes:
        return None, None
    following = classes[classes.index(owner) + 1 :]
    return self, next((_plain(vars(c)[name]) for c in following if name in vars(c)), None)


def _self_of(function: Any, bound: Any) -> Mapping[str, Any]:
    """The first parameter's value, where it is known. What is bound may be a jitted function."""
    if not isinstance(function, FunctionType):
        function = _attribute(function, "__wrapped__")
    if bound is None or isinstance(bound, ModuleType) or not is_users(function):
        return _NO_ARGUMENTS
    return dict.fromkeys(function.__code__.co_varnames[: min(function.__code__.co_argcount, 1)], bound)


def _root(function: FunctionType, kind: str, name: str, given: Mapping[str, Any]) -> Any:
    """What the first name of a path stands for."""
    match kind:
        case "global":
            return function.__globals__.get(name)
        case "cell" if name in function.__code__.co_freevars:
            assert function.__closure__ is not None
            return Guard(function.__closure__[function.__code__.co_freevars.index(name)], name).value
        case "module":
            return sys.modules.get(_absolute(name, function.__globals__))
        case _:
            return given.get(name)


def _absolute(module: str, globals: Mapping[str, Any]) -> str:
    """A module's name, of which leading dots stand for the package of the importing one, and those around it."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    if not level:
        return name
    package = str(globals.get("__package__") or "").split(".")
    return ".".join([*package[: len(package) - level + 1], *[name] * bool(name)])


def _attribute(value: Any, name: str) -> Any:
    """What an object's attribute is, or the function behind a method or property, found without running its code."""
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    for owner in classes:
        if name in vars(owner):
            return _plain(vars(owner)[name])
    try:
        return object.__getattribute__(value, "__dict__").get(name)
    except AttributeError:  # slots alone
        return None


def _plain(found: Any) -> Any:
    """The function behind a method or property of a class."""
    if isinstance(found, staticmethod | classmethod):
        return found.__func__
    return found.fget if isinstance(found, property) else found


def _may_change(guard: Guard) -> bool:
    """Whether a name is looked at at every call: not where a library calls the function or class so itself."""
    value = guard.value
    if value is NOTHING:
        return False
    if isinstance(value, ModuleType):
        return not is_stable(value)
    if not isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return True
    return value.__name__ != guard.name or is_users(value) or is_users_class(value)


def is_users_class(value: Any) -> bool:
    """Whether it is a class that no library has."""
    if not isinstance(value, type):
        return False
    module = sys.modules.get(value.__module__)
    return module is None or not is_stable(module)


def is_stable(module: ModuleType) -> bool:
    """Whether it is of a library, of Python or of ours."""
    file = vars(module).get("__file__")  # which a module's own `__getattr__` could make up
    if not isinstance(file, str):
        return vars(module).get("__name__") in sys.builtin_module_names
    return bool(file.startswith(_libraries())) or module.__name__.partition(".")[0] == _PACKAGE


@lru_cache(maxsize=4096)
def _is_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_libraries())


@once
def _libraries() -> tuple[str, ...]:
    """The folders of installed modules."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
