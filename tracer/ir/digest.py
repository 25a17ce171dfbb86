"""The structural hash of programs: equal for programs that differ in names and source lines alone.

It is the same in every process unless a parameter is opaque (the Python functions of custom rules): those count
by identity, through a serial number given at first sight.
"""

from __future__ import annotations

import itertools
import struct
import weakref
from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from tracer.ir.primitive import Primitive

_serials: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_next_serial = itertools.count()


def encode(value: Any) -> str:
    """Canonical text of a parameter."""
    match value:
        case None | bool() | str():
            return repr(value)
        case int():
            return str(value)
        case float():
            return struct.pack("<d", value).hex()
        case complex():
            return struct.pack("<2d", value.real, value.imag).hex()
        case tuple() | list():
            return f"({','.join(encode(item) for item in value)})"
        case dict():
            return f"{{{','.join(f'{encode(k)}:{encode(v)}' for k, v in value.items())}}}"
        case np.dtype():
            return str(value)
        case Enum():
            return str(value)
        case Primitive():
            return value.name
        case np.generic():
            return f"{value.dtype}={value.tobytes().hex()}"
        case _ if hasattr(value, "__tracer_digest__"):
            return str(value.__tracer_digest__())
        case _ if type(value).__module__.startswith("tracer."):
            return str(value)  # frozen records of ours: their repr is canonical
        case _:
            return opaque(value)


def params_key(params: Mapping[str, Any]) -> Hashable:
    """Equal for equal parameters of a primitive, in this process: quicker than their text."""
    if len(params) > 1:
        return tuple([(name, _comparable(params[name])) for name in sorted(params)])
    return tuple([(name, _comparable(value)) for name, value in params.items()]) if params else ()


def _comparable(value: Any) -> Hashable:
    """A value that compares as its text would: 1, 1.0 and True are different."""
    kind = type(value)
    if kind is int or value is None or isinstance(value, np.dtype):
        key: Hashable = value
        return key
    if kind is tuple:
        for item in value:
            if type(item) is not int:
                return tuple([item if type(item) is int else _comparable(item) for item in value])
        return value  # type: ignore[no-any-return]  # of integers
    return encode(value)


def opaque(value: Any) -> str:
    """A value that counts by its identity, by a serial number given at first sight."""
    return f"opaque#{_serial(value)}"


def _serial(value: Any) -> int:
    try:
        if value not in _serials:
            _serials[value] = next(_next_serial)
        return _serials[value]
    except TypeError:  # neither hashable nor weakly referable: count it by its identity while it lives
        return id(value)
