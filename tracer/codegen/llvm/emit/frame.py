"""State of emitting one function: names of registers, locations of buffers, lines to hoist.

Each loop is a scope with lines that run just before it. Splats of outer registers and the invariant parts of addresses
are written there, once. The text goes to code generation without a pass pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tracer.codegen.llvm.emit.short_floats import widen
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain import abi
from tracer.codegen.llvm.toolchain.types import ELEMENT, MEMORY, SHORT_FLOATS, literal, single, splat, vector
from tracer.errors import InternalError, message
from tracer.ir.dtypes import F32
from tracer.ir.loop import Address, Block, Buffer, Constant, Function, Operand, Register, Space

CONTEXT = "%context"


@dataclass(slots=True)
class Scope:
    """A loop being written: the lines before it, and the values that they hold."""

    slot: int
    lines: list[str] = field(default_factory=list)
    # keys: (Buffer, terms) for a pointer, (Register, lanes, element) for a splat
    held: dict[Any, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finished:
    """Function that is written: its steps after the last poll, and whether it polls."""

    unpolled: int
    polls: bool


class Frame:
    """One function being written.

    `lanes`, `mask`, `index` and `varying` describe the vector loop around the current statement. These are its lanes (0
    outside), the mask of its last iteration (None in full ones), its index, and the registers with one value per lane.
    """

    def __init__(self, function: Function, writer: Writer, run: Callable[[Frame, Block], None]) -> None:
        self.function = function
        self.w = writer
        self.run_block = run
        self.functions: dict[str, Function] = {}
        self.helpers: dict[str, None] = {}  # names of run-time helpers that the module needs, in order
        self.parts: dict[str, tuple[str, ...]] = {}  # functions that threads share, and the types of their arguments
        self.common: dict[str, str] = {}  # texts of functions that programs share, by name
        self.entry: list[str] = []
        self.values: dict[Register, str] = {}
        self.wides: dict[Register, str] = {}
        self.depth: dict[Register, int] = {}
        self.buffers: dict[Buffer, str] = {}
        self.slots: dict[Buffer, int] = {}
        self.allocated: dict[tuple[str, str], str] = {}
        self.scopes: list[Scope] = [Scope(-1)]
        self.lanes = 0
        self.mask: str | None = None
        self.index: Register | None = None
        self.index_vector = ""
        self.varying: set[Register] = set()
        self.counters: dict[Operand, str] = {}  # operands that count by one from lane to lane: the first lane
        self.hears = True  # whether it has a stop word to poll
        self.patient = False  # whether a set stop word first costs patience: see `polls.patient`
        self.unpolled = 0  # steps since the last poll: see `polls`
        self.part_lengths: dict[tuple[object, object], int] = {}
        self.finished: dict[str, Finished] = {}  # functions of the module that are written
        self.passes_caches = False  # whether any store bypasses the caches
        self.exits: dict[str, None] = {}
        self.marks: Mapping[int, int] = {}  # by the `id` of a statement, the number of a comment around its lines
        self.stop = ""

    def fail(self, defect: str, *lines: str) -> NoReturn:
        """Raise InternalError for a loop program that this backend cannot spell: a bug of its writer."""
        raise InternalError(message(f"llvm: {defect} in function '{self.function.name}'", *lines))

    # -- registers ---------------------------------------------------------------------------------------------

    def define(self, register: Register, value: str, wide: str | None = None) -> None:
        """Name the value of a register. A short float's f32 twin is derived unless given."""
        self.values[register] = value
        self.depth[register] = len(self.scopes) - 1
        if register.dtype in SHORT_FLOATS:
            lanes = self.lanes if register in self.varying else 0
            self.wides[register] = wide or widen(self.w, register.dtype, value, lanes)

    def lanes_of(self, operand: Operand) -> int:
        return self.lanes if operand in self.varying else 0

    def operand(self, operand: Operand, lanes: int = 0) -> str:
        """Return the operand's value, in each of `lanes`; a scalar for no lanes."""
        if type(operand) is Constant:
            return splat(ELEMENT[operand.dtype], literal(operand), lanes)
        assert isinstance(operand, Register)
        if operand in self.varying:
            return self._lane_value(operand, lanes)
        value = self._value(operand, self.values)
        return self._splat(operand, value, ELEMENT[operand.dtype], lanes) if lanes else value

    def wide(self, operand: Operand, lanes: int = 0) -> str:
        """Return the operand as f32: a short float's value rather than its bits."""
        if type(operand) is Constant:
            return splat("float", single(float(operand.value)), lanes)
        assert isinstance(operand, Register)
        value = self._value(operand, self.wides)
        return self._splat(operand, value, "float", lanes) if lanes and operand not in self.varying else value

    def typed(self, operand: Operand, lanes: int = 0) -> str:
        return f"{vector(ELEMENT[operand.dtype], lanes)} {self.operand(operand, lanes)}"

    def _value(self, register: Register, table: dict[Register, str]) -> str:
        value = table.get(register)
        if value is None:
            self.fail(f"register '{register.name}' is read before it is assigned")
        return value

    def _lane_value(self, register: Register, lanes: int) -> str:
        if not lanes:
            self.fail(f"register '{register.name}' varies by lane where one value is needed")
        return self.index_vector if register is self.index else self._value(register, self.values)

    def _splat(self, register: Register, value: str, element: str, lanes: int) -> str:
        depth = self.depth[register]
        if depth + 1 >= len(self.scopes):
            return self.w.splat(element, value, lanes)
        scope, key = self.scopes[depth + 1], (register, lanes, element)
        held = scope.held.get(key)
        if held is None:
            held = scope.held[key] = self.w.splat(element, value, lanes, scope.lines)
        return held

    # -- scopes ------------------------------------------------------------------------------------------------

    def open_scope(self) -> None:
        self.scopes.append(Scope(self.w.slot()))

    def close_scope(self) -> None:
        scope = self.scopes.pop()
        self.w.fill(scope.slot, scope.lines)

    def run(self, block: Block) -> None:
        self.run_block(self, block)

    # -- memory ------------------------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer, address: Address) -> str:
        """Return a pointer to the element at a lane-invariant address. A vector loop's index is the index of lane 0."""
        return self.element_pointer(buffer, address.constant, address.terms)

    def element_pointer(self, buffer: Buffer, constant: int, terms: tuple[tuple[Register, int], ...]) -> str:
        pointer = self._sum(buffer, terms, len(self.scopes) - 1, self.w.lines)
        return self.step(buffer, pointer, constant) if constant else pointer

    def step(self, buffer: Buffer, pointer: str, elements: int | str) -> str:
        return self.w.let(f"getelementptr {MEMORY[buffer.dtype]}, ptr {pointer}, i64 {elements}")

    def _sum(self, buffer: Buffer, terms: tuple[tuple[Register, int], ...], level: int, lines: list[str]) -> str:
        """Return buffer + terms, of registers defined at `level` or further out.

        Outer parts are computed in their scopes.
        """
        if level == 0:
            pointer, rest = self._base(buffer, lines), terms
        else:
            depth = self.depth
            outer = tuple([t for t in terms if depth[t[0]] < level])
            scope = self.scopes[level]
            held = scope.held.get((buffer, outer))
            if held is None:
                held = scope.held[buffer, outer] = self._sum(buffer, outer, level - 1, scope.lines)
            pointer = held
            rest = tuple([t for t in terms if depth[t[0]] >= level])
        element = MEMORY[buffer.dtype]
        for register, coefficient in rest:
            value = self._value(register, self.values)
            if coefficient != 1:
                product = self.w.name()
                lines.append(f"  {product} = mul i64 {value}, {coefficient}")
                value = product
            sum_ = self.w.name()
            lines.append(f"  {sum_} = getelementptr {element}, ptr {pointer}, i64 {value}")
            pointer = sum_
        return pointer

    def _base(self, buffer: Buffer, lines: list[str]) -> str:
        known = self.buffers.get(buffer)
        if known is not None:
            return known
        name = self.w.name()
        if buffer.space is Space.ARENA:
            lines.append(f"  {name} = getelementptr i8, ptr {self.arena()}, i64 {buffer.offset}")
        elif buffer in self.slots:
            slot = self.w.name()
            lines.append(f"  {slot} = getelementptr ptr, ptr %buffers, i64 {self.slots[buffer]}")
            lines.append(f"  {name} = load ptr, ptr {slot}, align 8")
        else:
            self.fail(f"{buffer.space.value} buffer '{buffer.name}' is not known here")
        return name

    def arena(self) -> str:
        """Return the call's arena, read once in the entry block."""
        return self.context_field("arena")

    def context_field(self, field_: str) -> str:
        """Return a pointer out of the call's context, read once in the entry block."""
        known = self.allocated.get((field_, "context"))
        if known is None:
            slot, known = self.w.name(), self.w.name()
            self.entry.append(f"  {slot} = getelementptr i8, ptr {CONTEXT}, i64 {abi.offset(field_)}")
            self.entry.append(f"  {known} = load ptr, ptr {slot}, align 8")
            self.allocated[field_, "context"] = known
        return known

    def scratch(self, role: str, type_: str, alignment: int = 64) -> str:
        """Return stack memory of the function, the same for every request of one role and type."""
        known = self.allocated.get((role, type_))
        if known is None:
            known = self.allocated[role, type_] = self.w.name()
            self.entry.append(f"  {known} = alloca {type_}, align {alignment}")
        return known

    def allocate(self, buffer: Buffer) -> None:
        if buffer.space is not Space.LOCAL:
            self.fail(f"cannot allocate a {buffer.space.value} buffer")
        name = self.w.name()
        size, alignment = max(buffer.size, 1), max(buffer.alignment, 64)
        self.entry.append(f"  {name} = alloca [{size} x {MEMORY[buffer.dtype]}], align {alignment}")
        self.buffers[buffer] = name

    # -- leaving -----------------------------------------------------------------------------------------------

    def exit(self, why: str) -> str:
        """Return the label of the block that leaves the function. why: "leave", or a status that is set first."""
        self.exits[why] = None
        return why

    def poll(self) -> None:
        """Leave where the stop word of the call is set, and its patience is at an end."""
        w, steps, self.unpolled = self.w, self.unpolled, 0
        word = w.let(f"load atomic i32, ptr {self.context_field('stop')} monotonic, align 4")
        go_on, leave = w.label("go"), self.exit("interrupted")
        is_set = w.let(f"icmp ne i32 {word}, 0")
        if self.patient:
            look, listen = w.label("look"), w.label("listen")
            w.branch(is_set, look, go_on, unlikely=True)
            w.open(look)
            left = w.let(f"getelementptr i8, ptr {CONTEXT}, i64 {abi.offset('patience')}")
            is_out = w.let(f"icmp eq i64 {w.let(f'load i64, ptr {left}, align 8')}, 0")
            w.branch(is_out, leave, listen, unlikely=True)
            w.open(listen)
            w.do(f"call void {self.context_field('listen')}(ptr {CONTEXT}, i64 {steps + 1})")
            w.jump(go_on)
        else:
            w.branch(is_set, leave, go_on, unlikely=True)
        w.open(go_on)


def as_f32(f: Frame, operand: Operand, lanes: int) -> tuple[Any, str]:
    """Return the dtype and value to compute with: short floats as f32, other dtypes unchanged."""
    if operand.dtype in SHORT_FLOATS:
        return F32, f.wide(operand, lanes)
    return operand.dtype, f.operand(operand, lanes)
