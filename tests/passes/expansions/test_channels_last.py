"""Convolutions of NHWC arrays: which become products of matrices, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
from tests.passes.programs import f32, f64, traced
from tests.passes.test_hoist import names
from tests.schedule.running import run
from tracer import lax
from tracer.ir.types import ArrayType
from tracer.passes.expand import expand
from tracer.passes.inline import inline
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference

NHWC = ("NHWC", "HWIO", "NHWC")


def convolved(strides: Any = (1, 1), padding: Any = "SAME", **options: Any) -> Callable[..., Any]:
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC, **options)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient by the window, for a cotangent of the result."""
    return lambda x, w, y: tracer.vjp(lambda w: function(x, w), w)[1](y)


FORWARD = [
    (convolved(), f64(2, 7, 5, 16), f64(3, 3, 16, 9)),  # rows of less than a vector
    (convolved(), f32(2, 8, 32, 16), f32(1, 1, 16, 9)),  # points: no windows at all
    (convolved((2, 2)), f64(3, 16, 18, 8), f64(3, 3, 8, 10)),
    (convolved((2, 1), ((2, -1), (0, 3)), rhs_dilation=(2, 1)), f64(3, 16, 4, 8), f64(3, 2, 8, 10)),
]
GRADIENTS = [
    (convolved(), f64(2, 9, 11, 16), f64(3, 3, 16, 9)),
    (convolved((2, 2)), f64(3, 16, 18, 8), f64(3, 3, 8, 10)),
    (convolved((1, 2), "VALID"), f32(3, 9, 16, 8), f32(3, 3, 8, 10)),
]
NESTS = [
    (f64(2, 8, 32, 16), f64(3, 3, 16, 9)),  # full vectors along the rows
    (f32(2, 32, 14, 3), f32(3, 3, 3, 9)),  # few channels
    (f32(64, 64, 9, 32), f32(3, 3, 32, 9)),  # many windows
]


def agrees(function: Callable[..., Any], *types: ArrayType) -> list[str]:
    """Compare with the reference; the names of the expanded program's equations."""
    random = np.random.default_rng(7)
    before = traced(function, *types)
    arrays = [random.standard_normal(t.shape).astype(t.dtype) for t in types]
    wanted, got = run_reference(before, arrays), run(optimize(before), arrays)
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=(1e-5 if b.dtype == np.float32 else 1e-13) * np.abs(a).max())
    return names(expand(inline(before)))


@pytest.mark.parametrize(("function", "x", "w"), FORWARD)
def test_convolutions_that_lanes_along_rows_would_serve_badly_are_products(
    function: Any, x: ArrayType, w: ArrayType
) -> None:
    found = agrees(function, x, w)
    assert "conv" not in found
    assert "dot_general" in found


@pytest.mark.parametrize(("function", "x", "w"), GRADIENTS)
def test_gradients_by_the_window_are_products(function: Any, x: ArrayType, w: ArrayType) -> None:
    shape = traced(function, x, w).output_types[0].shape
    y = (f32 if x.dtype == np.float32 else f64)(*shape)
    program = optimize(traced(gradient(function), x, w, y))
    assert "conv" not in names(program)
    assert not any(e.primitive.name == "transpose" and len(e.outputs[0].type.shape) == 4 for e in program.equations)
    agrees(gradient(function), x, w, y)


@pytest.mark.parametrize(("x", "w"), NESTS)
def test_other_convolutions_keep_their_nests(x: ArrayType, w: ArrayType) -> None:
    assert "conv" in names(expand(inline(traced(convolved(), x, w))))
