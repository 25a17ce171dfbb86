"""Divergent loops, as batching writes them: a mask of live lanes is among the carries.

Such a loop runs while any lane lives, and its body leaves finished lanes unchanged. So a further iteration changes
nothing and lanes may run one by one. A batch of such loops is a loop of more lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation, Literal, Program, Var, literal
from tracer.ir.visit import substitute, substitute_atoms


def mask_position(params: Mapping[str, Any]) -> int | None:
    """Return which carry of a while_loop is the mask of its live lanes. None if the loop is not divergent."""
    cond: Program = params["cond"]
    asked = cond.equations[0] if len(cond.equations) == 1 else None
    if params["cond_consts"] or asked is None or asked.primitive.name != "reduce_or" or cond.outputs != asked.outputs:
        return None
    (mask,) = asked.inputs
    if not isinstance(mask, Var) or len(asked.params["axes"]) != len(mask.type.shape):
        return None
    position = cond.inputs.index(mask)
    body: Program = params["body"]
    carries = body.inputs[params["body_consts"] :]
    done = assume(body, carries[position], False)
    frozen = (_is_false(y) if n == position else y is carries[n] for n, y in enumerate(done.outputs))
    return position if all(frozen) else None


def _is_false(atom: Atom) -> bool:
    return isinstance(atom, Literal) and not atom.value


def assume(program: Program, mask: Var, value: bool) -> Program:
    """Specialise a program for an input `mask` whose elements all equal `value`: selections by it are resolved.

    Outputs that are known to be all true or all false become scalar literals.
    """
    known: dict[Var, bool] = {mask: value}
    same: dict[Var, Atom] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        equation = substitute(equation, same)
        result = _result(equation, known)
        if result is None:
            equations.append(equation)
        elif isinstance(result, bool):
            known[equation.outputs[0]] = result
            equations.append(equation)  # for readers other than selections
        else:
            same[equation.outputs[0]] = result
    told: dict[Var, Atom] = {variable: literal(on, dtypes.BOOL) for variable, on in known.items()}
    outputs = substitute_atoms(substitute_atoms(program.outputs, same), told)
    return replace(program, equations=tuple(equations), outputs=outputs)


def _result(equation: Equation, known: Mapping[Var, bool]) -> Atom | bool | None:
    """Return the atom that an equation's result equals, or the concrete value of all its elements, or None."""
    truths = [known.get(atom) if isinstance(atom, Var) else None for atom in equation.inputs]
    match equation.primitive.name:
        case "select" if truths[0] is not None:
            return equation.inputs[1 if truths[0] else 2]
        case "broadcast_in_dim" | "reshape" | "squeeze":
            return truths[0]
        case "not" if truths[0] is not None:
            return not truths[0]
        case "and" | "or" if known.keys() & set(equation.inputs):
            position = 0 if truths[0] is not None else 1
            neutral = equation.primitive.name == "and"
            return equation.inputs[1 - position] if truths[position] is neutral else truths[position]
        case _:
            return None
