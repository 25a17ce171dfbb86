"""Maps side by side: successive independent loop nests as one kernel, among which its blocks are divided.

Nests join that store parts of one array, as concatenation and padding do. Small ones do, too, since their launches take
longer than their work. None of them reads memory that another one stores. Stores to one array go to different elements,
which the strides and ranges of the loops show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Final

from tracer.ir import loop
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import share_bytes, statements_of, with_blocks
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP, Axes, Unfit, split, through_memory
from tracer.schedule.gpu.transpose_kernels import tile_of
from tracer.schedule.gpu.wide_accesses import group_width, write_elements
from tracer.schedule.terms.clone import Names, copied

_BLOCK: Final = 256
_SMALL: Final = 1 << 16  # elements of a nest whose launch takes as long as its work
_MAX_NESTS: Final = 16  # nests of a kernel


@dataclass(frozen=True, slots=True)
class _Map:
    """A nest of independent elements and its call. read, stored: the entry's buffers."""

    call: loop.Invoke
    function: loop.Function
    axes: Axes
    read: frozenset[loop.Buffer]
    stored: frozenset[loop.Buffer]

    @property
    def count(self) -> int:
        return prod(self.axes.sizes)

    def stores(self, buffer: loop.Buffer) -> Iterator[tuple[loop.View, loop.Address]]:
        """Yield the address of each store to one of the entry's buffers, in the part that the nest was given."""
        given = dict(zip(self.function.parameters, self.call.arguments, strict=True))
        for s in statements_of(self.function.body):
            view = given.get(s.buffer) if isinstance(s, loop.Store) else None
            if isinstance(s, loop.Store) and isinstance(view, loop.View) and view.buffer is buffer:
                yield view, s.address


@dataclass(slots=True)
class _Joining:
    functions: dict[str, loop.Function]
    made: list[loop.Function] = field(default_factory=list)

    def block(self, block: loop.Block) -> loop.Block:
        """Return a block of the entry with its runs of maps joined."""
        done: list[loop.Statement] = []
        run: list[_Map] = []
        for s in (*block.statements, None):
            found = self.map(s) if isinstance(s, loop.Invoke) else None
            if found is not None and run and len(run) < _MAX_NESTS and all(_may_join(other, found) for other in run):
                run.append(found)
                continue
            done += self.joined(run)
            run = [] if found is None else [found]
            if found is None and s is not None:
                done.append(with_blocks(s, self.block))
        return replace(block, statements=tuple(done))

    def map(self, call: loop.Invoke) -> _Map | None:
        """Return the call of a nest whose elements are independent and computed at once, None for other calls."""
        function = self.functions[call.function]
        try:
            axes, statements = split(function.body)
        except Unfit:
            return None
        simple = all(isinstance(s, loop.Compute | loop.Load | loop.Store) for s in statements)
        if not axes.registers or not simple or call.share is not None or not prod(axes.sizes):
            return None
        if prod(axes.sizes) > _SMALL and tile_of(axes, statements):  # a kernel of its own reads less
            return None
        given = dict(zip(function.parameters, call.arguments, strict=True))
        moves = [s for s in statements if isinstance(s, loop.Load | loop.Store)]
        accesses = [(given[s.buffer], s) for s in moves if s.buffer in given]
        read = {v.buffer for v, s in accesses if isinstance(v, loop.View) and isinstance(s, loop.Load)}
        stored = {v.buffer for v, s in accesses if isinstance(v, loop.View) and isinstance(s, loop.Store)}
        return _Map(call, function, axes, frozenset(read), frozenset(stored))

    def joined(self, run: Sequence[_Map]) -> list[loop.Statement]:
        """Return the calls of a run, one where there are several."""
        if len(run) < 2:
            return [each.call for each in run]
        parameters: dict[loop.View | loop.Operand, loop.Buffer | loop.Register] = {}
        for each in run:
            for given, own in zip(each.call.arguments, each.function.parameters, strict=True):
                before = parameters.get(given)
                name = f"a{len(parameters)}" if before is None else before.name
                if isinstance(own, loop.Buffer):
                    written = own.written or (isinstance(before, loop.Buffer) and before.written)
                    parameters[given] = replace(own, name=name, written=written)  # aligned as for every call of it
                elif before is None:
                    parameters[given] = loop.Register(own.dtype, name)
        taken, loads = through_memory(tuple(parameters.values()))
        name = f"maps{len(self.made)}"
        self.made.append(loop.Function(name, taken, _kernel(run, parameters, loads)))
        return [loop.Invoke(name, tuple(parameters))]


def join_maps(module: loop.Module) -> loop.Module:
    """Return the module with successive independent maps of the entry as one kernel."""
    entry = next(f for f in module.functions if f.name == module.entry)
    joining = _Joining({f.name: f for f in module.functions})
    body = joining.block(entry.body)
    if not joining.made:
        return module
    used = {s.function for s in statements_of(body) if isinstance(s, loop.Invoke)}
    kept = [f for f in (*module.functions, *joining.made) if f is not entry and f.name in used]
    return replace(module, functions=(*kept, replace(entry, body=body)))


