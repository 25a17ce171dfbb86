"""Unrolling: a scan with `unroll` takes several steps per iteration; the remaining steps follow inline.

The pass runs after differentiation and batching, which keep the parameter: scans made of an unrolled one unroll, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.ir.program import Atom, Equation, Program
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.broadcasting import expand_dims
from tracer.primitives.base.shapes import reshape, squeeze
from tracer.primitives.control.scan import Parts, scan_p, scan_program, slice_type, split_parts, stacked_type
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage


def _unroll(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    params = equation.params
    if equation.primitive is not scan_p or params.get("unroll", 1) == 1:
        return None
    types = [atom.type for atom in equation.inputs]
    program = stage(lambda inputs: _written(inputs, **params), types, name=params["body"].name).program
    return at.inline(program, equation.inputs)


def _written(
    inputs: Sequence[Any], *, body: Program, length: int, reverse: bool, consts: int, carries: int, unroll: int
) -> list[Any]:
    """Write the whole scan: iterations of `unroll` steps, and the remainder after them, or before them in reverse."""
    parts = split_parts(inputs, consts, carries)
    steps = min(unroll, length)
    iterations = length // steps if steps else 0
    if iterations < 2:
        carry, ys = _steps(body, parts, length, reverse)
        return [*carry, *ys]
    whole = iterations * steps
    rest = Parts(parts.consts, parts.carry, [slice_in_dim(x, whole, length) for x in parts.xs])
    before: list[Any] = []
    if reverse and whole < length:
        carry, before = _steps(body, rest, length - whole, reverse)
        parts = parts._replace(carry=carry)
    blocks = [reshape(slice_in_dim(x, 0, whole), (iterations, steps, *x.shape[1:])) for x in parts.xs]
    carry, stacked = _iterations(body, parts._replace(xs=blocks), iterations, steps, reverse)
    ys = [reshape(y, (whole, *y.shape[2:])) for y in stacked]
    if not reverse and whole < length:
        carry, before = _steps(body, rest._replace(carry=carry), length - whole, reverse)
    return [*carry, *(concatenate(pair, 0) for pair in zip(ys, before, strict=True))] if before else [*carry, *ys]


def _iterations(body: Program, parts: Parts, iterations: int, steps: int, reverse: bool) -> tuple[list[Any], list[Any]]:
    """Write the scan over iterations. Return the carries, and the ys as [iterations, steps, ...]."""
    a, b = len(parts.consts), len(parts.carry)

    def several(inputs: list[Any]) -> list[Any]:
        carry, ys = _steps(body, split_parts(inputs, a, b), steps, reverse)
        return [*carry, *ys]

    types = [x.type for x in (*parts.consts, *parts.carry)] + [slice_type(x.type) for x in parts.xs]
    program = stage(several, types, name=body.name).program
    results = scan_program(program, parts.consts, parts.carry, parts.xs, length=iterations, reverse=reverse)
    return list(results[:b]), list(results[b:])


def _steps(body: Program, parts: Parts, count: int, reverse: bool) -> tuple[list[Any], list[Any]]:
    """Write steps inline. Return the carries, and the ys stacked."""
    carry, rows = list(parts.carry), []
    for step in reversed(range(count)) if reverse else range(count):
        slices = [squeeze(slice_in_dim(x, step, step + 1), (0,)) for x in parts.xs]
        outputs = evaluate(body, [*parts.consts, *carry, *slices])
        carry = outputs[: len(carry)]
        rows.append([expand_dims(y, (0,)) for y in outputs[len(carry) :]])
    rows = rows[::-1] if reverse else rows
    if not rows:
        return carry, [zeros(stacked_type(type, 0)) for type in body.output_types[len(carry) :]]
    return carry, [concatenate(column, 0) for column in zip(*rows, strict=True)]


unroll = rewriting(_unroll)
"""Unroll the scans that ask for it, nested ones first."""
