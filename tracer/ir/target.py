"""Targets: the machines that programs are compiled for, as data that passes and the schedule read.

A `Target` decides how a program is written. It says which products keep their dtypes, and which equations have their
own loop nest. It says how long the blocks of sums are. Its `Machine` decides only how loops are cut and shared, so that
a result's bits never depend on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from tracer.errors import DeviceError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType


@dataclass(frozen=True, slots=True)
class Dot:
    """A matrix product that a target computes natively, operands in their own dtype.

    sums: dtype of the accumulator and of the result. least_columns, least_work: columns and multiplications of the
    smallest product worth it. pairs: whether elements are multiplied in pairs along k. Then the left operand is not
    transposed, and the right one only where k is even. skinny: whether products of few rows or columns are computed so
    too, rather than by loops.
    """

    operands: DType
    sums: DType
    least_columns: int = 0
    least_work: int = 0
    pairs: bool = False
    skinny: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """Sizes of a processor, which decide how loops are cut and shared, and never change a result.

    vector_bytes, line_bytes: of a vector register and of a cache line. first_cache, second_cache: bytes of a core's
    caches. streamed_bytes: size of a result that bypasses the caches, half of a large last cache. split_bytes: size of
    an operand whose blocks are reduced in interleaved streams. streams: how many streams a loop reads or stores, the
    first count that divides its blocks or leaves each a page. reduction_bytes: min of a vector accumulator, which is
    narrowed while lanes have no elements. lane_rows: fewest short rows that are reduced a row per lane. shared_work:
    estimated nanoseconds of a nest worth waking threads for, which takes several microseconds. grain_work: least
    nanoseconds of one part, since claiming one takes 100 ns and its first memory is not prefetched. tiles: whether bf16
    is multiplied in AMX tiles, which need larger panels. root_estimates: whether an instruction estimates 1 / sqrt(x)
    of f64 (AVX-512).
    """

    vector_bytes: int = 64
    line_bytes: int = 64
    first_cache: int = 1 << 15
    second_cache: int = 1 << 20
    streamed_bytes: int = 1 << 25
    split_bytes: int = 1 << 25
    streams: tuple[int, ...] = (4, 2)
    reduction_bytes: int = 64
    lane_rows: int = 64
    shared_work: float = 30_000.0
    grain_work: float = 8_000.0
    tiles: bool = False
    root_estimates: bool = False


@dataclass(frozen=True, slots=True)
class VarianceBlocks:
    """Sizes of the blocks in which sums of squares about a mean are computed: see `passes.blocked_variance`.

    least: bytes of an array that is cut, since less stays in a second-level cache. block: bytes of a block, a third of
    a first-level cache. most: bytes of a block that a single index of the axis exceeds. count: fewest blocks that make
    one loop. row: bytes of a row that is a block as it is.
    """

    least: int = 1 << 20
    block: int = 1 << 14
    most: int = 1 << 18
    count: int = 64
    row: int = 1 << 17


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sizes of the blocks that programs and reductions are cut into.

    Sums are rounded block by block, so blocks belong to the meaning of results: all machines of a target share them.

    A target that leaves some whole has 0 or None there.

    extreme: elements of a block of a long vector, in which a maximum is found before its index. reduction: elements of
    a block of a long reduction. cumulative: bytes of a tile of a cumulative operation. variance: see `VarianceBlocks`.
    chain_least, chain: bytes between chained matrix products that are cut, and in one block of them.
    """

    extreme: int = 1 << 13
    reduction: int = 0
    cumulative: int = 0
    variance: VarianceBlocks | None = None
    chain_least: int = 0
    chain: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Heuristic limits of the planner.

    nest_operations: operations of one nest, functions written out. More would spill registers and cost compile time.
    join_elements: elements of the smallest join that is read in place. equal_nests: nests that differ in constants
    alone before the last is a function of these.
    """

    nest_operations: int = 800
    join_elements: int = 256
    equal_nests: int = 4


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of machine. Programs and schedules made for different targets are kept apart by its value.

    dots: the matrix products that it computes natively. own_nests: whether convolutions and other composites have
    schedules of their own. parametric_nests: whether nests that differ in constants alone become one function of these.
    sort_passes: whether sorts are passes of independent iterations, for thousands of threads.
    """

    name: str
    dots: tuple[Dot, ...]
    blocks: Blocks = field(default_factory=Blocks)
    own_nests: bool = False
    parametric_nests: bool = False
    sort_passes: bool = False
    machine: Machine = field(default_factory=Machine)
    limits: Limits = field(default_factory=Limits)

    def dot(self, operands: DType, sums: DType) -> Dot | None:
        """Return the native product of `operands` summed in `sums`, or None."""
        return next((dot for dot in self.dots if dot.operands == operands and dot.sums == sums), None)


_BLAS: Final = tuple(Dot(dtype, dtype) for dtype in (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128))
BF16_PAIRS: Final = Dot(dtypes.BF16, dtypes.F32, least_columns=8, least_work=1 << 14, pairs=True)
"""The product of CPUs with instructions for bf16. Smaller ones are loops, or f32's."""

CPU: Final = Target(
    "cpu",
    _BLAS,
    Blocks(reduction=1 << 15, cumulative=1 << 16, variance=VarianceBlocks(), chain_least=1 << 24, chain=1 << 20),
    own_nests=True,
    parametric_nests=True,
)
"""Any CPU."""
PLAIN: Final = Target("plain", _BLAS, own_nests=True)
"""No machine: loops before any mapping, as the reference interpreter runs them."""


def cpu(*, bf16: bool, tiles: bool = False, root_estimates: bool = False) -> Target:
    """Return the CPU target. bf16: whether it multiplies pairs of bf16. tiles, root_estimates: as in `Machine`."""
    dots = (*_BLAS, BF16_PAIRS) if bf16 else _BLAS
    return replace(CPU, dots=dots, machine=replace(CPU.machine, tiles=tiles, root_estimates=root_estimates))


_MULTIPROCESSOR: Final = Machine(second_cache=1 << 23, shared_work=float("inf"))
"""A GPU's: a block takes rows of up to 2 MB, however few they are, since each launch costs as much as many of them."""


def cuda(arch: str = "sm_90") -> Target:
    """Return the target of an NVIDIA architecture, such as "sm_80". Raises DeviceError for other names."""
    found = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if found is None:
        raise DeviceError(message(f"cuda: no architecture {arch!r}", help='name one such as "sm_80" or "sm_90"'))
    capability = int(found[1])
    short = ((dtypes.F16, dtypes.F32, 70), (dtypes.I8, dtypes.I32, 72), (dtypes.BF16, dtypes.F32, 80))
    dots = (Dot(operands, sums, skinny=True) for operands, sums, least in short if capability >= least)
    return Target(f"cuda:{arch}", (*_BLAS, *dots), sort_passes=True, machine=_MULTIPROCESSOR)


CUDA: Final = cuda("sm_90")
