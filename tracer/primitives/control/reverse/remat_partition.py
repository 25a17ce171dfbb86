"""Partition of a checkpointed program: the equations that run first, and the equations rerun for some of its values.

A policy chooses the values that may be saved. Other wanted values are recomputed from the program's inputs and from
saved values. Loops and branches are partitioned themselves. A scan that is rerun takes the values that its steps saved
as slices. Loops whose length is known at run time read them from stacks, and branches return them in slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Effect, Primitive, Structured
from tracer.ir.program import Atom, Equation, Program, Var, literal
from tracer.ir.types import StackType, Type, array_type
from tracer.ir.visit import substitute, substitute_atoms
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.nested_programs import either, fixpoint, pick
from tracer.primitives.base.rules import pointwise_batch
from tracer.primitives.control.for_loop import for_p
from tracer.primitives.control.reverse.residual_stacks import empty_p, item_p, push_p, put_p
from tracer.primitives.control.scan import split_parts, stacked_type
from tracer.primitives.elementwise.arithmetic import add_p
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import Operand

checkpoint_name_p = Primitive(
    name="checkpoint_name", infer=lambda x, *, name: x, reference=lambda x, *, name: x.copy(),
    jvp=lambda ctx, xs, dxs, *, name: [dxs[0]], transpose=lambda ctx, cts, xs, *, name: [cts[0]],
    batch=pointwise_batch, lower=Composite(lambda x, *, name: x),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Division:
    """Program divided in two. first: the program, plain, with more values to return. again: the equations to rerun.

    inputs, saved: the program's inputs, and the values saved by `first`, that `again` reads.
    """

    first: Program
    again: tuple[Equation, ...]
    inputs: tuple[Var, ...]
    saved: tuple[Var, ...]


class Plain(NamedTuple):
    """Program with its calls inlined and names read through, and the values that the policy keeps.

    The names stay as equations that nothing reads, for the policies of outer checkpoints.
    """

    program: Program
    kept: set[Var]


class Divider:
    """Divider of programs by a policy: kept(primitive, *operand types, **params) -> bool.

    nested: whether they are bodies of loops or branches. These return no stacks, so values that loops in them keep are
    not saved.
    """

    def __init__(self, policy: Callable[..., bool], nested: bool = False) -> None:
        self.policy = policy
        self.nested = nested
        self.within = self if nested else Divider(policy, nested=True)
        self._plain: dict[int, tuple[Program, Plain]] = {}

    def plain(self, program: Program) -> Plain:
        """Return the plain form of a program, always the same one, so that variables may be compared."""
        found = self._plain.get(id(program))
        if found is None:
            found = self._plain[id(program)] = program, self._made_plain(program)
        return found[1]

    def _made_plain(self, program: Program) -> Plain:
        names: dict[Var, Atom] = {}
        kept: set[Var] = set()
        equations: list[Equation] = []
        self._collect(program, names, equations, kept)
        outputs = substitute_atoms(program.outputs, names)
        return Plain(Program(program.inputs, tuple(equations), outputs, program.name), kept)

    def _collect(
        self, program: Program, names: dict[Var, Atom], equations: list[Equation], kept: set[Var], called: bool = False
    ) -> None:
        """Add a program's equations, and the values kept of them. names: variables known by another name.

        called: whether the program may be called elsewhere too, so that its variables need new names here.
        """
        for equation in program.equations:
            equation = substitute(equation, names)
            if equation.primitive.lower == Structured("call") and "policy" not in equation.params:
                inner: Program = equation.params["program"]
                own: dict[Var, Atom] = dict(zip(inner.inputs, equation.inputs, strict=True))
                self._collect(inner, own, equations, kept, called=True)
                names.update(zip(equation.outputs, substitute_atoms(inner.outputs, own), strict=True))
                continue
            values: tuple[Atom, ...] = equation.inputs
            if equation.primitive is checkpoint_name_p:
                names[equation.outputs[0]] = equation.inputs[0]
                equations.append(replace(equation, outputs=(Var(equation.outputs[0].type),)))
            else:
                if called:
                    fresh = tuple(Var(v.type) for v in equation.outputs)
                    names.update(zip(equation.outputs, fresh, strict=True))
                    equation = replace(equation, outputs=fresh)
                equations.append(equation)
                kept.update(self._kept_within(equation))
                values = equation.outputs
            if self.policy(equation.primitive, *(a.type for a in equation.inputs), **equation.params):
                kept.update(v for v in values if isinstance(v, Var) and not isinstance(v.type, StackType))

    def _kept_within(self, equation: Equation) -> Sequence[Var]:
        """Return the results that hold values kept in a body: rows of a scan, branches' results, a loop's stacks.

        A carry counts as kept if the previous step kept it. The number of steps of a loop is always kept.
        """
        match equation.primitive.lower:
            case Structured("scan"):
                kept = self._kept_of_steps(equation, first := equation.params["carries"])
                body = self.within.plain(equation.params["body"]).program
                pairs = zip(equation.outputs[first:], body.outputs[first:], strict=True)
                return [v for v, atom in pairs if atom in kept]
            case Structured("cond"):
                branches = map(self.within.plain, equation.params["branches"])
                return pick(equation.outputs, either(*([a in b.kept for a in b.program.outputs] for b in branches)))
            case Structured("while" | "for") if not self.nested:
                kept = self._kept_of_steps(equation, carries := len(equation.outputs))
                stacks = pushed(self.within.plain(equation.params["body"]).program, carries)
                count = counter(equation)
                found = [equation.outputs[n] for atom, n in stacks.items() if atom in kept]
                return found if count is None else [*found, count]
            case _:
                return ()

    def _kept_of_steps(self, equation: Equation, carries: int) -> set[Var]:
        (body, kept), xs = self.within.plain(equation.params["body"]), 0
        if "length" in equation.params:
            xs = len(body.inputs) - carries - equation.params["consts"]
        arriving = body.inputs[len(body.inputs) - carries - xs :]
        return kept | {v for v, atom in zip(arriving[:carries], body.outputs, strict=False) if atom in kept}

    def divided(self, program: Program, wanted: Sequence[bool]) -> Division:
        """Divide a program for the outputs that are wanted again.

        Results of input and output are always saved, since it happens once.
        """
        plain, kept = self.plain(program)
        live = {atom for atom in pick(plain.outputs, wanted) if isinstance(atom, Var)}
        first: list[Equation] = []
        again: list[Equation] = []
        for equation in reversed(plain.equations):
            needed = [v in live and v not in kept for v in equation.outputs]
            if Effect.IO in equation.effects or not any(needed):
                first.append(equation)
                continue
            early, late = self._divided_equation(equation, needed)
            first.extend(reversed(early))
            again.append(late)
            live.update(atom for atom in late.inputs if isinstance(atom, Var))
        starts = live.difference(*(equation.outputs for equation in again))
        return Division(
            replace(plain, equations=tuple(first[::-1])), tuple(again[::-1]),
            tuple(v for v in plain.inputs if v in starts),
            tuple(v for equation in reversed(first) for v in equation.outputs if v in starts),
        )  # fmt: skip

    def _divided_equation(self, equation: Equation, needed: Sequence[bool]) -> tuple[tuple[Equation, ...], Equation]:
        """Return the equations that run first in its place, and the one to rerun for the outputs that are needed."""
        fresh = tuple(v if on else Var(v.type) for v, on in zip(equation.outputs, needed, strict=True))
        match equation.primitive.lower:
            case Structured("scan"):
                return self._divided_scan(equation, needed, fresh)
            case Structured("cond"):
                return self._divided_cond(equation, needed)
            case Structured("while" | "for") if not self.nested and (count := count_of(equation)) is not None:
                return self._divided_loop(equation, count, needed, fresh)
            case _:
                return (equation,), replace(equation, outputs=fresh)

    def _divided_body(
        self, body: Program, needed: Sequence[bool], carry: Sequence[Var]
    ) -> tuple[Division, tuple[bool, ...]]:
        """Divide a loop's body for the outputs needed; also return which carries, the inputs `carry`, are rerun."""
        count = len(carry)

        def step(flags: tuple[bool, ...]) -> tuple[Division, Sequence[bool]]:
            division = self.within.divided(body, (*flags, *needed[count:]))
            return division, [v in division.inputs for v in carry]

        return fixpoint(tuple(needed[:count]), step)

    def _divided_scan(
        self, equation: Equation, needed: Sequence[bool], fresh: Sequence[Var]
    ) -> tuple[tuple[Equation, ...], Equation]:
        """Divide a scan. The rerun carries only the carries that its steps need, and takes slices of saved values."""
        params = equation.params
        consts, carries = params["consts"], params["carries"]
        body, _ = self.within.plain(params["body"])
        roles, operands = split_parts(body.inputs, consts, carries), split_parts(equation.inputs, consts, carries)
        division, moving = self._divided_body(params["body"], needed, roles.carry)
        rows = tuple(needed[carries:])
        there = dict(zip(body.outputs[carries:], equation.outputs[carries:], strict=True))
        new = [v for v in division.saved if v not in there]
        there.update((v, Var(stacked_type(v.type, params["length"]))) for v in new)
        longer = replace(division.first, outputs=(*body.outputs, *new))
        early = replace(
            equation, params={**params, "body": longer}, outputs=(*equation.outputs, *(there[v] for v in new))
        )  # fmt: skip
        fixed, slices = ([v in division.inputs for v in part] for part in (roles.consts, roles.xs))
        shorter = Program(
            (*pick(roles.consts, fixed), *pick(roles.carry, moving), *pick(roles.xs, slices), *division.saved),
            division.again, tuple(pick(body.outputs, (*moving, *rows))), f"{body.name}.again",
        )  # fmt: skip
        late = replace(
            equation,
            inputs=(
                *pick(operands.consts, fixed), *pick(operands.carry, moving), *pick(operands.xs, slices),
                *(there[v] for v in division.saved),
            ),
            params={**params, "body": shorter, "consts": sum(fixed), "carries": sum(moving)},
            outputs=tuple(pick(fresh, (*moving, *rows))),
        )  # fmt: skip
        return (early,), late

    def _divided_cond(self, equation: Equation, needed: Sequence[bool]) -> tuple[tuple[Equation, ...], Equation]:
        """Divide a cond. Every branch returns slots for all saved values; the rerun branch reads its own."""
        index, *operands = equation.inputs
        divisions = [self.within.divided(branch, needed) for branch in equation.params["branches"]]
        slots = [v.type for v in equation.outputs]
        places = [_slots_of(d.saved, d.first.outputs, slots) for d in divisions]
        left = (*equation.outputs, *map(Var, slots[len(equation.outputs) :]))
        read = [any(d.first.inputs[i] in d.inputs for d in divisions) for i in range(len(operands))]
        used = sorted({number for numbers in places for number in numbers})
        longer, shorter = [], []
        for division, numbers in zip(divisions, places, strict=True):
            branch, own = division.first, dict(zip(numbers, division.saved, strict=True))
            longer.append(_with_slots(branch, own, slots))
            taken = [own.get(n, Var(slots[n])) for n in used]
            outputs = tuple(pick(branch.outputs, needed))
            shorter.append(
                Program((*taken, *pick(branch.inputs, read)), division.again, outputs, f"{branch.name}.again")
            )
        late = replace(
            equation, inputs=(index, *(left[n] for n in used), *pick(operands, read)),
            params={"branches": tuple(shorter)}, outputs=tuple(pick(equation.outputs, needed)),
        )  # fmt: skip
        return (replace(equation, params={"branches": tuple(longer)}, outputs=left),), late

    def _divided_loop(
        self, equation: Equation, count: Atom, needed: Sequence[bool], fresh: Sequence[Var]
    ) -> tuple[tuple[Equation, ...], Equation]:
        """Divide a loop. The rerun is a loop of as many steps, which reads saved values from stacks."""
        params, carries = equation.params, len(equation.outputs)
        body, _ = self.within.plain(params["body"])
        counted = "consts" in params
        step = body.inputs[0] if counted else Var(array_type(dtypes.I64, ()))
        consts = params["consts" if counted else "body_consts"]
        fixed, carry = body.inputs[len(body.inputs) - carries - consts :][:consts], body.inputs[-carries:]
        given, entry = equation.inputs[len(equation.inputs) - carries - consts :][:consts], equation.inputs[-carries:]
        division, moving = self._divided_body(params["body"], needed, carry)
        there = {atom: equation.outputs[n] for atom, n in pushed(body, carries).items()}
        new = [v for v in division.saved if v not in there]
        early, left = _pushing(equation, division.first, new, step if counted else None)
        there.update(zip(new, left, strict=True))
        read = [v in division.inputs for v in fixed]
        stacks = [Var(StackType(v.type)) for v in division.saved]  # type: ignore[arg-type]  # arrays alone are marked
        items = [
            Equation(item_p, (s, step), {}, (v,), equation.source) for s, v in zip(stacks, division.saved, strict=True)
        ]
        shorter = Program(
            (step, *pick(fixed, read), *stacks, *pick(carry, moving)), (*items, *division.again),
            tuple(pick(body.outputs, moving)), f"{body.name}.again",
        )  # fmt: skip
        operands = (count, *pick(given, read), *(there[v] for v in division.saved), *pick(entry, moving))
        late_params = {"body": shorter, "consts": sum(read) + len(stacks), "reverse": params.get("reverse", False)}
        return early, Equation(for_p, operands, late_params, tuple(pick(fresh, moving)), equation.source)


