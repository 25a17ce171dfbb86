"""Successive independent maps as one kernel: the pieces of an array, small ones, and those that must not join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.cuda.test_emit import gpu_module
from tests.runtime.cuda.simulator.running import outputs_of
from tests.schedule.gpu.gpu_programs import program_of
from tracer import lax
from tracer.codegen.cuda.emit import emit_cuda
from tracer.primitives.base.reference import run_reference
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.schedule.gpu.joined_maps import _disjoint

X = np.arange(1.0, 121.0).reshape(2, 6, 10)


def pad(x: Any, *edges: tuple[int, int, int]) -> Any:
    return lax.pad(x, x[0, 0, 0], edges)


@pytest.mark.parametrize(
    ("function", "kernels"),
    [
        (lambda x: [tnp.concatenate([x, 2 * x[:, :3], -x], 1)], 1),
        (lambda x: [tnp.concatenate([x, 2 * x, x[..., 1:4]], 2)], 2),  # rows of two pieces are joined before
        (lambda x: [tnp.concatenate([x, 2 * x], 0)], 1),
        (lambda x: [tnp.stack([x, 2 * x, x + 1], 1)], 1),
        (lambda x: [pad(x, (1, 2, 0), (0, 3, 0), (4, 0, 0))], 2),
        (lambda x: [pad(x, (1, 0, 0), (-1, -2, 0), (2, -3, 0))], 2),
        (lambda x: [x.T + 1, x.sum(0), 2.0 * x], 2),  # the sum has rows of two, a thread each
    ],
)
@pytest.mark.rung("simulator", of="parts")
def test_pieces_are_stored_by_one_kernel(function: Callable[..., Sequence[Any]], kernels: int) -> None:
    program = program_of(function, [("float64", X.shape)])
    module = gpu_module(program)
    assert len(emit_cuda(module).kernels) <= kernels
    for order in Order:
        for got, wanted in zip(outputs_of(module, [X], order), run_reference(program, [X]), strict=True):
            np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)


def test_stores_to_one_element_keep_their_order() -> None:
    """The value is stored everywhere first, the elements over it."""
    program = program_of(lambda x: [pad(x, (1, 1, 1), (0, 0, 0), (0, 0, 2))], [("float64", X.shape)])
    for order in Order:
        (got,), (wanted,) = outputs_of(gpu_module(program), [X], order), run_reference(program, [X])
        np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)


def test_boxes_are_apart_where_no_element_is_in_both(rng: np.random.Generator) -> None:
    """Whenever boxes are called apart, their elements are; and boxes of one array's parts are seen."""

    def elements(box: tuple[int, dict[int, int]]) -> set[int]:
        found = {box[0]}
        for stride, n in box[1].items():
            found = {x + stride * i for x in found for i in range(n)}
        return found

    seen = 0
    for _ in range(500):
        boxes = [
            (
                int(rng.integers(0, 40)),
                {s: int(rng.integers(1, 5)) for s in rng.permutation([1, 4, 12, 5])[:2].tolist()},
            )
            for _ in range(2)
        ]
        apart = _disjoint(*boxes)
        seen += apart
        assert not apart or elements(boxes[0]).isdisjoint(elements(boxes[1]))
    assert seen > 100
    assert _disjoint((0, {12: 3, 1: 5}), (5, {12: 3, 1: 7}))
    assert not _disjoint((0, {12: 3, 1: 6}), (5, {12: 3, 1: 7}))
