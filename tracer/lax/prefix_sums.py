"""`associative_scan`: all prefixes of a sequence under an associative operation, in logarithmically many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import CarryTypeError, ShapeError, message
from tracer.ir.types import storage_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice
from tracer.primitives.base.broadcasting import axis_of, expand_dims
from tracer.primitives.base.shapes import reshape, rev
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.functions import as_output, call_rule, check_callable, flatten_arguments


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return all prefixes e0, e0∘e1, e0∘e1∘e2, ... along an axis, for an associative `fn(a, b)` on trees of slices.

    fn works on many pairs at once, along the axis; reverse: suffixes instead of prefixes; axis: by default the first.
    Blelloch 1990, "Prefix sums and their applications".

    elems: a tree of arrays [..., n, ...] of one n. Returns the same tree and types. Raises ShapeError for several n,
    CarryTypeError where fn returns other types than it takes, AxisError for an absent axis.

    >>> tracer.lax.associative_scan(lambda a, b: a + b, tnp.arange(4))
    Array([0, 1, 3, 6], i64)
    """
    check_callable(fn, "associative_scan")
    leaves, structure = flatten_arguments(elems, "associative_scan", lambda: trees.leaf_names(elems, "elems"))
    if not leaves:
        return elems
    axes = [axis_of("associative_scan", axis, x.ndim) for x in leaves]
    sizes = [x.shape[d] for x, d in zip(leaves, axes, strict=True)]
    if len(set(sizes)) != 1:
        shown = [f"{name} has size {n}" for name, n in zip(trees.leaf_names(elems, "elems"), sizes, strict=True)]
        raise ShapeError(
            message(f"associative_scan{here()}: the axes differ in size", *shown, help="slice or pad them")
        )
    if reverse:
        leaves = [rev(x, (d,)) for x, d in zip(leaves, axes, strict=True)]

    def combine(a: list[Array], b: list[Array]) -> list[Array]:
        result = call_rule(fn, (trees.unflatten(structure, a), trees.unflatten(structure, b)), "associative_scan's fn")
        outputs, found = trees.flatten(result)
        _check_result(outputs, found, structure, a, elems)
        return [as_output(y, "associative_scan") for y in outputs]

    results = _prefixes(combine, leaves, axes)
    if reverse:
        results = [rev(x, (d,)) for x, d in zip(results, axes, strict=True)]
    return trees.unflatten(structure, results)


def _check_result(outputs: list[Any], found: Any, structure: Any, xs: list[Array], elems: Any) -> None:
    """Raise CarryTypeError unless fn returns the types that it takes."""
    if found != structure:
        path, given, returned = trees.parting(structure, found, "elems")
        raise CarryTypeError(
            message(
                f"associative_scan{here()}",
                f"'{path}' goes in as {trees.structure_text(given)} but fn returns {trees.structure_text(returned)}",
                help="return the structure that fn takes" if found.num_leaves else "is there a `return`?",
            )
        )
    for number, (y, x) in enumerate(zip(outputs, xs, strict=True)):
        type = as_output(y, "associative_scan").type
        if type.shape != x.type.shape or storage_type(type).dtype != storage_type(x.type).dtype:
            raise CarryTypeError(
                message(
                    f"associative_scan{here()}",
                    f"{trees.leaf_names(elems, 'elems')[number]!r} goes in as {x.type} but fn returns {type}",
                    help="fn works on many pairs at once, along the axis, and keeps shapes and dtypes",
                )
            )


def _prefixes(
    combine: Callable[[list[Array], list[Array]], list[Array]], xs: list[Array], axes: list[int]
) -> list[Array]:
    """Combine neighbours, find the prefixes of the pairs, and fill in the elements between."""
    n = xs[0].shape[axes[0]]
    if n < 2:
        return xs
    pairs = combine(_every_other(xs, axes, 0, n - 1), _every_other(xs, axes, 1, n))
    odd = _prefixes(combine, pairs, axes)
    before = [_part(x, d, 0, (n - 1) // 2, 1) for x, d in zip(odd, axes, strict=True)]
    later = _every_other(xs, axes, 2, n)
    even = combine(before, later) if n > 2 else later
    first = [_part(x, d, 0, 1, 1) for x, d in zip(xs, axes, strict=True)]
    even = [concatenate([a, b], d) for a, b, d in zip(first, even, axes, strict=True)]
    return [_interleaved(a, b, d) for a, b, d in zip(even, odd, axes, strict=True)]


def _every_other(xs: list[Array], axes: list[int], start: int, limit: int) -> list[Array]:
    return [_part(x, d, start, limit, 2) for x, d in zip(xs, axes, strict=True)]


def _part(x: Array, axis: int, start: int, limit: int, step: int) -> Array:
    starts, limits, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], steps[axis] = min(start, limit), limit, step
    part: Array = slice(x, starts, limits, steps)
    return part


def _interleaved(even: Array, odd: Array, axis: int) -> Array:
    """Return even[0], odd[0], even[1], odd[1], ...; `even` may have one more."""
    n = odd.shape[axis]
    pairs = concatenate([expand_dims(_part(x, axis, 0, n, 1), (axis + 1,)) for x in (even, odd)], axis + 1)
    joined = reshape(pairs, (*odd.shape[:axis], 2 * n, *odd.shape[axis + 1 :]))
    if even.shape[axis] == n:
        return joined  # type: ignore[no-any-return]
    return concatenate([joined, _part(even, axis, n, n + 1, 1)], axis)  # type: ignore[no-any-return]
