"""Square roots of f64 as products, where the divider would hold up a vector loop (AVX-512).

A core of Intel's takes some 20 cycles for the roots of a register, and 16 for quotients. Meanwhile it does 40 and 32
other operations. The products give the divider's bits: see `codegen.llvm.emit.sqrt_newton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from tracer.ir.dtypes import F64
from tracer.ir.loop import Compute, For, LoopKind, Module, Statement
from tracer.ir.loop.walk import with_bodies, with_statements
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import CPU, Target

_REGISTER: Final = 8  # lanes
_ROOT, _QUOTIENT, _PRODUCTS = 20.0, 16.0, 8.0  # cycles a register; two ports share the products
_OPERATION: Final = 0.5
_MARGIN: Final = 1.5  # at a ratio of 1.3 an equation of state with a quotient took 4 % longer than by the divider


def multiply_roots(module: Module, target: Target = CPU) -> Module:
    """Mark the vector loops that take less time with their roots as products."""
    if not target.machine.root_estimates:
        return module
    return with_bodies(module, partial(with_statements, change=_marked))


def _marked(s: Statement) -> Sequence[Statement]:
    if isinstance(s, For) and s.kind is LoopKind.VECTOR and not s.multiplies_roots and _pays(s):
        return (replace(s, multiplies_roots=True),)
    return (s,)


def _pays(s: For) -> bool:
    operations = [inner for inner in s.body.statements if isinstance(inner, Compute)]
    wide = [inner.op for inner in operations if inner.result.dtype == F64]
    roots = wide.count(ScalarOp.SQRT)
    if s.lanes < _REGISTER or not roots:
        return False
    quotients, others = _QUOTIENT * wide.count(ScalarOp.DIV), _OPERATION * len(operations)
    return _MARGIN * max(quotients, others + _PRODUCTS * roots) < max(quotients + _ROOT * roots, others)
