"""tracer.scipy.linalg beside scipy.linalg: values, compiled values, stacks, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tests.laws.differences import difference
from tracer.errors import ArgumentError, MatrixError, ShapeError
from tracer.scipy import linalg

RNG = np.random.default_rng(7)
N = 5
GENERAL = RNG.standard_normal((N, N)) + 3 * np.eye(N)[[1, 0, 2, 4, 3]]
POSITIVE = GENERAL @ GENERAL.T + np.eye(N)
MOVED = GENERAL + 1j * RNG.standard_normal((N, N))
B, C = RNG.standard_normal(N), RNG.standard_normal((N, 3))

BLOCKS = (GENERAL[:2, :3], GENERAL[:2, :2], C[0])

CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "block_diag": (lambda la, *blocks: la.block_diag(*blocks), BLOCKS),
    "block_diag of numbers": (lambda la, a, b: la.block_diag(2, a, b), BLOCKS[1:]),
    "toeplitz": (lambda la, c, r: la.toeplitz(c, r), (B, C[0])),
    "toeplitz of a column": (lambda la, c: la.toeplitz(c), (MOVED[0],)),
    "cholesky": (lambda la, a: la.cholesky(a), (POSITIVE,)),
    "cholesky lower": (lambda la, a: la.cholesky(a, lower=True), (POSITIVE,)),
    "cho_solve": (lambda la, a, b: la.cho_solve(la.cho_factor(a), b), (POSITIVE, B)),
    "cho_solve lower": (lambda la, a, b: la.cho_solve(la.cho_factor(a, lower=True), b), (POSITIVE, C)),
    "cho_solve complex": (lambda la, a, b: la.cho_solve(la.cho_factor(a), b), (MOVED @ MOVED.conj().T, B + 0j)),
    "det": (lambda la, a: la.det(a), (GENERAL,)),
    "inv": (lambda la, a: la.inv(a), (GENERAL,)),
    "lu": (lambda la, a: la.lu(a), (GENERAL,)),
    "lu wide": (lambda la, a: la.lu(a[:3]), (GENERAL,)),
    "lu tall": (lambda la, a: la.lu(a[:, :3], permute_l=True), (GENERAL,)),
    "lu_factor": (lambda la, a: la.lu_factor(a), (GENERAL,)),
    **{
        f"lu_solve {trans}": (lambda la, a, b, t=trans: la.lu_solve(la.lu_factor(a), b, trans=t), (MOVED, C + 1j))
        for trans in (0, 1, 2)
    },
    "lu_solve vector": (lambda la, a, b: la.lu_solve(la.lu_factor(a), b), (GENERAL, B)),
    "solve": (lambda la, a, b: la.solve(a, b), (GENERAL, B)),
    "solve pos": (lambda la, a, b: la.solve(a, b, assume_a="pos"), (POSITIVE, C)),
    "solve pos lower": (lambda la, a, b: la.solve(a, b, assume_a="pos", lower=True), (POSITIVE, B)),
    "solve sym": (lambda la, a, b: la.solve(a, b, assume_a="sym"), (GENERAL, B)),
    "solve her": (lambda la, a, b: la.solve(a, b, assume_a="her", lower=True), (MOVED + 9 * np.eye(N), B + 0j)),
    **{
        f"solve_triangular {trans} {lower} {unit}": (
            lambda la, a, b, t=trans, lo=lower, u=unit: la.solve_triangular(a, b, trans=t, lower=lo, unit_diagonal=u),
            (MOVED, C + 1j),
        )
        for trans in (0, "T", "C") for lower in (False, True) for unit in (False, True)
    },
}  # fmt: skip


def agrees(got: Any, expected: Any) -> None:
    for a, b in zip(tracer.tree.leaves(got), tracer.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CALLS)
def test_values_alone_compiled_and_in_batches_are_scipys(name: str) -> None:
    call, operands = CALLS[name]
    expected = call(scipy.linalg, *operands)
    ours = lambda *xs: call(tracer.scipy.linalg, *xs)  # noqa: E731
    agrees(ours(*map(tnp.asarray, operands)), expected)
    agrees(tracer.jit(ours)(*operands), expected)
    batched = tracer.jit(tracer.vmap(ours))(*(np.stack([x, x * 1.25]) for x in operands))
    agrees(tracer.tree.map(lambda y: y[0], batched), expected)


SMOOTH = [name for name, (_, xs) in CALLS.items() if name != "lu_factor" and all(x.dtype.kind == "f" for x in xs)]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_differences(name: str, rng: np.random.Generator) -> None:
    call, operands = CALLS[name]

    def total(la: Any, *xs: Any) -> Any:
        return sum((y * np.cos(np.arange(y.size)).reshape(y.shape)).sum() for y in tracer.tree.leaves(call(la, *xs)))

    directions = [rng.standard_normal(x.shape) for x in operands]
    ((slope, _),) = difference(lambda xs: [np.asarray(total(scipy.linalg, *xs))], operands, directions)
    gradient = tracer.jit(tracer.grad(lambda *xs: total(tracer.scipy.linalg, *xs), argnums=tuple(range(len(operands)))))
    found = sum(np.sum(g * d) for g, d in zip(gradient(*operands), directions, strict=True))
    assert float(found) == pytest.approx(float(slope), rel=1e-7, abs=1e-8)


def test_one_matrix_solves_stacks() -> None:
    stack = np.stack([C, 2 * C])
    found = tracer.scipy.linalg.solve_triangular(POSITIVE, stack, lower=True)
    agrees(found, np.stack([scipy.linalg.solve_triangular(POSITIVE, c, lower=True) for c in stack]))


def test_mistakes_are_told() -> None:
    with pytest.raises(ArgumentError, match=r"^solve_triangular at .*: trans is 0 or 'N', 1 or 'T', 2 or 'C'\n  got 3"):
        tracer.scipy.linalg.solve_triangular(GENERAL, B, trans=3)
    with pytest.raises(ArgumentError, match=r"^solve at .*: no such kind of matrix\n  got assume_a='banded'\n  help: "):
        tracer.scipy.linalg.solve(GENERAL, B, assume_a="banded")
    with pytest.raises(MatrixError, match=r"^cho_factor at .*: Matrix is not positive definite\n  got f64\[5,5\]\n"):
        tracer.scipy.linalg.cho_factor(-POSITIVE)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("size", [1e-3, 0.3, 3.0, 30.0])
def test_exponentials_of_every_size(dtype: str, size: float) -> None:
    a = (MOVED if dtype.startswith("c") else GENERAL) * (size / np.abs(MOVED).sum(0).max())
    a, single = a.astype(dtype), dtype in ("float32", "complex64")
    expected = scipy.linalg.expm(a.astype("complex128"))
    for way in (linalg.expm, tracer.jit(linalg.expm)):
        found = way(a)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=np.abs(expected).max() * (1e-5 if single else 1e-13))


def test_exponentials_in_stacks_and_at_the_edges() -> None:
    stack = np.stack([GENERAL, 30 * GENERAL, 1e-9 * GENERAL])[:, None]
    expected = scipy.linalg.expm(stack)
    for way in (linalg.expm, tracer.jit(linalg.expm), tracer.jit(tracer.vmap(linalg.expm))):
        np.testing.assert_allclose(way(stack), expected, rtol=1e-9, atol=1e-12)
    assert linalg.expm(np.zeros((2, 2), int)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert linalg.expm(np.zeros((3, 0, 0))).shape == (3, 0, 0)
    for wild in (np.full((2, 2), np.nan), np.full((2, 2), np.inf), 1e7 * np.eye(2)):
        assert np.isnan(linalg.expm(wild)).all()
    assert np.isnan(linalg.expm(10 * np.eye(2), max_squarings=0)).all()
    np.testing.assert_allclose(
        linalg.expm(np.triu(GENERAL), upper_triangular=True), scipy.linalg.expm(np.triu(GENERAL))
    )
    with pytest.raises(ShapeError, match=r"expm at .* takes square matrices"):
        linalg.expm(np.ones((2, 3)))


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_derivatives_of_exponentials(size: float) -> None:
    """Fréchet's, by SciPy's block method; and a second one, a @ a @ expm(a) along a."""
    a, e = size * GENERAL / 5, RNG.standard_normal((N, N))
    forward = tracer.jvp(linalg.expm, (tnp.asarray(a),), (tnp.asarray(e),))[1]
    np.testing.assert_allclose(forward, scipy.linalg.expm_frechet(a, e, compute_expm=False), rtol=1e-9)
    (backward,) = tracer.jit(lambda a, e: tracer.vjp(linalg.expm, a)[1](e))(a, e)
    np.testing.assert_allclose(backward, scipy.linalg.expm_frechet(a.T, e, compute_expm=False), rtol=1e-9)
    second = tracer.grad(tracer.grad(lambda t: linalg.expm(t * a)[0, 1]))(1.0)
    np.testing.assert_allclose(second, (a @ a @ scipy.linalg.expm(a))[0, 1], rtol=1e-9)
