"""How long a function of loop IR runs, estimated: what decides whether threads share it, and in what parts.

The unit is about a nanosecond of one core with 512-bit vectors. A statement of a vector loop costs as much as its
widest value has 64-byte vectors; memory that steps smoothly costs its bytes, other memory an access a lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tracer.ir.dtypes import DType
from tracer.ir.loop import (
    Address,
    Block,
    Compute,
    Constant,
    For,
    If,
    Load,
    LoopKind,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    While,
)  # fmt: skip
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp

_VECTOR_BYTES: Final = 64
_COMPUTE: Final = 0.25
_DEAR: Final = {ScalarOp.DIV: 3.0, ScalarOp.SQRT: 4.0, ScalarOp.IDIV: 10.0, ScalarOp.IREM: 10.0}
_SMOOTH: Final = 1 / 16  # for a byte
_ACCESS: Final = 1.0  # for an element on its own
_UNKNOWN_TRIPS: Final = 8
_WRITTEN_OUT: Final = 45  # statements of a mathematical function


def work(statements: Sequence[Statement]) -> float:
    """The estimate for statements outside any vector loop."""
    return _work(statements, 1, None)


def statements_written_out(statements: Iterable[Statement]) -> int:
    """How many statements there are once functions are written out: what registers and compile time depend on."""
    return sum(_WRITTEN_OUT if isinstance(s, Compute) and s.op in MATH_FUNCTIONS else 1 for s in statements)


def trips(loop: For) -> int:
    """How often a loop runs; a guess where nobody knows."""
    if isinstance(loop.start, Constant) and isinstance(loop.stop, Constant):
        return len(range(int(loop.start.value), int(loop.stop.value), loop.step))
    return _UNKNOWN_TRIPS


def _work(statements: Sequence[Statement], lanes: int, index: Register | None) -> float:
    return sum(_statement(s, lanes, index) for s in statements)


def _statement(s: Statement, lanes: int, index: Register | None) -> float:
    match s:
        case Compute():
            return _COMPUTE * _DEAR.get(s.op, 1.0) * _vectors(s.result.dtype, lanes)
        case Load():
            return _access(s.buffer.dtype, s.address, s.mask, lanes, index)
        case Store() | Update():
            return _access(s.buffer.dtype, s.address, s.mask, lanes, index)
        case For():
            return _loop(s, lanes, index)
        case While():
            return _UNKNOWN_TRIPS * (_block(s.condition, lanes, index) + _block(s.body, lanes, index))
        case If():
            return max(_block(s.then, lanes, index), _block(s.otherwise, lanes, index))
        case _:
            return 1.0


def _block(block: Block, lanes: int, index: Register | None) -> float:
    return _work(block.statements, lanes, index)


def _loop(s: For, lanes: int, index: Register | None) -> float:
    if s.kind is LoopKind.VECTOR:
        return -(-trips(s) // s.lanes) * _work(s.body.statements, s.lanes, s.index)
    return trips(s) * _work(s.body.statements, lanes, index)


def _vectors(dtype: DType, lanes: int) -> float:
    return max(lanes * dtype.itemsize / _VECTOR_BYTES, 1.0)


def _access(dtype: DType, address: Address, mask: Operand | None, lanes: int, index: Register | None) -> float:
    if lanes == 1:
        return _ACCESS / 2
    step = next((c for r, c in address.terms if r is index), 0)
    smooth = step in (0, 1) and mask is None
    return dtype.itemsize * lanes * _SMOOTH if smooth else lanes * _ACCESS
