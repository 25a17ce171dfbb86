"""Execution of each statement of the loop IR; loops and branches are in `control`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final, assert_never

import numpy as np

from tracer.codegen.reference import control, stacks
from tracer.codegen.reference.conversions import choose
from tracer.codegen.reference.frame import FaultRecord, Frame, Return
from tracer.codegen.reference.library import LIBRARY_REFERENCE, Span
from tracer.codegen.reference.math_functions import MATH
from tracer.codegen.reference.memory import Region, Violation
from tracer.codegen.reference.memory import Update as How
from tracer.codegen.reference.races import Deed
from tracer.codegen.reference.scalar_ops import scalar_function
from tracer.codegen.reference.steps import Step, compute_step, load_step, store_step
from tracer.codegen.status import Status
from tracer.errors import InternalError, message
from tracer.ir import loop
from tracer.ir.loop.text import Printer
from tracer.ir.reductions import identity

WARP: Final = 32


def run_block(f: Frame, block: loop.Block) -> list[Any]:
    """Run the statements and return the values that the block yields."""
    steps = f.call.steps.get(id(block))
    if steps is None:
        steps = f.call.steps[id(block)] = tuple(map(step_of, block.statements))
    done = 0
    try:
        for step in steps:
            step(f)
            done += 1
    except Violation as violation:
        first = Printer(f.function).statement_lines(block.statements[done])[0]
        summary = f"loop IR: {violation}, in function '{f.function.name}'"
        raise InternalError(message(summary, f"at {first}")) from None
    return [f.value(operand) for operand in block.yields]


def step_of(s: loop.Statement) -> Step:
    """Return the function that runs one statement."""
    match s:
        case loop.Compute() if s.op in MATH:
            return partial(_math, s=s, directly=compute_step(s))
        case loop.Compute():
            return compute_step(s)
        case loop.Load(mask=None):
            return load_step(s)
        case loop.Store(mask=None):
            return store_step(s)
        case _:
            return partial(run_statement, s=s)


def run_statement(f: Frame, s: loop.Statement) -> None:
    """Run one statement."""
    match s:
        case loop.Compute():
            compute_step(s)(f)
        case loop.Load():
            _load(f, s)
        case loop.Store():
            _store(f, s)
        case loop.Update():
            _update(f, s)
        case loop.For():
            control.for_(f, s)
        case loop.While():
            control.while_(f, s)
        case loop.If():
            control.if_(f, s)
        case loop.Alloc():
            _alloc(f, s)
        case loop.Copy():
            _copy(f, s)
        case loop.Transpose():
            _transpose(f, s)
        case loop.Fault():
            _fault(f, s)
        case loop.Leave():
            _all_threads(f, "the end of a kernel")
            if f.call.status is not Status.DONE:
                raise Return
        case loop.Invoke():
            _invoke(f, s)
        case loop.Library():
            _library(f, s)
        case loop.Callback():
            _callback(f, s)
        case loop.Barrier():
            _all_threads(f, "a barrier")
            f.clock.tick()
        case loop.Shuffle():
            _shuffle(f, s)
        case loop.Prefix():
            _prefix(f, s)
        case loop.StackPush():
            stacks.push(f, s)
        case loop.StackPop():
            stacks.pop(f, s)
        case loop.StackRead():
            stacks.read_item(f, s)
        case loop.StackWrite():
            stacks.write_item(f, s)
        case loop.StackLength():
            f.values[s.result] = np.int64(len(f.call.stacks[s.stack]) // s.size)
        case loop.StackReset():
            f.call.stacks[s.stack].clear()
        case _:
            assert_never(s)


def _math(f: Frame, s: loop.Compute, directly: Step) -> None:
    """Compute a math function: outside vector loops by the module's function, where there is one."""
    callee = None if f.lanes else f.call.functions.get(s.callee)
    if callee is None:
        directly(f)
        return
    inner = Frame(f.call, callee, f.run_block)
    for parameter, operand in zip(callee.parameters, s.operands, strict=True):
        assert isinstance(parameter, loop.Register), "the verifier has matched them"
        inner.values[parameter] = f.value(operand)
    (f.values[s.result],) = run_block(inner, callee.body)


# -- memory ------------------------------------------------------------------------------------------


