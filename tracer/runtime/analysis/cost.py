"""Reports of cost: operations of a program and the bytes that would move if nothing were fused, before anything runs.

Loops count every iteration. A `while_loop`, whose trip count is unknown, counts one, and the report says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracer.ir.primitive import Structured
from tracer.ir.program import Equation, Program, Source, Var
from tracer.ir.types import StackType, Type, size, storage_type
from tracer.ir.visit import equations
from tracer.lazy import LazyModule
from tracer.runtime.system.long_calls import HEARD
from tracer.schedule.terms.cost import NOTHING, Cost

if TYPE_CHECKING:
    from tracer import markup
    from tracer.schedule import dispatch
else:
    markup = LazyModule("tracer.markup")
    dispatch = LazyModule("tracer.schedule.dispatch")

_WHILE: Final = Structured("while")
ENDLESS: Final = 2**62
"""Work of a loop whose trip count is unknown."""


@dataclass(frozen=True, slots=True)
class Line:
    """Cost of one equation."""

    equation: str
    source: Source | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class CostReport:
    """Cost of a program, by equation and in total. Prints as a table."""

    lines: tuple[Line, ...]
    total: Cost

    @property
    def flops(self) -> int:
        """Floating-point operations of all equations."""
        return self.total.flops

    @property
    def bytes_read(self) -> int:
        """Bytes that all equations read."""
        return self.total.bytes_read

    @property
    def bytes_written(self) -> int:
        """Bytes that all equations write."""
        return self.total.bytes_written

    def __str__(self) -> str:
        head = f"{'equation':<24}{'flops':>14}{'functions':>14}{'read':>16}{'written':>16}  source"
        rows = [_row(line.equation, line.cost, str(line.source or "")) for line in self.lines]
        note = ["a while_loop is counted as one iteration"] if self.total.unknown_trips else []
        return "\n".join([head, *rows, _row("in all", self.total, ""), *note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        work, moved = (max((part(line.cost) for line in self.lines), default=0) or 1 for part in (_weight, _traffic))
        bars = [(_weight(line.cost) / work, _traffic(line.cost) / moved) for line in self.lines]
        rows = [(line.equation, *_figures(line.cost), str(line.source or "")) for line in self.lines]
        head, total = (
            ("equation", "flops", "functions", "read", "written", "source"),
            ("in all", *_figures(self.total), ""),
        )
        note = (
            "work and traffic of each equation"
            + "; a while_loop is counted as one iteration" * self.total.unknown_trips
        )
        return markup.view("cost", markup.table(head, rows, text=(0, 5), bars=bars, total=total), note=note)


def _weight(cost: Cost) -> int:
    return cost.weight


def _traffic(cost: Cost) -> int:
    return cost.bytes_read + cost.bytes_written


def _figures(cost: Cost) -> tuple[str, str, str, str]:
    return f"{cost.flops:,}", f"{cost.functions:,}", f"{cost.bytes_read:,} B", f"{cost.bytes_written:,} B"


def _row(name: str, cost: Cost, source: str) -> str:
    figures = f"{cost.flops:>14,}{cost.functions:>14,}{cost.bytes_read:>14,} B{cost.bytes_written:>14,} B"
    return f"{name:<24}{figures}  {source}".rstrip()


def report(program: Program) -> CostReport:
    """Return the program's cost, equation by equation."""
    lines = tuple(Line(e.primitive.name, e.source, equation_cost(e)) for e in program.equations)
    return CostReport(lines, sum((line.cost for line in lines), NOTHING))


def program_cost(program: Program) -> Cost:
    """Return the sum over the equations."""
    return sum(map(equation_cost, program.equations), NOTHING)


def flops(program: Program) -> int:
    """Return one value for all operations of a program, to compare a derivative with its function.

    Weights, of each element of the result where nothing else is said:

        arithmetic, comparisons, conversions              1, fma 2
        functions: exp, sin, pow, erf                     16
        reductions, cumulative operations                 1 for each element of the operand
        products of matrices, convolutions                2 for each multiplication, with its addition
        gather, dynamic slices                            1
        scatter, dynamic updates                          1 for each element of the updates
        concatenate, pad                                  1 for each element of an operand
        sort                                              log2 n
        solves, factorisations                            n for each element of an n by n operand
        broadcasts, transposes, reshapes, slices          0: they are read in place

    Loops count every iteration, or one where the trip count is unknown. Branches count as the most expensive.
    """
    return program_cost(program).weight


def work_of(program: Program) -> int:
    """Return the work of a call, `ENDLESS` where it is more than `HEARD`, or has a loop of unknown length."""
    if any(equation.primitive.lower == _WHILE for equation in equations(program)):
        return ENDLESS
    return least_work(program)


def least_work(program: Program) -> int:
    """Return the work of a call whose loops of unknown length iterate once, `ENDLESS` where it is more than `HEARD`."""
    work = 0
    for equation in program.equations:
        work += equation_cost(equation).work
        if work > HEARD:
            return ENDLESS
    return work


def equation_cost(equation: Equation) -> Cost:
    """Return the cost of one equation by its schedule, nested programs included."""
    nested = [program_cost(program) for _, program in equation.nested()]
    cost = dispatch.ALL.of(equation).cost(equation, nested)
    if isinstance(equation.primitive.lower, Structured):
        return cost
    read = sum(bytes_of(a.type) for a in equation.inputs if isinstance(a, Var))
    return replace(cost, bytes_read=read, bytes_written=sum(bytes_of(v.type) for v in equation.outputs))


def bytes_of(type: Type) -> int:
    """Return the memory of a value, 0 for stacks of unknown length."""
    if isinstance(type, StackType):
        return 0
    storage = storage_type(type)
    return size(storage) * storage.dtype.itemsize
