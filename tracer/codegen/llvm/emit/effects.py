"""Statements with effects beyond registers and loops: faults, leaving, calls, copies, stacks, callbacks."""

from __future__ import annotations

from tracer.codegen.llvm.emit import polls
from tracer.codegen.llvm.emit.frame import CONTEXT, Frame
from tracer.codegen.llvm.emit.vector_memory import active, spill_as_memory
from tracer.codegen.llvm.kernels.fft.plans import plans_named
from tracer.codegen.llvm.kernels.routines import LIBRARY, called
from tracer.codegen.llvm.toolchain.abi import FAULT_VALUES
from tracer.codegen.llvm.toolchain.types import vector
from tracer.ir import loop
from tracer.ir.dtypes import BOOL


def fault(f: Frame, s: loop.Fault) -> None:
    """Record a fault where the predicate holds, in a cold block."""
    if len(s.values) > FAULT_VALUES:
        f.fail(f"a fault with {len(s.values)} values; {FAULT_VALUES} are the most")
    f.helpers["fault"] = None
    w, by_lane = f.w, any(x in f.varying for x in (s.predicate, s.position, *s.values))
    if by_lane:
        f.helpers["fault_lanes"] = None
        mask = active(f, s.predicate)
        assert mask is not None
        condition = w.any(mask, f.lanes)
    else:
        condition = f.operand(s.predicate)
    cold, go_on = w.label("fault"), w.label("go")
    w.branch(condition, cold, go_on, unlikely=True)
    w.open(cold)
    if by_lane:
        _record_lanes(f, s, mask)
    else:
        values = [f.operand(v) for v in s.values] + ["0"] * (FAULT_VALUES - len(s.values))
        arguments = ", ".join(f"i64 {v}" for v in (f.operand(s.position), *values))
        w.do(f"call void @tracer.fault(ptr {CONTEXT}, i32 {s.site}, {arguments})")
    w.jump(go_on)
    w.open(go_on)


def _record_lanes(f: Frame, s: loop.Fault, mask: str | None) -> None:
    """Pass the lanes' positions and values to the recording function as arrays."""
    assert mask is not None
    w, n = f.w, f.lanes
    flags = spill_as_memory(f, "mask", BOOL, mask)
    data = f.scratch("fault", f"[{n * (1 + FAULT_VALUES)} x i64]")
    rows = [f.operand(x, n) for x in (s.position, *s.values)]
    rows += ["zeroinitializer"] * (1 + FAULT_VALUES - len(rows))
    for i, row in enumerate(rows):
        slot = w.let(f"getelementptr i64, ptr {data}, i64 {i * n}")
        w.do(f"store {vector('i64', n)} {row}, ptr {slot}, align 8")
    w.do(f"call void @tracer.fault_lanes(ptr {CONTEXT}, i32 {s.site}, i64 {n}, ptr {flags}, ptr {data})")


def leave(f: Frame, s: loop.Leave) -> None:
    """Return at once where the call's status is set."""
    status = f.w.let(f"load i32, ptr {CONTEXT}, align 4")
    _exit_if(f, f.w.let(f"icmp ne i32 {status}, 0"), "leave")


def _exit_if(f: Frame, condition: str, way: str) -> None:
    """Leave the function where a condition holds, hardly ever."""
    go_on = f.w.label("go")
    f.w.branch(condition, f.exit(way), go_on, unlikely=True)
    f.w.open(go_on)


def _view(f: Frame, view: loop.View) -> str:
    return f.pointer(view.buffer, view.start)


def _argument(f: Frame, argument: loop.View | loop.Operand) -> str:
    return f"ptr {_view(f, argument)}" if isinstance(argument, loop.View) else f.typed(argument)


def function_name(name: str) -> str:
    """Return the symbol of a function of the module."""
    return f'@"nest.{name}"'


def invoke(f: Frame, s: loop.Invoke) -> None:
    """Call another function of the module."""
    callee = f.functions.get(s.function)
    if callee is None:
        f.fail(f"invoke of '{s.function}', which the module does not have")
    for argument, parameter in zip(s.arguments, callee.parameters, strict=s.share is None):
        if isinstance(argument, loop.View) != isinstance(parameter, loop.Buffer):
            f.fail(f"invoke of '{s.function}' hands over a view for a register, or the reverse")
    if s.inlined:
        for argument, parameter in zip(s.arguments, callee.parameters, strict=True):
            if isinstance(argument, loop.View):
                assert isinstance(parameter, loop.Buffer), "tested above"
                f.buffers[parameter] = _view(f, argument)
            else:
                assert isinstance(parameter, loop.Register), "tested above"
                f.define(parameter, f.operand(argument))
        f.run(callee.body)
        return
    arguments = [_argument(f, argument) for argument in s.arguments]
    if s.share is None:
        f.w.do(f"call void {function_name(s.function)}({', '.join((*arguments, f'ptr {CONTEXT}'))})")
    else:
        _share(f, s.function, arguments, s.share)
    finished = f.finished.get(s.function)
    if finished is None or finished.polls:
        f.poll()
    if finished is not None:
        polls.after(f, finished.unpolled)


def _share(f: Frame, name: str, arguments: list[str], share: loop.Share) -> None:
    """Pass parts of a function's work to the thread pool, the arguments in an array of eight-byte slots."""
    given = [*arguments, f"ptr {CONTEXT}"]
    slots = f.scratch("shared", f"[{len(given)} x i64]", 8)
    for i, argument in enumerate(given):
        f.w.do(f"store {argument}, ptr {f.w.let(f'getelementptr i64, ptr {slots}, i64 {i}')}, align 8")
    f.parts[name] = tuple(argument.rpartition(" ")[0] for argument in given)
    f.w.declarations["@tracer_share"] = "declare void @tracer_share(ptr, ptr, i64, i64)"
    f.w.do(f"call void @tracer_share(ptr {part_name(name)}, ptr {slots}, i64 {share.count}, i64 {share.grain})")