def _load(f: Frame, s: loop.Load) -> None:
    region, index = f.region(s.buffer), f.index(s.address)
    assert s.mask is not None, "else it is a step"
    mask = f.value(s.mask)
    fill = s.result.dtype.type(0) if s.fill is None else f.value(s.fill)
    active = f.narrowed(mask)
    if active is not None and not active.any():
        f.values[s.result] = fill
    else:
        f.values[s.result] = choose(mask, region.read(index, active, f.clock), fill)


def _store(f: Frame, s: loop.Store) -> None:
    assert s.mask is not None, "else it is a step"
    active = f.narrowed(f.value(s.mask))
    f.region(s.buffer).write(f.index(s.address), f.value(s.value), active, f.clock)


def _update(f: Frame, s: loop.Update) -> None:
    active = f.mask if s.mask is None else f.narrowed(f.value(s.mask))
    dtype = s.buffer.dtype
    deed = Deed.ATOMIC if f.clock.on_gpu else Deed.WRITE
    how = How(scalar_function(s.op, dtype, dtype), deed, f.shape)
    f.region(s.buffer).update(f.index(s.address), f.value(s.value), active, f.clock, how)


def _alloc(f: Frame, s: loop.Alloc) -> None:
    buffer, threads = s.buffer, f.clock.threads
    private = threads is not None and buffer.space is loop.Space.LOCAL
    size = buffer.size * threads.size if private and threads is not None else buffer.size
    whole = loop.Buffer(buffer.name, buffer.dtype, buffer.size, buffer.space)
    region = f.call.region(whole, np.zeros(size, buffer.dtype), written=False)
    f.regions[buffer] = region.as_private() if private else region


def _copy(f: Frame, s: loop.Copy) -> None:
    source, target = f.index(s.source.start), f.index(s.target.start)
    read, write = f.region(s.source.buffer), f.region(s.target.buffer)
    if not isinstance(source, int) or not isinstance(target, int) or f.clock.threads is not None:
        for k in range(s.count):  # each thread has its own stretch
            write.write(target + k, read.read(source + k, f.mask, f.clock), f.mask, f.clock)
        return
    spans = read.part("", source, s.count), write.part("", target, s.count)
    if spans[0].overlaps(spans[1]) and spans[0].origin != spans[1].origin:
        raise Violation(f"copies '{read.name}' to '{write.name}', which it overlaps")
    write.write_span(target, read.read_span(source, s.count, f.clock), f.clock)


def _transpose(f: Frame, s: loop.Transpose) -> None:
    (read, source), (write, target) = f.view(s.source), f.view(s.target)
    for row in range(int(f.value(s.rows))):
        for column in range(int(f.value(s.columns))):
            value = read.read(source + column * s.source_stride + row, f.mask, f.clock)
            write.write(target + row * s.target_stride + column, value, f.mask, f.clock)


# -- calls -------------------------------------------------------------------------------------------


