"""Programs stripped of input and output, for derivatives that rerun a part of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.errors import NoRuleError, message
from tracer.ir.primitive import Effect, Structured
from tracer.ir.program import Equation, Program
from tracer.ir.visit import live_equations
from tracer.trace.memo import remembered


@remembered
def silent(program: Program) -> Program:
    """Drop input and output from a program, which happened already; keep its results.

    Raises NoRuleError if these need the result of a callback: it was not kept, and it is not called twice.
    """
    needed = live_equations(program)
    return replace(program, equations=tuple([_silent_equation(e) if Effect.IO in e.effects else e for e in needed]))


def _silent_equation(equation: Equation) -> Equation:
    if equation.primitive.lower == Structured("callback"):
        where = f" at {equation.source}" if equation.source is not None else ""
        raise NoRuleError(
            message(
                f"gradient of callback {equation.params['host'].name}{where}: its results are not kept",
                "it is called in a loop of unknown length, inside another loop or a branch, whose derivative runs "
                "the steps again",
                help="differentiate outside jit, where the steps that were taken are kept, or call it before the loop",
            )
        )
    return replace(equation, params={name: _silent_parameter(value) for name, value in equation.params.items()})


def _silent_parameter(value: Any) -> Any:
    if isinstance(value, Program):
        return silent(value)
    if isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
        return tuple(silent(item) for item in value)
    return value
