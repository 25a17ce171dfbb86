"""Decompositions beside NumPy's, alone, compiled and in batches; derivatives; equal values; what has no answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering
from tests.laws.differences import difference
from tracer.errors import ArgumentError, MatrixError, ShapeError

RNG = np.random.default_rng(11)
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (3, 18, 18), (40, 40)]
LA = tnp.linalg


def draw(shape: tuple[int, ...], dtype: str) -> Any:
    values = RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if dtype[0] == "c" else 0)
    return values.astype(dtype)


def adjoint(x: Any) -> Any:
    return np.swapaxes(np.conj(x), -1, -2)


def hermitian(x: Any) -> Any:
    return x @ adjoint(x) - np.eye(x.shape[-2], dtype=x.dtype)


def near(got: Any, expected: Any, dtype: str) -> None:
    allowed = 2e-3 if dtype in ("f4", "c8") else 1e-9
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=allowed, atol=allowed)


def ways(function: Callable[..., Any], *operands: Any) -> list[Any]:
    """The results of a call, and of the compiled and the batched one."""
    batch = [np.stack([x, x]) for x in operands]
    batched = tracer.jit(tracer.vmap(function))(*batch)
    return [
        function(*map(tnp.asarray, operands)), tracer.jit(function)(*operands),
        tracer.tree.map(lambda y: y[0], batched),
    ]  # fmt: skip


VALUES: dict[str, Callable[[Any, Any], Any]] = {
    "svdvals": lambda la, x: la.svdvals(x),
    "svd without vectors": lambda la, x: la.svd(x, compute_uv=False),
    "pinv": lambda la, x: la.pinv(x),
    "pinv of low rank": lambda la, x: la.pinv(x, rcond=0.5),
    "matrix_rank": lambda la, x: la.matrix_rank(x),
    "matrix_rank above": lambda la, x: la.matrix_rank(x, tol=1.0),
    "cond": lambda la, x: la.cond(x),
    "cond -2": lambda la, x: la.cond(x, -2),
    **{f"norm {p}": lambda la, x, p=p: la.matrix_norm(x, ord=p) for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)},
    "norm of any axes": lambda la, x: la.norm(x, 2, axis=(-1, 0)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_numpys(shape: tuple[int, ...]) -> None:
    names = [name for name, other in covering(VALUES, SHAPES) if other == shape]  # one program computes them
    for dtype in ("f8", "c8") if shape[-1] % 2 else ("f4", "c16"):
        x = draw(shape, dtype)
        for found in ways(lambda x: [VALUES[name](LA, x) for name in names], x):
            for name, got in zip(names, found, strict=True):
                expected = VALUES[name](np.linalg, x)
                near(got, expected, dtype)
                assert got.dtype == expected.dtype or np.asarray(expected).dtype.kind == "i", name


SQUARES: dict[str, Callable[[Any, Any], Any]] = {
    "eigvalsh": lambda la, x: la.eigvalsh(x),
    "eigvalsh of a triangle": lambda la, x: la.eigvalsh(x * np.triu(np.ones(x.shape[-2:])).astype(x.dtype), "U"),
    "matrix_rank": lambda la, x: la.matrix_rank(x, hermitian=True),
    "pinv": lambda la, x: la.pinv(x, hermitian=True),
    "svd": lambda la, x: la.svd(x, hermitian=True, compute_uv=False),
    **{f"cond {p}": lambda la, x, p=p: la.cond(x, p) for p in ("fro", "nuc", 1, -1, np.inf)},
}


KINDS = ["f8", "c16", "c8"]


@pytest.mark.parametrize("dtype", KINDS)
def test_values_of_hermitian_matrices_are_numpys(dtype: str) -> None:
    names = [name for name, other in covering(SQUARES, KINDS) if other == dtype]
    shapes = [(4, 4), (2, 3, 3), (1, 1)]
    if not THOROUGH:
        del shapes[KINDS.index(dtype) - 1]
    for shape in shapes:
        x = hermitian(draw(shape, dtype))
        for found in ways(lambda x: [SQUARES[name](LA, x) for name in names], x):
            for name, got in zip(names, found, strict=True):
                near(got, SQUARES[name](np.linalg, x), dtype)


@pytest.mark.parametrize(("shape", "dtype"), covering(SHAPES, ["f8", "c16", "f4", "c8"], least=14))
def test_factors_multiply_to_the_matrix_and_are_orthonormal(shape: tuple[int, ...], dtype: str) -> None:
    x = draw(shape, dtype)
    k = min(shape[-2:])
    square = shape[-1] == shape[-2]

    def factors(x: Any) -> Any:
        """All of them, of one program."""
        of_square = (LA.eigh(x @ x.mT.conj() - tnp.eye(x.shape[-2], dtype=x.dtype)), LA.eig(x)) if square else ()
        svds = [LA.svd(x, full_matrices=full) for full in (False, True)]
        return svds, [LA.qr(x, mode=mode) for mode in ("reduced", "complete")], of_square

    for svds, qrs, of_square in ways(factors, x):
        for full, found in zip((False, True), svds, strict=True):
            u, s, vh = map(np.asarray, found)
            assert [y.shape for y in (u, s, vh)] == [y.shape for y in np.linalg.svd(x, full_matrices=full)]
            near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, dtype)
            near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])), dtype)
        for mode, found in zip(("reduced", "complete"), qrs, strict=True):
            near(found.Q, np.linalg.qr(x, mode).Q, dtype)
            near(found.R, np.linalg.qr(x, mode).R, dtype)
        if square:
            (values, vectors), (roots, columns) = of_square
            near(vectors * np.asarray(values)[..., None, :] @ adjoint(np.asarray(vectors)), hermitian(x), dtype)
            assert roots.dtype == np.result_type(x.dtype, "c8")
            near(x @ np.asarray(columns), columns * np.asarray(roots)[..., None, :], dtype)
            near(np.sort(roots), np.sort(np.linalg.eigvals(x)), dtype)
    near(LA.qr(x, "r"), np.linalg.qr(x, "r"), dtype)
    for got, theirs in zip(LA.qr(x, "raw"), np.linalg.qr(x, "raw"), strict=True):
        near(got, theirs, dtype)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 0, 0), (0, 3, 2)])
def test_of_nothing_results_have_numpys_shapes(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    calls: list[Callable[[Any, Any], Any]] = [
        lambda la, x: la.svd(x), lambda la, x: la.svd(x, full_matrices=False), lambda la, x: la.svdvals(x),
        lambda la, x: la.qr(x), lambda la, x: la.qr(x, "complete"), lambda la, x: la.matrix_rank(x),
    ]  # fmt: skip
    if shape[-1] == shape[-2]:
        calls += [lambda la, x: la.eigh(x), lambda la, x: la.eigvalsh(x), lambda la, x: la.eigvals(x)]
    for call in calls:
        expected = tracer.tree.leaves(call(np.linalg, x))
        for got in (call(LA, x), tracer.jit(partial(call, LA))(x)):
            for a, b in zip(tracer.tree.leaves(got), expected, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("sizes", "dtype"), covering([(4, 4), (6, 3), (3, 6)], ["f8", "c16"], least=4))
def test_least_squares_are_numpys(sizes: tuple[int, int], dtype: str) -> None:
    a, b = draw(sizes, dtype), draw((sizes[0], 2), dtype)
    low = a.copy()
    low[:, 1] = low[:, 0]
    for matrix in (a, low):
        for side in (b, b[:, 0]):
            expected = np.linalg.lstsq(matrix, side)
            for got in ways(LA.lstsq, matrix, side):
                for place in (0, 2, 3):
                    near(got[place], expected[place], dtype)
    near(LA.lstsq(a, b)[1], np.linalg.lstsq(a, b)[1], dtype)


def test_factors_solve_where_the_rank_is_surely_full_and_singular_values_elsewhere() -> None:
    left, right = (np.linalg.qr(draw((n, n), "f8"))[0] for n in (30, 18))
    b, even = draw((30,), "f8"), np.linspace(1, 2, 18)
    solve, inverse = tracer.jit(lambda a, rcond: LA.lstsq(a, b, rcond)), tracer.jit(LA.pinv)
    for least, rcond in (
        (1.0, 1e-10),
        (1e-7, 1e-10),
        (1e-9, 1e-10),
        (1e-11, 1e-10),
        (0.0, 1e-10),
        (1e-3, -1),
        (1.0, 0.6),
    ):
        a = (left[:, :18] * np.append(even[1:], least)) @ right
        got, expected = solve(a, rcond), np.linalg.lstsq(a, b, rcond)
        assert got[2] == expected[2], f"{least}: rank"
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-12 / max(least, 1e-10), atol=1e-13 / max(least, 1e-4))
        np.testing.assert_allclose(got[3], expected[3], atol=1e-14)
        if not 0 < least < 1e-9:
            expected = np.linalg.pinv(a, 1e-13)
            np.testing.assert_allclose(inverse(a), expected, atol=1e-15 * np.sum(expected**2))
    stack = np.stack([(left[:, :18] * np.append(even[1:], least)) @ right for least in (1.0, 0.0)])
    np.testing.assert_allclose(inverse(stack), np.linalg.pinv(stack, 1e-12), atol=1e-13)
    np.testing.assert_array_equal(inverse(stack)[0], inverse(stack[[0, 0]])[0])


def test_sides_of_one_matrix_are_columns_of_one_problem() -> None:
    a, sides = draw((6, 3), "f8"), draw((4, 6), "f8")
    solve = tracer.vmap(lambda b: LA.lstsq(a, b)[0])
    assert "f64[3,4] = lstsq(" in str(tracer.jit(solve).lower(sides).program())
    np.testing.assert_allclose(solve(sides), np.linalg.lstsq(a, sides.T)[0].T, atol=1e-13)


def gauge(x: Any, of: str) -> Any:
    """Functions of vectors that do not depend on their phases."""
    weights = tnp.arange(1.0, 1 + min(x.shape[-2:]))
    if of == "eigh":
        values, vectors = LA.eigh(x + x.mT.conj())
        return values, vectors * weights @ vectors.mT.conj()
    if of == "eig":
        values, vectors = LA.eig(x)
        return values, vectors * weights @ vectors.mT.conj()
    u, s, vh = LA.svd(x, full_matrices=False)
    return u * weights @ vh, s


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda x: gauge(x[:3, :3], "eigh"),
    "eig": lambda x: gauge(x[:3, :3], "eig"),
    "svd": lambda x: gauge(x, "svd"),
    "qr": LA.qr,
    "qr wide": lambda x: LA.qr(x.mT),
    "pinv": LA.pinv,
    "lstsq": lambda x: LA.lstsq(x, x[:, 0] ** 2)[:2],
    "nuc": lambda x: LA.matrix_norm(x, ord="nuc"),
    "cond": LA.cond,
    "low rank": lambda x: LA.pinv(x[:, :2] @ x[:2, :]),
}


@pytest.mark.parametrize(("name", "dtype"), covering(SMOOTH, ["f8", "c16"], least=14))
def test_hessians_are_differences_of_gradients(name: str, dtype: str) -> None:
    def loss(x: Any) -> Any:
        return sum(tnp.sum(tnp.abs(y + 0.3) ** 2) for y in tracer.tree.leaves(SMOOTH[name](x)))

    def parts(x: Any) -> Any:
        return loss(x[0] + 1j * x[1] if dtype == "c16" else x[0])

    x = np.stack([draw((4, 3), "f8"), draw((4, 3), "f8")])
    direction = RNG.standard_normal(x.shape)
    gradient = tracer.jit(tracer.grad(parts))
    for function, derived in (
        (lambda xs: [np.asarray(parts(tnp.asarray(xs[0])))], lambda: np.sum(gradient(x) * direction)),
        (
            lambda xs: [np.asarray(gradient(xs[0]))],
            lambda: tracer.jit(lambda x, dx: tracer.jvp(tracer.grad(parts), (x,), (dx,))[1])(x, direction),
        ),
    ):
        ((expected, _),) = difference(function, [x], [direction])
        np.testing.assert_allclose(derived(), expected, rtol=2e-5, atol=2e-5)


def test_equal_eigenvalues_leave_gradients_of_invariant_functions_finite_and_right() -> None:
    basis = np.linalg.qr(draw((5, 5), "f8"))[0]
    x = basis * [1.0, 1.0, 1.0, 2.0, 2.0] @ basis.T

    def projector(x: Any) -> Any:
        """The share of a direction in the space of the lower eigenvalue."""
        _, vectors = LA.eigh(x)
        return tnp.sum((vectors[:, :3].mT @ basis[:, 0] + vectors[:, :3].mT @ basis[:, 3]) ** 2)

    for f, invariant in ((projector, None), (lambda x: tnp.sum(LA.eigvalsh(x) ** 3), lambda x: 3 * x @ x)):
        found = np.asarray(tracer.jit(tracer.grad(f))(x))
        if invariant is not None:
            np.testing.assert_allclose(found, invariant(x), atol=1e-9)
        else:  # P moves by the part of dA between both spaces, over the difference of the eigenvalues
            lower, upper = basis[:, :3] @ basis[:, :3].T, basis[:, 3:] @ basis[:, 3:].T
            given = basis[:, 0] + basis[:, 3]
            whole = -2 * lower @ np.outer(given, given) @ upper
            np.testing.assert_allclose(found, (whole + whole.T) / 2, atol=1e-9)
    for shape in ((3, 3), (4, 3)):
        same = np.eye(*shape) * 2.0
        for g in (lambda x: LA.matrix_norm(x, ord="nuc"), lambda x: tnp.sum(LA.svd(x, full_matrices=False).S ** 2)):
            assert np.isfinite(tracer.grad(g)(same)).all()
        np.testing.assert_allclose(
            tracer.grad(lambda x: LA.matrix_norm(x, ord="nuc"))(same), np.eye(*shape), atol=1e-12
        )


def test_uplo_and_symmetrize_input_choose_what_is_read() -> None:
    x = np.array([[1.0, 7.0], [2.0, 3.0]])
    lower, upper, mean = [[1, 2], [2, 3]], [[1, 7], [7, 3]], [[1, 4.5], [4.5, 3]]
    for given, read in (
        ({"UPLO": "L"}, lower), ({"UPLO": "u"}, upper), ({}, mean), ({"UPLO": "U", "symmetrize_input": True}, mean),
        ({"symmetrize_input": False}, lower),
    ):  # fmt: skip
        np.testing.assert_allclose(LA.eigvalsh(x, **given), np.linalg.eigvalsh(read))
        np.testing.assert_allclose(LA.eigh(x, **given).eigenvalues, np.linalg.eigvalsh(read))
    with pytest.raises(ArgumentError, match=r"^eigh at .*: UPLO is \"L\" or \"U\"\n  got 'X'"):
        LA.eigh(x, "X")


@pytest.mark.parametrize(
    "name", ["eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "pinv", "cond", "matrix_rank"]
)
def test_elements_that_are_not_finite_raise_alone_and_are_lost_compiled(name: str) -> None:
    call = getattr(LA, name)
    for bad in (np.nan, np.inf):
        stack = np.stack([np.eye(3), np.where(np.eye(3) > 0, bad, 0)])
        with pytest.raises(np.linalg.LinAlgError, match=rf"^{name} at test_decompositions\.py:\d+: .*\n.*, at \[1\]\n"):
            call(stack)
        for result in tracer.tree.leaves(tracer.jit(call)(stack)) if name != "matrix_rank" else ():
            assert np.isfinite(result[0]).all()
            assert not np.isfinite(result[1]).all()
    with pytest.raises(MatrixError, match=r"^lstsq at .*: SVD did not converge"):
        LA.lstsq(np.full((2, 2), np.nan), np.ones(2))


def test_shapes_and_modes_that_do_not_fit_are_told() -> None:
    for name in ("eigh", "eig", "eigvals", "eigvalsh"):
        with pytest.raises(ShapeError, match=rf"^{name} at .* takes square matrices in the last two axes\n  got f64"):
            getattr(LA, name)(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match=r"^qr at .*: no such mode\n  got 'full'\n"):
        LA.qr(np.eye(2), "full")
    with pytest.raises(ShapeError, match=r"^lstsq at .* takes a matrix \[m, n\] and b"):
        LA.lstsq(np.eye(2), np.ones(3))
    with pytest.raises(ShapeError, match=r"^cond at .* takes matrices with elements\n  got f64\[0,2\]"):
        LA.cond(np.ones((0, 2)))


def test_principal_components_have_a_gradient_under_jit() -> None:
    x = draw((30, 4), "f8")

    def explained(x: Any) -> Any:
        values = LA.svdvals(x - x.mean(0)) ** 2
        return values[:2].sum() / values.sum()

    direction = RNG.standard_normal(x.shape)
    ((expected, _),) = difference(lambda xs: [np.asarray(explained(tnp.asarray(xs[0])))], [x], [direction])
    found = np.sum(tracer.jit(tracer.grad(explained))(x) * direction)
    assert float(found) == pytest.approx(float(expected), rel=1e-7)
