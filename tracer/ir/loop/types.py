"""Typing rules of the loop IR: the constraints on a statement by itself, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from tracer.ir import loop
from tracer.ir.dtypes import BOOL, F32, F64, I32, I64, DType, is_complex, is_float, is_narrow, short_name
from tracer.ir.loop.walk import accesses_of, alignment_of, operands_of, results_of
from tracer.ir.reductions import COMBINING, identity
from tracer.ir.scalar import ScalarOp

WARP = 32
_WIDTHS = (2, 4, 8, 16)  # bytes of an access of several elements
_ON_NARROW = (ScalarOp.SELECT, ScalarOp.CONVERT, ScalarOp.BITCAST)
_KIND_NAMES = {"b": "bool", "i": "integers", "f": "floats"}


def problems(s: loop.Statement) -> Iterator[str]:
    """Yield a sentence for each defect in the statement's types."""
    for operand in (*operands_of(s), *results_of(s)):
        yield from _value(operand)
    for buffer, address, _ in accesses_of(s):
        yield from _address(address)
        if buffer.size < 0:
            yield f"buffer '{buffer.name}' has a size of {buffer.size}"
    match s:
        case loop.Compute():
            yield from _compute(s)
        case loop.Load():
            yield from _same("the result", s.result, s.buffer.dtype)
            yield from _same("the fill", s.fill, s.buffer.dtype)
            yield from _same("the mask", s.mask, BOOL)
        case loop.Store():
            yield from _same("the value", s.value, s.buffer.dtype)
            yield from _same("the mask", s.mask, BOOL)
        case loop.Update():
            yield from _same("the value", s.value, s.buffer.dtype)
            yield from _same("the mask", s.mask, BOOL)
            yield from _updates(s)
        case loop.For():
            yield from _for(s)
        case loop.While():
            yield from _while(s)
        case loop.If():
            yield from _if(s)
        case loop.Alloc():
            if s.buffer.space not in (loop.Space.LOCAL, loop.Space.SHARED):
                yield f"{s.buffer.space.value} buffer '{s.buffer.name}' cannot be allocated"
        case loop.Copy():
            yield from _count(s.count)
            if s.target.buffer.dtype != s.source.buffer.dtype:
                yield f"a copy from {_of(s.source.buffer)} to {_of(s.target.buffer)}"
        case loop.Transpose():
            yield from _same("the rows", s.rows, I64)
            yield from _same("the columns", s.columns, I64)
            if s.target.buffer.dtype != s.source.buffer.dtype:
                yield f"a transpose from {_of(s.source.buffer)} to {_of(s.target.buffer)}"
        case loop.Fault():
            yield from _fault(s)
        case loop.Shuffle():
            yield from _same("the result", s.result, s.value.dtype)
            if not 0 < s.offset < WARP:
                yield f"an offset of {s.offset}, which is not from 1 to {WARP - 1}"
        case loop.Prefix():
            yield from _combines("a prefix", s.op, s.value.dtype)
            for role, operand in (("the result", s.result), ("the last", s.last), ("the value before", s.before)):
                yield from _same(role, operand, s.value.dtype)
        case loop.StackPush() | loop.StackPop():
            yield from _count(s.count)
        case loop.StackRead() | loop.StackWrite():
            yield from _count(s.count)
            yield from _same("the index", s.index, I64)
        case loop.StackLength():
            yield from _same("the result", s.result, I64)
        case loop.StackReset():
            pass
        case loop.Invoke() | loop.Library() | loop.Callback() | loop.Leave() | loop.Barrier():
            pass
        case _:
            assert_never(s)


def _of(value: loop.Operand | loop.Buffer) -> str:
    return short_name(value.dtype)


def kind(dtype: DType) -> str:
    """Return the letter of the dtype's kind in signatures; "c" for complex, which no operation takes."""
    if dtype == BOOL:
        return "b"
    if is_complex(dtype):
        return "c"
    return "f" if is_float(dtype) else "i"


def _value(operand: loop.Operand) -> Iterator[str]:
    if is_complex(operand.dtype):
        yield f"a register of {short_name(operand.dtype)}: complex numbers are pairs of floats here"
    if isinstance(operand, loop.Constant) and np.asarray(operand.value).dtype != operand.dtype:
        actual = np.asarray(operand.value).dtype
        yield f"a constant of {short_name(operand.dtype)} whose value is {actual}"


def _address(address: loop.Address) -> Iterator[str]:
    for register, coefficient in address.terms:
        if register.dtype not in (I64, I32):
            yield f"an address with a register of {short_name(register.dtype)}, not i64 or i32"
        if coefficient == 0:
            yield "an address with a coefficient of 0"


