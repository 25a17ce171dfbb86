"""Programs as lines: parameters that repeat the types set apart, and the cost of each equation."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.explorer.records import Figures, Key, Kind, Line, Stage, key_of
from tracer.ir.program import Equation, Program
from tracer.ir.text import Line as Printed
from tracer.ir.text import program_lines
from tracer.runtime.analysis.cost import bytes_of, equation_cost
from tracer.schedule.terms.cost import Cost


def program_stage(name: str, program: Program, *, note: str = "", main: bool = False) -> Stage:
    """Return a program as a stage."""
    costs = _costs(program)
    lines = tuple(
        _line(printed, costs.get(id(printed.equation)) if printed.equation else None)
        for printed in program_lines(program)
    )
    return Stage(name, Kind.PROGRAM, lines, note, main=main)


def line_figures(program: Program) -> dict[Key, Figures]:
    """Return the cost of the program's own equations, summed by the user's line."""
    found: dict[Key, Figures] = {}
    costs = _costs(program)
    for equation in program.equations:
        for key in key_of(equation.source):
            found[key] = _sum(found[key], costs[id(equation)]) if key in found else costs[id(equation)]
    return found


def _sum(a: Figures, b: Figures) -> Figures:
    return Figures(
        a.flops + b.flops, a.functions + b.functions, a.read + b.read, a.written + b.written, a.bytes + b.bytes,
        a.share + b.share, a.traffic + b.traffic,
    )  # fmt: skip


def _costs(program: Program) -> dict[int, Figures]:
    """Return the figures of every equation by its `id`. Shares are shares of the program that holds the equation."""
    found: dict[int, Figures] = {}
    for each in (program, *_nested(program)):
        costs = [equation_cost(equation) for equation in each.equations]
        work, moved = sum(c.weight for c in costs) or 1, sum(c.bytes_read + c.bytes_written for c in costs) or 1
        for equation, cost in zip(each.equations, costs, strict=True):
            found[id(equation)] = _figures(equation, cost, work, moved)
    return found


def _figures(equation: Equation, cost: Cost, work: int, moved: int) -> Figures:
    results = sum(bytes_of(variable.type) for variable in equation.outputs)
    traffic = (cost.bytes_read + cost.bytes_written) / moved
    return Figures(
        cost.flops, cost.functions, cost.bytes_read, cost.bytes_written, results, cost.weight / work, traffic
    )


def _nested(program: Program) -> Iterator[Program]:
    for equation in program.equations:
        for _, inner in equation.nested():
            yield inner
            yield from _nested(inner)


def _line(printed: Printed, figures: Figures | None) -> Line:
    full, text = str(printed), printed.short()
    source = None if printed.equation is None else printed.equation.source
    return Line(text, full if full != text else "", key_of(source), printed.source or "", figures=figures)
