"""Solutions, inverses, determinants and Cholesky factors beside NumPy's; singular matrices; second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.counted_calls import python_calls
from tests.grids import covering
from tests.laws.differences import difference
from tracer.errors import DTypeError, MatrixError, ShapeError
from tracer.numpy.linalg import concrete_linalg

DTYPES = ("float64", "float32", "complex128", "complex64", "int64")
CLOSE = {"float32": 2e-3, "complex64": 2e-3}


def matrices(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Matrices whose condition is moderate."""
    rng, n = np.random.default_rng(seed), shape[-1]
    if dtype == "int64":
        return rng.integers(-2, 3, shape) + 9 * np.eye(n, dtype=np.int64)
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "complex" in dtype else 0)
    return (values / max(n, 1) ** 0.5 + 2 * rng.permutation(np.eye(n))).astype(dtype)


def agrees(got: Any, expected: Any, dtype: str) -> None:
    for a, b in zip(tracer.tree.leaves(got), expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=CLOSE.get(dtype, 1e-9), atol=CLOSE.get(dtype, 1e-9))


CALLS = {
    "solve": lambda xp, a, b: xp.linalg.solve(a, b),
    "solve a vector": lambda xp, a, b: xp.linalg.solve(a, b.reshape(-1)[: a.shape[-1]]),
    "solve for more": lambda xp, a, b: xp.linalg.solve(a, b if a.ndim > 2 else xp.stack([b, b + 1])),
    "inv": lambda xp, a, b: xp.linalg.inv(a),
    "det": lambda xp, a, b: xp.linalg.det(a),
    "slogdet": lambda xp, a, b: xp.linalg.slogdet(a),
    "cholesky": lambda xp, a, b: xp.linalg.cholesky(_positive(xp, a)),
    "cholesky upper": lambda xp, a, b: xp.linalg.cholesky(_positive(xp, a), upper=True),
    "matrix_power": lambda xp, a, b: xp.linalg.matrix_power(a, -3),
}


def _positive(xp: Any, a: Any) -> Any:
    return a @ xp.conj(xp.matrix_transpose(a)) + xp.eye(a.shape[-1], dtype=a.dtype)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), stack=st.sampled_from([(), (1,), (3,), (2, 9)]),
    dtype=st.sampled_from(DTYPES),
)  # fmt: skip
def test_results_are_numpys(name: str, seed: int, n: int, stack: tuple[int, ...], dtype: str) -> None:
    call, a, b = CALLS[name], matrices(seed, (*stack, n, n), dtype), matrices(seed + 1, (n, n), dtype)
    expected = call(np, a, b)
    agrees(call(tnp, tnp.asarray(a), tnp.asarray(b)), expected, dtype)


STACKS = {"float64": (), "float32": (11,), "complex128": (3,)}


@pytest.mark.parametrize(("name", "n", "dtype"), covering(CALLS, [1, 2, 3, 4, 6, 16, 17, 40], STACKS, least=80))
def test_compiled_results_are_numpys(name: str, n: int, dtype: str) -> None:
    a, b = matrices(n, (*STACKS[dtype], n, n), dtype), matrices(n + 1, (n, n), dtype)
    agrees(tracer.jit(lambda a, b: CALLS[name](tnp, a, b))(a, b), CALLS[name](np, a, b), dtype)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 2, 2)])
def test_nothing_has_determinant_one_and_an_empty_inverse(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape)
    for name in ("det", "inv", "cholesky", "slogdet"):
        agrees(getattr(tnp.linalg, name)(tnp.asarray(empty)), getattr(np.linalg, name)(empty), "float64")
    agrees(tnp.linalg.solve(tnp.asarray(empty), np.zeros(shape[-1:])), np.zeros(shape[:-1]), "float64")


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def test_known_singular_matrices_raise_and_compiled_ones_do_not() -> None:
    stack = np.stack([np.eye(2), SINGULAR])
    for name, call in (("inv", tnp.linalg.inv), ("solve", lambda a: tnp.linalg.solve(a, np.ones(2)))):
        with pytest.raises(np.linalg.LinAlgError, match=rf"^{name} at .*: Singular matrix\n  got f64\[2,2\]\n  help: "):
            call(SINGULAR)
        with pytest.raises(MatrixError, match=r"got f64\[2,2,2\], at \[1\]"):
            call(stack)
        assert not np.isfinite(tracer.jit(call)(SINGULAR)).all()
        compiled = np.asarray(tracer.vmap(call)(stack))
        np.testing.assert_array_equal(np.isfinite(compiled).all(tuple(range(1, compiled.ndim))), [True, False])


