"""Arena allocation: offsets of temporaries, by liveness, once all nests are final.

While nests are written and fused, every array has memory of its own, so that no sharing prevents a fusion. Here each
array is allocated from its first use to its last; in a loop's body, for one iteration, unless it is used outside.

Two arrays of one size may share memory. A nest over rows must be the last reader of one and the first writer of the
other. It must read a row of the first before it writes that row of the second. So may the operand
and the result of a routine that runs in place. A result may take such memory too.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    For,
    Function,
    Invoke,
    Library,
    Module,
    Operand,
    Register,
    Space,
    View,
)  # fmt: skip
from tracer.ir.loop.walk import accesses_of, blocks_of, statements_of, with_buffers, with_statements
from tracer.schedule.loops.row_fusion import loop_over_rows, row_step
from tracer.schedule.memory.arena import aligned
from tracer.schedule.terms.cost_model import trips

_MIN_SHARED: Final = 1 << 16  # bytes of an array that is written over another

Span = tuple[int, int]  # the times of an array's first statement and of the end of its last
Path = tuple[tuple[int, int, int], ...]  # from the outermost block inwards: its number, a statement's begin and end


def allocate_arena(module: Module) -> Module:
    """Return the module with its arrays in an arena as small as a best fit finds."""
    entry = module.entry_function
    free: list[tuple[int, int]] = []  # bytes, offset
    living: list[tuple[int, int, int]] = []  # end, offset, bytes
    size, names = 0, dict[Buffer, Buffer]()
    for buffer, (begin, end) in sorted(_spans(entry.body).items(), key=lambda item: item[1]):
        while living and living[0][0] < begin:
            _, offset, length = living.pop(0)
            _give_back(free, offset, length)
        wanted = aligned(_bytes(buffer))
        offset = _take(free, wanted, size)
        size = max(size, offset + wanted)
        insort(living, (end, offset, wanted))
        if offset != buffer.offset:
            names[buffer] = replace(buffer, offset=offset)
    functions = tuple(replace(f, body=with_buffers(f.body, names)) if f is entry else f for f in module.functions)
    return replace(module, functions=functions, arena=size)


def _take(free: list[tuple[int, int]], wanted: int, size: int) -> int:
    """Return the offset of the smallest free hole that fits, else of the end."""
    for number, (length, offset) in enumerate(free):
        if length >= wanted:
            free.pop(number)
            if length > wanted:
                insort(free, (length - wanted, offset + wanted))
            return offset
    last = next((hole for hole in free if sum(hole) == size), None)
    if last is None:
        return size
    free.remove(last)
    return last[1]


def _give_back(free: list[tuple[int, int]], offset: int, length: int) -> None:
    """Free memory and coalesce it with its free neighbours."""
    for hole in [h for h in free if h[1] + h[0] == offset or h[1] == offset + length]:
        free.remove(hole)
        offset, length = min(offset, hole[1]), length + hole[0]
    insort(free, (length, offset))


def reuse_buffers(module: Module, in_place: Callable[[Library], bool]) -> Module:
    """Return the module with arrays in the memory of arrays of their size that die row by row.

    in_place: whether a routine's first array may be its second. The module docstring has the conditions.
    """
    entry = module.entry_function
    functions = {f.name: f for f in module.functions}
    spans = _spans(entry.body, (Space.ARENA, Space.OUTPUT))
    calls: dict[Invoke, Invoke] = {}
    roots: dict[Buffer, Buffer] = {}
    for s in statements_of(entry.body):
        if isinstance(s, Invoke):
            pair = _heir(s, functions[s.function], spans)
            if pair is None:
                continue
            new, old = pair
            function = functions[s.function]
            name = f"{s.function}_over_{new}_{old}"
            functions.setdefault(name, _in_place(function, name, new, old))
            calls[s] = replace(s, function=name, arguments=(*s.arguments[:new], *s.arguments[new + 1 :]))
        elif isinstance(s, Library) and in_place(s) and _succeeds(s.arguments[1], s.arguments[0], spans):
            new, old = 1, 0
        else:
            continue
        made, died = s.arguments[new], s.arguments[old]
        assert isinstance(made, View)
        assert isinstance(died, View)
        kept, given_up = roots.get(died.buffer, died.buffer), made.buffer
        if made.buffer.space is Space.OUTPUT:
            kept, given_up = given_up, kept
            roots |= {buffer: kept for buffer, root in roots.items() if root is given_up}
        roots[given_up] = kept
    if not roots:
        return module
    body = with_statements(entry.body, lambda s: (calls.get(s, s) if isinstance(s, Invoke) else s,))
    functions[entry.name] = replace(entry, body=with_buffers(body, roots))
    used = {s.function for s in statements_of(functions[entry.name].body) if isinstance(s, Invoke)} | {entry.name}
    return replace(module, functions=tuple(f for f in functions.values() if f.name in used))


def _succeeds(made: View | Operand, died: View | Operand, spans: Mapping[Buffer, Span]) -> bool:
    """Whether the first use of one whole array is the last of another of its size, in the arena."""
    if not isinstance(made, View) or not isinstance(died, View) or made.start != died.start or made.start != Address():
        return False
    new, old = made.buffer, died.buffer
    alike = new.dtype == old.dtype and new.size == old.size and old.space is Space.ARENA and new in spans
    return alike and old in spans and spans[old][1] == spans[new][0] + 1 and _bytes(new) >= _MIN_SHARED


def _heir(call: Invoke, function: Function, spans: Mapping[Buffer, Span]) -> tuple[int, int] | None:
    """Return the argument of a call that can be written over another, and that other, by their indices."""
    buffers = [a.buffer if isinstance(a, View) and a.start == Address() else None for a in call.arguments]
    uses = Counter(buffers)
    once = [
        n for n, b in enumerate(buffers) if b is not None and b in spans and uses[b] == 1 and _bytes(b) >= _MIN_SHARED
    ]
    for new in once:
        for old in once:
            made, died = buffers[new], buffers[old]
            written, read = function.parameters[new], function.parameters[old]
            assert isinstance(made, Buffer)
            assert isinstance(died, Buffer)
            assert isinstance(written, Buffer)
            assert isinstance(read, Buffer)
            alike = made.dtype == died.dtype and made.size == died.size and died.space is Space.ARENA
            meets = spans[died][1] == spans[made][0] + 1  # the end of the call that the other begins with
            if alike and meets and _row_after_row(function, read, written):
                return new, old
    return None


def _in_place(function: Function, name: str, new: int, old: int) -> Function:
    """Return the function with one parameter in place of two."""
    written, read = function.parameters[new], function.parameters[old]
    assert isinstance(written, Buffer)
    assert isinstance(read, Buffer)
    both = replace(read, alignment=min(read.alignment, written.alignment), written=True)
    parameters = tuple(both if n == old else p for n, p in enumerate(function.parameters) if n != new)
    return Function(name, parameters, with_buffers(function.body, {written: both, read: both}))


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.itemsize


def _row_after_row(function: Function, read: Buffer, written: Buffer) -> bool:
    """Whether each row or element of a nest has read its part of one array before writing its bytes."""
    loop = loop_over_rows(function)
    return loop is not None and read.size == written.size and _in_turn(loop, read, written, read.size, ())


def _in_turn(loop: For, read: Buffer, written: Buffer, size: int, around: tuple[Register, ...]) -> bool:
    """Whether a loop over `size` elements reads each before it writes it. around: indices of outer loops."""
    extents = {s.index: s for s in statements_of(loop.body) if isinstance(s, For)}
    uses: dict[Buffer, list[int]] = {read: [], written: []}
    steps: set[int | None] = set()
    for number, statement in enumerate(loop.body.statements):
        for inner in statements_of(Block((statement,))):
            for buffer, address, _ in accesses_of(inner):
                if buffer in uses:
                    uses[buffer].append(number)
                    within = tuple(term for term in address.terms if term[0] not in around)
                    steps.add(row_step(replace(address, terms=within), loop.index, extents))
    if len(steps) != 1 or not (uses[read] and uses[written]):
        return False
    step = steps.pop() or 0
    if step * trips(loop) != size:
        return False
    if max(uses[read]) < min(uses[written]):
        return True
    (number, *others) = {*uses[read], *uses[written]}
    nested = loop.body.statements[number]
    return not others and isinstance(nested, For) and _in_turn(nested, read, written, step, (*around, loop.index))


def _spans(body: Block, spaces: Collection[Space] = (Space.ARENA,)) -> dict[Buffer, Span]:
    """Return the span in which each array of the arena, or of other spaces, is live."""
    found: dict[Buffer, Path] = {}
    walk = _Walk(spaces)
    walk.block(body, found)
    return {buffer: path[-1][1:] for buffer, path in found.items()}


class _Walk:
    """Numbering of blocks, and of the begins and ends of statements in execution order."""

    def __init__(self, spaces: Collection[Space]) -> None:
        self.time = self.blocks = 0
        self.spaces = spaces

    def block(self, block: Block, found: dict[Buffer, Path]) -> None:
        self.blocks += 1
        number = self.blocks
        for statement in block.statements:
            begin = self.time = self.time + 1
            inner: dict[Buffer, Path] = {}
            for within in blocks_of(statement):
                self.block(within, inner)
            end = self.time = self.time + 1
            here = (number, begin, end)
            for buffer, path in inner.items():
                self._join(found, buffer, (here, *path))
            for buffer, _, _ in accesses_of(statement):
                if buffer.space in self.spaces:
                    self._join(found, buffer, (here,))

    def _join(self, found: dict[Buffer, Path], buffer: Buffer, path: Path) -> None:
        """Extend the span by one more use, as far inwards as both lie in the same block."""
        known = found.get(buffer)
        if known is None:
            found[buffer] = path
            return
        joined: list[tuple[int, int, int]] = []
        for (number, begin, end), (other, first, last) in zip(known, path, strict=False):
            if number != other:
                break
            joined.append((number, min(begin, first), max(end, last)))
            if (begin, end) != (first, last):
                break
        found[buffer] = tuple(joined)
