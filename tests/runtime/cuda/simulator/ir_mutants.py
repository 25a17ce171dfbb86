"""Mapped loop IR with one fault each: what a wrong schedule would write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tests.runtime.cuda.simulator.running import run, simulated
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.ir.dtypes import BOOL, I32, I64
from tracer.ir.loop import (
    Address,
    Barrier,
    Compute,
    Constant,
    Copy,
    Fault,
    For,
    Function,
    If,
    Load,
    LoopKind,
    Module,
    Operand,
    Shuffle,
    ShuffleKind,
    Statement,
    Store,
)
from tracer.ir.loop.walk import statements_of, with_statements
from tracer.ir.scalar import ScalarOp
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.runtime.cuda.simulator.memory import KernelError

_OTHER: Final = {
    ScalarOp.ADD: ScalarOp.SUB, ScalarOp.SUB: ScalarOp.ADD, ScalarOp.MUL: ScalarOp.ADD, ScalarOp.LT: ScalarOp.LE,
    ScalarOp.GT: ScalarOp.GE, ScalarOp.EQ: ScalarOp.NE, ScalarOp.IREM: ScalarOp.IDIV, ScalarOp.IDIV: ScalarOp.IREM,
    ScalarOp.MAX: ScalarOp.MIN,
}  # fmt: skip
_INDEXING: Final = (
    ScalarOp.ADD, ScalarOp.SUB, ScalarOp.MUL, ScalarOp.IDIV, ScalarOp.IREM, ScalarOp.MIN, ScalarOp.MAX, ScalarOp.EQ,
    ScalarOp.LT, ScalarOp.LE, ScalarOp.GT, ScalarOp.GE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A kernel of a program with one statement changed."""

    kernel: str
    function: Function
    what: str


def changes(module: Module) -> Iterator[Change]:
    """Yield every change of every kernel of a mapped program."""
    for function in module.functions:
        if function.name == module.entry:
            continue
        for number, statement in enumerate(statements_of(function.body)):
            for what, by in _of(statement):
                body = with_statements(function.body, lambda s, at=statement, by=by: by if s is at else (s,))
                yield Change(function.name, replace(function, body=body), f"{function.name}, {number}: {what}")


def _of(s: Statement) -> Iterator[tuple[str, Sequence[Statement]]]:
    match s:
        case Barrier():
            yield "no barrier", ()
        case Fault():
            yield "no check", ()
        case Load() | Store():
            kind = type(s).__name__.lower()
            for what, address in _addresses(s.address):
                yield f"{kind} {s.buffer.name} {what}", (replace(s, address=address),)
            if s.mask is not None:
                yield f"{kind} {s.buffer.name} without its mask", (replace(s, mask=None),)
            if isinstance(s, Store):
                yield f"no store of {s.buffer.name}", ()
        case Copy():
            for name in ("target", "source"):
                view = getattr(s, name)
                for what, address in _addresses(view.start):
                    yield f"copy's {name} {what}", (replace(s, **{name: replace(view, start=address)}),)
            yield "copy of half", (replace(s, count=s.count // 2),)
        case For(kind=LoopKind.SERIAL):
            for what, stop in _values(s.stop):
                yield f"loop to {what}", (replace(s, stop=stop),)
            yield "loop with twice the step", (replace(s, step=2 * s.step),)
        case If():
            yield "always", (replace(s, predicate=Constant(np.bool_(True), BOOL)),)
        case Shuffle():
            yield "shuffle by 1 more", (replace(s, offset=s.offset % 31 + 1),)
            other = ShuffleKind.DOWN if s.kind is ShuffleKind.XOR else ShuffleKind.XOR
            yield f"shuffle {other.value}", (replace(s, kind=other),)
        case Compute():
            if s.op in _OTHER and not (s.op is ScalarOp.MUL and s.operands[0] is s.operands[1]):
                yield f"{_OTHER[s.op].label} for {s.op.label}", (replace(s, op=_OTHER[s.op]),)
            for i, operand in enumerate(s.operands):
                for what, value in _values(operand) if s.op in _INDEXING else ():
                    operands = (*s.operands[:i], value, *s.operands[i + 1 :])
                    yield f"{s.op.label} with {what}", (replace(s, operands=operands),)


def _addresses(address: Address) -> Iterator[tuple[str, Address]]:
    yield "one element on", replace(address, constant=address.constant + 1)
    yield "one element back", replace(address, constant=address.constant - 1)
    for i, (register, by) in enumerate(address.terms):
        for other in (by + 1, by - 1):
            term = ((register, other),) if other else ()
            yield (
                f"with {other} {register.name}",
                replace(address, terms=(*address.terms[:i], *term, *address.terms[i + 1 :])),
            )


def _values(operand: Operand) -> Iterator[tuple[str, Operand]]:
    if isinstance(operand, Constant) and operand.dtype in (I32, I64):
        for by in (1, -1):
            value = int(operand.value) + by
            if value > 0:
                yield str(value), Constant(operand.dtype.type(value), operand.dtype)


def source_of_all(module: Module, found: Sequence[Change]) -> CudaSource:
    """Return one source with the program's kernels and every changed one, under a name with its number behind."""
    changed = [replace(c.function, name=f"{c.kernel}_{i}") for i, c in enumerate(found)]
    return emit_cuda(replace(module, functions=(*module.functions, *changed)))


def what_shows(
    source: CudaSource, number: int, change: Change, inputs: Sequence[Sequence[Any]], wanted: Sequence[Any]
) -> str:
    """Return how a change shows itself on some inputs: the simulator's report, wrong bits, or "" if it does not."""
    for given, right in zip(inputs, wanted, strict=True):
        for order in Order:
            try:
                found = bits_of(source, given, order, {change.kernel: f"{change.kernel}_{number}"})
            except (KernelError, AssertionError) as error:
                return str(error)
            if found != right:
                return "wrong bits"
    return ""


def bits_of(source: CudaSource, inputs: Sequence[Any], order: Order, names: dict[str, str]) -> Any:
    """Return the bits of a program's outputs and its fault, with other kernels in the place of those named."""
    outputs, fault = run(source, list(inputs), simulated(order, seed=3, names=names, most=100_000))
    return [array.tobytes() for array in outputs], fault


def telling_inputs(types: Sequence[tuple[str, tuple[int, ...]]], rng: np.random.Generator) -> Iterator[list[Any]]:
    """Yield operands of which any element can decide the result: few ones among zeros, and the last one alone."""
    yield [np.asarray(rng.integers(-3, 4, shape) + rng.random(shape), dtype) for dtype, shape in types]
    wide = [rng.random(shape) * 10.0 ** rng.integers(-6, 4, shape) for _, shape in types]
    yield [np.asarray(array, dtype) for array, (dtype, _) in zip(wide, types, strict=True)]
    for count in range(6):
        arrays = []
        for dtype, shape in types:
            array = np.asarray(rng.random(shape) < 0.03 if count else np.zeros(shape), dtype) * np.asarray(5, dtype)
            array[..., -1:] = 0 if count else 5
            arrays.append(array)
        yield arrays
