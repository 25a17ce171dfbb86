"""Max and min of floats by keys: unsigned integers in the order of the floats, NaN beyond all of them.

A `maximum` that respects NaN and signs of zeros is a chain of six instructions. A key takes four independent ones, and
the max of two keys is one. For a sign-magnitude word b of n bits, the key is b minus the key of the smallest value. The
lower bits of b are first inverted where it is negative. For max this is -infinity, and NaNs with a sign wrap to the far
end. For min it is the first NaN without a sign.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tracer.ir.dtypes import F32, F64, I32, I64, U32, U64, DType
from tracer.ir.loop import Block, Carry, Compute, Constant, For, LoopKind, Module, Operand, Register
from tracer.ir.loop.build import Builder, constant
from tracer.ir.loop.walk import operands_of, statements_of, with_bodies
from tracer.ir.scalar import ScalarOp

_WORDS: Final[dict[DType, tuple[DType, DType]]] = {F32: (I32, U32), F64: (I64, U64)}
_INFINITY: Final = {F32: 0x7F800000, F64: 0x7FF0000000000000}


def key_minmax(module: Module) -> Module:
    """Return the module with vector loops for the max or min of floats comparing integer keys."""
    return with_bodies(module, _block)


def is_keyed(op: ScalarOp, dtype: DType) -> bool:
    """Whether an operation looks for extremes of floats that have keys."""
    return op in (ScalarOp.MAX, ScalarOp.MIN) and dtype in _WORDS


def _block(block: Block) -> Block:
    builder = Builder()
    for s in block.statements:
        if isinstance(s, For) and s.kind is LoopKind.VECTOR:
            _loop(builder, s)
        elif isinstance(s, For):
            builder.add(replace(s, body=_block(s.body)))
        else:
            builder.add(s)
    return builder.finish(*block.yields)


def _loop(builder: Builder, loop: For) -> None:
    """Write the loop on keys, and the conversion of its results to floats."""
    keyed = {n: step for n in range(len(loop.carries)) if (step := _step(loop, n)) is not None}
    if not keyed:
        builder.add(loop)
        return
    carries, results, yields = list(loop.carries), list(loop.results), list(loop.body.yields)
    body = Builder()
    steps = {step.result: n for n, step in keyed.items()}
    for n in keyed:
        carry, unsigned = carries[n], _WORDS[carries[n].register.dtype][1]
        assert carry.combine is not None
        least = carry.combine is ScalarOp.MAX
        start = key_of(builder, carry.combine, carry.initial)
        identity = constant(0 if least else np.iinfo(unsigned).max, unsigned)
        carries[n] = Carry(Register(unsigned, carry.register.name), start, carry.combine, identity)
        results[n] = Register(unsigned, "key")
    for s in loop.body.statements:
        place = steps.get(s.result) if isinstance(s, Compute) else None
        if place is None:
            body.add(s)
            continue
        old = loop.carries[place]
        assert isinstance(s, Compute)
        assert old.combine is not None
        (value,) = [x for x in s.operands if x is not old.register]
        yields[place] = body.apply(old.combine, carries[place].register, key_of(body, old.combine, value))
    finished = body.finish(*yields)
    builder.add(replace(loop, body=finished, carries=tuple(carries), results=tuple(results)))
    for n in keyed:
        op = carries[n].combine
        assert op is not None
        builder.add(from_key(builder, op, results[n], loop.results[n]))


def _step(loop: For, n: int) -> Compute | None:
    """Return the statement that joins one more float to a carry, if no other statement reads the carry."""
    carry, found = loop.carries[n], loop.body.yields[n]
    if carry.combine not in (ScalarOp.MAX, ScalarOp.MIN) or carry.register.dtype not in _WORDS:
        return None
    readers = [s for s in statements_of(loop.body) if carry.register in operands_of(s)]
    (step,) = readers if len(readers) == 1 else [None]
    if not isinstance(step, Compute) or step not in loop.body.statements or step.result is not found:
        return None
    once = sum(x is carry.register for x in step.operands) == 1
    shown = sum(x is found for x in loop.body.yields) + sum(found in operands_of(s) for s in statements_of(loop.body))
    return step if step.op is carry.combine and once and shown == 1 else None


def key_of(b: Builder, op: ScalarOp, value: Operand) -> Operand:
    """Return the key of an f32 or f64, for max or min."""
    signed, unsigned = _WORDS[value.dtype]
    if isinstance(value, Constant):
        word = int(np.asarray(value.value).view(np.dtype(f"u{value.dtype.itemsize}")))
        return constant(_key_of_word(op, word, value.dtype), unsigned)
    turned = _turn(b, b.apply(ScalarOp.BITCAST, value, dtype=signed), signed)
    return b.apply(ScalarOp.SUB, b.apply(ScalarOp.BITCAST, turned, dtype=unsigned), _zero_word(op, value.dtype))


def from_key(b: Builder, op: ScalarOp, key: Register, result: Register) -> Compute:
    """Write result = the float of a key."""
    signed = _WORDS[result.dtype][0]
    turned = b.apply(ScalarOp.ADD, key, _zero_word(op, result.dtype))
    word = _turn(b, b.apply(ScalarOp.BITCAST, turned, dtype=signed), signed)
    return Compute(result, ScalarOp.BITCAST, (word,))


def _turn(b: Builder, word: Operand, signed: DType) -> Operand:
    """Return the word, its lower bits inverted where it is negative."""
    sign = b.apply(ScalarOp.SHR_ARITHMETIC, word, constant(signed.itemsize * 8 - 1, signed))
    return b.apply(ScalarOp.XOR, word, b.apply(ScalarOp.AND, sign, constant(np.iinfo(signed).max, signed)))


def _zero_word(op: ScalarOp, dtype: DType) -> Constant:
    """Return the inverted word with key 0."""
    bits, infinity = dtype.itemsize * 8, _INFINITY[dtype]
    negative = (infinity | 1 << (bits - 1)) ^ ((1 << (bits - 1)) - 1)
    return constant(negative if op is ScalarOp.MAX else infinity + 1, _WORDS[dtype][1])


def _key_of_word(op: ScalarOp, word: int, dtype: DType) -> int:
    bits = dtype.itemsize * 8
    turned = word ^ ((1 << (bits - 1)) - 1) if word >> (bits - 1) else word
    return (turned - int(_zero_word(op, dtype).value)) % (1 << bits)
