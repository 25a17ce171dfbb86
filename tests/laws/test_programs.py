"""Laws of programs: what is staged, transformed and optimised is well formed, prints and parses again as itself, and
every pass keeps what it computes, and finds nothing to do a second time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from tests.laws.cases import Case, cases_of, covering_cases, with_all_kinds
from tests.laws.comparing import case_tolerance, check_close, magnitudes
from tests.laws.differences import actives
from tests.laws.machines import together
from tests.laws.sampling import THOROUGH, excused, generator, primitives_with, sampled
from tests.laws.test_batching import batched_program
from tests.laws.tolerances import COMPOSED
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Program
from tracer.ir.read import read_program
from tracer.ir.text import program_text
from tracer.passes.base.rewrite import Pass
from tracer.passes.pipeline import PIPELINE, Repeat, optimize
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.catalogue import BY_NAME, CATALOGUE
from tracer.transforms.jvp import jvp_program
from tracer.transforms.linearize import linearize_program
from tracer.transforms.transpose import transpose_program

ENUMS = {cls.__name__: cls for cls in (GatherScatterMode,)}
RECORDS = {cls.__name__: cls for cls in (GatherDimensionNumbers, ScatterDimensionNumbers)}


def _all_passes() -> Iterator[Pass]:
    for entry in PIPELINE:
        yield from entry.passes if isinstance(entry, Repeat) else (entry,)


MANY = 6  # cases of a primitive beyond which most differ in dtypes alone
PASSES = tuple({step.name: step for step in _all_passes()}.values())


def derived_programs(case: Case) -> Iterator[Program]:
    """The case's program, its derivatives, its transpose and its batch."""
    program = case.program
    yield program
    active = actives(program)
    if any(active) and not isinstance(case.primitive.jvp, NoRule):
        yield jvp_program(program, active).program
        split = linearize_program(program, active)
        yield split.forward
        yield split.linear
        if any(split.active_outputs) and not excused(case.primitive, "transpose"):
            linear = (False,) * len(split.sources) + (True,) * sum(active)
            yield transpose_program(split.linear, linear).program
    if program.inputs and not isinstance(case.primitive.batch, NoRule):
        yield batched_program(program, (0,) * len(program.inputs), 2)[0]


def chosen(primitive: Primitive) -> Sequence[Case]:
    """Some of a primitive's cases, among them every dtype at every place; thoroughly, all."""
    cases = cases_of(primitive.name)
    first = with_all_kinds(cases)
    rest = [case for case in cases if case not in first]
    return (*first, *rest[:: 1 if THOROUGH else max(1, len(rest) // 5)])


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_staged_transformed_and_optimised_programs_are_well_formed(primitive: Primitive) -> None:
    """Of the programs of a case every second, which are not those of the case before; of many cases every third."""
    for number, case in enumerate(chosen(primitive)):
        step = 1 if number == 0 or THOROUGH else 2 if number < MANY else 3
        for program in itertools.islice(derived_programs(case), number % step, None, step):
            check_program(program)
            optimize(program, verify=True)


@primitives_with(lambda p: True, "text")
def test_printed_and_parsed_again_it_is_the_same_program(primitive: Primitive) -> None:
    cases = chosen(primitive)
    for case in dict.fromkeys([*cases, *covering_cases(cases_of(primitive.name))]):
        text = program_text(case.program)
        again = read_program(text, BY_NAME, enums=ENUMS, records=RECORDS)
        assert again.digest == case.program.digest, text
        assert program_text(again, sources=False) == program_text(case.program, sources=False)
    whole = together([case.program for case in cases])
    some, step = (cases, 1) if THOROUGH else (cases[:4], 2)
    derived = [p for n, case in enumerate(some) for p in itertools.islice(derived_programs(case), n % step, None, step)]
    for program in (whole, optimize(whole), *derived):
        again = read_program(program_text(program), BY_NAME, enums=ENUMS, records=RECORDS)
        assert again.digest == program.digest


class Before(NamedTuple):
    """A program of a case, operands of it, and its results before any pass."""

    case: Case
    program: Program
    values: list[Array]
    results: list[Array]


def before_passes(primitive: Primitive, seed: int) -> list[Before]:
    """What every pass is tried on: cases and cases repeated, of many one of the two in turn."""
    found = []
    for number, case in enumerate(chosen(primitive)):
        values = case.draw(generator(seed, case))
        programs = (case.program, repeated(case.program))
        every = THOROUGH or number < MANY
        found += [
            Before(case, program, values, run_reference(program, values))
            for program in (programs if every else programs[number % 2 :][:1])
        ]
    return found


@primitives_with(lambda p: not isinstance(p.reference, NoRule), "passes")
@sampled(1)
def test_every_pass_keeps_what_a_program_computes_and_is_idempotent(primitive: Primitive, seed: int) -> None:
    for before, step in itertools.product(before_passes(primitive, seed), PASSES):
        after = step.run(before.program)
        if after is before.program:
            continue
        check_kept(before, after, step)
        again = step.run(after)
        assert again is after, f"{step.name} of {before.case!r}: not idempotent, or a copy\n{after}\n{again}"


def repeated(program: Program) -> Program:
    """The equations twice, for common subexpressions, and once more with outputs that nothing reads."""
    from tracer.trace.evaluate import evaluate
    from tracer.trace.stage import stage

    def run(inputs: list) -> list:  # type: ignore[type-arg]
        first = evaluate(program, inputs)
        evaluate(program, inputs)
        return [*evaluate(program, inputs), *first]

    return stage(run, program.input_types, name=program.name).program


def check_kept(before: Before, after: Program, step: Pass) -> None:
    """Equal bits; as close as the primitive's own tolerance where the pass rounds or expands it."""
    case, values = before.case, before.values
    assert before.program.input_types == after.input_types
    assert before.program.output_types == after.output_types
    for position, (a, b) in enumerate(zip(run_reference(after, values), before.results, strict=True)):
        tolerance = case_tolerance(case, b) if step.name == "expand" else None
        if step.rounds and dtypes.is_inexact(b.dtype):
            tolerance = COMPOSED
        scale = (
            magnitudes(case, values)[position % len(case.program.outputs)] if tolerance and tolerance.of_terms else None
        )
        check_close(a, b, tolerance, f"{step.name} of {case!r}, output {position}", values, scale)
