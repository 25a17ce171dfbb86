"""Reductions of what lies in memory, by functions that programs share: a sum of an array is a call.

    float tracer_total_add_f32_64(ptr memory, i64 count, float initial)    in so many lanes

They are vector loops written as any other, so their results have the same bits; LLVM takes some 4 ms for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracer.codegen.llvm import lanes
from tracer.codegen.llvm.compute import compute
from tracer.codegen.llvm.frame import Frame
from tracer.codegen.llvm.machine import converts_half, permutes_singles, preferred_bits, splits_floats
from tracer.codegen.llvm.types import ELEMENT
from tracer.codegen.llvm.vector_loop import vector_loop
from tracer.codegen.llvm.writer import Writer
from tracer.ir.dtypes import F32, F64, I32, I64, U32, U64, DType, short_name
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    For,
    Function,
    Load,
    LoopKind,
    Register,
    Space,
    index_constant,
)  # fmt: skip
from tracer.ir.loop_build import constant
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

OPS: Final = (ScalarOp.ADD, ScalarOp.MUL, ScalarOp.MAX, ScalarOp.MIN, ScalarOp.AND, ScalarOp.OR)
DTYPES: Final = (F32, F64, I32, I64, U32, U64)
_ON_FLOATS: Final = OPS[:4]
_VECTOR_BYTES: Final = 64
LONG: Final = 1 << 12  # elements from which on a loop within another calls, and an array is read once

Kind = tuple[ScalarOp, DType, int]

KINDS: Final[Mapping[str, Kind]] = {
    f"tracer_total_{op.name.lower()}_{short_name(dtype)}_{n}": (op, dtype, n)
    for dtype in DTYPES
    for op in (_ON_FLOATS if dtype in (F32, F64) else OPS)
    for n in (_VECTOR_BYTES // dtype.itemsize, 4 * _VECTOR_BYTES // dtype.itemsize)
}
"""By the names of the functions: the operation, the dtype, the lanes."""
_NAMES: Final = {kind: name for name, kind in KINDS.items()}


def total(f: Frame, s: For) -> bool:
    """Write a vector loop as calls, one for each carry, if all it does is to reduce memory."""
    loads = None if f.lanes else reduced_loads(s, is_within=len(f.scopes) > 1)
    if loads is None:
        return False
    assert isinstance(s.stop, Constant)
    for carry, result, load in zip(s.carries, s.results, loads, strict=True):
        assert isinstance(carry.combine, ScalarOp)
        name, element = _NAMES[carry.combine, load.buffer.dtype, s.lanes], ELEMENT[load.buffer.dtype]
        f.w.declarations[f"@{name}"] = f"declare {element} @{name}(ptr, i64, {element})"
        start = Address(load.address.constant, tuple(t for t in load.address.terms if t[0] is not s.index))
        memory, initial = f.pointer(load.buffer, start), f.operand(carry.initial)
        given = f"ptr {memory}, i64 {int(s.stop.value)}, {element} {initial}"
        f.define(result, f.w.let(f"call {element} @{name}({given})"))
    f.height = max(f.height, 1)
    return True


def reduced_loads(s: For, *, is_within: bool) -> list[Load] | None:
    """What each carry of a vector loop reduces, if that is all it does, and calls cost no time; else None.

    is_within: whether it stands in another loop.
    """
    if not (s.carries and isinstance(s.stop, Constant) and len(s.body.statements) == 2 * len(s.carries)):
        return None
    count = int(s.stop.value)
    if count < LONG if is_within else count >= LONG and len(s.carries) > 1:
        return None
    loads = [_reduced(s, carry, n) for n, carry in enumerate(s.carries)]
    found = [load for load in loads if load is not None]
    return found if len(found) == len(loads) else None


def _reduced(s: For, carry: Carry, number: int) -> Load | None:
    """The load whose elements a carry joins, one after another, and nothing else."""
    made = {x.result: x for x in s.body.statements if isinstance(x, Load | Compute)}
    joined = made.get(y) if isinstance(y := s.body.yields[number], Register) else None
    if not isinstance(joined, Compute) or joined.op is not carry.combine or len(joined.operands) != 2:
        return None
    before, element = joined.operands
    load = made.get(element) if isinstance(element, Register) else None
    if before is not carry.register or not isinstance(load, Load) or load.mask is not None:
        return None
    dtype, steps = load.buffer.dtype, [c for r, c in load.address.terms if r is s.index]
    known = (joined.op, dtype, s.lanes) in _NAMES and carry.register.dtype == dtype
    return load if known and steps == [1] and carry.identity == constant(identity(joined.op, dtype), dtype) else None


def total_text(name: str) -> str:
    """The module of one function."""
    op, dtype, n = KINDS[name]
    memory, index = Buffer("memory", dtype, 1, Space.ARGUMENT), Register(I64, "i")
    count, initial = Register(I64, "count"), Register(dtype, "initial")
    before, element, after, result = (Register(dtype, r) for r in ("before", "element", "after", "result"))
    body = Block(
        (Load(element, memory, Address(0, ((index, 1),))), Compute(after, op, (before, element))), (after,)
    )  # fmt: skip
    carry = Carry(before, initial, op, constant(identity(op, dtype), dtype))
    loop = For(index, index_constant(0), count, body, LoopKind.VECTOR, 1, n, (carry,), (result,))
    writer = Writer(
        {}, half_native=converts_half(), splits_floats=splits_floats(), permutes_singles=permutes_singles()
    )  # fmt: skip
    f = Frame(Function(name, (memory, count, initial), Block((loop,))), writer, _run)
    f.buffers[memory] = "%memory"
    f.define(count, "%count")
    f.define(initial, "%initial")
    vector_loop(f, loop)
    kind = ELEMENT[dtype]
    return "\n".join([
        *sorted(writer.declarations.values()),
        f"define {kind} @{name}(ptr noalias %memory, i64 %count, {kind} %initial) #0 {{",
        "entry:", *f.entry, *writer.lines, f"  ret {kind} {f.operand(result)}", "}",
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{preferred_bits()}" }}', "",
    ])  # fmt: skip


def _run(f: Frame, block: Block) -> None:
    for s in block.statements:
        if isinstance(s, Load):
            lanes.load(f, s)
        elif isinstance(s, Compute):
            compute(f, s)
