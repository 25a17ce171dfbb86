"""Large results stored past the caches, in whole lines (`interleaved_streams`) or through a buffer in a near cache.

A store to memory that is in no cache first fetches its line, a third of a copy's traffic. Nontemporal stores do not,
but must be of whole lines. Where vectors cannot be aligned to lines, as in a running sum, a loop stores to a small
buffer. `stream` copies this buffer. Results of this size would not stay in a second cache until their next reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    Carry,
    Compute,
    Copy,
    For,
    Function,
    Invoke,
    Library,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    Transpose,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import accesses_of, results_of, statements_of, with_statements
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import CPU, Machine, Target
from tracer.schedule.cpu.interleaved_streams import MIN_ROW, fits, in_streams, lanes_of, on_lines, past_caches
from tracer.schedule.terms.cost_model import limits_of, statements_written_out, trips
from tracer.schedule.terms.loop_slicing import moved

_CHUNK: Final = 1 << 15  # bytes of a chunk of a loop: four streams of two pages
_PAGE: Final = 8  # in a chunk: the shortest stream
_COPIED: Final = 1 << 16  # bytes of a chunk of an array that is only copied
_FEW_STATEMENTS: Final = 64  # of a loop that memory limits; longer ones are made wider, which streams are not
_SHARED_COPY: Final = 1 << 19  # bytes of a copy that threads share


def store_nontemporal(module: Module, target: Target = CPU) -> Module:
    """Return the module with large results stored past the caches, and large copies in chunks that threads share."""
    machine = target.machine
    entry = module.entry_function
    copies: list[Function] = []
    entry = replace(entry, body=with_statements(entry.body, lambda s: _in_chunks(s, copies, machine)))
    results = _results(entry)
    functions = [
        f if f.name == entry.name else _streamed(f, results.get(f.name, {}), machine) for f in module.functions
    ]
    functions = [entry if f.name == entry.name else f for f in functions]
    return replace(module, functions=(*copies, *functions)) if copies or functions != list(module.functions) else module


def _results(entry: Function) -> dict[str, dict[int, int]]:
    """Return, by function, the parameters that are results of the program in every call, and their offsets."""
    found: dict[str, dict[int, int]] = {}
    for s in statements_of(entry.body):
        if isinstance(s, Invoke):
            views = {n: a for n, a in enumerate(s.arguments) if isinstance(a, View)}
            outputs = {n: a.start.constant for n, a in views.items() if a.buffer.space is Space.OUTPUT}
            before = found.get(s.function, outputs)
            found[s.function] = {n: begins for n, begins in outputs.items() if n in before}
    return found


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.itemsize


def _streamed(function: Function, results: Mapping[int, int], machine: Machine) -> Function:
    """Return the function with vector loops in chunks where they store to large results that are not read."""
    given = {p: results[n] for n, p in enumerate(function.parameters) if n in results and isinstance(p, Buffer)}
    large = {p: begins for p, begins in given.items() if _bytes(p) >= machine.streamed_bytes}
    for s in statements_of(function.body):
        if not isinstance(s, Store | Transpose):
            for buffer, _, _ in accesses_of(s):
                large.pop(buffer, None)
    if not large:
        return function
    limits = dict(limits_of(function.body.statements))
    return replace(function, body=with_statements(function.body, lambda s: _loop_in_chunks(s, large, machine, limits)))


def _loop_in_chunks(
    s: Statement, large: Mapping[Buffer, int], machine: Machine, limits: Mapping[Register, int]
) -> Sequence[Statement]:
    if isinstance(s, Transpose) and s.target.buffer in large:
        return (replace(s, past=True),)
    if not isinstance(s, For) or s.kind is not LoopKind.VECTOR or any(c.combine is not None for c in s.carries):
        return (s,)
    least = machine.streamed_bytes
    stores = [x for x in s.body.statements if isinstance(x, Store) and x.buffer in large]
    if not stores or not _run_along(s, stores):
        return (s,)
    itemsize = max(x.buffer.dtype.itemsize for x in stores)
    few = statements_written_out(statements_of(s.body)) <= _FEW_STATEMENTS
    if few and fits(s, stores, min(MIN_ROW, 4 * least), machine):
        return _streams(s, stores, large[stores[0].buffer], min(_CHUNK, least), machine)
    if on_lines(s, stores, machine):
        return (past_caches(s, stores),)
    most = min(machine.first_cache // 4, least)
    if isinstance(s.stop, Register):
        limit = limits.get(s.stop, 0)
        return _one_chunk(s, stores, limit) if 0 < limit * itemsize <= 2 * most and not s.carries else (s,)
    length = trips(s)
    chunk = _chunk(length, max(s.lanes, most // itemsize), s.lanes)
    return (_chunks(s, stores, length, chunk),) if length >= 2 * chunk else (s,)


def _streams(loop: For, stores: Sequence[Store], begins: int, most: int, machine: Machine) -> Sequence[Statement]:
    """Return the loop in interleaved streams, cut in chunks where it is long."""
    length, lanes = trips(loop), lanes_of(loop, stores, machine)
    itemsize = max(x.buffer.dtype.itemsize for x in stores)
    chunk = _chunk(length, max(lanes, most // itemsize), lanes)
    if length < 2 * chunk:
        return in_streams(loop, stores, begins, index_constant(length), most // _PAGE, machine)
    b, chunks = Builder(), length // chunk
    with b.for_("chunk", 0, chunks, kind=LoopKind.PARALLEL) as each:
        size: Operand = index_constant(chunk)
        if length % chunk:
            left = b.compute(ScalarOp.SUB, length, b.compute(ScalarOp.MUL, each.index, chunk))
            size = b.compute(ScalarOp.SELECT, b.compute(ScalarOp.LT, left, 2 * chunk), left, chunk)
        inner = moved(loop, Address(0, ((each.index, chunk),)), size)
        stored = [s for s in inner.body.statements if isinstance(s, Store) and s.buffer in {x.buffer for x in stores}]
        for s in in_streams(inner, stored, begins, size, most // _PAGE, machine):
            b.add(s)
    return b.finish().statements


def _chunk(length: int, most: int, lanes: int) -> int:
    """Return the longest chunk of whole vectors, at least half of `most`, that divides the length, else `most`."""
    return next((n for n in range(most - most % lanes, most // 2 - 1, -lanes) if n and length % n == 0), most)


def _run_along(loop: For, stores: Sequence[Store]) -> bool:
    """Whether the stores are contiguous, one to each result."""
    inner = {r for x in statements_of(loop.body) for r in results_of(x)}
    regular = all(
        x.mask is None
        and dict(x.address.terms).get(loop.index) == 1
        and not any(r in inner for r, _ in x.address.terms)
        for x in stores
    )
    others = sum(b in {x.buffer for x in stores} for s in statements_of(loop.body) for b, _, _ in accesses_of(s))
    return regular and others == len(stores) == len({x.buffer for x in stores})


def _chunks(loop: For, stores: Sequence[Store], length: int, chunk: int) -> For:
    """Return the loop over chunks of its range, each stored to buffers and copied to the results."""
    index, begin, count = Register(I64, "chunk"), Register(I64, "begin"), Register(I64, "count")
    statements: list[Statement] = []
    size: Operand = index_constant(chunk)
    if length % chunk:
        rest = Register(I64, "rest")
        statements += [
            Compute(begin, ScalarOp.MUL, (index, index_constant(chunk))),
            Compute(rest, ScalarOp.SUB, (index_constant(length), begin)),
            Compute(count, ScalarOp.MIN, (rest, index_constant(chunk))),
        ]
        size = count
    inner = moved(loop, Address(0, ((index, chunk),)), size)
    carries = tuple(Carry(Register(c.register.dtype, c.register.name), c.initial) for c in loop.carries)
    results = tuple(Register(r.dtype, r.name) for r in loop.results)
    inner = replace(
        inner,
        carries=tuple(replace(c, initial=o.register) for c, o in zip(inner.carries, carries, strict=True)),
        results=results,
    )
    moved_body, buffers, targets = _to_buffers(inner, stores, chunk)
    inner = replace(inner, body=moved_body)
    statements += [*map(Alloc, buffers.values()), inner]
    statements += [stream(target, View(buffers[target.buffer]), size) for target in targets]
    kind = LoopKind.SERIAL if carries else LoopKind.PARALLEL
    chunks = index_constant(-(-length // chunk))
    block = Block(tuple(statements), results)
    return For(index, index_constant(0), chunks, block, kind, carries=carries, results=loop.results)


def _one_chunk(loop: For, stores: Sequence[Store], limit: int) -> Sequence[Statement]:
    """Return a loop no longer than a chunk, stored to buffers and copied to the results."""
    body, buffers, targets = _to_buffers(loop, stores, limit)
    copies = [stream(target, View(buffers[target.buffer]), loop.stop) for target in targets]
    return (*map(Alloc, buffers.values()), replace(loop, body=body), *copies)


def _to_buffers(loop: For, stores: Sequence[Store], size: int) -> tuple[Block, dict[Buffer, Buffer], list[View]]:
    """Return a loop's body with stores to buffers, the buffers by result, and the results' views."""
    buffers = {
        s.buffer: Buffer(f"chunk{s.buffer.name}", s.buffer.dtype, size, Space.LOCAL, alignment=64, written=True)
        for s in stores
    }
    body: list[Statement] = []
    targets = []
    for s in loop.body.statements:
        if isinstance(s, Store) and s.buffer in buffers:
            start = Address(s.address.constant, tuple(t for t in s.address.terms if t[0] is not loop.index))
            targets.append(View(s.buffer, start))
            s = replace(s, buffer=buffers[s.buffer], address=Address(0, ((loop.index, 1),)))
        body.append(s)
    return Block(tuple(body), loop.body.yields), buffers, targets


def stream(target: View, source: View, count: Operand) -> Library:
    """Return the statement target[: count] = source[: count], past the caches."""
    return Library("stream", (target, source, count, index_constant(target.buffer.dtype.itemsize)))


# -- copies --------------------------------------------------------------------------------------------------------


def _in_chunks(s: Statement, copies: list[Function], machine: Machine) -> Sequence[Statement]:
    """Return a copy of the entry as a function over chunks, which threads share, and a copy of the remainder."""
    least = machine.streamed_bytes
    if not isinstance(s, Copy) or s.count * s.source.buffer.dtype.itemsize < min(_SHARED_COPY, least):
        return (s,)
    dtype, name = s.source.buffer.dtype, f"copy{len(copies)}"
    target, source = (Buffer(n, dtype, s.count, Space.ARGUMENT, written=n == "a0") for n in ("a0", "a1"))
    if s.target.buffer.space is Space.OUTPUT and s.count * dtype.itemsize >= least:
        function = _streamed(_copying(name, target, source, machine), {0: s.target.start.constant}, machine)
        copies.append(function)
        return (Invoke(name, (s.target, s.source)),)
    chunk = max(1, min(_COPIED, least) // dtype.itemsize)
    index = Register(I64, "chunk")
    views = [View(b, Address(0, ((index, chunk),))) for b in (target, source)]
    chunks, rest = divmod(s.count, chunk)
    copy = Block((Copy(views[0], views[1], chunk),))
    loop = For(index, index_constant(0), index_constant(chunks), copy, LoopKind.PARALLEL)
    copies.append(Function(name, (target, source), Block((loop,))))
    found: list[Statement] = [Invoke(name, (s.target, s.source))]
    if rest:
        done = chunks * chunk
        found.append(Copy(_from(s.target, done), _from(s.source, done), rest))
    return found


def _copying(name: str, target: Buffer, source: Buffer, machine: Machine) -> Function:
    """Return a vector loop that copies all of a buffer."""
    x, index = Register(source.dtype, "x"), Register(I64, "i")
    at = Address(0, ((index, 1),))
    body = Block((Load(x, source, at), Store(target, at, x)))
    length, lanes = index_constant(source.size), machine.line_bytes // source.dtype.itemsize
    return Function(
        name, (target, source), Block((For(index, index_constant(0), length, body, LoopKind.VECTOR, lanes=lanes),))
    )


def _from(view: View, place: int) -> View:
    return View(view.buffer, Address(view.start.constant + place, view.start.terms))
