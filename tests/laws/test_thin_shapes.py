"""Law: with axes of size 0 or 1 an operation and its derivatives compute as with others, eagerly and compiled.

Thin cases are made of the catalogue's cases: one size of the operands' shapes becomes 0 or 1, wherever it stands. Most
primitives take that, and others refuse it by an error of the project's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import tracer
from tests.laws.cases import Case, cases_of
from tests.laws.sampling import THOROUGH, excused, primitives_with, sampled
from tests.laws.values import Array
from tracer.errors import DivisionError, NoRuleError, OutOfBoundsError, TracerError
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Program
from tracer.ir.types import is_differentiable, size, with_shape
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.primitives.catalogue import CATALOGUE
from tracer.trace.array import Array as Handle
from tracer.trace.array import concrete
from tracer.trace.evaluate import evaluate

SIZED = ("limit_indices", "new_sizes", "shape", "sizes", "slice_sizes", "window", "k")  # parameters that hold sizes
FEW = 2  # thin cases of a primitive in one run, one where derivatives are compared


def thin_cases(primitive: Primitive, *, smooth: bool) -> Iterator[Case]:
    """Cases with a size replaced by 0 or 1 in all operands, with and without the same change of the parameters.

    The primitive may refuse them. smooth: only those whose derivatives are compared.
    """
    for case in cases_of(primitive.name):
        if case.body is not None or (smooth and (case.smooth is None or not case.is_exact_enough)):
            continue
        sizes = {n for type in case.types for n in type.shape}
        if min(sizes, default=2) < 2:
            yield case
        for old in sorted(n for n in sizes if n > 1):
            for new in (0, 1):
                types = tuple(with_shape(t, tuple(new if n == old else n for n in t.shape)) for t in case.types)
                given = case.params.items()
                params = {name: _resized(value, old, new) if name in SIZED else value for name, value in given}
                for chosen in (case.params, params) if params != case.params else (params,):
                    yield replace(case, types=types, params=chosen)


def _resized(value: Any, old: int, new: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_resized(v, old, new) for v in value)
    return new if value == old else value


def _is_valid(case: Case) -> bool:
    """Whether the primitive takes the operands; any error but the project's own is a defect."""
    try:
        types = [*case.program.input_types, *case.program.output_types]
    except TracerError:
        return False
    return all(size(t) <= 200 for t in types)


def _has_values(case: Case, *, smooth: bool) -> bool:
    """Whether values can be drawn: some draws need an element, or as many numbers as indices."""
    rng = np.random.default_rng(0)
    try:
        case.draw_smooth(rng) if smooth else case.draw(rng)
    except (ValueError, AssertionError):
        return False
    return True


def has_thin_cases(primitive: Primitive) -> bool:
    if isinstance(primitive.jvp, NoRule) and primitive.linearize is None:
        return False
    return any(case.smooth is not None and case.body is None for case in cases_of(primitive.name))


@primitives_with(lambda p: has_thin_cases(p) and not excused(p, "transpose"), "jvp")
@sampled(1)
def test_derivatives_of_thin_shapes_agree_in_all_ways(primitive: Primitive, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in some_of(primitive, rng, FEW // 2, smooth=True):
        check_thin(case, rng, twice=THOROUGH or CATALOGUE.index(primitive) % 2 == 0)


@primitives_with(lambda p: any(case.body is None for case in cases_of(p.name)), "backends")
@sampled(1)
def test_passes_keep_programs_of_thin_shapes(primitive: Primitive, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in some_of(primitive, rng, 5 * FEW, smooth=False):
        xs = case.draw(rng)
        try:
            expected = run_reference(case.program, xs)
        except (OutOfBoundsError, DivisionError):  # operands are drawn for the sizes before
            continue
        for a, b in zip(run_reference(optimize(case.program, verify=True), xs), expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), repr(case)
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=repr(case))


def some_of(primitive: Primitive, rng: np.random.Generator, count: int, *, smooth: bool) -> Iterator[Case]:
    """Return so many of the thin cases that the primitive takes, all of them under the thorough profile."""
    cases = list(thin_cases(primitive, smooth=smooth))
    taken = (cases[n] for n in rng.permutation(len(cases)) if _is_taken(cases[n], smooth=smooth))
    return taken if THOROUGH else itertools.islice(taken, count)


def _is_taken(case: Case, *, smooth: bool) -> bool:
    return _is_valid(case) and _has_values(case, smooth=smooth)


def check_thin(case: Case, rng: np.random.Generator, *, twice: bool) -> None:
    """Gradients, those of gradients if `twice`, and both of a batch, agree eagerly and compiled."""
    program, xs = case.program, case.draw_smooth(rng)
    active = [is_differentiable(type) for type in program.input_types]
    if not any(active) or not any(map(is_differentiable, program.output_types)):
        return
    weights = [rng.standard_normal(type.shape) for type in program.output_types]  # type: ignore[union-attr]
    moving = [concrete(np.array(x)) for x, on in zip(xs, active, strict=True) if on]
    f = scalar_function(program, xs, active, weights)
    first = tracer.grad(f, argnums=tuple(range(len(moving))))

    def size_of_gradient(*moving: Handle) -> Any:
        return sum(abs((g * g).sum()) for g in first(*moving))

    second = tracer.grad(size_of_gradient, argnums=tuple(range(len(moving))))
    stacked = [np.stack([x, x]) for x in map(np.asarray, moving)]
    try:
        once = [first(*moving), tracer.jit(first)(*moving), *_halves(tracer.vmap(first)(*stacked))]
        again = [second(*moving), *_halves(tracer.jit(tracer.vmap(second))(*stacked))] if twice else [()]
    except (NoRuleError, OutOfBoundsError):  # indices are drawn for the sizes before
        return
    except Exception as error:
        raise AssertionError(f"{case!r}: {type(error).__name__}") from error
    for found in (once, again):
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                assert a.shape == b.shape, repr(case)
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=repr(case))


def scalar_function(program: Program, xs: Sequence[Array], active: Sequence[bool], weights: Sequence[Array]) -> Any:
    """Return a real function of the program's differentiable inputs: the weighted sum of its differentiable results."""

    def f(*moving: Handle) -> Any:
        given = iter(moving)
        operands = [next(given) if on else concrete(np.array(x)) for x, on in zip(xs, active, strict=True)]
        results = evaluate(program, operands)
        pairs = zip(results, weights, program.output_types, strict=True)
        total = sum((y * w).sum() for y, w, type in pairs if is_differentiable(type))
        return total.real if total.dtype.kind == "c" else total

    return f


def _halves(stacks: Sequence[Any]) -> list[list[Any]]:
    return [[stack[i] for stack in stacks] for i in (0, 1)]
