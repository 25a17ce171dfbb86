"""tracer beside NumPy, JAX, Numba and PyTorch, row by row: medians of alternating rounds, with their confidence.

    python benchmarks/compare.py                               all rows
    python benchmarks/compare.py --rows softmax sort --rounds 5
    python benchmarks/compare.py --record                      and keep results/DATE-PROCESSOR.json, write the page

Each peer runs in a process of its own, and waits while another works. JAX_PYTHON, NUMBA_PYTHON and TORCH_PYTHON name
the interpreters that have them, if it is another than this one; peers that are not there are left out. A ratio is the
peer's time by ours in one round: above 1, tracer is faster.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from machine import cpu_name
from peers.bars import SAME_PEAK, bars, usual
from peers.catalogue import ROWS
from peers.report import page, record_name
from peers.row import Row
from peers.statistic import geometric_mean, interval

HERE = Path(__file__).resolve().parent
PEERS = ("numpy", "jax", "numba", "torch")


class Worker:
    """A peer's process."""

    def __init__(self, peer: str) -> None:
        python = self.python = os.environ.get(f"{peer.upper()}_PYTHON", sys.executable)
        path = os.pathsep.join([str(HERE), *([str(HERE.parent)] if peer == "tracer" else [])])
        self.peer = peer
        self.process = subprocess.Popen(
            [python, "-m", "peers.worker", peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path, "TRACER_CACHE_DIR": ""},
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request and its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return dict(json.loads(line)) if line else {"error": "the process died"}

    def stop(self) -> None:
        self.process.communicate()


@dataclass
class Prepared:
    """A worker that is ready for a row."""

    worker: Worker
    first: float
    peak: int
    answer: Path


def prepare(worker: Worker, row: Row, folder: str) -> Prepared | str:
    """The worker ready for the row, or why it is not."""
    answer = Path(folder, f"{worker.peer}.npz")
    reply = worker.ask(do="prepare", row=row.name, answer=str(answer))
    if "error" in reply:
        return str(reply["error"])
    return Prepared(worker, reply["first"], reply["peak"], answer)


def difference(ours: Path, theirs: Path) -> float:
    """The largest difference of the answers, by the largest value."""
    with np.load(ours) as a, np.load(theirs) as b:
        pairs = [(a[name], b[name]) for name in a.files]
    worst = 0.0
    for x, y in pairs:
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        gap = np.abs(x.astype(wide) - y.astype(wide))
        scale = float(np.abs(y.astype(wide)).max(initial=0)) or 1.0
        worst = max(worst, float(gap.max(initial=0)) / scale)
    return worst


def measure(row: Row, workers: dict[str, Worker], rounds: int, seconds: float) -> dict[str, Any]:
    """All figures of one row."""
    result: dict[str, Any] = {"row": row.name, "family": row.family, "peers": {}}
    if row.settings:
        result["settings"] = dict(row.settings)
    ready: dict[str, Prepared] = {}
    with tempfile.TemporaryDirectory() as folder:
        for peer, worker in workers.items():
            if row.maker(peer) is None:
                continue
            made = prepare(worker, row, folder)
            if isinstance(made, str):
                result["peers"][peer] = {"error": made}
            else:
                ready[peer] = made
        if "tracer" not in ready:
            return result
        gaps = {p: difference(ready["tracer"].answer, r.answer) for p, r in ready.items() if p != "tracer"}
    times: dict[str, list[float]] = {peer: [] for peer in ready}
    for number in range(rounds + 1):
        for peer, prepared in ready.items():
            taken = prepared.worker.ask(do="time", seconds=seconds)
            if number:  # the first round warms up
                times[peer].append(taken["seconds"])
    for peer, prepared in ready.items():
        figures = {"seconds": statistics.median(times[peer]), "first": prepared.first, "peak": prepared.peak}
        if peer != "tracer":
            ratios = [b / a for a, b in zip(times["tracer"], times[peer], strict=True)]
            low, high = interval(ratios)
            figures |= {"ratio": statistics.median(ratios), "low": low, "high": high, "difference": gaps[peer]}
            if row.tolerance is not None and not gaps[peer] <= row.tolerance:
                figures["error"] = f"answers differ by {gaps[peer]:.1e}"
        result["peers"][peer] = figures
    return result


_AGAIN = 3  # times


def measure_again(results: Sequence[dict[str, Any]]) -> None:
    """First calls and peaks that are above JAX's, both peers' anew: the median of three processes each, in turns.

    A first call happens once in a process, so that what disturbs it stays. As to peaks, what former rows freed and a
    heap did not give back serves later rows unseen, most of all behind large ones.
    """
    rows = {row.name: row for row in ROWS}
    for result in results:
        peers = result["peers"]
        if not all("peak" in peers.get(peer, {}) for peer in ("tracer", "jax")):
            continue
        ours, theirs = peers["tracer"], peers["jax"]
        above = {"first": ours["first"] > theirs["first"], "peak": ours["peak"] > theirs["peak"] + SAME_PEAK}
        if not any(above.values()):
            continue
        found: dict[str, list[Prepared]] = {"tracer": [], "jax": []}
        with tempfile.TemporaryDirectory() as folder:
            for peer in ("tracer", "jax") * _AGAIN:
                worker = Worker(peer)
                made = prepare(worker, rows[result["row"]], folder)
                worker.stop()
                if isinstance(made, Prepared):
                    found[peer].append(made)
        for name in [name for name, is_above in above.items() if is_above]:
            for peer, prepared in found.items():
                if prepared:
                    anew = statistics.median(getattr(each, name) for each in prepared)
                    peers[peer] |= {name: anew, f"{name}_among_rows": peers[peer][name]}


def line(result: dict[str, Any]) -> str:
    """A row of figures, for people."""
    peers = result["peers"]
    ours = peers.get("tracer", {})
    if "seconds" not in ours:
        return f"{result['row']:<40} {ours.get('error', 'missing')}"
    text = f"{result['row']:<40}{_figures(ours)}"
    for peer in PEERS:
        p = peers.get(peer)
        if p is None or "ratio" not in p:
            text += f" | {peer}: {'-' if p is None else p['error'][:40]}"
            continue
        text += (
            f" | {peer} {p['ratio']:6.2f} [{p['low']:.2f} {p['high']:.2f}]{_figures(p)} {p.get('error', '')}".rstrip()
        )
    return text


def _figures(p: dict[str, Any]) -> str:
    return f"{1e6 * p['seconds']:>12.1f} µs{1e3 * p['first']:>7.0f} ms{p['peak'] / 2**20:>7.1f} M"


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)), "system": platform.platform(),
        "python": platform.python_version(), "numpy": np.__version__, "load": os.getloadavg()[0],
    }  # fmt: skip


