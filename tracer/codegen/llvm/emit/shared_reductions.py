"""Reductions of memory by functions that programs share: a sum of an array is a call.

    float tracer_total_add_f32_64(ptr memory, i64 count, float initial)    in 64 lanes
    { float, float } tracer_total_add_f32_64_2(ptr memory, i64 count, float initial, i64 apart)    of two stretches

They are vector loops written as any other, so their results have the same bits; LLVM takes some 4 ms for one. A maximum
or minimum of floats by their keys is an outlined function, named by its text (see `outlined_functions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracer.codegen.llvm.emit import polls, vector_memory
from tracer.codegen.llvm.emit.compute import compute
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.emit.vector_loop import vector_loop
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.outlined_functions import definition
from tracer.codegen.llvm.toolchain.target import converts_half, permutes_singles, preferred_bits, splits_floats
from tracer.codegen.llvm.toolchain.types import ELEMENT
from tracer.ir import loop
from tracer.ir.dtypes import F32, F64, I64, DType, short_name
from tracer.ir.loop.build import constant
from tracer.ir.loop.memory_reductions import DTYPES, OPS, STRETCHES, VECTORS, distance, is_keyed, reduced_loads
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

_ON_FLOATS: Final = OPS[:4]
_VECTOR_BYTES: Final = 64

Kind = tuple[ScalarOp, DType, int, int]

KINDS: Final[Mapping[str, Kind]] = {
    f"tracer_total_{op.name.lower()}_{short_name(dtype)}_{n}{f'_{times}' * (times > 1)}": (op, dtype, n, times)
    for dtype in DTYPES
    for op in (_ON_FLOATS if dtype in (F32, F64) else OPS)
    for n in (vectors * _VECTOR_BYTES // dtype.itemsize for vectors in VECTORS)
    for times in STRETCHES
}
"""Operation, dtype, lanes and stretches of each function, by its name."""
_NAMES: Final = {kind: name for name, kind in KINDS.items()}


def outlined_reduction(f: Frame, s: loop.For) -> None:
    """Write a vector loop that only reduces memory as a call, or as one for each carry."""
    loads = reduced_loads(s)
    if loads is None or f.lanes:
        f.fail("an outlined loop that does not only reduce memory")
    if is_keyed(s):
        _call_common(f, s, loads[0])
    else:
        apart = distance(s, loads)
        groups = [[*range(len(loads))]] if apart is not None else [[n] for n in range(len(loads))]
        for group in groups:
            _call(f, s, group, loads[group[0]], apart)
    polls.after(f, polls.trips(f, s) or 0)


def _call(f: Frame, s: loop.For, group: Sequence[int], load: loop.Load, apart: int | None) -> None:
    """Write one call for a group of carries, whose stretches of memory begin `apart` elements from each other.

    load: the first carry's.
    """
    carry, dtype, times = s.carries[group[0]], load.buffer.dtype, len(group)
    assert isinstance(s.stop, loop.Constant)
    assert isinstance(carry.combine, ScalarOp)
    name, element = _NAMES[carry.combine, dtype, s.lanes, times], ELEMENT[dtype]
    start = loop.Address(load.address.constant, tuple(t for t in load.address.terms if t[0] is not s.index))
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


def _call_common(f: Frame, s: loop.For, load: loop.Load) -> None:
    """Write a call of the loop as a function of its memory's start, its count and its initial value."""
    carry, dtype = s.carries[0], s.carries[0].register.dtype
    memory = loop.Buffer("memory", load.buffer.dtype, 1, loop.Space.ARGUMENT)
    count = loop.Register(I64, "count")
    initial, result = (loop.Register(dtype, name) for name in ("initial", "result"))
    first = loop.Load(load.result, memory, loop.Address(0, ((s.index, 1),)))
    body = loop.Block((first, *s.body.statements[1:]), s.body.yields)
    whole = replace(s, stop=count, body=body, carries=(replace(carry, initial=initial),), results=(result,))
    writer = f.w.alike()
    g = Frame(loop.Function("total", (memory, count, initial), loop.Block((whole,))), writer, _run)
    g.hears = False
    g.buffers[memory] = "%memory"
    g.define(count, "%count")
    g.define(initial, "%initial")
    vector_loop(g, whole)
    element = ELEMENT[dtype]
    lines = [*g.entry, *writer.lines, f"  ret {element} {g.operand(result)}"]
    name, text = definition(
        "tracer_total_", element, f"ptr noalias %memory, i64 %count, {element} %initial", lines
    )  # fmt: skip
    f.common[name] = text
    start = loop.Address(load.address.constant, tuple(t for t in load.address.terms if t[0] is not s.index))
    at, given = f.pointer(load.buffer, start), f.operand(carry.initial)
    assert isinstance(s.stop, loop.Constant)
    f.define(
        s.results[0], f.w.let(f"call {element} @{name}(ptr {at}, i64 {int(s.stop.value)}, {element} {given})")
    )  # fmt: skip


def total_text(name: str) -> str:
    """Return the module of one function."""
    op, dtype, n, times = KINDS[name]
    memory, index = loop.Buffer("memory", dtype, 1, loop.Space.ARGUMENT), loop.Register(I64, "i")
    count, initial, apart = loop.Register(I64, "count"), loop.Register(dtype, "initial"), loop.Register(I64, "apart")
    before, elements, after, results = (
        [loop.Register(dtype, r) for _ in range(times)] for r in ("before", "element", "after", "result")
    )
    places = [loop.Address(0, ((index, 1), *([(apart, number)] if number else []))) for number in range(times)]
    loads = [loop.Load(element, memory, place) for element, place in zip(elements, places, strict=True)]
    joins = [loop.Compute(new, op, (old, x)) for new, old, x in zip(after, before, elements, strict=True)]
    carries = tuple(loop.Carry(old, initial, op, constant(identity(op, dtype), dtype)) for old in before)
    body = loop.Block((*loads, *joins), tuple(after))
    whole = loop.For(index, loop.index_constant(0), count, body, loop.LoopKind.VECTOR, 1, n, carries, tuple(results))
    writer = Writer(
        {}, half_native=converts_half(), splits_floats=splits_floats(), permutes_singles=permutes_singles()
    )  # fmt: skip
    f = Frame(loop.Function(name, (memory, count, initial, apart), loop.Block((whole,))), writer, _run)
    f.hears = False
    f.buffers[memory] = "%memory"
    for register in (count, initial, apart):
        f.define(register, f"%{register.name}")
    vector_loop(f, whole)
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


def _run(f: Frame, block: loop.Block) -> None:
    for s in block.statements:
        if isinstance(s, loop.Load):
            vector_memory.load(f, s)
        elif isinstance(s, loop.Compute):
            compute(f, s)
