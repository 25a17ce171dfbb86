"""Flops by weights: one number for what a program computes, to compare a derivative with what it is derived from.

Loops count every round, and one where nobody knows how many; branches count as the dearest of them.

    what                                              weight
    arithmetic, comparisons, choices, conversions     1 for each element of the result; fma 2
    functions: exp, sin, pow, sqrt's kin, erf         16 for each element of the result
    reductions, running sums and their kin            1 for each element of the operand
    products of matrices, convolutions                2 for each multiplication, with its addition
    gather, dynamic slices                            1 for each element of the result
    scatter, dynamic updates                          1 for each element of the updates: the others stay
    concatenate, pad                                  1 for each element that is put there; constants are none
    sort                                              log2 n for each element of the result
    solves, factorisations                            n for each element of an n by n operand
    broadcasts, transposes, reshapes, slices          0: they are read in place
"""

from __future__ import annotations

import math
from typing import Any, Final

from tracer.ir.primitive import (
    Alias,
    ArgReduce,
    Checked,
    Compare,
    Composite,
    Convert,
    Gather,
    Generate,
    IndexMap,
    Join,
    Library,
    NoRule,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
    Structured,
)  # fmt: skip
from tracer.ir.program import Equation, Program
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.types import size, storage_type

FUNCTION: Final = 16
MULTIPLY_ADD: Final = 2
_MATH = frozenset(MATH_FUNCTIONS)


def flops(program: Program) -> int:
    """The weighted sum over the equations, nested programs included."""
    return sum(map(equation_flops, program.equations))


def equation_flops(equation: Equation) -> int:
    """One equation by the table of the module."""
    results = sum(size(variable.type) for variable in equation.outputs)
    entering = size(equation.inputs[0].type) if equation.inputs else 0
    match equation.primitive.lower:
        case Pointwise(op):
            weight = FUNCTION if op in _MATH else MULTIPLY_ADD if op is ScalarOp.FMA else 1
            return weight * results
        case Convert():  # one that changes a weak flag alone computes nothing
            return results if _changes_dtype(equation) else 0
        case Composite(_, has_nest) if has_nest is not None and equation.primitive.name != "top_k":  # a convolution
            return MULTIPLY_ADD * results * math.prod(equation.inputs[1].type.shape[1:])
        case Compare() | Checked() | Composite() | Gather():
            return results
        case Join():
            return sum(size(atom.type) for atom in equation.inputs if atom.type.shape)
        case Reduce() | ArgReduce() | Scan():
            return entering
        case Scatter():
            return size(equation.inputs[1 if equation.primitive.name == "dynamic_update_slice" else 2].type)
        case Library(routine):
            return _library(routine, equation, results, entering)
        case Structured(kind):
            return _structured(kind, equation, results)
        case Alias() | Generate() | IndexMap() | NoRule():
            return 0


def _changes_dtype(equation: Equation) -> bool:
    before, after = storage_type(equation.inputs[0].type), storage_type(equation.outputs[0].type)
    return before.dtype != after.dtype


def _library(routine: str, equation: Equation, results: int, entering: int) -> int:
    shape = equation.inputs[0].type.shape
    match routine:
        case "dot":
            (contracted, _), _ = equation.params["dimension_numbers"]
            depth = math.prod(int(shape[axis]) for axis in contracted)
            return MULTIPLY_ADD * results * depth
        case "sort":
            along: int = shape[equation.params["dimension"]]
            return results * math.ceil(math.log2(max(2, along)))
        case _:
            return entering * (shape[-1] if shape else 1)


def _structured(kind: str, equation: Equation, results: int) -> int:
    nested = [flops(program) for _, program in equation.nested()]
    match kind:
        case "cond":
            return max(nested, default=0)
        case "scan":
            length: Any = equation.params["length"]
            return sum(nested) * int(length)
        case "custom_jvp" | "custom_vjp" | "call":
            return nested[0] if nested else 0
        case "while" | "for":
            return sum(nested)
        case kind if kind.startswith("stack"):
            return 0  # memory alone
        case _:
            return results
