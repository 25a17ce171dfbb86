"""Reductions of what lies in memory, by functions that programs share: a sum of an array is a call.

    float tracer_total_add_f32_64(ptr memory, i64 count, float initial)    in so many lanes
    { float, float } tracer_total_add_f32_64_2(ptr memory, i64 count, float initial, i64 apart)    of two such stretches

They are vector loops written as any other, so their results have the same bits; LLVM takes some 4 ms for one. What
looks for extremes of floats by their keys is a common function (see `common`), named by its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracer.codegen.llvm.emit import vector_memory
from tracer.codegen.llvm.emit.compute import compute
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.emit.types import ELEMENT
from tracer.codegen.llvm.emit.vector_loop import vector_loop
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.outlined_functions import definition
from tracer.codegen.llvm.toolchain.target import converts_half, permutes_singles, preferred_bits, splits_floats
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
from tracer.ir.loop.build import constant
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

OPS: Final = (ScalarOp.ADD, ScalarOp.MUL, ScalarOp.MAX, ScalarOp.MIN, ScalarOp.AND, ScalarOp.OR)
DTYPES: Final = (F32, F64, I32, I64, U32, U64)
_ON_FLOATS: Final = OPS[:4]
_KEY: Final = (
    ScalarOp.BITCAST, ScalarOp.SHR_ARITHMETIC, ScalarOp.AND, ScalarOp.XOR, ScalarOp.BITCAST, ScalarOp.SUB,
)  # fmt: skip
_VECTOR_BYTES: Final = 64
LONG: Final = 1 << 12  # elements from which on a loop within another calls, and an array is read once

_TIMES: Final = (1, 2, 4)  # stretches of memory that are read side by side

Kind = tuple[ScalarOp, DType, int, int]

KINDS: Final[Mapping[str, Kind]] = {
    f"tracer_total_{op.name.lower()}_{short_name(dtype)}_{n}{f'_{times}' * (times > 1)}": (op, dtype, n, times)
    for dtype in DTYPES
    for op in (_ON_FLOATS if dtype in (F32, F64) else OPS)
    for n in (vectors * _VECTOR_BYTES // dtype.itemsize for vectors in (1, 2, 4))
    for times in _TIMES
}
"""By the names of the functions: the operation, the dtype, the lanes, the stretches."""
_NAMES: Final = {kind: name for name, kind in KINDS.items()}


def total(f: Frame, s: For) -> bool:
    """Write a vector loop as a call, or as one for each carry, if all it does is to reduce memory."""
    loads = None if f.lanes else reduced_loads(s, is_within=len(f.scopes) > 1)
    if loads is None:
        return False
    apart = _apart(s, loads)
    groups = [[*range(len(loads))]] if apart is not None else [[n] for n in range(len(loads))]
    if _is_keyed(s):
        _call_common(f, s, loads[0])
        groups = []
    for group in groups:
        _call(f, s, group, loads[group[0]], apart)
    f.height = max(f.height, 1)
    return True


def _call(f: Frame, s: For, group: Sequence[int], load: Load, apart: int | None) -> None:
    """One call for some carries, whose stretches of memory begin where that of the first one does, so far apart."""
    carry, dtype, times = s.carries[group[0]], load.buffer.dtype, len(group)
    assert isinstance(s.stop, Constant)
    assert isinstance(carry.combine, ScalarOp)
    name, element = _NAMES[carry.combine, dtype, s.lanes, times], ELEMENT[dtype]
    start = Address(load.address.constant, tuple(t for t in load.address.terms if t[0] is not s.index))
    memory, initial = f.pointer(load.buffer, start), f.operand(carry.initial)
    given = f"ptr {memory}, i64 {int(s.stop.value)}, {element} {initial}"
    taken = f"ptr, i64, {element}"
    if times > 1:
        given, taken = f"{given}, i64 {apart}", f"{taken}, i64"
    kind = _result(element, times)
    f.w.declarations[f"@{name}"] = f"declare {kind} @{name}({taken})"
    found = f.w.let(f"call {kind} @{name}({given})")
    for number, place in enumerate(group):
        f.define(s.results[place], found if times == 1 else f.w.let(f"extractvalue {kind} {found}, {number}"))


def _result(element: str, times: int) -> str:
    return element if times == 1 else f"{{ {', '.join([element] * times)} }}"


def _apart(s: For, loads: Sequence[Load]) -> int | None:
    """How far apart the stretches of memory of the carries are, if they are evenly so, and reduced alike."""
    first, times = loads[0], len(loads)
    alike = len({(c.combine, c.initial) for c in s.carries}) == 1
    along = all(
        load.buffer is first.buffer and dict(load.address.terms) == dict(first.address.terms) for load in loads
    )  # fmt: skip
    places = [load.address.constant - first.address.constant for load in loads]
    even = times > 1 and times in _TIMES and places == [n * places[1] for n in range(times)]
    return places[1] if alike and along and even else None


def reduced_loads(s: For, *, is_within: bool) -> list[Load] | None:
    """What each carry of a vector loop reduces, if that is all it does, and calls cost no time; else None.

    is_within: whether it stands in another loop.
    """
    formed = _is_keyed(s)
    if not (s.carries and isinstance(s.stop, Constant) and (formed or len(s.body.statements) == 2 * len(s.carries))):
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
    is_keyed = _is_keyed(s)
    load = s.body.statements[0] if is_keyed else made.get(element) if isinstance(element, Register) else None
    if before is not carry.register or not isinstance(load, Load) or load.mask is not None:
        return None
    dtype, steps = carry.register.dtype, [c for r, c in load.address.terms if r is s.index]
    known = (joined.op, dtype, s.lanes, 1) in _NAMES and (dtype == load.buffer.dtype or is_keyed)
    return load if known and steps == [1] and carry.identity == constant(identity(joined.op, dtype), dtype) else None


def _is_keyed(s: For) -> bool:
    """Whether all that a loop does is to read floats, form their keys (see `schedule.extremes`), and join them."""
    if len(s.carries) != 1 or not s.body.statements or not isinstance(s.body.statements[0], Load):
        return False
    load, *forming, joined = s.body.statements
    assert isinstance(load, Load)
    if load.buffer.dtype not in (F32, F64) or tuple(x.op for x in forming if isinstance(x, Compute)) != _KEY:
        return False
    known = {load.result}
    for x in forming:
        registers = {o for o in x.operands if isinstance(o, Register)} if isinstance(x, Compute) else set()
        if not isinstance(x, Compute) or not registers or not registers <= known:
            return False
        known.add(x.result)
    last = forming[-1]
    return isinstance(joined, Compute) and isinstance(last, Compute) and joined.operands[-1] is last.result


def _call_common(f: Frame, s: For, load: Load) -> None:
    """A call of the loop as a function of where its elements begin, of their count and of what is joined at last."""
    carry, dtype = s.carries[0], s.carries[0].register.dtype
    memory = Buffer("memory", load.buffer.dtype, 1, Space.ARGUMENT)
    count, initial, result = Register(I64, "count"), Register(dtype, "initial"), Register(dtype, "result")
    first = Load(load.result, memory, Address(0, ((s.index, 1),)))
    body = Block((first, *s.body.statements[1:]), s.body.yields)
    loop = replace(s, stop=count, body=body, carries=(replace(carry, initial=initial),), results=(result,))
    writer = f.w.alike()
    g = Frame(Function("total", (memory, count, initial), Block((loop,))), writer, _run)
    g.buffers[memory] = "%memory"
    g.define(count, "%count")
    g.define(initial, "%initial")
    vector_loop(g, loop)
    element = ELEMENT[dtype]
    lines = [*g.entry, *writer.lines, f"  ret {element} {g.operand(result)}"]
    name, text = definition(
        "tracer_total_", element, f"ptr noalias %memory, i64 %count, {element} %initial", lines
    )  # fmt: skip
    f.common[name] = text
    start = Address(load.address.constant, tuple(t for t in load.address.terms if t[0] is not s.index))
    at, given = f.pointer(load.buffer, start), f.operand(carry.initial)
    assert isinstance(s.stop, Constant)
    f.define(
        s.results[0], f.w.let(f"call {element} @{name}(ptr {at}, i64 {int(s.stop.value)}, {element} {given})")
    )  # fmt: skip


def total_text(name: str) -> str:
    """The module of one function."""
    op, dtype, n, times = KINDS[name]
    memory, index = Buffer("memory", dtype, 1, Space.ARGUMENT), Register(I64, "i")
    count, initial, apart = Register(I64, "count"), Register(dtype, "initial"), Register(I64, "apart")
    before, elements, after, results = (
        [Register(dtype, r) for _ in range(times)] for r in ("before", "element", "after", "result")
    )
    places = [Address(0, ((index, 1), *([(apart, number)] if number else []))) for number in range(times)]
    loads = [Load(element, memory, place) for element, place in zip(elements, places, strict=True)]
    joins = [Compute(new, op, (old, x)) for new, old, x in zip(after, before, elements, strict=True)]
    carries = tuple(Carry(old, initial, op, constant(identity(op, dtype), dtype)) for old in before)
    body = Block((*loads, *joins), tuple(after))
    loop = For(index, index_constant(0), count, body, LoopKind.VECTOR, 1, n, carries, tuple(results))
    writer = Writer(
        {}, half_native=converts_half(), splits_floats=splits_floats(), permutes_singles=permutes_singles()
    )  # fmt: skip
    f = Frame(Function(name, (memory, count, initial, apart), Block((loop,))), writer, _run)
    f.buffers[memory] = "%memory"
    for register in (count, initial, apart):
        f.define(register, f"%{register.name}")
    vector_loop(f, loop)
    element, kind = ELEMENT[dtype], _result(ELEMENT[dtype], times)
    found = f.operand(results[0])
    if times > 1:
        found = "poison"
        for number, result in enumerate(results):
            found = writer.let(f"insertvalue {kind} {found}, {element} {f.operand(result)}, {number}")
    taken = f"ptr noalias %memory, i64 %count, {element} %initial{', i64 %apart' * (times > 1)}"
    return "\n".join([
        *sorted(writer.declarations.values()),
        f"define {kind} @{name}({taken}) #0 {{",
        "entry:", *f.entry, *writer.lines, f"  ret {kind} {found}", "}",
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{preferred_bits()}" }}', "",
    ])  # fmt: skip


def _run(f: Frame, block: Block) -> None:
    for s in block.statements:
        if isinstance(s, Load):
            vector_memory.load(f, s)
        elif isinstance(s, Compute):
            compute(f, s)
