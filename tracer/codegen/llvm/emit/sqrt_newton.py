"""Square roots of f64 by products, in the vector loops that the schedule marks (`schedule.cpu.root_products`).

Two steps of Goldschmidt's from an estimate of 14 bits (AVX-512) give g and h close to sqrt(x) and to 1 / (2 sqrt(x)).
Then g + h (x - g^2) is the correctly rounded root (Markstein 1990, IBM J. Res. Dev. 34(1)). Before rounding its error
is less than 2^-51 of its last place; roots so close to the middle of two floats are few and known
(`tests/codegen/llvm/emit/test_sqrt_newton.py` tries them all).
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit.register_splitting import in_registers
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import splat, vector

_REGISTER: Final = 8  # lanes
_MIN_ROOTED: Final = 63 << 52  # 2^-960: below, x - g^2 might be less than a float can be
_INFINITE: Final = 0x7FF << 52


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
