"""Random programs: every pass keeps what they compute, to the bit, and has nothing left to do when it has run."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.passes.programs import apply, f64, traced
from tests.passes.structures import along, branch, repeat, through
from tracer.ir import dtypes
from tracer.ir.program import Literal, Program
from tracer.passes.cse import cse
from tracer.passes.dce import dce
from tracer.passes.expand import expand
from tracer.passes.fold import fold
from tracer.passes.hoist import hoist
from tracer.passes.inline import inline
from tracer.passes.narrow import narrow
from tracer.passes.pipeline import optimize
from tracer.passes.simplify import simplify
from tracer.primitives.arrays.reductions.reductions import argmax, reduce_max
from tracer.primitives.base.broadcasting import broadcast_in_dim, full
from tracer.primitives.base.shapes import reshape, rev
from tracer.primitives.elementwise.arithmetic import add, div, max, mul, neg, sub
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.complex import abs
from tracer.primitives.elementwise.powers import square
from tracer.primitives.elementwise.rounding import floor
from tracer.trace.trace import as_literal

N = 5
CONSTANTS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, np.nan)
UNARY = (neg, abs, floor, square, lambda x: rev(x, (0,)), lambda x: reshape(reshape(x, (N, 1)), (N,)))
BINARY = (add, sub, mul, div, max)


class Writer:
    """Draws functions of f64[N] arrays; nested ones draw from the arrays that they are given."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, known: list[Any]) -> Any:
        return known[self.draw(st.integers(0, len(known) - 1))]

    def step(self, known: list[Any], depth: int) -> Any:
        kind = self.draw(st.integers(0, 9 if depth else 5))
        x, y = self.pick(known), self.pick(known)
        match kind:
            case 0 | 1:
                return self.draw(st.sampled_from(BINARY))(x, y)
            case 2:
                constant = as_literal(self.draw(st.sampled_from(CONSTANTS)), dtypes.F64)
                pair = (x, constant) if self.draw(st.booleans()) else (full((N,), constant), x)
                return self.draw(st.sampled_from(BINARY))(*pair)
            case 3:
                return self.draw(st.sampled_from(UNARY))(x)
            case 4:
                return select(lt(x, y), x, self.pick(known))
            case 5:
                return broadcast_in_dim(reduce_max(x, (0,)), (N,), ())
            case _:
                return self.structure(kind, known, depth - 1)

    def structure(self, kind: int, known: list[Any], depth: int) -> Any:
        operands = [self.pick(known) for _ in range(3)]
        literal = as_literal(self.draw(st.integers(0, 2)), dtypes.I32)
        start = literal if self.draw(st.booleans()) else argmax(operands[0], 0, dtypes.I32)
        function = lambda *inputs: self.several(list(inputs), 3, depth)  # noqa: E731
        match kind:
            case 6:
                return self.pick(branch(start, [function, function], *operands))
            case 7:
                loop = lambda n, *inputs: (add(n, 1), *function(*inputs))  # noqa: E731
                return self.pick(repeat(lambda n, *_: lt(n, 3), loop, [start, *operands])[1:])
            case 8:
                step = lambda k, c, d: tuple(self.several([k, c, d], 2, depth))  # noqa: E731
                length = self.draw(st.integers(0, 2))
                return self.pick(along(step, operands[1:], [], operands[:1], length=length))
            case _:
                return self.pick(through(function, *operands))

    def several(self, known: list[Any], count: int, depth: int) -> list[Any]:
        known = list(known)
        for _ in range(self.draw(st.integers(1, 4))):
            known.append(self.step(known, depth))
        outputs = [self.pick(known) for _ in range(count)]
        return [full((N,), x) if isinstance(x, Literal) else x for x in outputs]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    writer = Writer(draw)
    return traced(lambda *inputs: writer.several(list(inputs), 2, 2), *[f64(N)] * 3)


@given(programs())
def test_every_pass_keeps_random_programs(program: Program) -> None:
    for rewrite in (inline, fold, simplify, narrow, hoist, cse, dce, expand):
        apply(rewrite, program)


@given(programs())
def test_all_passes_together_keep_random_programs(program: Program) -> None:
    apply(lambda p: optimize(p, verify=True), program)
