"""Cases of loops that are differentiated in bounded memory: made as the transforms make them, from a while_loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.grids import THOROUGH
from tests.laws.cases import Case, program_case, typed
from tests.laws.values import Between, Interval
from tracer.ir.program import Program
from tracer.primitives.arrays.dynamic_slice import GatherDimensionNumbers, gather
from tracer.primitives.base.shapes import broadcast_in_dim, reshape
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, mul, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.trigonometric import cos, sin
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.transforms.linearize import linearize_program
from tracer.transforms.transpose import transpose_program

POINTS = Interval(0.3, 1.7)
COUNT = Between(0, 9)
MEMORY = 160  # bytes: a chunk is a step or two, and there are four slots


def sweep_cases() -> Iterator[Case]:
    """All of them: what a loop of (count, constant, carry, carry) needs, three times differentiated."""
    for short, shape, row in (("f64", (), False), ("c128", (2,), False), ("f64", (2,), True)):
        kinds = [typed("i64"), *[typed(short, *shape)] * 3]
        for name, make, known in (("loop_push", _push, 4), ("loop_pull", _pull, 4), ("loop_bend", _bend, 6)):
            if name == "loop_bend" and not shape and not THOROUGH:
                continue  # the longest programs of all; `tests/transforms/test_loop_memory.py` bends loops of scalars
            program = make(_loop(kinds, row))
            linear = len(program.inputs) - known
            types = [*program.input_types[known:], *program.input_types[:known]]  # linear ones are tried first
            count = COUNT if short != "c128" else Between(0, 3)  # where sines grow
            draws = (*[POINTS] * linear, count, *[POINTS] * (known - 1))

            def run(*operands: Any, program: Program = program, linear: int = linear) -> Sequence[Any]:
                return evaluate(program, [*operands[linear:], *operands[:linear]])

            yield program_case(BY_NAME[name], types, run, draws, draws)


def _program(function: Callable[..., Sequence[Any]], types: Sequence[Any]) -> Program:
    return stage(lambda inputs: list(function(*inputs)), types).program


def _loop(kinds: Sequence[Any], row: bool) -> Program:
    """(n, w, x, y) -> x, y, by as many steps as n says; `row`: which read an element of x that may not be there."""
    cond = _program(lambda k, x, y: [lt(0, k)], [kinds[0], *kinds[2:]])

    def step(w: Any, k: Any, x: Any, y: Any) -> Sequence[Any]:
        read = broadcast_in_dim(_element(x, sub(k, 1)), x.shape, ()) if row else x
        return [sub(k, 1), add(mul(sin(y), w), read), mul(cos(x), y)]

    body = _program(step, [kinds[1], kinds[0], *kinds[2:]])
    return _program(lambda n, w, x, y: while_program(cond, body, [], [w], [n, x, y], memory=MEMORY)[1:], kinds)


def _element(x: Any, k: Any) -> Any:
    """x[k % 2], checked."""
    index = reshape(and_(k, 1), (1, 1))
    return reshape(gather(x, index, GatherDimensionNumbers((), (0,), (0,)), (1,)), ())


def _push(loop: Program) -> Program:
    """(n, w, x, y, dw, dx, dy) -> dx, dy."""
    split = linearize_program(loop, (False, True, True, True))

    def run(*inputs: Any) -> Sequence[Any]:
        results = evaluate(split.forward, inputs[:4])
        return evaluate(split.linear, [*split.residuals(inputs[:4], results), *inputs[4:]])

    return _program(run, [*loop.input_types, *loop.input_types[1:]])


def _pull(loop: Program) -> Program:
    """(n, w, x, y, ct x, ct y) -> cotangents of w, x, y."""
    linear = (False,) * 4 + (True,) * 3
    return transpose_program(_push(loop), linear).program


def _bend(loop: Program) -> Program:
    """(n, w, x, y, ct x, ct y, dw, dx, dy, d ct x, d ct y) -> derivatives of the cotangents of w, x, y."""
    split = linearize_program(_pull(loop), (False, *[True] * 5))

    def run(*inputs: Any) -> Sequence[Any]:
        results = evaluate(split.forward, inputs[:6])
        return evaluate(split.linear, [*split.residuals(inputs[:6], results), *inputs[6:]])

    return _program(run, [*loop.input_types, *loop.output_types, *loop.input_types[1:], *loop.output_types])
