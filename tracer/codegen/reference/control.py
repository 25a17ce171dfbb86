"""Loops and branches: which lanes run, and the values of the carries."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any, assert_never

import numpy as np

from tracer.codegen.reference.conversions import choose
from tracer.codegen.reference.frame import THREAD_AXES, Frame, Return
from tracer.codegen.reference.memory import Violation
from tracer.codegen.reference.races import Array
from tracer.codegen.reference.scalar_ops import scalar_function
from tracer.ir.loop import Carry, For, If, LoopKind, While


def if_(f: Frame, s: If) -> None:
    """Run one arm, or both where the predicate varies by thread."""
    predicate = f.value(s.predicate)
    if not isinstance(predicate, np.ndarray):
        _assign(f, s.results, f.run(s.then if predicate else s.otherwise))
        return
    rows = []
    for condition, block in ((predicate, s.then), (~predicate, s.otherwise)):
        mask = f.narrowed(condition)
        rows.append(f.run_under(mask, block) if mask is None or mask.any() else None)
    then, otherwise = rows
    if then is None or otherwise is None:
        _assign(f, s.results, then or otherwise or [])
    else:
        _assign(f, s.results, [choose(predicate, a, b) for a, b in zip(then, otherwise, strict=True)])


def while_(f: Frame, s: While) -> None:
    """Iterate until the condition fails in every thread; finished threads keep their carries."""
    values = [f.value(carry.initial) for carry in s.carries]
    outer = f.mask
    while True:
        f.call.poll()
        _enter(f, s.carries, values)
        (condition,) = f.run(s.condition)
        if not isinstance(condition, np.ndarray):
            if not condition:
                break
            values = _kept(f.mask, f.run(s.body), values)
            continue
        f.mask = f.narrowed(condition)
        if f.mask is not None and not f.mask.any():
            break
        values = _kept(f.mask, f.run(s.body), values)
    f.mask = outer
    _assign(f, s.results, values)


def for_(f: Frame, s: For) -> None:
    """Run a loop of any kind."""
    first = [_first(f, carry) for carry in s.carries]
    match s.kind:
        case LoopKind.SERIAL:
            values = _serial(f, s, first)
        case LoopKind.PARALLEL | LoopKind.BLOCK:
            values = _independent(f, s, first)
        case LoopKind.VECTOR:
            values = _vector(f, s, first)
        case LoopKind.THREAD:
            values = _threads(f, s, first)
        case _:
            assert_never(s.kind)
    _assign(f, s.results, [_joined(f, c, v) for c, v in zip(s.carries, values, strict=True)])


def _assign(f: Frame, registers: tuple[Any, ...], values: list[Any]) -> None:
    f.values.update(zip(registers, values, strict=True))


def _enter(f: Frame, carries: tuple[Carry, ...], values: list[Any]) -> None:
    for carry, value in zip(carries, values, strict=True):
        f.values[carry.register] = value


def _kept(mask: Array | None, new: list[Any], old: list[Any]) -> list[Any]:
    """Return the new values of active lanes, the old ones of other lanes."""
    if mask is None:
        return new
    return [choose(mask, a, b) for a, b in zip(new, old, strict=True)]


def _first(f: Frame, carry: Carry) -> Any:
    """Return the value of a carry in the first iteration."""
    if carry.combine is None:
        return f.value(carry.initial)
    assert carry.identity is not None, "a reduction has an identity"
    return carry.identity.value


def _joined(f: Frame, carry: Carry, value: Any) -> Any:
    """Join a reduction's initial value in last, from the left."""
    return value if carry.combine is None else _combine(carry, f.value(carry.initial), value)


def _combine(carry: Carry, a: Any, b: Any) -> Any:
    assert carry.combine is not None, "a reduction has an operation"
    dtype = carry.register.dtype
    return scalar_function(carry.combine, dtype, dtype)(a, b)


# -- iterations --------------------------------------------------------------------------------------


def _iteration(f: Frame, s: For, index: Any, values: list[Any]) -> list[Any]:
    f.values[s.index] = index
    _enter(f, s.carries, values)
    return f.run(s.body)


def _range(f: Frame, s: For) -> range:
    """Return the indices of a loop with uniform bounds."""
    start, stop = f.value(s.start), f.value(s.stop)
    if isinstance(start, np.ndarray) or isinstance(stop, np.ndarray):
        raise Violation(f"the range of a {s.kind.value} loop varies")
    return range(int(start), int(stop), s.step)


