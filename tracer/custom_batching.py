"""Functions with custom batching rules: `custom_vmap`, `sequential_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.lax.mapping import map as map_slices
from tracer.trace import trees
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.batching import custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """Return the function with a batching rule that runs one lane after another.

    f: takes and returns trees of arrays of any shapes.

    >>> @tracer.custom_batching.sequential_vmap
    ... def f(x):
    ...     tracer.debug.print("{}", x)
    ...     return 2 * x
    >>> tracer.vmap(f)(tnp.arange(2))
    0
    1
    Array([0, 2], i64)
    """
    mapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        del axis_size
        leaves, structure = trees.flatten(args)
        flags = trees.flatten(tuple(in_batched))[0]

        def lane(slices: Sequence[Any]) -> Any:
            own = iter(slices)
            values = [next(own) if on else leaf for leaf, on in zip(leaves, flags, strict=True)]
            return f(*trees.unflatten(structure, values))

        results = map_slices(lane, [leaf for leaf, on in zip(leaves, flags, strict=True) if on])
        return results, trees.tree_map(lambda _: True, results)

    mapped.def_vmap(rule)
    return mapped


set_boundaries(globals(), __all__)
