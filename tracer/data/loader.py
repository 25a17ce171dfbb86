"""`Loader`: batches of a source, epoch after epoch, in an order that a key decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Self

import numpy as np

from tracer import random
from tracer.data.prefetch import ahead
from tracer.data.sources import as_source
from tracer.errors import ArgumentError, message
from tracer.runtime.system.devices import device_put
from tracer.trace.array import Array
from tracer.trace.source import here

_OF_MAP: Final = 1 << 31  # apart from the epochs' keys

Permuted = Callable[[str, int, int], Any]


class Order(NamedTuple):
    """Order of an epoch's rows: one permutation, or one of every window where that would take too much memory.

    whole: rows up to which it is one permutation. block, blocks: rows that lie together, and blocks of a window.
    """

    whole: int = 1 << 26
    block: int = 1024
    blocks: int = 64

    def rows(self, permuted: Permuted, count: int, start: int, stop: int) -> Any:
        """Return the rows from `start` to `stop` of `count`. permuted: permutations by purpose, number and length."""
        if count <= self.whole:
            return permuted("rows", 0, count)[start:stop]
        size = self.block * self.blocks
        last = count // size - 1
        first = min(start // size, last)
        rows = [self._window(permuted, count, n, n == last) for n in range(first, min((stop - 1) // size, last) + 1)]
        return np.concatenate(rows)[start - first * size : stop - first * size]

    def _window(self, permuted: Permuted, count: int, number: int, is_last: bool) -> Any:
        """Return the rows of some blocks, shuffled: memory maps are read in few places at a time."""
        blocks = permuted("blocks", 0, count // self.block)[number * self.blocks :]
        chosen = blocks if is_last else blocks[: self.blocks]
        rows = (chosen[:, None] * self.block + np.arange(self.block)).ravel()
        if is_last:
            rows = np.concatenate([rows, np.arange(count // self.block * self.block, count)])
        return rows[permuted("window", 1 + number, len(rows))]


_ORDER: Final = Order()


class Loader:
    """Batches of a source.

    source: a tree of arrays [n, ...], or an object with `__len__` and `__getitem__` of integers [batch], such as
    `Windows` and `Rows`. batch: rows of a batch. key: shuffles each epoch anew; without it rows come in order. epochs:
    how many, or None for no end. drop_last: whether rows that fill no batch are left out; else the last batch is
    smaller. pad: whether to give (batch, weight), all batches of full size: the weight, float32 [batch], is 0 for rows
    that only fill up. map: function of (batch, key), or of the batch where the loader has no key, for augmentation.
    prefetch: batches that a thread prepares ahead; 0 for none. shard: (index, count) of the process: together the
    processes see the rows of one process with a batch `count` times as large. device: puts the arrays there.

    Arrays of batches are NumPy's, unless `map` or `device` returns Arrays. `state` is the consumer's position in the
    data, and `seek` goes there: nothing is replayed. Raises ArgumentError for a source without a whole batch.

    >>> from tracer import data
    >>> loader = data.Loader({"x": np.arange(5)}, 2, key=tracer.random.key(0), epochs=2, prefetch=0)
    >>> len(loader), len(list(loader)), loader.state
    (2, 4, {'epoch': 2, 'batch': 0})
    """

    def __init__(
        self, source: Any, batch: int, *, key: Array | None = None, epochs: int | None = None, drop_last: bool = True,
        pad: bool = False, map: Callable[..., Any] | None = None, prefetch: int = 2, shard: tuple[int, int] = (0, 1),
        device: Any = None,
    ) -> None:  # fmt: skip
        self._source = as_source(source, "Loader")
        self._batch, self._key, self._epochs, self._pad, self._map = int(batch), key, epochs, pad, map
        self._prefetch, self._device = prefetch, device
        self._index, self._shards = shard
        if batch < 1 or not 0 <= self._index < self._shards:
            raise ArgumentError(
                message(
                    f"Loader{here()} takes a batch of at least 1 and a shard (index, count)",
                    f"got batch={batch!r}, shard={shard!r}",
                )
            )
        together = self._batch * self._shards
        keeps_last = pad or not drop_last
        self._count = -(-len(self._source) // together) if keeps_last else len(self._source) // together
        if self._count < 1:
            raise ArgumentError(
                message(
                    f"Loader{here()}: an epoch has no batch",
                    f"got {len(self._source)} rows for batches of {together}",
                    help="make the batch smaller, or pass drop_last=False or pad=True",
                )
            )
        self._epoch = self._next = 0
        self._kept: dict[str, tuple[tuple[int, int], Any]] = {}

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self._count

    @property
    def epochs(self) -> int | None:
        """The number of epochs, None without an end."""
        return self._epochs

    @property
    def batch_size(self) -> int:
        """The rows of a batch of all shards."""
        return self._batch * self._shards

    @property
    def state(self) -> dict[str, int]:
        """The epoch and the number of its batches that were consumed: an argument for `seek`."""
        return {"epoch": self._epoch, "batch": self._next}

    def seek(self, state: Mapping[str, Any]) -> Self:
        """Go to a position in the data, and return the loader. Raises ArgumentError if an epoch has no such batch."""
        epoch, batch = int(state["epoch"]), int(state["batch"])
        if epoch < 0 or not 0 <= batch < self._count:
            raise ArgumentError(
                message(f"seek{here()}: an epoch has batches 0 to {self._count - 1}", f"got {dict(state)}")
            )
        self._epoch, self._next = epoch, batch
        return self

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches from `state` on."""
        made: Any = self._made(self._epoch, self._next)
        if self._prefetch:
            made = ahead(made, self._prefetch)
        try:
            for epoch, number, batch in made:
                is_last = number + 1 == self._count
                self._epoch, self._next = (epoch + 1, 0) if is_last else (epoch, number + 1)
                yield batch
        finally:
            made.close()

    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield the batches of one epoch, and leave `state` as it is."""
        for number in range(self._count):
            yield self._make(epoch, number)

    def _made(self, epoch: int, number: int) -> Iterator[tuple[int, int, Any]]:
        while self._epochs is None or epoch < self._epochs:
            for n in range(number, self._count):
                yield epoch, n, self._make(epoch, n)
            epoch, number = epoch + 1, 0

    def _make(self, epoch: int, number: int) -> Any:
        place = number * self._shards + self._index
        rows = self._order(epoch, place * self._batch, (place + 1) * self._batch)
        missing = self._batch - len(rows)
        if self._pad:
            rows = np.concatenate([rows, np.zeros(missing, rows.dtype)])
        batch = self._source[rows]
        if self._map is not None and self._key is None:
            batch = self._map(batch)
        elif self._map is not None:
            batch = self._map(batch, random.fold_in(random.fold_in(self._key, _OF_MAP + epoch), place))
        if self._device is not None:
            batch = device_put(batch, self._device)
        if not self._pad:
            return batch
        return batch, (np.arange(self._batch) < self._batch - missing).astype(np.float32)

    def _order(self, epoch: int, start: int, stop: int) -> Any:
        """Return the rows from `start` to `stop` of an epoch's order, fewer at its end."""
        count = len(self._source)
        start, stop = min(start, count), min(stop, count)
        if self._key is None:
            return np.arange(start, stop)
        return _ORDER.rows(partial(self._permuted, epoch), count, start, stop)

    def _permuted(self, epoch: int, order_name: str, number: int, count: int) -> Any:
        """Return a permutation of range(count), kept until another of its kind is asked for."""
        kept = self._kept.get(order_name)
        if kept is None or kept[0] != (epoch, number):
            key = random.fold_in(self._key, epoch)
            order = np.asarray(random.permutation(random.fold_in(key, number) if number else key, count))
            kept = self._kept[order_name] = ((epoch, number), order)
        return kept[1]
