"""Concurrency of threads, and the stamps by which races are seen.

Time is counted in epochs. A barrier, a new block and a new iteration of a parallel loop begin one each. Two accesses to
one cell, a write among them, race if they are of different threads in the same epoch. They also race if they are of
different blocks or parallel iterations of the same loop. The iterations run one after another here. So the second kind
is seen by comparing epochs with the first ones of the loop and of its iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

SEVERAL: Final = -1  # in place of a thread's number: more than one of them read


class Deed(Enum):
    """Effect of an access."""

    READ = "reads"
    WRITE = "writes"
    ATOMIC = "updates"

    __hash__ = object.__hash__  # Enum's own is slow Python, and each access looks its deed up


_CONFLICTS: Final = {
    Deed.READ: (Deed.WRITE, Deed.ATOMIC),
    Deed.WRITE: (Deed.READ, Deed.WRITE, Deed.ATOMIC),
    Deed.ATOMIC: (Deed.READ, Deed.WRITE),
}


@dataclass(slots=True)
class Level:
    """A loop whose iterations may run concurrently: the epochs at which it and its iteration began."""

    start: int
    current: int
    is_block: bool


@dataclass(slots=True)
class Clock:
    """The current epoch, the loops around, and the numbers of the threads of the block (None outside)."""

    epoch: int = 1
    levels: list[Level] = field(default_factory=list)
    threads: Array | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether updates are atomic: within blocks and threads."""
        return self.threads is not None or any(level.is_block for level in self.levels)

    @property
    def concurrent(self) -> bool:
        """Whether any code may run concurrently with the current statement."""
        return self.threads is not None or bool(self.levels)

    def tick(self) -> None:
        """Begin an epoch: earlier accesses of the block are ordered before later ones."""
        self.epoch += 1

    def enter(self, *, is_block: bool) -> Level:
        """Begin a loop of independent iterations."""
        self.tick()
        level = Level(self.epoch, self.epoch, is_block)
        self.levels.append(level)
        return level

    def iterate(self, level: Level) -> None:
        """Begin a level's next iteration."""
        self.tick()
        level.current = self.epoch

    def leave(self) -> None:
        """End a level: all iterations are done."""
        self.levels.pop()
        self.tick()


class Stamps:
    """The last access of each deed to each cell: its epoch (0: never) and thread."""

    __slots__ = ("_epochs", "_threads", "epochs", "threads")

    def __init__(self, cells: int) -> None:
        self.epochs = {deed: np.zeros(cells, np.int64) for deed in Deed}
        self.threads = {deed: np.zeros(cells, np.int32) for deed in Deed}
        self._epochs = {deed: array.data for deed, array in self.epochs.items()}  # views for single elements
        self._threads = {deed: array.data for deed, array in self.threads.items()}  # which are ints

    def race(self, deed: Deed, cells: Array, threads: Array | int, clock: Clock) -> int | None:
        """Stamp accesses to `cells` by `threads` (of equal shape, or one for all).

        Returns the position in `cells` of one that races with an earlier access, or with another of these.
        """
        threads = np.broadcast_to(np.asarray(threads, np.int32), cells.shape)
        for earlier in _CONFLICTS[deed]:
            epochs = self.epochs[earlier][cells]
            bad = (epochs == clock.epoch) & (self.threads[earlier][cells] != threads)
            for level in clock.levels:
                bad |= (epochs >= level.start) & (epochs < level.current)
            if bad.any():
                return int(np.flatnonzero(bad)[0])
        return self._stamp(deed, cells, threads, clock.epoch)

    def races_at(self, deed: Deed, cell: int, clock: Clock) -> bool:
        """Whether one access outside blocks of threads races with an earlier one; as `race` for a single cell."""
        now = clock.epoch
        for earlier in _CONFLICTS[deed]:
            then = self._epochs[earlier][cell]
            if then == now and self._threads[earlier][cell] != 0:
                return True
            for level in clock.levels:
                if level.start <= then < level.current:
                    return True
        epochs, holders = self._epochs[deed], self._threads[deed]
        again = epochs[cell] == now and holders[cell] != 0
        epochs[cell], holders[cell] = now, SEVERAL if again else 0
        return again and deed is Deed.WRITE

    def _stamp(self, deed: Deed, cells: Array, threads: Array, epoch: int) -> int | None:
        holders = self.threads[deed]
        again = (self.epochs[deed][cells] == epoch) & (holders[cells] != threads)
        self.epochs[deed][cells] = epoch
        holders[cells] = threads
        shared = again | (holders[cells] != threads)
        if not shared.any():
            return None
        if deed is Deed.WRITE:
            return int(np.flatnonzero(shared)[0])
        holders[cells[shared]] = SEVERAL
        return None
