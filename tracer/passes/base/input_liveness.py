"""Liveness of inputs: the inputs that each output of a program needs, as bit sets; loops closed over their carries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tracer.ir.primitive import Effect
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.passes.base.loops import Loop, called_program, loop_of
from tracer.primitives.control.cond import cond_p


class Rows(NamedTuple):
    """Sets of inputs, as bits by position: the needs of each output, and of effects that always run."""

    outputs: tuple[int, ...]
    always: int


class Needs:
    """Analysis of programs; results are kept by program."""

    def __init__(self) -> None:
        self._programs: dict[int, tuple[Program, Rows]] = {}

    def program(self, program: Program) -> Rows:
        """Return the inputs that each output of the program needs."""
        if id(program) not in self._programs:
            self._programs[id(program)] = (program, self._walk(program))
        return self._programs[id(program)][1]

    def _walk(self, program: Program) -> Rows:
        needed: dict[Var, int] = {variable: 1 << n for n, variable in enumerate(program.inputs)}
        always, holders = 0, set(program.holders)
        for position, equation in enumerate(program.equations):
            if position not in holders and not equation.primitive.effects:
                everything = _union([needed[a] for a in equation.inputs if type(a) is Var])
                needed.update(dict.fromkeys(equation.outputs, everything))
                continue
            rows = self.equation(equation)
            for variable, row in zip(equation.outputs, rows.outputs, strict=True):
                needed[variable] = _through(row, equation.inputs, needed)
            if rows.always:
                always |= _through(rows.always, equation.inputs, needed)
        return Rows(tuple(needed[a] if isinstance(a, Var) else 0 for a in program.outputs), always)

    def equation(self, equation: Equation) -> Rows:
        """Return the operands that each output of the equation needs."""
        everything = (1 << len(equation.inputs)) - 1
        effects = equation.effects
        stays = Effect.IO in effects or (bool(effects) and not equation.outputs)
        loop = loop_of(equation)
        if loop is not None:
            return self._loop(loop, stays)
        if equation.primitive is cond_p:
            branches = [self.program(branch) for branch in equation.params["branches"]]
            columns = zip(*(rows.outputs for rows in branches), strict=True)
            always = _union(rows.always for rows in branches) << 1 | 1
            return Rows(tuple(_union(column) << 1 | 1 for column in columns), always if stays else 0)
        program = called_program(equation)
        if program is not None:
            return self.program(program)
        return Rows((everything,) * len(equation.outputs), everything if stays else 0)

    def _loop(self, loop: Loop, stays: bool) -> Rows:
        count = len(loop.carry)
        rows = []
        for position in range(len(loop.finals) + len(loop.ys)):
            live = [number == position for number in range(len(loop.finals) + len(loop.ys))]
            rows.append(self._operands(loop, self.live_carries(loop, live), live[count:]))
        always = 0
        if stays:
            nothing = [False] * (len(loop.finals) + len(loop.ys))
            always = self._operands(loop, self.live_carries(loop, nothing), nothing[count:])
        return Rows(tuple(rows), always)

    def live_carries(self, loop: Loop, live: Sequence[bool]) -> list[bool]:
        """Return which carries the live outputs, the condition and effects need, directly or through other carries."""
        body, count = self.program(loop.body), len(loop.carry)
        first = len(loop.count) + len(loop.consts)
        wanted = [row for row, on in zip(body.outputs[count:], live[count:], strict=True) if on]
        found = (_union(wanted) | body.always) >> first
        if loop.cond is not None:
            cond = self.program(loop.cond)
            found |= (cond.outputs[0] | cond.always) >> len(loop.cond_consts)
        for number in range(count):
            found |= live[number] << number
        found &= (1 << count) - 1
        seen, fresh = 0, found
        while fresh:
            number = fresh.bit_length() - 1
            seen |= 1 << number
            found |= (body.outputs[number] >> first) & ((1 << count) - 1)
            fresh = found & ~seen
        return [bool(found >> number & 1) for number in range(count)]

    def _operands(self, loop: Loop, carries: Sequence[bool], ys: Sequence[bool]) -> int:
        """Return the operands that a loop with these carries and ys needs."""
        body = self.program(loop.body)
        mine = _union(row for row, on in zip(body.outputs, (*carries, *ys), strict=True) if on) | body.always
        for number, on in enumerate(carries):
            mine |= on << (len(loop.count) + len(loop.consts) + number)
        result = mine << len(loop.cond_consts) | len(loop.count)  # the count, the only operand before the constants
        if loop.cond is not None:
            cond = self.program(loop.cond)
            result |= (cond.outputs[0] | cond.always) & ((1 << len(loop.cond_consts)) - 1)
        return result


def _union(rows: Iterable[int]) -> int:
    result = 0
    for row in rows:
        result |= row
    return result


def _through(row: int, inputs: Sequence[Atom], needed: dict[Var, int]) -> int:
    """Map a set of operands to the set of the program's inputs that they need."""
    result = 0
    for position, atom in enumerate(inputs):
        if row >> position & 1 and isinstance(atom, Var):
            result |= needed[atom]
    return result
