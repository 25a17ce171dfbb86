"""Convolution of dilated operands by phases: one convolution for each residue of the positions modulo the dilation.

Gradients by the operand of convolutions with strides, and transposed convolutions, are such convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

from tracer.ir.types import Shape
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, pad, slice_in_dim
from tracer.primitives.arrays.sliding_windows import dilated
from tracer.primitives.base.shapes import reshape, rev, transpose

_MAX_PHASES: Final = 8  # convolutions in place of one
_MIN_FEATURES: Final = 8  # of each, in a group: fewer are as fast as features of one
_MIN_PRODUCTS: Final = 1 << 22  # 0.1 ms: four convolutions of their own take some 0.1 s more to compile


def has_phases(spread: Shape, steps: Shape, rhs_dilation: Shape) -> bool:
    """Return whether a dilated operand can be convolved phase by phase: no stride along its dilated axes."""
    rows = zip(spread, steps, rhs_dilation, strict=True)
    return any(d > 1 for d in spread) and all(d == 1 or (s, r) == (1, 1) for d, s, r in rows)


def in_phases(conv: Callable[..., Any], ct: Any, sizes: Shape, weights: Any, params: dict[str, Any]) -> Any:
    """Convolve each residue of the positions modulo the strides on its own. No zero of a dilation is multiplied.

    With j + p = q s + r, the cotangent at j of an operand of `sizes` is the sum over t of ct[q - t] window[t s + r].
    """
    groups, strides = params["feature_groups"] * params["batch_groups"], params["strides"]
    window = weights.shape[2:]
    whole = all(s <= min(w, n) for s, w, n in zip(strides, window, sizes, strict=True))
    filled = any(w % s for s, w in zip(strides, window, strict=True))
    products = ct.shape[0] * prod(ct.shape[2:]) * prod(weights.shape)
    wide = weights.shape[0] >= _MIN_FEATURES * groups and products >= _MIN_PRODUCTS
    if whole and filled and wide and prod(strides) <= _MAX_PHASES:
        return _phase_by_phase(conv, ct, sizes, weights, params)
    return _as_features(conv, ct, sizes, weights, params)


def _phase_by_phase(conv: Callable[..., Any], ct: Any, sizes: Shape, weights: Any, params: dict[str, Any]) -> Any:
    """Convolve once for each phase: a window shorter than a multiple of the strides is not filled with zeros."""
    strides = params["strides"]
    rank = len(strides)
    spread = [axis for axis in range(rank) if strides[axis] > 1]
    counts = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
    parts = []
    for offsets in product(*(range(s) for s in strides)):  # of the positions j = a s + offset
        window, padding = weights, []
        for axis, (offset, s) in enumerate(zip(offsets, strides, strict=True)):
            if s == 1:
                padding.append(_phase(axis, ct, sizes, weights, params).padding)
                continue
            ahead, residue = divmod(offset + params["padding"][axis][0], s)
            window = slice_in_dim(window, residue, weights.shape[2 + axis], s, axis=2 + axis)
            last = window.shape[2 + axis] - 1
            padding.append((last - ahead, counts[axis] + ahead - ct.type.shape[2 + axis]))
        parts.append(
            conv(
                ct, rev(window, tuple(range(2, 2 + rank))), strides=params["lhs_dilation"], padding=tuple(padding),
                lhs_dilation=(1,) * rank, rhs_dilation=params["rhs_dilation"],
                feature_groups=params["feature_groups"] * params["batch_groups"], precision=params["precision"],
                preferred_element_type=params["preferred_element_type"],
            )
        )  # fmt: skip
    for axis in reversed(spread):  # the last axis changes fastest in `parts`
        shape = parts[0].shape
        at, s = 3 + axis, strides[axis]
        apart = [reshape(part, (*shape[:at], 1, *shape[at:])) for part in parts]
        joined = [concatenate(apart[n : n + s], at) for n in range(0, len(apart), s)]
        parts = [reshape(x, (*shape[: at - 1], s * shape[at - 1], *shape[at:])) for x in joined]
    (result,) = parts
    for axis in spread:
        result = slice_in_dim(result, 0, sizes[axis], axis=2 + axis)
    return result


def _as_features(conv: Callable[..., Any], ct: Any, sizes: Shape, weights: Any, params: dict[str, Any]) -> Any:
    """Convolve all phases at once, as features, with windows of equal size."""
    rank, features, strides = len(params["strides"]), weights.shape[0], params["strides"]
    plan = [_phase(axis, ct, sizes, weights, params) for axis in range(rank)]
    phases, starts = [p.residues for p in plan], [p.start for p in plan]
    for axis, phase in enumerate(plan):
        weights = pad(weights, 0, _at_end(weights.ndim, 2 + axis, phase.missing)) if phase.missing else weights
    split = [part for w, r in zip(weights.shape[2:], phases, strict=True) for part in (w // r, r)]
    weights = reshape(weights, (*weights.shape[:2], *split))
    weights = transpose(weights, (0, *range(3, 3 + 2 * rank, 2), 1, *range(2, 2 + 2 * rank, 2)))
    weights = reshape(weights, (features * prod(phases), *weights.shape[1 + rank :]))
    result = conv(
        ct, rev(weights, tuple(range(2, 2 + rank))), strides=params["lhs_dilation"],
        padding=tuple(p.padding for p in plan), lhs_dilation=(1,) * rank, rhs_dilation=params["rhs_dilation"],
        feature_groups=params["feature_groups"] * params["batch_groups"],
        precision=params["precision"], preferred_element_type=params["preferred_element_type"],
    )  # fmt: skip
    places = result.shape[2:]
    result = reshape(result, (result.shape[0], features, *phases, *places))
    result = transpose(result, (0, 1, *(a for axis in range(rank) for a in (2 + rank + axis, 2 + axis))))
    for axis, (stride, r) in enumerate(zip(strides, phases, strict=True)):
        result = pad(result, 0, _at_end(result.ndim, 3 + 2 * axis, stride - r)) if r < stride else result
    result = reshape(result, (result.shape[0], features, *(n * s for n, s in zip(places, strides, strict=True))))
    for axis, start in enumerate(starts):
        result = slice_in_dim(result, start, start + sizes[axis], axis=2 + axis)
    return result


class _Phase(NamedTuple):
    """Plan of one axis of a convolution by phases.

    residues: how many residues get a term. start: of the result, among the phases. padding: of the cotangent. missing:
    elements that the window lacks to fill the last term of every phase.
    """

    residues: int
    start: int
    padding: tuple[int, int]
    missing: int


def _phase(axis: int, ct: Any, sizes: Shape, weights: Any, params: dict[str, Any]) -> _Phase:
    stride, (low, _) = params["strides"][axis], params["padding"][axis]
    n, size, width = sizes[axis], ct.type.shape[2 + axis], weights.type.shape[2 + axis]
    if stride == 1:
        extent = dilated(width, params["rhs_dilation"][axis])
        before = extent - low - 1
        whole = dilated(n, params["lhs_dilation"][axis])
        return _Phase(1, 0, (before, whole + extent - 1 - size - before), 0)
    first, last = low // stride, (low + n - 1) // stride
    count = min(stride, width)  # the other residues get nothing
    terms = -(-width // count)
    return _Phase(count, low - first * stride, (terms - 1 - first, last + 1 - size), terms * count - width)


def _at_end(rank: int, axis: int, count: int) -> list[tuple[int, int, int]]:
    """Return the padding of one axis, behind its elements."""
    return [(0, count if a == axis else 0, 0) for a in range(rank)]
