"""Transposed reads on a GPU through shared memory: the reference's bits in any order of blocks, without races."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.schedule.gpu.test_mapping import mapped, run
from tracer.codegen.reference.interpreter import Order
from tracer.codegen.status import Status
from tracer.ir.loop import Barrier, Module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.lax import fori_loop, pad
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import stage


def program_of(function: Callable[..., Any], *types: tuple[str, tuple[int, ...]]) -> Program:
    made = [array_type(np.dtype(d), shape) for d, shape in types]
    return optimize(stage(lambda xs: [function(*xs)], made).program, CUDA)


def has_tiles(module: Module) -> bool:
    return any(isinstance(s, Barrier) for f in module.functions for s in statements_of(f.body))


def inputs_of(program: Program, rng: np.random.Generator) -> list[Any]:
    return [(9 * rng.standard_normal(t.shape)).astype(t.dtype) for t in program.input_types]


CASES: dict[str, tuple[Callable[..., Any], list[tuple[str, tuple[int, ...]]]]] = {
    "copy": (lambda x: x.T, [("float32", (33, 65))]),
    "of_bytes": (lambda x: x.T, [("int8", (70, 130))]),
    "of_halves": (lambda x: x.T + 1, [("float16", (65, 66))]),
    "of_complex_numbers": (lambda x: x.T, [("complex64", (33, 34))]),
    "of_few_rows": (lambda x: x.T, [("float64", (3, 500))]),
    "of_few_columns": (lambda x: x.T, [("float32", (500, 3))]),
    "beside_another_operand": (lambda x, y: x - y.T, [("float32", (40, 33)), ("float32", (33, 40))]),
    "of_two_operands": (lambda x, y: x.T * y.T, [("float64", (40, 33)), ("float16", (40, 33))]),
    "in_a_stack": (lambda x: tnp.swapaxes(x, 1, 2), [("float32", (3, 20, 33))]),
    "of_outer_axes": (lambda x: tnp.moveaxis(x, 0, -1), [("float32", (9, 5, 40))]),
    "of_three_axes": (lambda x: x.T, [("float32", (9, 5, 40))]),
    "backwards": (lambda x: x.T[::-1, ::-1] + 1, [("float32", (33, 40))]),
    "of_indices": (lambda x: x.T * tnp.arange(40), [("int64", (40, 33))]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.rung("interpreter", of="transposes")
def test_tiles_give_the_reference_s_bits(name: str, rng: np.random.Generator) -> None:
    function, types = CASES[name]
    program = program_of(function, *types)
    module, given = mapped(program).module, inputs_of(program, rng)
    assert has_tiles(module)
    (wanted,) = run_reference(program, given)
    flat = [x.view(x.real.dtype) for x in given]
    for order in Order:
        outcome, (got,) = run(module, flat, order)
        assert outcome.status is Status.DONE
        assert got.tobytes() == np.asarray(wanted).tobytes()


def test_small_maps_and_parts_of_masks_take_no_tile() -> None:
    assert not has_tiles(mapped(program_of(lambda x: x.T, ("float32", (20, 30)))).module)
    padded = program_of(lambda x: pad(x, np.float32(0), ((1, 1, 0), (1, 1, 0))).T, ("float32", (40, 40)))
    assert mapped(padded).left == ()


def test_a_loop_in_one_block_has_tiles(rng: np.random.Generator) -> None:
    program = program_of(lambda x: fori_loop(0, 3, lambda _, x: x.T * 2 - x, x), ("float32", (34, 34)))
    module, given = mapped(program).module, inputs_of(program, rng)
    assert has_tiles(Module((module.functions[-2],), "loop0"))
    (wanted,) = run_reference(program, given)
    for order in Order:
        assert run(module, given, order)[1][0].tobytes() == np.asarray(wanted).tobytes()
