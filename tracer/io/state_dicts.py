"""Names of PyTorch's state dicts for the arrays of a model, whose layers may hold them in other parts.

PyTorch's attention keeps the weights of q, k and v in one array. Its recurrent layers name a cell by its layer and
direction, and its parametrized layers move the weight. Each rule gives several names; the first that a state dict has
is read, and the first is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import CheckpointError, message
from tracer.io.saving import dotted
from tracer.nn.containers import Residual, Sequential
from tracer.nn.layers.attention_layers import MultiheadAttention
from tracer.nn.layers.linear import Linear
from tracer.nn.layers.lora import LoRA
from tracer.nn.layers.norms import SpectralNorm, WeightNorm
from tracer.nn.layers.recurrent import GRU, LSTM, RNN
from tracer.nn.layers.transformers import FeedForward, TransformerBlock, TransformerDecoder, TransformerEncoder
from tracer.nn.module import Module
from tracer.nn.stacks import Remat, Stack
from tracer.trace import trees
from tracer.trace.source import here

UNREAD = "num_batches_tracked"  # of PyTorch's batch norms: a count that is read without a momentum alone


class Part(NamedTuple):
    """Rows of an array of a state dict: `array[start:stop]` of `rows` rows, or without `stop` the whole array."""

    name: str
    start: int = 0
    stop: int | None = None
    rows: int | None = None


class Layers(NamedTuple):
    """Parts of state dicts that are stacked along a new first axis: `nn.Stack` holds the arrays of all its layers."""

    parts: tuple[Place, ...]


Place = Part | Layers
Known = Callable[[str], bool]


class _Shape:
    """Stand-in of a layer's array in a stack."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def places(model: Any, names: Iterable[str] | None) -> list[Place]:
    """Return where a state dict holds each leaf of a model, in the order of its leaves.

    names: the state dict's; a leaf without any of them gets its path in the model.
    None stands for a state dict as PyTorch would write it.
    """
    if names is None:
        return list(_Names(lambda _: True, True).places(model, ""))
    starts = {start for name in names for start in _starts(name)}
    return list(_Names(starts.__contains__, False).places(model, ""))


def names_of(place: Place) -> Iterator[str]:
    """Yield the names of a state dict that a place reads."""
    if isinstance(place, Part):
        yield place.name
    else:
        for part in place.parts:
            yield from names_of(part)


def gathered(place: Place, arrays: Mapping[str, Any]) -> Any:
    """Return the array that a place describes."""
    if isinstance(place, Layers):
        return np.stack([np.asarray(gathered(part, arrays)) for part in place.parts])
    array = arrays[place.name]
    if place.stop is None:
        return array
    if array.shape[:1] != (place.rows,):
        raise CheckpointError(
            message(f"load_weights{here()}: {place.name} has another shape",
                    f"expected {place.rows} rows, got {list(array.shape)}")
        )  # fmt: skip
    return array[place.start : place.stop]


def scattered(found: Iterable[tuple[Place, Any]]) -> dict[str, Any]:
    """Return the state dict whose places hold the given arrays of NumPy."""
    pieces: dict[str, list[tuple[int, Any]]] = {}

    def note(place: Place, array: Any) -> None:
        if isinstance(place, Part):
            pieces.setdefault(place.name, []).append((place.start, array))
            return
        for part, row in zip(place.parts, array, strict=True):
            note(part, row)

    for place, array in found:
        note(place, array)
    rows = {name: [row for _, row in sorted(parts, key=lambda part: part[0])] for name, parts in pieces.items()}
    return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in rows.items()}


