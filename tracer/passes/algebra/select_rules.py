"""Rewrites of comparisons and selects whose outcome is constant or repeated. All hold bit for bit."""

from __future__ import annotations

from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation, Literal
from tracer.passes.algebra.identities import dtype_of, is_exact, is_literal, limits_of, same
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.elementwise.arithmetic import max_p, min_p
from tracer.primitives.elementwise.bits import not_p
from tracer.primitives.elementwise.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p, select_p
from tracer.primitives.elementwise.conversion import convert_element_type_p

_REFLEXIVE = {eq_p: True, le_p: True, ge_p: True, ne_p: False, lt_p: False, gt_p: False}


def compare_with_itself(equation: Equation, at: Rewriter) -> Atom | None:
    """Decide comparisons of x with itself for integers; for floats only x < x and x > x, because of NaN."""
    x = equation.inputs[0]
    if not same(equation) or not (is_exact(x) or equation.primitive in (lt_p, gt_p)):
        return None
    return at.number(_REFLEXIVE[equation.primitive], equation.outputs[0].type)


def compare_with_limit(equation: Equation, at: Rewriter) -> Atom | None:
    """Decide x < lowest, x > highest (false), x >= lowest and x <= highest (true) for integers."""
    x, y = equation.inputs
    dtype = dtype_of(x)
    if dtype is None or not is_exact(x) or dtypes.is_bool(dtype):
        return None
    limit = limits_of(dtype)[equation.primitive in (gt_p, le_p)]
    return at.number(equation.primitive in (ge_p, le_p), equation.outputs[0].type) if is_literal(y, limit) else None


def _flag_beside_number(equation: Equation, at: Rewriter) -> tuple[Atom, Equation, Any] | None:
    """Return a bool converted to a number, its conversion, and the literal beside it, if the two operands are such."""
    for x, y in (equation.inputs, equation.inputs[::-1]):
        made = at.definition(x, convert_element_type_p)
        if made is not None and dtype_of(made.inputs[0]) == dtypes.BOOL and isinstance(y, Literal):
            return x, made, y.value
    return None


def compare_flag(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a bool as a number, compared with 0 or 1, to the bool or its negation."""
    found = _flag_beside_number(equation, at)
    if found is None or found[2] not in (0, 1):
        return None
    _, made, number = found
    holds = bool(number) is (equation.primitive is eq_p)
    return made.inputs[0] if holds else at.emit(not_p, made.inputs[0])


def extreme_of_flag(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite max(x, 0) = x and min(x, 1) = x for a bool x as a number."""
    found = _flag_beside_number(equation, at)
    if found is None:
        return None
    x, _, number = found
    stays = number <= 0 if equation.primitive is max_p else number >= 1
    return at.fit(x, equation.outputs[0].type) if stays else None


def choose_for_certain(equation: Equation, at: Rewriter) -> Atom | None:
    """Decide select by a literal, or between equals."""
    which, on_true, on_false = equation.inputs
    if isinstance(which, Literal):
        chosen = on_true if which.value else on_false
    elif on_true is on_false or (isinstance(on_true, Literal) and on_true == on_false):
        chosen = on_true
    else:
        return None
    return at.fit(chosen, equation.outputs[0].type)


def choose_by_negation(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite select(~p, x, y) = select(p, y, x), whether or not ~p is broadcast."""
    which, on_true, on_false = equation.inputs
    spread = at.definition(which, broadcast_in_dim_p)
    inner = at.definition(which if spread is None else spread.inputs[0], not_p)
    if inner is None:
        return None
    flag = inner.inputs[0]
    if spread is not None:
        flag = at.emit(broadcast_in_dim_p, flag, **spread.params)
    return at.emit(select_p, flag, on_false, on_true)


def choose_truth(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite select(p, true, false) = p and select(p, false, true) = ~p."""
    which, on_true, on_false = equation.inputs
    if dtype_of(on_true) != dtypes.BOOL:
        return None
    if is_literal(on_true, True) and is_literal(on_false, False):
        return which
    return at.emit(not_p, which) if is_literal(on_true, False) and is_literal(on_false, True) else None


def choose_again(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite select(p, select(p, x, y), z) = select(p, x, z), and likewise on the other side."""
    which, on_true, on_false = equation.inputs
    first, second = at.definition(on_true, select_p), at.definition(on_false, select_p)
    new_true = first.inputs[1] if first is not None and first.inputs[0] is which else on_true
    new_false = second.inputs[2] if second is not None and second.inputs[0] is which else on_false
    if new_true is on_true and new_false is on_false:
        return None
    if not which.type.shape and equation.outputs[0].type.shape:  # a literal would take its shape from the predicate
        type = equation.outputs[0].type
        new_true, new_false = at.fit(new_true, type), at.fit(new_false, type)
    return at.emit(select_p, which, new_true, new_false)


SELECT_RULES: Final[Rules] = (
    ((eq_p, ne_p, lt_p, le_p, gt_p, ge_p), (compare_with_itself,)),
    ((eq_p, ne_p), (compare_flag,)),
    ((max_p, min_p), (extreme_of_flag,)),
    ((lt_p, le_p, gt_p, ge_p), (compare_with_limit,)),
    ((select_p,), (choose_for_certain, choose_by_negation, choose_truth, choose_again)),
)
