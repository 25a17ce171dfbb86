"""Dead code elimination, through control flow.

An equation goes if nothing reads its outputs, whether or not it might fault; ordered effects stay. Branches, calls and
loops lose outputs that nothing reads and operands that they do not read. Loops also lose carries that only feed
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.ir.primitive import Effect
from tracer.ir.program import Equation, Program, Var
from tracer.passes.base.input_liveness import Needs
from tracer.passes.base.loops import Flags, Loop, called_program, loop_of, pick, read_variables, restrict
from tracer.passes.base.rewrite import rewrite_parameters
from tracer.primitives.control.cond import cond_p


def dce(program: Program) -> Program:
    """Drop all dead code; return the same object if there is none."""
    return _Eliminator().program(program)


class _Eliminator:
    def __init__(self) -> None:
        self.needs = Needs()
        self.done: dict[tuple[int, tuple[bool, ...]], tuple[Program, Program]] = {}

    def program(self, program: Program, outputs: Flags | None = None) -> Program:
        """Return the program with the flagged outputs alone and the equations that they need; every input stays."""
        flags = tuple(outputs) if outputs is not None else (True,) * len(program.outputs)
        key = (id(program), flags)  # the entry keeps the program alive
        if key not in self.done:
            wanted = restrict(program, (True,) * len(program.inputs), flags)
            self.done[key] = (program, self._eliminate(wanted))
        return self.done[key][1]

    def _eliminate(self, program: Program) -> Program:
        live: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
        kept: list[Equation] = []
        changed = False
        holders = set(program.holders)
        for position in reversed(range(len(program.equations))):
            equation = program.equations[position]
            flags = [variable in live for variable in equation.outputs]
            if not any(flags) and is_droppable(equation):
                changed = True
                continue
            pruned = self._prune(equation, flags) if position in holders else equation
            changed = changed or pruned is not equation
            kept.append(pruned)
            live.update([a for a in pruned.inputs if isinstance(a, Var)])
        return replace(program, equations=tuple(reversed(kept))) if changed else program

    def _prune(self, equation: Equation, live: Sequence[bool]) -> Equation:
        """Return the equation without the parts of its nested programs that no live output needs."""
        loop = loop_of(equation)
        if loop is not None:
            return self._prune_loop(loop, live)
        if equation.primitive is cond_p:
            return self._prune_branches(equation, live)
        program = called_program(equation)
        if program is None:
            return rewrite_parameters(equation, self.program)
        pruned = self.program(program, live)
        used = used_inputs([pruned])
        if pruned is program and all(used):
            return equation
        params = {**equation.params, "program": restrict(pruned, used, [True] * sum(live))}
        inputs, outputs = pick(equation.inputs, used), pick(equation.outputs, live)
        return replace(equation, inputs=inputs, params=params, outputs=outputs)

    def _prune_branches(self, equation: Equation, live: Sequence[bool]) -> Equation:
        old: tuple[Program, ...] = equation.params["branches"]
        branches = [self.program(branch, live) for branch in old]
        used = used_inputs(branches)
        if all(used) and all(a is b for a, b in zip(old, branches, strict=True)):
            return equation
        params = {"branches": tuple(restrict(branch, used, [True] * sum(live)) for branch in branches)}
        inputs = (equation.inputs[0], *pick(equation.inputs[1:], used))
        return replace(equation, inputs=inputs, params=params, outputs=pick(equation.outputs, live))

    def _prune_loop(self, loop: Loop, live: Sequence[bool]) -> Equation:
        count = len(loop.carry)
        carry, ys = self.needs.live_carries(loop, live), live[count:]
        body = self.program(loop.body, (*carry, *ys))
        used = used_inputs([body])
        step = [True] * len(loop.count)
        used = used[len(step) :]
        consts, xs = used[: len(loop.consts)], used[len(loop.consts) + count :]
        cond, cond_consts = loop.cond, [True] * len(loop.cond_consts)
        if cond is not None:
            cond = self.program(cond)
            cond_consts = used_inputs([cond])[: len(loop.cond_consts)]
            cond = restrict(cond, (*cond_consts, *carry), (True,))
        body = restrict(body, (*step, *consts, *carry, *xs), [True] * len(body.outputs))
        if body is loop.body and cond is loop.cond:
            return loop.equation
        return replace(
            loop, cond=cond, body=body, cond_consts=pick(loop.cond_consts, cond_consts),
            consts=pick(loop.consts, consts), carry=pick(loop.carry, carry), xs=pick(loop.xs, xs),
            finals=pick(loop.finals, carry), ys=pick(loop.ys, ys),
        ).joined()  # fmt: skip


def is_droppable(equation: Equation) -> bool:
    """Whether the equation may go if nothing reads its outputs."""
    effects = equation.effects
    return not effects or (Effect.IO not in effects and bool(equation.outputs))


def used_inputs(programs: Sequence[Program]) -> list[bool]:
    """Return, for each input position, whether any of the programs reads it."""
    read = [read_variables(program) for program in programs]
    columns = zip(*(program.inputs for program in programs), strict=True)
    return [any(variable in names for variable, names in zip(column, read, strict=True)) for column in columns]
