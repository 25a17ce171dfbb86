"""Wide accesses: consecutive elements of a thread, moved between memory and registers by one instruction.

A group of W elements fills at most 16 bytes of the widest array that it moves. It begins at a multiple of W. Copies
bring the groups of operands into arrays in registers. An unrolled loop computes, and copies store the results.

The proof is static. The buffer is aligned to the bytes of a group. So is the distance of each address from its start,
since its constant and all its coefficients are multiples of W. `check_module` repeats the proof for every copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from tracer.ir import loop
from tracer.ir.dtypes import I64
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.walk import Access, accesses_of, alignment_of, statements_of, with_buffers
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.row_programs import Phase, RowProgram
from tracer.schedule.gpu.threads import Axes, in_thread
from tracer.schedule.terms.cost_model import statements_written_out

WIDE: Final = 16
"""Bytes of the widest access."""
_SMALL: Final = 1 << 16  # elements whose launch takes as long as their work
_MAX_STATEMENTS: Final = 512  # of all elements of a group, functions written out


def align_buffers(module: loop.Module) -> loop.Module:
    """Return the module with the alignment that is known of operands and results, and of the memory given to nests.

    A device aligns each allocation to 256 bytes, and the runtime copies operands that begin elsewhere. Parameters that
    a nest does not store to are no longer marked as written.
    """
    entry = module.entry_function
    own = {p: replace(p, alignment=max(p.alignment, WIDE)) for p in entry.parameters if isinstance(p, loop.Buffer)}
    body = with_buffers(entry.body, own)
    known: dict[loop.Buffer, int] = {}
    functions = {f.name: f for f in module.functions}
    for call in statements_of(body):
        if isinstance(call, loop.Invoke):
            for given, parameter in zip(call.arguments, functions[call.function].parameters, strict=True):
                if isinstance(given, loop.View) and isinstance(parameter, loop.Buffer):
                    known[parameter] = min(known.get(parameter, WIDE), alignment_of(given))
    nests = [_with_parameters(f, _marked(f, known)) for f in module.functions if f is not entry]
    return replace(module, functions=(*nests, _with_parameters(entry, own)))


def _marked(nest: loop.Function, known: Mapping[loop.Buffer, int]) -> dict[loop.Buffer, loop.Buffer]:
    """Return a nest's parameters with their marks. known: their alignment."""
    accesses = [(b, access) for s in statements_of(nest.body) for b, _, access in accesses_of(s)]
    stored = {b for b, access in accesses if access is not Access.READ}
    parameters = [p for p in nest.parameters if isinstance(p, loop.Buffer)]
    marks = {p: (max(p.alignment, known.get(p, 1)), p.written and p in stored) for p in parameters}
    marks = {p: (1 if n <= p.dtype.itemsize else n, written) for p, (n, written) in marks.items()}
    return {
        p: replace(p, alignment=n, written=written)
        for p, (n, written) in marks.items()
        if (n, written) != (p.alignment, p.written)
    }


def _with_parameters(function: loop.Function, names: Mapping[loop.Buffer, loop.Buffer]) -> loop.Function:
    if not names:
        return function
    parameters = tuple(names.get(p, p) if isinstance(p, loop.Buffer) else p for p in function.parameters)
    return replace(function, parameters=parameters, body=with_buffers(function.body, names))


def is_wide(s: loop.Load | loop.Store, place: loop.Address, step: int, width: int) -> bool:
    """Whether a group of elements is one aligned access. place, step: its address, without and by the elements."""
    fits = alignment_of(loop.View(s.buffer, place)) >= width * s.buffer.dtype.itemsize
    return fits and step == 1 and s.mask is None


def group_width(axes: Axes, body: Sequence[loop.Statement]) -> int:
    """Return the number of elements that a thread takes at once, 1 where accesses cannot or need not be wide."""
    last = axes.last
    if (
        last is None
        or prod(axes.sizes) < _SMALL
        or not all(isinstance(s, loop.Compute | loop.Load | loop.Store) for s in body)
    ):
        return 1
    moves = [s for s in body if isinstance(s, loop.Load | loop.Store)]
    width = WIDE // max([s.buffer.dtype.itemsize for s in moves if (last, 1) in s.address.terms], default=WIDE)
    if axes.sizes[-1] % width or statements_written_out(body) * width > _MAX_STATEMENTS or reloaded(body):
        return 1
    varying = _varying(body, last)
    fits = [is_wide(s, *without(s.address, last), width) or _is_alike(s, varying) for s in moves]
    return width if all(fits) else 1


def without(given: loop.Address, index: loop.Register) -> tuple[loop.Address, int]:
    """Return an address without an index, and the index's coefficient."""
    steps = dict(given.terms)
    step = steps.pop(index, 0)
    return loop.Address(given.constant, tuple(steps.items())), step


def reloaded(body: Sequence[loop.Statement]) -> set[loop.Buffer]:
    """Return the buffers that statements load after they stored to them, whose order has to stay."""
    stored, found = set[loop.Buffer](), set[loop.Buffer]()
    for s in statements_of(loop.Block(tuple(body))):
        if isinstance(s, loop.Store):
            stored.add(s.buffer)
        elif isinstance(s, loop.Load) and s.buffer in stored:
            found.add(s.buffer)
    return found


