"""Growable stacks: their statements, and kernels that work on their memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tracer.codegen.reference.frame import Frame, Return
from tracer.codegen.reference.memory import Region, Violation
from tracer.codegen.status import Status
from tracer.ir import loop
from tracer.ir.dtypes import BOOL


def push(f: Frame, s: loop.StackPush) -> None:
    """Append an item."""
    region, start = f.view(s.source)
    stack, data = f.call.stacks[s.stack], region.read_span(start, s.count, f.clock).tobytes()
    _limit(f, len(stack) + len(data))
    stack.extend(data)


def pop(f: Frame, s: loop.StackPop) -> None:
    """Take the last item off; zeros if there is none."""
    region, start = f.view(s.target)
    stack, size = f.call.stacks[s.stack], s.count * region.dtype.itemsize
    top = bytes(stack[max(0, len(stack) - size) :]) or bytes(size)
    del stack[max(0, len(stack) - size) :]
    _fill(f, region, start, top, s.stack)


def read_item(f: Frame, s: loop.StackRead) -> None:
    """Read an item; zeros beyond the stack's end."""
    region, start = f.view(s.target)
    stack, size = f.call.stacks[s.stack], s.count * region.dtype.itemsize
    place = int(f.value(s.index)) * size
    _fill(f, region, start, bytes(stack[place : place + size]) or bytes(size), s.stack)


def write_item(f: Frame, s: loop.StackWrite) -> None:
    """Write an item, with zeros in new items before it."""
    region, start = f.view(s.source)
    stack, data = f.call.stacks[s.stack], region.read_span(start, s.count, f.clock).tobytes()
    place = int(f.value(s.index)) * len(data)
    _limit(f, place + len(data))
    stack.extend(bytes(max(0, place - len(stack))))
    stack[place : place + len(data)] = data


def _fill(f: Frame, region: Region, start: int, data: bytes, stack: int) -> None:
    if len(data) % region.dtype.itemsize:
        raise Violation(f"takes {len(data)} bytes off stack {stack} for {region.dtype}")
    values: np.ndarray[Any, Any] = np.frombuffer(data, region.dtype)
    region.write_span(start, values.view(np.uint8) if region.dtype == BOOL else values, f.clock)


def _limit(f: Frame, size: int) -> None:
    if f.call.stack_limit is not None and size > f.call.stack_limit:
        f.call.status = Status.NO_MEMORY
        raise Return


def invoke(f: Frame, s: loop.Invoke, callee: Callable[[], Frame]) -> None:
    """Run a function on the memory of stacks, again as long as it may have ended for lack of room."""
    while True:
        inner, memory = callee(), list[Region]()
        *buffers, sizes = [p for p in inner.function.parameters[len(s.arguments) :] if isinstance(p, loop.Buffer)]
        counts = np.zeros((len(s.stacks), 2), np.int64)
        for use, buffer, count in zip(s.stacks, buffers, counts, strict=True):
            stack, width = f.call.stacks[use.stack], buffer.dtype.itemsize
            needed = use.room * (1 if use.rounds is None else max(0, int(f.value(use.rounds))))
            length = len(stack) // use.size
            _limit(f, (length + needed) * use.size)
            count[:] = length, length + max(needed, length)  # twice as many: few of the tests' loops end early
            data = np.zeros(count[1] * use.size, np.uint8)
            data[: len(stack)] = np.frombuffer(stack, np.uint8)
            whole = replace(buffer, size=len(data) // width)
            region = f.call.region(whole, data.view(buffer.dtype), written=False)
            region.memory.owners[: len(stack) // width] = region.owner
            inner.regions[buffer] = region
            memory.append(region)
        inner.regions[sizes] = f.call.region(replace(sizes, size=counts.size), counts.reshape(-1), written=True)
        with suppress(Return):
            inner.run(inner.function.body)
        for use, region, (length, _) in zip(s.stacks, memory, counts, strict=True):
            f.call.stacks[use.stack][:] = region.data.view(np.uint8)[: int(length) * use.size].tobytes()
        full = [n + use.room > room for use, (n, room) in zip(s.stacks, counts, strict=True) if use.rounds is None]
        if not any(full):
            return