def test_matrices_that_are_not_positive_definite_raise_or_have_a_factor_of_nan() -> None:
    stack = np.stack([np.eye(3), -np.eye(3)])
    with pytest.raises(np.linalg.LinAlgError, match=r"^cholesky at .*: Matrix is not positive definite\n.*, at \[1\]"):
        tnp.linalg.cholesky(stack)
    compiled = np.asarray(tracer.jit(tnp.linalg.cholesky)(stack))
    np.testing.assert_array_equal(compiled[0], np.eye(3))
    np.testing.assert_array_equal(compiled[1], np.where(np.tri(3, dtype=bool), np.nan, 0))


def test_cholesky_reads_one_triangle_where_it_is_asked_to() -> None:
    a = np.array([[4.0, 7.0], [2.0, 5.0]])
    np.testing.assert_array_equal(tnp.linalg.cholesky(a, symmetrize_input=False), [[2, 0], [1, 2]])
    np.testing.assert_allclose(tnp.linalg.cholesky(a.T, upper=True, symmetrize_input=False), [[2, 1], [0, 2]])


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_gradient_of_a_determinant_is_finite_where_one_dimension_is_lost(n: int) -> None:
    a = matrices(3, (n, n), "float64")
    a[1] = a[0]
    step = 1e-6
    unit = np.eye(n * n).reshape(n * n, n, n)
    expected = [(np.linalg.det(a + step * e) - np.linalg.det(a - step * e)) / (2 * step) for e in unit]
    for gradient in (tracer.grad(tnp.linalg.det), tracer.jit(tracer.grad(tnp.linalg.det))):
        np.testing.assert_allclose(np.asarray(gradient(a)).ravel(), expected, rtol=1e-6, atol=1e-8)


SECOND = {
    "det": tnp.linalg.det,
    "logdet": lambda a: tnp.linalg.slogdet(a)[1],
    "solve": lambda a: tnp.sum(tnp.linalg.solve(a, tnp.ones(4)) ** 2),
    "inv": lambda a: tnp.sum(tnp.linalg.inv(a) ** 3),
    "cholesky": lambda a: tnp.sum(tnp.sin(tnp.linalg.cholesky(a @ a.T + tnp.eye(4)))),
    "lu": lambda a: tnp.sum(tnp.sin(tracer.lax.linalg.lu(a)[0])),
}


@pytest.mark.parametrize("name", SECOND)
def test_hessians_are_differences_of_gradients(name: str, rng: np.random.Generator) -> None:
    a, direction = matrices(5, (4, 4), "float64"), rng.standard_normal((4, 4))
    gradient = tracer.grad(SECOND[name])
    ((expected, _),) = difference(lambda xs: [np.asarray(gradient(xs[0]))], [a], [direction])
    for hessian in (tracer.hessian(SECOND[name]), tracer.jit(tracer.hessian(SECOND[name]))):
        found = np.einsum("ijkl,kl->ij", np.asarray(hessian(a)), direction)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_a_solution_is_a_solution_of_the_same_factors() -> None:
    loss = tracer.jit(tracer.value_and_grad(lambda a: tnp.sum(tnp.linalg.solve(a, tnp.ones(4)) ** 2)))
    text = str(loss.lower(np.eye(4)).optimized())
    assert text.count("= lu(") == 1
    assert text.count("= triangular_solve(") == 4


def test_a_kalman_filter_has_the_gradient_of_its_likelihood() -> None:
    """Two states, one of them seen: the likelihood of the noise's size by a scan of small solves."""
    rng = np.random.default_rng(2)
    move, see = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    seen = np.cumsum(rng.standard_normal(30))[:, None]

    def likelihood(xp: Any, logs: Any, steps: Any) -> Any:
        drift, noise = xp.exp(logs[0]) * xp.eye(2), xp.exp(logs[1]) * xp.eye(1)

        def step(carry: Any, y: Any) -> Any:
            mean, cov = carry
            mean, cov = move @ mean, move @ cov @ move.T + drift
            spread = see @ cov @ see.T + noise
            gain = xp.linalg.solve(spread, see @ cov).T
            rest = y - see @ mean
            value = rest @ xp.linalg.solve(spread, rest) + xp.linalg.slogdet(spread)[1]
            return (mean + gain @ rest, cov - gain @ see @ cov), value

        return -0.5 * steps(step, (xp.zeros(2), xp.eye(2)))

    def looped(step: Any, carry: Any) -> Any:
        total = 0.0
        for y in seen:
            carry, value = step(carry, y)
            total = total + value
        return total

    def scanned(step: Any, carry: Any) -> Any:
        return tnp.sum(tracer.lax.scan(step, carry, tnp.asarray(seen))[1])

    at = np.array([-1.0, 0.5])
    compiled = tracer.jit(tracer.value_and_grad(lambda x: likelihood(tnp, x, scanned)))
    value, gradient = compiled(at)
    assert float(value) == pytest.approx(likelihood(np, at, looped))
    step = 1e-5
    for i in range(2):
        moved = [likelihood(np, at + sign * step * np.eye(2)[i], looped) for sign in (1, -1)]
        assert float(gradient[i]) == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-6)
    curvature = tracer.jit(tracer.hessian(lambda x: likelihood(tnp, x, scanned)))(at)
    np.testing.assert_allclose(curvature, np.asarray(curvature).T, rtol=1e-9)


