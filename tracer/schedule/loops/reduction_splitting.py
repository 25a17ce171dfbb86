"""Long reductions to few results: blocks of a fixed length first, which threads may share, then their partial results.

Blocks follow from the length alone, so the result does not depend on which thread reduced which. Their length divides
the whole where a divisor is near: a remainder would be another loop to compile. The partial results lie at the end of
the arena, where one reduction after another reuses the same memory.

Where the array lies in memory, two or four blocks are reduced in interleaved streams, each in its own order. A core
prefetches pages of one stream one by one, but of several streams at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    Fault,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    index_constant,
)  # fmt: skip
from tracer.ir.target import CPU, Machine, Target
from tracer.schedule.terms.clone import Names, copied
from tracer.schedule.terms.loop_slicing import moved
from tracer.schedule.terms.two_steps import Steps, with_two_steps

_STEPS: Final = 512  # parts of a block's length: lengths that are tried are one part apart, 64 elements
_MIN_BLOCKS: Final = 8
_LANE_BYTES: Final = 64  # of partial results, joined in lanes: belongs to the meaning of a result
_MAX_STATEMENTS: Final = 80  # statements of a body that is written twice, for the blocks and for the remainder
_ALIGNMENT: Final = 64
_FEW_STATEMENTS: Final = 4  # of a body that is written so often


def split_reductions(module: Module, target: Target = CPU) -> Module:
    """Return the module with long reductions in two steps: of blocks, and of their partial results."""
    block = target.blocks.reduction
    if not block:
        return module
    functions: list[Function] = []
    split: dict[str, tuple[Function, Function, list[Buffer]]] = {}
    arena = -(-module.arena // _ALIGNMENT) * _ALIGNMENT
    size = arena
    for function in module.functions:
        parts = None if function.name == module.entry else _split(function, block, target.machine)
        if parts is None:
            functions.append(function)
            continue
        buffers, offset = [], arena
        for parameter in parts[2]:
            name = f"{function.name}.{parameter.name}"
            buffers.append(replace(parameter, name=name, space=Space.ARENA, offset=offset))
            offset += -(-parameter.size * parameter.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        size = max(size, offset)
        split[function.name] = (parts[0], parts[1], buffers)
        functions += parts[:2]
    if not split:
        return module
    return with_two_steps(module, functions, split, size)


def _split(function: Function, block: int, machine: Machine) -> Steps | None:
    """Return the reductions of blocks and of partial results, and the latter's buffers, or None for other functions."""
    loop = _reduction(function)
    if loop is None or not isinstance(loop.stop, Constant):
        return None
    length = int(loop.stop.value)
    if length < _MIN_BLOCKS * block:
        return None
    block = _dividing(length, block)
    blocks, rest = divmod(length, block)
    if rest and len(loop.body.statements) > _MAX_STATEMENTS:
        return None
    partial = [
        Buffer(f"partial{n}", carry.register.dtype, blocks, Space.ARGUMENT, 0, _ALIGNMENT, written=True)
        for n, carry in enumerate(loop.carries)
    ]
    parameters = (*function.parameters, *partial)
    beside = _beside(loop, length, blocks, machine)
    first = Function(f"{function.name}.blocks", parameters, _blocks(loop, partial, blocks, block, beside))
    joined = _joined(loop, partial, blocks, block, rest)
    second = Function(f"{function.name}.joined", parameters, Block((*joined, *function.body.statements[1:])))
    return first, second, partial


