"""Cost of an equation: arithmetic, and bytes that would move if nothing were fused. Counted, never measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod
from typing import Final

from tracer.ir.primitive import Pointwise
from tracer.ir.program import Equation
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.types import size, storage_type

FUNCTION: Final = 16
"""Additions that take as long as one function of the math library."""
MULTIPLY_ADD: Final = 2
_MATH: Final = frozenset(MATH_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of an equation or program.

    flops: additions, multiplications, comparisons and so on. functions: exp, sin and the like. moves: elements
    converted, gathered or copied. bytes_read, bytes_written: of arrays, each operand and result once. unknown_trips:
    whether a while_loop was counted as one iteration.
    """

    flops: int = 0
    functions: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    unknown_trips: bool = False
    moves: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.functions + other.functions,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.unknown_trips or other.unknown_trips,
            self.moves + other.moves,
        )

    def times(self, count: int) -> Cost:
        """Return the cost of `count` iterations."""
        return Cost(
            self.flops * count,
            self.functions * count,
            self.bytes_read * count,
            self.bytes_written * count,
            self.unknown_trips,
            self.moves * count,
        )

    @property
    def weight(self) -> int:
        """One value to compare programs by: an operation, a move or a sixteenth of a function each count one."""
        return self.flops + self.moves + FUNCTION * self.functions

    @property
    def work(self) -> int:
        """One value for the length of a call, in about a tenth of a nanosecond."""
        return self.flops + FUNCTION * self.functions + (self.bytes_read + self.bytes_written) // 4


NOTHING: Final = Cost()
Nested = Sequence[Cost]
"""The costs of the programs that an equation holds, in their order."""


def no_cost(equation: Equation, nested: Nested) -> Cost:
    """Return no cost: the operand is read in place."""
    return NOTHING


def moves_of_results(equation: Equation, nested: Nested) -> Cost:
    """Return one move for each element of the results."""
    return Cost(moves=results_size(equation))


def flops_of_results(equation: Equation, nested: Nested) -> Cost:
    """Return one operation for each element of the results."""
    return Cost(flops=results_size(equation))


def flops_of_operand(equation: Equation, nested: Nested) -> Cost:
    """Return one operation for each element of the first operand."""
    return Cost(flops=operand_size(equation))


def pointwise_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a function, or one or two operations, for each element of the result."""
    lower, count = equation.primitive.lower, results_size(equation)
    assert isinstance(lower, Pointwise)
    if lower.op in _MATH:
        return Cost(functions=count)
    return Cost(flops=count * (MULTIPLY_ADD if lower.op is ScalarOp.FMA else 1))


def conversion_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a move for each element, unless only the weak flag changes."""
    before, after = storage_type(equation.inputs[0].type), storage_type(equation.outputs[0].type)
    return NOTHING if before.dtype == after.dtype else moves_of_results(equation, nested)


def join_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a move for each element of an operand with axes."""
    return Cost(moves=sum(size(atom.type) for atom in equation.inputs if atom.type.shape))


def product_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a multiplication and an addition for each element of the result and of the contracted axes."""
    (contracted, _), _ = equation.params["dimension_numbers"]
    depth = prod(int(equation.inputs[0].type.shape[axis]) for axis in contracted)
    return Cost(flops=MULTIPLY_ADD * results_size(equation) * depth)


def convolution_cost(equation: Equation, nested: Nested) -> Cost:
    """Return a multiplication and an addition for each element of the result and of its window."""
    return Cost(flops=MULTIPLY_ADD * results_size(equation) * prod(equation.inputs[1].type.shape[1:]))


def sort_cost(equation: Equation, nested: Nested) -> Cost:
    """Return log2 n comparisons for each element of the results."""
    along: int = equation.inputs[0].type.shape[equation.params["dimension"]]
    return Cost(flops=results_size(equation) * ceil(log2(max(2, along))))


def matrix_cost(equation: Equation, nested: Nested) -> Cost:
    """Return n operations for each element of a matrix of n columns: factorisations and solves."""
    shape = equation.inputs[0].type.shape
    return Cost(flops=operand_size(equation) * (shape[-1] if shape else 1))


def fft_cost(equation: Equation, nested: Nested) -> Cost:
    """Return 5 n log2 n operations for each complex transform of length n, and half as many for a real one."""
    shape, axis, n = equation.inputs[0].type.shape, equation.params["axis"], equation.params["length"]
    count = prod(shape[:axis]) * prod(shape[axis + 1 :])
    whole = 5 * n * ceil(log2(max(2, n)))
    return Cost(flops=count * (whole // 2 if equation.params["fft_type"] in ("RFFT", "IRFFT") else whole))


def nested_cost(equation: Equation, nested: Nested) -> Cost:
    """Return the sum of the nested programs' costs."""
    return sum(nested, NOTHING)


def first_cost(equation: Equation, nested: Nested) -> Cost:
    """Return the cost of the called program, without its rules of differentiation."""
    return nested[0] if nested else NOTHING


def results_size(equation: Equation) -> int:
    """Return the elements of all results."""
    return sum(size(variable.type) for variable in equation.outputs)


def operand_size(equation: Equation) -> int:
    """Return the elements of the first operand."""
    return size(equation.inputs[0].type) if equation.inputs else 0
