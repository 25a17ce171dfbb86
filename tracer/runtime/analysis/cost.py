"""What a program costs, counted rather than measured: arithmetic, and bytes that would move if nothing were fused.

Loops count every round; a `while_loop`, whose rounds nobody knows, counts one, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tracer.ir.primitive import (
    Alias,
    ArgReduce,
    Checked,
    Compare,
    Composite,
    Convert,
    Gather,
    Generate,
    IndexMap,
    Join,
    Library,
    NoRule,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
    Structured,
)  # fmt: skip
from tracer.ir.program import Atom, Equation, Program, Source, Var
from tracer.ir.scalar import MATH_FUNCTIONS
from tracer.ir.types import StackType, Type, size, storage_type

_MATH = frozenset(MATH_FUNCTIONS)
LONG: Final = 50_000
"""Of work, see `Cost.work`: some 5 µs of one core. What takes longer gives the GIL away."""
HEARD: Final = 2_000_000
"""The same, some 0.2 ms: what takes longer listens to Ctrl-C, for which it asks the system, which takes 1 µs."""
ENDLESS: Final = 2**62
"""The work of what nobody knows the end of."""
_MATH_WORK = 16  # a function of the math library takes the time of so many additions


@dataclass(frozen=True, slots=True)
class Cost:
    """flops: additions, multiplications, comparisons and so on. functions: exp, sin and the like, one each.

    bytes_read, bytes_written: of arrays, each operand and result once. unknown_trips: whether a while_loop was
    counted as one round.
    """

    flops: int = 0
    functions: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    unknown_trips: bool = False

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.functions + other.functions,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.unknown_trips or other.unknown_trips,
        )

    def times(self, count: int) -> Cost:
        """The cost of so many rounds."""
        return Cost(
            self.flops * count,
            self.functions * count,
            self.bytes_read * count,
            self.bytes_written * count,
            self.unknown_trips,
        )

    @property
    def work(self) -> int:
        """One number for deciding what is long: about a tenth of a nanosecond each."""
        return self.flops + _MATH_WORK * self.functions + (self.bytes_read + self.bytes_written) // 4


@dataclass(frozen=True, slots=True)
class Line:
    """One equation's cost."""

    equation: str
    source: Source | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class CostReport:
    """The cost of a program, by equation and in all; prints as a table."""

    lines: tuple[Line, ...]
    total: Cost

    @property
    def flops(self) -> int:
        """Of all equations."""
        return self.total.flops

    @property
    def bytes_read(self) -> int:
        """Of all equations."""
        return self.total.bytes_read

    @property
    def bytes_written(self) -> int:
        """Of all equations."""
        return self.total.bytes_written

    def __str__(self) -> str:
        head = f"{'equation':<24}{'flops':>14}{'functions':>14}{'read':>16}{'written':>16}  source"
        rows = [_row(line.equation, line.cost, str(line.source or "")) for line in self.lines]
        note = ["a while_loop is counted as one round"] if self.total.unknown_trips else []
        return "\n".join([head, *rows, _row("in all", self.total, ""), *note])

    __repr__ = __str__


def _row(name: str, cost: Cost, source: str) -> str:
    figures = f"{cost.flops:>14,}{cost.functions:>14,}{cost.bytes_read:>14,} B{cost.bytes_written:>14,} B"
    return f"{name:<24}{figures}  {source}".rstrip()


def report(program: Program) -> CostReport:
    """The program's cost, equation by equation."""
    lines = tuple(Line(e.primitive.name, e.source, equation_cost(e)) for e in program.equations)
    return CostReport(lines, _sum(line.cost for line in lines))


def program_cost(program: Program) -> Cost:
    """The sum over the equations."""
    return _sum(equation_cost(equation) for equation in program.equations)


def work_of(program: Program) -> int:
    """The work of a call, or any number above `HEARD` where it is more than that."""
    work = 0
    for equation in program.equations:
        cost = equation_cost(equation)
        work += cost.work
        if cost.unknown_trips or work > HEARD:
            return ENDLESS
    return work


def _sum(costs: Iterator[Cost]) -> Cost:
    total = Cost()
    for cost in costs:
        total += cost
    return total


def equation_cost(equation: Equation) -> Cost:
    """One equation, nested programs included."""
    lower = equation.primitive.lower
    if isinstance(lower, Structured):
        return _structured(lower.kind, equation)
    flops, functions = _arithmetic(lower, equation)
    read = sum(bytes_of(a.type) for a in equation.inputs if isinstance(a, Var))
    return Cost(flops, functions, read, sum(bytes_of(v.type) for v in equation.outputs))


def bytes_of(type: Type) -> int:
    """The memory of a value; 0 for stacks, whose length is not known."""
    if isinstance(type, StackType):
        return 0
    storage = storage_type(type)
    return size(storage) * storage.dtype.itemsize


def _arithmetic(lower: Any, equation: Equation) -> tuple[int, int]:
    """Operations, and calls of mathematical functions."""
    out = max((size(v.type) for v in equation.outputs), default=0)
    entering = _size(equation.inputs[0]) if equation.inputs else 0
    match lower:
        case Pointwise(op):
            return (0, out) if op in _MATH else (out, 0)
        case Composite() if equation.primitive.name == "top_k":
            return entering, 0
        case Composite(_, has_nest) if has_nest is not None:  # a convolution
            return 2 * out * prod(equation.inputs[1].type.shape[1:]), 0
        case Compare() | Checked() | Composite():
            return out, 0
        case Reduce() | ArgReduce() | Scan():
            return entering, 0
        case Scatter(op):
            return (_size(equation.inputs[-1]) if op is not None else 0), 0
        case Library("dot"):
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.inputs[0].type.shape
            depth = 1
            for axis in contracted:
                depth *= shape[axis]
            return 2 * out * depth, 0
        case Library("sort"):
            return out * max(out.bit_length(), 1), 0
        case Alias() | Convert() | Gather() | Generate() | IndexMap() | Join() | Library() | NoRule():
            return 0, 0
        case _:
            return out, 0


def _size(atom: Atom) -> int:
    return size(atom.type)


def _structured(kind: str, equation: Equation) -> Cost:
    """Loops by their rounds, branches by the dearest."""
    nested = [program_cost(program) for _, program in equation.nested()]
    match kind:
        case "cond":
            return max(nested, key=lambda cost: cost.work, default=Cost())
        case "scan":
            return _sum(iter(nested)).times(equation.params["length"])
        case "while":
            total = _sum(iter(nested))
            return Cost(total.flops, total.functions, total.bytes_read, total.bytes_written, True)
        case "custom_jvp" | "custom_vjp" | "call":
            return nested[0] if nested else Cost()
        case _:
            return _sum(iter(nested))
