"""Executables: a program's CUDA source, loaded on a device, and the host's part of it, run step by step.

The host's part is loop IR in device normal form: see `schedule.gpu.host_plan`. Launches and copies do not wait for the
device. A loop's condition, a branch, and an address that the device computed do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.codegen.cuda.source import FAULT_SHIFT, CudaSource, Kernel
from tracer.errors import DeviceError, InternalError, message
from tracer.ir import loop
from tracer.ir.dtypes import BOOL, DType
from tracer.runtime.cuda.driver import Driver, Memory, storage
from tracer.runtime.cuda.stacks import Stack

_NO_FAULT: Final = (1 << 64) - 1
NO_DONORS: Final[Mapping[int, int]] = {}
_U8: Final = np.dtype(np.uint8)

CallBack = Callable[[int, Sequence[np.ndarray[Any, Any]]], Sequence[np.ndarray[Any, Any]]]
"""Function from a callback's slot and flat inputs to its flat outputs."""


OnStack = loop.StackPush | loop.StackPop | loop.StackRead | loop.StackWrite | loop.StackReset | loop.StackLength


class Outcome(NamedTuple):
    """Memory of each OUTPUT parameter, and the memory of the fault record, None if the program has no faults."""

    outputs: tuple[Memory, ...]
    record: Memory | None


class Executable:
    """CUDA source loaded on a device."""

    def __init__(self, source: CudaSource, driver: Driver, call_back: CallBack | None = None) -> None:
        """call_back: runs callbacks. Raises DeviceError for a source with nests that have no kernel."""
        if source.left:
            raise DeviceError(message("these loop nests have no kernel yet", *source.left, help="run on the CPU"))
        self.source = source
        self.driver = driver
        self.module = driver.load(source.text)
        self.kernels = {kernel.name: kernel for kernel in source.kernels}
        self.call_back = call_back
        self._faults = any(kernel.faults for kernel in source.kernels)
        places = {p: n for n, p in enumerate(source.parameters)}
        self._given = [(n, _bytes(p), p) for p, n in places.items() if p.space is not loop.Space.OUTPUT]
        self._outputs = [(n, _bytes(p)) for p, n in places.items() if p.space is loop.Space.OUTPUT]
        self._launches = _launches(source.entry.body, self.kernels, places)

    def run(self, inputs: Sequence[Memory], donors: Mapping[int, int] = NO_DONORS) -> Outcome:
        """Run the host's part, waiting for the device only where the host decides.

        inputs: memory of all parameters but OUTPUT. donors: the DONATED inputs that hold outputs, by output.
        """
        driver, source, address = self.driver, self.source, self.driver.address
        held: list[Memory] = [None] * (len(self._given) + len(self._outputs))
        for (place, size, parameter), found in zip(self._given, inputs, strict=True):
            if found.nbytes != size:
                got = f"{found.nbytes} bytes"
                raise InternalError(f"cuda: '{parameter.name}' is {parameter.dtype}[{parameter.size}], got {got}")
            held[place] = self._copied(found) if address(found) % parameter.alignment else found
        for n, (place, size) in enumerate(self._outputs):
            held[place] = held[self._given[donors[n]][0]] if n in donors else driver.empty(size)
        record = driver.upload(np.full(1, _NO_FAULT, np.uint64)) if self._faults else None
        if self._launches is None:
            memory = dict(zip(source.parameters, held, strict=True))
            _Call(self, memory, driver.empty(source.arena), record).start()
        else:
            arena = driver.empty(source.arena) if source.arena else None
            for launch in self._launches:
                driver.launch(self.module, launch.kernel, launch.arguments_of(driver, held, arena, record))
        return Outcome(tuple([held[place] for place, _ in self._outputs]), record)

    def _copied(self, memory: Memory) -> Memory:
        """Return a copy of a part of an array, which begins where an allocation does."""
        copy = self.driver.empty(memory.nbytes)
        self.driver.copy(copy, memory)
        return copy


class _Launch(NamedTuple):
    """Launch of a kernel. template: its scalars. whole, parts: the indices of the memory for its other arguments."""

    kernel: Kernel
    template: list[Any]
    whole: list[tuple[int, int]]
    parts: list[tuple[int, int | None, int, int]]  # None: of the arena

    def arguments_of(self, driver: Driver, held: Sequence[Memory], arena: Memory, record: Memory | None) -> list[Any]:
        """Return the arguments: memory of the entry's parameters and the arena, scalars, the fault record."""
        arguments = self.template.copy()
        for place, index in self.whole:
            arguments[place] = held[index]
        for place, source, start, stop in self.parts:
            arguments[place] = driver.part(arena if source is None else held[source], start, stop)
        if self.kernel.faults:
            arguments.append(record)
        return arguments


