"""Memory that a call needs, known before anything runs: for loops of unknown length, a formula in their trip counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracer.ir.primitive import Composite, Structured
from tracer.ir.program import Equation, Program
from tracer.ir.types import StackType
from tracer.ir.visit import equations
from tracer.lazy import LazyModule
from tracer.runtime.analysis.cost import bytes_of

if TYPE_CHECKING:
    from tracer import markup
else:
    markup = LazyModule("tracer.markup")


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes that a loop keeps for each iteration until its derivative has read them."""

    loop: str
    bytes: int

    def __str__(self) -> str:
        return f"and {self.bytes:,} B for each iteration of {self.loop}"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a call needs. `peak` is their sum, without any iteration of the loops in `growth`.

    arguments: the caller's arrays and arrays captured by the function. results: all but results in the memory of
    donated arguments. arena: temporaries, at their peak. constants: data of the program. limit: kept at most by loops
    with `memory=`. growth: loops of unknown length that keep values of every iteration. once: taken by LLVM to compile,
    and by SciPy's BLAS and LAPACK to load where the program calls them. copies: made in each call, of NumPy arrays that
    are not in C order.
    """

    arguments: int
    results: int
    arena: int
    constants: int
    limit: int = 0
    growth: tuple[Growth, ...] = ()
    once: int = 0
    copies: int = 0

    @property
    def peak(self) -> int:
        """Everything at once, in a process that has compiled the program."""
        return self.arguments + self.copies + self.results + self.arena + self.constants + self.limit

    @property
    def first(self) -> int:
        """Peak of the first call, which compiles and loads libraries."""
        return self.peak + self.once

    def after(self, rounds: int) -> int:
        """Return the peak where each loop in `growth` runs so many iterations. Inner loops start anew in each."""
        return self.peak + rounds * sum(growth.bytes for growth in self.growth)

    def __str__(self) -> str:
        at_times = [name for name in ("limit", "copies") if getattr(self, name)]
        names = ["arguments", "results", "arena", "constants", *at_times, "peak"]
        rows = [f"{name:<10}{getattr(self, name):>16,} B" for name in names]
        return "\n".join([*rows, *map(str, self.growth)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        at_times = [name for name in ("limit", "copies") if getattr(self, name)]
        names = ["arguments", "results", "arena", "constants", *at_times]
        sizes = [getattr(self, name) for name in names]
        rows = [(name, f"{size:,} B") for name, size in zip(names, sizes, strict=True)]
        bars = [(size / (self.peak or 1),) for size in sizes]
        shown = markup.table(("", "bytes"), rows, bars=bars, total=("peak", f"{self.peak:,} B"))
        return markup.view(
            "memory", shown, *(markup.paragraph(str(growth)) for growth in self.growth), note="of a call"
        )


_COMPILED: Final = 4 << 20  # of LLVM's library, touched for the first time, and its heap: 3.5 to 4.1 MB were measured
_LAPACK: Final = 6 << 20  # of SciPy's OpenBLAS and its wrappers: 5.4 to 6.5 MB, and as much on one thread as on two


def memory_of(
    traced: Program, optimized: Program, arena: int, constants: Sequence[Any], donors: Collection[int], *,
    copies: int, calls_scipy: bool = False,
) -> Memory:  # fmt: skip
    """Return the memory of a program.

    arena: bytes of its buffers. constants: the arrays in its module. donors: the results that have the memory of
    arguments. copies: bytes of arguments that are copied. calls_scipy: whether it binds BLAS or LAPACK.
    """
    limits = [limit for e in equations(traced) if (limit := _kept_by(e)) is not None]
    growth = () if limits else tuple(_growth(optimized))
    return Memory(
        sum(bytes_of(type) for type in traced.input_types),
        sum(bytes_of(type) for n, type in enumerate(traced.output_types) if n not in donors),
        arena,
        sum(constant.nbytes for constant in constants),
        max(limits, default=0),
        growth,
        _COMPILED + _LAPACK * calls_scipy,
        copies,
    )


def _kept_by(equation: Equation) -> int | None:
    """Return the limit of bytes that an equation keeps to pull back through a loop, None for other equations."""
    match equation.primitive.lower:
        case Composite(keeps=keeps) if keeps is not None:
            return int(keeps(**equation.params))
    return None


def _growth(program: Program) -> Iterator[Growth]:
    """Yield the loops that push to stacks, nested ones after their parents."""
    for equation in program.equations:
        for _, nested in equation.nested():
            pushed = [e.inputs[1].type for e in nested.equations if e.primitive.lower == Structured("stack_push")]
            if pushed:
                assert not any(isinstance(type, StackType) for type in pushed)
                where = f" at {equation.source}" if equation.source is not None else ""
                yield Growth(equation.primitive.name + where, sum(map(bytes_of, pushed)))
            yield from _growth(nested)
