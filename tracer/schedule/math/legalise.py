"""The pass that expands math functions into base operations.

The expansions rely on every operation rounding once, as written. A backend that contracts a * b + c into one rounding
must leave them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import F32
from tracer.ir.loop import (
    Block,
    Compute,
    For,
    If,
    Module,
    Statement,
    While,
)
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


def expand_math(module: Module) -> Module:
    """Replace every math function by base operations. Return the same module where there is none.

    f16 and bf16 are converted to f32, evaluated there and rounded.
    """
    functions = tuple(
        function if body is function.body else replace(function, body=body)
        for function in module.functions
        for body in (_expand_block(function.body),)
    )
    unchanged = all(a is b for a, b in zip(functions, module.functions, strict=True))
    return module if unchanged else replace(module, functions=functions)


def _expand_block(block: Block) -> Block:
    """Return the block with its math expanded. Blocks nest as loops do, so only their depth is recursed over."""
    code = Code()
    changed = False
    for statement in block.statements:
        if isinstance(statement, Compute) and statement.op in _MATH:
            _expand_compute(code, statement)
            changed = True
        else:
            inner = _expand_nested(statement)
            code.statements.append(inner)
            changed = changed or inner is not statement
    return Block(tuple(code.statements), block.yields) if changed else block


def _expand_nested(statement: Statement) -> Statement:
    match statement:
        case For():
            body = _expand_block(statement.body)
            return statement if body is statement.body else replace(statement, body=body)
        case While():
            condition = _expand_block(statement.condition)
            body = _expand_block(statement.body)
            if condition is statement.condition and body is statement.body:
                return statement
            return replace(statement, condition=condition, body=body)
        case If():
            then = _expand_block(statement.then)
            otherwise = _expand_block(statement.otherwise)
            if then is statement.then and otherwise is statement.otherwise:
                return statement
            return replace(statement, then=then, otherwise=otherwise)
        case _:
            return statement


def _expand_compute(code: Code, statement: Compute) -> None:
    """Record the expansion of one math function, its last statement giving the result register."""
    target = statement.result.dtype
    working = target if target in FORMATS else F32
    operands = [Value(code, operand).convert(working) for operand in statement.operands]
    code.define(statement.result, EXPANSIONS[statement.op](*operands).convert(target))
