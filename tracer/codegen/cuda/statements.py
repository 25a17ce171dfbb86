"""Statements of a kernel, each as lines of CUDA C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tracer.codegen.cuda.compute import expression
from tracer.codegen.cuda.frame import Frame
from tracer.codegen.cuda.source import FAULT_SHIFT
from tracer.codegen.cuda.types import SHORT_FLOATS, literal, memory_name, type_name
from tracer.ir import loop
from tracer.ir.dtypes import BOOL, I64, DType, is_signed
from tracer.ir.loop.build import constant

_ALL_LANES = "0xffffffffu"


def run_block(f: Frame, block: loop.Block) -> None:
    """Write a block's statements."""
    for statement in block.statements:
        _statement(f, statement)


def _statement(f: Frame, s: loop.Statement) -> None:
    match s:
        case loop.Compute():
            f.do(f"const {f.define(s.result)} = {expression(s, f.operand, f.helpers)};")
        case loop.Load():
            _load(f, s)
        case loop.Store():
            value = f"(u8){f.operand(s.value)}" if s.buffer.dtype == BOOL else f.operand(s.value)
            where = "" if s.mask is None else f"if ({f.operand(s.mask)}) "
            f.do(f"{where}{f.element(s.buffer, s.address)} = {value};")
        case loop.For():
            _for(f, s)
        case loop.While():
            _while(f, s)
        case loop.If():
            _if(f, s)
        case loop.Alloc():
            shared = "__shared__ " if s.buffer.space is loop.Space.SHARED else ""
            f.do(f"{shared}{memory_name(s.buffer.dtype)} {f.name(s.buffer)}[{s.buffer.size}];")
        case loop.Copy():
            _copy(f, s)
        case loop.Fault():
            site, position = f.index(loop.Constant(I64.type(s.site << FAULT_SHIFT), I64)), f.operand(s.position)
            f.do(f"if ({f.operand(s.predicate)}) atomicMin(fault, 0x{int(site):x}ull | (u64){position});")
        case loop.Leave():
            f.do("if (fault[0] != ~0ull) return;")
        case loop.Barrier():
            f.do("__syncthreads();")
        case loop.Shuffle():
            _shuffle(f, s)
        case (
            loop.Update() | loop.Prefix() | loop.Transpose() | loop.Invoke()
            | loop.Library() | loop.Callback() | loop.StackPush() | loop.StackPop()
            | loop.StackRead() | loop.StackWrite() | loop.StackReset() | loop.StackLength()
        ):  # fmt: skip
            f.fail(f"{type(s).__name__} within a kernel, which the schedule leaves to the host")
        case _:
            assert_never(s)


def _load(f: Frame, s: loop.Load) -> None:
    element = f.element(s.buffer, s.address)
    if s.buffer.dtype == BOOL:
        element += " != 0"
    if s.mask is not None:
        fill = f.operand(s.fill) if s.fill is not None else literal(constant(0, s.buffer.dtype))
        element = f"{f.operand(s.mask)} ? {element} : {fill}"
    f.do(f"const {f.define(s.result)} = {element};")


def _copy(f: Frame, s: loop.Copy) -> None:
    """Write one access to memory as wide as the copy. Its other side is an array in registers."""
    is_load = s.target.buffer.space is loop.Space.LOCAL
    helper = "load_wide" if is_load else "store_wide"
    f.helpers |= dict.fromkeys(("vector", helper))
    places = ", ".join(f"{f.name(v.buffer)}, {f.address(v.start)}" for v in (s.target, s.source))
    f.do(f"tr_{helper}<{s.count}>({places});")


def _for(f: Frame, s: loop.For) -> None:
    """Write a serial loop. A carry is a variable, which the statements after the loop read under the result's name."""
    if s.kind is not loop.LoopKind.SERIAL or any(carry.combine is not None for carry in s.carries):
        f.fail(f"a {s.kind.value} loop, or a reduction, within a thread, which the schedule writes out")
    for carry in s.carries:
        f.do(f"{f.define(carry.register)} = {f.operand(carry.initial)};")
    index, start, stop = f.define(s.index), f.index(s.start), f.index(s.stop)
    name, compare = f.name(s.index), "<" if s.step > 0 else ">"
    if s.unrolled:
        f.do("#pragma unroll")
    with f.braces(f"for ({index} = {start}; {name} {compare} {stop}; {name} += {s.step})"):
        run_block(f, s.body)
        _assign(f, [carry.register for carry in s.carries], s.body.yields)
    for carry, result in zip(s.carries, s.results, strict=True):
        f.alias(result, f.name(carry.register))


def _while(f: Frame, s: loop.While) -> None:
    """Write a loop that leaves where its condition fails. Carries are variables, as in `_for`."""
    for carry in s.carries:
        f.do(f"{f.define(carry.register)} = {f.operand(carry.initial)};")
    with f.braces("for (;;)"):
        run_block(f, s.condition)
        f.do(f"if (!({f.operand(s.condition.yields[0])})) break;")
        run_block(f, s.body)
        _assign(f, [carry.register for carry in s.carries], s.body.yields)
    for carry, result in zip(s.carries, s.results, strict=True):
        f.alias(result, f.name(carry.register))


def _assign(f: Frame, targets: Sequence[loop.Register], values: Sequence[loop.Operand]) -> None:
    """Assign values to targets in parallel: a value that is another target's old one is saved first."""
    pairs = [(t, v) for t, v in zip(targets, values, strict=True) if t is not v]
    names = [f.operand(v) for _, v in pairs]
    overwritten = {f.name(t) for t, _ in pairs}
    if len(pairs) > 1 and overwritten.intersection(names):
        for i, (target, _) in enumerate(pairs):
            held = f.fresh("next")
            f.do(f"const {type_name(target.dtype)} {held} = {names[i]};")
            names[i] = held
    for (target, _), name in zip(pairs, names, strict=True):
        f.do(f"{f.name(target)} = {name};")


def _if(f: Frame, s: loop.If) -> None:
    for result in s.results:
        f.do(f"{f.define(result)};")
    has_else = bool(s.otherwise.statements or s.otherwise.yields)
    with f.braces(f"if ({f.operand(s.predicate)})", tail="} else {" if has_else else "}"):
        run_block(f, s.then)
        _assign(f, s.results, s.then.yields)
    if has_else:
        f.depth += 1
        run_block(f, s.otherwise)
        _assign(f, s.results, s.otherwise.yields)
        f.depth -= 1
        f.do("}")


def _shuffle(f: Frame, s: loop.Shuffle) -> None:
    function = "__shfl_xor_sync" if s.kind is loop.ShuffleKind.XOR else "__shfl_down_sync"
    dtype, value = s.value.dtype, f.operand(s.value)
    narrow = _carrier(dtype)
    call = f"{function}({_ALL_LANES}, {f'({narrow})' if narrow else ''}{value}, {s.offset})"
    text = f"{call} != 0" if dtype == BOOL else f"({type_name(dtype)}){call}" if narrow else call
    f.do(f"const {f.define(s.result)} = {text};")


def _carrier(dtype: DType) -> str:
    """Return the 32-bit type in which a narrow value is shuffled; "" for types that shuffles take."""
    if dtype == BOOL or dtype in SHORT_FLOATS:
        return "u32"
    return ("i32" if is_signed(dtype) else "u32") if dtype.itemsize < 4 else ""
