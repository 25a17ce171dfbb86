"""Rows in which next to nothing is computed: what a call of a compiled function costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from peers.row import Row, World
from peers.rows_elementwise import uniform


def _one(w: World) -> Any:
    return lambda x: x + x


def _ten(w: World) -> Any:
    return lambda *xs: xs[0] + xs[9]


def _tree(w: World) -> Any:
    return lambda layers: layers["layer00"][0] + layers["layer24"][1]


def _arrays(count: int) -> list[np.ndarray[Any, Any]]:
    return [uniform(16, dtype="f8", seed=n) for n in range(count)]


def _layers(count: int) -> Any:
    """Pairs of arrays, as the parameters of a model come."""
    arrays = _arrays(2 * count)
    return ({f"layer{n:02}": tuple(arrays[2 * n : 2 * n + 2]) for n in range(count)},)


@dataclass
class Layer:
    """A layer as modules have it: a class that is registered as a node."""

    w: Any
    b: Any


@cache
def _register(w: World) -> None:
    w.root.tree_util.register_dataclass(Layer, data_fields=["w", "b"], meta_fields=[])


def _modules(count: int) -> Any:
    arrays = _arrays(2 * count)
    return ({f"layer{n:02}": Layer(*arrays[2 * n : 2 * n + 2]) for n in range(count)},)


def _classes(w: World) -> Any:
    _register(w)
    return lambda layers: layers["layer00"].w + layers["layer24"].b


ROWS = [
    Row("call with one array f8 16", "calls", lambda: _arrays(1), _one, ("numpy",)),
    Row("call with ten arrays f8 16", "calls", lambda: _arrays(10), _ten),
    Row("call with a tree of fifty f8 16", "calls", partial(_layers, 25), _tree),
    Row("call with 25 registered classes of two f8 16", "calls", partial(_modules, 25), _classes),
    Row("call with a tree of 150 f8 16", "calls", partial(_layers, 75), _tree),
    Row("call with 75 registered classes of two f8 16", "calls", partial(_modules, 75), _classes),
]
