"""Bodies of divergent loops for one lane: statements on the lane's scalars.

A `LaneWriter` pulls the results of a body for one lane, whose carries are registers. Arrays that all lanes read stay in
memory. Loops within may be divergent too, or have a condition or a count that all lanes share. A lane that needs
another lane's values, a reduction or a callback is a misfit. It is found by trying to write it.

A lane that records a fault is done, so no lane continues with an undefined value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracer.ir import dtypes
from tracer.ir.loop import Carry, Fault, Operand, Register
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import Effect
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import StackType, Type
from tracer.passes.base.loops import loop_of
from tracer.primitives.control.divergence import assume, mask_position
from tracer.schedule.elements.gather_bounds import FaultSites
from tracer.schedule.elements.puller import Plan, Puller, is_map
from tracer.schedule.terms.affine import Extents, Index, position
from tracer.schedule.terms.value_locations import Element, Inline, Memory, Source

_TRUE = constant(True, dtypes.BOOL)

Given = Element | Memory
"""An operand in a lane: its element there, or an array that all lanes read."""


class MisfitError(Exception):
    """Raised where a lane would need values of other lanes."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Lane that is being written: the shape of all lanes, and its index."""

    shape: tuple[int, ...]
    index: Index
    extents: Extents

    def at(self, type: Type) -> Index:
        """Return the lane's index of a value: its own element, or () for a value without axes."""
        if isinstance(type, StackType) or type.shape not in ((), self.shape):
            raise MisfitError
        return self.index if type.shape else ()

    def owns(self, index: Index, type: Type) -> bool:
        """Whether the element at an index of a value is the lane's."""
        if not type.shape:
            return True
        return type.shape == self.shape and position(index, self.shape) == position(self.index, self.shape)


class _LanePuller(Puller):
    """Pulls elements in a lane. `known` are its own, arrays come from `sources`."""

    def __init__(
        self,
        builder: Builder,
        lane: Lane,
        known: Mapping[Var, Element],
        sources: Mapping[Var, Source],
        sites: FaultSites,
    ) -> None:
        super().__init__(builder, sources.__getitem__, lane.extents, sites)
        self.lane, self.known, self.sources = lane, known, sources

    def _plan(self, variable: Var, index: Index) -> Plan:
        element = self.known.get(variable)
        if element is not None:
            if not self.lane.owns(index, variable.type):
                raise MisfitError
            return Plan((), lambda _: element)
        source = self.sources.get(variable)
        if source is None or (isinstance(source, Inline) and not is_map(source.equation)):
            raise MisfitError
        return super()._plan(variable, index)

    def _record(self, variable: Var, before: int) -> None:
        if variable not in self.known:  # the lane's own elements were computed before
            super()._record(variable, before)

    def _viewed(self, operand: Atom) -> tuple[Atom, list[tuple[str, Equation]]]:
        return operand, []  # a lane shares whole arrays

    def _memory(self, operand: Atom) -> Memory | None:
        if operand.type.shape and not (isinstance(operand, Var) and isinstance(self.sources.get(operand), Memory)):
            raise MisfitError
        return super()._memory(operand)