def _launches(
    body: loop.Block, kernels: Mapping[str, Kernel], places: Mapping[loop.Buffer, int]
) -> list[_Launch] | None:
    """Return the launches of a host's part that does nothing else, None for any other."""
    found = []
    for s in body.statements:
        if not isinstance(s, loop.Invoke) or s.stacks or not all(map(_is_known, s.arguments)):
            return None
        launch = _Launch(kernels[s.function], [None] * len(s.arguments), [], [])
        for n, argument in enumerate(s.arguments):
            if isinstance(argument, loop.Constant):
                launch.template[n] = _scalar(argument.value, argument.dtype)
                continue
            assert isinstance(argument, loop.View)
            buffer, start = argument.buffer, argument.start.constant * argument.buffer.dtype.itemsize
            if buffer.space is loop.Space.ARENA:
                launch.parts.append((n, None, buffer.offset + start, buffer.offset + _bytes(buffer)))
            elif start:
                launch.parts.append((n, places[buffer], start, _bytes(buffer)))
            else:
                launch.whole.append((n, places[buffer]))
        if launch.kernel.grid:  # CUDA rejects an empty grid
            found.append(launch)
    return found


def _is_known(argument: loop.View | loop.Operand) -> bool:
    return not argument.start.terms if isinstance(argument, loop.View) else isinstance(argument, loop.Constant)


class _Left(Exception):  # noqa: N818 - control flow
    """End of a call after a fault."""


