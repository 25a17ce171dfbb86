"""Cases of orthogonal and spectral decompositions: stacks, rectangles, single elements, nothing at all.

Eigenvalues and singular values are apart, so that vectors are determined up to phases; functions of vectors that
phases change are compared where the phases are LAPACK's, which real numbers have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.laws.cases import WIDE, Case, case, program_case, typed
from tests.laws.values import Array, Draw, direction
from tracer.ir import dtypes
from tracer.ir.dtypes import real_dtype
from tracer.ir.types import Type, storage_type
from tracer.numpy import conj, matrix_transpose
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.base.shapes import iota
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.linalg import least_squares, orthogonal, similarity, spectral
from tracer.primitives.linalg.tridiagonal_solve import tridiagonal_solve

DTYPES = ("f64", "c128", "f32", "c64")
SQUARES = [(3, 3), (5, 4, 4), (1, 1), (0, 0), (0, 2, 2), (3, 12, 12), (2, 0, 0), (33, 33)]
RECTANGLES = [(3, 5), (5, 3), (2, 4, 2), (1, 3), (3, 1), (2, 20, 3), (0, 3, 2), (3, 0), (0, 3)]


def _unitary(rng: np.random.Generator, n: int, is_complex: bool) -> Array:
    x = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if is_complex else 0)
    return np.asarray(np.linalg.qr(x)[0])


def _each(rng: np.random.Generator, type: Type, make: Any) -> Array:
    """A stack of matrices, each made of its sizes."""
    stored = storage_type(type)
    *stack, m, n = stored.shape
    values = np.zeros(stored.shape, stored.dtype)
    for place in np.ndindex(*stack):
        if m * n:
            values[place] = make(rng, m, n, stored.dtype.kind == "c")
    return values


def _apart(rng: np.random.Generator, n: int) -> Array:
    """Values of size 1 and more, at least a half from each other, in any order."""
    return np.asarray(rng.permutation(1 + np.arange(n) + rng.uniform(0, 0.5, n)))


def hermitian(rng: np.random.Generator, type: Type) -> Array:
    """Hermitian matrices with eigenvalues of both signs."""

    def make(rng: np.random.Generator, n: int, _: int, is_complex: bool) -> Array:
        basis = _unitary(rng, n, is_complex)
        return np.asarray(basis * (_apart(rng, n) - n / 2) @ basis.conj().T)

    return _each(rng, type, make)


def any_shape(rng: np.random.Generator, type: Type) -> Array:
    """Matrices with singular values that are apart."""

    def make(rng: np.random.Generator, m: int, n: int, is_complex: bool) -> Array:
        k = min(m, n)
        return np.asarray(
            _unitary(rng, m, is_complex)[:, :k] * _apart(rng, k) @ _unitary(rng, n, is_complex)[:k]
        )  # fmt: skip

    return _each(rng, type, make)


def columns_apart(rng: np.random.Generator, type: Type) -> Array:
    """Columns almost orthogonal and of sizes apart, so that every choice of a column is clear."""

    def make(rng: np.random.Generator, m: int, n: int, is_complex: bool) -> Array:
        k = max(m, n)
        noise = 0.02 * rng.standard_normal((m, n)) + 0.5 * _unitary(rng, k, is_complex)[:m, :n]
        return np.asarray(noise * rng.permutation(1.5 ** np.arange(n)))

    return _each(rng, type, make)


def diagonalizable(rng: np.random.Generator, type: Type) -> Array:
    """General matrices with eigenvalues that are apart: real ones, and pairs where n is above 3."""

    def make(rng: np.random.Generator, n: int, _: int, is_complex: bool) -> Array:
        values = np.diag(_apart(rng, n)).astype(complex if is_complex else float)
        if n > 3:
            values[0, 1], values[1, 0], values[1, 1] = 2.0, -2.0, values[0, 0]
        basis = np.eye(n) + 0.3 * _unitary(rng, n, is_complex)
        return np.asarray(basis @ values @ np.linalg.inv(basis))

    return _each(rng, type, make)


def of_any_rank(rng: np.random.Generator, type: Type) -> Array:
    """Matrices with singular values that are apart, and ones whose least singular value is zero."""
    values = any_shape(rng, type)
    *stack, m, n = values.shape
    for place in np.ndindex(*stack) if m * n else ():
        if rng.random() < 0.5:
            left, sizes, right = np.linalg.svd(values[place], full_matrices=False)
            values[place] -= np.outer(left[:, -1], sizes[-1] * right[-1])
    return values


def bounds(rng: np.random.Generator, type: Type) -> Array:
    """Parts of the largest singular value that no singular value here comes close to."""
    stored = storage_type(type)
    return np.full(stored.shape, 1e-4, stored.dtype)


def factors(rng: np.random.Generator, type: Type) -> Array:
    """Factors of reflectors, at most 1 in size."""
    return np.asarray(0.5 * direction(rng, type), storage_type(type).dtype)


def dominant(rng: np.random.Generator, type: Type) -> Array:
    """Diagonals that dominate those beside them."""
    return np.asarray(5 + direction(rng, type), storage_type(type).dtype)


def three_diagonals(rng: np.random.Generator, type: Type) -> Array:
    """The diagonal between the two beside it."""
    return np.asarray(direction(rng, type) + np.array([0, 5, 0]), storage_type(type).dtype)


def special(usual: Draw) -> Draw:
    """Usual matrices, and now and then one with an element that is not finite, or with zeros of both signs."""

    def draw(rng: np.random.Generator, type: Type) -> Array:
        values = usual(rng, type)
        *stack, m, n = values.shape
        for place in np.ndindex(*stack) if m * n else ():
            kind = rng.choice(["usual", "lost", "diagonal"], p=[0.4, 0.3, 0.3])
            if kind == "lost":
                bad = rng.choice([np.nan, np.inf, -np.inf], 2)
                values[place][rng.integers(m), 0] = complex(*bad) if values.dtype.kind == "c" else bad[0]
            elif kind == "diagonal":
                zeros = rng.choice([0.0, -0.0], (2, m, n))
                values[place].real = np.where(np.eye(m, n) > 0, _apart(rng, n), zeros[0])
                if values.dtype.kind == "c":
                    values[place].imag = zeros[1]
        return values

    return draw


def _weights(n: int) -> Any:
    return 1.0 + iota(dtypes.F64, n)


def _adjoint(x: Any) -> Any:
    return conj(matrix_transpose(x))


def _spectrum(x: Any) -> list[Any]:
    """Functions of a Hermitian matrix that phases do not change."""
    values, vectors = spectral.eigh(x + _adjoint(x))
    weights = _weights(x.shape[-1])
    return [values, vectors * weights @ _adjoint(vectors), spectral.eigvalsh(x + _adjoint(x))]


def _singular(x: Any) -> list[Any]:
    """Functions of singular vectors that phases do not change."""
    values, left, right = spectral.svd(x, full_matrices=True)
    k = min(x.shape[-2:])
    weighted = left[..., :k] * _weights(k)
    rest, beyond = left[..., k:], right[..., k:, :]
    return [
        values, weighted @ right[..., :k, :], weighted @ _adjoint(left[..., :k]), rest @ _adjoint(rest),
        _adjoint(beyond) @ beyond, spectral.svdvals(x),
    ]  # fmt: skip


def _pairs(x: Any) -> list[Any]:
    """Functions of left and right eigenvectors that phases do not change."""
    values, left, right = similarity.eig(x, left=True, right=True)
    weights = _weights(x.shape[-1])
    return [values, right * weights @ _adjoint(right), left * weights @ _adjoint(left)]


def _factored(x: Any) -> list[Any]:
    """Functions of a whole unitary factor that do not depend on the columns beyond those of the matrix."""
    q, r = orthogonal.qr(x, full_matrices=True)
    k = min(x.shape[-2:])
    rest = q[..., k:]
    return [q[..., :k], r, rest @ _adjoint(rest)]


def _bounds_of(a: Any) -> Any:
    return full_like(a, 1e-4, real_dtype(a.dtype), a.shape[:-2])


def _inverses(a: Any) -> list[Any]:
    return [least_squares.pinv(a, _bounds_of(a))]


def _nearest(a: Any, b: Any) -> list[Any]:
    return [least_squares.lstsq(a, b, _bounds_of(a))]


def _system(diagonals: Any, b: Any) -> list[Any]:
    """A tridiagonal system, its diagonals in one operand."""
    return [tridiagonal_solve(*(diagonals[..., i] for i in range(3)), b)]


def decomposition_cases() -> Iterator[Case]:
    """Every dtype, every kind of size, every form."""
    names = "geqrf geqp3 qr householder_product eigh svd geev eig schur hessenberg tridiagonal tridiagonal_solve"
    p = {name: BY_NAME[name] for name in (*names.split(), "pinv", "lstsq")}
    for turn, shape in enumerate([*SQUARES, *RECTANGLES]):
        smooth = 0 < shape[-1] < 6 and 0 < shape[-2] < 6
        for short in DTYPES if turn < 2 or 0 in shape else (*WIDE, DTYPES[turn % 4]):
            t = [typed(short, *shape)]
            draw: Draw | None = any_shape if smooth and short in WIDE else None
            yield case(p["geqrf"], t, any_shape)
            if shape[-2]:
                yield case(p["geqp3"], t, columns_apart)
            for full in (False, True):
                thin = draw if not full or shape[-2] <= shape[-1] else None
                yield case(p["qr"], t, any_shape, thin, full_matrices=full, pivoting=False)
                yield case(
                    p["qr"], t, columns_apart, columns_apart if thin else None, full_matrices=full, pivoting=True
                )
                if 0 not in shape[-2:]:
                    yield case(p["svd"], t, special(any_shape), full_matrices=full, compute_uv=True)
            yield case(p["svd"], t, special(any_shape), draw, full_matrices=False, compute_uv=False)
            if draw is not None:
                yield program_case(p["qr"], t, _factored, any_shape, any_shape)
                yield program_case(p["svd"], t, _singular, special(any_shape), any_shape)
            if shape[-2] >= shape[-1]:
                k = max(shape[-1] - turn % 2, 0)
                of = [*t, typed(short, *shape[:-2], k)]
                yield case(p["householder_product"], of, [direction, factors], [direction, factors] if draw else None)
    yield from _of_squares(p)
    yield from _of_least_squares(p)


def _of_squares(p: Any) -> Iterator[Case]:
    for turn, shape in enumerate([*SQUARES, (9, 2, 2), (400, 3, 3)]):
        for short in DTYPES if turn < 2 or 0 in shape else (*WIDE, DTYPES[turn % 4]):
            t = [typed(short, *shape)]
            smooth = 0 < shape[-1] < 6 and short in WIDE
            yield case(p["eigh"], t, special(hermitian), vectors=True)
            yield case(p["eigh"], t, special(hermitian), hermitian if smooth else None, vectors=False)
            for left, right in ((False, False), (False, True), (True, True)):
                form = {"left": left, "right": right}
                yield case(p["geev"], t, special(diagonalizable), **form)
                yield case(
                    p["eig"], t, special(diagonalizable), diagonalizable if smooth and not right else None, **form
                )
            if smooth:
                yield program_case(p["eigh"], t, _spectrum, special(hermitian), hermitian)
                yield program_case(p["eig"], t, _pairs, special(diagonalizable), diagonalizable)
            for vectors in (False, True):
                yield case(p["schur"], t, special(diagonalizable), vectors=vectors)
            yield case(p["hessenberg"], t, direction)
            for lower in (False, True):
                yield case(p["tridiagonal"], t, hermitian, lower=lower)
            line = typed(short, *shape[:-1])
            for others in (1, 3):
                b = typed(short, *shape[:-1], others)
                yield case(p["tridiagonal_solve"], [line] * 3 + [b], [direction, dominant, direction, direction])
                if smooth and shape[-1] > 1:
                    diagonals = typed(short, *shape[:-1], 3)
                    yield program_case(
                        p["tridiagonal_solve"], [diagonals, b], _system, [three_diagonals, direction],
                        [three_diagonals, direction],
                    )  # fmt: skip


def _of_least_squares(p: Any) -> Iterator[Case]:
    """Small matrices, which go by singular values, and larger ones, which go by factors if their rank is full."""
    for turn, shape in enumerate([*SQUARES, *RECTANGLES, (20, 33), (2, 3, 20)]):
        *stack, m, n = shape
        for short in DTYPES if turn < 1 or 0 in shape else (*WIDE, DTYPES[turn % 4]):
            a, bound = typed(short, *shape), typed({"c64": "f32", "c128": "f64"}.get(short, short), *stack)
            b, draws = typed(short, *stack, m, 1 + turn % 5), [special(of_any_rank), direction, bounds]
            yield case(p["pinv"], [a, bound], draws[::2])
            yield case(p["lstsq"], [a, b, bound], draws)
            if 0 < min(m, n) < 6 and short in WIDE:
                yield program_case(p["pinv"], [a], _inverses, special(of_any_rank), any_shape)
                yield program_case(p["lstsq"], [a, b], _nearest, draws[:2], [any_shape, direction])