def _starts(name: str) -> Iterator[str]:
    """Yield a name and all names of modules above it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


class _Names:
    """Rules by class of module. is_known: whether the state dict has a name, or names below it."""

    def __init__(self, is_known: Known, writes: bool) -> None:
        self._is_known, self._writes = is_known, writes

    def places(self, value: Any, path: str) -> Iterator[Place]:
        """Yield the places of a tree's leaves. path: of the tree in the state dict."""
        if value is None:
            return
        if isinstance(value, Module):
            rule = next((rule for kind, rule in _RULES.items() if isinstance(value, kind)), _plain)
            yield from rule(self, value, path)
        elif trees.is_leaf(value):
            yield Part(path or "tree")
        else:
            for child, entry in trees.children_with_entries(value):
                yield from self.places(child, below(path, dotted(entry)))

    def children(self, module: Module, path: str, names: Mapping[str, tuple[str, ...]]) -> Iterator[Place]:
        """Yield the places of a module. names: of a child in PyTorch, best first; a child without has its own."""
        for name in module.layout.names:
            child = module.__dict__[name]
            yield from self.places(child, self.known(path, *names.get(name, ()), name))

    def known(self, path: str, *names: str) -> str:
        """Return the first name below a path that the state dict has, else the last one, the model's own."""
        full = [below(path, name) for name in names]
        return next((name for name in full if self._is_known(name)), full[-1])

    def has(self, name: str) -> bool:
        """Whether the state dict has a name."""
        return self._is_known(name)

    @property
    def writes(self) -> bool:
        """Whether a new state dict is written: it has every name that a rule proposes."""
        return self._writes


def below(path: str, name: str) -> str:
    """Return the dotted path of a child."""
    return f"{path}.{name}" if path and name else path or name


def _plain(names: _Names, module: Module, path: str) -> Iterator[Place]:
    return names.children(module, path, {})


