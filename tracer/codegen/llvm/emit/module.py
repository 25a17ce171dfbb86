"""A loop program as LLVM text: its functions, statement by statement, and their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from tracer.codegen.llvm.emit import effects, polls, scalar_memory, transposes, vector_memory
from tracer.codegen.llvm.emit.compute import compute
from tracer.codegen.llvm.emit.frame import CONTEXT, Finished, Frame
from tracer.codegen.llvm.emit.lane_scan import prefix
from tracer.codegen.llvm.emit.nontemporal_copy import fence
from tracer.codegen.llvm.emit.runtime_helpers import DECLARATIONS, HELPERS, helper_text
from tracer.codegen.llvm.emit.serial_loops import if_, serial, while_
from tracer.codegen.llvm.emit.shared_reductions import outlined_reduction
from tracer.codegen.llvm.emit.vector_loop import vector_loop
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.kernels.routines import library_texts
from tracer.codegen.llvm.toolchain import outlined_functions
from tracer.codegen.llvm.toolchain.abi import MAIN_SYMBOL, Status
from tracer.codegen.llvm.toolchain.target import converts_half, permutes_singles, preferred_bits, splits_floats
from tracer.codegen.llvm.toolchain.types import ELEMENT
from tracer.errors import InternalError
from tracer.ir import loop
from tracer.ir.loop.walk import statements_of


def emit_module(module: loop.Module, *, vector_bits: int | None = None, marks: Mapping[int, int] | None = None) -> str:
    """Return the module as LLVM text, which exports `tracer_main`. Equal modules give equal text.

    vector_bits: vector width of the machine that the text is for; None for this one. Results do not depend on it,
    except matrix products on machines without fused multiply-add. marks: numbers of statements by their `id`; the lines
    of such a statement stand between the comments `;<` with its number and `;>`.

    Raises InternalError for statements that a CPU cannot run.
    """
    functions = {function.name: function for function in module.functions}
    declarations, helpers, parts = dict(DECLARATIONS), dict[str, None](), dict[str, tuple[str, ...]]()
    common_texts: dict[str, str] = {}
    texts, finished, lengths = [], dict[str, Finished](), polls.shares(module)
    patient = polls.patient(module)
    calls = [s for f in module.functions for s in statements_of(f.body) if isinstance(s, loop.Invoke)]
    inlined = {s.function for s in calls if s.inlined}
    for function in module.functions:
        if function.body.yields or function.name in inlined:  # math functions are written with the first call
            continue
        writer = Writer(
            declarations,
            half_native=converts_half(vector_bits),
            splits_floats=splits_floats(vector_bits),
            permutes_singles=permutes_singles(vector_bits),
        )
        frame = Frame(function, writer, run_block)
        frame.functions, frame.helpers, frame.parts, frame.common = functions, helpers, parts, common_texts
        frame.finished, frame.marks, frame.patient = finished, marks or {}, patient
        if function.name in lengths:
            frame.part_lengths = polls.part_lengths(function, lengths[function.name])
        texts.append(_function(frame, is_main=function.name == module.entry))
        finished[function.name] = Finished(frame.unpolled, "interrupted" in frame.exits)
    if module.entry not in functions:
        raise InternalError(f"llvm: the module's entry '{module.entry}' is missing")
    bits = preferred_bits(vector_bits)
    shared = [_apart(helper_text(name), declarations) for name in HELPERS if name in helpers]
    shared += [_apart(text, declarations) for text in library_texts(helpers)]
    texts += [effects.part_definition(name, kinds) for name, kinds in parts.items()]
    texts += [outlined_functions.marked(name, text) for name, text in common_texts.items()]
    attributes = [
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" }}',
        "attributes #1 = { cold noinline nounwind }",
        "attributes #2 = { nounwind }",
        outlined_functions.WEIGHTS,
    ]
    attributes += ["!1 = !{i32 1}"] if any("!nontemporal !1" in text for text in (*shared, *texts)) else []
    return "\n".join([*sorted(declarations.values()), "", *shared, *texts, *attributes, ""])


def _apart(definition: str, declarations: dict[str, str]) -> str:
    """Return a text without its declarations, which are added to `declarations`: several texts may share one."""
    kept = []
    for line in definition.splitlines():
        if line.startswith("declare "):
            declarations[line[line.index("@") : line.index("(")]] = line
        else:
            kept.append(line)
    return "\n".join([*kept, ""])


def _function(f: Frame, *, is_main: bool) -> str:
    """Return the definition of one function."""
    header = _main_header(f) if is_main else _nest_header(f)
    f.run(f.function.body)
    f.w.jump("leave")
    for label, status in (("interrupted", Status.INTERRUPTED), ("raised", Status.RAISED)):
        if label in f.exits:
            f.w.open(label)
            f.w.do(f"store i32 {int(status)}, ptr {CONTEXT}, align 4")
            f.w.jump("leave")
    f.w.open("leave")
    fence(f)
    if is_main:
        f.w.do(f"ret i32 {f.w.let(f'load i32, ptr {CONTEXT}, align 4')}")
    else:
        f.w.do("ret void")
    return "\n".join([header, "entry:", *f.entry, *f.w.lines, "}", ""])


def _main_header(f: Frame) -> str:
    for i, parameter in enumerate(f.function.parameters):
        if not isinstance(parameter, loop.Buffer):
            f.fail("the entry takes a register")
        f.slots[parameter] = i
    plain = " noinline optnone" * f.function.plain
    return f"define i32 @{MAIN_SYMBOL}(ptr %buffers, ptr {CONTEXT}){plain} #0 {{"


def _nest_header(f: Frame) -> str:
    parameters = []
    for parameter in f.function.parameters:
        name = f.w.name()
        if isinstance(parameter, loop.Register):
            parameters.append(f"{ELEMENT[parameter.dtype]} {name}")
            f.define(parameter, name)
        else:
            if parameter.space is not loop.Space.ARGUMENT:
                f.fail(f"parameter '{parameter.name}' is a {parameter.space.value} buffer")
            alignment = max(parameter.alignment, parameter.dtype.itemsize)
            parameters.append(f"ptr noalias align {alignment} {name}")
            f.buffers[parameter] = name
    parameters.append(f"ptr {CONTEXT}")
    return f"define internal void {effects.function_name(f.function.name)}({', '.join(parameters)}) #0 {{"


def run_block(f: Frame, block: loop.Block) -> None:
    """Write a block's statements."""
    for statement in block.statements:
        mark = f.marks.get(id(statement))
        if mark is not None:
            f.w.lines.append(f";< {mark}")
        if f.lanes:
            _statement_in_lanes(f, statement)
        else:
            _statement(f, statement)
        polls.after(f, polls.steps(f, statement))
        if mark is not None:
            f.w.lines.append(";>")


