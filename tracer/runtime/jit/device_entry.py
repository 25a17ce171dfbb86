"""Calls of jitted functions whose arguments all lie on one device: a shorter way than the general one.

A call recognises the arguments' structure and types, and launches the program's kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir.types import Type
from tracer.runtime.jit.trace_call import Traced
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.device_trace import DeviceTrace


class DeviceEntry:
    """Prepared call of a traced function on a device."""

    __slots__ = ("_checked", "_epoch", "_run", "_structure", "_trace", "_traced", "_types")

    def __init__(self, traced: Traced, trace: DeviceTrace, structure: trees.Structure, types: Sequence[Type]) -> None:
        """structure, types: of the arguments. Raises DeviceError for loop nests without a kernel."""
        self._traced = traced
        self._trace = trace
        self._structure = structure
        self._types = types
        self._checked = bool(traced.guards or traced.values)
        self._epoch = gate.epoch
        self._run = trace.device.prepared(traced.program)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Return the result; NotImplemented for arguments that the general way takes."""
        if gate.epoch != self._epoch or gate.has_reasons or (self._checked and not self._traced.is_valid):
            return NotImplemented
        leaves, structure = trees.flatten(args)
        if structure != self._structure:
            return NotImplemented
        trace, values = self._trace, []
        for x, type in zip(leaves, self._types, strict=True):
            if x.__class__ is not Array or x._trace is not trace:
                return NotImplemented
            if x._type is not type:
                if x._type != type:
                    return NotImplemented
                x._type = type  # an equal one, which is found at once by the next call
            values.append(x._value)
        return trees.unflatten(self._traced.structure, self._run(values))


def entry_of(traced: Traced, leaves: Sequence[Any], args: tuple[Any, ...]) -> DeviceEntry | None:
    """Return the entry for a call's arguments, None unless all lie on one device and no array is captured."""
    if not leaves or traced.captured or gate.has_reasons:
        return None
    trace = leaves[0]._trace if type(leaves[0]) is Array else None
    if not isinstance(trace, DeviceTrace) or not all(type(x) is Array and x._trace is trace for x in leaves):
        return None
    found, structure = trees.flatten(args)
    return DeviceEntry(traced, trace, structure, [x.type for x in found])
