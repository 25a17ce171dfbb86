"""The long hunt: random programs by the thousand, a ledger of those that ran, and the log that is kept of them.

    python -m tests.laws.hunt run LEDGER SECONDS [FIRST]
    python -m tests.laws.hunt log LEDGER...

The first goes on where the ledger ends, values and derivatives in turn, from seed FIRST where there is none yet, and
tries again what failed. A failure is made small, and a test, by `tests.laws.shrinking`. The second prints the log.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import head, revision
from tests.laws.agreement import check_derivatives, check_values
from tests.laws.programs import draw_program
from tracer.primitives.catalogue import CATALOGUE

KINDS = ("values", "derivatives")
WHAT = {
    "values": "every equation against the reference; the whole by interpreted loops and by LLVM, bit by bit",
    "derivatives": "forward and reverse mode against finite differences; of every fourth the gradient by LLVM, too",
}
FIRST, BLOCK = 1_000_000, 20  # the first seed; how many programs make an entry of the ledger
LONGEST = 300  # seconds, for one program


@dataclass
class Entry:
    """Programs whose seeds follow each other. again: the one had failed before."""

    kind: str
    first: int
    count: int
    revision: str
    seconds: float = 0.0
    equations: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    drawn: dict[str, int] = field(default_factory=dict)
    compared: float = 0.0
    again: bool = False


class TooSlowError(Exception):
    """One program took longer than any should."""


def length_of(seed: int) -> int:
    """5 to 40, shorter ones more often."""
    return 5 + min(seed % 36, seed // 36 % 36)


def try_seed(kind: str, seed: int, entry: Entry, drawn: Counter[str]) -> None:
    """One program, what it did written to the entry."""
    smooth = kind == "derivatives"
    try:
        with at_most(LONGEST):
            program = draw_program(seed, length_of(seed), smooth=smooth, counted=drawn)
            entry.equations += len(program.program.equations)
            if smooth:
                entry.compared += check_derivatives(*program, seed)
            else:
                check_values(*program, seed)
    except Exception as error:  # whatever is wrong with a program, the hunt goes on
        entry.failed[str(seed)] = f"{type(error).__name__}: {str(error)[:400]}"


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises TooSlowError within, once so many seconds have gone by."""

    def late(*_: Any) -> None:
        raise TooSlowError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_block(kind: str, seeds: list[int], *, again: bool = False) -> Entry:
    """An entry for seeds that follow each other, or for one that is tried again."""
    entry, drawn, began = Entry(kind, seeds[0], len(seeds), revision(), again=again), Counter[str](), time.monotonic()
    for seed in seeds:
        try_seed(kind, seed, entry, drawn)
    entry.seconds, entry.drawn = round(time.monotonic() - began, 1), dict(drawn)
    return entry


def entries(path: Path) -> list[Entry]:
    """What a ledger holds."""
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def failures(found: list[Entry], kind: str) -> dict[int, str]:
    """The seeds that failed when last they were tried, with the errors."""
    failed: dict[int, str] = {}
    for entry in found:
        if entry.kind != kind:
            continue
        if entry.again and str(entry.first) not in entry.failed:
            failed.pop(entry.first, None)
        failed |= {int(seed): error for seed, error in entry.failed.items()}
    return failed


def run(ledger: str, seconds: str, first: str = str(FIRST)) -> None:
    """Try programs until the time is up; an entry of the ledger is written as soon as its programs have run."""
    path, end = Path(ledger), time.monotonic() + float(seconds)
    found = entries(path)

    def write(entry: Entry) -> None:
        found.append(entry)
        with path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")
        shown = "".join(f"\n  seed {seed}, {length_of(int(seed))} equations: {e}" for seed, e in entry.failed.items())
        print(f"{entry.kind} {entry.first} {entry.count} {entry.seconds} s{shown}", flush=True)

    for kind in KINDS:
        for seed in failures(found, kind):
            write(run_block(kind, [seed], again=True))
    while time.monotonic() < end:
        for kind in KINDS:
            start = max((e.first + e.count for e in found if e.kind == kind and not e.again), default=int(first))
            write(run_block(kind, list(range(start, start + BLOCK))))


def log(*ledgers: str) -> None:
    """When and where, what ran, what failed, and how often each primitive was drawn."""
    found = [entry for path in ledgers for entry in entries(Path(path))]
    print(head())
    for kind in KINDS:
        failed = {seed for path in ledgers for seed in failures(entries(Path(path)), kind)}
        print("\n" + "\n".join(summary([e for e in found if e.kind == kind and not e.again], failed)))
    print(f"\n{'drawn, in programs and nested ones':<36}" + "".join(f"{kind:>14}" for kind in KINDS))
    drawn = {kind: Counter[str]() for kind in KINDS}
    for entry in found:
        if not entry.again:
            drawn[entry.kind].update(entry.drawn)
    for primitive in CATALOGUE:
        counts = [drawn[kind][primitive.name] or "-" for kind in KINDS]
        print(f"{primitive.name:<36}" + "".join(f"{count:>14}" for count in counts))


def summary(found: Sequence[Entry], failed: Collection[int]) -> Iterator[str]:
    """Lines on the programs of one kind. failed: the seeds that still do."""
    kind, count = found[0].kind, sum(e.count for e in found)
    once = {int(seed): error for e in found for seed, error in e.failed.items()}
    lengths = [length_of(seed) for e in found for seed in range(e.first, e.first + e.count)]
    commits = Counter[str]()
    for entry in found:
        commits[entry.revision] += entry.count
    yield f"{kind}: {WHAT[kind]}"
    yield f"  programs   {count}, {count - len(failed)} of them clean now, {count - len(once)} at the first try"
    yield f"  equations  {min(lengths)} to {max(lengths)} in a program, {sum(lengths) / count:.1f} on average, and"
    yield f"             {sum(e.equations for e in found) - sum(lengths)} more that bring operands to their types"
    yield from (f"  seeds      {first} to {last}" for first, last in seed_ranges(found))
    yield f"  time       {sum(e.seconds for e in found):.0f} s"
    yield "  commits    " + ", ".join(f"{commit} ({n})" for commit, n in commits.most_common())
    if kind == "derivatives":
        yield f"  compared   {sum(e.compared for e in found) / count:.3f} of the derivatives: where programs are smooth"
    for seed, error in once.items():
        state = "fails" if seed in failed else "failed once"
        yield f"  {state}: seed {seed}, {length_of(seed)} equations: {error.splitlines()[0][:160]}"


def seed_ranges(found: Sequence[Entry]) -> list[tuple[int, int]]:
    """The seeds of entries, those that follow each other as one."""
    ranges: list[tuple[int, int]] = []
    for entry in sorted(found, key=lambda e: e.first):
        if ranges and ranges[-1][1] + 1 == entry.first:
            ranges[-1] = (ranges[-1][0], entry.first + entry.count - 1)
        else:
            ranges.append((entry.first, entry.first + entry.count - 1))
    return ranges


if __name__ == "__main__":
    {"run": run, "log": log}[sys.argv[1]](*sys.argv[2:])
