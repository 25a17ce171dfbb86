"""Donated arguments, whose memory goes to a call's results and which the caller can no longer read.

`tracer.schedule.plan.donation` chooses the results, and the entry's routines in `native/ll/donation` hand the memory
over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from sys import getrefcount
from typing import Any, Final, NoReturn

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.types import ArrayType, Type, same_up_to_weakness, size
from tracer.trace.array import Array, is_recorded
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here, warn
from tracer.trace.state import state


class Donated:
    """Stand-in for the value of a donated array: it has the array's type, and every read raises ArgumentError."""

    def __init__(self, type: Type, function: str, argument: str = "", warned: set[str] | None = None) -> None:
        """argument: its name in warnings. warned: the reasons that `function` has warned of; None warns of nothing."""
        self._type = type
        self._function = function
        self._argument = argument
        self._warned = warned

    def was_shared(self) -> None:
        """Warn that the array was copied, since other objects share its memory. Called by the entry."""
        if self._warned is not None:
            _warn(self._function, self._warned, "shared", [self._argument], SHARED)

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
                f"an array was donated and cannot be used again{here()}",
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
"""Stand-ins by leaf for a call that donates nothing."""


SHARED: Final = (
    "copied: a NumPy view, a DLPack export or another argument has the memory, too",
    "let go of it before the call, or leave it out of donate_argnums",
)
_NUMPY: Final = (
    "kept: only tracer's own arrays can be given away, not NumPy's",
    "pass tracer.numpy.asarray(x), or leave it out of donate_argnums",
)
_USELESS: Final = (
    "given up for nothing: no result has the same shape and dtype, to be computed in that memory",
    "leave it out of donate_argnums",
)


def warn_of_useless(donated: Mapping[int, Donated], donors: Collection[int], types: Sequence[Type]) -> None:
    """Warn of donated leaves that no result can be left in.

    donors: the leaves that have a result already. types: types of the results without a donor.
    """
    left, useless = list(types), []
    for leaf, array in donated.items():
        type = array._type
        if leaf in donors or not type.shape or not size(type):
            continue
        fitting = next((other for other in left if same_up_to_weakness(type, other)), None)
        if fitting is None:
            useless.append(array)
        else:
            left.remove(fitting)
    if useless and useless[0]._warned is not None:
        names = [array._argument for array in useless]
        _warn(useless[0]._function, useless[0]._warned, "useless", names, _USELESS)


def _warn(function: str, warned: set[str], reason: str, names: Sequence[str], told: tuple[str, str]) -> None:
    """Warn once for each function and reason. told: the message's summary and help."""
    if reason in warned:
        return
    warned.add(reason)
    listed = ", ".join(names[:3]) + f" and {len(names) - 3} more" * (len(names) > 3)
    warn(message(f"jit of {function}{here()}: donated, but {told[0]}", f"got {listed}", help=told[1]))


def given_away(leaves: Sequence[Any], operands: Sequence[Array], donated: Mapping[int, Donated]) -> list[int]:
    """Return the donated leaves on a device whose memory nobody else holds. Warns of shared ones, which are copied.

    operands: the leaves as arrays where the call runs, and the captured arrays.
    """
    if state.staging is not None or any(map(is_recorded, operands)):
        return []
    given, holders = [], Counter(id(x._value) for x in operands)
    for n, stand_in in donated.items():
        if operands[n] is not leaves[n] or not isinstance(operands[n]._value, DeviceValue):
            continue
        is_alone = holders[id(operands[n]._value)] == 1 and getrefcount(operands[n]._value) == _ALONE
        if is_alone and not operands[n]._value.is_lent:
            given.append(n)
        else:
            stand_in.was_shared()
    return given


_ALONE: Final = 2  # references: the array's, and the argument's


def consume(leaves: Sequence[Any], donated: Sequence[Donated]) -> None:
    """Replace the values of donated arrays by their stand-ins. NumPy arrays are kept, with a warning.

    donated: the stand-in of each leaf. An array that is given twice gets the first one.
    """
    kept = []
    for leaf, replacement in zip(leaves, donated, strict=True):
        if type(leaf) is Array and not is_recorded(leaf) and not isinstance(leaf._value, Donated):
            leaf._value, leaf._type, leaf._trace = replacement, None, None
        elif isinstance(leaf, np.ndarray):
            kept.append(replacement)
    if kept and kept[0]._warned is not None:
        _warn(kept[0]._function, kept[0]._warned, "numpy", [array._argument for array in kept], _NUMPY)
