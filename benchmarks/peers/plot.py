"""A recorded comparison as a picture: every row's ratios, with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

_COLOURS = {"numpy": "#4477aa", "jax": "#ee6677", "numba": "#228833", "torch": "#ccbb44"}  # Tol's, for all eyes
_INCHES_A_ROW = 0.16


def draw(log: dict[str, Any], target: Path) -> None:
    """Write the picture of a log, as SVG; the same log gives the same file."""
    rows = log["rows"]
    mpl.rcParams.update({"svg.hashsalt": "tracer", "font.size": 7})
    figure = Figure(figsize=(8, 1 + _INCHES_A_ROW * len(rows)), layout="constrained")
    axes = figure.subplots()
    for peer in log["peers"]:
        found = [(n, row["peers"][peer]) for n, row in enumerate(rows) if "ratio" in row["peers"].get(peer, {})]
        colour = _COLOURS.get(peer)
        axes.hlines([n for n, _ in found], [f["low"] for _, f in found], [f["high"] for _, f in found], colour, lw=0.8)
        axes.plot([f["ratio"] for _, f in found], [n for n, _ in found], "o", ms=3, color=colour, label=peer)
    axes.axvline(1, color="black", lw=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("the peer's time by tracer's: to the right of 1 tracer is faster")
    axes.set_yticks(range(len(rows)), [row["row"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="x", lw=0.3)
    axes.legend(loc="lower right")
    figure.savefig(target, format="svg", metadata={"Date": None})
