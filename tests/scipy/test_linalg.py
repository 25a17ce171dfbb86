"""tracer.scipy.linalg beside scipy.linalg: values, compiled values, stacks, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tests.laws.differences import difference
from tracer.errors import ArgumentError, MatrixError

RNG = np.random.default_rng(7)
N = 5
GENERAL = RNG.standard_normal((N, N)) + 3 * np.eye(N)[[1, 0, 2, 4, 3]]
POSITIVE = GENERAL @ GENERAL.T + np.eye(N)
MOVED = GENERAL + 1j * RNG.standard_normal((N, N))
B, C = RNG.standard_normal(N), RNG.standard_normal((N, 3))

CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
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
