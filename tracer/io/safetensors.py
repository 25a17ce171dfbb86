"""Files of arrays in the safetensors format: eight bytes with the header's length, the header as JSON, the arrays.

The format is Hugging Face's: https://huggingface.co/docs/safetensors. A file holds no code. Readers check all of the
header before they allocate anything, since a file may be cut, damaged or hostile.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import ml_dtypes
import numpy as np

from tracer.errors import CheckpointError, message
from tracer.trace.source import here

TYPES: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("?"), "U8": np.dtype("u1"), "I8": np.dtype("i1"), "U16": np.dtype("<u2"), "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"), "I32": np.dtype("<i4"), "U64": np.dtype("<u8"), "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "C64": np.dtype("<c8"),
    "BF16": np.dtype(ml_dtypes.bfloat16), "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip
NAMES: Final = {dtype: name for name, dtype in TYPES.items()}

_LONGEST: Final = 100_000_000  # bytes of a header, as Hugging Face's reader bounds it
_DEEPEST: Final = 64  # nesting of the header's JSON
_WORD: Final = 8


class Entry(NamedTuple):
    """Array of a file. start, stop: its bytes behind the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


class Contents(NamedTuple):
    """Header of a file. base: the bytes before the first array."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    base: int


def write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> None:
    """Write a file atomically: under another name, synchronised, then renamed."""
    ordered = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # so all are aligned
    described: dict[str, Any] = {"__metadata__": dict(metadata)}
    start = 0
    for name in ordered:
        stop = start + arrays[name].nbytes
        array = arrays[name]
        described[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    text = json.dumps(described).encode()
    text += b" " * (-len(text) % _WORD)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)))
            file.write(text)
            for name in ordered:
                file.write(raw(arrays[name]))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def raw(array: np.ndarray[Any, Any]) -> Any:
    """Return the bytes of an array, in C's order, without a copy where it lies so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def contents(path: Path) -> Contents:
    """Return the checked header of a file. Raises CheckpointError if the file is no whole safetensors file."""
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            if size < _WORD:
                refuse(path, f"the file has {size} bytes, expected at least {_WORD}")
            (length,) = struct.unpack("<Q", file.read(_WORD))
            if length > min(_LONGEST, size - _WORD):
                refuse(path, f"the header says it has {length} bytes, and the file has {size}")
            text = file.read(length)
    except OSError as error:
        raise CheckpointError(message(f"load{here()} cannot read {path}", str(error))) from None
    described = _parsed(path, text)
    metadata = described.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        refuse(path, "__metadata__ holds other values than text")
    entries = {name: _entry(path, name, value) for name, value in described.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != end:
            refuse(path, f"array {name} starts at byte {entry.start}, expected {end}")
        end = entry.stop
    if _WORD + length + end != size:
        refuse(path, f"the file has {size} bytes, expected {_WORD + length + end}")
    return Contents(entries, metadata, _WORD + length)


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            twice = next(name for n, (name, _) in enumerate(pairs) if name in dict(pairs[:n]))
            refuse(path, f"the header has the name {twice!r} twice")
        return made

    depth = deepest = 0
    for byte in text:  # brackets in names count, too: no name of ours has so many
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        refuse(path, f"the header is nested {deepest} deep")
    try:
        described = json.loads(text.decode("utf-8"), object_pairs_hook=object_of)
    except ValueError as error:  # of UTF-8, of JSON, and of integers with thousands of digits
        refuse(path, f"the header is not JSON: {error}")
    if not isinstance(described, dict):
        refuse(path, "the header is not a JSON object")
    return described


def _entry(path: Path, name: str, value: Any) -> Entry:
    try:
        dtype, shape, (start, stop) = TYPES[value["dtype"]], value["shape"], value["data_offsets"]
        numbers = [*shape, start, stop]
    except (KeyError, TypeError, ValueError):
        refuse(path, f"array {name} is not described by a dtype, a shape and its bytes: {str(value)[:80]}")
    if any(type(number) is not int or number < 0 for number in numbers):
        refuse(path, f"array {name} is described by other numbers than integers of at least 0: {str(value)[:80]}")
    if stop - start != dtype.itemsize * math.prod(shape) or math.prod(shape) >= 1 << 62:
        refuse(path, f"array {name} of {value['dtype']} {list(shape)} has {stop - start} bytes")
    return Entry(dtype, tuple(shape), start, stop)


def read(path: Path, found: Contents, name: str, *, mmap: bool) -> np.ndarray[Any, Any]:
    """Return an array of a file: in memory of its own, or with `mmap` as a memory map that cannot be written."""
    entry = found.entries[name]
    if mmap and entry.stop > entry.start:
        return np.memmap(path, entry.dtype, "r", found.base + entry.start, entry.shape)
    data = np.fromfile(path, np.uint8, entry.stop - entry.start, offset=found.base + entry.start)
    if data.nbytes != entry.stop - entry.start:
        refuse(path, f"array {name} ends after {data.nbytes} of {entry.stop - entry.start} bytes")
    return data.view(entry.dtype).reshape(entry.shape)


def refuse(path: Path, *lines: str) -> NoReturn:
    """Raise CheckpointError for a file that is damaged."""
    raise CheckpointError(message(f"{path}{here()} is damaged, or not a file of safetensors", *lines))
