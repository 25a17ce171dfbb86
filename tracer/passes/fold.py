"""Folding: constants computed before the program runs.

Scalars computed from literals become literals, with the values that eager operations give. Arrays with one value
everywhere are read as that value. Branches with a constant predicate and loops of at most one iteration are inlined.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.ir.primitive import NoRule, Structured
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, StackType, size, with_shape
from tracer.passes.base.loops import Loop, loop_of
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.rules import computed
from tracer.primitives.base.shapes import optimization_barrier_p, squeeze_p
from tracer.primitives.control.cond import cond_p


def _fold(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    primitive = equation.primitive
    if primitive.splat:
        variables = broadcast = 0
        for atom in equation.inputs:
            if type(atom) is Var:
                variables += 1
                made = at.definitions.get(atom)
                broadcast += made is not None and made.primitive is broadcast_in_dim_p
        if broadcast:
            return _read_splats(equation, at) or (_broadcast_last(equation, at) if broadcast == variables else None)
        return None if variables else _evaluate(equation)
    if primitive is cond_p:
        return _choose_branch(equation, at)
    loop = loop_of(equation)
    if loop is not None:
        if loop.cond is not None:
            return _skip_loop(loop, at)
        return _unroll_count(loop, at) if loop.count else _unroll_scan(loop, at)
    for atom in equation.inputs:
        if type(atom) is Var:
            return None
    return _evaluate(equation) if equation.inputs else None


def _evaluate(equation: Equation) -> list[Atom] | None:
    """Compute a scalar operation on literals alone, as literals."""
    primitive, lower = equation.primitive, equation.primitive.lower
    if equation.effects or isinstance(primitive.reference, NoRule) or primitive is optimization_barrier_p:
        return None
    if isinstance(lower, Structured):
        return None
    types = [variable.type for variable in equation.outputs]
    if not all(isinstance(type, ArrayType) and not type.shape for type in types):
        return None
    return list(computed(primitive, [a for a in equation.inputs if isinstance(a, Literal)], equation.params))


def _read_splats(equation: Equation, at: Rewriter) -> list[Atom] | None:
    """Let a pointwise equation read one value instead of an array of it, if another operand still has the shape."""
    inputs = tuple(at.splat(a) or a for a in equation.inputs)
    first = next((a for a in inputs if isinstance(a, Var)), None)
    if first is None or first.type.shape != equation.outputs[0].type.shape or inputs == equation.inputs:
        return None
    return at.emit_all(equation.primitive, inputs, equation.params)


def _broadcast_last(equation: Equation, at: Rewriter) -> list[Atom] | None:
    """Compute a pointwise equation before its operands are broadcast, if they all are in one way."""
    inner: list[Atom] = []
    params = None
    for atom in equation.inputs:
        if isinstance(atom, Literal):
            inner.append(atom)
            continue
        broadcast = at.definition(atom, broadcast_in_dim_p)
        if broadcast is None or (params is not None and broadcast.params != params):
            return None
        params = broadcast.params
        inner.append(broadcast.inputs[0])
    shapes = {a.type.shape for a in inner if isinstance(a, Var)} or {()}
    output = equation.outputs[0].type
    if params is None or len(shapes) > 1 or size(with_shape(output, shapes.pop())) >= size(output):
        return None
    results = at.emit_all(equation.primitive, inner, equation.params)
    return [at.emit(broadcast_in_dim_p, result, **params) for result in results]


def _choose_branch(equation: Equation, at: Rewriter) -> list[Atom] | None:
    """Inline the only branch that can run: the index is a literal, or all branches are equal."""
    index, branches = equation.inputs[0], equation.params["branches"]
    if isinstance(index, Literal):
        chosen = branches[min(max(int(index.value), 0), len(branches) - 1)]
    elif all(branch == branches[0] for branch in branches[1:]):
        chosen = branches[0]
    else:
        return None
    return at.inline(chosen, equation.inputs[1:])


def _skip_loop(loop: Loop, at: Rewriter) -> list[Atom] | None:
    """Return the initial carry of a while_loop whose condition is false on entry."""
    assert loop.cond is not None
    if loop.cond.effects:
        return None
    holds = _value_on(loop.cond, (*loop.cond_consts, *loop.carry))
    return list(loop.carry) if holds is not None and not holds.value else None


def _value_on(program: Program, operands: Sequence[Atom]) -> Literal | None:
    """Return the program's output if the literals among its operands decide it."""
    if not any(isinstance(a, Literal) for a in (*operands, *program.outputs)):
        return None
    (output,) = Rewriter(_fold).inline(program, operands)
    return output if isinstance(output, Literal) else None


def _unroll_scan(loop: Loop, at: Rewriter) -> list[Atom] | None:
    """Return the carry and empty arrays for a scan of no steps; inline the body for one step."""
    length = loop.equation.params["length"]
    if length > 1 or any(isinstance(v.type, StackType) for v in loop.ys):
        return None
    if length == 0:
        empty = [at.zeros(y.type) for y in loop.ys]
        return [*loop.carry, *(y for y in empty if y is not None)]
    slices = [at.emit(squeeze_p, x, dimensions=(0,)) for x in loop.xs]
    outputs = at.inline(loop.body, [*loop.consts, *loop.carry, *slices])
    count = len(loop.carry)
    return outputs[:count] + [
        at.spread(y, (1, *y.type.shape), range(1, len(y.type.shape) + 1)) for y in outputs[count:]
    ]


def _unroll_count(loop: Loop, at: Rewriter) -> list[Atom] | None:
    """Return the initial carry for a for_loop of no steps; inline the body for one step."""
    (count,) = loop.count
    if not isinstance(count, Literal) or count.value > 1:
        return None
    if count.value <= 0:
        return list(loop.carry)
    step = Literal(count.type.dtype.type(0), count.type)
    return at.inline(loop.body, [step, *loop.consts, *loop.carry])


fold = rewriting(_fold)
"""Compute constants, nested programs included."""
