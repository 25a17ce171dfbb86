"""Passes: the record of a pass, and rewrites applied to nested programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tracer.ir.program import Equation, Program
from tracer.ir.target import CPU, Target

Rewrite = Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewrite of programs that keeps their meaning, and is idempotent.

    rewrite: a function of the program or, where `targeted`, of the program and the target. rounds: whether it may
    change how results are rounded. looks_back: whether its effect on an equation depends on the equations before it
    alone. deletes: whether it only drops equations that nothing needs.
    """

    name: str
    rewrite: Callable[..., Program]
    targeted: bool = False
    rounds: bool = False
    looks_back: bool = False
    deletes: bool = False

    def run(self, program: Program, target: Target = CPU) -> Program:
        """Return the rewritten program, the same object where nothing changed."""
        return self.rewrite(program, target) if self.targeted else self.rewrite(program)


def nested_first(rewrite: Rewrite, holds: Callable[[Equation], bool] | None = None) -> Rewrite:
    """Return a rewrite that is applied to nested programs, and then to the program itself; to a shared one, once.

    holds: which equations' programs are rewritten; all by default.
    """

    def run(program: Program) -> Program:
        done: dict[int, tuple[Program, Program]] = {}  # by id of the program, which the entry keeps alive

        def each(program: Program) -> Program:
            known = done.get(id(program))
            if known is None:
                known = done[id(program)] = (program, rewrite(rewrite_nested(program, each, holds)))
            return known[1]

        return each(program)

    return run


def rewrite_nested(program: Program, rewrite: Rewrite, holds: Callable[[Equation], bool] | None = None) -> Program:
    """Rewrite the programs among the equations' parameters; return the same object if nothing changed."""
    equations: list[Equation] | None = None
    for position in program.holders:
        equation = program.equations[position]
        rewritten = equation if holds is not None and not holds(equation) else rewrite_parameters(equation, rewrite)
        if rewritten is not equation:
            equations = list(program.equations) if equations is None else equations
            equations[position] = rewritten
    return program if equations is None else replace(program, equations=tuple(equations))


def rewrite_parameters(equation: Equation, rewrite: Rewrite) -> Equation:
    """Rewrite the programs among one equation's parameters."""
    updates: dict[str, object] = {}
    for name, value in equation.params.items():
        if isinstance(value, Program):
            new: object = rewrite(value)
            if new is not value:
                updates[name] = new
        elif isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
            items = tuple(rewrite(item) if isinstance(item, Program) else item for item in value)
            if any(a is not b for a, b in zip(items, value, strict=True)):
                updates[name] = items
    return replace(equation, params={**equation.params, **updates}) if updates else equation
