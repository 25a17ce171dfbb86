"""Programs compiled through the schedule and LLVM compute what the reference does, wherever their values live."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.primitives.structural import program_of
from tests.primitives.structural_cases import CASES, OURS, Case
from tests.schedule.running import (
    agree,
    agree_program,
    call,
    compiled,
    counted,
    interpreted,
    program,
    run,
    same,
    scalar,
    staged,
    vector,
)
from tracer.codegen.reference.interpreter import Order
from tracer.errors import OutOfBoundsError
from tracer.ir.dtypes import F64, I64
from tracer.ir.program import Program, literal
from tracer.ir.types import KeyType, array_type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.random import random_bits, random_fold_in, random_split, random_unwrap, random_wrap
from tracer.primitives.arrays.reductions.reductions import argmax, reduce_max, reduce_min, reduce_prod
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, pad, slice
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import (
    broadcast_in_dim,
    broadcasted_iota,
    optimization_barrier,
    reshape,
    rev,
    squeeze,
    transpose,
)
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.control.scan import scan_program
from tracer.primitives.elementwise.arithmetic import add, div, max, mul, neg, sub
from tracer.primitives.elementwise.comparison import gt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import exp
from tracer.primitives.elementwise.special import erf, lgamma
from tracer.primitives.elementwise.trigonometric import sin
from tracer.trace.stage import stage

U32 = np.dtype(np.uint32)
ROWS = GatherDimensionNumbers((), (0,), (0,))  # x[i] for vectors
ROWS_BACK = ScatterDimensionNumbers((), (0,), (0,))
X4, Y4 = np.array([1.5, -2.0, 0.25, 3.0]), np.array([4.0, 0.5, -1.0, 2.0])


# values without loops


def test_outputs_may_be_inputs_literals_or_each_other() -> None:
    def body(xs: Sequence[Any]) -> Sequence[Any]:
        x, y, s = xs
        z = add(x, y)
        return [x, z, z, literal(2.5, F64), s, x, y, reshape(z, (2, 2)), z]

    agree_program(stage(body, [vector(4), vector(4), scalar()]).program, [X4, Y4, np.asarray(7.0)])


def test_programs_without_inputs_or_outputs_run() -> None:
    agree_program(stage(lambda xs: [broadcasted_iota(I64, (2, 3), 1), literal(1, I64)], []).program, [])
    agree_program(stage(lambda xs: [], [vector(3)]).program, [np.ones(3)])


def test_scalars_stay_in_registers_and_broadcast() -> None:
    agree(lambda s, t: (add(mul(s, t), 1.0), sin(s), neg(t)), 2.0, 3.0)
    agree(lambda s, x: (mul(x, broadcast_in_dim(exp(s), (4,), ())), select(gt(s, 0.0), x, neg(x))), 0.5, X4)
    agree(lambda s: broadcast_in_dim(s, (2, 0, 3), ()), 0.5)


def test_values_in_registers_are_read_at_computed_places() -> None:
    nowhere = GatherDimensionNumbers((), (), ())
    rows, lanes, z = np.zeros((3, 0), np.int32), np.array([True, False, True]), 0.5 + 2j
    agree(lambda s, i, p: gather(sin(s), i, nowhere, (), predicate=p), 0.5, rows, lanes)
    agree(lambda s, i, p: gather(sin(s), i, nowhere, (), mode="fill", fill_value=9.0, predicate=p), z, rows, True)
    agree(lambda s, i: (gather(literal(2.5, F64), i, nowhere, ()), dynamic_slice(exp(s), [], [])), 0.5, rows)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), (1,), (1, 1, 1)])
def test_empty_and_single_arrays_go_through_everything(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    axes = tuple(range(len(shape)))
    agree(lambda x: (add(x, x), exp(x), transpose(x, axes[::-1]), rev(x, axes), reshape(x, (*shape, 1))), x)
    agree(lambda x: (reduce_sum(x, axes), reduce_prod(x, (0,)), cumsum(x, len(shape) - 1), sort(x, 0)), x)
    agree(lambda x: (concatenate([x, x], 0), pad(x, 1.0, [(1, 0, 2)] * len(shape))), x)


@pytest.mark.parametrize("case", [*CASES, *OURS], ids=lambda case: case.label)
def test_structural_primitives_compute_their_reference(case: Case) -> None:
    whole, arrays = program_of(case), [np.asarray(x) for x in case.operands]
    expected, message = _outcome(run_reference, whole, arrays)
    results, got = _outcome(run, whole, arrays)
    assert got == message
    for result, wanted in zip(results, expected, strict=True):
        same(result, np.asarray(wanted))


def _outcome(backend: Any, whole: Program, arrays: Sequence[Any]) -> tuple[list[Any], str]:
    """The results, or the message of the fault."""
    try:
        return backend(whole, arrays), ""
    except OutOfBoundsError as error:
        return [], str(error)


# reductions and shapes


AXES = [axes for n in range(5) for axes in itertools.combinations(range(4), n)]


@pytest.mark.parametrize("shape", [(3, 1, 5, 2), (2, 3, 1, 1), (1, 1, 1, 1), (2, 33, 3, 4)])
def test_reductions_over_every_subset_of_axes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape)
    agree(lambda x: [reduce_sum(sin(x), axes) for axes in AXES], x)
    agree(lambda x: [f(x, axes) for axes in AXES if axes for f in (reduce_max, reduce_min)], x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128"])
def test_reductions_of_every_kind_of_number(dtype: str, rng: np.random.Generator) -> None:
    x = (rng.standard_normal((5, 70)) * 3 + 1j * rng.standard_normal((5, 70))).astype("complex128")
    y = (x if dtype.startswith("complex") else np.abs(x.real)).astype(dtype)
    if dtype != "bool":
        agree(lambda x: [reduce_sum(x, axes) for axes in ((0,), (1,), (0, 1))], y)
        agree(lambda x: [reduce_prod(x, (0,)), cumsum(x, 1), cumsum(x, 0)], y)
    if not dtype.startswith("complex"):
        agree(lambda x: [reduce_max(x, (1,)), reduce_min(x, (0,)), argmax(x, 0, np.int32)], y)


def test_transposes_reshapes_and_slices_fuse_with_reductions(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 6, 5))

    def function(x: Any) -> list[Any]:
        turned = transpose(x, (2, 0, 1))
        merged = reshape(turned, (5, 24))
        split = reshape(merged, (5, 2, 12))
        part = slice(split, (1, 0, 3), (5, 2, 11), (2, 1, 2))
        return [
            reduce_sum(turned, (1,)), reduce_sum(exp(merged), (0,)), reduce_max(split, (1, 2)), part,
            reduce_sum(rev(part, (2,)), (2,)), reshape(transpose(part, (1, 2, 0)), (16,)),
            sub(merged, broadcast_in_dim(reduce_max(merged, (1,)), (5, 24), (0,))),
        ]  # fmt: skip

    agree(function, x)
    agree(lambda x: squeeze(reshape(mul(x, 2.0), (1, 120, 1)), (0, 2)), x)


def test_softmax_and_a_normalisation(rng: np.random.Generator) -> None:
    def softmax(x: Any) -> Any:
        e = exp(sub(x, broadcast_in_dim(reduce_max(x, (1,)), x.type.shape, (0,))))
        return div(e, broadcast_in_dim(reduce_sum(e, (1,)), x.type.shape, (0,)))

    for shape in ((3, 1), (7, 33), (1, 100)):
        agree(softmax, rng.standard_normal(shape))
        agree(softmax, rng.standard_normal(shape).astype("float32"))


def test_windows_joins_and_counters_compose(rng: np.random.Generator) -> None:
    x, i = rng.standard_normal((6, 4)), np.array([[5], [0], [3]])
    rows = GatherDimensionNumbers((1,), (0,), (0,))

    def function(x: Any, i: Any) -> list[Any]:
        taken = gather(mul(x, 2.0), i, rows, (1, 4))
        counters = convert_element_type(broadcasted_iota(I64, (3, 4), 0), np.float64)
        joined = concatenate([taken, rev(counters, (1,)), slice(x, (0, 0), (2, 4))], 0)
        padded = pad(joined, -1.0, [(1, -1, 1), (0, 2, 0)])
        back = scatter_add(padded, i, neg(slice(padded, (0, 0), (3, 6))), ScatterDimensionNumbers((1,), (0,), (0,)))
        return [padded, back, reduce_sum(back, (0,)), dynamic_slice(joined, [i_at(i), literal(1, I64)], (2, 2))]

    agree(function, x, i)


def i_at(i: Any) -> Any:
    return squeeze(slice(i, (2, 0), (3, 1)), (0, 1))


def test_barriers_keep_values_apart() -> None:
    agree(lambda x, y: optimization_barrier([add(x, y), x, add(x, y)]), X4, Y4)


# keys


def test_keys_move_like_other_values() -> None:
    words = np.arange(12, dtype=np.uint32).reshape(6, 2)
    numbers = GatherDimensionNumbers((), (0,), (0,))

    def function(keys: Any, i: Any, x: Any) -> list[Any]:
        grid = reshape(keys, (2, 3))
        turned = transpose(grid, (1, 0))
        picked = gather(keys, i, numbers, (1,), mode="clip")
        joined = concatenate([slice(keys, (1,), (3,)), picked], 0)
        _, sorted_keys = sort((x, keys), 0)
        words = random_unwrap(turned)
        moved = dynamic_update_slice(keys, slice(joined, (0,), (2,)), [literal(3, I64)])
        return [turned, joined, sorted_keys, words, random_wrap(rev(words, (0,))), random_bits(picked, 32, (3,)), moved,
                random_fold_in(keys, 7), random_split(slice(keys, (0,), (1,)), (2,))]  # fmt: skip

    types = [KeyType((6,)), vector(2, I64), vector(6)]
    types[1] = array_type(I64, (2, 1))
    staged_ = stage(lambda xs: function(*xs), types).program
    agree_program(staged_, [words, np.array([[4], [9]]), np.array([3.0, 1, 2, 1, 0, 5])])


def test_keys_are_carried_by_loops() -> None:
    def step(key: Any, total: Any) -> list[Any]:
        pair = random_split(key, (2,))
        first, second = (reshape(slice(pair, (k,), (k + 1,)), ()) for k in range(2))
        return [first, add(total, convert_element_type(random_bits(second, 32, (3,)), np.float64))]

    key, zeros = KeyType(()), vector(3)
    body = program(step, key, zeros)
    whole = stage(lambda xs: scan_program(body, [], xs, [], length=4), [key, zeros]).program
    agree_program(whole, [np.array([1, 2], np.uint32), np.zeros(3)])

    many = program(lambda keys, i: [rev(keys, (0,)), random_fold_in(reshape(slice(keys, (0,), (1,)), ()), i)],
                   KeyType((3,)), scalar(U32))  # fmt: skip
    whole = stage(
        lambda xs: scan_program(many, [], [xs[0]], [broadcasted_iota(U32, (5,), 0)], length=5), [KeyType((3,))]
    ).program
    agree_program(whole, [np.arange(6, dtype=np.uint32).reshape(3, 2)])


# the same loops, interpreted and checked


def test_the_interpreter_agrees_in_every_order(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 5))
    programs = [
        staged(lambda x: [reduce_sum(exp(x), (1,)), transpose(x, (1, 0)), cumsum(x, 0), sort(x, 1)], [x]),
        staged(lambda x: counted(lambda i, a: [rev(add(a, 1.0), (0, 1))], x, trips=3), [x]),
        staged(lambda x: [concatenate([x, neg(x)], 1), pad(x, 0.0, [(1, 1, 0), (0, 0, 1)])], [x]),
    ]
    for whole in programs:
        for order in Order:
            agree_program(whole, [x], lambda p, a, order=order: interpreted(p, a, order))


def test_executables_may_be_called_again() -> None:
    whole = staged(lambda x: counted(lambda i, a: [add(a, 1.0)], x, trips=3), [X4])
    scheduled, runnable = compiled(whole)
    for x in (X4, Y4, X4):
        same(call(scheduled, runnable, whole, [x])[0], x + 3.0)


def test_signs_of_functions_in_halves() -> None:
    """The sign of the second is that of a double, rounded twice before: LLVM must convert it as it stands."""
    agree(lambda x: erf(lgamma(x)), np.float16(1.5))


def test_max_of_bool_and_division_of_integers_take_their_own_meanings() -> None:
    agree(lambda x, y: [max(x, y), add(x, y), mul(x, y)], np.array([True, False]), np.array([False, False]))
    agree(div, np.array([7, -7, 5, -128], np.int8), np.array([2, 2, 0, -1], np.int8))
