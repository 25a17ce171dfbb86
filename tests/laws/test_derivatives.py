"""Laws: a jvp is a difference quotient, its jvp is that of its own, and <Jv, w> = <v, J^T w>."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np

from tests.laws.cases import Case, cases_of, covering_cases, with_all_kinds
from tests.laws.differences import actives, check_adjoint, check_eager_jvp, check_gradient, check_jvp, check_transpose
from tests.laws.sampling import THOROUGH, excused, generator, primitives_with, sampled
from tests.laws.values import Array
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.types import is_differentiable, size
from tracer.primitives.base.reference import run_reference
from tracer.transforms.jvp import jvp_program


@cache
def smooth_cases(primitive: Primitive) -> Sequence[Case]:
    return covering_cases(
        [c for c in cases_of(primitive.name) if c.smooth is not None and c.is_exact_enough and any(actives(c.program))]
    )


def has_jvp(primitive: Primitive) -> bool:
    return not isinstance(primitive.jvp, NoRule) and bool(smooth_cases(primitive))


@primitives_with(has_jvp, "jvp")
@sampled(1)
def test_a_jvp_is_a_difference(primitive: Primitive, seed: int) -> None:
    shares = []
    for number, case in enumerate(smooth_cases(primitive)):
        rng = generator(seed, case)
        xs = case.draw_smooth(rng)
        shares.append(check_jvp(case.program, xs, rng, repr(case), alone=THOROUGH or number % 2 == 0))
        if THOROUGH or number % 8 == 0:
            check_eager_jvp(case.program, xs, rng, repr(case))
    assert np.mean(shares) > 0.7, "too few points are smooth: the law is empty"


@primitives_with(lambda p: has_jvp(p) and "smooth" not in p.laws, "jvp")
@sampled(1)
def test_a_second_jvp_is_a_difference_of_the_first(primitive: Primitive, seed: int) -> None:
    cases = smooth_cases(primitive)
    chosen = cases if THOROUGH else [*with_all_kinds(cases), *cases[1::4]]
    for number, case in enumerate(dict.fromkeys(chosen)):
        rng = generator(seed, case)
        xs = case.draw_smooth(rng)
        derived = jvp_program(case.program, actives(case.program))
        dxs = [
            rng.standard_normal(x.shape).astype(x.dtype) for x, on in zip(xs, actives(case.program), strict=True) if on
        ]
        alone = THOROUGH or number % 4 == 0  # there are twice the inputs to be moved alone
        check_jvp(derived.program, [*xs, *dxs], rng, f"jvp of {case!r}", alone=alone)


@primitives_with(lambda p: has_jvp(p) and not excused(p, "transpose"), "jvp")
@sampled(1)
def test_linearised_and_transposed_it_is_the_adjoint_of_the_jvp(primitive: Primitive, seed: int) -> None:
    """Of cases whose dtypes others have every second, which are not those of the first law; `grad` tries all."""
    cases = smooth_cases(primitive)
    chosen = cases if THOROUGH else [*with_all_kinds(cases), *cases[1::2]]
    for case in dict.fromkeys(chosen):
        rng = generator(seed, case)
        check_adjoint(case.program, case.draw_smooth(rng), rng, repr(case))


def has_gradient(primitive: Primitive) -> bool:
    return (has_jvp(primitive) or primitive.linearize is not None) and bool(smooth_cases(primitive))


@primitives_with(lambda p: has_gradient(p) and not excused(p, "transpose"), "jvp")
@sampled(1)
def test_a_gradient_is_a_difference(primitive: Primitive, seed: int) -> None:
    shares = []
    for case in smooth_cases(primitive):
        rng = generator(seed, case)
        shares.append(check_gradient(case.program, case.draw_smooth(rng), rng, repr(case)))
    assert np.mean(shares) > 0.7, "too few points are smooth: the law is empty"


@cache
def linear_sets(case: Case) -> list[tuple[bool, ...]]:
    """The sets of inputs in which the equation is found to be affine, together, whatever the others are."""
    flags, rng = actives(case.program), generator(0, case)
    if not all(is_differentiable(type) and size(type) for type in case.program.output_types):
        return []
    places = [i for i, on in enumerate(flags) if on and size(case.program.input_types[i])][:3]
    found: list[set[int]] = []
    for count in range(len(places), 0, -1):
        for chosen in map(set, itertools.combinations(places, count)):
            linear = tuple(i in chosen for i in range(len(flags)))
            if _is_refused(case, linear):
                continue
            within = any(chosen < larger for larger in found)  # affine in all of them: in some, the others being fixed
            if within or all(_is_affine(case, linear, rng) for _ in range(8)):
                found.append(chosen)
    return [tuple(i in chosen for i in range(len(flags))) for chosen in reversed(found)]


def _is_refused(case: Case, linear: tuple[bool, ...]) -> bool:
    """Products at places that might be one, of which only the draw says that they are not."""
    equation = case.program.equations[-1]
    if equation.primitive.name != "scatter_mul" or not linear[2]:
        return False
    indices = case.program.input_types[1]
    return not equation.params["unique_indices"] and size(indices) > indices.shape[-1]


def _is_affine(case: Case, linear: tuple[bool, ...], rng: np.random.Generator) -> bool:
    xs, others = case.draw_smooth(rng), case.draw_smooth(rng)
    second = [b if on else a for a, b, on in zip(xs, others, linear, strict=True)]
    both = [np.asarray(a + b) if on else a for a, b, on in zip(xs, others, linear, strict=True)]
    origin = [np.zeros_like(a) if on else a for a, on in zip(xs, linear, strict=True)]
    parts: list[list[Array]] = [run_reference(case.program, x) for x in (xs, second, both, origin)]
    return all(np.allclose(a + b, c + d, rtol=1e-9, atol=1e-9) for a, b, c, d in zip(*parts, strict=True))


def may_be_transposed(primitive: Primitive) -> bool:
    """Whether it has a rule, and cases where that means the adjoint of what the primitive computes."""
    return (
        not isinstance(primitive.transpose, NoRule) and bool(smooth_cases(primitive)) and not excused(primitive, "jvp")
    )


@primitives_with(may_be_transposed, "transpose")
@sampled(1)
def test_a_transpose_is_the_adjoint(primitive: Primitive, seed: int) -> None:
    checked = 0
    for case in smooth_cases(primitive):
        rng = generator(seed, case)
        xs = case.draw_smooth(rng)
        for linear in linear_sets(case):
            known = [x for x, on in zip(xs, linear, strict=True) if not on]
            vs = [x for x, on in zip(xs, linear, strict=True) if on]
            check_transpose(case.program, linear, known, vs, rng, f"{case!r}, linear {linear}")
            checked += 1
    assert checked, "no case is linear in any operand: the law is empty"
