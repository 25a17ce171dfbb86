"""Write the blocks of docs/design/walkthrough.md: one program at every stage from Python to assembly.

The page's first block is the Python that is run. Every later block stands between `<!-- block NAME -->` and
`<!-- end -->`, and this tool writes it. `llvm` and `asm` depend on the machine, so they are written with `--machine`
alone and `--check` ignores them.

    python -m tools.walkthrough [--machine | --check]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import tracer
from benchmarks.machine import cpu_name

TARGET = Path(__file__).parent.parent / "docs" / "design" / "walkthrough.md"
MACHINE = ("llvm", "asm")
WIDTH = 116

BLOCK = re.compile(r"<!-- block (\w+) -->\n.*?<!-- end -->", re.DOTALL)
_SOURCE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(source: str, *, machine: bool = False) -> dict[str, str]:
    """Return the text of every block, by name, for the page's Python `source`.

    machine: whether to include the blocks that depend on the processor.
    """
    with tracer.config.using(vector_bits=256):
        names: dict[str, Any] = {}
        exec(compile(source, "loss.py", "exec"), names)  # printed programs name this file
        lowered = names["gradient"]
        forward = str(names["forward"].program()).splitlines()
        stages = [(stage.name, stage.text.splitlines()) for stage in lowered.stages()]
        first = [name for name, _ in stages].index("loops")
        programs, nests = stages[:first], [stages[first]]
        nests += [stage for before, stage in pairwise(stages[first:]) if stage[1] != before[1]]
        mapped = stages[-1][1]
        found = {
            "traced": _fence(forward),
            "transformed": _fence(_folded(_added(programs[0][1], forward))),
            "passes": _fence(f"{name:<16}{len(text) - 3:>4} equations" for name, text in programs),
            "optimized": _fence(_added(programs[-1][1], forward)),
            "loops": _fence([*_paragraph(nests[0][1], "nest1("), "", *_paragraph(nests[0][1], "main(")]),
            "loop_passes": _fence(f"{name:<16}{len(text):>4} lines" for name, text in nests),
            "mapped": _fence(
                [*_from(mapped, "%total1: f32, %total2", 1), "  ...", *_between(mapped, r"= fma ", r"= scale")[:-1]]
            ),
        }
        if machine:
            llvm = _between(
                str(lowered.llvm()).splitlines(), r"fcmp olt <16 x float>", r"fmul <16 x float> %v\d+, splat"
            )
            head = f"{date.today().isoformat()}, {cpu_name()}, vector_bits=256"
            found["llvm"] = _fence([f"; {head}", *_from(llvm, "llvm.fma", 3)], "llvm")
            assembly = _from(str(lowered.asm()).splitlines(), "vfmadd|fmla", 5)
            found["asm"] = _fence([f"# {head}", *(line.expandtabs(8) for line in assembly)])
    return found


def _added(lines: Sequence[str], before: Sequence[str]) -> list[str]:
    """Return the lines whose code is not in `before`, with a mark in place of the first run of repeated lines."""
    old = {line.partition("#")[0].strip() for line in before}
    new = [line for line in lines[1:-1] if line.partition("#")[0].strip() not in old]
    return [lines[0], f"  ... {len(lines) - 2 - len(new)} equations of the forward program", *new, lines[-1]]


def _folded(lines: Sequence[str]) -> list[str]:
    """Return the lines with the derivative of `max` folded into one, from its comparison to its selection."""
    begin = next(n for n, line in enumerate(lines) if "= lt(" in line)
    end = next(n for n, line in enumerate(lines) if "= select(" in line)
    return [*lines[: begin + 1], f"  ... {end - begin - 1} equations", *lines[end:]]


def _paragraph(lines: Sequence[str], start: str) -> list[str]:
    """Return the lines from the one that starts with `start` to the next empty line."""
    begin = next(n for n, line in enumerate(lines) if line.startswith(start))
    return list(takewhile(bool, lines[begin:]))


def _between(lines: Sequence[str], first: str, last: str) -> list[str]:
    """Return the lines from the first match of `first` to the next match of `last` and the line after it."""
    begin = next(n for n, line in enumerate(lines) if re.search(first, line))
    end = next(n for n, line in enumerate(lines) if n > begin and re.search(last, line))
    return list(lines[begin : end + 2])


def _from(lines: Sequence[str], pattern: str, count: int) -> list[str]:
    """Return `count` lines from the first that matches the pattern."""
    begin = next(n for n, line in enumerate(lines) if re.search(pattern, line))
    return list(lines[begin : begin + count])


def _fence(text: Iterable[str], language: str = "text") -> str:
    """Return the lines as a fenced block, without common indentation, long lines broken after commas."""
    lines = list(text)
    margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    return "\n".join([f"```{language}", *(part for line in lines for part in _broken(line[margin:])), "```"])


def _broken(line: str) -> Iterator[str]:
    """Yield the line in parts of at most `WIDTH` characters, each broken after a comma."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > WIDTH:
        cut = line.rindex(", ", 0, WIDTH) + 1
        yield line[:cut]
        line = indent + line[cut:].lstrip()
    yield line


def written(page: str, *, machine: bool = False) -> str:
    """Return the page with its blocks written anew, those of `MACHINE` only if `machine`."""
    source = _SOURCE.search(page)
    if source is None:
        raise ValueError(f"{TARGET} has no Python block")
    found = blocks(source[1], machine=machine)

    def block(match: re.Match[str]) -> str:
        if match[1] in MACHINE and not machine:
            return match[0]
        return f"<!-- block {match[1]} -->\n{found[match[1]]}\n<!-- end -->"

    return BLOCK.sub(block, page)


def main(arguments: Sequence[str]) -> int:
    """Write the page; with `--check` only compare, and return 1 if it is not current."""
    page = TARGET.read_text(encoding="utf-8")
    new = written(page, machine="--machine" in arguments)
    if "--check" in arguments:
        return int(page != new)
    TARGET.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