def _kernel(
    run: Sequence[_Map], parameters: dict[loop.View | loop.Operand, loop.Buffer | loop.Register],
    loads: Sequence[loop.Statement],
) -> loop.Block:  # fmt: skip
    """Return the kernel of some maps, which take a range of its blocks each."""
    parts = [_part(each, parameters) for each in run]
    counts = [prod(axes.sizes) // width for axes, _, width in parts]
    threads = min(_BLOCK, -(-max(counts) // WARP) * WARP)
    blocks = [-(-count // threads) for count in counts]
    b = Builder()
    with (
        b.for_("b", 0, sum(blocks), kind=loop.LoopKind.BLOCK) as block,
        b.for_("t", 0, threads, kind=loop.LoopKind.THREAD) as thread,
    ):
        for load in loads:
            b.add(load)
        first = 0
        for n, (axes, statements, width) in enumerate(parts):
            own: loop.Operand = block.index
            if first:  # a maximum, so that indices are known to be positive, and 32 bits wide
                own = b.compute(ScalarOp.MAX, b.compute(ScalarOp.SUB, block.index, first), 0)
            checks = [b.compute(ScalarOp.GE, block.index, first)] if first else []
            first += blocks[n]
            checks += [b.compute(ScalarOp.LT, block.index, first)] if n < len(run) - 1 else []
            position = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, own, threads), thread.index, name="i")
            checks += [b.compute(ScalarOp.LT, position, counts[n], name="inside")] if counts[n] % threads else []
            inside = checks[0]
            for check in checks[1:]:
                inside = b.compute(ScalarOp.AND, inside, check)
            with b.if_(inside):
                write_elements(b, axes, statements, position, width, f"w{n}_")
    return b.finish()


def _part(
    each: _Map, parameters: dict[loop.View | loop.Operand, loop.Buffer | loop.Register]
) -> tuple[Axes, tuple[loop.Statement, ...], int]:
    """Return the axes and statements of a map under the kernel's names, and the elements of a thread."""
    names: Names = {
        own: parameters[given] for own, given in zip(each.function.parameters, each.call.arguments, strict=True)
    }
    _, statements = split(copied(each.function.body, names))
    axes = Axes(tuple(_renamed(names, r) for r in each.axes.registers), each.axes.sizes)
    return axes, statements, group_width(axes, statements)


def _renamed(names: Names, register: loop.Register) -> loop.Register:
    found = names[register]
    assert isinstance(found, loop.Register)
    return found


# -- independence ------------------------------------------------------------------------------------------


def _may_join(a: _Map, b: _Map) -> bool:
    """Whether two maps are independent, and worth one kernel."""
    if not a.read.isdisjoint(b.stored) or not a.stored.isdisjoint(b.read):
        return False
    shared = a.stored & b.stored
    if not shared and max(a.count, b.count) > _SMALL:
        return False
    if not all(_go_apart(a, b, buffer) for buffer in shared):
        return False
    mine, theirs = a.read | a.stored, b.read | b.stored
    written = a.stored | b.stored
    return not any(x is not y and share_bytes(x, y) for x in mine for y in theirs if x in written or y in written)


def _go_apart(a: _Map, b: _Map, buffer: loop.Buffer) -> bool:
    """Whether the stores of two maps to one buffer go to different elements of one part of it."""
    for view, first in a.stores(buffer):
        for other, second in b.stores(buffer):
            if view != other or not _disjoint(_box(first, a.axes), _box(second, b.axes)):
                return False
    return True


_Box = tuple[int, dict[int, int]]
"""An address: its constant, and the trips of the loop with each stride."""


def _box(address: loop.Address, axes: Axes) -> _Box | None:
    """Return the elements of an address, None where registers of no loop, negative or equal strides are in it."""
    sizes = dict(zip(axes.registers, axes.sizes, strict=True))
    strides = {stride: sizes.get(register, 0) for register, stride in address.terms}
    fits = len(strides) == len(address.terms) and all(strides.values()) and min(strides, default=1) > 0
    return (address.constant, strides) if fits and address.constant >= 0 else None


def _disjoint(a: _Box | None, b: _Box | None) -> bool:
    """Whether two boxes have no element in common: as ranges, or along one of the axes that their strides make."""
    if a is None or b is None:
        return False
    ends = [box[0] + sum(stride * (n - 1) for stride, n in box[1].items()) for box in (a, b)]
    if ends[0] < b[0] or ends[1] < a[0]:
        return True
    strides = sorted({*a[1], *b[1], 1}, reverse=True)
    if any(wide % narrow for wide, narrow in pairwise(strides)):
        return False
    spans = [_spans(box, strides) for box in (a, b)]
    return all(spans) and any(x[1] < y[0] or y[1] < x[0] for x, y in zip(*spans, strict=True))


def _spans(box: _Box, strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last index along each axis, none if an index runs over its axis."""
    spans, rest = list[tuple[int, int]](), box[0]
    for n, stride in enumerate(strides):
        first, rest = divmod(rest, stride)
        last = first + box[1].get(stride, 1) - 1
        if n and last >= strides[n - 1] // stride:
            return []
        spans.append((first, last))
    return spans
