"""tracer.scipy.linalg beside scipy.linalg: values, compiled values, stacks, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering, each
from tests.laws.differences import difference
from tracer.errors import ArgumentError, MatrixError, NoRuleError, ShapeError
from tracer.scipy import linalg

RNG = np.random.default_rng(7)
N = 5
GENERAL = RNG.standard_normal((N, N)) + 3 * np.eye(N)[[1, 0, 2, 4, 3]]
POSITIVE = GENERAL @ GENERAL.T + np.eye(N)
MOVED = GENERAL + 1j * RNG.standard_normal((N, N))
B, C = RNG.standard_normal(N), RNG.standard_normal((N, 3))

BLOCKS = (GENERAL[:2, :3], GENERAL[:2, :2], C[0])

HERMITIAN = MOVED + MOVED.conj().T
LINE = RNG.standard_normal(4)
CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "circulant": (lambda la, c: la.circulant(c), (B,)),
    "companion": (lambda la, c: la.companion(c), (B,)),
    **{f"convolution_matrix {m}": (lambda la, c, m=m: la.convolution_matrix(c, 3, m), (B,))
       for m in ("full", "same", "valid")},
    "eigvalsh": (lambda la, a: la.eigh(a, eigvals_only=True), (GENERAL,)),
    "eigvalsh upper": (lambda la, a: la.eigh(a, lower=False, eigvals_only=True), (HERMITIAN,)),
    **{
        f"eigvalsh {kind}": (lambda la, a, b, k=kind: la.eigh(a, b, eigvals_only=True, type=k), (GENERAL, POSITIVE))
        for kind in (1, 2, 3)
    },
    "eigh_tridiagonal": (lambda la, d, e: la.eigh_tridiagonal(d, e, eigvals_only=True), (B, LINE)),
    "eigh_tridiagonal some": (
        lambda la, d, e: la.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2)), (B, LINE)
    ),
    "expm_frechet": (lambda la, a, b: la.expm_frechet(a, b), (GENERAL, POSITIVE)),
    "fiedler": (lambda la, c: la.fiedler(c), (B,)),
    "fiedler_companion": (lambda la, c: la.fiedler_companion(c), (B,)),
    "funm": (lambda la, a: la.funm(a, np.sin if la is scipy.linalg else tnp.sin), (MOVED,)),
    "hankel": (lambda la, c, r: la.hankel(c, r), (B, C[0])),
    "hankel of a column": (lambda la, c: la.hankel(c), (MOVED[0],)),
    "hessenberg": (lambda la, a: la.hessenberg(a, calc_q=True), (MOVED,)),
    "leslie": (lambda la, f, s: la.leslie(f, s), (B, LINE)),
    "logm": (lambda la, a: la.logm(a), (MOVED,)),
    "polar": (lambda la, a: la.polar(a), (MOVED,)),
    "polar left": (lambda la, a: la.polar(a[:3], "left"), (GENERAL,)),
    **{
        f"qr {mode} {pivoting}": (lambda la, a, m=mode, p=pivoting: la.qr(a[:, :3], mode=m, pivoting=p), (MOVED,))
        for mode in ("full", "economic", "r", "raw") for pivoting in (False, True)
    },
    "qr_multiply": (lambda la, a, c: la.qr_multiply(a, c), (C, GENERAL)),
    "qr_multiply left": (lambda la, a, c: la.qr_multiply(a, c, "left", True, True), (MOVED, C + 1j)),
    "solve_sylvester": (lambda la, a, b, c: la.solve_sylvester(a, b[:3, :3], c), (GENERAL, POSITIVE, C)),
    "solve_sylvester complex": (lambda la, a, b: la.solve_sylvester(a, b, a @ b), (MOVED, POSITIVE + 0j)),
    "sqrtm": (lambda la, a: la.sqrtm(a), (MOVED,)),
    "sqrtm real": (lambda la, a: la.sqrtm(a), (POSITIVE,)),
    "svd": (lambda la, a: la.svd(a, compute_uv=False), (C,)),
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
    if THOROUGH or list(CALLS).index(name) % 2:
        batched = tracer.jit(tracer.vmap(ours))(*(np.stack([x, x * 1.25]) for x in operands))
        agrees(tracer.tree.map(lambda y: y[0], batched), expected)


SMOOTH = [
    name
    for name, (_, xs) in CALLS.items()
    if name != "lu_factor"
    and all(x.dtype.kind == "f" for x in xs)
    and not name.startswith(("expm_frechet", "sqrtm", "qr_multiply"))
]


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


BY_SIZE: dict[str, tuple[Any, ...]] = {
    "dft": (3,), "dft sqrtn": (4, "sqrtn"), "hadamard": (4,), "helmert": (4,), "helmert whole": (3, True),
    "hilbert": (4,), "invhilbert": (4,), "pascal": (4,), "pascal lower": (3, "lower"), "invpascal": (4,),
}  # fmt: skip


@each("name", BY_SIZE)
def test_matrices_of_a_size_are_scipys(name: str) -> None:
    function, given = name.split()[0], BY_SIZE[name]
    agrees(getattr(linalg, function)(*given), getattr(scipy.linalg, function)(*given))
    with pytest.raises(ArgumentError, match=r"^hadamard at .*"):
        linalg.hadamard(3)


@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur_forms_multiply_to_the_matrix(output: str) -> None:
    for a in (GENERAL - 3 * POSITIVE[::-1], MOVED):
        for call in (linalg.schur, tracer.jit(linalg.schur, static_argnums=1)):
            form, basis = map(np.asarray, call(a, output))
            agrees(basis @ form @ basis.conj().T, a)
            agrees(basis.conj().T @ basis, np.eye(N))
            beyond = 1 if output == "complex" or a.dtype.kind == "c" else 2
            agrees(np.tril(form, -beyond), np.zeros((N, N)))
        form, basis = map(np.asarray, linalg.rsf2csf(*linalg.schur(a)))
        agrees(basis @ form @ basis.conj().T, a)
        agrees(np.tril(form, -1), np.zeros((N, N)))


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalised_eigenvectors_solve_their_equation(kind: int) -> None:
    b = MOVED @ MOVED.conj().T + np.eye(N)
    for lower in (True, False):
        call = lambda a, b: linalg.eigh(a, b, lower, type=kind)  # noqa: B023, E731
        for values, vectors in (call(HERMITIAN, b), tracer.jit(call)(HERMITIAN, b)):
            v, w = np.asarray(vectors), np.asarray(values)
            left = {1: HERMITIAN @ v, 2: HERMITIAN @ b @ v, 3: b @ HERMITIAN @ v}[kind]
            agrees(left, (b @ v if kind == 1 else v) * w)
    values, vectors = map(np.asarray, linalg.eigh_tridiagonal(B, LINE + 1j))
    whole = np.diag(B) + np.diag(LINE + 1j, 1) + np.diag(LINE - 1j, -1)
    agrees(whole @ vectors, vectors * values)


DERIVED: dict[str, Any] = {
    "sqrtm": lambda a: linalg.sqrtm(a @ a.T + tnp.eye(N)).real,
    "logm": lambda a: linalg.logm(a @ a.T + tnp.eye(N)).real,
    "funm": lambda a: linalg.funm(a, lambda x: x * tnp.sin(x)).real,
    "polar": linalg.polar,
    "polar of a rotation": lambda a: linalg.polar(a + a.T + 20 * tnp.eye(N)),
    "polar wide": lambda a: linalg.polar(a[:3])[0],
    "solve_sylvester": lambda a: linalg.solve_sylvester(a, a + tnp.eye(N), a.T),
    "householder": lambda a: tracer.lax.linalg.householder_product(a, a[0]),
}


@pytest.mark.parametrize("name", DERIVED)
def test_hessians_of_functions_of_matrices_are_differences(name: str, rng: np.random.Generator) -> None:
    def loss(a: Any) -> Any:
        return sum((y * y * tnp.cos(tnp.arange(y.size)).reshape(y.shape)).sum() for y in tracer.tree.leaves(f(a)))

    f, direction = DERIVED[name], rng.standard_normal((N, N))
    gradient = tracer.jit(tracer.grad(loss))
    ((expected, _),) = difference(lambda xs: [np.asarray(loss(tnp.asarray(xs[0])))], [GENERAL], [direction])
    assert float(np.sum(gradient(GENERAL) * direction)) == pytest.approx(float(expected), rel=1e-6, abs=1e-8)
    ((expected, _),) = difference(lambda xs: [np.asarray(gradient(xs[0]))], [GENERAL], [direction])
    found = tracer.jit(lambda a, da: tracer.jvp(tracer.grad(loss), (a,), (da,))[1])(GENERAL, direction)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_polar_factors_of_equal_singular_values_have_derivatives() -> None:
    direction = np.arange(9.0).reshape(3, 3)
    tangent = tracer.jvp(lambda a: linalg.polar(a)[0], (tnp.eye(3),), (tnp.asarray(direction),))[1]
    agrees(tangent, (direction - direction.T) / 2)


def test_functions_of_matrices_have_derivatives_by_what_they_close_over_and_of_equal_eigenvalues() -> None:
    values = np.array([1.0, 2.0, 3.5])
    matrix = GENERAL[:3, :3] @ np.diag(values) @ np.linalg.inv(GENERAL[:3, :3])
    total = tracer.jit(tracer.grad(lambda p, a: tnp.trace(linalg.funm(a, lambda x: x**p)).real, argnums=(0, 1)))
    by_power, by_matrix = total(2.0, matrix)
    agrees(by_power, (values**2 * np.log(values)).sum())
    agrees(by_matrix, 2 * matrix.T)
    direction = RNG.standard_normal((3, 3))
    for a in (2 * np.eye(3), np.diag([2.0, 2.0, 1.0])):
        tangents = [tracer.jvp(f, (a,), (direction,))[1] for f in (lambda x: linalg.funm(x, tnp.exp).real, linalg.expm)]
        agrees(*tangents)
    assert linalg.funm(np.zeros((0, 0)), tnp.exp).shape == (0, 0)


@pytest.mark.parametrize(
    ("name", "remedy"), [("schur", "eigvals, expm"), ("hessenberg", "eigvals, and solve"), ("tridiagonal", "eigh and")]
)
def test_forms_with_bases_of_choice_name_what_has_derivatives(name: str, remedy: str) -> None:
    form = getattr(tracer.lax.linalg, name)
    with pytest.raises(NoRuleError, match=rf"^derivative of {name} at .*: its basis is a choice; {remedy}"):
        tracer.grad(lambda a: form(a)[0].sum())(POSITIVE)


def test_decompositions_that_do_not_fit_are_told() -> None:
    with pytest.raises(ArgumentError, match=r"^qr at .*: no such mode\n  got 'reduced'\n  help: one of 'full'"):
        linalg.qr(GENERAL, mode="reduced")
    with pytest.raises(ShapeError, match=r"^solve_sylvester at .*: the sizes of the operands do not fit"):
        linalg.solve_sylvester(GENERAL, GENERAL, C)
    with pytest.raises(ArgumentError, match=r"^schur at .*: no such output"):
        linalg.schur(GENERAL, "upper")
    with pytest.raises(ArgumentError, match=r"^eigh_tridiagonal at .*: no such select\n  got 'v'"):
        linalg.eigh_tridiagonal(B, LINE, select="v")
    with pytest.raises(MatrixError, match=r"^eigh at .*: Matrix is not positive definite"):
        linalg.eigh(GENERAL, -np.eye(N))
    with pytest.raises(ShapeError, match=r"^funm at .* takes one matrix\n  got f64\[2,5,5\]"):
        linalg.funm(np.stack([GENERAL, GENERAL]), tnp.exp)


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


@pytest.mark.parametrize(
    ("dtype", "size"), covering(["float64", "float32", "complex128", "complex64"], [1e-3, 0.3, 3.0, 30.0], least=8)
)
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


def test_derivatives_of_exponentials() -> None:
    """Fréchet's, by SciPy's block method; and a second one, a @ a @ expm(a) along a. Sizes share what is compiled."""
    pulled = tracer.jit(lambda a, e: tracer.vjp(linalg.expm, a)[1](e))
    bent = tracer.jit(tracer.grad(tracer.grad(lambda t, a: linalg.expm(t * a)[0, 1])))
    for size in (0.1, 1.0, 10.0):
        a, e = size * GENERAL / 5, RNG.standard_normal((N, N))
        forward = tracer.jvp(linalg.expm, (tnp.asarray(a),), (tnp.asarray(e),))[1]
        np.testing.assert_allclose(forward, scipy.linalg.expm_frechet(a, e, compute_expm=False), rtol=1e-9)
        (backward,) = pulled(a, e)
        np.testing.assert_allclose(backward, scipy.linalg.expm_frechet(a.T, e, compute_expm=False), rtol=1e-9)
        np.testing.assert_allclose(bent(1.0, a), (a @ a @ scipy.linalg.expm(a))[0, 1], rtol=1e-9)


def test_the_permutation_of_complex_factors_is_real() -> None:
    p, lower, _ = linalg.lu(np.array([[1j, 2.0], [4.0, 4.0]]))
    assert (p.dtype, lower.dtype) == (np.float64, np.complex128)


def test_a_helmert_matrix_has_a_row() -> None:
    with pytest.raises(ArgumentError, match=r"^helmert at .*\n  got n=0"):
        linalg.helmert(0)


@each("name", ["pascal", "hilbert", "hadamard", "helmert", "invhilbert", "dft", "invpascal"])
def test_matrices_that_no_memory_holds_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match=rf"^{name} at .*: the matrix is too large\n  got n="):
        getattr(linalg, name)(2**62)


def test_directions_of_expm_frechet_broadcast() -> None:
    a, e = np.diag([1.0, 2.0]), np.arange(8.0).reshape(2, 2, 2)
    for found, expected in zip(linalg.expm_frechet(a, e), scipy.linalg.expm_frechet(a, e), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ShapeError, match="A and E are of one shape"):
        linalg.expm_frechet(np.eye(2), np.ones(2))


def test_roots_and_logarithms_of_stacks_are_those_of_each_matrix() -> None:
    stack = np.stack([MOVED, POSITIVE])
    for function in (linalg.sqrtm, linalg.logm):
        each = [function(matrix) for matrix in stack]
        np.testing.assert_allclose(function(stack), each, rtol=1e-12, atol=1e-12)
