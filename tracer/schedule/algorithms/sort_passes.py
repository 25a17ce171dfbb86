"""sort in passes whose iterations are independent, for targets of thousands of threads: see `Target.sort_passes`.

The first pass sorts runs of 32 elements. Each further one merges pairs of runs, and the last one stores the results.
In every pass each element finds its own place. In a short run it counts the elements before it. In a merge it adds its
place in its run to its rank in the other one, by binary search. Of equal elements the left ones come first, so the sort
is stable. It shares the order of `merge_sort`, and so has the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir import dtypes
from tracer.ir.layout import components
from tracer.ir.loop import LoopKind, Operand, index_constant
from tracer.ir.loop.build import carry
from tracer.ir.primitive import Library
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import array_type, size
from tracer.schedule.algorithms import merge_sort
from tracer.schedule.algorithms.merge_sort import Items, less, operands_in_memory, scalar_dtypes
from tracer.schedule.terms.affine import Affine, flatten, of_operand, operand_of, plus
from tracer.schedule.terms.cost import sort_cost
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.terms.value_locations import Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_RUN: Final = 32  # elements of a run that the first pass sorts, a power of two

Targets = Sequence[Memory | None]  # memory of the results, None where nothing reads them


def write_sort(writer: BlockWriter, equation: Equation) -> None:
    """Write a sort of every row along the dimension, by the way that suits the target."""
    if not writer.module.target.sort_passes:
        merge_sort.write_sort(writer, equation)
        return
    targets = [writer.target_of(v) if v in writer.plan.last_read else None for v in equation.outputs]
    if size(equation.inputs[0].type) == 0:
        return
    shape, axis = equation.inputs[0].type.shape, equation.params["dimension"]
    source: Sequence[Memory] = ()
    run = _RUN
    while run < shape[axis]:
        scratch = [writer.allocate(array_type(dtype, shape)) for dtype in scalar_dtypes(equation)]
        _Pass(writer, equation, source).write(run, scratch, ())
        source, run = scratch, 2 * run
    _Pass(writer, equation, source).write(run, (), targets)


class _Pass:
    """Writes one pass, a function with an iteration for each element.

    source: memory of the scalars that move, in sorted runs. It is empty where the first pass reads the operands.
    """

    def __init__(self, writer: BlockWriter, equation: Equation, source: Sequence[Memory]) -> None:
        self.f = FunctionWriter(writer)
        self.b = self.f.builder
        self.axis, self.shape = equation.params["dimension"], equation.inputs[0].type.shape
        self.n = self.shape[self.axis]
        self.operands, keys = equation.inputs, equation.inputs[: equation.params["num_keys"]]
        self.counts = [components(atom.type)[1] for atom in keys]
        self.source = [self.f.memory(memory) for memory in source]
        self.index: tuple[Affine, ...] = ()

    def write(self, run: int, scratch: Sequence[Memory], targets: Targets) -> None:
        """Write the pass after which runs of `run` elements are sorted, to the scratch memory or to the targets."""
        moved = [self.f.memory(memory, written=True) for memory in scratch]
        results = [None if target is None else self.f.memory(target, written=True) for target in targets]
        with self.f.loops(self.shape, LoopKind.PARALLEL) as self.index:
            position = operand_of(self.b, self.index[self.axis])
            keys = self._keys(position)
            place = self._merged(keys, position, run // 2) if self.source else self._ranked(keys, position, run)
            if moved:
                item = keys if len(moved) == len(keys) else (*keys, self._origin(position))
                for memory, value in zip(moved, item, strict=True):
                    self.f.store(memory, self._along(place), (self.b.convert(value, memory.buffer.dtype),))
            else:
                self._store(results, keys, position, place)
        self.f.invoke()

    def _store(self, results: Targets, keys: Items, position: Operand, place: Operand) -> None:
        """Store an element's keys at its place, and the other operands' elements that follow them."""
        start = 0
        for result, count in zip(results, self.counts, strict=False):
            if result is not None:
                self.f.store(result, self._along(place), keys[start : start + count])
            start += count
        others = slice(len(self.counts), None)
        if any(results[others]):
            origin = self._along(self.b.convert(self._origin(position), dtypes.I64))
            for atom, result in zip(self.operands[others], results[others], strict=True):
                if result is not None:
                    self.f.store(result, self._along(place), self.f.element(atom, origin))

    # -- elements

    def _along(self, position: Operand) -> tuple[Affine, ...]:
        """Return the index of an element of the row."""
        return tuple(of_operand(position) if a == self.axis else i for a, i in enumerate(self.index))

    def _keys(self, position: Operand) -> Items:
        """Return the keys of an element of the row."""
        if self.source:
            return tuple(self._moved(memory, position) for memory in self.source[: sum(self.counts)])
        keys = self.operands[: len(self.counts)]
        return tuple(scalar for key in keys for scalar in self.f.element(key, self._along(position)))

    def _origin(self, position: Operand) -> Operand:
        """Return the position that an element of the row had among the operands."""
        return self._moved(self.source[-1], position) if self.source else position

    def _moved(self, memory: Memory, position: Operand) -> Operand:
        return self.b.load(memory.buffer, plus(memory.start, flatten(self._along(position), self.shape)))

    # -- places

    def _ranked(self, keys: Items, position: Operand, run: int) -> Operand:
        """Return an element's place in its run: the count of the elements before it."""
        b = self.b
        if self.n == 1:
            return position
        own = b.compute(ScalarOp.AND, position, run - 1)
        start = b.compute(ScalarOp.SUB, position, own)
        stop = b.compute(ScalarOp.MIN, b.compute(ScalarOp.SUB, self.n, start), run) if self.n % run else run
        loop = b.for_("j", 0, stop, carries=[carry(index_constant(0), "rank")])
        with loop:
            other = self._keys(b.compute(ScalarOp.ADD, start, loop.index))
            before = self._before(other, keys, b.compute(ScalarOp.LT, loop.index, own))
            loop.yields(b.compute(ScalarOp.ADD, loop.carries[0], b.convert(before, own.dtype)))
        return b.compute(ScalarOp.ADD, start, loop.results[0])

    def _merged(self, keys: Items, position: Operand, run: int) -> Operand:
        """Return an element's place among two runs: that in its own one, and its rank in the other one."""
        b = self.b
        own = b.compute(ScalarOp.AND, position, run - 1)
        start = b.compute(ScalarOp.SUB, position, own)
        other = b.compute(ScalarOp.XOR, start, run)
        rest = b.compute(ScalarOp.MAX, b.compute(ScalarOp.SUB, self.n, other), 0)
        from_left = b.compute(ScalarOp.LT, other, start)
        ends = [carry(index_constant(0), "low"), carry(b.compute(ScalarOp.MIN, rest, run), "high")]
        loop = b.for_("step", 0, run.bit_length(), carries=ends)
        with loop:
            low, high = loop.carries
            middle = b.compute(ScalarOp.SHR_LOGICAL, b.compute(ScalarOp.ADD, low, high), 1)
            at = b.compute(ScalarOp.MIN, b.compute(ScalarOp.ADD, other, middle), self.n - 1)
            before = self._before(self._keys(at), keys, from_left)
            before = b.compute(ScalarOp.AND, before, b.compute(ScalarOp.LT, low, high))
            after = b.compute(ScalarOp.ADD, middle, 1)
            loop.yields(b.select(before, after, low), b.select(before, high, middle))
        return b.compute(
            ScalarOp.ADD, b.compute(ScalarOp.MIN, start, other), b.compute(ScalarOp.ADD, own, loop.results[0])
        )

    def _before(self, other: Items, keys: Items, from_left: Operand) -> Operand:
        """Whether another element comes before one: on its left also where they are equal."""
        b = self.b
        strictly = less(b, self.counts, b.choose(from_left, keys, other), b.choose(from_left, other, keys))
        return b.compute(ScalarOp.XOR, strictly, from_left)


SORT: Final = Schedule(Library, "sort", sort_cost, write_sort, operands_in_memory)
