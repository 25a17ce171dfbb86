"""Lines of LLVM text that machine code comes from: debug locations in the text, read back from the assembly.

A location names a line of the text itself. LLVM carries it through code generation. It prints `.loc` before the
instructions that come from another line than the instructions before. Only readers of assembly pay for it. Locations in
all text would change the name of every object in the caches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tracer.codegen.llvm.toolchain.object_code import assembly
from tracer.errors import InternalError

_FIRST: Final = 100_000
"""First number of our metadata, beyond those in use."""
_UNIT, _FLAGS, _FILE, _TYPE = range(_FIRST, _FIRST + 4)
_LOCATION: Final = re.compile(r"\s*\.loc\s+\d+ (\d+) ")
_FUNCTION: Final = re.compile(r"\s*\.type\s")
_INSTRUCTION: Final = re.compile(r"\t[a-z][\w.]*(?:\s|$)")
_COMMENT: Final = re.compile(r"\s*;[^\"]*$")


def assembly_lines(text: str, *, opt: int) -> tuple[str, list[int | None]]:
    """Return the assembly of LLVM text, and for each of its lines the text's line, counted from 0, or None.

    opt: LLVM's code generation level. All lines are None where locations change the code, which is not known to occur.
    """
    plain = assembly(text, opt=opt)
    try:
        located = list(_located(assembly(located_text(text), opt=opt)))
    except InternalError:  # an instruction in a form that `located_text` does not know
        located = []
    lines = plain.splitlines()
    found: list[int | None] = [None] * len(lines)
    instructions = [number for number, line in enumerate(lines) if _INSTRUCTION.match(line)]
    if [lines[number] for number in instructions] == [line for line, _ in located]:
        for number, (_, place) in zip(instructions, located, strict=True):
            found[number] = place
    return plain, found


def _located(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield the instructions of assembly with locations, each with its line, counted from 0."""
    place: int | None = None
    for line in text.splitlines():
        found = _LOCATION.match(line)
        if found is not None:
            place = int(found[1]) - 1 if int(found[1]) else None
        elif _FUNCTION.match(line):
            place = None
        elif _INSTRUCTION.match(line):
            yield line, place


def located_text(text: str) -> str:
    """Return LLVM text with a debug location on each instruction: its own line, counted from 1."""
    lines: list[str] = []
    metadata: list[str] = []
    function, is_open = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("define ") and line.endswith("{"):
            function = _FIRST + 4 + len(metadata)
            metadata.append(
                f'distinct !DISubprogram(name: "f{function}", file: !{_FILE}, line: {number}, type: !{_TYPE}, '
                f"scopeLine: {number}, spFlags: DISPFlagDefinition, unit: !{_UNIT})"
            )
            line = f"{line[:-1]}!dbg !{function} {{"
        elif line.startswith("}"):
            function = 0
        elif function and line.startswith(" ") and line.strip() and not line.lstrip().startswith(";"):
            bare = _COMMENT.sub("", line)
            is_open = (is_open or bare.endswith("[")) and not bare.endswith("]")
            if not is_open and not bare.endswith(":"):
                line = f"{bare}, !dbg !{_FIRST + 4 + len(metadata)}"
                metadata.append(f"!DILocation(line: {number}, column: 1, scope: !{function})")
        lines.append(line)
    numbered = [f"!{_FIRST + 4 + n} = {each}" for n, each in enumerate(metadata)]
    return "\n".join([*lines, *_HEAD, *numbered, ""])


_HEAD: Final = (
    f"!llvm.dbg.cu = !{{!{_UNIT}}}",
    f"!llvm.module.flags = !{{!{_FLAGS}}}",
    f"!{_UNIT} = distinct !DICompileUnit(language: DW_LANG_C, file: !{_FILE}, emissionKind: DebugDirectivesOnly)",
    f'!{_FLAGS} = !{{i32 2, !"Debug Info Version", i32 3}}',
    f'!{_FILE} = !DIFile(filename: "program.ll", directory: "")',
    f"!{_TYPE} = !DISubroutineType(types: !{{}})",
)
