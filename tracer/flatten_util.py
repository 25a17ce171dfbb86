"""Conversion of trees to vectors and back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import tracer.numpy as tnp
from tracer.errors import ShapeError, message
from tracer.ir import shape
from tracer.numpy.core.conversion import common_pair
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.functions import flatten_arguments


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Return all leaves of a tree in one vector, and the function that converts a vector back into a tree.

    pytree: leaves [*s] of any shapes, n elements in all. Returns [n], in the dtype to which they are promoted. Returns
    also the function, whose results have the shapes and dtypes of the leaves. The function raises ShapeError for a
    vector of another size.

    >>> vector, unravel = tracer.flatten_util.ravel_pytree({"a": 1.0, "b": tnp.asarray([2.0, 3.0])})
    >>> vector
    Array([1., 2., 3.], f64)
    >>> unravel(2 * vector)["b"]
    Array([4., 6.], f64)
    """
    arrays, structure = flatten_arguments(pytree, "ravel_pytree", lambda: trees.leaf_names(pytree, "pytree"))
    types = [(x.shape, x.dtype) for x in arrays]
    sizes = [shape.size(s) for s, _ in types]
    if arrays:
        dtype = common_pair("ravel_pytree", [(x.dtype, x.weak_type) for x in arrays])[0]
        vector = tnp.concatenate([x.astype(dtype).ravel() for x in arrays])
    else:
        vector = tnp.zeros(0)

    def unravel(flat: Any) -> Any:
        given = as_array(flat, "unravel")
        if given.shape != (sum(sizes),):
            raise ShapeError(
                message(f"unravel{here()}: the vector must have {sum(sizes)} elements", f"got {given.type}")
            )
        parts = tnp.split(given, list(accumulate(sizes))[:-1]) if len(sizes) > 1 else [given]
        restored = [part.reshape(s).astype(d) for part, (s, d) in zip(parts, types, strict=False)]
        return trees.unflatten(structure, restored)

    return vector, unravel


set_boundaries(globals())
