"""Serial loops, While and If: basic blocks whose phis are the carries."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.codegen.llvm.emit import outlined_code, polls
from tracer.codegen.llvm.emit.compute import apply
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.toolchain.types import ELEMENT, vector
from tracer.ir.loop import (
    Carry,
    Compute,
    Constant,
    For,
    If,
    Operand,
    Register,
    While,
)


def phi(f: Frame, name: str, register: Register, *incoming: tuple[str, str]) -> str:
    """Return the line `name = phi type [value, block], ...` for a value of the register's type."""
    kind = vector(ELEMENT[register.dtype], f.lanes_of(register))
    return f"  {name} = phi {kind} " + ", ".join(f"[ {value}, %{block} ]" for value, block in incoming)


def define_phis(f: Frame, registers: Sequence[Register], *incoming: tuple[list[str], str]) -> None:
    """Name the registers as phis of the predecessors' values. Each predecessor is its values and its block."""
    names = [f.w.name() for _ in registers]
    for i, (name, register) in enumerate(zip(names, registers, strict=True)):
        f.w.lines.append(phi(f, name, register, *((values[i], block) for values, block in incoming)))
    for name, register in zip(names, registers, strict=True):
        f.define(register, name)


def range_is_known(start: Operand, stop: Operand, step: int) -> bool:
    """Whether the range surely has an iteration."""
    return (
        isinstance(start, Constant) and isinstance(stop, Constant)
        and len(range(int(start.value), int(stop.value), step)) > 0
    )  # fmt: skip


def first_value(carry: Carry) -> Operand:
    """Return the value of a carry in the first iteration."""
    if carry.combine is None:
        return carry.initial
    assert carry.identity is not None, "a carry with `combine` has an identity"
    return carry.identity


class CarriedPhis:
    """The carries of a loop while its body is written."""

    def __init__(self, f: Frame, carries: tuple[Carry, ...], first: list[str]) -> None:
        self.f, self.carries, self.first = f, carries, first
        self.before = f.w.block
        self.names = [f.w.name() for _ in carries]
        self.slot = -1

    def begin(self) -> None:
        """Reserve the phis and name the carries."""
        self.slot = self.f.w.slot()
        for carry, name in zip(self.carries, self.names, strict=True):
            self.f.define(carry.register, name)

    def end(self, values: list[str], latch: str, *more: str) -> None:
        """Write the phis, once the last block of the body and its yields are known."""
        rows = zip(self.names, self.carries, self.first, values, strict=True)
        lines = [phi(self.f, n, c.register, (a, self.before), (b, latch)) for n, c, a, b in rows]
        self.f.w.fill(self.slot, [*more, *lines])


def yields(f: Frame, operands: Sequence[Operand], registers: Sequence[Register]) -> list[str]:
    """Return the operands in the registers' form: one value per lane where a register varies."""
    return [f.operand(o, f.lanes_of(r)) for o, r in zip(operands, registers, strict=True)]


