"""Programs with clocks around their loop nests, compiled beside the ones that calls run otherwise."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.codegen.llvm.toolchain.native_text import routines
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
from tracer.ir.loop import Copy, Invoke, Library, Statement, Transpose
from tracer.ir.program import Program, Source
from tracer.once import once
from tracer.passes.pipeline import optimize
from tracer.primitives.control.shared_words import Word
from tracer.runtime.compile.compile import Compiled, compile_scheduled, in_force
from tracer.runtime.compile.this_machine import contracts, this_cpu
from tracer.runtime.system.gc_pause import collector_paused
from tracer.runtime.system.spans import working
from tracer.schedule.cpu.clocks import with_clocks
from tracer.schedule.pipeline import LOOP_PIPELINE, schedule
from tracer.schedule.terms.origins import Lines, Origins, lines_of_module
from tracer.trace.array import Array
from tracer.trace.source import user_source


@dataclass(slots=True)
class Nest:
    """Loop nest or library call of a program.

    seconds, runs: of the call. threads: the mean number at work; of library calls, by the process's processor time.
    """

    name: str
    sources: tuple[Source, ...]
    seconds: float = 0.0
    runs: int = 0
    threads: float = 1.0


class Clocked:
    """Program compiled with a clock around each nest and library call."""

    def __init__(self, program: Program) -> None:
        self._words: dict[int, Word] = {}  # by number
        origins, target = Origins(), this_cpu()
        with collector_paused(), working("compile", f"{program.name} with clocks", user_source()) as work:
            work.at("program passes")
            optimized = optimize(program, target, contracts=contracts())
            work.at("loops")
            scheduled = schedule(optimized, target, passes=in_force(LOOP_PIPELINE), origins=origins)
            lines = lines_of_module(scheduled.module, origins)
            module, found = with_clocks(scheduled.module, self._word)
            self._compiled: Compiled = compile_scheduled(program, replace(scheduled, module=module), work)
        self._found = [
            (_name(c.statement), _lines(c.statement, lines, origins), c.word, c.parts, isinstance(c.statement, Library))
            for c in found
        ]

    def _word(self) -> int:
        word = Word()
        self._words[word.number] = word
        return word.number

    def call(self, operands: Sequence[Array]) -> tuple[list[Array], list[Nest]]:
        """Return the outputs, and the time of each nest that ran. One thread may call at a time."""
        for word in self._words.values():
            word.clear()
        outputs = self._compiled.call(operands)
        cycle = seconds_of_cycle()
        waited: dict[int | None, int] = {}  # cycles of the callers of a function that threads share
        for _, _, number, parts, _ in self._found:
            waited[parts] = waited.get(parts, 0) + self._words[number].value
        nests = []
        for name, sources, number, parts, is_library in self._found:
            word = self._words[number]
            busy = waited[None] if parts is None else self._words[parts].value
            unit = 1e-9 / cycle if is_library and cycle else 1.0  # cycles
            nests.append(Nest(name, sources, word.value * cycle, word.runs, busy * unit / max(waited[parts], 1)))
        return outputs, [nest for nest in nests if nest.runs]


def _lines(statement: Statement, lines: Mapping[int, Lines], origins: Origins) -> Lines:
    """Return the user's lines of a statement; of the nest that it was written as, where loop passes left none."""
    found = lines.get(id(statement), ())
    if not found and isinstance(statement, Invoke):
        found = tuple(origins.functions.get(statement.function.partition("_")[0], ()))
    return found


def _name(statement: Statement) -> str:
    match statement:
        case Invoke(function):
            return function
        case Library(name):
            return name
        case Copy() | Transpose():
            return type(statement).__name__.lower()
        case _:
            return "nest"


@once
def seconds_of_cycle() -> float:
    """Return the period of the counter that clocks read, measured over 20 ms; 0 on processors that hide it."""
    text = routines(Path(__file__).with_name("ll"), ("cycles",))
    loaded = load_object(compile_object(text), {}, export="tracer_cycles")
    cycles: Any = ctypes.CFUNCTYPE(ctypes.c_int64)(loaded.address("tracer_cycles"))
    start, first = time.perf_counter(), cycles()
    while time.perf_counter() - start < 0.02:
        pass
    end, last = time.perf_counter(), cycles()
    return (end - start) / (last - first) if last > first else 0.0
