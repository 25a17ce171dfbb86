"""Programs whose linear part runs them again, for where residuals must have a fixed size: stacks have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracer.ir.linearized import LinearizedProgram
from tracer.ir.program import Program
from tracer.ir.types import tangent_type
from tracer.ir.visit import live_variables
from tracer.primitives.silence import silent
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage


def repeating(program: Program, active: Sequence[bool], split: LinearizedProgram) -> LinearizedProgram:
    """A split of a program at its active inputs as one whose residuals are inputs of the program."""
    count = len(program.inputs)

    def run(inputs: list[Array]) -> list[Any]:
        primals, tangents = inputs[:count], inputs[count:]
        residuals = split.residuals(primals, evaluate(split.forward, primals))
        return evaluate(split.linear, [*residuals, *tangents])

    moving = [tangent_type(v.type) for v, on in zip(program.inputs, active, strict=True) if on]
    linear = silent(stage(run, [*program.input_types, *moving], name=f"{program.name}.linear").program)
    read = live_variables(linear)
    kept = [i for i in range(count) if linear.inputs[i] in read]
    inputs = (*(linear.inputs[i] for i in kept), *linear.inputs[count:])
    sources = tuple(("input", i) for i in kept)
    return LinearizedProgram(program, replace(linear, inputs=inputs), sources, split.active_outputs)
