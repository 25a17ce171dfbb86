"""Control flow run step by step in Python, where its derivative would repeat ordered callbacks.

Outside jit a loop of unknown trip count runs once for its results and again for its derivative. A compiled program
returns no stacks to Python. Ordered callbacks must run once. So loops with such callbacks put their steps on the tape,
as a Python loop does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.ir.primitive import Effect, Primitive, Structured
from tracer.ir.program import Literal, Program
from tracer.ir.types import with_shape
from tracer.ir.visit import equations
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.shapes import reshape
from tracer.trace.evaluate import evaluate
from tracer.trace.memo import remembered
from tracer.trace.trace import Operand, as_literal

_LOOPS = ("while", "for")


def runs_by_steps(primitive: Primitive, params: Mapping[str, Any]) -> bool:
    """Whether an operation is or contains a loop of unknown length with ordered callbacks."""
    if not isinstance(primitive.lower, Structured) or Effect.IO not in primitive.effects_of(params):
        return False
    kind, programs = primitive.lower.kind, [p for value in params.values() for p in _programs(value)]
    if "rule" in params:
        return False
    return any(_calls(p) for p in programs) if kind in _LOOPS else any(_has_calling_loops(p) for p in programs)


def _programs(value: Any) -> Sequence[Program]:
    if isinstance(value, Program):
        return (value,)
    return value if isinstance(value, tuple) and value and isinstance(value[0], Program) else ()


@remembered
def _calls(program: Program) -> bool:
    return any(e.primitive.name == "callback" and Effect.IO in e.effects for e in equations(program))


@remembered
def _has_calling_loops(program: Program) -> bool:
    return any(runs_by_steps(e.primitive, e.params) for e in equations(program))


def run_by_steps(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Any]:
    """Return the results, computed equation by equation at the level of the operands, which have values."""
    assert isinstance(primitive.lower, Structured)
    match primitive.lower.kind:
        case "call":
            return evaluate(params["program"], operands)
        case "cond":
            index, branches = _number(operands[0]), params["branches"]
            return evaluate(branches[min(max(index, 0), len(branches) - 1)], operands[1:])
        case "while":
            return _while(operands, **params)
        case "for":
            return _for(operands, **params)
        case "scan":
            return _scan(operands, **params)
        case kind:
            raise AssertionError(f"no steps for {kind}")


def _number(x: Operand) -> int:
    return int(x.value if isinstance(x, Literal) else x)


def _while(
    operands: Sequence[Operand], cond: Program, body: Program, cond_consts: int, body_consts: int, memory: int = 0
) -> list[Any]:
    first, second = cond_consts, cond_consts + body_consts
    carry = list(operands[second:])
    while _number(evaluate(cond, [*operands[:first], *carry])[0]):
        carry = evaluate(body, [*operands[first:second], *carry])
    return carry


def _for(operands: Sequence[Operand], body: Program, consts: int, reverse: bool) -> list[Any]:
    count, *fixed = operands[: 1 + consts]
    carry = list(operands[1 + consts :])
    steps = range(_number(count))
    for step in reversed(steps) if reverse else steps:
        carry = evaluate(body, [as_literal(step, body.input_types[0].dtype), *fixed, *carry])  # type: ignore[union-attr]
    return carry


def _scan(
    operands: Sequence[Operand], body: Program, length: int, reverse: bool, consts: int, carries: int, unroll: int = 1
) -> list[Any]:
    fixed, xs = operands[:consts], operands[consts + carries :]
    carry = list(operands[consts : consts + carries])
    rows: list[list[Any]] = []
    for step in reversed(range(length)) if reverse else range(length):
        slices = [
            reshape(slice_in_dim(x, step, step + 1), t.shape)
            for x, t in zip(xs, body.input_types[consts + carries :], strict=True)
        ]
        results = evaluate(body, [*fixed, *carry, *slices])
        carry = results[:carries]
        rows.append([reshape(y, (1, *y.type.shape)) for y in results[carries:]])
    if reverse:
        rows.reverse()
    if rows:
        return carry + [concatenate(column, 0) for column in zip(*rows, strict=True)]
    return carry + [zeros(with_shape(t, (0, *t.shape))) for t in body.output_types[carries:]]
