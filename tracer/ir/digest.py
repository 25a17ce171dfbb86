"""Canonical text of equations' parameters, from which programs are hashed, and keys of them for tables.

The text is equal in every process unless a parameter is opaque, such as the Python functions of custom rules. Opaque
values count by their identity, through a serial number given at first sight.
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
    """Return the canonical text of a parameter."""
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
            return str(value)  # frozen records of this package: their repr is canonical
        case _:
            return opaque(value)


def params_key(params: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for equal parameters of a primitive, in this process. Faster than their text."""
    if len(params) > 1:
        return tuple([(name, _comparable(params[name])) for name in sorted(params)])
    return tuple([(name, _comparable(value)) for name, value in params.items()]) if params else ()


def _comparable(value: Any) -> Hashable:
    """Return a value that compares as its text would: 1, 1.0 and True are different."""
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
    """Return the text of a value that counts by its identity: a serial number given at first sight."""
    return f"opaque#{_serial(value)}"


def _serial(value: Any) -> int:
    try:
        if value not in _serials:
            _serials[value] = next(_next_serial)
        return _serials[value]
    except TypeError:  # neither hashable nor weakly referable: its id, while it lives
        return id(value)
