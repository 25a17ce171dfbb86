"""Expansion: calls are inlined, and composite primitives are written in the primitives that they consist of.

Every primitive that remains has a schedule of its own. Matrix products take the form that the schedule knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tracer.ir.digest import params_key
from tracer.ir.primitive import ArgReduce, Composite, Library
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.target import CPU, Target
from tracer.passes.base.loops import called_program
from tracer.passes.base.rewrite import nested_first
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.expansions.arg_extremes import arg_reduce, block_of, in_blocks
from tracer.passes.expansions.canonical_dot import canonical_dot
from tracer.passes.expansions.channels_last import as_product, last_channels
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand


def _expand(program: Program, target: Target) -> Program:
    known: dict[Any, Program] = {}

    def expanded(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        callee = called_program(equation)
        if callee is not None:
            return at.inline(callee, equation.inputs)
        last = last_channels(equation, at, target.machine) if target.own_nests else None
        if last is None and not _needs_expansion(equation, target):
            return None
        block = block_of(equation, at, target)
        key = (_key(equation), block, last)
        written = known.get(key)
        if written is None:
            rule = partial(_expanded, target=target) if last is None else partial(as_product, last=last)
            written = expand(_written(equation, partial(in_blocks, block=block) if block else rule), target)
            if not any(True for inner in written.equations for _ in inner.nested()):
                known[key] = written
        variables = [a for a in equation.inputs if isinstance(a, Var)]
        results = at.inline(written, variables, at_one_line=True)
        return [at.fit(y, v.type) for y, v in zip(results, equation.outputs, strict=True)]

    return Rewriter(expanded).run(program)


def _needs_expansion(equation: Equation, target: Target) -> bool:
    match equation.primitive.lower:
        case Composite(_, has_nest):
            if has_nest is None or not target.own_nests:
                return True
            return not has_nest(*[a.type for a in equation.inputs], **equation.params)
        case ArgReduce():
            return True
        case Library("dot"):
            return canonical_dot(equation, target) is not None
        case _:
            return False


def _key(equation: Equation) -> Any:
    """Return a key that is equal for equations whose expansions differ in source lines alone."""
    inputs = tuple((a.type, a.bits) if isinstance(a, Literal) else a.type for a in equation.inputs)
    return (equation.primitive, inputs, params_key(equation.params))


def _written(equation: Equation, rule: Callable[[Equation, Sequence[Operand]], list[Operand]]) -> Program:
    """Return the equation, written in simpler ones by a rule, as a program of its variables."""

    def run(arrays: list[Any]) -> list[Operand]:
        given = iter(arrays)
        return rule(equation, [a if isinstance(a, Literal) else next(given) for a in equation.inputs])

    types = [a.type for a in equation.inputs if isinstance(a, Var)]
    outer = state.source
    state.source = equation.source
    try:
        staged = stage(run, types, name=equation.primitive.name)
    finally:
        state.source = outer
    assert not staged.constants, "expansions close over no arrays"
    return staged.program


def _expanded(equation: Equation, operands: Sequence[Operand], *, target: Target) -> list[Operand]:
    primitive, params = equation.primitive, equation.params
    match primitive.lower:
        case Composite(rule):
            outputs = rule(*operands, **params)
            return list(outputs) if primitive.multiple else [outputs]
        case ArgReduce(op):
            return [arg_reduce(operands[0], op, **params)]
        case _:
            canonical = canonical_dot(equation, target)
            assert canonical is not None
            return [canonical(*operands)]


def _is_kept(equation: Equation) -> bool:
    return not isinstance(equation.primitive.lower, Composite)


def expand(program: Program, target: Target = CPU) -> Program:
    """Inline calls and write composite primitives as other primitives, nested programs included.

    Programs that a composite primitive holds are expanded only where its written equations hold them too. Programs of
    its rules of differentiation are computed by nothing any more.
    """
    return nested_first(lambda inner: _expand(inner, target), _is_kept)(program)
