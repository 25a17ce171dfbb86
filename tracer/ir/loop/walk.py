"""Traversals of loop IR: the blocks, buffers and operands of any statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from math import gcd
from operator import is_
from typing import Any, TypeVar, assert_never

from tracer.ir.loop import (
    Address,
    Alloc,
    Barrier,
    Block,
    Buffer,
    Callback,
    Compute,
    Constant,
    Copy,
    Fault,
    For,
    Function,
    If,
    Invoke,
    Leave,
    Library,
    Load,
    Module,
    Operand,
    Prefix,
    Register,
    Shuffle,
    Space,
    StackLength,
    StackPop,
    StackPush,
    StackRead,
    StackReset,
    StackWrite,
    Statement,
    Store,
    Transpose,
    Update,
    View,
    While,
)  # fmt: skip


class Access(Enum):
    """Effect of a statement on a buffer."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # read and write
    HAND_ON = "hand on"  # Invoke and Library: the callee's effect
    ALLOCATE = "allocate"


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Return the blocks within a statement, in the order in which they are printed."""
    match statement:
        case For():
            return (statement.body,)
        case While():
            return (statement.condition, statement.body)
        case If():
            return (statement.then, statement.otherwise)
        case _:
            return ()


def statements_of(block: Block) -> Iterator[Statement]:
    """Yield every statement of a block and of the blocks within, outer ones first."""
    for statement in block.statements:
        yield statement
        for inner in blocks_of(statement):
            yield from statements_of(inner)


def with_blocks(s: Statement, change: Callable[[Block], Block]) -> Statement:
    """Replace the blocks within a statement by `change(block)`. Return the statement itself where every block stays."""
    match s:
        case For(body=body):
            inner = change(body)
            return s if inner is body else replace(s, body=inner)
        case While(condition=condition, body=body):
            first, inner = change(condition), change(body)
            return s if first is condition and inner is body else replace(s, condition=first, body=inner)
        case If(then=then, otherwise=otherwise):
            first, inner = change(then), change(otherwise)
            return s if first is then and inner is otherwise else replace(s, then=first, otherwise=inner)
        case _:
            return s


def with_statements(block: Block, change: Callable[[Statement], Sequence[Statement]]) -> Block:
    """Replace every statement of a block by the statements that `change` returns, innermost blocks first.

    Returns the same block where `change` returns every statement itself.
    """
    statements: list[Statement] = []
    for s in block.statements:
        statements += change(with_blocks(s, lambda inner: with_statements(inner, change)))
    is_same = len(statements) == len(block.statements) and all(map(is_, statements, block.statements))
    return block if is_same else Block(tuple(statements), block.yields)


def with_bodies(module: Module, change: Callable[[Block], Block]) -> Module:
    """Replace the body of every function by `change(body)`. Return the module itself where every body stays."""
    bodies = [change(f.body) for f in module.functions]
    if all(body is f.body for body, f in zip(bodies, module.functions, strict=True)):
        return module
    pairs = zip(module.functions, bodies, strict=True)
    return replace(module, functions=tuple([f if body is f.body else replace(f, body=body) for f, body in pairs]))


Simple = TypeVar("Simple", bound=Compute | Load | Store | Update | Fault | Prefix)
"""A statement of one operation."""


def with_operands(
    statement: Simple, value: Callable[[Operand], Operand], address: Callable[[Address], Address]
) -> Simple:
    """Replace the operands and the address that a statement reads. Results and buffers stay."""

    def optional(operand: Operand | None) -> Operand | None:
        return None if operand is None else value(operand)

    s: Any = statement
    changed: Any
    match s:
        case Compute():
            changed = replace(s, operands=tuple(map(value, s.operands)))
        case Load():
            changed = replace(s, address=address(s.address), mask=optional(s.mask), fill=optional(s.fill))
        case Store() | Update():
            changed = replace(s, address=address(s.address), value=value(s.value), mask=optional(s.mask))
        case Fault():
            values = tuple(map(value, s.values))
            changed = replace(s, predicate=value(s.predicate), position=value(s.position), values=values)
        case _:
            changed = replace(s, value=value(s.value), before=value(s.before))
    replaced: Simple = changed
    return replaced


def results_of(statement: Statement) -> tuple[Register, ...]:
    """Return the registers that a statement assigns for later statements."""
    match statement:
        case Compute() | Load() | Shuffle() | StackLength():
            return (statement.result,)
        case Prefix():
            return (statement.result, statement.last)
        case For() | While() | If():
            return statement.results
        case _:
            return ()


def accesses_of(statement: Statement) -> tuple[tuple[Buffer, Address, Access], ...]:
    """Return the buffers that a statement itself reads or writes, each with its start and the effect."""
    match statement:
        case Load():
            return ((statement.buffer, statement.address, Access.READ),)
        case Store():
            return ((statement.buffer, statement.address, Access.WRITE),)
        case Update():
            return ((statement.buffer, statement.address, Access.UPDATE),)
        case Alloc():
            return ((statement.buffer, Address(), Access.ALLOCATE),)
        case Copy(target, source) | Transpose(target, _, source):
            return (_access(source, Access.READ), _access(target, Access.WRITE))
        case Invoke() | Library():
            return tuple([_access(a, Access.HAND_ON) for a in statement.arguments if isinstance(a, View)])
        case Callback():
            inputs = [_access(view, Access.READ) for view in statement.inputs]
            return (*inputs, *(_access(view, Access.WRITE) for view in statement.outputs))
        case StackPush() | StackWrite():
            return (_access(statement.source, Access.READ),)
        case StackPop() | StackRead():
            return (_access(statement.target, Access.WRITE),)
        case Compute() | For() | While() | If() | Fault() | Leave() | Barrier() | Shuffle() | Prefix():
            return ()
        case StackLength() | StackReset():
            return ()
        case _:
            assert_never(statement)


def _access(view: View, access: Access) -> tuple[Buffer, Address, Access]:
    return view.buffer, view.start, access


def operands_of(statement: Statement) -> tuple[Operand, ...]:
    """Return the operands that a statement itself reads, without operands of addresses and inner blocks."""
    match statement:
        case Compute():
            return statement.operands
        case Load():
            return _present(statement.mask, statement.fill)
        case Store() | Update():
            return _present(statement.value, statement.mask)
        case For():
            return (statement.start, statement.stop, *(c.initial for c in statement.carries))
        case While():
            return tuple([c.initial for c in statement.carries])
        case If():
            return (statement.predicate,)
        case Fault():
            return (statement.predicate, statement.position, *statement.values)
        case Invoke():
            given = [a for a in statement.arguments if not isinstance(a, View)]
            return (*given, *_present(*(use.rounds for use in statement.stacks)))
        case Library():
            return tuple([a for a in statement.arguments if not isinstance(a, View)])
        case Shuffle():
            return (statement.value,)
        case Prefix():
            return (statement.value, statement.before)
        case StackRead() | StackWrite():
            return (statement.index,)
        case Transpose():
            return (statement.rows, statement.columns)
        case Alloc() | Copy() | Leave() | Callback() | Barrier():
            return ()
        case StackPush() | StackPop() | StackLength() | StackReset():
            return ()
        case _:
            assert_never(statement)


def registers_read(block: Block) -> Counter[Register]:
    """Return how often a block and the blocks within read each register."""
    found: list[Operand] = [*block.yields]
    for s in statements_of(block):
        found += [*operands_of(s), *(v for inner in blocks_of(s) for v in inner.yields)]
        found += [r for _, address, _ in accesses_of(s) for r, _ in address.terms]
    return Counter(v for v in found if isinstance(v, Register))


def _present(*operands: Operand | None) -> tuple[Operand, ...]:
    return tuple([o for o in operands if o is not None])


def buffers_of(function: Function) -> list[Buffer]:
    """Return the parameters and every buffer that a function names, in the order of the text."""
    buffers: dict[Buffer, None] = {p: None for p in function.parameters if isinstance(p, Buffer)}
    for statement in statements_of(function.body):
        for buffer, _, _ in accesses_of(statement):
            buffers[buffer] = None
    return list(buffers)


def share_bytes(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers of the arena have bytes in common."""
    ends = [buffer.offset + buffer.size * buffer.dtype.itemsize for buffer in (a, b)]
    return a.space is b.space is Space.ARENA and a.offset < ends[1] and b.offset < ends[0]