def compile_kernels(rows: list[Row]) -> None:
    """Have the kernels compiled that programs share, as a machine's first programs do; they are kept in files."""
    worker = Worker("tracer")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            prepare(worker, row, folder)
    worker.stop()


def publish(log: dict[str, Any]) -> None:
    """Write a log, its picture, and the page, which has the last log of every other processor beside it."""
    from peers.plot import draw  # noqa: PLC0415  # matplotlib is for those who record

    path = HERE / "results" / f"{record_name(log)}.json"
    path.write_text(json.dumps(log, indent=1) + "\n")
    draw(log, path.with_suffix(".svg"))
    logs = [json.loads(each.read_text()) for each in sorted(path.parent.glob("*.json"))]
    last = {each["machine"]["cpu"]: each for each in logs}
    others = [each for cpu, each in last.items() if cpu != log["machine"]["cpu"]]
    (HERE.parent / "docs" / "benchmarks.md").write_text(page(log, others))


def main() -> int:
    """Measure and print; returns 1 where an answer is wrong or a row of ours fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[""], help="parts of rows' names")
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each peer in each round")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    rows = [row for row in ROWS if any(part in row.name or part == row.family for part in asked.rows)]
    compileall.compile_dir(HERE.parent / "tracer", quiet=1)  # as installers do, so that first calls do not
    compile_kernels(rows)
    workers = {peer: Worker(peer) for peer in ("tracer", *asked.peers)}
    versions = {peer: worker.ask(do="version").get("version") for peer, worker in workers.items()}
    for peer in [peer for peer, version in versions.items() if version is None]:
        print(f"{peer} is left out: {workers.pop(peer).python} does not have it")
        del versions[peer]
    asked.peers = [peer for peer in asked.peers if peer in workers]
    results = []
    for row in rows:
        results.append(measure(row, workers, asked.rounds, asked.seconds))
        print(line(results[-1]), flush=True)
    for worker in workers.values():
        worker.stop()
    measure_again(results)
    for peer in asked.peers:
        ratios = [r["peers"][peer]["ratio"] for r in usual(results) if "ratio" in r["peers"].get(peer, {})]
        if ratios:
            print(
                f"{peer}: geometric mean of {len(ratios)} ratios {geometric_mean(ratios):.2f}, least {min(ratios):.2f}"
            )
    for bar in bars(results, asked.peers):
        print(f"{bar.wanted}: {bar.found}", *bar.missed, sep="; ")
    if asked.record:
        date = datetime.now(UTC).date().isoformat()
        publish({
            "date": date, "machine": machine(), "versions": versions, "peers": asked.peers, "rounds": asked.rounds,
            "rows": results,
        })  # fmt: skip
    return int(any("error" in p for r in results for p in r["peers"].values()))


if __name__ == "__main__":
    sys.exit(main())
