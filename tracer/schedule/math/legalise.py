"""The pass that expands math functions into base operations.

The expansions rely on every operation rounding once, as written. A backend that contracts a * b + c into one rounding
must leave them alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from typing import Final

from tracer.ir import loop
from tracer.ir.dtypes import F32, DType
from tracer.ir.loop.walk import statements_of, with_bodies
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.schedule.math import (
    error_functions,
    exponentials,
    gamma,
    hyperbolic,
    inverse_trigonometry,
    logarithms,
    powers,
    trigonometry,
)
from tracer.schedule.math.expand import FORMATS, Code, Value

EXPANSIONS: Final[dict[ScalarOp, Callable[..., Value]]] = {
    ScalarOp.EXP: exponentials.exp,
    ScalarOp.EXP2: exponentials.exp2,
    ScalarOp.EXPM1: exponentials.expm1,
    ScalarOp.LOG: logarithms.log,
    ScalarOp.LOG2: logarithms.log2,
    ScalarOp.LOG1P: logarithms.log1p,
    ScalarOp.SIN: trigonometry.sin,
    ScalarOp.COS: trigonometry.cos,
    ScalarOp.TAN: trigonometry.tan,
    ScalarOp.TANH: hyperbolic.tanh,
    ScalarOp.POW: powers.pow_,
    ScalarOp.RSQRT: powers.rsqrt,
    ScalarOp.SINH: hyperbolic.sinh,
    ScalarOp.COSH: hyperbolic.cosh,
    ScalarOp.ASINH: hyperbolic.asinh,
    ScalarOp.ACOSH: hyperbolic.acosh,
    ScalarOp.ATANH: hyperbolic.atanh,
    ScalarOp.ASIN: inverse_trigonometry.asin,
    ScalarOp.ACOS: inverse_trigonometry.acos,
    ScalarOp.ATAN: inverse_trigonometry.atan,
    ScalarOp.ATAN2: inverse_trigonometry.atan2,
    ScalarOp.CBRT: powers.cbrt,
    ScalarOp.HYPOT: powers.hypot,
    ScalarOp.ERF: error_functions.erf,
    ScalarOp.ERFC: error_functions.erfc,
    ScalarOp.ERF_INV: error_functions.erf_inv,
    ScalarOp.LGAMMA: gamma.lgamma,
    ScalarOp.DIGAMMA: gamma.digamma,
    ScalarOp.LOGISTIC: exponentials.logistic,
}
"""One function of f32 or f64 values for each operation in `MATH_FUNCTIONS`."""

_MATH: Final = frozenset(MATH_FUNCTIONS)
_IN_PLACE: Final = frozenset((ScalarOp.RSQRT,))  # shorter than a call
_REPEATED: Final = 6  # uses of a function within loops from which on it is called


def expand_math(module: loop.Module, *, calls: bool = False) -> loop.Module:
    """Replace math functions by base operations. Return the same module where there are none.

    f16 and bf16 are converted to f32, evaluated there and rounded. calls: whether functions outside vector loops stay,
    and the module gets a function for each, named by `Compute.callee`. A dozen sines of an integrator's stages are 200
    lines of LLVM's each. Sine and cosine of one value share 4 of 152 statements. Within loops, functions stay
    if they are repeated: a call takes 2 to 4 ns more than 16 ns in place.
    """
    uses = Counter[str]()
    if calls:
        statements = (s for function in module.functions for s in statements_of(function.body))
        uses.update(s.callee for s in statements if isinstance(s, loop.Compute) and s.op in _MATH)
    expansion = _Expansion(calls, {name for name, count in uses.items() if count >= _REPEATED})
    expanded = with_bodies(module, expansion.block)
    present = {function.name for function in module.functions}
    added = tuple(function for name, function in expansion.called.items() if name not in present)
    return replace(expanded, functions=(*added, *expanded.functions)) if added else expanded


class _Expansion:
    """One run of the pass. repeated: names of functions that stay in loops, too. called: all that stay, by name."""

    def __init__(self, calls: bool, repeated: Collection[str]) -> None:
        self.calls, self.repeated = calls, repeated
        self.called: dict[str, loop.Function] = {}

    def block(self, block: loop.Block, *, in_loop: bool = False, in_lanes: bool = False) -> loop.Block:
        """Return the block with its math expanded. Blocks nest as loops do, so only their depth is recursed over."""
        code = Code()
        changed = False
        for statement in block.statements:
            if isinstance(statement, loop.Compute) and statement.op in _MATH:
                by_call = self.calls and not in_lanes and statement.op not in _IN_PLACE
                by_call = by_call and (not in_loop or statement.callee in self.repeated)
                changed = self._compute(code, statement, by_call=by_call) or changed
            else:
                inner = self._nested(statement, in_loop, in_lanes)
                code.statements.append(inner)
                changed = changed or inner is not statement
        return loop.Block(tuple(code.statements), block.yields) if changed else block

    def _nested(self, statement: loop.Statement, in_loop: bool, in_lanes: bool) -> loop.Statement:
        match statement:
            case loop.For():
                body = self.block(
                    statement.body, in_loop=True, in_lanes=in_lanes or statement.kind is loop.LoopKind.VECTOR
                )
                return statement if body is statement.body else replace(statement, body=body)
            case loop.While():
                condition = self.block(statement.condition, in_loop=True, in_lanes=in_lanes)
                body = self.block(statement.body, in_loop=True, in_lanes=in_lanes)
                if condition is statement.condition and body is statement.body:
                    return statement
                return replace(statement, condition=condition, body=body)
            case loop.If():
                then = self.block(statement.then, in_loop=in_loop, in_lanes=in_lanes)
                otherwise = self.block(statement.otherwise, in_loop=in_loop, in_lanes=in_lanes)
                if then is statement.then and otherwise is statement.otherwise:
                    return statement
                return replace(statement, then=then, otherwise=otherwise)
            case _:
                return statement

    def _compute(self, code: Code, statement: loop.Compute, *, by_call: bool) -> bool:
        """Record one math function, its last statement giving the result register. Return whether that changes it."""
        target = statement.result.dtype
        working = target if target in FORMATS else F32
        if by_call:
            function = _function(statement.op, working)
            self.called[function.name] = function
            if working == target:
                code.statements.append(statement)
                return False
        operands = [Value(code, operand).convert(working) for operand in statement.operands]
        if by_call:
            result = code.apply(statement.op, working, *(value.operand for value in operands))
        else:
            result = EXPANSIONS[statement.op](*operands)
        code.define(statement.result, result.convert(target))
        return True


@cache
def _function(op: ScalarOp, dtype: DType) -> loop.Function:
    """Return a math function of one dtype as a function of registers, which yields the result."""
    code = Code()
    count = EXPANSIONS[op].__code__.co_argcount
    parameters = tuple(loop.Register(dtype, f"x{n}") for n in range(count))
    result = EXPANSIONS[op](*(Value(code, register) for register in parameters))
    name = loop.Compute(loop.Register(dtype), op, parameters).callee
    return loop.Function(name, parameters, loop.Block(tuple(code.statements), (result.operand,)))
