"""Trees of arrays: nested tuples, lists, dicts and registered classes; None is a tree without leaves.

>>> tracer.tree.map(lambda x: 2 * x, {"w": 1, "b": [2, None]})
{'w': 2, 'b': [4, None]}
"""

from tracer.tree_util import tree_all as all
from tracer.tree_util import tree_flatten as flatten
from tracer.tree_util import tree_flatten_with_path as flatten_with_path
from tracer.tree_util import tree_leaves as leaves
from tracer.tree_util import tree_leaves_with_path as leaves_with_path
from tracer.tree_util import tree_map as map
from tracer.tree_util import tree_map_with_path as map_with_path
from tracer.tree_util import tree_reduce as reduce
from tracer.tree_util import tree_structure as structure
from tracer.tree_util import tree_transpose as transpose
from tracer.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "reduce",
    "structure", "transpose", "unflatten",
]  # fmt: skip
