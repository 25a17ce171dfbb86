"""Index arithmetic: which axes a position tells apart, and what it is divided by where it does not."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer import jit
from tracer import numpy as tnp
from tracer.ir.dtypes import I64
from tracer.ir.loop import Address, Constant, Register
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.terms.affine import Flat, unflatten

_OPERATIONS: dict[ScalarOp, Any] = {
    ScalarOp.ADD: lambda a, b: a + b,
    ScalarOp.SUB: lambda a, b: a - b,
    ScalarOp.MUL: lambda a, b: a * b,
    ScalarOp.IDIV: lambda a, b: a // b,
    ScalarOp.IREM: lambda a, b: a % b,
    ScalarOp.SHR_LOGICAL: lambda a, b: a >> b,
    ScalarOp.AND: lambda a, b: a & b,
}


def _evaluated(builder: Builder, values: dict[Register, int], axes: tuple[Address, ...]) -> list[int]:
    """The axes where registers have these values, by the statements in the builder; no product leaves i64."""

    def value(operand: Any) -> int:
        return int(operand.value) if isinstance(operand, Constant) else values[operand]

    for s in builder.statements:
        result = _OPERATIONS[s.op](*map(value, s.operands))  # type: ignore[union-attr]  # only Compute is emitted
        assert 0 <= result < 2**63
        values[s.result] = result  # type: ignore[union-attr]
    return [a.constant + sum(c * values[r] for r, c in a.terms) for a in axes]


@given(st.lists(st.integers(1, 50000), min_size=1, max_size=4), st.data())
def test_any_position_is_split_as_numpy_does(shape: list[int], data: st.DataObject) -> None:
    size = prod(shape)
    position = data.draw(st.integers(0, size - 1))
    builder, register = Builder(), Register(I64, "i")
    axes = unflatten(builder, Flat(Address(0, ((register, 1),)), tuple(shape)), tuple(shape), {register: size})
    assert _evaluated(builder, {register: position}, axes) == [int(n) for n in np.unravel_index(position, shape)]


@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.data(),
)
def test_axes_that_are_merged_and_turned_come_apart_again(
    axes: list[tuple[int, bool]], merged: list[bool], data: st.DataObject
) -> None:
    """A loop register for each axis of one shape, some running backwards; another shape joins some of the axes."""
    sizes = [n for n, _ in axes]
    strides = [prod(sizes[k + 1 :]) for k in range(len(sizes))]
    registers = [Register(I64, f"i{k}") for k in range(len(sizes))]
    constant = sum(s * (n - 1) for (n, turned), s in zip(axes, strides, strict=True) if turned)
    terms = tuple((r, -s if turned else s) for r, (_, turned), s in zip(registers, axes, strides, strict=True))
    shape: list[int] = []
    for n, join in zip(sizes, merged, strict=False):
        shape = [*shape[:-1], shape[-1] * n] if join and shape else [*shape, n]
    builder = Builder()
    flat = Flat(Address(constant, terms), tuple(shape))
    found = unflatten(builder, flat, tuple(shape), dict(zip(registers, sizes, strict=True)))
    assert not builder.statements
    values = {r: data.draw(st.integers(0, n - 1)) for r, n in zip(registers, sizes, strict=True)}
    place = constant + sum(c * values[r] for r, c in terms)
    assert _evaluated(builder, values, found) == [int(n) for n in np.unravel_index(place, shape)]


def _depth_to_space(x: Any) -> Any:
    n, c, h, w = x.shape
    blocks = x.reshape(n, c // 6, 3, 2, h, w)
    return tnp.transpose(blocks, (0, 1, 4, 2, 5, 3)).reshape(n, c // 6, 3 * h, 2 * w)[:, :, : 3 * h - 1, 1:]


def test_only_axes_that_a_reshape_joins_are_divided() -> None:
    x = np.arange(2 * 12 * 5 * 7, dtype=np.float32).reshape(2, 12, 5, 7)
    lowered = jit(_depth_to_space).lower(x)
    loops = str(lowered.loops())
    assert "idiv" not in loops
    assert "irem" not in loops
    assert loops.count("shr_logical") == 2
    expected = x.reshape(2, 2, 3, 2, 5, 7).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 15, 14)[:, :, :14, 1:]
    assert np.array_equal(np.asarray(lowered.compile()(x)), expected)


@pytest.mark.parametrize("extent", [2**31 - 1, 2**31, 2**40])
def test_positions_of_large_arrays_are_divided_exactly(extent: int) -> None:
    for inner in (3, 7, 12345, 46341):
        outer = extent // inner
        for position in (0, inner - 1, inner, outer * inner - 1, outer * inner // 2):
            builder, register = Builder(), Register(I64, "i")
            flat = Flat(Address(0, ((register, 1),)), (outer, inner))
            axes = unflatten(builder, flat, (outer, inner), {register: outer * inner})
            assert _evaluated(builder, {register: position}, axes) == [position // inner, position % inner]
