"""Laws of functions that are linear in each of two arrays, checked through the transforms on the array reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import moveaxis
from tracer.trace.stage import stage
from tracer.transforms.batch import batch_forward
from tracer.transforms.jvp import jvp_program
from tracer.transforms.transpose import transpose_program

Function = Callable[[Any, Any], Any]


def program_of(function: Function, x: Any, y: Any) -> Program:
    staged = stage(lambda inputs: [function(*inputs)], [array_type(a.dtype, a.shape) for a in (x, y)])
    assert not staged.constants
    return staged.program


def value_of(function: Function, x: Any, y: Any) -> Any:
    return run_reference(program_of(function, x, y), [x, y])[0]


def check_lowering(function: Function, x: Any, y: Any) -> None:
    """The composite lowering gives the same bits as the reference, for one equation."""
    program = program_of(function, x, y)
    (equation,) = [e for e in program.equations if e.primitive.name == "conv"]
    lower = equation.primitive.lower

    def expanded(a: Any, b: Any) -> Any:
        return lower.expand(a, b, **equation.params)  # type: ignore[union-attr]  # a Composite

    operands = run_reference(Program(program.inputs, program.equations, equation.inputs), [x, y])
    expected = equation.primitive.reference(*operands, **equation.params)  # type: ignore[operator]
    got = value_of(expanded, *operands)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def check_derivatives(function: Function, x: Any, y: Any, tolerance: float = 1e-10) -> None:
    """d f(x, y) = f(dx, y) + f(x, dy), and <f(dx, y), w> = <dx, transpose w>, for either operand."""
    rng = np.random.default_rng(7)
    program = program_of(function, x, y)
    value = value_of(function, x, y)
    dx, dy, w = (draw(rng, a.shape, a.dtype) for a in (x, y, value))
    pushed = run_reference(jvp_program(program, (True, True)).program, [x, y, dx, dy])
    np.testing.assert_array_equal(pushed[0], value)
    part_x, part_y = value_of(function, dx, y), value_of(function, x, dy)
    np.testing.assert_allclose(pushed[1], part_x + part_y, rtol=tolerance, atol=tolerance)
    for linear, known, tangent, part in (((True, False), y, dx, part_x), ((False, True), x, dy, part_y)):
        (cotangent,) = run_reference(transpose_program(program, linear).program, [known, w])
        assert (cotangent.shape, cotangent.dtype) == (tangent.shape, tangent.dtype)
        np.testing.assert_allclose(np.sum(part * w), np.sum(tangent * cotangent), rtol=tolerance, atol=tolerance)


def check_batch(function: Function, x: Any, y: Any, tolerance: float = 0.0) -> None:
    """Batched on either side or both, along any axis, the program gives the stack of the calls."""
    rng, size = np.random.default_rng(8), 3
    program = program_of(function, x, y)
    for batched in ((True, False), (False, True), (True, True)):
        lanes = [[draw(rng, a.shape, a.dtype) if on else a for a, on in zip((x, y), batched, strict=True)]
                 for _ in range(size)]  # fmt: skip
        expected = np.stack([run_reference(program, lane)[0] for lane in lanes])
        for place in range(min(x.ndim, y.ndim) + 1):
            axes = [place if on else None for on in batched]
            stacked = [lanes[0][i] if axis is None else np.stack([lane[i] for lane in lanes], axis)
                       for i, axis in enumerate(axes)]  # fmt: skip

            def run(inputs: list[Any], axes: Any = axes) -> list[Any]:
                (output,), (axis,) = batch_forward(program, inputs, axes, size, None)
                return [moveaxis(output, axis, 0)]

            batch = stage(run, [array_type(a.dtype, a.shape) for a in stacked]).program
            np.testing.assert_allclose(run_reference(batch, stacked)[0], expected, rtol=tolerance, atol=tolerance)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Small integers as the dtype's values, so that sums are exact in any order."""
    dtype = np.dtype(dtype)
    low = 0 if dtype.kind in "ub" else -3
    values = rng.integers(low, 2 if dtype.kind == "b" else 4, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return values.astype(dtype)