def _varying(body: Sequence[loop.Statement], index: loop.Register) -> set[loop.Register]:
    """Return the registers whose values differ from element to element."""
    varying = {index}
    for s in body:
        read = s.operands if isinstance(s, loop.Compute) else [r for _, a, _ in accesses_of(s) for r, _ in a.terms]
        if isinstance(s, loop.Compute | loop.Load) and not varying.isdisjoint(read):
            varying.add(s.result)
    return varying


def _is_alike(s: loop.Load | loop.Store, varying: set[loop.Register]) -> bool:
    """Whether a load is one and the same for all elements of a group."""
    place = [r for r, _ in s.address.terms]
    return isinstance(s, loop.Load) and s.mask is None and all(r not in varying for r in place)


def write_elements(
    b: Builder, axes: Axes, body: Sequence[loop.Statement], position: loop.Operand, width: int, name: str = "w"
) -> None:
    """Write an element of a map, or a group of elements, by its position in row-major order.

    name: begins the names of arrays in registers.
    """
    last = axes.last
    if width == 1 or last is None:
        for s in in_thread(body, axes.locate(b, position)):
            b.add(s)
        return
    grouped = Axes(axes.registers, (*axes.sizes[:-1], axes.sizes[-1] // width))
    names = dict(grouped.locate(b, position))
    group = names.pop(last)
    varying, inside = _varying(body, last), list[loop.Statement]()
    moves, start = Group(b, width, name), address((group, width))
    for s in body:
        if isinstance(s, loop.Load | loop.Store) and (last, 1) in s.address.terms:
            place, _ = without(s.address, last)
            terms = [(names.get(r, r), n) for r, n in place.terms]
            inside.append(moves.moved(s, address(place.constant, *terms, start)))
        elif isinstance(s, loop.Compute | loop.Load) and s.result not in varying:
            for found in in_thread((s,), names):
                b.add(found)
        else:
            inside.append(s)
    inner = Builder()
    if any(isinstance(s, loop.Compute) and last in s.operands for s in inside):
        names[last] = inner.compute(ScalarOp.ADD, inner.compute(ScalarOp.MUL, group, width), moves.element)
    for s in in_thread(inside, names):
        inner.add(s)
    moves.add(inner.finish())


def row_width(program: RowProgram, threads: int) -> int:
    """Return the number of neighbouring columns that a thread takes at once, 1 where accesses cannot be wide.

    At most as many as give half of a row's threads columns. It follows from shapes, dtypes and the program alone.
    """
    accesses = [
        (s, column_place(phase, s), s in phase.body.statements)
        for phase in program.phases
        for s in statements_of(phase.body)
        if isinstance(s, loop.Load | loop.Store) and s.buffer.space is not loop.Space.LOCAL
    ]
    sizes = [s.buffer.dtype.itemsize for s, place, _ in accesses if place is None or place[1]]
    width = WIDE // max(sizes, default=WIDE)
    while width > 1 and (width * threads > 2 * program.length or any(p.length % width for p in program.phases)):
        width //= 2
    if any(reloaded(phase.body.statements) for phase in program.phases):
        return 1
    for s, place, is_outer in accesses:
        if place is None or (place[1] and not (is_outer and is_wide(s, *place, width))):
            return 1
    return width


def column_place(phase: Phase, s: loop.Load | loop.Store) -> tuple[loop.Address, int] | None:
    """Return an access's address without columns, and its step from one to the next. None if it is uneven."""
    place = phase.place(s.address)
    return None if place is None else (loop.Address(place[2], tuple(place[3])), place[1])


class Group:
    """Writer of a group's accesses. element: the index within it. results: stores behind the loop over elements.

    name: begins the names of its arrays in registers.
    """

    def __init__(self, b: Builder, width: int, name: str) -> None:
        self.b, self.width, self.name = b, width, name
        self.element = loop.Register(I64, "e")
        self.results: list[loop.Copy] = []
        self.moves = 0

    def moved(self, s: loop.Load | loop.Store, start: loop.Address) -> loop.Load | loop.Store:
        """Return an access to an array in registers in the place of a wide one, which begins at `start`."""
        kept = loop.Buffer(f"{self.name}{self.moves}", s.buffer.dtype, self.width, loop.Space.LOCAL, written=True)
        self.moves += 1
        self.b.alloc(kept)
        memory = loop.View(s.buffer, start)
        if isinstance(s, loop.Load):
            self.b.copy(kept, memory, self.width)
        else:
            self.results.append(loop.Copy(memory, loop.View(kept), self.width))
        return replace(s, buffer=kept, address=address(self.element))

    def add(
        self, body: loop.Block, carries: Sequence[loop.Carry] = (), results: tuple[loop.Register, ...] = ()
    ) -> None:
        """Write the loop over the elements, and the stores behind it."""
        bounds = loop.index_constant(0), loop.index_constant(self.width)
        self.b.add(loop.For(self.element, *bounds, body, carries=tuple(carries), results=results, unrolled=True))
        for copy in self.results:
            self.b.add(copy)
