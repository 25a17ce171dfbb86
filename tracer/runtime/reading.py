"""What code reads from outside and may do there, as far as its instructions tell."""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

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
_TEXT_NAMES = ("str", "format", "format_map", "join", "array_str", "array_repr", "array2string")
_TO_FILES = ("dump", "tofile")
MEMORY = frozenset((  # where the numbers of a NumPy array lie
    "base", "byte_bounds", "ctypes", "flags", "may_share_memory", "obj", "shares_memory", "strides",
))  # fmt: skip
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Reads(NamedTuple):
    """What code reads from outside. chains: (kind, name, attribute, ...). writes: whether it changes some container.

    attributes: all that it reads, of whatever. formats: whether it may make text of objects. compares: whether it asks
    if two objects are one. catches: whether it goes on after errors, as of names that are not there. tells_kinds:
    whether it may tell an array of NumPy's from one of ours, or write to it.
    """

    chains: tuple[tuple[str, ...], ...]
    writes: bool
    attributes: frozenset[str]
    formats: bool
    compares: bool
    catches: bool
    tells_kinds: bool

    @property
    def is_odd(self) -> bool:
        """Whether it is for `surroundings` to tell if everything is as it was."""
        return self.compares or self.catches


_SINGLE = [("LOAD_CONST", value) for value in (None, True, False, ...)]


def _is_hidden(name: str) -> bool:
    """Whether an attribute is one of Python's own, behind which there may be anything."""
    return name.startswith("__") and name.endswith("__") and name != "__call__"


def _may_write(method: str) -> bool:
    return method in _WRITING or method.startswith("__")


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
    compares = catches = tells = False
    before: Any = None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        compares = compares or (name == "IS_OP" and (before.opname, before.argval) not in _SINGLE)
        catches = catches or name == "PUSH_EXC_INFO"
        before = instruction
        tells = tells or name.startswith("MATCH_") or instruction.argval == "isinstance"
        tells = tells or (name == "BINARY_OP" and instruction.argrepr.endswith("="))
        formats = formats or name.startswith(_TEXT) or instruction.argval in _TEXT_NAMES
        if name in _ATTRIBUTES:
            attributes.add(instruction.argval)
            if instruction.argval in _TO_FILES or _is_hidden(instruction.argval):
                return None
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
            compares = compares or inner.compares
            catches = catches or inner.catches
            tells = tells or inner.tells_kinds
    tells = tells or writes or compares or catches or formats or not MEMORY.isdisjoint(attributes)
    return Reads(tuple(chains), writes, frozenset(attributes), formats, compares, catches, tells)
