"""Narrowing: values that a branch or loop need not receive, or need not return, bypass it.

- A carry that the body returns unchanged is a constant, and its final value the initial one.
- A constant or operand that is a literal, an array of one value or an iota, is written inside.
- Operands given twice are given once; outputs returned twice are returned once.
- An output that is an operand, a literal, or the unchanged slices of an operand, is read from its origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, StackType, with_shape
from tracer.ir.visit import substitute, substitute_atoms
from tracer.passes.base.loops import Loop, loop_of, pick
from tracer.passes.base.rewrite import rewrite_parameters
from tracer.passes.base.rewriter import Rewriter
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.shapes import iota_p
from tracer.primitives.control.cond import cond_p


def narrow(program: Program) -> Program:
    """Narrow the interfaces of all nested programs, from the outside in and back."""
    done: dict[int, tuple[Program, Program]] = {}

    def each(program: Program) -> Program:
        if not program.holds_programs:
            return program
        if id(program) not in done:
            done[id(program)] = (program, Rewriter(rule).run(program))
        return done[id(program)][1]

    def rule(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        if not any(True for _ in equation.nested()):
            return None
        results = _branches(equation, at) if equation.primitive is cond_p else _loop(equation, at)
        if results is not None:
            return results
        inner = rewrite_parameters(equation, each)
        return None if inner is equation else at.emit_all(inner.primitive, inner.inputs, inner.params)

    return each(program)


# Operands written inside

Inside = Literal | Equation | int | None  # a literal, the equation that makes it, the position of an equal operand


def _insides(operands: Sequence[Atom], programs: Sequence[Program], first: int, at: Rewriter) -> list[Inside]:
    """Return a replacement, to write inside the programs, for each operand that has one.

    The operands are the programs' inputs from `first` on.
    """
    seen: dict[Var, int] = {}
    found: list[Inside] = []
    for position, operand in enumerate(operands):
        inside: Inside = None
        if all(program.inputs[first + position].type == operand.type for program in programs):
            if isinstance(operand, Literal):
                inside = operand
            elif seen.setdefault(operand, position) != position:
                inside = seen[operand]
            else:
                made = at.definition(operand, broadcast_in_dim_p, iota_p)
                inside = made if made is not None and not any(isinstance(a, Var) for a in made.inputs) else None
        found.append(inside)
    return found


def _written_inside(program: Program, insides: Sequence[Inside], first: int) -> Program:
    """Return the program with the replacements inside instead of its inputs from `first` on."""
    own = program.inputs[first : first + len(insides)]
    replaced: dict[Var, Atom] = {}
    equations: list[Equation] = []
    for variable, inside in zip(own, insides, strict=True):
        match inside:
            case Literal():
                replaced[variable] = inside
            case int():
                replaced[variable] = replaced.get(own[inside], own[inside])
            case Equation():
                replaced[variable] = made = Var(variable.type)
                equations.append(replace(inside, outputs=(made,)))
            case None:
                pass
    equations += [substitute(equation, replaced) for equation in program.equations]
    kept = (*program.inputs[:first], *pick(own, _given(insides)), *program.inputs[first + len(insides) :])
    return Program(kept, tuple(equations), substitute_atoms(program.outputs, replaced), program.name)


def _given(insides: Sequence[Inside]) -> list[bool]:
    """Return which operands still have to be given."""
    return [inside is None for inside in insides]


# Branches


def _branches(equation: Equation, at: Rewriter) -> list[Atom] | None:
    """Rewrite a cond to one with fewer operands and outputs."""
    branches: tuple[Program, ...] = equation.params["branches"]
    operands = equation.inputs[1:]
    insides = _insides(operands, branches, 0, at)
    if not all(_given(insides)):
        branches = tuple(_written_inside(branch, insides, 0) for branch in branches)
        operands = pick(operands, _given(insides))
    around = [_around_branches(branches, operands, n) for n in range(len(equation.outputs))]
    columns = [tuple(branch.outputs[n] for branch in branches) for n in range(len(equation.outputs))]
    again = _repeated([c if not isinstance(c[0].type, StackType) else None for c in columns])
    kept = [value is None and earlier is None for value, earlier in zip(around, again, strict=True)]
    if all(kept) and len(operands) == len(equation.inputs) - 1:
        return None
    branches = tuple(replace(branch, outputs=pick(branch.outputs, kept)) for branch in branches)
    results = iter(at.emit_all(cond_p, (equation.inputs[0], *operands), {"branches": branches}))
    return _assembled(around, again, results, at, equation.outputs)


def _around_branches(branches: Sequence[Program], operands: Sequence[Atom], position: int) -> Atom | None:
    """Return the literal or operand that all branches return at the position, if there is one."""
    outputs = [branch.outputs[position] for branch in branches]
    first = outputs[0]
    if isinstance(first.type, StackType):
        return None
    if isinstance(first, Literal):
        return first if all(atom == first for atom in outputs) else None
    positions = [b.inputs.index(a) if a in b.inputs else -1 for b, a in zip(branches, outputs, strict=True)]
    if positions[0] < 0 or any(n != positions[0] for n in positions):
        return None
    operand = operands[positions[0]]
    return operand if operand.type == first.type else None


def _repeated(outputs: Sequence[object]) -> list[int | None]:
    """Return for each output the position of an equal earlier one, or None. An output given as None equals no other.

    Stacks are given as None, since the schedule changes them in place.
    """
    seen: dict[object, int] = {}
    found = [
        position if output is None else seen.setdefault(output, position) for position, output in enumerate(outputs)
    ]
    return [earlier if earlier != position else None for position, earlier in enumerate(found)]


def _assembled(
    around: Sequence[Atom | None],
    again: Sequence[int | None],
    results: Iterable[Atom],
    at: Rewriter,
    outputs: Sequence[Var],
) -> list[Atom]:
    """Return all outputs in order: from elsewhere, from an earlier output, or from the narrowed equation."""
    given = iter(results)
    found: list[Atom] = []
    for value, earlier, variable in zip(around, again, outputs, strict=True):
        if value is not None:
            found.append(value)
        else:
            found.append(at.fit(found[earlier], variable.type) if earlier is not None else next(given))
    return found


# Loops


def _loop(equation: Equation, at: Rewriter) -> list[Atom] | None:
    """Rewrite a loop to one with fewer constants, carries, xs and ys."""
    loop = loop_of(equation)
    if loop is None:
        return None
    narrowed, finals = _without_idle_carries(loop)
    narrowed = _with_known_consts(narrowed, at)
    narrowed = _with_known_xs(narrowed, at)
    narrowed, ys, again = _without_idle_ys(narrowed, at)
    if narrowed is loop:
        return None
    new = narrowed.joined()
    results = at.emit_all(new.primitive, new.inputs, new.params)
    count = len(narrowed.carry)
    given = iter(results[:count])
    first = [value if value is not None else next(given) for value in finals]
    return first + _assembled(ys, again, results[count:], at, loop.ys)


def _without_idle_carries(loop: Loop) -> tuple[Loop, list[Atom | None]]:
    """Turn carries that never change into constants. Return the loop, and the final values of such carries."""
    finals: list[Atom | None] = []
    for variable, atom, start in zip(loop.carry_inputs, loop.next_carry, loop.carry, strict=True):
        idle = atom is variable or (isinstance(atom, Literal) and atom == start)
        finals.append(start if idle and start.type == variable.type else None)
    moving = [value is None for value in finals]
    if all(moving):
        return loop, finals
    idle_flags = [not on for on in moving]
    idle_values = pick(loop.carry, idle_flags)
    inputs = (
        *loop.body.inputs[: len(loop.count)],
        *loop.const_inputs,
        *pick(loop.carry_inputs, idle_flags),
        *pick(loop.carry_inputs, moving),
        *loop.x_inputs,
    )
    outputs = (*pick(loop.next_carry, moving), *loop.y_outputs)
    cond = loop.cond
    if cond is not None:
        first = len(loop.cond_consts)
        own = cond.inputs[first:]
        cond = replace(cond, inputs=(*cond.inputs[:first], *pick(own, idle_flags), *pick(own, moving)))
    return replace(
        loop, body=replace(loop.body, inputs=inputs, outputs=outputs), cond=cond,
        cond_consts=(*loop.cond_consts, *idle_values) if cond is not None else (),
        consts=(*loop.consts, *idle_values), carry=pick(loop.carry, moving), finals=pick(loop.finals, moving),
    ), finals  # fmt: skip


def _with_known_consts(loop: Loop, at: Rewriter) -> Loop:
    """Write literals, splats and iotas among the constants inside."""
    insides = _insides(loop.consts, [loop.body], len(loop.count), at)
    if not all(_given(insides)):
        body = _written_inside(loop.body, insides, len(loop.count))
        loop = replace(loop, body=body, consts=pick(loop.consts, _given(insides)))
    if loop.cond is None:
        return loop
    insides = _insides(loop.cond_consts, [loop.cond], 0, at)
    if all(_given(insides)):
        return loop
    cond = _written_inside(loop.cond, insides, 0)
    return replace(loop, cond=cond, cond_consts=pick(loop.cond_consts, _given(insides)))


def _with_known_xs(loop: Loop, at: Rewriter) -> Loop:
    """Replace slices of an array of one value by that value."""
    insides: list[Inside] = []
    for variable, operand in zip(loop.x_inputs, loop.xs, strict=True):
        made = at.definition(operand, broadcast_in_dim_p)
        value, shape = made.inputs[0] if made is not None else None, variable.type.shape
        if made is None or not isinstance(value, Literal) or with_shape(value.type, shape) != variable.type:
            insides.append(None)
        elif shape:
            insides.append(replace(made, params={"shape": shape, "broadcast_dimensions": ()}))
        else:
            insides.append(value)
    if all(_given(insides)):
        return loop
    body = _written_inside(loop.body, insides, len(loop.count) + len(loop.consts) + len(loop.carry))
    return replace(loop, body=body, xs=pick(loop.xs, _given(insides)))


def _without_idle_ys(loop: Loop, at: Rewriter) -> tuple[Loop, list[Atom | None], list[int | None]]:
    """Drop ys that are computable without the loop, and ys that repeat an earlier one.

    Return the loop, the values of the former, and the positions of the latter's originals.
    """
    consts = dict(zip(loop.const_inputs, loop.consts, strict=True))
    slices = dict(zip(loop.x_inputs, loop.xs, strict=True))
    length: int = loop.equation.params.get("length", 0)
    values: list[Atom | None] = []
    for atom, y in zip(loop.y_outputs, loop.ys, strict=True):
        every = consts.get(atom) if isinstance(atom, Var) else atom
        value = slices.get(atom) if isinstance(atom, Var) else None
        if every is not None and isinstance(every.type, ArrayType):
            value = at.spread(every, (length, *every.type.shape), range(1, len(every.type.shape) + 1))
        values.append(value if value is not None and value.type == y.type else None)
    again = _repeated(loop.y_outputs)
    kept = [value is None and earlier is None for value, earlier in zip(values, again, strict=True)]
    if all(kept):
        return loop, values, again
    body = replace(loop.body, outputs=(*loop.next_carry, *pick(loop.y_outputs, kept)))
    return replace(loop, body=body, ys=pick(loop.ys, kept)), values, again
