"""Contraction: a product and the sum that it is added to as one fma, rounded once, where `config.fp_contract` is set.

A product is contracted only if nothing else reads it, and it has the sum's shape, in f32 or f64. Complex products stay
as they are, so that z times its conjugate is real.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tracer.ir.dtypes import F32, F64
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType
from tracer.passes.base.rewrite import nested_first
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.dce import dce
from tracer.primitives.elementwise.arithmetic import add_p, mul_p, neg_p, sub_p
from tracer.primitives.elementwise.fma import fma_p

_DTYPES: Final = (F32, F64)


def _contracted(program: Program) -> Program:
    reads = Counter(a for e in program.equations for a in e.inputs if isinstance(a, Var))
    reads.update(a for a in program.outputs if isinstance(a, Var))

    def product(atom: Atom, at: Rewriter) -> Equation | None:
        found = at.definition(atom, mul_p)
        return found if found is not None and reads[found.outputs[0]] == 1 else None

    def rule(equation: Equation, at: Rewriter) -> list[Atom] | None:
        if equation.primitive not in (add_p, sub_p):
            return None
        type_ = equation.outputs[0].type
        if not isinstance(type_, ArrayType) or type_.dtype not in _DTYPES:
            return None
        left, right = equation.inputs
        subtracts = equation.primitive is sub_p
        if (found := product(left, at)) is not None:
            return [at.emit(fma_p, *found.inputs, _negative(right, at) if subtracts else right)]
        if (found := product(right, at)) is not None:
            x, y = found.inputs
            if subtracts and isinstance(y, Literal):
                return [at.emit(fma_p, x, _negative(y, at), left)]
            return [at.emit(fma_p, _negative(x, at) if subtracts else x, y, left)]
        return None

    after = Rewriter(rule).run(program)
    return program if after is program else dce(after)


def _negative(atom: Atom, at: Rewriter) -> Atom:
    return Literal(-atom.value, atom.type) if isinstance(atom, Literal) else at.emit(neg_p, atom)


contract = nested_first(_contracted)
"""Write sums of products as fma, nested programs included."""
