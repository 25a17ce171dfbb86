"""`save` and `load`: trees of arrays and numbers as one file, by the paths of their leaves."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from tracer import numpy as tnp
from tracer import random
from tracer.errors import ArgumentError, CheckpointError, message
from tracer.io import safetensors
from tracer.io.name_errors import refuse_names
from tracer.ir.types import ArrayType
from tracer.nn.module import Module, parts
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.source import here

_FORMAT: Final = "tracer 1"


class Header(NamedTuple):
    """Contents of a file without its data. types: dtype and shape by the arrays' names; scalars: the other leaves."""

    types: dict[str, tuple[str, tuple[int, ...]]]
    scalars: dict[str, Any]
    meta: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Names of all leaves."""
        return sorted((*self.types, *self.scalars))


def dotted(path: str) -> str:
    """Return a path as PyTorch writes it: "blocks[0].norm['a']" as "blocks.0.norm.a"."""
    return re.sub(r"\[(?:'([^']*)'|([^\]]*))\]", r".\1\2", path).lstrip(".")


def named_leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a tree by their names, in its order. Raises ArgumentError for a name that occurs twice."""
    found: dict[str, Any] = {}
    for path, leaf, _ in parts(tree):
        name = dotted(path) or "tree"
        if name in found:
            raise ArgumentError(
                message(
                    f"save{here()}: two leaves have the name {name!r}",
                    help="keys of dicts should have no dots, and not be numbers beside a list's",
                )
            )
        found[name] = leaf
    return found


def save(path: str | PathLike[str], tree: Any, *, meta: Mapping[str, Any] | None = None) -> None:
    """Write a tree to a file, atomically: readers find the whole file or none.

    tree: of arrays, keys, numbers, text and None, in dicts, lists, tuples, registered classes and modules. meta: kept
    beside it as JSON. The file is of the safetensors format, one array a leaf. Raises ArgumentError for other leaves.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tracer.io.save(f"{folder}/a.safetensors", [tnp.ones(2), {"rate": 0.1}], meta={"run": 7})
    ...     tracer.io.header(f"{folder}/a.safetensors")
    Header(types={'0': ('float64', (2,))}, scalars={'1.rate': 0.1}, meta={'run': 7})
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    scalars: dict[str, Any] = {}
    notes: dict[str, str] = {}  # kinds of arrays that the format does not express
    for name, leaf in named_leaves(tree).items():
        if isinstance(leaf, bool | int | float | str | complex):
            scalars[name] = _scalar(leaf)
        else:
            arrays[name], note = _stored(name, leaf)
            if note:
                notes[name] = note
    info = {
        "format": _FORMAT,
        "scalars": scalars,
        "notes": notes,
        "tree": _outline(tree),
        "meta": dict(meta or {}),
        "crc32": {name: _crc(array) for name, array in arrays.items()},
    }
    try:
        text = json.dumps(info)
    except TypeError as error:
        raise ArgumentError(message(f"save{here()}: meta must be JSON", str(error))) from None
    target = Path(path)
    try:
        safetensors.write(target, arrays, {"tracer": text, "crc32": str(zlib.crc32(text.encode()))})
    except OSError as error:
        raise CheckpointError(message(f"save{here()} cannot write {target}", str(error))) from error


def header(path: str | PathLike[str]) -> Header:
    """Return the names, types, scalars and `meta` of a file, without reading its arrays."""
    found = safetensors.contents(Path(path))
    info = _info(Path(path), found)
    types = {name: (entry.dtype.name, entry.shape) for name, entry in found.entries.items()}
    return Header(types, {name: _number(value) for name, value in info["scalars"].items()}, info["meta"])


def load(path: str | PathLike[str], like: Any = None, *, strict: bool = True, mmap: bool = False) -> Any:
    """Return the tree of a file.

    like: a tree with the structure of the result, whose arrays may be abstract, as `tracer.eval_shape` makes them;
    without it modules and named tuples become dicts. strict: whether the file's leaves must be exactly the tree's; else
    missing leaves are taken from `like`. mmap: whether arrays are memory maps of NumPy. Raises
    CheckpointError for damaged files, other names, shapes or dtypes, each with the name and the expected value.
    """
    file = Path(path)
    found = safetensors.contents(file)
    info = _info(file, found)
    values = {name: _number(value) for name, value in info["scalars"].items()}

    def value_of(name: str) -> Any:
        if name in values:
            return values[name]
        if name not in found.entries:
            safetensors.refuse(file, f"the array {name} is missing")
        return _restored(file, found, info, name, mmap)

    if like is None:
        return _grown(file, info["tree"], value_of) if info["tree"] is not None else _nested(found.entries, value_of)
    wanted = named_leaves(like)
    there = values.keys() | found.entries.keys()
    if strict and (missing := wanted.keys() - there) | (extra := there - wanted.keys()):
        refuse_names(
            "load", file, [n for n in wanted if n in missing], [n for n in (*found.entries, *values) if n in extra]
        )
    leaves, structure = trees.flatten(like)
    result = [
        _fitting(file, name, leaf, value_of(name)) if name in there else leaf
        for name, leaf in zip(wanted, leaves, strict=True)
    ]
    return trees.unflatten(structure, result)


def _crc(array: np.ndarray[Any, Any]) -> int:
    """Return the checksum of an array's bytes, dtype and shape."""
    return zlib.crc32(f"{array.dtype.name} {array.shape}".encode(), zlib.crc32(safetensors.raw(array)))


