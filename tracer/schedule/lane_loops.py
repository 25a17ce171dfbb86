"""Loops whose lanes stop on their own: a nest in which every lane is a native loop, its carries in registers.

What batching makes of a `while_loop` runs all lanes until the last is done, through memory in every round. Where lanes
have nothing to do with one another (`lane_fits`), operands are read once and results stored once instead, vectors of
lanes run until their slowest is done, and threads share them.
"""

from __future__ import annotations

from tracer.ir.loop import LoopKind
from tracer.ir.program import Equation
from tracer.schedule.blocks import BlockWriter
from tracer.schedule.function_writer import FunctionWriter
from tracer.schedule.index import position
from tracer.schedule.lane_bodies import Given, LaneWriter
from tracer.schedule.lane_fits import LaneFit


def write_lanes(writer: BlockWriter, equation: Equation, fit: LaneFit) -> None:
    """Write the loop; results that nobody reads are not stored."""
    w = FunctionWriter(writer)
    read = [n for n, variable in enumerate(equation.outputs) if variable in writer.plan.last_read]
    targets = [w.memory(writer.target_of(equation.outputs[n]), written=True) for n in read]
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
