"""The passes, in order: the table of contents of what happens to a program before it is scheduled."""

from __future__ import annotations

from tracer.ir.program import Program
from tracer.passes.cse import cse
from tracer.passes.dce import dce
from tracer.passes.expand import expand
from tracer.passes.rewrite import Pass

PIPELINE: tuple[Pass, ...] = (
    Pass("dce", dce),
    Pass("expand", expand),
    Pass("cse", cse),
    Pass("dce", dce),
)


def optimize(program: Program) -> Program:
    """Run all passes."""
    for step in PIPELINE:
        program = step.run(program)
    return program
