"""Elementwise programs for arrays of any size: one loop, up to a count that is known when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Constant,
    For,
    Function,
    Invoke,
    Load,
    LoopKind,
    Register,
    Space,
)
from tracer.ir.loop.walk import blocks_of
from tracer.ir.program import Program
from tracer.ir.target import CPU, Target
from tracer.schedule.pipeline import ELEMENTWISE_PIPELINE, LoopPass, Scheduled, loop_stages, loops

SIZE: Final = 1009  # the size for which such a program is written: a number that nothing else has


def schedule_for_any_size(
    program: Program, passes: Sequence[LoopPass] = ELEMENTWISE_PIPELINE, target: Target = CPU
) -> Scheduled | None:
    """Return the schedule of a program of arrays f[SIZE] and scalars, for arrays of any size.

    The parameter, an i64[1], is the last: a constant. None where the program is more than one loop over the elements.
    """
    scheduled = loops(program)
    *_, (_, module) = loop_stages(scheduled.module, target, passes)
    if len(module.functions) != 2 or module.arena or module.stacks or scheduled.callbacks or scheduled.constants:
        return None
    nest, main = module.functions
    loop, (*before, run) = nest.body.statements[0], main.body.statements
    if len(nest.body.statements) != 1 or not isinstance(loop, For) or not isinstance(run, Invoke):
        return None
    if any(blocks_of(statement) for statement in before) or not _counts_to_size(loop):
        return None
    count, total, buffer = Register(I64, "count"), Register(I64, "count"), Buffer("count", I64, 1, Space.CONSTANT)
    any_nest = Function(nest.name, (*nest.parameters, count), Block((replace(loop, stop=count),)))
    statements = (*before, Load(total, buffer, Address()), replace(run, arguments=(*run.arguments, total)))
    any_main = Function(main.name, (*main.parameters, buffer), Block(statements))
    constants = (np.zeros(1, np.int64),)
    return replace(scheduled, module=replace(module, functions=(any_nest, any_main)), constants=constants)


def _counts_to_size(loop: For) -> bool:
    ends = loop.start, loop.stop
    fixed = all(isinstance(end, Constant) for end in ends) and [int(end.value) for end in ends] == [0, SIZE]  # type: ignore[union-attr]
    return fixed and loop.step == 1 and not loop.carries and loop.kind in (LoopKind.VECTOR, LoopKind.SERIAL)
