"""Sizes of kernels on a machine: of vectors and of blocks of sums in registers; and the common parts of their texts."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.toolchain.target import features, is_x86, preferred_bits
from tracer.ir.target import CPU

KINDS: Final = {"f32": ("float", 4), "f64": ("double", 8)}
DEPTH: Final = 512  # of a panel of b, 96 KB; sums are rounded by it, on every machine
_GROUP: Final = 1024  # bytes of a row of b that are copied together, panel by panel; almost a panel more at the end
_COPIED: Final = CPU.machine.second_cache // 4  # bytes of a that are multiplied by these panels
_SHAPES: Final = {512: (8, 3), 256: (6, 2), 128: (4, 2)}  # rows and vectors of sums by the bits of a vector
_MANY_REGISTERS: Final = (8, 3)  # where there are 32 registers of 128 bits
PARAMETERS: Final = (
    "ptr %a, ptr %b, ptr %out, i64 %m, i64 %n, i64 %k, i64 %a_row, i64 %a_column, i64 %b_row, i64 %b_column, "
    "i64 %out_row, ptr %turn"
)
"""Parameters of a product: see `microkernel`."""


class Shape:
    """Sizes of a kernel on a machine: of vectors, and of the block of sums in registers."""

    def __init__(self, kind: str, vector_bits: int | None, bits: int | None = None) -> None:
        self.element, self.size = KINDS[kind]
        self.bits = bits = bits or preferred_bits(vector_bits)
        self.rows, self.vectors = _SHAPES[bits] if is_x86() else _MANY_REGISTERS
        self.lanes = bits // 8 // self.size
        self.vector = f"<{self.lanes} x {self.element}>"
        self.suffix = f"v{self.lanes}f{8 * self.size}"
        self.width = self.lanes * self.vectors
        self.fused = dict(features(vector_bits)).get("fma", False) or not is_x86()

    @property
    def group(self) -> int:
        """Columns that are copied together."""
        return _GROUP // self.size // self.width * self.width

    @property
    def high(self) -> int:
        """Rows of a that are multiplied by them."""
        return _COPIED // (DEPTH * self.size) // self.rows * self.rows

    def narrow(self, vectors: int) -> None:
        """Set the number of vectors of sums in a row."""
        self.vectors, self.width = vectors, self.lanes * vectors


def intrinsics(s: Shape) -> str:
    """Return the declarations of kernels of a shape."""
    return f"""\
declare {s.vector} @llvm.fma.{s.suffix}({s.vector}, {s.vector}, {s.vector})
declare {s.vector} @llvm.masked.load.{s.suffix}.p0(ptr, i32, <{s.lanes} x i1>, {s.vector})
declare void @llvm.masked.store.{s.suffix}.p0({s.vector}, ptr, i32, <{s.lanes} x i1>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.smin.i64(i64, i64)"""


def attributes(s: Shape) -> str:
    """Return the kernels' attribute group."""
    return f'''attributes #0 = {{ nounwind "prefer-vector-width"="{s.bits}" }}'''


def mask(s: Shape, count: str) -> str:
    """Write `%mask`: the first `count` lanes."""
    lanes = f"<{s.lanes} x i64>"
    numbers = ", ".join(f"i64 {lane}" for lane in range(s.lanes))
    return f"""\
  %count.one = insertelement {lanes} poison, i64 {count}, i64 0
  %count.all = shufflevector {lanes} %count.one, {lanes} poison, <{s.lanes} x i32> zeroinitializer
  %mask = icmp ult {lanes} <{numbers}>, %count.all"""


def fused(s: Shape, name: str, x: str, y: str, total: str) -> list[str]:
    """Write x * y + total, rounded once where the machine can."""
    if s.fused:
        given = f"{s.vector} {x}, {s.vector} {y}, {s.vector} {total}"
        return [f"  {name} = call {s.vector} @llvm.fma.{s.suffix}({given})"]
    return [f"  {name}.product = fmul {s.vector} {x}, {y}", f"  {name} = fadd {s.vector} {total}, {name}.product"]