class _Call:
    """One call: the memory behind the entry's buffers, the host's registers, and the stacks."""

    def __init__(self, of: Executable, memory: dict[loop.Buffer, Memory], arena: Memory, record: Memory | None) -> None:
        self.of = of
        self.driver = of.driver
        self.memory = memory
        self.arena = arena
        self.record = record
        self.registers: dict[loop.Register, Any] = {}
        self.stacks = [Stack(of.driver) for _ in range(of.source.stacks)]

    def start(self) -> None:
        try:
            self.block(self.of.source.entry.body)
        except _Left:  # later programs read the outputs before anybody waits for the fault
            for buffer, memory in self.memory.items():
                if buffer.space is loop.Space.OUTPUT:
                    self.copy(memory, self.zeros(_bytes(buffer)))

    def block(self, block: loop.Block) -> None:
        for statement in block.statements:
            self.step(statement)

    def step(self, s: loop.Statement) -> None:
        match s:
            case loop.Invoke():
                self.launch(self.of.kernels[s.function], s)
            case loop.Copy():
                size = s.count * s.target.buffer.dtype.itemsize
                self.copy(self.view(s.target, size), self.view(s.source, size))
            case loop.Load():
                size = s.buffer.dtype.itemsize
                found = self.driver.download(self.view(loop.View(s.buffer, s.address), size), storage(s.buffer.dtype))
                self.registers[s.result] = bool(found[0]) if s.buffer.dtype == BOOL else found[0]
            case loop.Store():
                value = np.asarray(self.value(s.value)).astype(s.buffer.dtype).reshape(1)
                target = self.view(loop.View(s.buffer, s.address), value.nbytes)
                self.copy(target, self.driver.upload(value.view(storage(s.buffer.dtype))))
            case loop.While():
                while self.holds(s.condition):
                    self.block(s.body)
                    self.leave_after_fault()
            case loop.For():
                for index in range(int(self.value(s.start)), int(self.value(s.stop)), s.step):
                    self.registers[s.index] = np.int64(index)
                    self.block(s.body)
            case loop.If():
                self.block(s.then if self.value(s.predicate) else s.otherwise)
            case loop.Leave():
                self.leave_after_fault()
            case loop.Library():
                self.driver.routine(s.name, [self.argument(a) for a in s.arguments])
            case loop.Callback():
                self.call_back(s)
            case _ if isinstance(s, OnStack):
                self.on_stack(s)
            case _:
                raise InternalError(f"cuda: a {type(s).__name__} on the host")

    def holds(self, condition: loop.Block) -> bool:
        """Run a loop's condition, wait for the bool that it yields, and return it."""
        self.block(condition)
        return bool(self.value(condition.yields[0]))

    def leave_after_fault(self) -> None:
        """End the call after a fault, whose garbage may never end a loop."""
        if self.record is not None and fault_of(self.driver, self.record) is not None:
            raise _Left

    def launch(self, kernel: Kernel, step: loop.Invoke) -> None:
        if not kernel.grid:
            return  # CUDA rejects an empty grid
        arguments = [self.argument(a) for a in step.arguments]
        record = [self.record] if kernel.faults else []
        if not step.stacks:
            self.driver.launch(self.of.module, kernel, [*arguments, *record])
            return
        while True:
            sizes = self.sizes(step.stacks)
            held = self.driver.upload(sizes)
            stacks = [(self.stacks[use.stack], int(n)) for use, n in zip(step.stacks, sizes[:, 1], strict=True)]
            memory = [self.driver.part(stack.memory, 0, room * stack.size) for stack, room in stacks]
            self.driver.launch(self.of.module, kernel, [*arguments, *memory, held, *record])
            last = kernel.parameters[-1]
            if isinstance(last, loop.Buffer) and not last.written:
                return
            found = self.driver.download(held, sizes.dtype).reshape(sizes.shape)
            for (stack, _), count in zip(stacks, found[:, 0], strict=True):
                stack.count = int(count)
            if not any(u.rounds is None and n + u.room > room for u, (n, room) in zip(step.stacks, found, strict=True)):
                return

    def sizes(self, uses: Sequence[loop.StackUse]) -> np.ndarray[Any, Any]:
        """Return the length and the room of each stack, once there is the room that a kernel needs."""
        found = []
        for use in uses:
            stack, rounds = self.stacks[use.stack], 1 if use.rounds is None else max(0, int(self.value(use.rounds)))
            found.append((stack.count, stack.reserve(stack.count + use.room * rounds, use.size)))
        return np.array(found, np.int64)

    def argument(self, argument: loop.View | loop.Operand) -> Any:
        if isinstance(argument, loop.View):
            return self.view(argument)
        return _scalar(self.value(argument), argument.dtype)

    def value(self, operand: loop.Operand) -> Any:
        return operand.value if isinstance(operand, loop.Constant) else self.registers[operand]

    def view(self, view: loop.View, size: int | None = None) -> Memory:
        """Return the memory from an address on, to the buffer's end, or of `size` bytes."""
        buffer = view.buffer
        start = self.place(view.start) * buffer.dtype.itemsize
        stop = _bytes(buffer) if size is None else start + size
        if buffer.space is loop.Space.ARENA:
            return self.driver.part(self.arena, buffer.offset + start, buffer.offset + stop)
        memory = self.memory[buffer]
        return memory if (start, stop) == (0, memory.nbytes) else self.driver.part(memory, start, stop)

    def place(self, address: loop.Address) -> int:
        return address.constant + sum(int(self.registers[register]) * factor for register, factor in address.terms)

    def copy(self, target: Memory, source: Memory) -> None:
        self.driver.copy(target, source)

    def call_back(self, s: loop.Callback) -> None:
        assert self.of.call_back is not None, "a program with callbacks has a function that runs them"
        inputs = [self.driver.download(self.view(v), _U8).view(v.buffer.dtype) for v in s.inputs]
        for target, found in zip(s.outputs, self.of.call_back(s.slot, inputs), strict=True):
            value = np.ascontiguousarray(found, target.buffer.dtype).reshape(-1).view(np.uint8)
            self.copy(self.view(target, value.nbytes), self.driver.upload(value))

    def on_stack(self, s: OnStack) -> None:
        stack = self.stacks[s.stack]
        match s:
            case loop.StackPush():
                stack.push(self.item(s.source, s.count))
            case loop.StackWrite():
                stack.write(int(self.value(s.index)), self.item(s.source, s.count))
            case loop.StackPop():
                stack.pop(self.item(s.target, s.count))
            case loop.StackRead():
                stack.read(int(self.value(s.index)), self.item(s.target, s.count))
            case loop.StackLength():
                self.registers[s.result] = np.int64(stack.count)
            case loop.StackReset():
                stack.count = 0

    def zeros(self, size: int) -> Memory:
        return self.driver.upload(np.zeros(size, np.uint8))

    def item(self, view: loop.View, count: int) -> Memory:
        """Return the memory of some elements."""
        return self.view(view, count * view.buffer.dtype.itemsize)


def _scalar(value: Any, dtype: DType) -> Any:
    """Return a scalar as NumPy's of the dtype that holds its bits."""
    return np.asarray(value).astype(dtype).view(storage(dtype))[()]


def _bytes(buffer: loop.Buffer) -> int:
    return buffer.size * buffer.dtype.itemsize


def fault_of(driver: Driver, record: Memory) -> tuple[int, int] | None:
    """Wait for the device, and return the (site, position) of the first fault in a record, None if there was none."""
    word = int(driver.download(record, np.dtype(np.uint64))[0])
    return None if word == _NO_FAULT else (word >> FAULT_SHIFT, word & ((1 << FAULT_SHIFT) - 1))
