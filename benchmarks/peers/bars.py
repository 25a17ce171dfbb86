"""The bars that the project sets itself, and what a recorded comparison says to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from peers.reasons import FIRST_CALLS, PEAKS, REASONS
from peers.statistic import geometric_mean

_SURELY_SLOWER = 0.97  # where the whole interval lies below
_MUCH_SLOWER = 1 / 1.5
_FAST_ROWS = 0.8
_MEAN_OVER_JAX = 2.5
_SHARE_OF_BANDWIDTH = 0.9
_BY_LIBRARIES = ("decompositions", "Fourier transforms", "linear algebra")
_BEHIND_LIBRARIES = 0.9
_PRODUCTS = ("matmul f4 1024", "matmul f4 2048")
_MOVED = {"axpy": 3, "polynomial": 3, "sum": 1, "cumsum": 2, "transpose": 2, "concatenate": 2, "pad": 2, "take": 2}
"""How many arrays of 1e7 elements a row moves, by the beginning of its name."""
_CALLS = {"call with one array": 0.5, "call with ten arrays": 1.0, "call with a tree of fifty": 15.0}
"""Microseconds that rows may take, by the beginning of their names."""
SAME_PEAK = 1 << 20  # bytes: the least that two runs of one program differ by

Row = dict[str, Any]


class Bar(NamedTuple):
    """wanted and found in words; missed: the rows that are in the way; reasons: where to look up why."""

    wanted: str
    found: str
    missed: Sequence[str]
    reasons: Mapping[str, str] = REASONS


def usual(rows: Sequence[Row]) -> list[Row]:
    """The rows that count: those without settings of their own, which a user would have to know."""
    return [row for row in rows if "settings" not in row]


def bars(rows: Sequence[Row], peers: Sequence[str]) -> list[Bar]:
    """Every bar that the rows can say something about."""
    rows = usual(rows)
    compared = [row for row in rows if _ratios(row, peers)]
    by_jax = [row for row in compared if "ratio" in row["peers"].get("jax", {})]
    found = list(_over_jax(by_jax)) if by_jax else []
    if compared:
        fast = [row for row in compared if min(_ratios(row, peers)) >= 1]
        slow = [row for row in compared if min(_ratios(row, peers)) < _MUCH_SLOWER]
        found += [
            Bar(
                f"as fast as the best peer on {_FAST_ROWS:.0%} of the rows",
                f"{len(fast) / len(compared):.0%} of {len(compared)}", [],
            ),
            Bar("never 1.5 times as slow as the best peer", _count(slow), _names(slow)),
        ]  # fmt: skip
    return [*found, *_libraries(compared, peers), *_products(compared, peers), *_memory_bound(rows), *_calls(rows)]


def _libraries(rows: Sequence[Row], peers: Sequence[str]) -> list[Bar]:
    """Rows that some peer leaves to LAPACK or to a library of Fourier transforms, beside the best of the peers."""
    rows = [row for row in rows if row.get("family") in _BY_LIBRARIES]
    behind = [row for row in rows if min(_ratios(row, peers)) < _BEHIND_LIBRARIES]
    wanted = "decompositions and Fourier transforms at most 10 % behind the best peer"
    return [Bar(wanted, _count(behind), _names(behind))] if rows else []


def _products(rows: Sequence[Row], peers: Sequence[str]) -> list[Bar]:
    """Large products in f32, beside the best of the peers."""
    least = {row["row"]: min(_ratios(row, peers)) for row in rows if row["row"] in _PRODUCTS}
    slower = [name for name, ratio in least.items() if ratio < 1]
    text = ", ".join(f"{ratio:.2f}" for ratio in least.values())
    return [Bar("f32 products of 1024 and 2048 as fast as the best peer", text, slower)] if least else []


def _memory_bound(rows: Sequence[Row]) -> list[Bar]:
    """Rows of 1e7 elements that memory limits, as a share of the bandwidth of the fastest copy of any peer."""
    seconds = {row["row"]: {p: f["seconds"] for p, f in row["peers"].items() if "seconds" in f} for row in rows}
    shares = {}
    for name, taken in seconds.items():
        operation, _, dtype_and_size = name.partition(" ")
        copies = seconds.get(f"copy {dtype_and_size}")
        if operation in _MOVED and copies and "tracer" in taken and dtype_and_size.endswith("1e7"):
            shares[name] = _MOVED[operation] / taken["tracer"] * min(copies.values()) / 2
    if not shares:
        return []
    low = [name for name, share in shares.items() if share < _SHARE_OF_BANDWIDTH]
    wanted = f"rows of 1e7 that memory limits at {_SHARE_OF_BANDWIDTH:.0%} of the bandwidth of a copy"
    return [Bar(wanted, f"{min(shares.values()):.0%} at least", low)]


def _calls(rows: Sequence[Row]) -> list[Bar]:
    """What tracer takes for calls that compute next to nothing."""
    taken = {
        row["row"]: (1e6 * row["peers"]["tracer"]["seconds"], most)
        for row in rows
        for name, most in _CALLS.items()
        if row["row"].startswith(name) and "seconds" in row["peers"].get("tracer", {})
    }
    late = [name for name, (time, most) in taken.items() if time > most]
    text = ", ".join(f"{time:.2f}" for time, _ in taken.values())
    return [Bar("calls of one array, ten and a tree of fifty in 0.5, 1 and 15 µs", text, late)] if taken else []


def _over_jax(rows: Sequence[Row]) -> list[Bar]:
    jax = [row["peers"]["jax"] for row in rows]
    ours = [row["peers"]["tracer"] for row in rows]
    slower = [row for row, figures in zip(rows, jax, strict=True) if figures["high"] < _SURELY_SLOWER]
    later = [row for row, a, b in zip(rows, ours, jax, strict=True) if a["first"] > b["first"]]
    larger = [row for row, a, b in zip(rows, ours, jax, strict=True) if a["peak"] > b["peak"] + SAME_PEAK]
    mean = geometric_mean([figures["ratio"] for figures in jax])
    return [
        Bar(f"{_MEAN_OVER_JAX} times as fast as jax, in the geometric mean", f"{mean:.2f}", []),
        Bar("no row surely slower than jax: its interval wholly below 0.97", _count(slower), _names(slower)),
        Bar("first calls sooner than jax's", _count(later), _names(later), FIRST_CALLS),
        Bar("peaks of memory at most jax's, to 1 MiB", _count(larger), _names(larger), PEAKS),
    ]


def _ratios(row: Row, peers: Sequence[str]) -> list[float]:
    figures = [row["peers"].get(peer, {}) for peer in peers]
    return [f["ratio"] for f in figures if "ratio" in f]


def _count(missed: Sequence[Row]) -> str:
    return "held" if not missed else f"missed by {len(missed)}"


def _names(rows: Sequence[Row]) -> list[str]:
    return [row["row"] for row in rows]