def _same(role: str, operand: loop.Operand | None, dtype: DType) -> Iterator[str]:
    if operand is not None and operand.dtype != dtype:
        yield f"{role} is {short_name(operand.dtype)}, expected {short_name(dtype)}"


def _count(count: int) -> Iterator[str]:
    if count < 0:
        yield f"a count of {count}"


# -- computations ------------------------------------------------------------------------------------


def _compute(s: loop.Compute) -> Iterator[str]:
    op, signature = s.op, s.op.signature
    if len(s.operands) != signature.arity:
        yield f"{op.label} takes {signature.arity} operands, got {len(s.operands)}"
        return
    operands = s.operands
    if op is ScalarOp.SELECT:
        yield from _same("the predicate of select", operands[0], BOOL)
        operands = operands[1:]
    elif op is ScalarOp.LOOKUP:
        yield from _lookup(operands)
        operands = operands[1:]
    dtype = operands[-1].dtype
    if any(operand.dtype != dtype for operand in operands):
        yield f"{op.label} of {' and '.join([short_name(o.dtype) for o in operands])}"
    if is_narrow(dtype) and op not in _ON_NARROW:
        yield f"{op.label} of {short_name(dtype)}, which is for storage"
    if kind(dtype) not in signature.kinds:
        takes = " and ".join([_KIND_NAMES[k] for k in signature.kinds])
        yield f"{op.label} takes {takes}, got {short_name(dtype)}"
    if signature.result == "target":
        yield from _target(s, dtype)
    else:
        yield from _same("the result", s.result, BOOL if signature.result == "bool" else dtype)


def _lookup(operands: tuple[loop.Operand, ...]) -> Iterator[str]:
    index, *values = operands
    dtype = values[0].dtype
    if dtype not in (F32, F64):
        yield f"lookup of {short_name(dtype)}"
    yield from _same("the index of lookup", index, I32 if dtype.itemsize == I32.itemsize else I64)
    if not all(isinstance(value, loop.Constant) for value in values):
        yield "lookup among values that are not constant"


def _target(s: loop.Compute, dtype: DType) -> Iterator[str]:
    target = s.result.dtype
    if kind(target) not in s.op.signature.kinds:
        yield f"{s.op.label} to {short_name(target)}"
    elif s.op is ScalarOp.BITCAST and target.itemsize != dtype.itemsize:
        yield f"bitcast from {short_name(dtype)} to {short_name(target)}, which has another width"


def _updates(s: loop.Update) -> Iterator[str]:
    signature, dtype = s.op.signature, s.buffer.dtype
    if signature.arity != 2 or signature.result != "same" or kind(dtype) not in signature.kinds or is_narrow(dtype):
        yield f"an update of {short_name(dtype)} with {s.op.label}"


def _combines(role: str, op: ScalarOp, dtype: DType) -> Iterator[str]:
    if op not in COMBINING:
        yield f"{role} with {op.label}; it may be {', '.join([o.label for o in COMBINING])}"
    elif kind(dtype) not in op.signature.kinds or is_narrow(dtype):
        yield f"{role} with {op.label} of {short_name(dtype)}"


# -- control -----------------------------------------------------------------------------------------


def _for(s: loop.For) -> Iterator[str]:
    yield from _same("the index", s.index, I32 if s.index.dtype == I32 else I64)
    for role, operand in (("the start", s.start), ("the stop", s.stop)):
        yield from _same(role, operand, s.index.dtype)
    if s.step == 0:
        yield "a step of 0"
    yield from _carries(s.carries, s.body.yields, s.results)


def _while(s: loop.While) -> Iterator[str]:
    if len(s.condition.yields) != 1:
        yield f"the condition yields {len(s.condition.yields)} values, not one"
    else:
        yield from _same("the yield of the condition", s.condition.yields[0], BOOL)
    if any(carry.combine is not None for carry in s.carries):
        yield "a while loop with a reduction"
    yield from _carries(s.carries, s.body.yields, s.results)


def _carries(
    carries: Sequence[loop.Carry], yields: Sequence[loop.Operand], results: Sequence[loop.Register]
) -> Iterator[str]:
    for carry in carries:
        yield from _carry(carry)
    registers = [carry.register for carry in carries]
    yield from _agree("the body yields", yields, "the carries are", registers)
    yield from _agree("the results are", results, "the carries are", registers)


