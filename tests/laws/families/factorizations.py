"""Cases of cholesky, lu, triangular_solve and solve: small matrices in lanes, single ones, larger ones by LAPACK."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tests.laws.cases import WIDE, Case, case, typed
from tests.laws.values import Array, Draw, anything, constant, direction
from tracer.ir.types import Type, storage_type
from tracer.primitives.catalogue import BY_NAME

DTYPES = ("f64", "c128", "f32", "c64")
SQUARES = [(3, 3), (5, 3, 3), (1, 1), (0, 0), (0, 2, 2), (2, 17, 17), (9, 5, 5), (2, 0, 0), (131, 3, 3), (37, 37)]
RECTANGLES = [(3, 5), (5, 3), (2, 4, 2), (1, 3), (3, 1), (2, 20, 18), (3, 18, 5)]
SYSTEMS = [  # a, b; turned where it stands on the right
    ((3, 3), (3, 2)), ((5, 3, 3), (5, 3, 1)), ((1, 1), (1, 1)), ((0, 0), (0, 2)), ((2, 2), (2, 0)),
    ((2, 17, 17), (2, 17, 3)), ((9, 5, 5), (9, 5, 5)), ((4, 4), (4, 70)),
    ((131, 3, 3), (131, 3, 2)), ((37, 37), (37, 3)),
]  # fmt: skip


def positive(rng: np.random.Generator, type: Type) -> Array:
    """Well-conditioned positive definite matrices by their lower triangles, anything above them."""
    stored = storage_type(type)
    n = stored.shape[-1]
    factor = 0.4 * direction(rng, type) + 1.5 * np.eye(n)
    whole = factor @ np.swapaxes(factor.conj(), -1, -2) + np.eye(n)
    return np.where(np.tri(n, dtype=bool), whole, anything(rng, type)).astype(stored.dtype)


def smooth_positive(rng: np.random.Generator, type: Type) -> Array:
    """The same, with numbers above the diagonal."""
    return np.where(np.tri(type.shape[-1], dtype=bool), positive(rng, type), direction(rng, type))


def indefinite(rng: np.random.Generator, type: Type) -> Array:
    """Now and then a diagonal element that no positive definite matrix has."""
    values = positive(rng, type)
    n = values.shape[-1]
    for place in np.ndindex(values.shape[:-2]):
        if n and rng.random() < 0.4:
            at = rng.integers(n)
            values[place][at, at] = rng.choice([0.0, -1.0, -np.inf, np.nan])
    return values


def mixed_rows(rng: np.random.Generator, type: Type) -> Array:
    """Rows of a matrix with a dominant diagonal in any order, so that every choice of a row is clear."""
    stored = storage_type(type)
    *stack, m, n = stored.shape
    values = 0.25 * direction(rng, type)
    for place in np.ndindex(*stack):
        sizes = rng.uniform(2, 3, min(m, n)) * rng.choice([-1, 1], min(m, n))
        values[place][np.arange(min(m, n)), np.arange(min(m, n))] += sizes
        values[place] = rng.permutation(values[place])
    return np.asarray(values, stored.dtype)


def one_row(rng: np.random.Generator, type: Type) -> Array:
    """One row, of which nothing is computed."""
    return anything(rng, type)


def singular(rng: np.random.Generator, type: Type) -> Array:
    """A column of zeros."""
    values = mixed_rows(rng, type)
    values[..., :, rng.integers(values.shape[-1])] = 0
    return values


def triangular(beyond: Draw, *, lower: bool) -> Draw:
    """Well-conditioned triangles, and what is beyond them."""

    def draw(rng: np.random.Generator, type: Type) -> Array:
        stored = storage_type(type)
        n = stored.shape[-1]
        inside = 0.4 * direction(rng, type) + 2 * np.eye(n)
        kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        return np.where(kept, inside, beyond(rng, type)).astype(stored.dtype)

    return draw


def factorization_cases() -> Iterator[Case]:
    """Every dtype, every kind of size, every form of a triangular system."""
    cholesky_p, lu_p = BY_NAME["cholesky"], BY_NAME["lu"]
    for turn, shape in enumerate(SQUARES):
        for short in DTYPES if turn < 2 else (*WIDE, DTYPES[turn % 4]):
            small = len(shape) == 2 or shape == (5, 3, 3)
            smooth = smooth_positive if small and short in WIDE else None
            yield case(cholesky_p, [typed(short, *shape)], positive, smooth)
            yield case(cholesky_p, [typed(short, *shape)], indefinite)
    for turn, shape in enumerate([*SQUARES, *RECTANGLES]):
        for short in DTYPES if turn < 2 else (*WIDE, DTYPES[turn % 4]):
            small = short in WIDE and max(shape) < 6
            yield case(lu_p, [typed(short, *shape)], mixed_rows, mixed_rows if small else None)
    for short in DTYPES:
        yield case(lu_p, [typed(short, 1, 4)], one_row)
        yield case(lu_p, [typed(short, 6, 3, 3)], singular)
    yield from _systems()
    for short in ("f64", "f32"):  # systems of one equation, whose solution is what stands on the right
        yield case(
            BY_NAME["solve"], [typed(short, 5, 1, 1), typed(short, 5, 1, 4)], [constant(1), anything],
            transpose_a=False, conjugate_a=False,
        )  # fmt: skip
    for turn, (of_a, of_b) in enumerate(SYSTEMS):
        for number, (transpose, conjugate) in enumerate(product((False, True), repeat=2)):
            for short in ("c128", ("f64", "f32", "c64")[(number + turn) % 3]):
                smooth = [mixed_rows, direction] if short in WIDE and max(of_a) < 6 else None
                yield case(
                    BY_NAME["solve"], [typed(short, *of_a), typed(short, *of_b)], [mixed_rows, direction], smooth,
                    transpose_a=transpose, conjugate_a=conjugate,
                )  # fmt: skip


def _systems() -> Iterator[Case]:
    """Each form on a stack of small systems, and in turn on the others."""
    forms = list(product((True, False), repeat=5))
    for number, (left, lower, transpose, conjugate, unit) in enumerate(forms):
        chosen = [SYSTEMS[1], SYSTEMS[5], SYSTEMS[number % len(SYSTEMS)]]
        for turn, (of_a, of_b) in enumerate(dict.fromkeys(chosen)):
            b = of_b if left else (*of_b[:-2], of_b[-1], of_b[-2])
            for short in ("c128", ("f64", "f32", "c64")[(number + turn) % 3]):
                smooth = short in WIDE and max(of_a) < 6 and of_a != (1, 1)  # of one, with ones: any a is as good
                yield case(
                    BY_NAME["triangular_solve"], [typed(short, *of_a), typed(short, *b)],
                    [triangular(anything, lower=lower), direction],
                    [triangular(direction, lower=lower), direction] if smooth else None,
                    left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit,
                )  # fmt: skip