def _invoke(f: Frame, s: loop.Invoke) -> None:
    if s.stacks:
        stacks.invoke(f, s, partial(_callee, f, s))
        return
    if s.share is None:
        run_function(_callee(f, s))
        return
    level = f.clock.enter(is_block=False)
    count, grain = s.share.count, s.share.grain
    parts = max(count // grain, 1)
    for part in f.call.iterations(range(parts)):
        f.clock.iterate(level)
        inner = _callee(f, s)
        bounds = (part * grain, count if part == parts - 1 else (part + 1) * grain)
        for register, value in zip(inner.function.parameters[-2:], bounds, strict=True):
            assert isinstance(register, loop.Register), "the verifier has matched them"
            inner.values[register] = np.int64(value)
        run_function(inner)
    f.clock.leave()


def _callee(f: Frame, s: loop.Invoke) -> Frame:
    """Return a frame of the function with its arguments, except the arguments of `share` and `stacks`."""
    callee = f.call.functions[s.function]
    inner = Frame(f.call, callee, f.run_block)
    written = []
    for argument, parameter in zip(s.arguments, callee.parameters, strict=not (s.share or s.stacks)):
        if isinstance(argument, loop.View):
            assert isinstance(parameter, loop.Buffer), "the verifier has matched them"
            region, start = f.view(argument)
            inner.regions[parameter] = region.part(parameter.name, start, parameter.size)
            written.append(parameter.written)
        else:
            assert isinstance(parameter, loop.Register), "the verifier has matched them"
            inner.values[parameter] = f.value(argument)
    _check_disjoint(s.function, list(inner.regions.values()), written)
    return inner


def run_function(f: Frame) -> None:
    """Run the body of a frame's function."""
    with suppress(Return):
        f.run(f.function.body)


def _check_disjoint(name: str, regions: list[Region], written: list[bool]) -> None:
    for i, region in enumerate(regions):
        for j in range(i):
            if (written[i] or written[j]) and region.overlaps(regions[j]):
                raise Violation(f"hands '{name}' the overlapping '{regions[j].name}' and '{region.name}'")


def _library(f: Frame, s: loop.Library) -> None:
    routine = LIBRARY_REFERENCE.get(s.name)
    if routine is None:
        raise Violation(f"library routine '{s.name}' has no reference")
    arguments = [Span(*f.view(a), f.clock) if isinstance(a, loop.View) else f.value(a) for a in s.arguments]
    routine(*arguments)


def _callback(f: Frame, s: loop.Callback) -> None:
    """Pass the buffers as flat arrays, from each view's start to its buffer's end."""
    if not 0 <= s.slot < len(f.call.callbacks):
        raise Violation(f"callback {s.slot} of {len(f.call.callbacks)}")
    inputs = [f.view(view) for view in s.inputs]
    outputs = [f.view(view) for view in s.outputs]
    given = [region.read_span(start, region.size - start, f.clock) for region, start in inputs]
    made = [np.zeros(region.size - start, region.dtype) for region, start in outputs]
    try:
        f.call.callbacks[s.slot](given, made)
    except BaseException as error:  # the caller of the program raises it again
        f.call.error, f.call.status = error, Status.RAISED
        raise Return from None
    for (region, start), values in zip(outputs, made, strict=True):
        region.write_span(start, values, f.clock)


# -- faults and threads ------------------------------------------------------------------------------


def _fault(f: Frame, s: loop.Fault) -> None:
    holds = f.value(s.predicate)
    if f.mask is not None:
        holds = holds & f.mask
    if not np.any(holds):
        return
    columns = np.broadcast_arrays(holds, f.value(s.position), *[f.value(v) for v in s.values])
    rows = np.stack([column[columns[0]] for column in columns[1:]], axis=-1)
    position, *values = (int(v) for v in rows[np.argmin(rows[:, 0])])
    found, before = FaultRecord(s.site, position, tuple(values)), f.call.fault
    if before is None or (found.site, found.position) < (before.site, before.position):
        f.call.fault = found
    if f.call.status is Status.DONE:
        f.call.status = Status.FAULT


def _all_threads(f: Frame, place: str) -> None:
    if f.mask is not None and not f.mask.all():
        raise Violation(f"reaches {place} with some threads only")


def _shuffle(f: Frame, s: loop.Shuffle) -> None:
    """Shuffle within warps: threads are numbered with the innermost loop running fastest; 32 in a row are a warp."""
    threads = f.clock.threads
    if threads is None:
        raise Violation("shuffles outside a thread loop")
    _all_threads(f, "a shuffle")
    lane = threads % WARP
    other = lane ^ s.offset if s.kind is loop.ShuffleKind.XOR else lane + s.offset
    partner = np.where(other < WARP, threads - lane + other, threads)
    if (partner >= threads.size).any():
        raise Violation(f"shuffles with thread {int(partner.max())} of {threads.size}")
    flat = np.broadcast_to(f.value(s.value), threads.shape).ravel()
    order = np.empty(threads.size, np.int64)
    order[threads.ravel()] = np.arange(threads.size)
    f.values[s.result] = flat[order[partner]]


def _prefix(f: Frame, s: loop.Prefix) -> None:
    """Join lanes. Inactive lanes do not change active ones, nor `last`."""
    if not f.lanes:
        raise Violation("a prefix outside a vector loop")
    dtype, before = s.value.dtype, f.uniform(s.before, "what a prefix follows")
    op = scalar_function(s.op, dtype, dtype)
    values = np.broadcast_to(f.value(s.value), f.shape)
    if f.mask is not None:
        values = choose(f.mask, values, identity(s.op, dtype))
    lanes = np.arange(f.lanes)
    for half in (1 << step for step in range((f.lanes - 1).bit_length())):
        ends = lanes // (2 * half) * 2 * half + half - 1
        values = choose(lanes & half != 0, op(values[..., ends], values), values)
    f.values[s.result] = op(before, values)
    f.values[s.last] = op(before, values[..., -1][()])