def _carry(carry: loop.Carry) -> Iterator[str]:
    dtype = carry.register.dtype
    yield from _value(carry.register)
    yield from _same("the initial value of a carry", carry.initial, dtype)
    if carry.combine is None:
        if carry.identity is not None:
            yield "a serial carry with an identity"
        return
    yield from _combines("a reduction", carry.combine, dtype)
    if carry.identity is None:
        yield f"a reduction with {carry.combine.label} lacks an identity"
        return
    yield from _same("the identity of a carry", carry.identity, dtype)
    if carry.combine in COMBINING and kind(dtype) in carry.combine.signature.kinds:
        usual = identity(carry.combine, dtype)
        if carry.identity.value != usual:
            yield f"{carry.identity.value} is not an identity of {carry.combine.label}: {usual} is"


def _agree(role: str, given: Sequence[loop.Operand], wanted: str, expected: Sequence[loop.Operand]) -> Iterator[str]:
    if [o.dtype for o in given] != [o.dtype for o in expected]:
        yield f"{role} {dtype_list(given)}, {wanted} {dtype_list(expected)}"


def dtype_list(operands: Sequence[loop.Operand]) -> str:
    """Return the operands' dtypes as text: `(f32, i64)`."""
    return f"({', '.join([short_name(o.dtype) for o in operands])})"


def _if(s: loop.If) -> Iterator[str]:
    yield from _same("the predicate", s.predicate, BOOL)
    yield from _agree("the first arm yields", s.then.yields, "the results are", s.results)
    yield from _agree("the other arm yields", s.otherwise.yields, "the results are", s.results)


def _fault(s: loop.Fault) -> Iterator[str]:
    yield from _same("the predicate", s.predicate, BOOL)
    yield from _same("the position", s.position, I64)
    for value in s.values:
        yield from _same("a value", value, I64)
    if s.site < 0:
        yield f"a site of {s.site}"


def argument_problems(s: loop.Invoke, parameters: Sequence[loop.Buffer | loop.Register]) -> Iterator[str]:
    """Yield a sentence for each argument that does not fit the callee's parameters."""
    if s.share is not None:
        parameters, bounds = parameters[:-2], parameters[-2:]
        if len(bounds) != 2 or not all(isinstance(p, loop.Register) and p.dtype == I64 for p in bounds):
            yield f"'{s.function}' is shared, and does not end in two i64 parameters"
        if s.share.count < 0 or s.share.grain < 1:
            yield f"shares {s.share.count} in parts of {s.share.grain}"
    if s.stacks:
        count = len(s.stacks) + 1
        parameters, own = parameters[:-count], parameters[-count:]
        if len(own) != count or not all(isinstance(p, loop.Buffer) for p in own) or own[-1].dtype != I64:
            yield f"'{s.function}' works on {len(s.stacks)} stacks, and does not end in their memory and sizes"
    if len(s.arguments) != len(parameters):
        yield f"'{s.function}' takes {len(parameters)} arguments, got {len(s.arguments)}"
        return
    for argument, parameter in zip(s.arguments, parameters, strict=True):
        given = argument.buffer.dtype if isinstance(argument, loop.View) else argument.dtype
        if isinstance(argument, loop.View) == isinstance(parameter, loop.Register):
            wanted = "an operand" if isinstance(parameter, loop.Register) else "a view"
            yield f"'{s.function}' takes {wanted} for '{parameter.name}'"
        elif given != parameter.dtype:
            name, expected = parameter.name, _of(parameter)
            yield f"'{s.function}' takes {expected} for '{name}', got {short_name(given)}"


# -- alignment ---------------------------------------------------------------------------------------


def wide_problems(s: loop.Copy) -> Iterator[str]:
    """Yield a sentence for each reason why a thread of a kernel cannot copy at once."""
    memory = [v for v in (s.target, s.source) if v.buffer.space is not loop.Space.LOCAL]
    size = s.count * s.target.buffer.dtype.itemsize
    if len(memory) != 1:
        yield "a copy in a kernel, not between registers and memory"
    elif size not in _WIDTHS:
        yield f"a copy of {size} bytes in a kernel, not of {', '.join(map(str, _WIDTHS))}"
    elif alignment_of(memory[0]) < size:
        yield f"a copy of {size} bytes at once, aligned to {alignment_of(memory[0])}"


def alignment_problems(s: loop.Invoke, parameters: Sequence[loop.Buffer | loop.Register]) -> Iterator[str]:
    """Yield a sentence for each argument that is not aligned as the callee's parameter."""
    for given, parameter in zip(s.arguments, parameters, strict=False):
        if isinstance(given, loop.View) and isinstance(parameter, loop.Buffer):
            wanted = max(parameter.alignment, parameter.dtype.itemsize)
            if parameter.alignment > 1 and alignment_of(given) < wanted:
                yield f"'{s.function}' takes '{parameter.name}' aligned to {wanted}, got {alignment_of(given)}"
