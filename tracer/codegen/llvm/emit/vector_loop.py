"""Vector loops: full iterations of `lanes` indices, then a masked one for the remainder."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit import polls
from tracer.codegen.llvm.emit.compute import apply
from tracer.codegen.llvm.emit.divergence import Variation
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.emit.serial_loops import CarriedPhis, first_value, phi, yields
from tracer.codegen.llvm.toolchain.types import ELEMENT, indices, iota, leading_mask, splat, vector
from tracer.ir.loop import Carry, Constant, For

_MAX_HELD: Final = 8  # partial results that stay in registers beside the results of a masked iteration


def vector_loop(f: Frame, s: For) -> None:
    """Write a loop for index in range(0, stop), `lanes` at a time; carries are reductions, or a `Prefix`'s."""
    _check(f, s)
    stop = f.operand(s.stop)
    variation = Variation(s)
    f.open_scope()
    f.lanes, f.index, f.varying = s.lanes, s.index, variation.varying
    f.w.multiplies_roots = s.multiplies_roots
    writer = VectorLoop(f, s, variation.index_used)
    before, f.unpolled = f.unpolled, 0
    partial = writer.constant_count(int(s.stop.value)) if isinstance(s.stop, Constant) else writer.run_time_count(stop)
    f.close_scope()
    f.lanes, f.index, f.varying, f.counters = 0, None, set(), {}
    f.w.multiplies_roots = False
    f.unpolled += before
    for carry, result, value in zip(s.carries, s.results, partial, strict=True):
        f.define(result, _join(f, carry, value, s.lanes))


def _check(f: Frame, s: For) -> None:
    if f.lanes:
        f.fail("a vector loop inside a vector loop")
    if s.lanes < 1 or s.lanes & (s.lanes - 1) or s.step != 1:
        f.fail(f"a vector loop of {s.lanes} lanes and step {s.step}")
    if not isinstance(s.start, Constant) or int(s.start.value) != 0:
        f.fail("a vector loop that does not start at 0")


_REGISTER = 16  # bytes of the shortest vector that all machines have


