"""`load_weights`: arrays of other programs' files and state dicts, put into a model by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import CheckpointError, message
from tracer.io import safetensors
from tracer.io.name_errors import refuse_names
from tracer.io.saving import dotted, named_leaves
from tracer.io.state_dicts import UNREAD, gathered, names_of, places
from tracer.io.tensors import as_numpy
from tracer.nn.selecting import Where, at
from tracer.trace import trees
from tracer.trace.source import here


def load_weights(
    model: Any, weights: str | PathLike[str] | Mapping[str, Any], *,
    rename: Mapping[str, str] | Callable[[str], str | None] | None = None, transposed: Sequence[str] = (),
    where: Where | None = None, strict: bool = True,
) -> Any:  # fmt: skip
    """Return the model with arrays from a file or a dict, matched by their names, in the model's dtypes.

    weights: a safetensors file, an index of several (`*.index.json`), or a dict of arrays, such as PyTorch's
    `state_dict`. rename: parts of their names, each between dots, and the model's parts in their place; or a
    function from their names to the model's, None for arrays to leave out. transposed: parts of names whose matrices
    are stored [n, m], such as in `Conv1D` of Hugging Face. where: the arrays to load, as in `nn.at`; other arrays stay.
    strict: whether the names must be exactly the model's. Raises CheckpointError for other names and shapes.

    PyTorch's names are known for attention, recurrent layers, encoders, decoders, sequences, spectral and weight norms:
    `in_proj_weight` fills q, k and v. A `Stack` takes the arrays of a list of layers, and a list a `Stack`'s arrays.

    >>> layer = nn.Linear(2, 3, key=tracer.random.key(0))
    >>> weights = {"fc.weight": np.ones((3, 2), "float32"), "fc.bias": np.zeros(3, "float32")}
    >>> loaded = tracer.io.load_weights({"head": layer}, weights, rename={"fc": "head"})
    >>> loaded["head"](tnp.ones(2, "float32"))
    Array([2., 2., 2.], f32)
    """
    given: dict[str, Any] = {}
    for theirs, array in _arrays(weights).items():
        if (name := _renamed(theirs, rename)) is not None:
            given[name] = _turned(as_numpy(array)) if _has_part(theirs, transposed) else as_numpy(array)
    wanted = named_leaves(model)
    given = dict(_unstacked(given, wanted))
    chosen = set(wanted) if where is None else _chosen(model, where)
    found = dict(zip(wanted, places(model, given), strict=True))
    there = {name: all(part in given for part in names_of(place)) for name, place in found.items()}
    unfilled = [name for name in wanted if name in chosen and not there[name] and hasattr(wanted[name], "shape")]
    missing = list(dict.fromkeys(part for name in unfilled for part in names_of(found[name]) if part not in given))
    read = {part for place in found.values() for part in names_of(place)}
    extra = [name for name in given if name not in read and name.rpartition(".")[2] != UNREAD]
    source = Path(weights) if isinstance(weights, str | PathLike) else Path("the dict")
    if strict and (missing or (extra and where is None)):
        refuse_names("load_weights", source, missing, extra)
    leaves, structure = trees.flatten(model)
    result = [
        _converted(name, leaf, gathered(found[name], given)) if name in chosen and there[name] else leaf
        for name, leaf in zip(wanted, leaves, strict=True)
    ]
    return trees.unflatten(structure, result)


def _unstacked(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays by name. A `Stack`'s arrays, `layers.weight`, come by layer where the model has a list."""
    for name, array in given.items():
        start, found, rest = f".{name}".rpartition(".layers.")
        for way in ("", ".layers") if found and name not in wanted and array.ndim else ():
            rows = [f"{start}{way}.{n}.{rest}".removeprefix(".") for n in range(len(array))]
            if rows and all(row in wanted for row in rows):
                yield from zip(rows, array, strict=True)
                break
        else:
            yield name, array


def _has_part(name: str, parts: Sequence[str]) -> bool:
    return any(f".{part}." in f".{name}." for part in parts)


def _turned(array: Any) -> Any:
    return array.T if array.ndim == 2 else array


def _arrays(weights: str | PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(weights, Mapping):
        return dict(weights)
    path = Path(weights)
    if path.name.endswith(".index.json"):
        try:
            files = set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise CheckpointError(message(f"load_weights{here()} cannot read {path}", str(error))) from None
        inside = [path.parent / Path(str(file)).name for file in sorted(files)]
        return {name: array for file in inside for name, array in _arrays(file).items()}
    found = safetensors.contents(path)
    return {name: safetensors.read(path, found, name, mmap=True) for name in found.entries}


def _renamed(name: str, rename: Mapping[str, str] | Callable[[str], str | None] | None) -> str | None:
    if rename is None:
        return name
    if callable(rename):
        return rename(name)
    for old, new in rename.items():
        name = re.sub(rf"(?:(?<=\.)|^){re.escape(old)}(?=\.|$)", new, name)
    return name


def _chosen(model: Any, where: Where) -> set[str]:
    selected = [dotted(path) for path in at(model, where).paths()]
    return {name for name in named_leaves(model) for path in selected if f"{name}.".startswith(f"{path}.")}


def _converted(name: str, like: Any, array: Any) -> Any:
    if tuple(array.shape) != tuple(like.shape):
        raise CheckpointError(
            message(
                f"load_weights{here()}: {name} has another shape",
                f"expected {list(like.shape)}, got {list(array.shape)}",
                help="transposed= names parts that are to be turned"
                if tuple(array.shape) == tuple(like.shape)[::-1]
                else None,
            )
        )
    return tnp.asarray(np.asarray(array), like.dtype, copy=True)
