"""A planned nest as a function of loop IR: a loop over the domain that stores its roots and joins its reductions.

Loops over kept axes are PARALLEL, loops over reduced axes SERIAL with combining carries. The mapping to a CPU or GPU
comes later. Adjacent loops over contiguous memory are one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracer.ir import dtypes
from tracer.ir.layout import components
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    Fault,
    For,
    Function,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    View,
    index_constant,
)
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Reduce
from tracer.ir.program import Equation, Var
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.gather_bounds import FaultSites
from tracer.schedule.elements.index_set_splitting import Box
from tracer.schedule.elements.pointwise import ON_BOOL, convert
from tracer.schedule.elements.puller import Puller, is_reduction
from tracer.schedule.loops.collapse import Axis, collapse
from tracer.schedule.plan.steps import Nest
from tracer.schedule.terms.affine import ZERO, Affine, flatten, of_register, plus, scaled, shifted
from tracer.schedule.terms.value_locations import Element, Inline, Memory, Scalars, Source, StackSource

Argument = View | Operand


@dataclass(frozen=True, slots=True)
class Invocation:
    """A function and the arguments to call it with."""

    function: Function
    arguments: tuple[Argument, ...]
    faults: bool


class Parameters:
    """The parameters of a function being written, by the outer memory or register that each stands for."""

    def __init__(self) -> None:
        self.parameters: list[Buffer | Register] = []
        self.arguments: list[Argument] = []
        self._buffers: dict[tuple[Buffer, Address], int] = {}
        self._registers: dict[Register, Register] = {}

    def memory(self, outer: Memory, *, written: bool = False) -> Memory:
        """Return the outer array as the function sees it."""
        key = (outer.buffer, outer.start)
        number = self._buffers.get(key)
        if number is None:
            number = self._buffers[key] = len(self.parameters)
            dtype, count = components(outer.type)
            extent = count
            for n in outer.type.shape:
                extent *= n
            name = f"a{number}"
            self.parameters.append(Buffer(name, dtype, extent, Space.ARGUMENT, written=written))
            self.arguments.append(outer.view)
        buffer = self.parameters[number]
        assert isinstance(buffer, Buffer)
        if written and not buffer.written:
            buffer = Buffer(buffer.name, buffer.dtype, buffer.size, Space.ARGUMENT, written=True)
            self.parameters[number] = buffer
        return Memory(buffer, ZERO, outer.type)

    def operand(self, outer: Operand) -> Operand:
        """Return an outer scalar as the function sees it."""
        if isinstance(outer, Constant):
            return outer
        if outer not in self._registers:
            inner = Register(outer.dtype, f"s{len(self.parameters)}")
            self._registers[outer] = inner
            self.parameters.append(inner)
            self.arguments.append(outer)
        return self._registers[outer]


class NestWriter:
    """Writes one nest, or one box of it. `source_of` gives outer sources; `targets` says where roots are stored."""

    def __init__(
        self,
        nest: Nest,
        source_of: Callable[[Var], Source],
        targets: Callable[[Var], Memory],
        sites: FaultSites,
        box: Box | None = None,
    ) -> None:
        self.nest = nest
        self.box = box or tuple((0, n) for n in nest.domain)
        self.outer = source_of
        self.targets = targets
        self.parameters = Parameters()
        self.own = {equation.outputs[0]: equation for equation in nest.roots if not is_reduction(equation)}
        self.body = Builder()
        self.registers = [Register(dtypes.I64, f"i{axis}") for axis in range(len(nest.domain))]
        self.sizes = [stop - start for start, stop in self.box]
        extents = dict(zip(self.registers, self.sizes, strict=True))
        self.puller = Puller(self.body, self._source, extents, sites)

    def write(self, name: str) -> Invocation:
        """Return the function and its arguments."""
        nest = self.nest
        stored = {v: self.parameters.memory(self.targets(v), written=True) for v in self._root_variables()}
        places = zip(self.registers, self.sizes, self.box, strict=True)
        index = tuple(Affine(start) if n == 1 else shifted(of_register(r), start) for r, n, (start, _) in places)
        sums: list[Sum] = []
        elements: dict[Var, Element] = {}
        for equation in nest.roots:
            variable = equation.outputs[0]
            if is_reduction(equation):
                sums += self._sums(equation, index)
            else:
                elements[variable] = self.puller.element(variable, index)
        for variable, element in elements.items():  # after all loads: a root may overwrite an operand of another root
            _store(self.body, stored[variable], flatten(index, nest.domain), element)
        tail = self._tail(sums, stored, index)
        axes = [
            Axis(r, n, axis in (nest.axes or ()))
            for axis, (r, n) in enumerate(zip(self.registers, self.sizes, strict=True))
            if n != 1
        ]
        faults = any(isinstance(s, Fault) for s in self.body.finish().statements)
        (inner, outer), axes = collapse([list(self.body.finish().statements), tail], axes)
        function = Function(name, tuple(self.parameters.parameters), _wrap(inner, outer, axes, sums))
        return Invocation(function, tuple(self.parameters.arguments), faults)

    def _root_variables(self) -> list[Var]:
        return [equation.outputs[0] for equation in self.nest.roots]

    def _source(self, variable: Var) -> Source:
        if variable in self.own:
            return Inline(self.own[variable])
        source = self.outer(variable)
        match source:
            case Memory():
                return self.parameters.memory(source)
            case Scalars(element):
                return Scalars(tuple(map(self.parameters.operand, element)))
            case Inline() | StackSource():
                return source

    def _sums(self, equation: Equation, index: Sequence[Affine]) -> list[Sum]:
        lower = equation.primitive.lower
        assert isinstance(lower, Reduce)
        element = self.puller.element(equation.inputs[0], tuple(index))
        sums = []
        for value in element:
            op = ON_BOOL.get(lower.op, lower.op) if dtypes.is_bool(value.dtype) else lower.op
            x = convert(self.body, value, dtypes.accumulator_dtype(value.dtype))
            sums.append(Sum(equation.outputs[0], op, x, Register(x.dtype, "total")))
            if self.puller.sites.origins is not None and equation.source is not None:
                self.puller.sites.origins.registers[sums[-1].result] = equation.source
        return sums

    def _tail(self, sums: Sequence[Sum], stored: dict[Var, Memory], index: Sequence[Affine]) -> list[Statement]:
        """Return the statements after the reduced loops: their results converted and stored."""
        builder = Builder()
        kept = [axis for axis in range(len(index)) if axis not in (self.nest.axes or ())]
        position = flatten([index[a] for a in kept], [self.nest.domain[a] for a in kept])
        for variable in dict.fromkeys(total.variable for total in sums):
            target = stored[variable]
            element = tuple(
                convert(builder, total.result, target.buffer.dtype) for total in sums if total.variable is variable
            )
            _store(builder, target, position, element)
        return list(builder.finish().statements)


@dataclass(frozen=True, slots=True)
class Sum:
    """One scalar reduction of a nest: its array, operation, operand, and the register of the result."""

    variable: Var
    op: ScalarOp
    value: Operand
    result: Register


def _store(builder: Builder, target: Memory, position: Affine, element: Element) -> None:
    place = plus(target.start, scaled(position, len(element)))
    for part, value in enumerate(element):
        builder.store(target.buffer, Address(place.constant + part, place.terms), value)


def _initial(op: ScalarOp, x: Operand) -> Constant:
    """Return the initial value of a reduction: its identity, but +0 for sums, so that empty sums are not -0."""
    return constant(0 if op is ScalarOp.ADD else identity(op, x.dtype), x.dtype)


def _wrap(inner: list[Statement], outer: list[Statement], axes: Sequence[Axis], sums: Sequence[Sum]) -> Block:
    """Return the loops around a nest's statements: reduced ones innermost, then `outer`, then the kept ones."""
    reduced = [axis for axis in axes if axis.reduced]
    statements = [*_reduced_loops(inner, reduced, sums), *outer] if sums else inner
    for axis in reversed([a for a in axes if not a.reduced] if sums else axes):
        statements = [_loop(axis, Block(tuple(statements)), LoopKind.PARALLEL)]
    return Block(tuple(statements))


