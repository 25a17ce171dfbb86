"""Kernels with one fault each, made from the text of a right one, and what the simulator makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from tests.runtime.cuda.simulator.families import Run
from tracer.runtime.cuda.simulator.kernels import Kernels, Order, built
from tracer.runtime.cuda.simulator.memory import KernelError

_INTEGER: Final = re.compile(r"(?<![\w.])\d+(?![\w.])")
_CHANGES: Final = (
    (r"__syncthreads\(\);", ""),
    (r"__threadfence\(\);", ""),
    (r"tr_grid_barrier\(\w+\);", ""),
    (r"\bif \((.*?)\) (?=\w|\{)", r"if (true) "),
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" == ", " != "),
    (r" > ", " >= "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" % ", " / "),
    (r" / ", " * "),
    (r"\batomicAdd\(tr_at\((\w+), (.+?)\), (1u|\(u32\)[^)]*)\)", r"(\1[\2] = \1[\2] + \3, \1[\2] - \3)"),
    (r"tr_load_atomic\((\w+), ([^)]*)\)", r"\1[\2]"),
    (r"tr_store_atomic\((\w+), (\w+), (.*)\);", r"\1[\2] = \3;"),
    (r"(tr_load<\w+>\(\w+, i)", r"\1 + 1"),
    (r"_xor_sync", "_down_sync"),
    (r"_up_sync", "_down_sync"),
    (r"= order\[0\]", "= blockIdx.x"),
    (r"\bthreadIdx.x\b", "blockIdx.x"),
    (r"\brow\b(?! =)", "column"),
    (r"\bcolumn\b(?! =)", "row"),
    (r"__shared__ (\w+) (\w+)\[(\d+)\]", r"__shared__ \1 \2[(\3)/2]"),
)
_LIMIT: Final = 60_000  # accesses: some ten times what the kernels do


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel's text with one change. name: the kernel, its line, and the change."""

    name: str
    text: str


def mutants(text: str, kernel: str) -> Iterator[Mutant]:
    """Yield every mutant of a kernel, of functions that only it calls too."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "__global__" in line or "__nanosleep" in line:
            continue
        for changed, what in _changed(line):
            if not set(re.findall(r"row|column", changed)) <= set(re.findall(r"row|column", text)):
                continue
            mutated = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
            yield Mutant(f"{kernel}: {line.strip()} -> {what}", mutated)


def _changed(line: str) -> Iterator[tuple[str, str]]:
    seen = {line}
    for pattern, by in _CHANGES:
        for m in re.finditer(pattern, line):
            changed = line[: m.start()] + m.expand(by) + line[m.end() :]
            changed = re.sub(r"\[\((\d+)\)/2\]", lambda n: f"[{max(int(n[1]) // 2, 1)}]", changed)
            if changed not in seen:
                seen.add(changed)
                yield changed, changed.strip()
    for m in _INTEGER.finditer(line):
        divisor = line[: m.start()].rstrip().endswith(("/", "%", "/=", "*=", "+="))
        for by in (1, -1):
            value = int(m[0]) + by
            if value < 0 or (divisor and value < 1) or ("__shared__" in line and by > 0):
                continue
            changed = line[: m.start()] + str(value) + line[m.end() :]
            if changed not in seen:
                seen.add(changed)
                yield changed, changed.strip()


def pieces(text: str, kernel: str) -> tuple[str, str]:
    """Return what stands before the functions of a text, and the functions that a kernel needs, with the kernel."""
    head, *functions = re.split(r"^(?=extern \"C\" __global__|static __device__)", text, flags=re.MULTILINE)
    own = next(f for f in functions if "void __launch_bounds__" in f and f" {kernel}(" in f)
    called = [f for f in functions if (m := re.search(r"__forceinline__ \w+ (\w+)\(", f)) and f"{m[1]}(" in own]
    return head, "".join([*called, own])


def built_together(head: str, kernel: str, found: Sequence[Mutant]) -> Kernels:
    """Build mutants as one unit: each with a number behind its names."""
    texts = [head]
    for number, mutant in enumerate(found):
        names = [kernel, *re.findall(r"__forceinline__ \w+ (\w+)\(", mutant.text)]
        texts.append(re.sub(rf"\b({'|'.join(names)})\(", rf"\1_{number}(", mutant.text) + "\n")
    return built("".join(texts))


def what_shows(kernels: Kernels, name: str, runs: Sequence[Run]) -> str:
    """Return how a mutant shows itself: the simulator's report, wrong bits, or "" where it does not."""
    for run, order in product(runs, Order):
        arguments = run.arguments()
        try:
            kernels.launch(
                name, run.grid, run.block, arguments, order=order, seed=3, cooperative=run.cooperative, most=_LIMIT
            )
        except KernelError as error:
            return str(error)
        result = arguments[run.result]
        if not result.known.all():
            return "elements that nothing wrote"
        if result.values.tobytes() != run.wanted.tobytes():
            return "wrong bits"
    return ""
