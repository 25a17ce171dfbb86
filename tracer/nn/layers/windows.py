"""Arguments of layers that move a window over the last axes: sizes, strides, paddings."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.trace.array import Array
from tracer.trace.source import here

Pads = tuple[tuple[int, int], ...]

# PyTorch's names of paddings, and `numpy.pad`'s
MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def per_axis(caller: str, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """Return an integer for each of `rank` axes, given one or all. Raises ArgumentError for other values."""
    try:
        found = (index(value),) * rank
    except TypeError:
        found = tuple(map(index, value)) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if len(found) != rank or min(found, default=least) < least:
        raise ArgumentError(
            message(
                f"nn.{caller}{here()}: {name} is an integer from {least} up, or {rank} of them",
                f"got {value!r}",
                help=f"{name}={(max(least, 1),) * rank}",
            )
        )
    return found


def pads(caller: str, value: Any, rank: int) -> Pads:
    """Return (before, after) for each axis, given one integer, or an integer or a pair for every axis."""
    given = _integers(value) if isinstance(value, Sequence) else [(value, value)] * rank
    found = [pair for pair in given if len(pair) == 2 and all(isinstance(n, int | np.integer) and n >= 0 for n in pair)]
    if len(found) != rank or len(given) != rank:
        raise ArgumentError(
            message(
                f"nn.{caller}{here()}: padding is an integer from 0 up, or an integer or a pair for each of {rank}"
                " axes",
                f"got {value!r}",
                help=f"padding={tuple((0, 1) for _ in range(rank))} pads the end of every axis",
            )
        )
    return tuple((int(before), int(after)) for before, after in found)


def _integers(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(n) if isinstance(n, Sequence) else (n, n) for n in values]


def check_mode(caller: str, name: str, mode: str) -> str:
    """Return the mode. Raises ArgumentError unless it is one of `MODES`."""
    if mode not in MODES:
        raise ArgumentError(message(f"nn.{caller}{here()}: {name} is one of {', '.join(MODES)}", f"got {mode!r}"))
    return mode


def check_windows(who: str, x: Array, window: Sequence[int], padding: Pads) -> None:
    """Raise ShapeError if a window is longer than its axis with padding. window: sizes with dilation."""
    first = x.ndim - len(window)
    for axis, (size, (before, after)) in enumerate(zip(window, padding, strict=True), first):
        if before + x.shape[axis] + after < size:
            raise ShapeError(
                message(
                    f"{who}: the window covers {size} elements of axis {axis}, which has {x.shape[axis]}"
                    + (f" and {before} + {after} of padding" if before + after else ""),
                    f"got {x.type}{here()}",
                    help="a smaller window, or more padding",
                )
            )


def padded(x: Array, padding: Pads, mode: str, value: Any = 0) -> Array:
    """Return x with its last axes padded, in one of `MODES`."""
    if not any(map(any, padding)):
        return x
    widths = ((0, 0),) * (x.ndim - len(padding)) + padding
    result: Array = (
        tnp.pad(x, widths, constant_values=value) if mode == "zeros" else tnp.pad(x, widths, mode=MODES[mode])
    )
    return result
