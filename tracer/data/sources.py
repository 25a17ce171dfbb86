"""Sources of rows: trees of arrays, windows of a sequence, datasets of single rows, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tracer import random
from tracer.errors import ArgumentError, ShapeError, message
from tracer.io import safetensors
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


@runtime_checkable
class Source(Protocol):
    """Rows that an array of integers chooses: `source[rows]` is a tree of arrays with the rows along the first axis."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


class Windows:
    """All windows of consecutive elements of a sequence: rows for language models.

    tokens: an array [n], which may be a memory map; length: elements of a window; stride: distance of their starts.
    Rows are arrays [len(rows), length].

    >>> from tracer import data
    >>> windows = data.Windows(np.arange(10), 4, stride=3)
    >>> len(windows), windows[np.array([0, 2])].tolist()
    (3, [[0, 1, 2, 3], [6, 7, 8, 9]])
    """

    def __init__(self, tokens: Any, length: int, stride: int = 1) -> None:
        if np.ndim(tokens) != 1 or not 1 <= length <= len(tokens) or stride < 1:
            raise ArgumentError(
                message(
                    f"Windows{here()} takes a sequence, a length within it, and a stride of at least 1",
                    f"got {np.shape(tokens)}, length={length!r}, stride={stride!r}",
                )
            )
        self.tokens, self.length, self.stride = tokens, length, stride

    def __len__(self) -> int:
        return (len(self.tokens) - self.length) // self.stride + 1

    def __getitem__(self, rows: Any) -> Any:
        return self.tokens[np.asarray(rows)[..., None] * self.stride + np.arange(self.length)]


class Rows:
    """Rows of an object that gives one row for an integer, such as PyTorch's datasets and lists.

    collate: makes an array of the corresponding leaves of all rows.

    >>> from tracer import data
    >>> rows = data.Rows([(1.0, "a"), (2.0, "b"), (3.0, "c")])
    >>> rows[np.array([2, 0])]
    (array([3., 1.]), array(['c', 'a'], dtype='<U1'))
    """

    def __init__(self, dataset: Any, collate: Callable[[Sequence[Any]], Any] = np.stack) -> None:
        self.dataset, self.collate = dataset, collate

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, rows: Any) -> Any:
        return trees.tree_map(lambda *leaves: self.collate(leaves), *(self.dataset[int(row)] for row in rows))


class Arrays:
    """Rows of a tree of arrays with equal first axes."""

    def __init__(self, tree: Any, operation: str) -> None:
        leaves, self._structure = trees.flatten(tree)
        if not leaves:
            raise ArgumentError(message(f"{operation}{here()} takes a tree of arrays", "got no arrays"))
        self._leaves = [leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf) for leaf in leaves]
        sizes = [leaf.shape[:1] for leaf in self._leaves]
        if () in sizes or len(set(sizes)) > 1:
            other = next(n for n, size in enumerate(sizes) if size == () or size != sizes[0])
            names = trees.leaf_names(tree, "source")
            raise ShapeError(
                message(
                    f"{operation}{here()}: the arrays must have equal first axes",
                    f"got {list(self._leaves[0].shape)} for {names[0]} and {list(self._leaves[other].shape)} "
                    f"for {names[other]}",
                )
            )

    def __len__(self) -> int:
        return len(self._leaves[0])

    def __getitem__(self, rows: Any) -> Any:
        return trees.unflatten(self._structure, [leaf[rows] for leaf in self._leaves])


def as_source(source: Any, operation: str) -> Source:
    """Return a tree of arrays, or an object with `__len__` and `__getitem__`, as a source."""
    if isinstance(source, Array | np.ndarray | list | tuple | dict) or not trees.is_leaf(source):
        return Arrays(source, operation)
    if not isinstance(source, Source):
        raise ArgumentError(
            message(
                f"{operation}{here()} takes a tree of arrays, or an object with __len__ and __getitem__",
                f"got {type(source).__name__}",
                help="data.ahead(iterable) prepares the elements of iterators",
            )
        )
    return source


class _Part:
    """Chosen rows of a source."""

    def __init__(self, source: Source, rows: Any) -> None:
        self._source, self._rows = source, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> Any:
        return self._source[self._rows[rows]]


def split(source: Any, parts: Sequence[float], *, key: Array | None = None) -> list[Source]:
    """Divide the rows of a source into parts without common rows.

    parts: their sizes, either integers or shares of all rows; one may be -1, for all remaining rows. key: shuffles the
    rows first. Raises ArgumentError for sizes that are larger than the source.

    >>> from tracer import data
    >>> train, held_out = data.split(np.arange(10), [-1, 0.2], key=tracer.random.key(0))
    >>> len(train), len(held_out)
    (8, 2)
    """
    whole = as_source(source, "split")
    count = len(whole)
    sizes = [part if isinstance(part, int) else round(part * count) for part in parts]
    left = count - sum(size for size in sizes if size != -1)
    if left < 0 or sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise ArgumentError(
            message(f"split{here()} of {count} rows: the parts must fit, at most one of them -1", f"got {list(parts)}")
        )
    sizes = [left if size == -1 else size for size in sizes]
    order = np.arange(count) if key is None else np.asarray(random.permutation(key, count))
    ends = np.cumsum(sizes)
    return [_Part(whole, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def load_npy(path: str | PathLike[str]) -> Any:
    """Return the array of a file of NumPy's as a memory map: rows are read when they are used.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file.name, np.arange(3))
    ...     tracer.data.load_npy(file.name)[1:].tolist()
    [1, 2]
    """
    return np.load(path, mmap_mode="r", allow_pickle=False)


def load_safetensors(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the arrays of a safetensors file by their names, as memory maps: rows are read when they are used.

    Arrays of equal first axes are the source of a loader. Raises CheckpointError for files that are damaged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tracer.io.save(f"{folder}/a.safetensors", {"x": np.arange(3), "y": np.arange(3) ** 2})
    ...     arrays = tracer.data.load_safetensors(f"{folder}/a.safetensors")
    >>> arrays["y"][1:].tolist()
    [1, 4]
    """
    file = Path(path)
    found = safetensors.contents(file)
    return {name: safetensors.read(file, found, name, mmap=True) for name in found.entries}
