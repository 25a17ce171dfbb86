"""Passes of Fourier transforms on eight lines side by side, one module for each radix, compiled once.

    void tracer_fft_pass8_f64(ptr x, ptr y, ptr w, i64 m, i64 l)
    y[q + l (r p + k)] = w[p, k] Σ_j exp(-2πi jk / r) x[q + l (p + m j)]     for p < m, q < l, and k < r

x and y hold complex numbers of eight lines: eight real parts, then eight imaginary ones. Radices in turn, with m = n
over their product so far and l the product before, make the transform of length n in order. This is Stockham's scheme:
Van Loan 1992, Computational Frameworks for the FFT, 1.7. w holds exp(-2πi pk / (r m)) for p > 0 and k > 0. One number
serves all lanes, and no lane is moved.
"""

from __future__ import annotations

from math import sqrt
from struct import pack, unpack
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.kernels.gemm.kernel_loops import loop
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape, attributes

NAME: Final = "tracer_fft_pass"
LANES: Final = 8
"""Lines side by side: of f64, a vector of 512 bits, which narrower machines take as several."""
RADICES: Final = (13, 11, 8, 7, 5, 4, 3, 2)

Pair = tuple[str, str]  # names of the vectors of real and imaginary parts


def lanes_of(kind: str, vector_bits: int | None = None) -> Shape:
    """Return the shape of vectors of eight numbers, for this machine's vectors or for vectors of so many bits."""
    bits = {"f32": 32 * LANES, "f64": 64 * LANES}[kind]
    machine, s = Shape(kind, vector_bits), Shape(kind, vector_bits, bits)
    s.bits = machine.bits
    return s


REAL: Final[dict[str, np.dtype[Any]]] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def roots(places: Any, n: int, kind: str) -> Any:
    """Return exp(-2πi t / n) as pairs, [*s, 2], for integers t [*s], from angles of at most an eighth of a circle."""
    t = np.asarray(places, np.int64) % n
    eighth, rest = np.divmod(8 * t, n)
    angles = (2 * np.pi / (8 * n)) * np.where(eighth & 1, n - rest, rest)
    near, far = np.cos(angles), np.sin(angles)
    is_turned = (eighth + 1) & 2
    result = np.empty((*t.shape, 2), REAL[kind])
    result[..., 0] = np.where(is_turned, far, near) * (1 - ((eighth + 2) >> 2 & 1) * 2)
    result[..., 1] = np.where(is_turned, near, far) * ((eighth >> 2) * 2 - 1)
    return result


