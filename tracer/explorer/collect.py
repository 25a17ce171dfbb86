"""Collects the stages of a lowered function: source, programs, loop nests, LLVM, assembly, and CUDA where asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracer.explorer.programs import line_figures, program_stage
from tracer.explorer.records import Function, Key, Kind, Line, Stage, keys_of
from tracer.explorer.sources import source_stage
from tracer.ir.program import Program
from tracer.ir.text import name_text
from tracer.runtime.compile.located import Located, Nests
from tracer.runtime.jit.lowered import Lowered

MAX_LINES = 30_000
"""Lines of all intermediate stages together, above which these are left out."""


def collected(lowered: Lowered, *, cuda: str | None = None, most: int = MAX_LINES) -> Function:
    """Return the stages of a lowered function.

    cuda: an architecture such as "sm_90", whose kernels are one more stage. most: lines of the stages between the main
    ones, which are left out where they have more.
    """
    program, optimized, native = lowered.program(), lowered.optimized(), lowered.located()
    first = program_stage("program", program, note="as traced", main=True)
    last = program_stage("optimized", optimized, note="after the program passes", main=True)
    stages = [first, *_passes(lowered, most), last, *_nests(native), _llvm(native), _assembly(native)]
    if cuda is not None:
        stages.append(_cuda(lowered, cuda))
    stages = _within(stages, most)
    figures = line_figures(optimized)
    keys = dict.fromkeys(key for stage in stages for line in stage.lines for key in line.keys)
    name = name_text(program.name)
    types = ", ".join(map(str, program.input_types))
    results = ", ".join(map(str, program.output_types))
    totals = tuple((name[:-1] if value == "1" else name, value) for name, value in _totals(lowered, optimized, stages))
    return Function(name, f"({types}) → {results}", (source_stage(keys, figures), *stages), totals)


def _within(stages: list[Stage], most: int) -> list[Stage]:
    """Return the stages, only the main ones where all together are too long."""
    between = sum(len(stage.lines) for stage in stages if not stage.main)
    return stages if between <= most else [stage for stage in stages if stage.main]


def _passes(lowered: Lowered, most: int) -> Iterator[Stage]:
    """Yield the program after each pass that changed it but the last, whose result is the optimised program."""
    if len(lowered.program().equations) > most // 4:
        return
    for number, (name, after) in enumerate(lowered.programs()[:-1], 1):
        yield program_stage(f"{number} {name}", after, note="after this pass")


def _nests(native: Located) -> Iterator[Stage]:
    *between, last = native.nests
    for number, nests in enumerate(between):
        note = "before the loop passes" if number == 0 else "after this loop pass"
        yield _nest_stage("loops as written" if number == 0 else f"loops {nests.name}", nests, note)
    yield _nest_stage("loops", last, "loop IR after the loop passes", main=True)


def _nest_stage(name: str, nests: Nests, note: str, *, main: bool = False) -> Stage:
    texts = nests.text.splitlines()
    lines = tuple(Line(text, keys=keys_of(own)) for text, own in zip(texts, nests.lines, strict=True))
    return Stage(name, Kind.LOOPS, lines, note, main=main)


def _llvm(native: Located) -> Stage:
    pairs = zip(native.llvm.splitlines(), native.llvm_lines, strict=True)
    lines = tuple(Line(text, above=place) for text, place in pairs)
    return Stage("LLVM", Kind.LLVM, lines, "compiled as it stands", above="loops", main=True)


def _assembly(native: Located) -> Stage:
    pairs = zip(native.asm.splitlines(), native.asm_lines, strict=True)
    lines = tuple(Line(text.expandtabs(8), above=place) for text, place in pairs)
    return Stage("assembly", Kind.ASSEMBLY, lines, "of this machine", above="LLVM", main=True)


_KERNEL = re.compile(r"__global__ .*\) (\w+)\(")


def _cuda(lowered: Lowered, arch: str) -> Stage:
    """Return the CUDA C++ of a function, each kernel with the user's lines of the nest that it is."""
    lines_of = lowered.cuda_lines(arch)
    keys: tuple[Key, ...] = ()
    lines = []
    for text in lowered.cuda(arch).splitlines():
        kernel = _KERNEL.search(text)
        if kernel is not None:
            keys = keys_of(lines_of.get(kernel[1], ()))
        lines.append(Line(text, keys=keys))
        keys = () if text.startswith("}") else keys
    return Stage("CUDA", Kind.CUDA, tuple(lines), f"for {arch}, by kernel", main=True)


def _totals(lowered: Lowered, optimized: Program, stages: list[Stage]) -> Iterator[tuple[str, str]]:
    cost, memory = lowered.cost(), lowered.memory()
    yield "equations", f"{len(optimized.equations):,}"
    yield "flops", f"{cost.flops:,}"
    yield "functions", f"{cost.total.functions:,}"
    yield "read", size_text(cost.bytes_read)
    yield "written", size_text(cost.bytes_written)
    yield "peak memory", size_text(memory.peak)
    yield "arena", size_text(memory.arena)
    code = next(stage for stage in stages if stage.kind is Kind.ASSEMBLY)
    yield "instructions", f"{sum(line.above is not None for line in code.lines):,}"


def size_text(size: int) -> str:
    """Return bytes in a unit that suits them.

    >>> size_text(512), size_text(2_400_000)
    ('512 B', '2.4 MB')
    """
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{size} B" if units[0] == "B" else f"{value:.3g} {units[0]}"
