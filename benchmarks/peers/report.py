"""A recorded comparison as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machine import slug

from peers.bars import bars, usual
from peers.reasons import reason
from peers.statistic import geometric_mean

_BEHIND = 0.97  # a row is surely slower where its whole interval lies below
HEAD = """\
# Benchmarks

tracer beside {peers}, as recorded on {date}. A ratio is the peer's time by tracer's in one round, so above
1 tracer is faster; brackets hold the 95 % confidence interval of the median over {rounds} alternating rounds. The first
call includes tracing and compiling, in a process that has compiled something before, on a machine that has compiled
the kernels which programs share; programs are kept in no files. Memory is the growth of the
process's peak over two calls, without arguments and pages of files (the code of libraries), and at least the size of
the results. Memory of earlier rows is released before. Where tracer's first call took longer than jax's, or its peak
was above, both were measured again, three times in processes of their own, and the medians stand here.

Machine: {machine}.

    JAX_PYTHON=... NUMBA_PYTHON=... TORCH_PYTHON=... python benchmarks/compare.py --record

writes this page and the figures behind it, `benchmarks/results/{name}.json`. A row without a ratio for a peer is not
computed there; where answers differ, it says so. Rows with a setting of tracer's appear in the tables only.

![Ratios of all rows](../benchmarks/results/{name}.svg)
"""


MACHINE = "{cpu}, {cores} cores, load {load:.1f} as it ended, this run among it, {system}, Python {python}; {versions}"


def record_name(log: dict[str, Any]) -> str:
    """What the files of a log are called: its date and its processor, as `2026-11-22-amd-epyc`."""
    return f"{log['date']}-{slug(log['machine']['cpu'])}"


def page(log: dict[str, Any], others: Sequence[dict[str, Any]] = ()) -> str:
    """The whole page, in Markdown. others: logs of other processors, of which the page has the sums."""
    peers = log["peers"]
    head = HEAD.format(
        peers=" and ".join([", ".join(peers[:-1]), *peers[-1:]][-len(peers) :]),
        rounds=log["rounds"], date=log["date"], name=record_name(log), machine=_machine(log),
    )  # fmt: skip
    parts = [head, _summary(log["rows"], peers), _bars(log["rows"], peers), _behind(log["rows"], peers)]
    for family in dict.fromkeys(row["family"] for row in log["rows"]):
        rows = [row for row in log["rows"] if row["family"] == family]
        parts.append(f"## {family.capitalize()}\n\n{_table(rows, peers)}")
    parts += [_other(each) for each in others]
    return "\n".join(parts)


def _machine(log: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in log["versions"].items())
    return MACHINE.format(versions=versions, **log["machine"])


def _other(log: dict[str, Any]) -> str:
    """What another processor's log comes to."""
    name = record_name(log)
    rows, peers = log["rows"], log["peers"]
    return "\n".join([
        f"## On another processor: {log['machine']['cpu']}\n",
        f"The figures are in `benchmarks/results/{name}.json`, of {log['date']}. Machine: {_machine(log)}.\n",
        _summary(rows, peers),
        _bar_table(rows, peers),
    ])  # fmt: skip


def _summary(rows: list[dict[str, Any]], peers: list[str]) -> str:
    lines = ["| peer | rows | geometric mean | least | rows surely below 0.97 |", "|---|---|---|---|---|"]
    for peer in peers:
        found = [row["peers"][peer] for row in usual(rows) if "ratio" in row["peers"].get(peer, {})]
        if found:
            ratios = [figures["ratio"] for figures in found]
            slower = sum(figures["high"] < _BEHIND for figures in found)
            lines.append(f"| {peer} | {len(found)} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {slower} |")
    return "\n".join(lines) + "\n"


def _bars(rows: list[dict[str, Any]], peers: list[str]) -> str:
    lines = ["## Rows that miss a bar", "", "| row | bar | why |", "|---|---|---|"]
    found = bars(rows, peers)
    lines += [f"| {row} | {bar.wanted} | {reason(row, bar.reasons)} |" for bar in found for row in bar.missed]
    lines.insert(2, "Reasons were found by profiling, on a Zen 5 unless they name another processor.\n")
    return f"## Bars\n\n{_bar_table(rows, peers)}\n" + "\n".join(lines) + "\n"


def _bar_table(rows: list[dict[str, Any]], peers: list[str]) -> str:
    lines = ["| wanted | found | rows that miss it |", "|---|---|---|"]
    lines += [f"| {bar.wanted} | {bar.found} | {'; '.join(bar.missed)} |" for bar in bars(rows, peers)]
    return "\n".join(lines) + "\n"


def _behind(rows: list[dict[str, Any]], peers: list[str]) -> str:
    """The rows whose interval lies below 0.97, and why."""
    lines = ["## Rows behind", "", "| row | peer | ratio | why |", "|---|---|---|---|"]
    for row in rows:
        for peer in peers:
            figures = row["peers"].get(peer, {})
            if figures.get("high", 1.0) < _BEHIND:
                lines.append(f"| {row['row']} | {peer} | {figures['ratio']:.2f} | {reason(row['row'])} |")
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, Any]], peers: list[str]) -> str:
    titles = ["row", "time", "first call", "memory"]
    for peer in peers:
        titles += [f"{peer}: ratio", "first call", "memory"]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    lines += ["| " + " | ".join(_cells(row, peers)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any], peers: list[str]) -> list[str]:
    cells = [row["row"], *_own(row["peers"].get("tracer", {}))]
    for peer in peers:
        figures = row["peers"].get(peer, {})
        if "ratio" in figures:
            ratio = f"{figures['ratio']:.2f} [{figures['low']:.2f}, {figures['high']:.2f}]"
            cells += [f"{ratio} {figures.get('error', '')}".strip(), *_own(figures)[1:]]
        else:
            cells += [figures.get("error", ""), "", ""]
    return cells


def _own(figures: dict[str, Any]) -> list[str]:
    if "seconds" not in figures:
        return [figures.get("error", ""), "", ""]
    return [_time(figures["seconds"]), _time(figures["first"]), f"{max(figures['peak'], 0) / 2**20:.1f} MiB"]


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