def _join(f: Frame, carry: Carry, value: str, lanes: int) -> str:
    """Join partial results by halving, lane i with lane i + n/2, the initial value last; a serial carry is one value.

    Vectors shorter than a register keep a register's lanes, which saves LLVM from widening them; the other lanes
    repeat.
    """
    w, dtype, op = f.w, carry.register.dtype, carry.combine
    element, wide = ELEMENT[dtype], lanes
    if op is None:
        return w.let(f"extractelement {vector(element, lanes)} {value}, i64 0")
    while lanes > 1:
        kind, half = vector(element, wide), lanes // 2
        kept = max(half, min(wide, _REGISTER // dtype.itemsize))
        low, high = (
            w.let(f"shufflevector {kind} {value}, {kind} poison, {indices(*picked)}")
            for picked in ([first + lane % half for lane in range(kept)] for first in (0, half))
        )
        value, lanes, wide = apply(w, op, dtype, low, high, kept), half, kept
    joined = w.let(f"extractelement {vector(element, wide)} {value}, i64 0")
    return apply(w, op, dtype, f.operand(carry.initial), joined, 0)


class VectorLoop:
    """Iterations of one vector loop; each method returns the partial results after it."""

    def __init__(self, f: Frame, loop: For, index_used: bool) -> None:
        self.f, self.loop, self.index_used = f, loop, index_used
        self.registers = [carry.register for carry in loop.carries]
        self.first = yields(f, [first_value(carry) for carry in loop.carries], self.registers)

    def constant_count(self, stop: int) -> list[str]:
        """Write a loop of a constant count, without the iterations that cannot happen."""
        w, lanes = self.f.w, self.loop.lanes
        full = stop & -lanes if stop > 0 else 0
        partial = self.first
        if full and (full == lanes == stop or self.loop.unrolled):
            for index in range(0, full, lanes):
                for register, value in zip(self.registers, partial, strict=True):
                    self.f.define(register, value)
                partial = self._body(str(index))
        elif full:
            done = w.label("done")
            partial = self._full_iterations(str(full), done)
            w.open(done)
        if stop > full:
            partial = self._masked_iteration(str(full), leading_mask(stop - full, lanes), partial)
        return partial

    def run_time_count(self, stop: str) -> list[str]:
        """Write a loop of a count known only at run time."""
        w, lanes = self.f.w, self.loop.lanes
        stop = w.intrinsic("llvm.smax", "i64", 0, stop, "0")
        full = w.let(f"and i64 {stop}, {-lanes}")
        body, rest, tail, done = w.label("entry"), w.label("rest"), w.label("tail"), w.label("done")
        before = w.block
        w.branch(w.let(f"icmp sgt i64 {full}, 0"), body, rest)
        w.open(body)
        partial = self._full_iterations(full, rest)
        latch = w.block
        w.open(rest)
        partial = self._merge((self.first, before), (partial, latch))
        w.branch(w.let(f"icmp slt i64 {full}, {stop}"), tail, done)
        w.open(tail)
        count = w.let(f"trunc i64 {w.let(f'sub i64 {stop}, {full}')} to i32")
        word = vector("i32", lanes)
        mask = w.let(f"icmp ult {word} {iota('i32', lanes)}, {w.splat('i32', count, lanes)}")
        last = self._masked_iteration(full, mask, partial)
        w.jump(done)
        latch = w.block
        w.open(done)
        return self._merge((partial, rest), (last, latch))

    def _merge(self, *incoming: tuple[list[str], str]) -> list[str]:
        names = [self.f.w.name() for _ in self.registers]
        for i, (name, register) in enumerate(zip(names, self.registers, strict=True)):
            self.f.w.lines.append(phi(self.f, name, register, *((v[i], block) for v, block in incoming)))
        return names

    def _full_iterations(self, full: str, done: str) -> list[str]:
        """Write the full iterations, at least one, and go to `done`, which the caller opens."""
        f, w = self.f, self.f.w
        body, before = w.label("lanes"), w.block
        phis = CarriedPhis(f, self.loop.carries, self.first)
        w.jump(body)
        w.open(body)
        index, following = w.name(), w.name()
        phis.begin()
        f.unpolled = 0
        values = self._body(index)
        f.unpolled = polls.latch(f, index, polls.trips(f, self.loop), self.loop.lanes)
        w.do(f"{following} = add i64 {index}, {self.loop.lanes}")
        w.branch(w.let(f"icmp slt i64 {following}, {full}"), body, done)
        phis.end(values, w.block, f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{w.block} ]")
        return values

    def _masked_iteration(self, index: str, mask: str, partial: list[str]) -> list[str]:
        """Write the masked iteration. Other lanes keep their partial results, serial carries aside.

        Many partial results wait in memory, so that the iteration has the registers for itself.
        """
        f = self.f
        kinds = [vector(ELEMENT[r.dtype], f.lanes) for r in self.registers]
        memory = [f.scratch(f"partial{n}", kind) for n, kind in enumerate(kinds)] if len(kinds) > _MAX_HELD else []
        for where, kind, value in zip(memory, kinds, partial, strict=False):
            f.w.do(f"store {kind} {value}, ptr {where}, align 64")
        for register, value in zip(self.registers, partial, strict=True):
            f.define(register, value)
        f.mask = mask
        values = self._body(index)
        f.mask = None
        held = (
            [f.w.let(f"load {k}, ptr {m}, align 64") for k, m in zip(kinds, memory, strict=True)] if memory else partial
        )
        lanes = f"{vector('i1', f.lanes)} {mask}"
        return [
            f.w.let(f"select {lanes}, {kind} {new}, {kind} {old}") if carry.combine is not None else new
            for carry, kind, new, old in zip(self.loop.carries, kinds, values, held, strict=True)
        ]

    def _body(self, index: str) -> list[str]:
        f, lanes = self.f, self.loop.lanes
        f.define(self.loop.index, index)
        f.counters = {self.loop.index: index}
        if self.index_used:
            word = vector("i64", lanes)
            first = f.w.splat("i64", index, lanes) if index.startswith("%") else splat("i64", index, lanes)
            f.index_vector = f.w.let(f"add {word} {first}, {iota('i64', lanes)}")
        f.run(self.loop.body)
        return yields(f, self.loop.body.yields, self.registers)