def alignment_of(view: View) -> int:
    """Return the bytes, a power of two, to which an address is aligned for any values of its registers.

    The arena is aligned to 64 bytes.
    """
    buffer, size = view.buffer, view.buffer.dtype.itemsize
    known = gcd(buffer.offset, 64) if buffer.space is Space.ARENA else max(buffer.alignment, size)
    return gcd(known, *(n * size for n in (view.start.constant, *(n for _, n in view.start.terms))))


def with_buffers(block: Block, names: Mapping[Buffer, Buffer]) -> Block:
    """Replace the buffers of a block that are keys of `names`."""
    renamed: Block = _with_buffers(block, names) if names else block
    return renamed


def _with_buffers(part: Any, names: Mapping[Buffer, Buffer]) -> Any:
    kind: Any = type(part)  # mypy does not know that classes are hashable
    if kind is Buffer:
        return names.get(part, part)
    if kind is tuple:
        parts = tuple([_with_buffers(x, names) for x in part])
        return part if all(map(is_, parts, part)) else parts
    changed = {}
    for name in _parts_of(kind):
        old = getattr(part, name)
        new = _with_buffers(old, names)
        if new is not old:
            changed[name] = new
    return replace(part, **changed) if changed else part


@cache
def _parts_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of a node that may hold buffers."""
    if not is_dataclass(kind) or kind in (Register, Constant, Address):
        return ()
    return tuple([field.name for field in fields(kind)])
