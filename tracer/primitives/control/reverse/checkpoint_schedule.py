"""Checkpoint schedule: pulling cotangents back through a loop of unknown length, in a given number of bytes.

The first steps leave their residuals on stacks, which take half of the memory. If the loop goes on, the other half
holds the residuals of one chunk of steps and checkpoints. These are carries at the start of equal segments. When half
of the slots are taken, every other checkpoint is dropped and the segments double. This is online checkpointing (Stumm &
Walther 2010, SIAM J. Sci. Comput. 32(2)). Backwards, each segment is rerun from its checkpoint. One longer than a chunk
leaves more checkpoints in the free slots, spaced as in treeverse (Griewank 1992, Optim. Methods Softw. 1(1)).

With S slots and chunks of L steps, N steps cost at most N (2 + r) forward steps besides the loop's own. Here r is the
smallest integer with binomial(S/2 + r, r) >= 4 N / (S L). It is 1 up to some S^2 L / 8 steps, and at most log2(4 N / (S
L)) if S/2 is at least that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, Type, array_type, size, storage_type
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.control.reverse.residual_stacks import empty, item, push, put
from tracer.primitives.control.reverse.sweeps import Sweep
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, div, max, min, mul, sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import eq, gt, lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.rounding import ceil
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal

Values = list[Any]
STEP = array_type(dtypes.I64, ())


def bytes_of(types: Sequence[Type]) -> int:
    """Return the memory of values of these types."""
    stored = [storage_type(type) for type in types]
    return sum(size(s) * s.dtype.itemsize for s in stored)


def steps_within(memory: int, types: Sequence[Type]) -> int:
    """Return how many items of these types fit on stacks. A stack may be half empty, since it grows by doubling."""
    return memory // (2 * bytes_of(types)) if bytes_of(types) else 2**40


class Shares:
    """Numbers of steps and checkpoints that the memory of a sweep holds."""

    def __init__(self, sweep: Sweep) -> None:
        residuals, carry = sweep.residual_types, sweep.forward.output_types[: sweep.carries]
        self.first = _at_least(1, steps_within(sweep.memory // 2, residuals))
        self.chunk = _at_least(1, steps_within(sweep.memory // 4, residuals))
        self.slots = 4 * _at_least(1, min_int(steps_within(sweep.memory // 4, [STEP, *carry]), 2**20) // 4)


def _at_least(low: int, value: int) -> int:
    return value if value > low else low


def min_int(a: int, b: int) -> int:
    return a if a < b else b


def pull_in_memory(sweep: Sweep, operands: Sequence[Any]) -> Values:
    """Return the cotangents of all that moves. operands: (cond_consts, consts, carry, cotangents)."""
    operands = _as_declared(sweep, operands)
    run, shares = _Run(sweep, operands), Shares(sweep)
    cotangents = sweep.split(operands)[3]
    trips, carry, stacks = run.recorded(sweep.split(operands)[2], lambda k: lt(k, shares.first))
    used, end, slots = run.checkpointed(carry, shares)
    moved = run.back_through(used, end, slots, cotangents, shares)
    return run.back(trips, stacks, moved)


def _as_declared(sweep: Sweep, operands: Sequence[Any]) -> Values:
    """Make the operands as weak as the programs' inputs: stacks are made for these types."""
    types = (*sweep.cond.input_types[: sweep.cond_consts], *sweep.forward.input_types)
    return [*map(_as_weak_as, types, operands), *operands[len(types) :]]


def _as_weak_as(type: Type, x: Any) -> Any:
    return convert_element_type(x, type.dtype, weak=type.weak) if isinstance(type, ArrayType) else x


