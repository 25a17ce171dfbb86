"""Vector loops that only reduce memory: each carry joins the elements of one load, in order, and nothing else happens.

A maximum or minimum of floats is joined by integer keys (see `schedule.loops.minmax_keys`), so computing the keys
belongs to such a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.dtypes import F32, F64, I32, I64, U32, U64
from tracer.ir.loop import Carry, Compute, Constant, For, Load, Register
from tracer.ir.loop.build import constant
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

OPS: Final = (ScalarOp.ADD, ScalarOp.MUL, ScalarOp.MAX, ScalarOp.MIN, ScalarOp.AND, ScalarOp.OR)
DTYPES: Final = (F32, F64, I32, I64, U32, U64)
VECTORS: Final = (1, 2, 4)
"""How many vectors of 64 bytes the lanes of such a loop make up."""
STRETCHES: Final = (1, 2, 4)
"""How many stretches of memory are reduced side by side."""
_VECTOR_BYTES: Final = 64
_KEY: Final = (
    ScalarOp.BITCAST, ScalarOp.SHR_ARITHMETIC, ScalarOp.AND, ScalarOp.XOR, ScalarOp.BITCAST, ScalarOp.SUB,
)  # fmt: skip


def reduced_loads(s: For) -> list[Load] | None:
    """Return the load that each carry of a vector loop reduces, or None for a loop that does anything else."""
    only_joins = is_keyed(s) or len(s.body.statements) == 2 * len(s.carries)
    if not (s.carries and isinstance(s.stop, Constant) and only_joins):
        return None
    loads = [_reduced(s, carry, n) for n, carry in enumerate(s.carries)]
    found = [load for load in loads if load is not None]
    return found if len(found) == len(loads) else None


def _reduced(s: For, carry: Carry, number: int) -> Load | None:
    """Return the load whose elements a carry joins, or None."""
    made = {x.result: x for x in s.body.statements if isinstance(x, Load | Compute)}
    joined = made.get(y) if isinstance(y := s.body.yields[number], Register) else None
    if not isinstance(joined, Compute) or joined.op is not carry.combine or len(joined.operands) != 2:
        return None
    before, element = joined.operands
    keyed = is_keyed(s)
    load = s.body.statements[0] if keyed else made.get(element) if isinstance(element, Register) else None
    if before is not carry.register or not isinstance(load, Load) or load.mask is not None:
        return None
    dtype, steps = carry.register.dtype, [c for r, c in load.address.terms if r is s.index]
    is_known = joined.op in OPS and dtype in DTYPES and s.lanes * dtype.itemsize in [_VECTOR_BYTES * n for n in VECTORS]
    is_floating = dtype not in (F32, F64) or joined.op not in (ScalarOp.AND, ScalarOp.OR)
    fits = is_known and is_floating and (dtype == load.buffer.dtype or keyed) and steps == [1]
    return load if fits and carry.identity == constant(identity(joined.op, dtype), dtype) else None


def is_keyed(s: For) -> bool:
    """Return whether a loop only loads floats, computes their keys and joins these."""
    if len(s.carries) != 1 or not s.body.statements or not isinstance(s.body.statements[0], Load):
        return False
    load, *forming, joined = s.body.statements
    assert isinstance(load, Load)
    if load.buffer.dtype not in (F32, F64) or tuple(x.op for x in forming if isinstance(x, Compute)) != _KEY:
        return False
    known = {load.result}
    for x in forming:
        registers = {o for o in x.operands if isinstance(o, Register)} if isinstance(x, Compute) else set()
        if not isinstance(x, Compute) or not registers or not registers <= known:
            return False
        known.add(x.result)
    last = forming[-1]
    return isinstance(joined, Compute) and isinstance(last, Compute) and joined.operands[-1] is last.result


def distance(s: For, loads: Sequence[Load]) -> int | None:
    """Return how many elements the carries' stretches of memory are apart, if all are reduced alike; else None."""
    first, times = loads[0], len(loads)
    alike = len({(c.combine, c.initial) for c in s.carries}) == 1
    along = all(load.buffer is first.buffer and dict(load.address.terms) == dict(first.address.terms) for load in loads)
    starts = [load.address.constant - first.address.constant for load in loads]
    even = times > 1 and times in STRETCHES and starts == [n * starts[1] for n in range(times)]
    return starts[1] if alike and along and even else None
