"""Exponents and significands of floats, and products with powers of two: an instruction each with AVX-512.

Other machines read and write them in the encodings. Both ways are exact, so they give the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tracer.codegen.llvm.emit.register_splitting import in_registers
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, real, splat, vector
from tracer.ir.dtypes import F32, DType, finfo
from tracer.ir.scalar import ScalarOp

_LONGEST: Final = 512  # bits of a register
_SHORTEST: Final = 128
_CURRENT_ROUNDING: Final = "i32 4"
_THREE_QUARTERS: Final = "i32 15"  # vgetmant: into [3/4, 3/2), NaN for a negative number, 1 for -0


@dataclass(frozen=True, slots=True)
class Parts:
    """Place where such an operation is written: writer, dtype and lanes."""

    w: Writer
    dtype: DType
    lanes: int

    def spell(self, op: ScalarOp, x: str, n: str = "") -> str:
        """Return op(x), or op(x, n) for SCALE."""
        if op is ScalarOp.SCALE:
            return self._native("scalef", x, n) if self.w.splits_floats else self._scaled(x, n)
        if op is ScalarOp.SIGNIFICAND:
            return self._native("getmant", x) if self.w.splits_floats else self._read(x)[1]
        if not self.w.splits_floats:
            return self._read(x)[0]
        above, own = self._native("getexp", x), self._native("getexp", self._native("getmant", x))
        return self.w.let(f"fsub {self._floats} {above}, {own}")

    @property
    def _floats(self) -> str:
        return vector(ELEMENT[self.dtype], self.lanes)

    @property
    def _words(self) -> str:
        return vector(f"i{8 * self.dtype.itemsize}", self.lanes)

    # -- instructions ------------------------------------------------------------------------------------------

    def _native(self, name: str, *values: str) -> str:
        """Return the result of an AVX-512 instruction, on as many registers as the lanes fill."""
        w, element, width = self.w, ELEMENT[self.dtype], 8 * self.dtype.itemsize
        bits = min(max(self.lanes * width, _SHORTEST), _LONGEST)
        kind, count = vector(element, bits // width), bits // width
        if self.lanes == 0:
            held = [w.let(f"insertelement {kind} poison, {element} {value}, i64 0") for value in values]
            return w.let(f"extractelement {kind} {self._register(name, bits, held)}, i64 0")
        given = [(element, value) for value in values]
        return in_registers(w, self.lanes, count, element, given, lambda held: self._register(name, bits, held))

    def _register(self, name: str, bits: int, values: list[str]) -> str:
        single = self.dtype == F32
        count = bits // (32 if single else 64)
        kind, mask = vector(ELEMENT[self.dtype], count), f"i{max(count, 8)}"
        full = f"@llvm.x86.avx512.mask.{name}.{'ps' if single else 'pd'}.{bits}"
        interval = [_THREE_QUARTERS] if name == "getmant" else []
        rounding = [_CURRENT_ROUNDING] if bits == _LONGEST else []
        given = (
            [f"{kind} {value}" for value in values] + interval + [f"{kind} zeroinitializer", f"{mask} -1"] + rounding
        )
        kinds = [kind] * len(values) + ["i32 immarg"] * len(interval) + [kind, mask] + ["i32 immarg"] * len(rounding)
        self.w.declarations[full] = f"declare {kind} {full}({', '.join(kinds)})"
        return self.w.let(f"call {kind} {full}({', '.join(given)})")

    # -- encodings ---------------------------------------------------------------------------------------------

    def _read(self, x: str) -> tuple[str, str]:
        """Return the exponent and the significand. LLVM merges the equal code of both operations on one x."""
        w, form = self.w, finfo(self.dtype)
        fraction, up = form.nmant, form.nmant + 1
        magic = 1.5 * 2.0**fraction
        small = self._compare("olt", x, float(form.tiny))
        enlarged = w.let(f"fmul {self._floats} {x}, {self._real(2.0**up)}")
        least = _encoding(self.dtype, 0.75)
        encoding = self._as_words(self._choose(small, enlarged, x))
        offset = w.let(f"sub {self._words} {encoding}, {self._word(least)}")
        exponent = w.let(f"ashr {self._words} {offset}, {self._word(fraction)}")
        written = w.let(f"add {self._words} {exponent}, {self._word(_encoding(self.dtype, magic))}")
        shift = self._choose(small, self._real(magic + up), self._real(magic))
        exponent = w.let(f"fsub {self._floats} {self._as_floats(written)}, {shift}")
        low = w.let(f"and {self._words} {offset}, {self._word((1 << fraction) - 1)}")
        significand = self._as_floats(w.let(f"add {self._words} {low}, {self._word(least)}"))
        positive, finite = self._compare("ogt", x, 0.0), self._compare("olt", x, math.inf)
        ordinary = w.let(f"and {vector('i1', self.lanes)} {positive}, {finite}")
        odd = self._choose(positive, x, self._real(math.nan))
        odd = self._choose(self._compare("oeq", x, 0.0), self._real(-math.inf), odd)
        one = self._choose(self._compare("oge", x, 0.0), self._real(1.0), self._real(math.nan))
        return self._choose(ordinary, exponent, odd), self._choose(ordinary, significand, one)

    def _scaled(self, x: str, n: str) -> str:
        """Return x * 2^n by two factors, the second of which rounds."""
        w, form = self.w, finfo(self.dtype)
        bias, fraction = form.maxexp - 1, form.nmant
        magic, up = 1.5 * 2.0**fraction, 64 if self.dtype == F32 else 128
        low = self._compare("olt", n, 10.0 - bias)
        shift = self._choose(low, self._real(magic + bias - 1 + up), self._real(magic + bias - 1))
        written = self._as_words(w.let(f"fadd {self._floats} {n}, {shift}"))
        power = self._as_floats(w.let(f"shl {self._words} {written}, {self._word(fraction)}"))
        rest = self._choose(low, self._real(2.0 ** (1 - up)), self._real(2.0))
        exact = w.let(f"fmul {self._floats} {x}, {power}")
        return w.let(f"fmul {self._floats} {exact}, {rest}")

    def _compare(self, order: str, x: str, bound: float) -> str:
        return self.w.let(f"fcmp {order} {self._floats} {x}, {self._real(bound)}")

    def _choose(self, condition: str, a: str, b: str) -> str:
        mask = vector("i1", self.lanes)
        return self.w.let(f"select {mask} {condition}, {self._floats} {a}, {self._floats} {b}")

    def _as_words(self, value: str) -> str:
        return self.w.let(f"bitcast {self._floats} {value} to {self._words}")

    def _as_floats(self, value: str) -> str:
        return self.w.let(f"bitcast {self._words} {value} to {self._floats}")

    def _real(self, value: float) -> str:
        return splat(ELEMENT[self.dtype], real(self.dtype, value), self.lanes)

    def _word(self, value: int) -> str:
        return splat(f"i{8 * self.dtype.itemsize}", str(value), self.lanes)


def _encoding(dtype: DType, value: float) -> int:
    return int(dtype.type(value).view(f"i{dtype.itemsize}"))