def _sequential(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield numbers of layers without a name before them."""
    for name in module.layout.names:
        if name != "layers":
            yield from names.places(module.__dict__[name], below(path, name))
            continue
        for n, layer in enumerate(module.layers):
            yield from names.places(layer, names.known(path, str(n), f"layers.{n}"))


def _remat(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield the inner module's names, or names below `module`, as in files of tracer."""
    own = below(path, "module")
    return names.places(module.module, own if not names.writes and names.has(own) else path)


def _stack(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield the arrays of a list of layers, to be stacked; or the stacked arrays if the state dict has these."""
    if not names.writes and not names.has(below(path, "0")) and names.has(below(path, "layers")):
        path = below(path, "layers")  # the stacked arrays, or a Sequential's arrays
        if not names.has(below(path, "0")):
            return names.places(module.layers, path)
    layer = trees.tree_map(lambda leaf: _Shape(leaf.shape[1:]), module.layers)
    columns = [names.places(layer, below(path, str(n))) for n in range(module.count)]
    return (Layers(parts) for parts in zip(*columns, strict=True))


def _lora(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield the wrapped layer's own names where the state dict has it without a correction."""
    for name in module.layout.names:
        child = module.__dict__[name]
        is_plain = name == "linear" and not names.writes and names.has(below(path, "weight"))
        yield from names.places(child, path if is_plain else below(path, name))


def _attention(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield rows of PyTorch's `in_proj_weight` and `in_proj_bias`, or its three weights where sizes differ."""
    inside = {name: module.__dict__[name] for name in ("q", "k", "v")}
    shapes = [layer.weight.shape for layer in inside.values() if type(layer) is Linear and layer.weight is not None]
    ends = np.cumsum([0, *(shape[0] for shape in shapes)]).tolist()
    # PyTorch's layer has as many features of keys as of queries, and one array where all read the same features
    has_layer = len(shapes) == 3 and (not names.writes or {shape[0] for shape in shapes} == {shapes[0][1]})
    in_one = has_layer and (not names.writes or len({shape[1] for shape in shapes}) == 1)
    for name in module.layout.names:
        child = module.__dict__[name]
        if name not in inside or not has_layer:
            theirs = ("out_proj",) if name == "out" and (has_layer or not names.writes) else ()
            yield from names.places(child, names.known(path, *theirs, name))
            continue
        n = list(inside).index(name)
        for own in child.layout.names:
            if child.__dict__[own] is None:
                continue
            joint = below(path, f"in_proj_{own}")
            if names.has(joint) and (in_one or own == "bias"):
                yield Part(joint, ends[n], ends[n + 1], ends[-1])
            else:
                yield Part(names.known(path, *([f"{name}_proj_weight"] if own == "weight" else []), f"{name}.{own}"))


def _recurrent(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield names with the layer and the direction of a cell: `weight_ih_l1_reverse`."""
    directions = 2 if module.bidirectional else 1
    for name in module.layout.names:
        if name != "cells":
            yield from names.places(module.__dict__[name], below(path, name))
            continue
        for n, cell in enumerate(module.cells):
            layer, is_reverse = divmod(n, directions)
            for own in cell.layout.names:
                theirs = f"{own}_l{layer}{'_reverse' if is_reverse else ''}"
                yield from names.places(cell.__dict__[own], names.known(path, theirs, f"cells.{n}.{own}"))


def _spectral(names: _Names, module: Any, path: str) -> Iterator[Place]:
    kept = f"parametrizations.{module.name}"
    own = {"u": (f"{kept}.0._u", f"{module.name}_u"), "v": (f"{kept}.0._v", f"{module.name}_v")}
    return _parametrized(names, module, path, own, (f"{kept}.original", f"{module.name}_orig"))


def _weight_norm(names: _Names, module: Any, path: str) -> Iterator[Place]:
    kept = f"parametrizations.{module.name}"
    own = {"g": (f"{kept}.original0", f"{module.name}_g")}
    return _parametrized(names, module, path, own, (f"{kept}.original1", f"{module.name}_v"))


def _parametrized(
    names: _Names, module: Any, path: str, own: Mapping[str, tuple[str, ...]], weight: tuple[str, ...]
) -> Iterator[Place]:
    """Yield the places of a layer whose weight is computed: PyTorch keeps all arrays in the layer itself."""
    for name in module.layout.names:
        if name != "layer":
            yield from names.places(module.__dict__[name], names.known(path, *own.get(name, ()), name))
            continue
        for inner in module.layer.layout.names:
            theirs = weight if inner == module.name else (inner,)
            child = module.layer.__dict__[inner]
            yield from names.places(child, names.known(path, *theirs, f"layer.{inner}"))


def _block(names: _Names, module: Any, path: str) -> Iterator[Place]:
    """Yield PyTorch's names of an encoder's or a decoder's layer; of a gated network the model's own."""
    theirs: dict[str, tuple[str, ...]] = {"attention": ("self_attn",), "cross": ("multihead_attn",)}
    if module.cross is not None and names.has(below(path, "norm3")):
        theirs |= {"norm_cross": ("norm2",), "norm2": ("norm3",)}
    for name in module.layout.names:
        child = module.__dict__[name]
        if name != "mlp" or not isinstance(child, FeedForward) or child.gate is not None:
            yield from names.places(child, names.known(path, *theirs.get(name, ()), name))
            continue
        inside = {"up": ("linear1",), "down": ("linear2",)}
        for inner in child.layout.names:
            own = names.known(path, *inside.get(inner, ()), f"mlp.{inner}")
            yield from names.places(child.__dict__[inner], own)


def _blocks(names: _Names, module: Any, path: str) -> Iterator[Place]:
    return names.children(module, path, {"blocks": ("layers",)})


_RULES: dict[type | tuple[type, ...], Callable[[_Names, Any, str], Iterator[Place]]] = {
    (Sequential, Residual): _sequential, Remat: _remat, Stack: _stack, LoRA: _lora, MultiheadAttention: _attention,
    (RNN, LSTM, GRU): _recurrent, SpectralNorm: _spectral, WeightNorm: _weight_norm, TransformerBlock: _block,
    (TransformerEncoder, TransformerDecoder): _blocks,
}  # fmt: skip
