"""The hunt for every kind of fault in turn, each for some seconds in a process of its own.

    python -m tests.hunt MINUTES [SEED] [LEDGER]
    python -m tests.hunt child KIND FIRST SECONDS
    python -m tests.hunt again KIND SEED

A process that dies, or takes more than `LONGEST` for one seed, is itself a finding, and the hunt goes on behind it.
Each kind of finding is printed once, with the command that shows it again, and added to the ledger, a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import revision
from tests.hunt import calls, drawing, mistakes, nests
from tests.laws import hunt as laws
from tests.numpy import hunt as numpy_calls
from tests.transforms import hunt as compositions
from tests.transforms.combining import check
from tests.transforms.examples import EXAMPLES

LONGEST = 300  # seconds, for one seed
MEMORY = 2**34  # bytes of addresses of a process: what is asked for beyond is an error, and not the machine's end
SLICE = 30  # seconds of one kind, before the next one's turn
LONGER = {"calls": 5, "mistakes": 2}  # kinds of many functions, and how many slices they have

Findings = Iterator[tuple[str, str]]


def _calls(seed: int) -> Findings:
    every = drawing.names()
    yield from calls.findings(every[seed % len(every)], seed // len(every))


def _numpy(seed: int) -> Findings:
    every = list(numpy_calls.callable_names())
    yield from numpy_calls.findings(every[seed % len(every)], seed // len(every))


def _program(kind: str) -> Callable[[int], Findings]:
    def findings(seed: int) -> Findings:
        entry = laws.Entry(kind, seed, 1, "")
        laws.try_seed(kind, laws.FIRST + seed, entry, Counter())
        yield from ((f"{kind} {error.split(':')[0]}", error) for error in entry.failed.values())

    return findings


def _composition(seed: int) -> Findings:
    name, chain = compositions.draw(seed)
    try:
        check(EXAMPLES[name], chain)
    except Exception as error:  # the finding
        text = f"{type(error).__name__}: {str(error)[:400]}"
        yield f"composition {name} {type(error).__name__}", f"{text} {[t.name for t in chain]}"


KINDS: dict[str, Callable[[int], Findings]] = {
    "calls": _calls, "numpy": _numpy, "nests": nests.findings, "mistakes": mistakes.findings,
    "values": _program("values"), "derivatives": _program("derivatives"), "compositions": _composition,
    "interrupts": nests.interrupted,
}  # fmt: skip


def found_by(kind: str, seed: int) -> list[tuple[str, str]]:
    """Return the findings of a seed of a kind; an error of the hunt is one, too."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), laws.at_most(LONGEST):
            warnings.simplefilter("ignore")
            return [(k[:200], text[:2000]) for k, text in KINDS[kind](seed)]
    except (Exception, KeyboardInterrupt) as error:  # the hunt goes on
        return [(f"{kind} ends in {type(error).__name__}", str(error)[:2000])]


def child(kind: str, first: str, seconds: str) -> None:
    """Try seeds for some seconds; a line before each one, and a line after it with the findings."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore Ctrl-C
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    until, seed = time.monotonic() + float(seconds), int(first)
    while time.monotonic() < until:
        print(json.dumps({"begun": seed}), flush=True)
        print(json.dumps({"seed": seed, "findings": found_by(kind, seed)}), flush=True)
        seed += 1


CHILD = (sys.executable, "-X", "faulthandler", "-m", "tests.hunt", "child")


def slice_of(
    kind: str, first: int, seconds: float, *, child: Sequence[str] = CHILD, silence: float = LONGEST + 30
) -> tuple[int, list[tuple[int, str, str]]]:
    """Run a process for so long. Returns the next seed, and findings as seed, kind, text.

    child: its command; silence: the seconds after which a process without a word is killed.
    """
    found: list[tuple[int, str, str]] = []
    command = [*child, kind, str(first), str(seconds)]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, start_new_session=True)
        last, rest = first, b""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(silence):
                    os.killpg(process.pid, signal.SIGKILL)
                    found.append((last, f"{kind} hangs", f"no end in {silence} s"))
                    break
                data = os.read(process.stdout.fileno(), 2**20)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for entry in map(_entry, lines):
                    last = entry.get("begun", last)
                    found += [(entry["seed"], *finding) for finding in entry.get("findings", ())]
        code = process.wait()
        process.stdout.close()
        if code and not (found and found[-1][1].endswith("hangs")):
            said.seek(0)
            found.append((last, f"{kind} ends the process with {code}", said.read()[-2000:]))
    return last + 1, found


def _entry(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # printed by a program
        return {}


def hunt(
    minutes: float, seed: int, ledger: Path, kinds: tuple[str, ...] = tuple(KINDS), slice: float = SLICE
) -> Counter[str]:
    """Go round the kinds until the time is up. Returns how often each kind of finding was found."""
    until, nexts, found = time.monotonic() + 60 * minutes, dict.fromkeys(kinds, seed), Counter[str]()
    while time.monotonic() < until:
        for kind in kinds:
            nexts[kind], findings = slice_of(
                kind, nexts[kind], min(slice * LONGER.get(kind, 1), max(until - time.monotonic(), 0.1))
            )
            for at, what, text in findings:
                found[what] += 1
                if found[what] == 1:
                    print(f"{what}: {text}\n    scripts/hunt again {kind} {at}", flush=True)
                entry = {"kind": kind, "seed": at, "finding": what, "text": text, "revision": revision()}
                with ledger.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
            if time.monotonic() > until:
                break
    print(", ".join(f"{kind}: seeds {seed} to {end - 1}" for kind, end in nexts.items()))
    print(
        f"{sum(end - seed for end in nexts.values())} programs and calls, "
        f"{sum(found.values())} findings of {len(found)} kinds"
    )
    return found


def main(*args: str) -> None:
    """Dispatch the command line."""
    if args[0] == "child":
        child(*args[1:])
    elif args[0] == "again":
        for what, text in found_by(args[1], int(args[2])):
            print(f"{what}: {text}")
    else:
        ledger = Path(args[2] if len(args) > 2 else "hunt.jsonl")
        hunt(float(args[0]), int(args[1]) if len(args) > 1 else 0, ledger)


if __name__ == "__main__":
    main(*sys.argv[1:])
