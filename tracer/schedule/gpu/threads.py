"""Work of a single GPU thread: its element of the independent loops, and its own loops in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tracer.ir.dtypes import I64, U32
from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    Callback,
    Carry,
    Compute,
    Constant,
    Copy,
    Fault,
    For,
    If,
    Library,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    Transpose,
    Update,
    While,
)  # fmt: skip
from tracer.ir.loop.build import Builder, constant
from tracer.ir.loop.build import address as summed
from tracer.ir.loop.walk import with_operands
from tracer.ir.scalar import ScalarOp

WARP: Final = 32
_NARROW: Final = 1 << 31  # positions below this are divided in 32 bits


class Unfit(Exception):  # noqa: N818 - never leaves the schedule
    """Why a nest has no kernel."""


Names = Mapping[Register, Operand]


@dataclass(frozen=True, slots=True)
class Axes:
    """Independent loops, outermost first: their index registers and sizes."""

    registers: tuple[Register, ...]
    sizes: tuple[int, ...]

    @property
    def last(self) -> Register | None:
        """The index that runs fastest."""
        return self.registers[-1] if self.registers else None

    def locate(self, b: Builder, position: Operand) -> Names:
        """Write the indices of a row-major position. Return the operand that replaces each register."""
        if len(self.registers) < 2:
            return dict(zip(self.registers, (position,), strict=False))
        word = U32 if prod(self.sizes) < _NARROW else I64
        rest, names = b.convert(position, word), dict[Register, Operand]()
        for register, size in reversed(list(zip(self.registers, self.sizes, strict=True))[1:]):
            divisor = constant(size, word)
            names[register] = b.convert(b.apply(ScalarOp.IREM, rest, divisor), I64, name=register.name)
            rest = b.apply(ScalarOp.IDIV, rest, divisor)
        names[self.registers[0]] = b.convert(rest, I64, name=self.registers[0].name)
        return names


def split(block: Block) -> tuple[Axes, tuple[Statement, ...]]:
    """Return the independent loops that a nest begins with, and the statements within them. Raises Unfit."""
    registers: list[Register] = []
    sizes: list[int] = []
    statements = block.statements
    while len(statements) == 1 and isinstance(statements[0], For) and statements[0].kind is LoopKind.PARALLEL:
        loop = statements[0]
        if loop.carries:
            raise Unfit("threads that share a reduction across a parallel loop")
        registers.append(loop.index)
        sizes.append(trips(loop))
        statements = loop.body.statements
    if not registers and any(isinstance(s, For) and not is_reduction(s) for s in statements):
        raise Unfit("a loop whose rounds follow each other, with nothing around it for threads to share")
    return Axes(tuple(registers), tuple(sizes)), statements


def trips(loop: For) -> int:
    """Return the trip count of a loop from 0 by 1. Raises Unfit for other loops."""
    counted = isinstance(loop.start, Constant) and isinstance(loop.stop, Constant) and loop.step == 1
    if not counted or int(loop.start.value) != 0:  # type: ignore[union-attr]  # both are constants
        raise Unfit("a loop whose range is not known")
    return int(loop.stop.value)  # type: ignore[union-attr]


def is_reduction(loop: For) -> bool:
    """Whether a loop joins partial results, itself or in the one loop that it holds."""
    if not loop.carries:
        return False
    if all(carry.combine is not None for carry in loop.carries):
        return True
    inner = loop.body.statements
    return len(inner) == 1 and isinstance(inner[0], For) and is_reduction(inner[0])


# -- a thread's own statements -------------------------------------------------------------------------


def in_thread(statements: Sequence[Statement], names: Names, *, alone: bool = False) -> Iterator[Statement]:
    """Yield the statements as one thread runs them: loops in order, reductions with ordinary carries. Raises Unfit.

    alone: whether the kernel has no other thread, so that it may update any memory cell, and allocate.
    """
    for s in statements:
        match s:
            case For():
                yield from _serial(s, names, alone)
            case While():
                carries = tuple(replace(c, initial=_name(c.initial, names)) for c in s.carries)
                yield While(carries, _block(s.condition, names, alone), _block(s.body, names, alone), s.results)
            case If():
                then, otherwise = (_block(block, names, alone) for block in (s.then, s.otherwise))
                yield If(_name(s.predicate, names), then, otherwise, s.results)
            case Compute() | Load() | Store() | Fault():
                yield renamed(s, names)
            case Update() if alone:
                old, new = Register(s.buffer.dtype, "old"), Register(s.buffer.dtype, "new")
                yield Load(old, s.buffer, s.address, s.mask)
                yield Compute(new, s.op, (old, s.value))
                yield Store(s.buffer, s.address, new, s.mask)
            case Copy() if alone:
                yield _moved(s, (constant(s.count, I64),), (1,), (1,))
            case Transpose() if alone:
                yield _moved(s, (s.rows, s.columns), (s.target_stride, 1), (1, s.source_stride))
            case Alloc() if alone and s.buffer.space is Space.LOCAL:
                yield s
            case Update():
                raise Unfit("updates of shared memory cells (a scatter), which need atomic operations")
            case Library() | Callback() | Copy():
                raise Unfit(f"a {type(s).__name__.lower()} step within a loop")
            case _:
                raise Unfit(f"a {type(s).__name__} within a loop")


def _moved(s: Copy | Transpose, sizes: Sequence[Operand], target: Sequence[int], source: Sequence[int]) -> For:
    """Return a move of memory as loops over its elements. target, source: strides of the loops, in elements."""
    indices, value = [Register(I64, "i") for _ in sizes], Register(s.target.buffer.dtype, "moved")
    read = summed(s.source.start.constant, *s.source.start.terms, *zip(indices, source, strict=True))
    write = summed(s.target.start.constant, *s.target.start.terms, *zip(indices, target, strict=True))
    body = Block((Load(value, s.source.buffer, read), Store(s.target.buffer, write, value)))
    for index, size in reversed(list(zip(indices, sizes, strict=True))):
        loop = For(index, constant(0, I64), size, body)
        body = Block((loop,))
    return loop


def _block(block: Block, names: Names, alone: bool) -> Block:
    statements = tuple(in_thread(block.statements, names, alone=alone))
    return Block(statements, tuple(_name(v, names) for v in block.yields))


def _serial(loop: For, names: Names, alone: bool) -> Iterator[Statement]:
    if loop.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL, *([LoopKind.VECTOR] if alone else [])):
        raise Unfit(f"a {loop.kind.value} loop, mapped already")
    pairs = list(zip(loop.carries, loop.results, strict=True))
    partial = tuple(r if c.combine is None else Register(r.dtype, "part") for c, r in pairs)
    carries = tuple(
        Carry(c.register, _name(c.initial, names) if c.identity is None else c.identity) for c in loop.carries
    )
    yield For(
        loop.index, _name(loop.start, names), _name(loop.stop, names), _block(loop.body, names, alone), LoopKind.SERIAL,
        loop.step, 1, carries, partial,
    )  # fmt: skip
    for (c, whole), part in zip(pairs, partial, strict=True):
        if c.combine is not None:
            yield Compute(whole, c.combine, (_name(c.initial, names), part))


# -- other names -----------------------------------------------------------------------------------------


def _name(operand: Operand, names: Names) -> Operand:
    return names.get(operand, operand) if isinstance(operand, Register) else operand


def _address(address: Address, names: Names) -> Address:
    return summed(address.constant, *((_name(r, names), c) for r, c in address.terms))


def renamed(s: Statement, names: Names) -> Statement:
    """Return the statement itself, inner blocks aside, with registers read under other names."""
    if not names:
        return s
    if not isinstance(s, Compute | Load | Store | Fault):
        raise Unfit(f"a {type(s).__name__} within a loop")
    return with_operands(s, lambda o: _name(o, names), lambda a: _address(a, names))


def through_memory(
    parameters: Sequence[Buffer | Register],
) -> tuple[tuple[Buffer | Register, ...], tuple[Statement, ...]]:
    """Return the parameters with one-element buffers for scalars, and the loads of these scalars."""
    taken: list[Buffer | Register] = []
    loads: list[Statement] = []
    for parameter in parameters:
        if isinstance(parameter, Register):
            buffer = Buffer(f"{parameter.name or 's'}_{len(taken)}", parameter.dtype, 1, Space.ARGUMENT)
            loads.append(Load(parameter, buffer, Address()))
            taken.append(buffer)
        else:
            taken.append(parameter)
    return tuple(taken), tuple(loads)