class Code:
    """Straight code on vectors of a number of each line."""

    def __init__(self, s: Shape, prefix: str) -> None:
        self.s, self.prefix = s, prefix
        self.lines: list[str] = []

    def let(self, text: str) -> str:
        name = f"%{self.prefix}.{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: float) -> str:
        """Return the vector of one number, rounded to the dtype."""
        rounded = unpack("f", pack("f", value))[0] if self.s.element == "float" else value
        return f"splat ({self.s.element} 0x{unpack('<Q', pack('<d', rounded))[0]:016X})"

    def add(self, x: str, y: str) -> str:
        return self.let(f"fadd {self.s.vector} {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        return self.let(f"fsub {self.s.vector} {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        return self.let(f"fmul {self.s.vector} {x}, {y}")

    def neg(self, x: str) -> str:
        return self.let(f"fneg {self.s.vector} {x}")

    def fma(self, x: str, y: str, z: str) -> str:
        """Return x y + z, rounded once where the machine can."""
        v = self.s.vector
        if self.s.fused:
            return self.let(f"call {v} @llvm.fma.{self.s.suffix}({v} {x}, {v} {y}, {v} {z})")
        return self.add(self.mul(x, y), z)

    def fms(self, x: str, y: str, z: str) -> str:
        """Return x y - z."""
        return self.fma(x, y, self.neg(z)) if self.s.fused else self.sub(self.mul(x, y), z)

    def at(self, pointer: str, element: str | int) -> str:
        return self.let(f"getelementptr {self.s.element}, ptr {pointer}, i64 {element}")

    def load(self, pointer: str, element: str | int = 0) -> str:
        return self.let(f"load {self.s.vector}, ptr {self.at(pointer, element)}, align {self.s.size}")

    def store(self, value: str, pointer: str, element: str | int = 0) -> None:
        self.lines.append(f"  store {self.s.vector} {value}, ptr {self.at(pointer, element)}, align {self.s.size}")

    def spread(self, pointer: str, element: int) -> str:
        """Load a number and return a vector of it."""
        v, place = self.s.vector, self.at(pointer, element)
        one = self.let(f"load {self.s.element}, ptr {place}, align {self.s.size}")
        first = self.let(f"insertelement {v} poison, {self.s.element} {one}, i64 0")
        return self.let(f"shufflevector {v} {first}, {v} poison, <{self.s.lanes} x i32> zeroinitializer")

    def shuffle(self, x: str, y: str, places: list[int]) -> str:
        chosen, v = ", ".join(f"i32 {place}" for place in places), self.s.vector
        return self.let(f"shufflevector {v} {x}, {v} {y}, <{self.s.lanes} x i32> <{chosen}>")

    # halves of vectors

    def load_half(self, pointer: str, element: int) -> str:
        return self.let(f"load {self._half}, ptr {self.at(pointer, element)}, align {self.s.size}")

    def load_eight(self, pointer: str, element: int) -> str:
        """Load eight numbers, for each eight lanes."""
        kind, lanes = f"<{LANES} x {self.s.element}>", self.s.lanes
        x = self.let(f"load {kind}, ptr {self.at(pointer, element)}, align {self.s.size}")
        places = ", ".join(f"i32 {lane % LANES}" for lane in range(lanes))
        return x if lanes == LANES else self.let(f"shufflevector {kind} {x}, {kind} poison, <{lanes} x i32> <{places}>")

    def joined(self, x: str, y: str) -> str:
        """Return the vector of two halves."""
        places = ", ".join(f"i32 {place}" for place in range(self.s.lanes))
        return self.let(f"shufflevector {self._half} {x}, {self._half} {y}, <{self.s.lanes} x i32> <{places}>")

    @property
    def _half(self) -> str:
        return f"<{self.s.lanes // 2} x {self.s.element}>"

    # complex numbers

    def load_pair(self, pointer: str, element: str | int = 0) -> Pair:
        """Load the numbers of all lanes at a place of a buffer."""
        place = self.at(pointer, element)
        return self.load(place), self.load(place, self.s.lanes)

    def store_pair(self, x: Pair, pointer: str, element: str | int = 0) -> None:
        place = self.at(pointer, element)
        self.store(x[0], place)
        self.store(x[1], place, self.s.lanes)

    def load_in_turn(self, pointer: str, element: str | int = 0, then: str = "") -> Pair:
        """Load a complex number for each lane, where real and imaginary parts stand in turn.

        then: the pointer to numbers for the second half of the lanes, if they do not follow.
        """
        place = self.at(pointer, element)
        x, y = self.load(place), self.load(then or self.at(place, self.s.lanes))
        places = range(2 * self.s.lanes)
        return self.shuffle(x, y, list(places[::2])), self.shuffle(x, y, list(places[1::2]))

    def store_in_turn(self, x: Pair, pointer: str, element: str | int = 0, then: str = "") -> None:
        """Store complex numbers as `load_in_turn` loads them."""
        place, lanes = self.at(pointer, element), self.s.lanes
        places = [place // 2 + lanes * (place % 2) for place in range(2 * lanes)]
        self.store(self.shuffle(*x, places[:lanes]), place)
        self.store(self.shuffle(*x, places[lanes:]), then or self.at(place, lanes))

    def backwards(self, x: Pair) -> Pair:
        places = list(range(self.s.lanes))[::-1]
        return self.shuffle(x[0], x[0], places), self.shuffle(x[1], x[1], places)

    def root(self, place: int, n: int) -> Pair:
        """Return the vectors of exp(-2πi place / n)."""
        re, im = roots(place, n, "f64")
        return self.constant(float(re)), self.constant(float(im))

    def plus(self, x: Pair, y: Pair) -> Pair:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def minus(self, x: Pair, y: Pair) -> Pair:
        return self.sub(x[0], y[0]), self.sub(x[1], y[1])

    def times(self, x: Pair, w: Pair) -> Pair:
        return self.fms(x[0], w[0], self.mul(x[1], w[1])), self.fma(x[0], w[1], self.mul(x[1], w[0]))

    def less_turned(self, x: Pair, y: Pair) -> Pair:
        """Return x - i y."""
        return self.add(x[0], y[1]), self.sub(x[1], y[0])

    def more_turned(self, x: Pair, y: Pair) -> Pair:
        """Return x + i y."""
        return self.sub(x[0], y[1]), self.add(x[1], y[0])


def transform(c: Code, x: list[Pair]) -> list[Pair]:
    """Return the transform of as many numbers as a radix."""
    match len(x):
        case 2:
            return [c.plus(*x), c.minus(*x)]
        case 4:
            return _four(c, x)
        case 8:
            return _eight(c, x)
        case 16:
            return _sixteen(c, x)
        case _:
            return _odd(c, x)


def _four(c: Code, x: list[Pair]) -> list[Pair]:
    a, b, d, e = c.plus(x[0], x[2]), c.minus(x[0], x[2]), c.plus(x[1], x[3]), c.minus(x[1], x[3])
    return [c.plus(a, d), c.less_turned(b, e), c.minus(a, d), c.more_turned(b, e)]


def _eight(c: Code, x: list[Pair]) -> list[Pair]:
    """Join the transforms of the numbers at even and at odd places, turned by eighths of a circle."""
    even, odd = _four(c, x[::2]), _four(c, x[1::2])
    half = c.constant(sqrt(0.5))
    (r1, i1), (r3, i3) = odd[1], odd[3]
    one = c.mul(c.add(r1, i1), half), c.mul(c.sub(i1, r1), half)
    three = c.mul(c.sub(i3, r3), half), c.neg(c.mul(c.add(r3, i3), half))
    return [
        c.plus(even[0], odd[0]), c.plus(even[1], one), c.less_turned(even[2], odd[2]), c.plus(even[3], three),
        c.minus(even[0], odd[0]), c.minus(even[1], one), c.more_turned(even[2], odd[2]), c.minus(even[3], three),
    ]  # fmt: skip


def _sixteen(c: Code, x: list[Pair]) -> list[Pair]:
    """Join four transforms of every fourth number, turned by sixteenths of a circle."""
    parts = [_four(c, x[j::4]) for j in range(4)]
    for j in range(1, 4):
        for k in range(1, 4):
            re, im = parts[j][k]
            if j * k == 4:
                parts[j][k] = im, c.neg(re)
            else:
                parts[j][k] = c.times((re, im), c.root(j * k, 16))
    joined = [_four(c, [part[k] for part in parts]) for k in range(4)]
    return [joined[k % 4][k // 4] for k in range(16)]


def _odd(c: Code, x: list[Pair]) -> list[Pair]:
    """Add up cosines of sums and sines of differences of the elements at j and r - j, for k and r - k."""
    r = len(x)
    pairs = range(1, (r + 1) // 2)
    sums, differences = ([join(x[j], x[r - j]) for j in pairs] for join in (c.plus, c.minus))
    first = x[0]
    for each in sums:
        first = c.plus(first, each)
    y: list[Pair] = [first] * r
    for k in pairs:
        even, odd = x[0], ("", "")
        for j, total, difference in zip(pairs, sums, differences, strict=True):
            cosine, sine = c.root(-j * k, r)
            even = c.fma(total[0], cosine, even[0]), c.fma(total[1], cosine, even[1])
            if j == 1:
                odd = c.mul(difference[0], sine), c.mul(difference[1], sine)
            else:
                odd = c.fma(difference[0], sine, odd[0]), c.fma(difference[1], sine, odd[1])
        y[k], y[r - k] = c.less_turned(even, odd), c.more_turned(even, odd)
    return y


def pass_text(radix: int, kind: str, vector_bits: int | None = None) -> str:
    """Return the module of one radix and dtype."""
    return shaped_pass_text(radix, lanes_of(kind, vector_bits), f"{NAME}{radix}_{kind}")


def shaped_pass_text(radix: int, s: Shape, name: str) -> str:
    """Return the module of one radix for vectors of any shape."""
    whole = 2 * s.lanes
    plain = Code(s, "a")
    x = [plain.load_pair("%x.q", f"%from.{j}") for j in range(radix)]
    for k, y in enumerate(transform(plain, x)):
        plain.store_pair(y, "%y.q", f"%to.{k}")
    weights, turned = Code(s, "w"), Code(s, "b")
    w = [(weights.spread("%w.p", 2 * k), weights.spread("%w.p", 2 * k + 1)) for k in range(radix - 1)]
    x = [turned.load_pair("%x.p.q", f"%from.{j}") for j in range(radix)]
    for k, y in enumerate(transform(turned, x)):
        turned.store_pair(turned.times(y, w[k - 1]) if k else y, "%y.p.q", f"%to.{k}")
    newline = "\n"
    of_first = f"""\
  %q.skip = mul i64 %q, {whole}
  %x.q = getelementptr {s.element}, ptr %x, i64 %q.skip
  %y.q = getelementptr {s.element}, ptr %y, i64 %q.skip
{newline.join(plain.lines)}"""
    of_others = f"""\
  %z.skip = mul i64 %z, {whole}
  %x.p.q = getelementptr {s.element}, ptr %x.p, i64 %z.skip
  %y.p.q = getelementptr {s.element}, ptr %y.p, i64 %z.skip
{newline.join(turned.lines)}"""
    others = f"""\
  %x.skip = mul i64 %p, %line
  %x.p = getelementptr {s.element}, ptr %x, i64 %x.skip
  %y.skip = mul i64 %x.skip, {radix}
  %y.p = getelementptr {s.element}, ptr %y, i64 %y.skip
  %w.before = sub i64 %p, 1
  %w.skip = mul i64 %w.before, {2 * (radix - 1)}
  %w.p = getelementptr {s.element}, ptr %w, i64 %w.skip
{newline.join(weights.lines)}
{loop("z", "0", "%l", 1, of_others)}"""
    places = "\n".join(f"  %from.{j} = mul i64 %all, {j}\n  %to.{j} = mul i64 %line, {j}" for j in range(radix))
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
define void @{name}(ptr noalias %x, ptr noalias %y, ptr noalias %w, i64 %m, i64 %l) #0 {{
entry:
  %line = mul i64 %l, {whole}
  %all = mul i64 %line, %m
{places}
{loop("q", "0", "%l", 1, of_first)}
{loop("p", "1", "%m", 1, others)}
  ret void
}}
{attributes(s)}
"""