class _Run:
    """Steps of a sweep, with its constants."""

    def __init__(self, sweep: Sweep, operands: Sequence[Any]) -> None:
        self.sweep = sweep
        self.cond_consts, self.consts, _, _ = sweep.split(operands)

    def holds(self, carry: Sequence[Any]) -> Any:
        """Return whether the loop goes on."""
        return evaluate(self.sweep.cond, [*self.cond_consts, *carry])[0]

    def step(self, carry: Sequence[Any]) -> Values:
        """Return the next carries."""
        forward = self.sweep.forward
        bare = Program(forward.inputs, forward.equations, forward.outputs[: self.sweep.carries], forward.name)
        return evaluate(bare, [*self.consts, *carry])

    def recording(self, carry: Sequence[Any], stacks: Sequence[Any]) -> Values:
        """Return the next carries, and the stacks with the step's residuals."""
        results = evaluate(self.sweep.forward, [*self.consts, *carry])
        n = self.sweep.carries
        return [*results[:n], *(push(s, r) for s, r in zip(stacks, results[n:], strict=True))]

    def no_stacks(self) -> Values:
        return [empty(type) for type in self.sweep.residual_types]

    def recorded(self, carry: Values, more: Callable[[Any], Any]) -> tuple[Any, Values, Values]:
        """Run steps while `more(count)` holds and the loop goes on; return the count, the carries, the residuals."""
        n = self.sweep.carries

        def test(values: Values) -> Any:
            return and_(more(values[0]), self.holds(values[1 : 1 + n]))

        def step(values: Values) -> Values:
            return [add(values[0], 1), *self.recording(values[1 : 1 + n], values[1 + n :])]

        trips, *rest = repeat(test, step, [_integer(0), *carry, *self.no_stacks()])
        return trips, rest[:n], rest[n:]

    def advanced(self, carry: Values, steps: Any) -> Values:
        """Return the carries after `steps` steps."""
        return count(steps, lambda _, values: self.step(values), carry)

    def back(self, steps: Any, stacks: Values, moved: Values) -> Values:
        """Run `steps` steps backwards, reading stacks. moved: the cotangents of constants and carries."""
        assert self.sweep.backward is not None
        backward = self.sweep.backward

        def step(k: Any, values: Values) -> Values:
            return evaluate(backward, [*self.consts, *(item(s, k) for s in stacks), *values])

        return count(steps, step, moved, reverse=True)

    def checkpointed(self, carry: Values, shares: Shares) -> tuple[Any, Any, Values]:
        """Run to the end, leaving checkpoints.

        Returns the number of slots taken, the number of steps, and the slots (positions and carries).
        """
        n, most = self.sweep.carries, shares.slots // 2

        def segment(values: Values) -> Values:
            used, length, position = values[:3]
            now, slots = values[3 : 3 + n], values[3 + n :]
            full = eq(used, most)
            slots = count(select(full, _integer(most // 2), _integer(0)), _drop_odd, slots)
            used, length = select(full, most // 2, used), select(full, mul(length, 2), length)
            slots = [put(s, used, x) for s, x in zip(slots, [position, *now], strict=True)]
            taken, *now = repeat(
                lambda inner: and_(lt(inner[0], length), self.holds(inner[1:])),
                lambda inner: [add(inner[0], 1), *self.step(inner[1:])],
                [_integer(0), *now],
            )
            return [add(used, 1), length, add(position, taken), *now, *slots]

        slots = [empty(STEP), *(empty(x.type) for x in carry)]
        entry = [_integer(0), _integer(shares.chunk), _integer(0), *carry, *slots]
        used, _, end, *rest = repeat(lambda values: self.holds(values[3 : 3 + n]), segment, entry)
        return used, end, rest[n:]

    def back_through(self, used: Any, end: Any, slots: Values, moved: Values, shares: Shares) -> Values:
        """Run back through all segments, the last first."""
        n, chunk = len(moved), shares.chunk

        def segment(values: Values) -> Values:
            used, end, moved, slots = values[0], values[1], values[2 : 2 + n], values[2 + n :]
            start, *carry = [item(s, sub(used, 1)) for s in slots]
            used, start, carry, slots = self.divided(used, start, end, carry, slots, shares)
            first = max(start, sub(end, chunk))  # after the checkpoint, if no slot was free for another
            carry = self.advanced(carry, sub(first, start))
            steps = sub(end, first)
            x = self.sweep.carries
            recorded = count(steps, lambda _, inner: self.recording(inner[:x], inner[x:]), [*carry, *self.no_stacks()])
            moved = self.back(steps, recorded[x:], moved)
            return [select(eq(first, start), sub(used, 1), used), first, *moved, *slots]

        results = repeat(lambda values: gt(values[0], 0), segment, [used, end, *moved, *slots])
        return results[2 : 2 + n]

    def divided(
        self, used: Any, start: Any, end: Any, carry: Values, slots: Values, shares: Shares
    ) -> tuple[Any, Any, Values, Values]:
        """Add checkpoints between the last one and the end, until one chunk is left or no slot is free."""
        n, chunk = self.sweep.carries, shares.chunk

        def test(values: Values) -> Any:
            return and_(gt(sub(end, values[1]), chunk), lt(values[0], shares.slots))

        def split(values: Values) -> Values:
            used, start, now, slots = values[0], values[1], values[2 : 2 + n], values[2 + n :]
            chunks = div(add(sub(end, start), chunk - 1), chunk)
            steps = mul(_left_part(chunks, sub(shares.slots, used)), chunk)
            now = self.advanced(now, steps)
            start = add(start, steps)
            slots = [put(s, used, x) for s, x in zip(slots, [start, *now], strict=True)]
            return [add(used, 1), start, *now, *slots]

        used, start, *rest = repeat(test, split, [used, start, *carry, *slots])
        return used, start, rest[:n], rest[n:]


def _left_part(chunks: Any, free: Any) -> Any:
    """Return how many chunks treeverse leaves left of its first checkpoint: chunks * r / (free + r).

    r is the smallest number of repetitions with binomial(free + r, r) >= chunks.
    """
    wanted, slots = convert_element_type(chunks, dtypes.F64), convert_element_type(free, dtypes.F64)

    def more(values: Values) -> Values:
        r = add(values[0], 1.0)
        return [r, div(mul(values[1], add(slots, r)), r)]

    one = as_literal(1.0, dtypes.F64)
    r, _ = repeat(lambda values: lt(values[1], wanted), more, [as_literal(0.0, dtypes.F64), one])
    part = convert_element_type(ceil(div(mul(wanted, r), add(slots, r))), dtypes.I64)
    return max(min(part, sub(chunks, 1)), 1)


def _drop_odd(k: Any, slots: Values) -> Values:
    """Move the item at 2k to k."""
    return [put(s, k, item(s, mul(k, 2))) for s in slots]


def _integer(value: int) -> Operand:
    return as_literal(value, dtypes.I64)


def repeat(test: Callable[[Values], Any], step: Callable[[Values], Values], carry: Sequence[Any]) -> Values:
    """Bind a while_loop over functions, which may close over arrays."""
    types = [x.type for x in carry]
    cond = stage(lambda values: [test(values)], types, name="test")
    body = stage(step, types, name="step")
    return list(while_program(cond.program, body.program, cond.constants, body.constants, carry))


def count(steps: Any, step: Callable[[Any, Values], Values], carry: Sequence[Any], *, reverse: bool = False) -> Values:
    """Bind a for_loop over a function, which may close over arrays."""
    staged = stage(lambda values: step(values[0], values[1:]), [STEP, *(x.type for x in carry)], name="step")
    program, outside = staged.program, len(staged.constants)
    inputs = (program.inputs[outside], *program.inputs[:outside], *program.inputs[outside + 1 :])
    body = Program(inputs, program.equations, program.outputs, program.name)
    return list(for_program(body, [steps, *staged.constants, *carry], consts=outside, reverse=reverse))