def part_name(name: str) -> str:
    """Return the symbol of the function that runs a part of another."""
    return f'@"part.{name}"'


def part_definition(name: str, kinds: tuple[str, ...]) -> str:
    """Return the function that runs the part (begin, end) of another, with its arguments from an array.

    kinds: LLVM types of the arguments.
    """
    lines = [f"define internal void {part_name(name)}(ptr %given, i64 %begin, i64 %end) noinline optnone #0 {{"]
    for i, kind in enumerate(kinds):
        lines.append(f"  %slot{i} = getelementptr i64, ptr %given, i64 {i}")
        lines.append(f"  %value{i} = load {kind}, ptr %slot{i}, align 8")
    *arguments, context = (f"{kind} %value{i}" for i, kind in enumerate(kinds))
    lines.append(f"  call void {function_name(name)}({', '.join((*arguments, 'i64 %begin', 'i64 %end', context))})")
    return "\n".join([*lines, "  ret void", "}", ""])


def library(f: Frame, s: loop.Library) -> None:
    """Call a library routine by the kernel that the schedule chose."""
    routine = LIBRARY.get(s.name)
    if routine is None:
        f.fail(f"library routine '{s.name}' is unknown")
    arguments = [_argument(f, argument) for argument in s.arguments]
    if routine.hears:
        arguments.append(f"ptr {f.context_field('stop')}")
    calls = routine.spell(routine, s, arguments)
    for call in calls:
        f.w.do(call)
        f.helpers[called(call)] = None
        f.w.declarations.update({f"@{plan}": f"@{plan} = external global i64" for plan in plans_named(call)})


def copy(f: Frame, s: loop.Copy) -> None:
    """Write target[: count] = source[: count]. LLVM's memcpy allows equal pointers."""
    size = s.count * s.target.buffer.dtype.itemsize
    if size:
        target, source = _view(f, s.target), _view(f, s.source)
        f.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def stack_push(f: Frame, s: loop.StackPush) -> None:
    """Append to a growable stack; leave the function where memory runs out."""
    f.helpers["stack_push"] = f.helpers["stack_write"] = None
    size, source = s.count * s.source.buffer.dtype.itemsize, _view(f, s.source)
    arguments = f"ptr {CONTEXT}, i64 {s.stack}, ptr {source}, i64 {size}"
    _exit_if(f, f.w.let(f"call i1 @tracer.stack_push({arguments})"), "leave")


def stack_pop(f: Frame, s: loop.StackPop) -> None:
    """Move the last elements of a growable stack."""
    f.helpers["stack_pop"] = None
    size, target = s.count * s.target.buffer.dtype.itemsize, _view(f, s.target)
    arguments = f"ptr {CONTEXT}, i64 {s.stack}, ptr {target}, i64 {size}"
    f.w.do(f"call void @tracer.stack_pop({arguments})")


def stack_read(f: Frame, s: loop.StackRead) -> None:
    """Copy an item of a growable stack."""
    f.helpers["stack_read"] = None
    size, target = s.count * s.target.buffer.dtype.itemsize, _view(f, s.target)
    arguments = f"ptr {CONTEXT}, i64 {s.stack}, i64 {f.operand(s.index)}, ptr {target}, i64 {size}"
    f.w.do(f"call void @tracer.stack_read({arguments})")


def stack_write(f: Frame, s: loop.StackWrite) -> None:
    """Set an item of a growable stack; leave the function where memory runs out."""
    f.helpers["stack_write"] = None
    size, source = s.count * s.source.buffer.dtype.itemsize, _view(f, s.source)
    arguments = f"ptr {CONTEXT}, i64 {s.stack}, i64 {f.operand(s.index)}, ptr {source}, i64 {size}"
    _exit_if(f, f.w.let(f"call i1 @tracer.stack_write({arguments})"), "leave")


def stack_length(f: Frame, s: loop.StackLength) -> None:
    """Read how many items a growable stack holds."""
    f.helpers["stack_length"] = None
    f.define(s.result, f.w.let(f"call i64 @tracer.stack_length(ptr {CONTEXT}, i64 {s.stack}, i64 {s.size})"))


def stack_reset(f: Frame, s: loop.StackReset) -> None:
    """Empty a growable stack."""
    f.helpers["stack_reset"] = None
    f.w.do(f"call void @tracer.stack_reset(ptr {CONTEXT}, i64 {s.stack})")


def callback(f: Frame, s: loop.Callback) -> None:
    """Call Python through the context's function pointer; leave where it raised."""
    w = f.w
    arrays = []
    for role, views in (("callback.inputs", s.inputs), ("callback.outputs", s.outputs)):
        array = f.scratch(role, f"[{max(len(views), 1)} x ptr]", 8)
        for i, view in enumerate(views):
            w.do(f"store ptr {_view(f, view)}, ptr {w.let(f'getelementptr ptr, ptr {array}, i64 {i}')}, align 8")
        arrays.append(array)
    function, self = f.context_field("callback"), f.context_field("callback_self")
    arguments = f"ptr {self}, i64 {s.slot}, ptr {arrays[0]}, ptr {arrays[1]}"
    result = w.let(f"call i32 {function}({arguments})")
    _exit_if(f, w.let(f"icmp ne i32 {result}, 0"), "raised")