def _serial(f: Frame, s: For, values: list[Any]) -> list[Any]:
    start, stop = (f.uniform(bound, "the range of a loop") for bound in (s.start, s.stop))
    if isinstance(start, np.ndarray) or isinstance(stop, np.ndarray):
        return _ragged(f, s, values, start, stop)
    for i in range(int(start), int(stop), s.step):
        f.call.poll()
        values = _iteration(f, s, s.index.dtype.type(i), values)
    return values


def _ragged(f: Frame, s: For, values: list[Any], start: Any, stop: Any) -> list[Any]:
    """Run a serial loop whose range differs between threads, which drop out one after another."""
    outer, index = f.mask, start
    while True:
        f.call.poll()
        f.mask = f.narrowed(index < stop if s.step > 0 else index > stop)
        if f.mask is not None and not f.mask.any():
            break
        values = _kept(f.mask, _iteration(f, s, index, values), values)
        index = index + s.index.dtype.type(s.step)
    f.mask = outer
    return values


def _independent(f: Frame, s: For, values: list[Any]) -> list[Any]:
    """Run blocks, which may leave one by one, or iterations that threads may share, in the order of the call."""
    is_block = s.kind is LoopKind.BLOCK
    level = f.clock.enter(is_block=is_block)
    for i in f.call.iterations(_range(f, s)):
        f.call.poll()
        f.clock.iterate(level)
        with suppress(Return) if is_block else nullcontext():
            values = _iteration(f, s, s.index.dtype.type(i), values)
    f.clock.leave()
    return values


# -- lanes -------------------------------------------------------------------------------------------


def _vector(f: Frame, s: For, values: list[Any]) -> list[Any]:
    """Run iterations of `lanes` indices, the last one partly masked, and join partial results."""
    if f.lanes:
        raise Violation("a vector loop inside a vector loop")
    stop = f.uniform(s.stop, "the range of a loop")
    outer, lanes = f.mask, np.arange(s.lanes, dtype=np.int64)
    f.lanes = s.lanes
    bound = stop if outer is None else np.where(outer, stop, 0)
    for first in range(0, int(np.max(bound)), s.lanes):
        index = first + lanes
        f.mask = outer
        f.mask = f.narrowed(index < stop)
        new = _iteration(f, s, index, values)
        kept = _kept(f.mask, new, values)
        values = [b if c.combine is None else a for c, a, b in zip(s.carries, kept, new, strict=True)]
    f.mask, f.lanes = outer, 0
    return [_halved(c, v, s.lanes) for c, v in zip(s.carries, values, strict=True)]


def _halved(carry: Carry, value: Any, lanes: int) -> Any:
    """Join lane i with lane i + n/2, then n/4, and so on; a serial carry is equal in all lanes."""
    if carry.combine is None:
        return value
    value = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), (lanes,)))
    while lanes > 1:
        lanes //= 2
        value = _combine(carry, value[..., :lanes], value[..., lanes:])
    return value if value.size > 1 else value.reshape(())[()]


def _threads(f: Frame, s: For, values: list[Any]) -> list[Any]:
    """Run all threads of a block in step, statement by statement, with barriers where they share memory."""
    indices = _range(f, s)
    if not indices:
        return values
    if f.depth == len(THREAD_AXES):
        raise Violation(f"more than {len(THREAD_AXES)} thread loops inside each other")
    axis, count, outer = THREAD_AXES[f.depth], len(indices), f.clock.threads
    shape = [1, 1, 1, 1]
    shape[axis] = count
    numbers = np.arange(count, dtype=s.index.dtype).reshape(shape)
    f.clock.threads = numbers if outer is None else outer * count + numbers
    f.depth += 1
    f.clock.tick()
    try:
        values = _iteration(f, s, indices.start + indices.step * numbers, values)
    finally:
        f.clock.tick()
        f.depth -= 1
        f.clock.threads = outer
    return [_halved_along(c, v, axis, count) for c, v in zip(s.carries, values, strict=True)]


def _halved_along(carry: Carry, value: Any, axis: int, count: int) -> Any:
    lanes = np.moveaxis(np.broadcast_to(value, np.broadcast_shapes(np.shape(value), (1, 1, 1, 1))), axis, -1)
    joined = _halved(carry, lanes, count)
    return joined if not isinstance(joined, np.ndarray) else np.moveaxis(joined, -1, axis)
