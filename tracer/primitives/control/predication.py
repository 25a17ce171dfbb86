"""Predication: programs that fault, and have effects, only where a lane mask is true.

Batching a `cond` or a `while_loop` runs code for dead lanes, whose faults and effects must not happen. The mask joins
the predicate operand of every equation that may fault or has effects, also in nested programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import Effect, Structured, Zero
from tracer.ir.program import Equation, Program
from tracer.ir.types import array_type, tangent_type
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.nested_programs import active_of, nonzero, spread
from tracer.primitives.control.custom.custom_rules import split_jvp
from tracer.primitives.control.custom.custom_vmap import VmapRule, shifted_vmap
from tracer.primitives.control.custom.rule_functions import Closure, JvpRule, VjpRule, stage_backward, stage_forward
from tracer.primitives.elementwise.bits import and_
from tracer.trace.array import Array
from tracer.trace.evaluate import Environment, read
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all

_GUARDED = frozenset((Effect.FAULT, Effect.IO))


def wants_guard(program: Program) -> bool:
    """Return whether running the program for dead lanes would be noticed."""
    return bool(program.effects & _GUARDED)


@lru_cache(maxsize=1024)
def guarded_program(program: Program) -> Program:
    """Return the program with one more input at the front: a bool that predicates every fault and callback."""

    def run(inputs: list[Array]) -> list[Operand]:
        return run_guarded(program, inputs[0], inputs[1:])

    staged = stage(run, [array_type(dtypes.BOOL, ()), *program.input_types], name=program.name)
    return staged.program


def run_guarded(program: Program, mask: Operand, operands: Sequence[Operand]) -> list[Operand]:
    """Run a program at the current level, its faults and callbacks predicated by a bool[]."""
    environment: Environment = dict(zip(program.inputs, operands, strict=True))
    outer_source = state.source
    try:
        for equation in program.equations:
            state.source = equation.source
            inputs = [read(environment, atom) for atom in equation.inputs]
            params = dict(equation.params)
            if equation.effects & _GUARDED:
                inputs, params = _guard_equation(equation, mask, inputs, params)
            outputs = bind_all(equation.primitive, inputs, params)
            environment.update(zip(equation.outputs, outputs, strict=True))
    finally:
        state.source = outer_source
    return [read(environment, atom) for atom in program.outputs]


def _guard_equation(
    equation: Equation, mask: Operand, inputs: list[Operand], params: dict[str, Any]
) -> tuple[list[Operand], dict[str, Any]]:
    primitive = equation.primitive
    if primitive.guard is not None:
        inputs[primitive.guard] = _both(mask, inputs[primitive.guard])
        return inputs, params
    if "forward" in params:
        return _guard_sweep(mask, inputs, params)
    assert isinstance(primitive.lower, Structured)
    match primitive.lower.kind:
        case "call" | "custom_jvp" | "custom_vjp":
            params["program"] = guarded_program(params["program"])
            rule = params.get("rule")
            if rule is not None:
                params["rule"] = _guarded_rule(rule, equation.params["program"])
            return [mask, *inputs], params
        case "cond":
            params["branches"] = tuple(guarded_program(branch) for branch in params["branches"])
            return [inputs[0], mask, *inputs[1:]], params
        case "scan":
            params["body"] = guarded_program(params["body"])
            params["consts"] += 1
            return [mask, *inputs], params
        case "while":
            split = params["cond_consts"]
            params["cond"], params["body"] = guarded_program(params["cond"]), guarded_program(params["body"])
            params["cond_consts"] += 1
            params["body_consts"] += 1
            return [mask, *inputs[:split], mask, *inputs[split:]], params
        case "for":
            params["body"] = _behind_step(guarded_program(params["body"]))
            params["consts"] += 1
            return [inputs[0], mask, *inputs[1:]], params
        case kind:
            raise AssertionError(f"no guard for {kind}")


def _behind_step(body: Program) -> Program:
    """Return the guarded body of a for_loop, whose first input is the step."""
    mask, step, *rest = body.inputs
    return Program((step, mask, *rest), body.equations, body.outputs, body.name)


def _guard_sweep(mask: Operand, inputs: list[Operand], params: dict[str, Any]) -> tuple[list[Operand], dict[str, Any]]:
    """Make the mask a constant of all programs of a loop's derivative."""
    split = params["cond_consts"]
    params.update({name: guarded_program(value) for name, value in params.items() if isinstance(value, Program)})
    params.update(cond_consts=split + 1, consts=params["consts"] + 1, moving=(False, *params["moving"]))
    return [mask, *inputs[:split], mask, *inputs[split:]], params


def _guarded_rule(rule: Any, program: Program) -> Any:
    """Return the user's rule with the mask as one more operand, at the front, which predicates its faults."""
    if isinstance(rule, VmapRule):
        return shifted_vmap(rule, 1)
    return _guarded_jvp(rule) if isinstance(rule, JvpRule) else _guarded_vjp(rule, program)


def _guarded_jvp(rule: JvpRule) -> JvpRule:
    def tangents(xs: Sequence[Operand], dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        mask, *primals = xs
        split = split_jvp(rule, [x.type for x in primals], active_of(dxs[1:]))
        results = run_guarded(split.forward, mask, primals)
        ys, residuals = results[: len(split.reached)], results[len(split.reached) :]
        dys = run_guarded(split.linear, mask, [*residuals, *nonzero(dxs[1:])])
        return ys, spread(dys, split.reached, [y.type for y in ys])

    return JvpRule(rule.name, tangents, _behind_mask(rule.closure))


def _guarded_vjp(rule: VjpRule, program: Program) -> VjpRule:
    count = len(program.outputs)

    def forward(xs: Sequence[Operand], active: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
        mask, *primals = xs
        staged = stage_forward(rule, [x.type for x in primals], active[1:])
        results = run_guarded(staged.program, mask, [*staged.constants, *primals])
        return results[:count], [*results[count:], mask]

    def backward(residuals: Sequence[Operand], cts: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
        *kept, mask = residuals
        present = active_of(cts)
        staged, reached = stage_backward(rule, [r.type for r in kept], [c.type for c in cts], present, active[1:])
        given = iter(run_guarded(staged.program, mask, [*staged.constants, *kept, *nonzero(cts)]))
        types = map(tangent_type, program.input_types)
        return [
            Zero(tangent_type(mask.type)),
            *(next(given) if on else Zero(t) for on, t in zip(reached, types, strict=True)),
        ]

    return VjpRule(rule.name, forward, backward, rule.transpose, _behind_mask(rule.closure))


def _behind_mask(closure: Closure) -> Closure:
    return (None, *closure) if closure else ()


def _both(mask: Operand, predicate: Operand) -> Any:
    if not isinstance(predicate, Array) and bool(np.asarray(predicate.value)):
        return mask
    return and_(broadcast_in_dim(mask, predicate.type.shape, ()), predicate)
