"""Donated arguments: given to the call, and gone for the caller.

What the schedule makes of their memory is in `schedule.donors`; what the entry does with them, in `entry_donation`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.types import ArrayType, Type
from tracer.trace.array import Array
from tracer.trace.source import here


class Donated:
    """What stands in place of a donated array's value: it knows its type, and says why there is nothing to read."""

    def __init__(self, type: Type, function: str) -> None:
        self._type = type
        self._function = function

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        if isinstance(self._type, ArrayType):
            return self._type.dtype
        return self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ArgumentError(
            message(
                f"an array is used{here()} that was donated",
                f"got {self._type}, given to {self._function} by donate_argnums",
                help="use the result of that call, donate a copy (x.copy()), or do not donate this argument",
            )
        )

    def __repr__(self) -> str:
        return f"donated to {self._function}, {self._type}"

    __array__ = __array_ufunc__ = __array_function__ = __len__ = __iter__ = __getitem__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


NOTHING_DONATED: Mapping[int, Donated] = {}
"""For no leaf what stands in its place after a call."""


def consume(leaves: Sequence[Any], function: str) -> None:
    """Take the values away from donated arrays. NumPy arrays belong to their owners: a warning says so."""
    ignored = 0
    for leaf in leaves:
        if type(leaf) is Array and leaf._trace is None and not isinstance(leaf._value, Donated):
            leaf._value, leaf._type = Donated(leaf.type, function), None
        elif isinstance(leaf, np.ndarray):
            ignored += 1
    if ignored:
        warnings.warn(
            message(
                f"jit of {function}{here()}: {ignored} donated NumPy array{'s' if ignored > 1 else ''} kept",
                "only tracer's own arrays can be given away",
                help="pass tracer.numpy.asarray(x), or leave it out of donate_argnums",
            ),
            UserWarning,
            stacklevel=4,
        )