def _info(path: Path, found: safetensors.Contents) -> dict[str, Any]:
    """Return the description that `save` wrote beside the arrays; for other programs' files their metadata alone."""
    text = found.metadata.get("tracer")
    if text is None and "crc32" not in found.metadata:
        return {"scalars": {}, "notes": {}, "tree": None, "meta": dict(found.metadata), "crc32": {}}
    if text is None or str(zlib.crc32(text.encode())) != found.metadata.get("crc32"):
        safetensors.refuse(path, "the description of the tree has changed since it was written")
    info: dict[str, Any] = json.loads(text)
    if info["format"] != _FORMAT:
        safetensors.refuse(path, f"expected the format {_FORMAT!r}, got {info['format']!r}")
    return info


def _stored(name: str, leaf: Any) -> tuple[np.ndarray[Any, Any], str]:
    """Return the array that a file holds for a leaf, and a note on properties that the format cannot express."""
    note = "weak" if isinstance(leaf, Array) and leaf.weak_type else ""
    if isinstance(leaf, Array) and not isinstance(leaf.type, ArrayType):
        leaf, note = random.key_data(leaf), "key"
    if not isinstance(leaf, Array | np.ndarray | np.generic):
        raise ArgumentError(
            message(
                f"save{here()}: {name} is no array, number or text",
                f"got {type(leaf).__name__}",
                help="register its class as a node, or leave it out",
            )
        )
    array = np.asarray(leaf)
    if array.dtype == np.complex128:
        return np.asarray(array, order="C")[..., None].view(np.float64), "complex128"
    if array.dtype.newbyteorder("<") not in safetensors.NAMES:
        raise ArgumentError(
            message(f"save{here()}: the format has no dtype for {name}", f"got {array.dtype}", help="cast it first")
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False), note


def _restored(path: Path, found: safetensors.Contents, info: dict[str, Any], name: str, mmap: bool) -> Any:
    array = safetensors.read(path, found, name, mmap=mmap)
    crc = info["crc32"].get(name)
    if crc is not None and not mmap and _crc(array) != crc:
        safetensors.refuse(path, f"the bytes of {name} have changed since they were written")
    note = info["notes"].get(name, "")
    if note == "complex128":
        array = array.view(np.complex128)[..., 0]
    if note == "key":
        return random.wrap_key_data(array)
    if mmap:
        return array
    return concrete(array, True) if note == "weak" else tnp.asarray(array, copy=True)


def _scalar(leaf: complex | str) -> Any:
    """Return a number or text as JSON; floats in hexadecimal, so that all bits are kept."""
    if isinstance(leaf, float):
        return {"float": leaf.hex()}
    if isinstance(leaf, complex):
        return {"complex": [leaf.real.hex(), leaf.imag.hex()]}
    return leaf


def _number(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float.fromhex(value["float"])
    return complex(*map(float.fromhex, value["complex"]))


def _outline(tree: Any, path: str = "") -> Any:
    """Return the structure as JSON: names of leaves in dicts, lists and tuples."""
    if tree is None:
        return None
    if isinstance(tree, Module):
        own = tree.__dict__
        return {"dict": {name: _outline(own[name], f"{path}.{name}") for name in tree.layout.names}}
    if trees.is_leaf(tree):
        return dotted(path) or "tree"
    children = [(entry, _outline(child, f"{path}{entry}")) for child, entry in trees.children_with_entries(tree)]
    if isinstance(tree, list) or type(tree) is tuple:
        return {"list" if isinstance(tree, list) else "tuple": [part for _, part in children]}
    return {"dict": {dotted(entry): part for entry, part in children}}


def _grown(path: Path, outline: Any, value_of: Any) -> Any:
    match outline:
        case str(name):
            return value_of(name)
        case {"dict": dict(parts_)}:
            return {name: _grown(path, part, value_of) for name, part in parts_.items()}
        case {"list": list(items)}:
            return [_grown(path, item, value_of) for item in items]
        case {"tuple": list(items)}:
            return tuple(_grown(path, item, value_of) for item in items)
        case _:
            pass
    if outline is not None:
        safetensors.refuse(path, f"the tree is not described by names: {str(outline)[:80]}")
    return None


def _nested(names: Mapping[str, Any], value_of: Any) -> dict[str, Any]:
    """Return the arrays of a file of another program in nested dicts, by the dots of their names."""
    result: dict[str, Any] = {}
    for name in names:
        *outer, last = name.split(".")
        place = result
        for part in outer:
            below = place.setdefault(part, {})
            if not isinstance(below, dict):
                return {name: value_of(name) for name in names}
            place = below
        place[last] = value_of(name)
    return result


def _fitting(path: Path, name: str, like: Any, value: Any) -> Any:
    """Return a leaf of a file in place of `like`. Raises CheckpointError for another shape, dtype or kind."""
    is_array = hasattr(like, "dtype") and hasattr(like, "shape")
    if not is_array and not hasattr(value, "dtype"):
        return value
    expected = f"{like.dtype}{list(like.shape)}" if is_array else type(like).__name__
    got = f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else type(value).__name__
    if expected != got:
        raise CheckpointError(
            message(f"load{here()}: {name} of {path} has another type", f"expected {expected}, got {got}")
        )
    return value