# Branches


def _slots_of(saved: Sequence[Var], outputs: Sequence[Atom], slots: list[Type]) -> list[int]:
    """Return the slot of each saved value: the slot of an equal result, or one of its type, appended at need."""
    there = {atom: n for n, atom in enumerate(outputs) if atom.type == slots[n]}
    numbers: list[int] = []
    for v in saved:
        free = (n for n in range(len(outputs), len(slots)) if slots[n] == v.type and n not in numbers)
        number = there[v] if v in there else next(free, len(slots))
        if number == len(slots):
            slots.append(v.type)
        numbers.append(number)
    return numbers


def _with_slots(branch: Program, own: Mapping[int, Var], slots: Sequence[Type]) -> Program:
    """Return the branch with its results and every slot, zeros in the slots of other branches."""
    count = len(branch.outputs)
    mine = {n: v for n, v in own.items() if n >= count}
    longer = replace(branch, outputs=(*branch.outputs, *mine.values()))

    def run(inputs: list[Array]) -> list[Operand]:
        results = evaluate(longer, inputs)
        filled = dict(zip(mine, results[count:], strict=True))
        return results[:count] + [filled[n] if n in filled else zeros(slots[n]) for n in range(count, len(slots))]

    return stage(run, branch.input_types, name=branch.name).program


