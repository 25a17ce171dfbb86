"""Index arithmetic: affine forms over loop registers, which are `loop.Address`es before they are addresses.

An index is a tuple of affine forms, one an axis, or `Flat`: the row-major position, for which axes do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracer.ir import shape as shapes
from tracer.ir.loop import Address, Operand, Register, index_constant
from tracer.ir.loop_build import Builder, address
from tracer.ir.scalar import ScalarOp

Affine = Address


@dataclass(frozen=True, slots=True)
class Flat:
    """An element's row-major position in an array of the given shape."""

    position: Affine
    shape: tuple[int, ...]


Index = tuple[Affine, ...] | Flat
Extents = Mapping[Register, int]  # loop registers run over range(extent)

ZERO = Address()


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
    """The row-major position of an index."""
    parts = [scaled(i, s) for i, s, n in zip(index, shapes.strides(shape), shape, strict=True) if n != 1]
    return plus(*parts)


def position(index: Index, shape: Sequence[int]) -> Affine:
    return index.position if isinstance(index, Flat) else flatten(index, shape)


def operand_of(builder: Builder, affine: Affine) -> Operand:
    """The affine form's value in a register (or a constant)."""
    total: Operand | None = None
    for register, coefficient in affine.terms:
        part = register if coefficient == 1 else builder.compute(ScalarOp.MUL, register, coefficient)
        total = part if total is None else builder.compute(ScalarOp.ADD, total, part)
    if total is None:
        return index_constant(affine.constant)
    return builder.compute(ScalarOp.ADD, total, affine.constant) if affine.constant else total


def unflatten(builder: Builder, index: Index, shape: tuple[int, ...], extents: Extents) -> tuple[Affine, ...]:
    """One affine form an axis. Divisions are emitted only where the position does not split exactly."""
    if not isinstance(index, Flat):
        return index
    exact = split_exactly(index.position, shape, extents)
    if exact is not None:
        return exact
    rest = operand_of(builder, index.position)
    result = []
    strides = shapes.strides(shape)
    for axis, n in enumerate(shape):
        if n == 1:
            result.append(ZERO)
            continue
        quotient = rest if strides[axis] == 1 else builder.compute(ScalarOp.IDIV, rest, strides[axis])
        result.append(of_operand(quotient))
        if axis + 1 < len(shape):
            rest = builder.compute(ScalarOp.IREM, rest, strides[axis]) if strides[axis] != 1 else index_constant(0)
    return tuple(result)


def split_exactly(position: Affine, shape: Sequence[int], extents: Extents) -> tuple[Affine, ...] | None:
    """Distribute the terms over the axes, largest strides first; None unless every axis stays within its size."""
    strides = shapes.strides(shape)
    parts: list[list[tuple[Register, int]]] = [[] for _ in shape]
    reach = [0] * len(shape)
    for register, coefficient in position.terms:
        extent = extents.get(register)
        if extent is None or coefficient < 0:
            return None
        for axis, stride in enumerate(strides):
            if shape[axis] != 1 and coefficient % stride == 0:
                parts[axis].append((register, coefficient // stride))
                reach[axis] += (extent - 1) * (coefficient // stride)
                break
        else:
            return None
    constants, rest = [0] * len(shape), position.constant
    if rest < 0:
        return None
    for axis, stride in enumerate(strides):
        constants[axis], rest = divmod(rest, stride) if shape[axis] != 1 else (0, rest)
    if rest or any(c + r >= n for c, r, n in zip(constants, reach, shape, strict=True)):
        return None
    return tuple(Address(c, tuple(p)) for c, p in zip(constants, parts, strict=True))
