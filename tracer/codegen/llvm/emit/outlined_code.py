"""Functions that programs share: outlined blocks, which few lanes run, and math functions outside vector loops.

    define void @tracer_rare_3f(ptr %in0, ptr %out0, i64 %lanes)    eight lanes at a time, values by lane in memory
    define double @tracer_math_5d(double %x0)

The last reduction of a sine's argument is such a block, and half of a sine's code. Its text is the same in every
program (see `outlined_functions`). The registers of the loop are saved around the call. So a loop that never calls does
not pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.outlined_functions import definition
from tracer.codegen.llvm.toolchain.types import ELEMENT, SHORT_FLOATS, vector
from tracer.ir.dtypes import BOOL
from tracer.ir.loop import Block, Compute, Function, If, Register
from tracer.ir.loop.walk import operands_of, results_of

LANES: Final = 8  # a vector of f64
_PREFIX: Final = "tracer_rare_"


def inputs_of(f: Frame, block: Block) -> list[Register] | None:
    """Return the registers that a block reads, or None where a function cannot take them or has too few lanes."""
    if f.lanes < LANES:
        return None
    own = {result for s in block.statements for result in results_of(s)}
    read = [o for s in block.statements for o in operands_of(s)]
    read += block.yields
    inputs = dict.fromkeys(o for o in read if isinstance(o, Register) and o not in own)
    types = [r.dtype for r in (*inputs, *(y for y in block.yields if isinstance(y, Register)))]
    plain = f.index not in inputs and not any(t == BOOL or t in SHORT_FLOATS for t in types)
    return list(inputs) if plain else None


def call(f: Frame, s: If, inputs: Sequence[Register]) -> list[str]:
    """Write a call of `then` and return the values that it yields, by lane."""
    w, lanes = f.w, f.lanes
    given = []
    for number, register in enumerate(inputs):
        if register in f.varying:
            memory = _memory(f, f"part{number}", register)
            kind = vector(ELEMENT[register.dtype], lanes)
            w.do(f"store {kind} {f.operand(register, lanes)}, ptr {memory}, align 64")
            given.append(f"ptr {memory}")
        else:
            given.append(f.typed(register))
    taken = [_memory(f, f"result{number}", register) for number, register in enumerate(s.results)]
    name, text = _definition(f, s, inputs)
    f.common[name] = text
    w.do(f"call void @{name}({', '.join([*given, *(f'ptr {memory}' for memory in taken)])}, i64 {lanes})")
    kinds = [vector(ELEMENT[register.dtype], lanes) for register in s.results]
    return [w.let(f"load {kind}, ptr {memory}, align 64") for kind, memory in zip(kinds, taken, strict=True)]


def _memory(f: Frame, role: str, register: Register) -> str:
    """Return scratch memory for one value a lane."""
    return f.scratch(role, f"[{f.lanes} x {ELEMENT[register.dtype]}]")


def _definition(f: Frame, s: If, inputs: Sequence[Register]) -> tuple[str, str]:
    """Return the function's name, which its text decides, and the text."""
    w = f.w.alike()
    g = Frame(Function("rare", (), s.then), w, f.run_block)
    g.lanes, g.varying, g.hears = LANES, f.varying, False
    parameters, by_lane = [], []
    for number, register in enumerate(inputs):
        if register in f.varying:
            by_lane.append((register, f"%in{number}"))
            parameters.append(f"ptr %in{number}")
        else:
            g.define(register, f"%in{number}")
            parameters.append(f"{ELEMENT[register.dtype]} %in{number}")
    parameters += [f"ptr noalias %out{number}" for number in range(len(s.results))]
    g.open_scope()
    w.jump("part")
    w.open("part")
    slot = w.slot()
    for register, memory in by_lane:
        kind = vector(ELEMENT[register.dtype], LANES)
        g.define(register, w.let(f"load {kind}, ptr {_at(w, register, memory)}, align {register.dtype.itemsize}"))
    g.run(s.then)
    for number, (register, value) in enumerate(zip(s.results, s.then.yields, strict=True)):
        given = f"{vector(ELEMENT[register.dtype], LANES)} {g.operand(value, LANES)}"
        w.do(f"store {given}, ptr {_at(w, register, f'%out{number}')}, align {register.dtype.itemsize}")
    w.do(f"%following = add i64 %lane, {LANES}")
    w.branch(w.let("icmp slt i64 %following, %lanes"), "part", "done")
    w.fill(slot, [f"  %lane = phi i64 [ 0, %entry ], [ %following, %{w.block} ]"])
    g.close_scope()
    w.open("done")
    return definition(_PREFIX, "void", f"{', '.join(parameters)}, i64 %lanes", [*g.entry, *w.lines, "  ret void"])


def _at(w: Writer, register: Register, memory: str) -> str:
    return w.let(f"getelementptr {ELEMENT[register.dtype]}, ptr {memory}, i64 %lane")


def math_call(f: Frame, s: Compute, callee: Function) -> str:
    """Write a call of the module's math function for one value, and return its result."""
    key = (callee.name, f.w.half_native, f.w.splits_floats, f.w.permutes_singles)
    kept = _MATH_TEXTS.get(key)
    if kept is None or kept[0] is not callee:
        kept = _MATH_TEXTS[key] = (callee, *_math_definition(f, callee))
    _, name, text, declarations = kept
    f.w.declarations.update(declarations)
    f.common[name] = text
    return f.w.let(f"call {ELEMENT[s.result.dtype]} @{name}({', '.join(f.typed(x) for x in s.operands)})")


_MATH_TEXTS: Final[dict[tuple[object, ...], tuple[Function, str, str, dict[str, str]]]] = {}  # a function's last text


def _math_definition(f: Frame, callee: Function) -> tuple[str, str, dict[str, str]]:
    """Return the function's name, which its text decides, the text, and the declarations that it needs."""
    w = f.w.alike()
    w.declarations = {}
    g = Frame(callee, w, f.run_block)
    g.hears = False
    parameters = []
    for number, register in enumerate(callee.parameters):
        assert isinstance(register, Register), "math functions take registers"
        g.define(register, f"%x{number}")
        parameters.append(f"{ELEMENT[register.dtype]} %x{number}")
    g.run(callee.body)
    result = callee.body.yields[0]
    element = ELEMENT[result.dtype]
    lines = [*g.entry, *w.lines, f"  ret {element} {g.operand(result)}"]
    return *definition("tracer_math_", element, ", ".join(parameters), lines), w.declarations
