"""`map`: a function applied to every slice, sequentially or in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.lax.loops import scan, scan_length
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.shapes import reshape
from tracer.trace import trees
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.functions import as_outputs, call_rule, check_callable, flatten_arguments
from tracer.transforms.vectorize import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None, progress: str | None = None) -> Any:
    """Apply `f` to every slice of xs along axis 0, sequentially, and stack the results.

    batch_size: slices at a time, by `vmap`; the last batch may be smaller. Raises ArgumentError unless it is positive.
    progress: as in `while_loop`.

    xs: a tree of arrays [n, ...]. Returns the tree of f's results, each [n, ...].

    >>> tracer.lax.map(lambda x: x * x, tnp.arange(3.0))
    Array([0., 1., 4.], f64)
    """
    check_callable(f, "map")
    slices, structure = flatten_arguments(xs, "map", lambda: trees.leaf_names(xs, "xs"))
    size = scan_length(slices, xs, None, "map")
    if batch_size is None:
        return scan(lambda _, x: (None, _applied(f, x)), None, xs, progress=progress)[1]
    batch_size = _checked(batch_size)
    whole = size - size % batch_size
    grouped = [reshape(slice_in_dim(x, 0, whole), (whole // batch_size, batch_size, *x.shape[1:])) for x in slices]
    many = scan(lambda _, group: (None, vmap(f)(group)), None, trees.unflatten(structure, grouped), progress=progress)[
        1
    ]
    joined = trees.tree_map(lambda y: reshape(y, (whole, *y.shape[2:])), many)
    if whole == size:
        return joined
    rest = vmap(f)(trees.unflatten(structure, [slice_in_dim(x, whole, size) for x in slices]))
    return trees.tree_map(lambda a, b: concatenate([a, b], 0), joined, rest)


def _applied(f: Callable[[Any], Any], x: Any) -> Any:
    """Call f(x); errors about the call name `map`."""
    caller = "the function of map"
    values, structure = as_outputs(call_rule(f, (x,), caller), caller)
    return trees.unflatten(structure, values)


def _checked(batch_size: Any) -> int:
    count = integer("map", "batch_size", batch_size)
    if count < 1:
        raise ArgumentError(
            message(
                f"map{here()}: batch_size is a positive integer", f"got {batch_size!r}", help="None takes one at once"
            )
        )
    return count
