"""Checked memory: accesses are in bounds, read values written through the same buffer, and do not race.

A `Region` is the memory behind a buffer name in a running function: a stretch of some `Memory`. Cells of the arena are
bytes, since buffers of different dtypes share it; elsewhere a cell is an element. Each cell remembers the root buffer
that wrote it last. So a value overwritten before its last reader is seen. It also remembers its last accesses by
concurrent threads (`races`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeGuard

import numpy as np

from tracer.codegen.reference.races import Array, Clock, Deed, Stamps
from tracer.ir.dtypes import BOOL, DType

UNWRITTEN: Final = 0  # in place of a buffer's number

Index = int | Array


class Violation(Exception):  # noqa: N818 - no error of the program's user
    """An access that a program must not make; the interpreter adds where it happened."""


class Memory:
    """Cells, with the buffer that wrote each last, and the threads that accessed it concurrently."""

    __slots__ = ("_stamps", "names", "owners", "ownership")

    def __init__(self, cells: int, names: list[str], *, owner: int = UNWRITTEN) -> None:
        self.owners = np.full(cells, owner, np.int32)
        self.ownership = self.owners.data  # a view for single elements, at a fraction of NumPy's cost
        self.names = names  # of root buffers, by number
        self._stamps: Stamps | None = None

    @property
    def stamps(self) -> Stamps:
        """Access stamps, made when concurrent code runs."""
        if self._stamps is None:
            self._stamps = Stamps(len(self.owners))
        return self._stamps


@dataclass(frozen=True, slots=True)
class Update:
    """How an update goes: its operation, whether it is atomic, the shape of the lanes that make one each."""

    function: Callable[[Any, Any], Any]
    deed: Deed
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """size elements of `data` from its start, whose first cell is `origin`, with `unit` cells an element.

    owner: the number of the root buffer. private: each thread has `size` elements of its own. bool is held as uint8.
    """

    name: str
    dtype: DType
    size: int
    data: Array
    memory: Memory
    owner: int
    origin: int = 0
    unit: int = 1
    read_only: bool = False
    private: bool = False

    def as_private(self) -> Region:
        """Return the region as one per thread: `data` holds `size` elements for every thread."""
        return replace(self, private=True)

    def part(self, name: str, start: int, size: int) -> Region:
        """Return `size` elements from `start` on, under another name."""
        self._check(start, size)
        data, origin = self.data[start : start + size], self.origin + start * self.unit
        return Region(name, self.dtype, size, data, self.memory, self.owner, origin, self.unit, self.read_only)

    def overlaps(self, other: Region) -> bool:
        """Whether two regions share a cell."""
        if self.memory is not other.memory or not self.size or not other.size:
            return False
        ends = (self.origin + self.size * self.unit, other.origin + other.size * other.unit)
        return self.origin < ends[1] and other.origin < ends[0]

    def _check(self, start: int, count: int) -> None:
        if start < 0 or start + count > self.size:
            raise Violation(f"'{self.name}' has {self.size} elements, not those from {start} to {start + count}")

    # -- elements ----------------------------------------------------------------------------------

    def read(self, index: Index, active: Array | None, clock: Clock) -> Any:
        """Return the values at `index`; arbitrary ones where `active` is false."""
        if isinstance(index, int) and not self.private and (active is None or clock.threads is None):
            absent = active is not None and not active.any()
            return self.dtype.type(0) if absent else self._read_one(index, clock)
        if self._along(index, (), active, clock):
            return self._read_lanes(index, active, clock)
        where, chosen = self._spread(index, (), active, clock)
        safe = np.where(chosen, where, 0)
        picked = safe[chosen]
        self._readable(picked)
        self._race(Deed.READ, picked, chosen, clock)
        if not len(self.data):
            return np.zeros(chosen.shape, self.dtype)
        return self._out(self.data[safe], chosen)

    def _read_one(self, index: int, clock: Clock) -> Any:
        if not 0 <= index < self.size:
            raise Violation(f"reads '{self.name}' at {index} of {self.size}")
        first, unit = self.origin + index * self.unit, self.unit
        if unit > 1:
            if self.memory.ownership[first : first + unit].tobytes() != _mark(self.owner, unit):
                self._readable(np.array([index]))
        elif self.memory.ownership[first] == UNWRITTEN:
            raise Violation(f"reads '{self.name}' at {index} before anything was written there")
        if clock.concurrent:
            self._race_one(Deed.READ, index, clock)
        value = self.data[index]
        return self._out(np.array([value]), np.array([True]))[0] if self.dtype == BOOL else value

    def _read_lanes(self, index: Array, active: Array | None, clock: Clock) -> Any:
        picked = self._picked(index, active)
        self._readable(picked)
        self._race(Deed.READ, picked, active, clock)
        if active is None:
            return self._out(self.data[index], picked >= 0)
        if not len(self.data):
            return np.zeros(index.shape, self.dtype)
        return self._out(self.data[np.where(active, index, 0)], active)

    def write(self, index: Index, values: Any, active: Array | None, clock: Clock) -> None:
        """Store where `active` holds; on equal indices the last lane's value stays."""
        self._writable()
        if isinstance(index, int) and active is None and not np.ndim(values) and clock.threads is None:
            if not 0 <= index < self.size:
                raise Violation(f"writes '{self.name}' at {index} of {self.size}")
            if clock.concurrent:
                self._race_one(Deed.WRITE, index, clock)
            self.data[index] = values
            first = self.origin + index * self.unit
            self.memory.owners[first : first + self.unit] = self.owner
            return
        if self._along(index, np.shape(values), active, clock):
            picked = self._picked(index, active)
            self._race(Deed.WRITE, picked, active, clock)
            self.data[picked] = values if active is None or not np.ndim(values) else values[active]
            self.memory.owners[self._cells(picked)] = self.owner
            return
        where, chosen = self._spread(index, np.shape(values), active, clock)
        picked = where[chosen]
        self._race(Deed.WRITE, picked, chosen, clock)
        self.data[picked] = np.broadcast_to(values, chosen.shape)[chosen]
        self.memory.owners[self._cells(picked)] = self.owner

    def update(self, index: Index, values: Any, active: Array | None, clock: Clock, how: Update) -> None:
        """Update data[index] = how.function(data[index], value), one lane after another."""
        self._writable()
        where, chosen = self._spread(index, np.broadcast_shapes(how.lanes, np.shape(values)), active, clock)
        picked, given = where[chosen], np.broadcast_to(values, chosen.shape)[chosen]
        self._readable(picked)
        self._race(how.deed, picked, chosen, clock)
        if len(np.unique(picked)) == len(picked):
            everywhere = np.ones(len(picked), np.bool_)
            self.data[picked] = how.function(self._out(self.data[picked], everywhere), given)
        else:
            for at, value in zip(picked.tolist(), given, strict=True):
                old = self._out(self.data[at : at + 1], np.array([True]))[0]
                self.data[at] = how.function(old, value)

    def _writable(self) -> None:
        if self.read_only:
            raise Violation(f"writes to '{self.name}', which is read only")

    def _along(self, index: Index, shape: tuple[int, ...], active: Array | None, clock: Clock) -> TypeGuard[Array]:
        """Whether each lane of a vector loop has its own index, outside blocks of threads, so no axis is spread."""
        if not isinstance(index, np.ndarray) or index.ndim != 1 or clock.threads is not None or self.private:
            return False
        return (not shape or shape == index.shape) and (active is None or active.shape == index.shape)

    def _picked(self, index: Array, active: Array | None) -> Array:
        """Return the indices of the active lanes. Raises Violation for one out of bounds."""
        picked = index if active is None else index[active]
        if len(picked) and (picked.min() < 0 or picked.max() >= self.size):
            outside = picked[(picked < 0) | (picked >= self.size)]
            raise Violation(f"accesses '{self.name}' at {int(outside[0])} of {self.size}")
        return picked

    def _spread(self, index: Index, shape: tuple[int, ...], active: Array | None, clock: Clock) -> tuple[Array, Array]:
        """Return the indices into `data` of all lanes here, and the lanes whose access happens."""
        places = np.asarray(index, np.int64)
        shapes = [places.shape, shape]
        shapes += [] if active is None else [active.shape]
        shapes += [] if clock.threads is None else [clock.threads.shape]
        full = np.broadcast_shapes(*shapes)
        places = np.broadcast_to(places, full)
        chosen = np.broadcast_to(np.True_ if active is None else active, full)
        outside = chosen & ((places < 0) | (places >= self.size))
        if outside.any():
            raise Violation(f"accesses '{self.name}' at {int(places[outside][0])} of {self.size}")
        if self.private:
            assert clock.threads is not None, "private memory belongs to threads"
            places = places + clock.threads * self.size
        return places, chosen

    def _cells(self, index: Array) -> Array:
        cells = self.origin + index * self.unit
        return cells if self.unit == 1 else cells[..., None] + np.arange(self.unit)

    def _readable(self, index: Array) -> None:
        owners = self.memory.owners[self._cells(index)].reshape(len(index), self.unit)
        wrong = owners != self.owner
        if wrong.any():
            position, cell = (int(i[0]) for i in np.nonzero(wrong))
            at, writer = int(index[position]) % max(self.size, 1), int(owners[position, cell])
            if writer == UNWRITTEN:
                raise Violation(f"reads '{self.name}' at {at} before anything was written there")
            other = self.memory.names[writer]
            raise Violation(f"reads '{self.name}' at {at}, which was overwritten through '{other}'")

    def _race(self, deed: Deed, picked: Array, chosen: Array | None, clock: Clock) -> None:
        """Stamp the accesses. chosen None: one that every thread makes."""
        if self.private or not clock.concurrent or not len(picked):
            return
        threads: Array | int = 0
        if clock.threads is not None and chosen is None:
            threads, picked = clock.threads.ravel(), np.repeat(picked, clock.threads.size)
        elif clock.threads is not None and chosen is not None:
            threads = np.broadcast_to(clock.threads, chosen.shape)[chosen]
        found = self.memory.stamps.race(deed, self.origin + picked * self.unit, threads, clock)
        if found is not None:
            at = int(picked[found])
            raise Violation(f"{deed.value} '{self.name}' at {at} while another thread may access it")

    def _race_one(self, deed: Deed, index: int, clock: Clock) -> None:
        if clock.threads is not None:
            self._race(deed, np.array([index]), None, clock)
        elif self.memory.stamps.races_at(deed, self.origin + index * self.unit, clock):
            raise Violation(f"{deed.value} '{self.name}' at {index} while another thread may access it")

    def _out(self, values: Array, chosen: Array) -> Any:
        if self.dtype != BOOL:
            return values
        if (values[chosen] > 1).any():
            raise Violation(f"reads '{self.name}', of bool, and finds {int(values[chosen].max())}")
        return values.astype(BOOL)

    # -- stretches ---------------------------------------------------------------------------------

    def read_span(self, start: int, count: int, clock: Clock) -> Array:
        """Return a copy of `count` elements from `start` on."""
        self._check(start, count)
        return np.asarray(self.read(np.arange(start, start + count), None, clock))

    def write_span(self, start: int, values: Array, clock: Clock) -> None:
        """Store the values from `start` on."""
        self._check(start, len(values))
        self.write(np.arange(start, start + len(values)), values, None, clock)


@cache
def _mark(owner: int, unit: int) -> bytes:
    """Return the cells of an element written through root buffer number `owner`."""
    return np.full(unit, owner, np.int32).tobytes()