def test_shapes_and_dtypes_that_do_not_fit_are_told() -> None:
    with pytest.raises(ShapeError, match=r"^inv at .* takes square matrices in the last two axes\n  got f64\[2,3\]\n"):
        tnp.linalg.inv(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"^solve at .*: the sizes of the operands do not fit\n  got f64\[2,2\] and"):
        tnp.linalg.solve(np.eye(2), np.ones(3))
    with pytest.raises(DTypeError, match=r"^cholesky at .* computes in f32, f64, c64 and c128\n  got f16\[2,2\]\n"):
        tnp.linalg.cholesky(np.eye(2, dtype=np.float16))
    with pytest.raises(ShapeError, match=r"^tensorinv at "):
        tnp.linalg.tensorinv(np.ones((2, 3)), ind=1)
    with pytest.raises(ShapeError, match=r"^tensorsolve at "):
        tnp.linalg.tensorsolve(np.ones((2, 3)), np.ones(2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvalues_are_complex_whatever_the_values(dtype: str) -> None:
    for matrix in ([[2.0, 1.0], [1.0, 3.0]], [[0.0, 1.0], [-1.0, 0.0]]):
        given = np.asarray(matrix, dtype)
        values, vectors = tnp.linalg.eig(given)
        assert values.dtype == vectors.dtype == tnp.linalg.eigvals(given).dtype == np.result_type(dtype, "complex64")
        np.testing.assert_allclose(given @ np.asarray(vectors), vectors * values, atol=1e-6)
        assert type(tnp.linalg.eig(given)).__name__ == "EigResult"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 17])
def test_one_known_matrix_has_the_bits_of_the_way_through_primitives(
    n: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = matrices(3, (n, n), dtype), matrices(4, (n, n), dtype)
    positive = a @ a.T + np.eye(n, dtype=dtype)
    x, y, z = map(tnp.asarray, (a, b, positive))

    def results() -> list[Any]:
        linalg = tnp.linalg
        found = [linalg.solve(x, y), linalg.solve(x, y[0]), linalg.inv(x), linalg.det(x), linalg.cholesky(z)]
        found += [*linalg.slogdet(x), *linalg.slogdet(0 * x)]
        return [(f.type, np.asarray(f).tobytes()) for f in found]

    quick = results()
    monkeypatch.setattr(concrete_linalg, "_LAPACK", None)
    assert results() == quick


def test_one_known_matrix_takes_few_calls() -> None:
    x, y = tnp.asarray(matrices(3, (4, 4), "float64")), tnp.ones(4)
    for call in (lambda: tnp.linalg.solve(x, y), lambda: tnp.linalg.inv(x), lambda: tnp.linalg.det(x)):
        call()
        assert python_calls(call) < 16


def test_what_is_unusual_about_one_matrix_goes_the_way_through_primitives() -> None:
    singular, large = tnp.zeros((4, 4)), tnp.full((4, 4), 1e300) * tnp.eye(4)
    assert concrete_linalg.inverse(singular) is None
    assert concrete_linalg.lower_factor(-tnp.eye(4)) is None
    assert concrete_linalg.solution(tnp.eye(4), tnp.full(4, 1e200)) is None
    assert tnp.linalg.solve(tnp.eye(4), tnp.full(4, 1e200)).tolist() == [1e200] * 4
    assert tnp.linalg.inv(large).tolist() == np.linalg.inv(np.asarray(large)).tolist()
    for strange in (tnp.ones((0, 0)), tnp.ones((2, 3)), tnp.ones((2, 4, 4)), tnp.eye(4, dtype=int), np.eye(4), 1.0):
        assert concrete_linalg.inverse(strange) is None
        assert concrete_linalg.determinant(strange) is None
    assert concrete_linalg.solution(tnp.eye(4), tnp.ones(3)) is None
    assert concrete_linalg.solution(tnp.eye(4), tnp.ones(4, dtype="float32")) is None
    with np.errstate(all="raise"):
        with pytest.raises(MatrixError, match="Singular matrix"):
            tnp.linalg.inv(singular)
        with pytest.raises(MatrixError, match="not positive definite"):
            tnp.linalg.cholesky(-tnp.eye(4))
    assert tracer.jit(lambda a: concrete_linalg.inverse(tnp.eye(4)) is None)(1.0)
