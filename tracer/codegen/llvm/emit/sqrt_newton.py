"""Square roots of f64 by products, where the divider would hold up a vector loop (AVX-512).

A core of Intel's takes some 20 cycles for the roots of a register, and 16 for quotients, in which it does 40 and 32
other operations. Two steps of Goldschmidt's from an estimate of 14 bits give g and h close to sqrt(x) and to 1 / (2
sqrt(x)). Then g + h (x - g^2) is the correctly rounded root (Markstein 1990, IBM J. Res. Dev. 34(1)). Before rounding
its error is less than 2^-51 of its last place; roots so close to the middle of two floats are few and known
(`tests/codegen/llvm/emit/test_sqrt_newton.py` tries them all).
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit.register_splitting import in_registers
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import splat, vector
from tracer.ir.dtypes import F64
from tracer.ir.loop import Block, Compute
from tracer.ir.scalar import ScalarOp

_REGISTER: Final = 8  # lanes
_ROOT, _QUOTIENT, _PRODUCTS = 20.0, 16.0, 8.0  # cycles a register; two ports share the products
_OPERATION: Final = 0.5
_MARGIN: Final = 1.5  # at a ratio of 1.3 an equation of state with a quotient took 4 % longer than by the divider
_MIN_ROOTED: Final = 63 << 52  # 2^-960: below, x - g^2 might be less than a float can be
_INFINITE: Final = 0x7FF << 52


def pays(body: Block, lanes: int) -> bool:
    """Whether a loop over this body takes less time with its roots as products."""
    operations = [s for s in body.statements if isinstance(s, Compute)]
    wide = [s.op for s in operations if s.result.dtype == F64]
    roots = wide.count(ScalarOp.SQRT)
    if lanes < _REGISTER or not roots:
        return False
    quotients, others = _QUOTIENT * wide.count(ScalarOp.DIV), _OPERATION * len(operations)
    return _MARGIN * max(quotients, others + _PRODUCTS * roots) < max(quotients + _ROOT * roots, others)


def root(w: Writer, lanes: int, x: str) -> str:
    """Return sqrt(x), correctly rounded; by the divider if any lane is 0, tiny, infinite, negative or NaN."""
    kind, words = vector("double", lanes), vector("i64", lanes)
    above = w.let(f"sub {words} {w.let(f'bitcast {kind} {x} to {words}')}, {splat('i64', str(_MIN_ROOTED), lanes)}")
    odd = w.let(f"icmp uge {words} {above}, {splat('i64', str(_INFINITE - _MIN_ROOTED), lanes)}")
    plain, divided, join = w.label("plain"), w.label("divided"), w.label("join")
    w.branch(w.any(odd, lanes), divided, plain, unlikely=True)
    w.open(divided)
    slow = w.intrinsic("llvm.sqrt", "double", lanes, x)
    w.jump(join)
    w.open(plain)
    fast = _by_products(w, lanes, x)
    w.jump(join)
    w.open(join)
    return w.let(f"phi {kind} [ {slow}, %{divided} ], [ {fast}, %{plain} ]")


def _by_products(w: Writer, lanes: int, x: str) -> str:
    kind = vector("double", lanes)
    half = splat("double", "0.5", lanes)

    def fma(a: str, b: str, c: str) -> str:
        return w.intrinsic("llvm.fma", "double", lanes, a, b, c)

    y = in_registers(w, lanes, _REGISTER, "double", [("double", x)], lambda held: _estimate(w, held[0]))
    g, h = w.let(f"fmul {kind} {x}, {y}"), w.let(f"fmul {kind} {y}, {half}")
    for _ in range(2):
        rest = fma(w.let(f"fneg {kind} {g}"), h, half)
        g, h = fma(g, rest, g), fma(h, rest, h)
    return fma(h, fma(w.let(f"fneg {kind} {g}"), g, x), g)


def _estimate(w: Writer, x: str) -> str:
    """Return 1 / sqrt(x) to 14 bits."""
    kind, name = vector("double", _REGISTER), "@llvm.x86.avx512.rsqrt14.pd.512"
    w.declarations[name] = f"declare {kind} {name}({kind}, {kind}, i8)"
    return w.let(f"call {kind} {name}({kind} {x}, {kind} zeroinitializer, i8 -1)")
