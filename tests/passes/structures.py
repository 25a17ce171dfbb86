"""Programs with control flow for the tests of passes, written with their nested programs as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.passes.programs import traced
from tracer.ir.types import with_shape
from tracer.primitives.control.calls import call
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program

Function = Callable[..., Any]


def branch(index: Any, functions: Sequence[Function], *operands: Any) -> list[Any]:
    types = [x.type for x in operands]
    return cond_branches(index, tuple(traced(f, *types, name="branch") for f in functions), *operands)


def repeat(cond: Function, step: Function, carry: Sequence[Any], consts: Sequence[Any] = ()) -> list[Any]:
    """while cond(*consts, *carry): carry = step(*consts, *carry)"""
    types = [x.type for x in (*consts, *carry)]
    return while_program(
        traced(cond, *types, name="cond"), traced(step, *types, name="body"), consts, consts, carry
    )  # fmt: skip


def along(
    step: Function,
    carry: Sequence[Any],
    xs: Sequence[Any],
    consts: Sequence[Any] = (),
    *,
    length: int,
    reverse: bool = False,
) -> list[Any]:
    """A scan: step(*consts, *carry, *slices) -> (*carry, *ys)"""
    types = [x.type for x in (*consts, *carry)] + [with_shape(x.type, x.type.shape[1:]) for x in xs]
    return scan_program(traced(step, *types, name="step"), consts, carry, xs, length=length, reverse=reverse)


def through(function: Function, *operands: Any, inline: bool = True) -> list[Any]:
    return call(traced(function, *(x.type for x in operands), name="called"), *operands, inline=inline)
