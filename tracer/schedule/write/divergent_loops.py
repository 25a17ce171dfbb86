"""Divergent loops: a nest over independent lanes in which every lane is a native loop.

A loop over arrays would stream through memory in every iteration. A batched `while_loop` would do so until the last
lane is done. Independent lanes (see `divergent.analysis`) read operands once and store results once instead. Carries
are registers, each vector of lanes runs until its slowest is done, and threads share the vectors.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tracer.ir.loop import LoopKind
from tracer.ir.program import Equation, Program, Var
from tracer.passes.dce import dce
from tracer.schedule.elements.divergent.analysis import LaneFit
from tracer.schedule.elements.divergent.bodies import Given, LaneWriter
from tracer.schedule.terms.affine import position
from tracer.schedule.terms.value_locations import Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter


def shared_results(equation: Equation, read: Container[Var]) -> Equation | None:
    """Return the part of a loop in lanes that computes its results without axes, if any is read."""
    wanted = tuple(v for v in equation.outputs if v in read and not v.type.shape)
    given = tuple(dict.fromkeys(a for a in equation.inputs if isinstance(a, Var)))
    return dce(Program(given, (equation,), wanted)).equations[0] if wanted else None


def write_lanes(writer: BlockWriter, equation: Equation, fit: LaneFit) -> None:
    """Write the loop. Dead results are not stored."""
    w = FunctionWriter(writer)
    read = [n for n, v in enumerate(equation.outputs) if v in writer.plan.last_read and v.type.shape]
    taken = _taken_over(writer, equation, read)
    targets = [w.memory(taken.get(n) or writer.target_of(equation.outputs[n]), written=True) for n in read]
    with w.loops(fit.loops, LoopKind.PARALLEL) as places:
        lane, puller = fit.lane(places, w.extents), w.puller()
        given: list[Given] = []
        for n, atom in enumerate(equation.inputs):
            given.append(
                w.memory(writer.memory_of(atom)) if n in fit.shared else puller.element(atom, lane.at(atom.type))
            )
        results = LaneWriter(w.builder, lane, writer.module.sites).loop(equation, given)
        for n, target in zip(read, targets, strict=True):
            w.store_at(target, position(lane.index, fit.lanes), results[n])
    w.invoke()
    writer.sources.update((equation.outputs[n], memory) for n, memory in taken.items())


def _taken_over(writer: BlockWriter, equation: Equation, read: Sequence[int]) -> dict[int, Memory]:
    """Return the memory of carries that are dead after the loop, by the results that take it."""
    taken: dict[int, Memory] = {}
    first = len(equation.inputs) - len(equation.outputs)
    for n in read:
        atom, result = equation.inputs[first + n], equation.outputs[n]
        source = writer.sources.get(atom) if isinstance(atom, Var) else None
        if isinstance(source, Memory) and isinstance(atom, Var) and writer.may_take_over(equation, atom, result):
            taken[n] = source
    return taken
