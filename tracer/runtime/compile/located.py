"""Loops, LLVM and assembly of a program, each line with the line that it comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.emit.opt_level import level
from tracer.codegen.llvm.toolchain import line_table
from tracer.codegen.llvm.toolchain.object_code import assembly
from tracer.codegen.llvm.toolchain.outlined_functions import apart
from tracer.ir.loop import Module
from tracer.ir.loop.text import loop_text, statements_by_line
from tracer.ir.program import Program, Source
from tracer.ir.target import Target
from tracer.runtime.compile.compile import in_force
from tracer.runtime.compile.this_machine import this_cpu
from tracer.schedule.pipeline import LOOP_PIPELINE, loop_stages, loops
from tracer.schedule.terms.origins import Origins, lines_of_module

Places = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Nests:
    """Loop nests after the pass `name`. lines: for each line of the text, the user's lines that it computes."""

    name: str
    text: str
    lines: tuple[tuple[Source, ...], ...]


@dataclass(frozen=True, slots=True)
class Located:
    """Text of a program's native stages.

    nests: before and after each loop pass. llvm, asm: the text that `f.lower(x)` gives. llvm_lines: for each line of
    LLVM, the line of the last nests, counted from 0, or None. asm_lines: for each line of assembly, the line of LLVM.
    """

    nests: tuple[Nests, ...]
    llvm: str
    llvm_lines: Places
    asm: str
    asm_lines: Places


def located(optimized: Program, donated: Collection[int] = ()) -> Located:
    """Return the native stages of an optimised program. donated: inputs whose memory results may take over."""
    origins, target = Origins(), this_cpu()
    module = loops(optimized, target, donated=donated, origins=origins).module
    nests = [_nests("loops", module, origins)]
    for step, after in loop_stages(module, target, in_force(LOOP_PIPELINE)):
        if after is not module:
            nests.append(_nests(step.name, after, origins))
        module = after
    marked = emit_module(module, marks=_marks(module))
    llvm, places = _unmarked(marked)
    asm, asm_places = _assembly(llvm, level(module))
    return Located(tuple(nests), llvm, places, asm, asm_places)


def nest_lines(optimized: Program, target: Target) -> dict[str, tuple[Source, ...]]:
    """Return the user's lines of each function of a program's loops on a target, by its name."""
    origins = Origins()
    module = loops(optimized, target, origins=origins).module
    lines = lines_of_module(module, origins)
    return {function.name: lines[id(function)] for function in module.functions}


def _nests(name: str, module: Module, origins: Origins) -> Nests:
    lines = lines_of_module(module, origins)
    return Nests(name, loop_text(module), tuple(lines.get(id(s), ()) for s in statements_by_line(module)))


def _marks(module: Module) -> Mapping[int, int]:
    """Return the first line of each statement in the printed module, by its `id`."""
    found: dict[int, int] = {}
    for number, s in enumerate(statements_by_line(module)):
        if s is not None:
            found.setdefault(id(s), number)
    return found


def _unmarked(marked: str) -> tuple[str, Places]:
    """Return LLVM text without its marks, and the innermost mark around each line."""
    lines: list[str] = []
    places: list[int | None] = []
    around: list[int] = []
    for line in marked.splitlines():
        if line.startswith(";< "):
            around.append(int(line[3:]))
        elif line == ";>":
            around.pop()
        else:
            lines.append(line)
            places.append(around[-1] if around else None)
    return "\n".join([*lines, ""]), tuple(places)


def _assembly(llvm: str, opt: int) -> tuple[str, Places]:
    """Return the assembly of a program, and of functions shared with other programs, which have no lines."""
    program, shared = apart(llvm)
    text, found = line_table.assembly_lines(program, opt=opt)
    moved = _moved(llvm, program)
    places = [None if place is None else moved[place] for place in found]
    texts = [text, *map(assembly, shared.values())]
    rest = "\n".join(texts).splitlines()[len(places) :]
    return "\n".join(texts), (*places, *[None] * len(rest))


def _moved(llvm: str, program: str) -> list[int | None]:
    """Return for each line of a program the line of the whole text, from which functions were taken out."""
    whole, found, at = llvm.splitlines(), list[int | None](), 0
    for line in program.splitlines():
        place = next((n for n in range(at, len(whole)) if whole[n] == line), None)
        found.append(place)
        at = at if place is None else place + 1
    return found