# Loops of a length known at run time


def _pushing(
    equation: Equation, body: Program, new: Sequence[Var], step: Var | None
) -> tuple[tuple[Equation, ...], list[Var]]:
    """Return the loop with this body, which also leaves the new values on stacks, and these stacks.

    step: the step of a counted loop, else None.
    """
    types = [StackType(v.type) for v in new]  # type: ignore[arg-type]  # arrays alone are marked
    empty, before, after, left = ([Var(t) for t in types] for _ in range(4))
    source, place = equation.source, () if step is None else (step,)
    write = push_p if step is None else put_p
    made = [Equation(empty_p, (), {"item": v.type}, (s,), source) for v, s in zip(new, empty, strict=True)]
    writes = [Equation(write, (s, *place, v), {}, (t,), source) for v, s, t in zip(new, before, after, strict=True)]
    longer = Program((*body.inputs, *before), (*body.equations, *writes), (*body.outputs, *after), body.name)
    params = {**equation.params, "body": longer}
    if "cond" in params:
        cond = params["cond"]
        params["cond"] = replace(cond, inputs=(*cond.inputs, *map(Var, types)))
    loop = replace(equation, inputs=(*equation.inputs, *empty), params=params, outputs=(*equation.outputs, *left))
    return (*made, loop), left


