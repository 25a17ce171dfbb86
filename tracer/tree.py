"""Trees of arrays: nested tuples, lists, dicts and registered classes; None is a tree without leaves.

>>> tracer.tree.map(lambda x: 2 * x, {"w": 1, "b": [2, None]})
{'w': 2, 'b': [4, None]}
"""

import dataclasses
from typing import Any

from tracer.trace.docstrings import signed_as
from tracer.trace.tracebacks import set_boundaries
from tracer.tree_util import tree_all as all
from tracer.tree_util import tree_broadcast as broadcast
from tracer.tree_util import tree_flatten as flatten
from tracer.tree_util import tree_flatten_with_path as flatten_with_path
from tracer.tree_util import tree_leaves as leaves
from tracer.tree_util import tree_leaves_with_path as leaves_with_path
from tracer.tree_util import tree_map as map
from tracer.tree_util import tree_map_with_path as map_with_path
from tracer.tree_util import tree_reduce as reduce
from tracer.tree_util import tree_reduce_associative as reduce_associative
from tracer.tree_util import tree_structure as structure
from tracer.tree_util import tree_transpose as transpose
from tracer.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "reduce",
    "reduce_associative", "static", "structure", "transpose", "unflatten",
]  # fmt: skip


@signed_as(dataclasses.field)
def static(**kwargs: Any) -> Any:
    """Make a dataclass field that belongs to the structure: see `tree_util.register_dataclass`.

    kwargs: as of `dataclasses.field`, such as default and repr.

    >>> @tracer.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = tracer.tree.static(default="dense")
    >>> tracer.tree.map(lambda w: 2 * w, Layer(1.5))
    Layer(weight=3.0, name='dense')
    """
    return dataclasses.field(**{**kwargs, "metadata": {**(kwargs.get("metadata") or {}), "static": True}})


set_boundaries(globals(), __all__)