def serial(f: Frame, s: For) -> None:
    """Write a loop for index in range(start, stop, step), one iteration after another."""
    w = f.w
    if s.step == 0:
        f.fail("a loop of step 0")
    start, stop = f.operand(s.start), f.operand(s.stop)
    registers = [carry.register for carry in s.carries]
    first = yields(f, [first_value(carry) for carry in s.carries], registers)
    if s.unrolled:
        _unrolled(f, s, first)
        return
    order = "slt" if s.step > 0 else "sgt"
    known = range_is_known(s.start, s.stop, s.step)
    f.open_scope()
    before_loop, f.unpolled = f.unpolled, 0
    body, done, before = w.label("loop"), w.label("done"), w.block
    phis = CarriedPhis(f, s.carries, first)
    if known:
        w.jump(body)
    else:
        w.branch(w.let(f"icmp {order} i64 {start}, {stop}"), body, done)
    w.open(body)
    index, following = w.name(), w.name()
    f.define(s.index, index)
    phis.begin()
    f.run(s.body)
    values = yields(f, s.body.yields, registers)
    unpolled = polls.latch(f, index, polls.trips(f, s), s.step)
    w.do(f"{following} = add i64 {index}, {s.step}")
    w.branch(w.let(f"icmp {order} i64 {following}, {stop}"), body, done)
    latch = w.block
    phis.end(values, latch, f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
    f.close_scope()
    f.unpolled = before_loop + unpolled
    w.open(done)
    _results(f, s, [(values, latch)] if known else [(first, before), (values, latch)])


def _unrolled(f: Frame, s: For, values: list[str]) -> None:
    """Write the iterations one after another. values: of the carries, before the first."""
    registers = [carry.register for carry in s.carries]
    if not isinstance(s.start, Constant) or not isinstance(s.stop, Constant):
        f.fail("unrolls a loop whose range is not constant")
    for index in range(int(s.start.value), int(s.stop.value), s.step):
        f.define(s.index, str(index))
        for register, value in zip(registers, values, strict=True):
            f.define(register, value)
        f.run(s.body)
        values = yields(f, s.body.yields, registers)
    for carry, value, result in zip(s.carries, values, s.results, strict=True):
        f.define(result, _joined(f, carry, value, result))


def _joined(f: Frame, carry: Carry, value: str, result: Register) -> str:
    """Return a carry's result: a reduction's initial value is joined in."""
    if carry.combine is None:
        return value
    lanes = f.lanes_of(result)
    return apply(f.w, carry.combine, result.dtype, f.operand(carry.initial, lanes), value, lanes)


def _results(f: Frame, s: For, incoming: list[tuple[list[str], str]]) -> None:
    """Define the carries after the last iteration; a reduction's initial value is joined in."""
    if all(carry.combine is None for carry in s.carries):
        define_phis(f, s.results, *incoming)
        return
    names = [f.w.name() for _ in s.results]
    for i, (name, result) in enumerate(zip(names, s.results, strict=True)):
        f.w.lines.append(phi(f, name, result, *((values[i], block) for values, block in incoming)))
    for carry, name, result in zip(s.carries, names, s.results, strict=True):
        f.define(result, _joined(f, carry, name, result))


def while_(f: Frame, s: While) -> None:
    """Write a loop that runs while its condition yields true. Every iteration polls the stop word."""
    w = f.w
    registers = [carry.register for carry in s.carries]
    first = yields(f, [carry.initial for carry in s.carries], registers)
    f.open_scope()
    if s.condition.yields[0] in f.varying:
        _while_in_lanes(f, s, first)
        return
    head, body, done = w.label("while"), w.label("do"), w.label("done")
    phis = CarriedPhis(f, s.carries, first)
    w.jump(head)
    w.open(head)
    phis.begin()
    before = f.unpolled
    f.run(s.condition)
    w.branch(f.operand(s.condition.yields[0]), body, done)
    tested, unpolled, f.unpolled = w.block, f.unpolled, f.unpolled - before
    w.open(body)
    f.run(s.body)
    values = yields(f, s.body.yields, registers)
    f.poll()
    f.unpolled = unpolled
    w.jump(head)
    phis.end(values, w.block)
    f.close_scope()
    w.open(done)
    define_phis(f, s.results, (phis.names, tested))


def _while_in_lanes(f: Frame, s: While, first: list[str]) -> None:
    """Iterate until all lanes are done, each iteration masked to the active lanes. Closes the loop's scope."""
    w, lanes, outer = f.w, f.lanes, f.mask
    kind, registers = vector("i1", lanes), [carry.register for carry in s.carries]
    head, body, done = w.label("while"), w.label("do"), w.label("done")
    phis, live = CarriedPhis(f, s.carries, first), w.name()
    w.jump(head)
    w.open(head)
    phis.begin()
    f.mask, before = live, f.unpolled
    f.run(s.condition)
    going = w.let(f"and {kind} {live}, {f.operand(s.condition.yields[0], lanes)}")
    w.branch(w.any(going, lanes), body, done)
    tested, unpolled, f.unpolled = w.block, f.unpolled, f.unpolled - before
    w.open(body)
    f.mask = going
    f.run(s.body)
    new = zip(registers, yields(f, s.body.yields, registers), phis.names, strict=True)
    kept = [(vector(ELEMENT[r.dtype], lanes), a, b) for r, a, b in new]
    values = [w.let(f"select {kind} {going}, {of} {a}, {of} {b}") for of, a, b in kept]
    f.poll()
    f.unpolled = unpolled
    w.jump(head)
    entering = outer or "splat (i1 true)"
    phis.end(values, w.block, f"  {live} = phi {kind} [ {entering}, %{phis.before} ], [ {going}, %{w.block} ]")
    f.mask = outer
    f.close_scope()
    w.open(done)
    define_phis(f, s.results, (phis.names, tested))


def if_(f: Frame, s: If) -> None:
    """Write one of two arms. Where the predicate varies by lane, the first is skipped if no lane takes it."""
    w = f.w
    if s.predicate in f.varying:
        _if_in_lanes(f, s)
        return
    predicate = f.operand(s.predicate)
    then, otherwise, join = w.label("then"), w.label("else"), w.label("join")
    incoming, unpolled = [], []
    w.branch(predicate, then, otherwise)
    before = f.unpolled
    for label, block in ((then, s.then), (otherwise, s.otherwise)):
        w.open(label)
        f.unpolled = before
        f.run(block)
        unpolled.append(f.unpolled)
        incoming.append((yields(f, block.yields, s.results), w.block))
        w.jump(join)
    f.unpolled = max(unpolled)
    w.open(join)
    define_phis(f, s.results, *incoming)


def _if_in_lanes(f: Frame, s: If) -> None:
    """Select results by lane: the yields of `then`, which only computes, or the yields of `otherwise`."""
    w, lanes = f.w, f.lanes
    if s.otherwise.statements or not all(isinstance(inner, Compute) for inner in s.then.statements):
        f.fail("an If whose predicate varies by lane, and whose arms do more than compute")
    predicate = f.operand(s.predicate, lanes)
    usual = yields(f, s.otherwise.yields, s.results)
    then, join, before = w.label("then"), w.label("join"), w.block
    w.branch(w.any(predicate, lanes), then, join, unlikely=True)
    w.open(then)
    inputs = outlined_code.inputs_of(f, s.then) if s.outlined else None
    if inputs is None:
        f.run(s.then)
        rarely = yields(f, s.then.yields, s.results)
    else:
        rarely = outlined_code.call(f, s, inputs)
    mask, chosen = f"{vector('i1', lanes)} {predicate}", []
    for result, rare, other in zip(s.results, rarely, usual, strict=True):
        kind = vector(ELEMENT[result.dtype], lanes)
        chosen.append(w.let(f"select {mask}, {kind} {rare}, {kind} {other}"))
    after = w.block
    w.jump(join)
    w.open(join)
    define_phis(f, s.results, (usual, before), (chosen, after))
