"""Index arithmetic: affine forms over loop registers, which are `loop.Address`es before they are addresses.

An index is a tuple of affine forms, one an axis, or `Flat`: the row-major position, without regard to axes.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tracer.ir import shape as shapes
from tracer.ir.loop import Address, Operand, Register, index_constant
from tracer.ir.loop.build import Builder, address
from tracer.ir.scalar import ScalarOp

Affine = Address


@dataclass(frozen=True, slots=True)
class Flat:
    """An element's row-major position in an array of the given shape."""

    position: Affine
    shape: tuple[int, ...]


Index = tuple[Affine, ...] | Flat
Extents = MutableMapping[Register, int]  # registers that stay within range(extent): registers of loops, and quotients

ZERO = Address()
_MAX_MULTIPLIED: Final = 1 << 31  # dividends whose product with a rounded inverse fits into 63 bits


def of_register(register: Register) -> Affine:
    return Address(0, ((register, 1),))


def of_operand(operand: Operand) -> Affine:
    return address(operand)


def scaled(affine: Affine, factor: int) -> Affine:
    if factor == 1:
        return affine
    if factor == 0:
        return ZERO
    return Address(affine.constant * factor, tuple((r, c * factor) for r, c in affine.terms))


def plus(*affines: Affine) -> Affine:
    present = [a for a in affines if a.constant or a.terms]
    if len(present) == 1:
        return present[0]
    return address(*present) if present else ZERO


def shifted(affine: Affine, constant: int) -> Affine:
    return Address(affine.constant + constant, affine.terms)


def flatten(index: Sequence[Affine], shape: Sequence[int]) -> Affine:
    """Return the row-major position of an index."""
    parts = [scaled(i, s) for i, s, n in zip(index, shapes.strides(shape), shape, strict=True) if n != 1]
    return plus(*parts)


def position(index: Index, shape: Sequence[int]) -> Affine:
    return index.position if isinstance(index, Flat) else flatten(index, shape)


def operand_of(builder: Builder, affine: Affine) -> Operand:
    """Return the affine form's value in a register (or a constant)."""
    total: Operand | None = None
    for register, coefficient in affine.terms:
        part = register if coefficient == 1 else builder.compute(ScalarOp.MUL, register, coefficient)
        total = part if total is None else builder.compute(ScalarOp.ADD, total, part)
    if total is None:
        return index_constant(affine.constant)
    return builder.compute(ScalarOp.ADD, total, affine.constant) if affine.constant else total


def unflatten(builder: Builder, index: Index, shape: tuple[int, ...], extents: Extents) -> tuple[Affine, ...]:
    """Return one affine form for each axis.

    Divisions are emitted only between axes that the position does not separate.

    extents: learns how far the registers reach that are emitted.
    """
    if not isinstance(index, Flat):
        return index
    result: list[Affine] = []
    for part, sizes in _groups(index.position, shape, extents):
        result += _divided(builder, part, sizes, extents)
    return tuple(result)


def _groups(position: Affine, shape: Sequence[int], extents: Extents) -> Iterator[tuple[Affine, Sequence[int]]]:
    """Yield runs of axes with the position within each. Every term belongs to a single run."""
    begin = 0
    for axis, stride in enumerate(shapes.strides(shape)):
        split = _split(position, stride, extents) if axis + 1 < len(shape) and stride else None
        if split is not None:
            outer, position = split
            yield outer, shape[begin : axis + 1]
            begin = axis + 1
    if shape:
        yield position, shape[begin:]


def _split(position: Affine, stride: int, extents: Extents) -> tuple[Affine, Affine] | None:
    """Return the position's quotient and remainder by `stride`, where no term takes part in both."""
    inner = [(r, c) for r, c in position.terms if c % stride]
    low = high = 0
    for register, coefficient in inner:
        if register not in extents:
            return None
        reach = coefficient * (extents[register] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    least = position.constant % stride
    constant = least + -(-max(0, -low - least) // stride) * stride
    if constant + high >= stride:
        return None
    outer = tuple((r, c // stride) for r, c in position.terms if c % stride == 0)
    return Address((position.constant - constant) // stride, outer), Address(constant, tuple(inner))


def _divided(builder: Builder, position: Affine, sizes: Sequence[int], extents: Extents) -> Iterator[Affine]:
    """Yield the index by axes of a position within some axes."""
    long = [axis for axis, n in enumerate(sizes) if n != 1]
    rest = operand_of(builder, position) if len(long) > 1 else None
    for axis, n in enumerate(sizes):
        if n == 1:
            yield ZERO
        elif rest is None:
            yield position
        elif axis == long[-1]:
            yield of_operand(rest)
        else:
            inside = prod(sizes[axis + 1 :])
            quotient, rest = _quotient_and_rest(builder, rest, inside, n * inside)
            for register, reach in ((quotient, n), (rest, inside)):
                if isinstance(register, Register):
                    extents[register] = reach
            yield of_operand(quotient)


def _quotient_and_rest(builder: Builder, x: Operand, divisor: int, extent: int) -> tuple[Operand, Operand]:
    """Return quotient and remainder by a constant, for 0 <= x < extent, in instructions that i64 vectors have.

    By a multiplication: Granlund & Montgomery 1994, PLDI.
    """
    shift = divisor.bit_length() - 1
    if divisor == 1 << shift:
        return builder.compute(ScalarOp.SHR_LOGICAL, x, shift), builder.compute(ScalarOp.AND, x, divisor - 1)
    if extent > _MAX_MULTIPLIED:
        return builder.compute(ScalarOp.IDIV, x, divisor), builder.compute(ScalarOp.IREM, x, divisor)
    shift = (extent * divisor).bit_length()
    product = builder.compute(ScalarOp.MUL, x, -(-(1 << shift) // divisor))
    quotient = builder.compute(ScalarOp.SHR_LOGICAL, product, shift)
    return quotient, builder.compute(ScalarOp.SUB, x, builder.compute(ScalarOp.MUL, quotient, divisor))
