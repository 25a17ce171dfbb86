"""Laws for any call on arrays, checked through the transforms on the array reference."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.primitives.structural_cases import Case, outputs_of
from tracer.errors import OutOfBoundsError
from tracer.ir.primitive import Composite
from tracer.ir.program import Program
from tracer.ir.types import Float0Type, array_type, is_differentiable
from tracer.primitives.arrays import dynamic_slice, slice_pad_concatenate, sorting
from tracer.primitives.arrays.reductions import reductions
from tracer.primitives.base import shapes
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import moveaxis
from tracer.primitives.control import cumulative, scatter_mul
from tracer.primitives.elementwise import arithmetic
from tracer.trace.stage import stage
from tracer.transforms.batch import batch_forward
from tracer.transforms.jvp import jvp_program
from tracer.transforms.transpose import transpose_program

lax: Any = SimpleNamespace(
    **{name: value for module in (
        scatter_mul, arithmetic, shapes, slice_pad_concatenate, reductions, cumulative, dynamic_slice, sorting)
       for name, value in vars(module).items() if not name.startswith("_")}
)  # fmt: skip


def program_of(case: Case) -> Program:
    types = [array_type(x.dtype, x.shape) for x in case.operands]
    staged = stage(lambda inputs: outputs_of(case.call(lax, *inputs)), types)
    assert not staged.constants
    return staged.program


def values_of(case: Case) -> list[Any]:
    return run_reference(program_of(case), case.operands)


def direction(x: Any, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(x.shape).astype(x.dtype)


def pushed(program: Program, xs: Sequence[Any], dxs: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
    """The tangents of the inexact outputs, in order."""
    result = jvp_program(program, active, True)
    given = [dx for dx, on in zip(dxs, active, strict=True) if on]
    return run_reference(result.program, [*xs, *given])[len(program.outputs) :]


def check_jvp(program: Program, xs: Sequence[Any], active: tuple[bool, ...], tolerance: float = 2e-6) -> None:
    """Tangents are central differences of the outputs."""
    h = 1e-6
    dxs = [direction(x, i) if on else np.zeros_like(x) for i, (x, on) in enumerate(zip(xs, active, strict=True))]
    sides = [
        run_reference(program, [x + s * h * dx if on else x for x, dx, on in zip(xs, dxs, active, strict=True)])
        for s in (1, -1)
    ]
    smooth = [is_differentiable(type) for type in program.output_types]
    expected = [(a - b) / (2 * h) for a, b, on in zip(*sides, smooth, strict=True) if on]
    for got, want in zip(pushed(program, xs, dxs, active), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def derivative(program: Program, active: tuple[bool, ...]) -> Program:
    """(inputs, tangents) -> tangents alone."""
    whole = jvp_program(program, active, True).program
    return Program(whole.inputs, whole.equations, whole.outputs[len(program.outputs) :])


def gradients(case: Case, cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of the inexact operands, for those of the inexact outputs."""
    tangents = derivative(program_of(case), case.active)
    linear = (*[False] * len(case.operands), *[True] * sum(case.active))
    return run_reference(transpose_program(tangents, linear).program, [*case.operands, *cotangents])


def check_transpose(case: Case) -> None:
    """<J v, w> = <v, J^T w>."""
    dxs = [direction(x, i) if on else None for i, (x, on) in enumerate(zip(case.operands, case.active, strict=True))]
    tangents = pushed(program_of(case), case.operands, dxs, case.active)
    ws = [direction(t, 100 + i) for i, t in enumerate(tangents)]
    back = gradients(case, ws)
    moving = [dx for dx in dxs if dx is not None]
    assert [(b.shape, b.dtype) for b in back] == [(dx.shape, dx.dtype) for dx in moving]
    left = sum(np.sum(t * w) for t, w in zip(tangents, ws, strict=True))
    right = sum(np.sum(dx * b) for dx, b in zip(moving, back, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


def check_batch(case: Case, size: int = 3) -> None:
    """Any operands batched, along any axis: the stack of the calls, or a fault if one of them faults."""
    program = program_of(case)
    for batched in itertools.product((False, True), repeat=len(case.operands)):
        if any(batched):
            lanes = [
                [_varied(x, lane, case.label) if on else x for x, on in zip(case.operands, batched, strict=True)]
                for lane in range(size)
            ]
            calls = [_run(program, lane) for lane in lanes]
            if any(call is None for call in calls):
                with pytest.raises(OutOfBoundsError):
                    _batched(program, lanes, [0 if on else None for on in batched])
                continue
            expected = [np.stack(parts) for parts in zip(*calls, strict=True)]  # type: ignore[arg-type]
            for place in (0, 1, -1):
                axes = [
                    (min(place, x.ndim) if place >= 0 else x.ndim) if on else None
                    for x, on in zip(case.operands, batched, strict=True)
                ]
                for got, want in zip(_batched(program, lanes, axes), expected, strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def _run(program: Program, xs: Sequence[Any]) -> list[Any] | None:
    """The outputs; None where an index is out of bounds."""
    try:
        return run_reference(program, xs)
    except OutOfBoundsError:
        return None


def _varied(x: Any, lane: int, label: str) -> Any:
    """Another value for another lane: the same elements elsewhere, indices shifted."""
    if x.ndim == 0:
        return x + lane if x.dtype.kind == "i" else x
    rolled = np.roll(x, lane)
    return rolled + lane if x.dtype == np.int64 and "predicate" not in label else rolled


def _batched(program: Program, lanes: Sequence[Sequence[Any]], axes: Sequence[int | None]) -> list[Any]:
    size = len(lanes)

    def run(inputs: list[Any]) -> list[Any]:
        outputs, places = batch_forward(program, inputs, axes, size, None)
        kept.extend(place is not None for place in places)
        return [y if place is None else moveaxis(y, place, 0) for y, place in zip(outputs, places, strict=True)]

    kept: list[bool] = []
    stacked = [
        lanes[0][i] if axis is None else np.stack([lane[i] for lane in lanes], axis) for i, axis in enumerate(axes)
    ]
    whole = stage(run, [array_type(x.dtype, x.shape) for x in stacked]).program
    values = run_reference(whole, stacked)
    return [v if on else np.stack([v] * size) for v, on in zip(values, kept, strict=True)]


def check_composites(case: Case, tolerance: float = 1e-12) -> None:
    """A composite lowering computes what the reference does."""
    for equation in program_of(case).equations:
        lower = equation.primitive.lower
        if isinstance(lower, Composite):
            types = [a.type for a in equation.inputs]
            expand: Callable[..., Any] = lower.expand
            expanded = stage(lambda xs, e=equation, f=expand: outputs_of(f(*xs, **e.params)), types).program
            for got, want in zip(run_reference(expanded, case.operands), values_of(case), strict=True):
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def has_tangent(program: Program) -> bool:
    return any(is_differentiable(t) and not isinstance(t, Float0Type) for t in program.output_types)