def pushed(body: Program, carries: int) -> dict[Atom, int]:
    """Map the values that steps push on the loop's own stacks to the numbers of these stacks."""
    definitions = {v: e for e in body.equations for v in e.outputs if e.primitive in (push_p, put_p)}
    found: dict[Atom, int] = {}
    for number, (carry, atom) in enumerate(zip(body.inputs[-carries:], body.outputs, strict=True)):
        made = definitions.get(atom) if isinstance(atom, Var) else None
        if made is not None and made.inputs[0] is carry:
            found.setdefault(made.inputs[-1], number)
    return found


def count_of(equation: Equation) -> Atom | None:
    """Return the number of steps of a loop, if some value holds it."""
    return equation.inputs[0] if equation.primitive is for_p else counter(equation)


def counter(equation: Equation) -> Var | None:
    """Return the carry of a loop that counts its steps from 0, or None."""
    body, carries = equation.params["body"], len(equation.outputs)
    sums = {e.outputs[0]: e.inputs for e in body.equations if e.primitive is add_p}
    entries, before = equation.inputs[-carries:], body.inputs[-carries:]
    for variable, entry, carry, atom in zip(equation.outputs, entries, before, body.outputs, strict=True):
        if entry == _ZERO and isinstance(atom, Var) and sums.get(atom) == (carry, _ONE):
            return variable
    return None


_ZERO, _ONE = literal(0, dtypes.I64), literal(1, dtypes.I64)
