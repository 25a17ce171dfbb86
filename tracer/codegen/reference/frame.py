"""State of interpreting: one `Call` of a module, and one `Frame` for each running function.

Values are NumPy. A uniform value is a scalar; in a vector loop a value has the shape (lanes,). The threads of the
outermost thread loop lie along axis -4, then come -3 and -2. So all values broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tracer.codegen.reference.memory import Memory, Region, Violation
from tracer.codegen.reference.races import Array, Clock
from tracer.codegen.status import Status
from tracer.ir import loop
from tracer.ir.dtypes import BOOL

THREAD_AXES: Final = (-4, -3, -2)

Callback = Callable[[Sequence[Array], Sequence[Array]], object]


class Return(Exception):  # noqa: N818 - control flow
    """The running function returns at once."""


class Interrupted(Exception):  # noqa: N818 - control flow
    """The stop word was set."""


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault: its equation, the position within it, and the numbers for its message."""

    site: int
    position: int
    values: tuple[int, ...]


Run = Callable[["Frame", loop.Block], list[Any]]


@dataclass
class Call:
    """One call of a module: the state that its functions share."""

    module: loop.Module
    callbacks: Sequence[Callback]
    iterations: Callable[[range], Sequence[int]]  # order of blocks and parallel iterations
    stop: Callable[[], bool] | None
    stack_limit: int | None  # bytes of one stack
    clock: Clock = field(default_factory=Clock)
    status: Status = Status.DONE
    fault: FaultRecord | None = None
    error: BaseException | None = None
    names: list[str] = field(default_factory=lambda: [""])  # of root buffers, by number
    steps: dict[int, tuple[Callable[[Frame], None], ...]] = field(default_factory=dict)  # of the module's blocks, by id

    def __post_init__(self) -> None:
        self.functions = {function.name: function for function in self.module.functions}
        self.stacks = [bytearray() for _ in range(self.module.stacks)]
        self.arena = np.zeros(self.module.arena, np.uint8)
        self.arena_memory = Memory(self.module.arena, self.names)
        self.arena_regions: dict[loop.Buffer, Region] = {}

    def number(self, buffer: loop.Buffer) -> int:
        """Return a number for a root buffer."""
        self.names.append(buffer.name)
        return len(self.names) - 1

    def region(self, buffer: loop.Buffer, data: Array, *, written: bool, read_only: bool = False) -> Region:
        """Bind the root buffer to fresh memory, or to an array of the caller's."""
        number = self.number(buffer)
        memory = Memory(len(data), self.names, owner=number if written else 0)
        raw = data.view(np.uint8) if buffer.dtype == BOOL else data
        return Region(buffer.name, buffer.dtype, buffer.size, raw, memory, number, read_only=read_only)

    def arena_region(self, buffer: loop.Buffer) -> Region:
        """Return a slice of the arena."""
        found = self.arena_regions.get(buffer)
        if found is None:
            width = buffer.dtype.itemsize
            raw = self.arena[buffer.offset : buffer.offset + buffer.size * width]
            data = raw if buffer.dtype == BOOL else raw.view(buffer.dtype)
            found = self.arena_regions[buffer] = Region(
                buffer.name, buffer.dtype, buffer.size, data, self.arena_memory, self.number(buffer),
                buffer.offset, width,
            )  # fmt: skip
        return found

    def poll(self) -> None:
        """Raise Interrupted if the call is to stop."""
        if self.stop is not None and self.stop():
            raise Interrupted


class Frame:
    """One running function.

    mask: the active lanes and threads; None: all. lanes: of the vector loop around; 0 outside. depth: number of thread
    loops around.
    """

    def __init__(self, call: Call, function: loop.Function, run_block: Run) -> None:
        self.call, self.function, self.run_block = call, function, run_block
        self.values: dict[loop.Register, Any] = {}
        self.regions: dict[loop.Buffer, Region] = {}
        self.mask: Array | None = None
        self.lanes = 0
        self.depth = 0

    @property
    def clock(self) -> Clock:
        return self.call.clock

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of all lanes and threads together."""
        lanes = (self.lanes,) if self.lanes else ()
        threads = self.clock.threads
        return lanes if threads is None else np.broadcast_shapes(threads.shape, lanes)

    def value(self, operand: loop.Operand) -> Any:
        """Return an operand's value."""
        return operand.value if isinstance(operand, loop.Constant) else self.values[operand]

    def run(self, block: loop.Block) -> list[Any]:
        """Run a block and return the values that it yields."""
        return self.run_block(self, block)

    def run_under(self, mask: Array | None, block: loop.Block) -> list[Any]:
        """Run a block with only the lanes of `mask`."""
        outer, self.mask = self.mask, mask
        yields = self.run(block)
        self.mask = outer
        return yields

    def uniform(self, operand: loop.Operand, role: str) -> Any:
        """Return an operand that must be equal in all lanes of a vector."""
        value = self.value(operand)
        if np.shape(value)[-1:] not in ((), (1,)):
            raise Violation(f"{role} varies by lane")
        return value

    def narrowed(self, condition: Any) -> Array | None:
        """Return the active lanes where the condition holds; None if all do."""
        if self.mask is None:
            return None if np.all(condition) else np.asarray(condition)
        return np.asarray(self.mask & condition)

    # -- memory ------------------------------------------------------------------------------------

    def region(self, buffer: loop.Buffer) -> Region:
        """Return the region that a buffer is bound to here."""
        if buffer.space is loop.Space.ARENA:
            return self.call.arena_region(buffer)
        return self.regions[buffer]

    def index(self, address: loop.Address) -> Any:
        """Return an address: a Python integer, or an array where it varies."""
        total: Any = address.constant
        for register, coefficient in address.terms:
            value = self.values[register]
            total = total + coefficient * (value if isinstance(value, np.ndarray) else int(value))
        return total

    def view(self, view: loop.View) -> tuple[Region, int]:
        """Return the region and start of a view with a uniform address."""
        start = self.index(view.start)
        if not isinstance(start, int):
            raise Violation(f"the start of a view of '{view.buffer.name}' varies")
        return self.region(view.buffer), start
