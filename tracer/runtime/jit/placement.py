"""Placement of a call's arguments: where any lies on a device, NumPy's arrays, scalars and keys follow it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import DeviceError, message
from tracer.ir.types import KeyType
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.device_trace import device_of
from tracer.trace.source import here


def together(leaves: Sequence[Any], function: str, names: Callable[[], Sequence[str]]) -> list[Array]:
    """Return the leaves of a call as arrays, NumPy's on the device of the first that lies on one.

    function, names: of the leaves, for errors. Raises DeviceError where other arrays lie elsewhere.
    """
    first = next((n for n, x in enumerate(leaves) if isinstance(x, Array) and device_of(x) is not None), None)
    if first is None:
        return [as_array(leaf) for leaf in leaves]
    device = device_of(leaves[first])
    arrays = []
    for n, leaf in enumerate(leaves):
        array = as_array(leaf, copy=False)
        elsewhere = device_of(array)
        is_plain = array._trace is None
        if is_plain and (isinstance(leaf, np.ndarray) or not array.shape or isinstance(array.type, KeyType)):
            array = device.put(array)
        elif is_plain or elsewhere not in (None, device):
            found = names()
            raise DeviceError(
                message(
                    f"{function}{here()}: its arguments lie on two devices",
                    f"{found[first]} is on {device}, {found[n]} on {elsewhere or 'cpu'}",
                    help=f"move one of them: tracer.device_put(x, {str(device)!r})",
                )
            )
        arrays.append(array)
    return arrays
