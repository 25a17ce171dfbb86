"""The hunt itself: it runs clean for some seeds of each kind, finds faults put back, and outlives crashes and hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hunt import __main__ as rounds
from tests.hunt import drawing

SEEDS = {
    "calls": range(0, 20), "numpy": range(0, 30), "nests": range(0, 6), "mistakes": range(0, 30),
    "values": range(1, 2), "derivatives": range(0, 1), "compositions": range(0, 1), "interrupts": range(0, 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(rounds.KINDS))
def test_some_seeds_of_each_kind_are_clean(kind: str) -> None:
    every = len(drawing.names())
    seeds = (17 * seed + every * (seed % 3) for seed in SEEDS[kind]) if kind == "calls" else SEEDS[kind]
    for seed in seeds:
        assert rounds.found_by(kind, seed) == [], f"scripts/hunt again {kind} {seed}"


def test_faults_that_are_put_back_are_found() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.hunt.known_faults"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count(": seed ") >= 9


def test_calls_of_a_seed_are_the_same_in_every_run() -> None:
    for name in drawing.names()[::50]:
        assert drawing.draw(name, 3).shown == drawing.draw(name, 3).shown


CHILD = """
import json, os, sys, time
for seed in range(int(sys.argv[2]), 9):
    print(json.dumps({"begun": seed}), flush=True)
    if seed == 2:
        os.abort()
    if seed == 4:
        time.sleep(600)
    print(json.dumps({"seed": seed, "findings": [["odd", "text"]] if seed in (3, 6) else []}), flush=True)
"""


def test_crashes_and_hangs_are_findings() -> None:
    """Go on behind a process that aborts at one seed, and behind one that falls silent at another."""
    first, found = 0, []
    while first < 9:
        first, findings = rounds.slice_of("calls", first, 1, child=[sys.executable, "-c", CHILD], silence=3)
        found += [(seed, what) for seed, what, _ in findings]
    ends, hangs = "calls ends the process with -6", "calls hangs"
    assert found == [(2, ends), (3, "odd"), (4, hangs), (6, "odd")]


def test_each_kind_of_finding_is_printed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rounds, "slice_of", lambda kind, first, _: (first + 2, [(first, "odd", "text")]))
    times = iter([0.0] * 9)
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: next(times, 99.0)))
    found = rounds.hunt(1, 7, tmp_path / "ledger", kinds=("calls",))
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["odd: text", "    scripts/hunt again calls 7"]
    assert said[-1].endswith(f"{found['odd']} findings of 1 kinds")
    entries = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    assert [entry["seed"] for entry in entries] == list(range(7, 7 + 2 * len(entries), 2))
    assert len(entries) == found["odd"] > 1