class LaneWriter:
    """Writes programs for one lane into a builder."""

    def __init__(self, builder: Builder, lane: Lane, sites: FaultSites) -> None:
        self.builder, self.lane, self.sites = builder, lane, sites
        self.inner: list[
            Operand
        ] = []  # of the loops in the block that is open: whether the lane came out without fault

    def loop(self, equation: Equation, given: Sequence[Given]) -> list[Element]:
        """Write a loop in the lane and return its results there."""
        loop = loop_of(equation)
        if loop is None or loop.count:
            raise MisfitError
        return self._scan(equation, given) if loop.cond is None else self._while(equation, given)

    def _block(self, program: Program, given: Sequence[Given]) -> tuple[list[Element], Operand | None]:
        """Return the outputs in the lane, and a predicate that no fault was recorded (None where none can be)."""
        outer, self.inner = self.inner, []
        known = {v: x for v, x in zip(program.inputs, given, strict=True) if not isinstance(x, Memory)}
        sources: dict[Var, Source] = {v: x for v, x in zip(program.inputs, given, strict=True) if isinstance(x, Memory)}
        for equation in program.equations:
            sources.update((v, Inline(equation, n)) for n, v in enumerate(equation.outputs))
        puller = _LanePuller(self.builder, self.lane, known, sources, self.sites)
        for equation in program.equations:
            if Effect.IO in equation.effects or not equation.outputs:
                raise MisfitError
            if any(True for _ in equation.nested()):
                operands = [self._operand(puller, atom) for atom in equation.inputs]
                known.update(zip(equation.outputs, self.loop(equation, operands), strict=True))
        outputs = [puller.element(atom, self.lane.at(atom.type)) for atom in program.outputs]
        fine = self.fine()
        self.inner = outer
        return outputs, fine

    def _operand(self, puller: _LanePuller, atom: Atom) -> Given:
        source = puller.sources.get(atom) if isinstance(atom, Var) else None
        return source if isinstance(source, Memory) else puller.element(atom, self.lane.at(atom.type))

    def fine(self) -> Operand | None:
        """Whether the statements of the open block recorded no fault in the lane; None where none can."""
        b = self.builder
        faults = [s.predicate for s in b.statements if isinstance(s, Fault)]
        found = [*(b.apply(ScalarOp.NOT, bad) for bad in faults), *self.inner]
        return self._all(found) if found else None

    def _all(self, flags: Sequence[Operand]) -> Operand:
        result = flags[0]
        for flag in flags[1:]:
            result = self.builder.apply(ScalarOp.AND, result, flag)
        return result

    # loops

    def _while(self, equation: Equation, given: Sequence[Given]) -> list[Element]:
        params, b = equation.params, self.builder
        first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
        carries = _Carries(given[second:], self.fine(), faults=_may_fault(equation))
        body: Program = params["body"]
        mask = mask_position(params)
        loop = b.while_(*carries.entry)
        now = carries.elements(loop.carries)
        with loop.condition as condition:
            if mask is None:
                ((going,),), fine = self._block(params["cond"], [*given[:first], *now])
                if fine is not None:
                    raise MisfitError
            else:
                (going,) = now[mask]
            gate = carries.fine(loop.carries)
            condition.yields(going if gate is None else b.apply(ScalarOp.AND, going, gate))
        if mask is not None:
            body, now[mask] = assume(body, body.inputs[second - first + mask], True), (_TRUE,)
        with loop.body as scope:
            outputs, fine = self._block(body, [*given[first:second], *now])
            scope.yields(*carries.yields(outputs, fine))
        return self._results(carries, loop.results)

    def _scan(self, equation: Equation, given: Sequence[Given]) -> list[Element]:
        params = equation.params
        consts, count = params["consts"], params["carries"]
        if len(given) > consts + count or len(equation.outputs) > count:
            raise MisfitError
        carries = _Carries(given[consts:], self.fine(), faults=_may_fault(equation))
        loop = self.builder.for_("step", 0, params["length"], carries=carries.entry)
        with loop:
            outputs, fine = self._block(params["body"], [*given[:consts], *carries.elements(loop.carries)])
            if fine is not None:
                fine = self.builder.apply(ScalarOp.AND, loop.carries[-1], fine)
            loop.yields(*carries.yields(outputs, fine))
        return self._results(carries, loop.results)

    def _results(self, carries: _Carries, registers: Sequence[Register]) -> list[Element]:
        if carries.faults:
            self.inner.append(registers[-1])
        return carries.elements(registers)


class _Carries:
    """The carries of a loop in a lane; the last one says that it is without fault, where the loop may record one."""

    def __init__(self, given: Sequence[Given], fine: Operand | None, *, faults: bool) -> None:
        elements = []
        for x in given:
            if isinstance(x, Memory):
                raise MisfitError
            elements.append(x)
        self.sizes = [len(element) for element in elements]
        self.gate, self.faults = fine, faults
        values = [x for element in elements for x in element]
        if faults:
            values.append(_TRUE if fine is None else fine)
        self.entry = [Carry(Register(x.dtype, "c"), x) for x in values]

    def elements(self, registers: Sequence[Operand]) -> list[Element]:
        rest = iter(registers)
        return [tuple(next(rest) for _ in range(n)) for n in self.sizes]

    def fine(self, registers: Sequence[Operand]) -> Operand | None:
        """Return the predicate that no fault has stopped the lane, before the loop or in it; None where none can."""
        return registers[-1] if self.faults else self.gate

    def yields(self, outputs: Sequence[Element], fine: Operand | None) -> list[Operand]:
        values = [x for element in outputs for x in element]
        if self.faults:
            values.append(_TRUE if fine is None else fine)
        return values


def _may_fault(equation: Equation) -> bool:
    return Effect.FAULT in equation.effects
