"""What passes share: the record of a pass, and rewriting programs that hold programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tracer.ir.program import Equation, Program

Rewrite = Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewrite of programs that keeps what they compute, and finds nothing more to do in its result.

    rounds: whether it may change how results are rounded. looks_back: whether what it does to an equation depends on
    the equations before it alone. deletes: whether all it does is to drop what nothing needs.
    """

    name: str
    run: Rewrite
    rounds: bool = False
    looks_back: bool = False
    deletes: bool = False


def nested_first(rewrite: Rewrite, holds: Callable[[Equation], bool] | None = None) -> Rewrite:
    """The rewrite applied to nested programs, and then to the program itself; to one that is shared, once.

    holds: which equations' programs are rewritten; all, unless said.
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
    """Rewrite the programs among the equations' parameters; the same object when nothing changed."""
    if not program.holds_programs:
        return program
    changed = False
    equations = []
    for equation in program.equations:
        rewritten = equation if holds is not None and not holds(equation) else rewrite_parameters(equation, rewrite)
        changed = changed or rewritten is not equation
        equations.append(rewritten)
    return replace(program, equations=tuple(equations)) if changed else program


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
