"""Estimated time of a function of loop IR, which decides whether threads share it, and in which parts.

The unit is about a nanosecond of one core with 512-bit vectors. A statement of a vector loop costs its widest value in
vectors. Contiguous memory costs its bytes, other memory one access a lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tracer.ir import loop
from tracer.ir.dtypes import I64, DType
from tracer.ir.loop.walk import blocks_of
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.target import Machine

_COMPUTE: Final = 0.25
_DEAR: Final = {ScalarOp.DIV: 3.0, ScalarOp.SQRT: 4.0, ScalarOp.IDIV: 10.0, ScalarOp.IREM: 10.0}
_SMOOTH: Final = 1 / 16  # for a byte
_ACCESS: Final = 1.0  # for an element on its own
_UNKNOWN_TRIPS: Final = 8
_WRITTEN_OUT: Final = 45  # statements of a mathematical function


def work(statements: Sequence[loop.Statement], machine: Machine) -> float:
    """Return the estimate for statements outside any vector loop."""
    return _Estimate(dict(limits_of(statements)), machine).block(statements, 1, None)


def statements_written_out(statements: Iterable[loop.Statement]) -> int:
    """Return the number of statements once functions are written out, which registers and compile time depend on."""
    return sum(_WRITTEN_OUT if isinstance(s, loop.Compute) and s.op in MATH_FUNCTIONS else 1 for s in statements)


def trips(s: loop.For) -> int:
    """Return the trip count of a loop, a guess where it is unknown."""
    if isinstance(s.start, loop.Constant) and isinstance(s.stop, loop.Constant):
        return len(range(int(s.start.value), int(s.stop.value), s.step))
    return _UNKNOWN_TRIPS


def limits_of(statements: Iterable[loop.Statement]) -> Iterator[tuple[loop.Register, int]]:
    """Yield registers with a constant upper bound, such as the length of a tile that may be the last."""
    for s in statements:
        if isinstance(s, loop.Compute) and s.op is ScalarOp.MIN and s.result.dtype == I64:
            yield from ((s.result, int(x.value)) for x in s.operands if isinstance(x, loop.Constant))
        for block in blocks_of(s):
            yield from limits_of(block.statements)


class _Estimate:
    """Estimator of statements, given the number of their lanes and the index of the vector loop."""

    def __init__(self, limits: Mapping[loop.Register, int], machine: Machine) -> None:
        self._limits = limits
        self._vector_bytes = machine.vector_bytes

    def block(self, statements: Iterable[loop.Statement], lanes: int, index: loop.Register | None) -> float:
        return sum(self._statement(s, lanes, index) for s in statements)

    def _statement(self, s: loop.Statement, lanes: int, index: loop.Register | None) -> float:
        match s:
            case loop.Compute():
                return _COMPUTE * _DEAR.get(s.op, 1.0) * self._vectors(s.result.dtype, lanes)
            case loop.Load():
                return _access(s.buffer.dtype, s.address, s.mask, lanes, index)
            case loop.Copy():
                return 2 * s.count * s.target.buffer.dtype.itemsize * _SMOOTH
            case loop.Library("stream", (_, _, count, itemsize)):
                return 2 * self._size(count) * self._size(itemsize) * _SMOOTH  # type: ignore[arg-type]
            case loop.Prefix():
                return _COMPUTE * (lanes.bit_length() + 2) * self._vectors(s.value.dtype, lanes)
            case loop.Store() | loop.Update():
                return _access(s.buffer.dtype, s.address, s.mask, lanes, index)
            case loop.Transpose():
                return 2 * s.target.buffer.dtype.itemsize * _SMOOTH * self._size(s.rows) * self._size(s.columns)
            case loop.For():
                return self._loop(s, lanes, index)
            case loop.While():
                inner = sum(self.block(b.statements, lanes, index) for b in (s.condition, s.body))
                return _UNKNOWN_TRIPS * inner
            case loop.If():
                return max(self.block(b.statements, lanes, index) for b in (s.then, s.otherwise))
            case _:
                return 1.0

    def _loop(self, s: loop.For, lanes: int, index: loop.Register | None) -> float:
        at_most = s.stop if isinstance(s.stop, loop.Register) else None
        count = trips(s) if at_most is None else self._limits.get(at_most, _UNKNOWN_TRIPS)
        if s.kind is loop.LoopKind.VECTOR:
            return -(-count // s.lanes) * self.block(s.body.statements, s.lanes, s.index)
        return count * self.block(s.body.statements, lanes, index)

    def _size(self, count: loop.Operand) -> int:
        return int(count.value) if isinstance(count, loop.Constant) else self._limits.get(count, _UNKNOWN_TRIPS)

    def _vectors(self, dtype: DType, lanes: int) -> float:
        return max(lanes * dtype.itemsize / self._vector_bytes, 1.0)


def _access(
    dtype: DType, address: loop.Address, mask: loop.Operand | None, lanes: int, index: loop.Register | None
) -> float:
    if lanes == 1:
        return _ACCESS / 2
    step = next((c for r, c in address.terms if r is index), 0)
    smooth = step in (0, 1) and mask is None
    return dtype.itemsize * lanes * _SMOOTH if smooth else lanes * _ACCESS