def _dividing(length: int, block: int) -> int:
    """Return the length nearest to `block` that divides the whole, or `block` if none near does."""
    near = range(block // 2, min(2 * block, length // _MIN_BLOCKS) + 1, max(1, block // _STEPS))
    return min((n for n in near if length % n == 0), key=lambda n: abs(n - block), default=block)


def _reduction(function: Function) -> For | None:
    """Return the one loop of a function that reduces everything."""
    if not function.body.statements or not isinstance(function.body.statements[0], For):
        return None
    loop, *after = function.body.statements
    assert isinstance(loop, For)
    plain = all(isinstance(s, Load | Compute | Fault) for s in loop.body.statements)
    simple = loop.start == index_constant(0) and loop.step == 1 and loop.kind is LoopKind.SERIAL
    combined = bool(loop.carries) and all(carry.combine is not None for carry in loop.carries)
    constant = all(isinstance(carry.initial, Constant) for carry in loop.carries)
    last = all(isinstance(s, Compute | Store) for s in after)
    return loop if plain and simple and combined and constant and last else None


def _beside(loop: For, length: int, blocks: int, machine: Machine) -> int:
    """Return the number of blocks that are reduced in interleaved streams."""
    statements = loop.body.statements
    loads = [s for s in statements if isinstance(s, Load) and any(r is loop.index for r, _ in s.address.terms)]
    few = len(loop.carries) == 1 and len(statements) <= _FEW_STATEMENTS
    if not few or not loads or any(isinstance(s, Fault) for s in statements):
        return 1
    is_far = sum(length * s.buffer.dtype.itemsize for s in loads) >= machine.split_bytes
    return next((n for n in machine.streams if is_far and blocks % n == 0), 1)


def _blocks(loop: For, partial: list[Buffer], blocks: int, block: int, beside: int) -> Block:
    """Return the loop over blocks. Partial results start from the identity, and the initial value is joined last."""
    index = Register(I64, "block")
    carries = []
    for carry in loop.carries:
        assert carry.identity is not None, "a carry that combines has an identity"
        carries.append(replace(carry, initial=carry.identity))
    inner = moved(replace(loop, carries=tuple(carries)), Address(0, ((index, beside * block),)), index_constant(block))
    inner = _side_by_side(inner, beside, block)
    buffers = partial * beside
    results = tuple(Register(buffer.dtype, "partial") for buffer in buffers)
    places = [Address(n // len(partial), ((index, beside),)) for n in range(len(buffers))]
    stores = map(Store, buffers, places, results)
    body = Block((replace(inner, results=results), *stores))
    return Block((For(index, index_constant(0), index_constant(blocks // beside), body, LoopKind.PARALLEL),))


class _Same(Names):
    """Registers without another name keep their own."""

    def __missing__(self, key: Buffer | Register) -> Buffer | Register:
        return key


def _side_by_side(loop: For, times: int, apart: int) -> For:
    """Return the loop with `times` copies of its body, over ranges `apart` from each other, and all their results."""
    carries, statements, yields = [*loop.carries], [*loop.body.statements], [*loop.body.yields]
    for number in range(1, times):
        other = moved(loop, Address(number * apart), loop.stop)
        names = _Same({other.index: loop.index})
        for carry in other.carries:
            own = names[carry.register] = Register(carry.register.dtype, carry.register.name)
            carries.append(replace(carry, register=own))
        body = copied(other.body, names)
        statements += body.statements
        yields += body.yields
    return replace(loop, carries=tuple(carries), body=Block(tuple(statements), tuple(yields)))


def _joined(loop: For, partial: list[Buffer], blocks: int, block: int, rest: int) -> list[Statement]:
    """Return the loops that join the partial results and the remainder after the last block."""
    index = Register(I64, "block")
    results = loop.results if not rest else tuple(Register(r.dtype, "sum") for r in loop.results)
    carries, loads, joins, yields = [], [], [], []
    for carry, buffer in zip(loop.carries, partial, strict=True):
        assert carry.combine is not None, "see _reduction"
        so_far, part, total = (Register(buffer.dtype, name) for name in ("acc", "partial", "total"))
        carries.append(Carry(so_far, carry.initial, carry.combine, carry.identity))
        loads.append(Load(part, buffer, Address(0, ((index, 1),))))
        joins.append(Compute(total, carry.combine, (so_far, part)))
        yields.append(total)
    body = Block((*loads, *joins), tuple(yields))
    count, lanes = index_constant(blocks), _LANE_BYTES // max(buffer.dtype.itemsize for buffer in partial)
    statements: list[Statement] = [
        For(index, index_constant(0), count, body, LoopKind.VECTOR, 1, lanes, tuple(carries), results)
    ]
    if rest:
        tail = moved(loop, Address(blocks * block), index_constant(rest))
        starts: tuple[Operand, ...] = results
        entry = tuple(replace(c, initial=r) for c, r in zip(loop.carries, starts, strict=True))
        statements.append(replace(tail, carries=entry))
    return statements
