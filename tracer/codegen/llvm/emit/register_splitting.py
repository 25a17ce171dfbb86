"""Instructions of one width on vectors of any width: lanes split into registers, and the results joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import indices, vector


def in_registers(
    w: Writer, lanes: int, count: int, result: str, values: Sequence[tuple[str, str]], write: Callable[[list[str]], str]
) -> str:
    """Return the joined results of `write` on each register of `count` lanes.

    result: LLVM type of the results' elements. values: (element type, name) of each operand. A last register that is
    not full repeats the last lane.
    """
    if lanes == count:
        return write([value for _, value in values])
    parts = []
    for first in range(0, lanes, count):
        places = indices(*[min(first + i, lanes - 1) for i in range(count)])
        pieces = []
        for element, value in values:
            kind = vector(element, lanes)
            pieces.append(w.let(f"shufflevector {kind} {value}, {kind} poison, {places}"))
        parts.append(write(pieces))
    return _joined(w, result, parts, count, lanes)


def _joined(w: Writer, element: str, parts: list[str], count: int, lanes: int) -> str:
    """Return the first `lanes` lanes of the parts, one part after the other."""
    while len(parts) > 1:
        kind, both = vector(element, count), indices(*range(2 * count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [w.let(f"shufflevector {kind} {a}, {kind} {b}, {both}") for a, b in pairs]
        count *= 2
    if count == lanes:
        return parts[0]
    kind = vector(element, count)
    return w.let(f"shufflevector {kind} {parts[0]}, {kind} poison, {indices(*range(lanes))}")
