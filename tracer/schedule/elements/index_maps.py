"""Which operand element an index-mapping equation reads, as affine forms of the output's index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tracer.schedule.terms.affine import ZERO, Affine, plus, scaled, shifted

Axes = tuple[Affine, ...]


def _broadcast(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    return tuple(
        ZERO if n == 1 else index[axis] for axis, n in zip(params["broadcast_dimensions"], operand, strict=True)
    )


def _transpose(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    result = [ZERO] * len(index)
    for position, axis in enumerate(params["permutation"]):
        result[axis] = index[position]
    return tuple(result)


def _reverse(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    return tuple(
        shifted(scaled(i, -1), n - 1) if axis in params["dimensions"] else i
        for axis, (i, n) in enumerate(zip(index, operand, strict=True))
    )


def _squeeze(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    remaining = iter(index)
    return tuple(ZERO if axis in params["dimensions"] else next(remaining) for axis in range(len(operand)))


def _slice(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    strides = params["strides"] or (1,) * len(index)
    return tuple(
        shifted(scaled(i, stride), start)
        for i, start, stride in zip(index, params["start_indices"], strides, strict=True)
    )


def _windows(index: Axes, operand: Sequence[int], params: Mapping[str, Any]) -> Axes:
    result = list(index[: len(operand)])
    rows = zip(params["axes"], params["strides"], params["dilations"], index[len(operand) :], strict=True)
    for axis, stride, dilation, within in rows:
        result[axis] = plus(scaled(result[axis], stride), scaled(within, dilation))
    return tuple(result)


INDEX_MAPS: Final[Mapping[str, Callable[[Axes, Sequence[int], Mapping[str, Any]], Axes]]] = {
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reverse": _reverse,
    "squeeze": _squeeze,
    "slice": _slice,
    "windows": _windows,
}
