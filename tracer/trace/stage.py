"""Staging: a Python function on arrays becomes a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tracer.ir.program import Program
from tracer.ir.types import Type
from tracer.trace.array import Array
from tracer.trace.trace import Operand, open_trace, stage_process


class Staged(NamedTuple):
    """Program of (constants..., inputs...), and the outer arrays that are its constants."""

    program: Program
    constants: list[Array]


def stage(
    function: Callable[[list[Array]], Sequence[Operand]],
    types: Sequence[Type],
    *,
    name: str = "f",
    protected: bool = False,
) -> Staged:
    """Trace `function` on arrays of the given types, which have no values.

    protected: whether `x[i] = v` on the inputs is an error (arguments of jit and vmap) or allowed (loop carries).
    """
    with open_trace(stage_process, name, staging=True) as trace:
        inputs = [trace.new_input(type, protected=protected) for type in types]
        outputs = function(inputs)
        program = trace.program(outputs)
    return Staged(program, [array for _, array in trace.constants])
