"""Choices between trees by a scalar condition: elementwise, so that donated states are updated in place.

A `lax.cond` of states would copy the values that its branch returns unchanged.
"""

from __future__ import annotations

from typing import Any

from tracer import numpy as tnp
from tracer.optim.transformation import init_leaves
from tracer.trace import trees


def chosen(condition: Any, if_true: Any, if_false: Any) -> Any:
    """Return the first tree where a scalar condition holds, else the second, in the dtypes of the second."""
    return trees.tree_map(lambda a, b: tnp.where(condition, tnp.asarray(a).astype(b.dtype), b), if_true, if_false)


def zeroed(condition: Any, tree: Any) -> Any:
    """Return zeros where a scalar condition holds, else the tree."""
    return init_leaves(lambda x: tnp.where(condition, tnp.zeros_like(x), x), tree)


def all_finite(tree: Any) -> Any:
    """Return whether all elements of a tree are finite, a scalar."""
    finite = [tnp.all(tnp.isfinite(x)) for x in trees.flatten(tree)[0]]
    whole = tnp.asarray(True)
    for each in finite:
        whole = whole & each
    return whole
