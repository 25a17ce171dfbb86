"""Law: a batched program is the stack of its calls, whichever operands are batched, along whichever axis."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.laws.accepted import accepted
from tests.laws.cases import Case, cases_of, covering_cases, without_dtypes
from tests.laws.comparing import case_tolerance, check_close, magnitudes
from tests.laws.sampling import THOROUGH, generator, primitives_with, sampled
from tests.laws.values import Array
from tracer.ir.check import check_program
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, with_shape
from tracer.primitives.arrays.indexing.gather import gather_p
from tracer.primitives.arrays.indexing.reference import scatter_reference
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import stage
from tracer.transforms.batch import batch_forward
from tracer.transforms.context import to_front

Axes = tuple[int | None, ...]

MANY = 6
FEW = 4  # choices of axes that every case tries


def batch_axes(program: Program) -> Iterator[Axes]:
    """Every choice of batched inputs, with the batch axis first in all; and in every other place, in all and in one,
    which is batched alone in every second choice.

    Of more than `MANY` inputs it is each alone, all but each, and the choices that a generator makes.
    """
    ranks = [len(type.shape) for type in program.input_types]
    for batched in _choices(len(ranks)):
        if any(batched):
            yield tuple(0 if on else None for on in batched)
    for place in range(1, max(ranks, default=0) + 1):
        yield tuple(min(place, rank) for rank in ranks)
        for i, rank in enumerate(ranks):
            if place <= rank and len(ranks) > 1:
                others = None if (place + i) % 2 else 0
                yield tuple(place if j == i else others for j in range(len(ranks)))


def chosen_axes(cases: Sequence[Case]) -> Iterator[tuple[Case, Sequence[Axes]]]:
    """Each case with the choices that it tries: of `FEW` all, of more half or a quarter, which go round the cases; one
    where an earlier case differs from it in dtypes alone, which batching does not look at. Thoroughly, all.
    """
    alike: Counter[Any] = Counter()
    for number, case in enumerate(cases):
        every = list(batch_axes(case.program))
        kind = without_dtypes(case)
        if not THOROUGH and alike[kind]:
            every = every[alike[kind] % len(every) :][:1]
        elif not THOROUGH and len(every) > FEW:
            step = 4 if len(every) > 2 * FEW else 2
            every = every[number % step :: step]
        alike[kind] += 1
        yield case, every


def _choices(count: int) -> Iterator[Sequence[bool]]:
    if count <= MANY:
        yield from itertools.product((False, True), repeat=count)
        return
    for i in range(count):
        yield [j == i for j in range(count)]
        yield [j != i for j in range(count)]
    yield [True] * count
    yield from (np.random.default_rng(count).random((2**MANY, count)) < 0.5).tolist()


def batched_program(program: Program, axes: Axes, size: int) -> tuple[Program, tuple[bool, ...]]:
    """The program on batches along `axes`, its batched outputs along axis 0; and which outputs those are."""
    kept: list[bool] = []

    def run(inputs: list) -> list:  # type: ignore[type-arg]
        outputs, places = batch_forward(program, inputs, axes, size, None)
        kept.extend(place is not None for place in places)
        return [y if place is None else to_front(y, place, size) for y, place in zip(outputs, places, strict=True)]

    types = [
        type if axis is None else with_shape(type, (*type.shape[:axis], size, *type.shape[axis:]))
        for type, axis in zip(program.input_types, axes, strict=True)
    ]
    return stage(run, types).program, tuple(kept)


def run_batched(program: Program, lanes: Sequence[Sequence[Array]], axes: Axes) -> list[Array]:
    """The batched program's outputs on the lanes' values, stacked; what no lane varies is repeated."""
    whole, kept = batched_program(program, axes, len(lanes))
    check_program(whole)
    stacked = [
        lanes[0][i] if axis is None else np.stack([lane[i] for lane in lanes], axis) for i, axis in enumerate(axes)
    ]
    check_promises(whole, stacked)
    results = run_reference(whole, stacked)
    return [y if on else np.stack([y] * len(lanes)) for y, on in zip(results, kept, strict=True)]


def check_promises(program: Program, values: Sequence[Array]) -> None:
    """Where an equation says that its indices are unique, no element is reached twice."""
    claims = [
        e for e in program.equations if e.params.get("unique_indices") and isinstance(e.inputs[0].type, ArrayType)
    ]
    operands = iter(run_reference(replace(program, outputs=tuple(a for e in claims for a in e.inputs)), values))
    for equation in claims:
        base, indices, *_, predicate = (next(operands) for _ in equation.inputs)
        numbers = equation.params["dimension_numbers"]
        is_gather = equation.primitive is gather_p
        count = np.ones((equation.outputs[0] if is_gather else equation.inputs[2]).type.shape, np.int64)
        reached = scatter_reference(np.add)(
            np.zeros(base.shape, np.int64), indices, count, predicate, mode=equation.params["mode"],
            dimension_numbers=numbers.as_scatter if is_gather else numbers, unique_indices=False,
        )  # fmt: skip
        assert reached.max(initial=0) <= 1, f"{equation.primitive.name} says that its indices are unique: {indices}"


def check_batch(case: Case, axes: Axes, rng: np.random.Generator, size: int) -> None:
    """One choice of axes; lanes differ in the batched operands alone."""
    first = case.draw(rng)
    lanes = [first]
    for _ in range(size - 1):
        drawn = case.draw(rng)
        lanes.append([x if axis is None else y for x, y, axis in zip(first, drawn, axes, strict=True)])
    got = run_batched(case.program, lanes, axes)
    calls = [run_reference(case.program, lane) for lane in lanes]
    for position, result in enumerate(got):
        expected = np.stack([call[position] for call in calls])
        if case.body is None and not case.literals:
            each = zip(lanes, result, expected, strict=True)
            expected = np.stack([accepted(case.primitive.name, lane, y, z) for lane, y, z in each])
        tolerance = case_tolerance(case, expected)
        scale = None
        if tolerance is not None and tolerance.of_terms:
            scale = np.stack([magnitudes(case, lane)[position] for lane in lanes])
        check_close(result, expected, tolerance, f"{case}, batched along {axes}, output {position}", (), scale)


@primitives_with(lambda p: not isinstance(p.batch, NoRule), "batch")
@sampled(1)
def test_a_batch_is_the_stack_of_the_calls(primitive: Primitive, seed: int) -> None:
    checked = 0
    for case, choices in chosen_axes(covering_cases(cases_of(primitive.name))):
        rng = generator(seed, case)
        for axes in choices:
            check_batch(case, axes, rng, size=3 if checked % 7 else 1)
            checked += 1
    assert checked, "no case has an operand to batch: the law is empty"