def _statement(f: Frame, s: loop.Statement) -> None:
    match s:
        case loop.Compute():
            compute(f, s)
        case loop.Load():
            scalar_memory.load(f, s)
        case loop.Store():
            scalar_memory.store(f, s)
        case loop.Invoke():
            effects.invoke(f, s)
        case loop.Update():
            scalar_memory.update(f, s)
        case loop.For():
            _for(f, s)
        case loop.While():
            while_(f, s)
        case loop.If():
            if_(f, s)
        case loop.Alloc():
            f.allocate(s.buffer)
        case loop.Copy():
            effects.copy(f, s)
        case loop.Transpose():
            transposes.transpose(f, s)
        case loop.Fault():
            effects.fault(f, s)
        case loop.Leave():
            effects.leave(f, s)
        case loop.Library():
            effects.library(f, s)
        case loop.Callback():
            effects.callback(f, s)
        case loop.StackPush():
            effects.stack_push(f, s)
        case loop.StackPop():
            effects.stack_pop(f, s)
        case loop.StackRead():
            effects.stack_read(f, s)
        case loop.StackWrite():
            effects.stack_write(f, s)
        case loop.StackLength():
            effects.stack_length(f, s)
        case loop.StackReset():
            effects.stack_reset(f, s)
        case loop.Prefix():
            f.fail("Prefix outside a vector loop")
        case loop.Barrier() | loop.Shuffle():
            f.fail(f"{type(s).__name__} is for GPUs")
        case _:
            assert_never(s)


def _for(f: Frame, s: loop.For) -> None:
    match s.kind:
        case loop.LoopKind.SERIAL | loop.LoopKind.PARALLEL:  # iterations of a parallel loop may run in order, too
            serial(f, s)
        case loop.LoopKind.VECTOR:
            (outlined_reduction if s.outlined else vector_loop)(f, s)
        case loop.LoopKind.BLOCK | loop.LoopKind.THREAD:
            f.fail(f"a {s.kind.value} loop is for GPUs")
        case _:
            assert_never(s.kind)


def _varies(f: Frame, address: loop.Address) -> bool:
    return any(register in f.varying for register, _ in address.terms)


def _statement_in_lanes(f: Frame, s: loop.Statement) -> None:
    """Write a statement of a vector loop. Lane-invariant statements are written as outside of one."""
    match s:
        case loop.Load() if s.result in f.varying:
            vector_memory.load(f, s)
        case loop.Store() if s.value in f.varying or s.mask in f.varying or _varies(f, s.address):
            vector_memory.store(f, s)
        case loop.Update():
            vector_memory.update(f, s)
        case loop.Prefix():
            prefix(f, s)
        case (
            loop.Compute() | loop.Load() | loop.Store() | loop.For() | loop.While() | loop.If()
            | loop.Alloc() | loop.Fault() | loop.Leave()
        ):  # fmt: skip
            _statement(f, s)
        case _:
            f.fail(f"{type(s).__name__} inside a vector loop")