def _loop(
    axis: Axis, body: Block, kind: LoopKind, carries: Sequence[Carry] = (), results: Sequence[Register] = ()
) -> For:
    start, stop = index_constant(0), index_constant(axis.size)
    return For(axis.register, start, stop, body, kind, carries=tuple(carries), results=tuple(results))


def _reduced_loops(inner: list[Statement], axes: Sequence[Axis], sums: Sequence[Sum]) -> list[Statement]:
    """Return the loops that join partial results. The innermost one combines, outer ones pass the sums on."""
    if not axes:
        start = [Compute(s.result, s.op, (_initial(s.op, s.value), s.value)) for s in sums]
        return [*inner, *start]
    partial = [Register(s.value.dtype, "acc") for s in sums]
    joined = [Register(s.value.dtype) for s in sums]
    steps = [Compute(j, s.op, (p, s.value)) for j, s, p in zip(joined, sums, partial, strict=True)]
    body = Block((*inner, *steps), tuple(joined))
    outer = [Register(s.value.dtype, "acc") for s in sums] if len(axes) > 1 else []
    entry: Sequence[Operand] = outer or [_initial(s.op, s.value) for s in sums]
    carries = [
        Carry(p, start, s.op, constant(identity(s.op, s.value.dtype), s.value.dtype))
        for p, start, s in zip(partial, entry, sums, strict=True)
    ]
    results = [Register(s.value.dtype) for s in sums] if len(axes) > 1 else [s.result for s in sums]
    loop = _loop(axes[-1], body, LoopKind.SERIAL, carries, results)
    for depth, axis in enumerate(reversed(axes[:-1])):
        last = depth == len(axes) - 2
        around = [] if last else [Register(s.value.dtype, "acc") for s in sums]
        entry = around or [_initial(s.op, s.value) for s in sums]
        carries = [Carry(p, start) for p, start in zip(outer, entry, strict=True)]
        handed = [s.result for s in sums] if last else [Register(s.value.dtype) for s in sums]
        loop = _loop(axis, Block((loop,), tuple(results)), LoopKind.SERIAL, carries, handed)
        outer, results = around, handed
    return [loop]
