"""Records of the explorer: the stages of a function as lines, each with the user's lines that it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from tracer.ir.program import Source

Key = tuple[str, int]
"""A line of the user's: its file and number."""


class Kind(Enum):
    """Language of a stage; the page colours by it."""

    SOURCE = "source"
    PROGRAM = "program"
    LOOPS = "loops"
    LLVM = "llvm"
    ASSEMBLY = "asm"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class Figures:
    """Cost of one equation, or of the equations of one line.

    share: of the arithmetic of the program around it, 0 to 1. traffic: of the program's bytes. bytes: of its results.
    """

    flops: int
    functions: int
    read: int
    written: int
    bytes: int
    share: float
    traffic: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a stage.

    full: the text with every parameter, where that is longer. place: shown beside it, such as `demo.py:3`. above: the
    line of the stage above that it comes from, counted from 0.
    """

    text: str
    full: str = ""
    keys: tuple[Key, ...] = ()
    place: str = ""
    above: int | None = None
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Text of one stage. above: the name of the stage that `Line.above` counts in."""

    name: str
    kind: Kind
    lines: tuple[Line, ...]
    note: str = ""
    above: str = ""
    main: bool = False

    def text(self) -> str:
        """Return the lines as text, every parameter included."""
        return "\n".join(line.full or line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Function:
    """Stages of one function for one signature, and its totals by name."""

    name: str
    signature: str
    stages: tuple[Stage, ...]
    totals: tuple[tuple[str, str], ...] = field(default=())

    def stage(self, name: str) -> Stage | None:
        """Return the stage of that name, if there is one."""
        return next((stage for stage in self.stages if stage.name == name), None)


def key_of(source: Source | None) -> tuple[Key, ...]:
    """Return the key of an equation's line, in a tuple, or an empty one."""
    return () if source is None else ((source.file, source.line),)


def keys_of(sources: Iterable[Source]) -> tuple[Key, ...]:
    """Return the keys of lines, each once, in order."""
    return tuple(dict.fromkeys((source.file, source.line) for source in sources))
