"""Arrays as NumPy arrays, and their IR types: `device_get`, `typeof`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir.types import Type
from tracer.runtime.system.spans import transferring
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import user_source


def device_get(x: Any) -> Any:
    """Return a tree with its arrays as writeable NumPy arrays.

    x: a tree of arrays. Shapes and dtypes are kept.

    >>> tracer.device_get({"a": tnp.asarray([1.0])})
    {'a': array([1.])}
    """
    with transferring("device_get", user_source, lambda: _bytes(x)):
        return trees.tree_map(lambda leaf: np.array(leaf) if isinstance(leaf, Array) else leaf, x)


def _bytes(x: Any) -> int:
    return sum(leaf.nbytes for leaf in trees.flatten(x)[0] if isinstance(leaf, Array))


def typeof(x: Any) -> Type:
    """Return the IR type of a value: dtype, shape and weak flag.

    x: an array, a NumPy array or a scalar.

    >>> print(tracer.typeof(tnp.zeros((2, 3), "float32")))
    f32[2,3]
    """
    return as_array(x, "typeof").type
