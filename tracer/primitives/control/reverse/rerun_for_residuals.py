"""Linearised programs whose linear part reruns them, for where residuals must have a fixed size: stacks have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracer.ir.linearized import LinearizedProgram
from tracer.ir.program import Program, Var
from tracer.ir.types import tangent_type
from tracer.ir.visit import live_equations, use_counts
from tracer.primitives.control.reverse.residual_stacks import pop_p
from tracer.primitives.control.reverse.without_effects import silent
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage


def repeating(program: Program, active: Sequence[bool], split: LinearizedProgram) -> LinearizedProgram:
    """Rewrite a split so that its residuals are inputs of the program, at the active inputs.

    If a step of a loop passes on a stack without its top, the popped item is the residual. The next step has another
    stack, and no stack holds stacks.
    """
    count = len(program.inputs)

    def run(inputs: list[Array]) -> list[Any]:
        primals, tangents = inputs[:count], inputs[count:]
        residuals = split.residuals(primals, evaluate(split.forward, primals))
        return evaluate(split.linear, [*residuals, *tangents])

    moving = [tangent_type(v.type) for v, on in zip(program.inputs, active, strict=True) if on]
    linear = silent(stage(run, [*program.input_types, *moving], name=f"{program.name}.linear").program)
    linear = replace(linear, equations=live_equations(linear))
    uses = use_counts(linear)
    pops = {e.inputs[0]: e for e in linear.equations if e.primitive is pop_p and not uses[e.outputs[0]]}
    tops = {e.inputs[0]: e.outputs[1] for e in reversed(program.equations) if e.primitive is pop_p}
    kept: list[Var] = []
    sources: list[tuple[str, int]] = []
    items: list[Var] = []
    for i, (own, variable) in enumerate(zip(program.inputs, linear.inputs, strict=False)):
        if own in tops and variable in pops and uses[variable] == 1:
            sources.append(("residual", len(items)))
            items.append(tops[own])
            kept.append(pops[variable].outputs[1])
        elif uses[variable]:
            sources.append(("input", i))
            kept.append(variable)
    equations = tuple(e for e in linear.equations if e.primitive is not pop_p or e.outputs[1] not in kept)
    again = replace(linear, inputs=(*kept, *linear.inputs[count:]), equations=equations)
    forward = replace(program, outputs=(*program.outputs, *items)) if items else program
    return LinearizedProgram(forward, again, tuple(sources), split.active_outputs)
