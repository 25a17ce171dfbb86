"""Linear systems by iteration beside SciPy's and direct solutions: batches, trees, derivatives, limits, mistakes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering
from tracer.errors import ArgumentError, ShapeError
from tracer.scipy.sparse import linalg

N = 12
_RNG = np.random.default_rng(5)
_MIXED = _RNG.normal(size=(N, N))
POSITIVE = _MIXED @ _MIXED.T + N * np.eye(N)
GENERAL = _MIXED + 2 * N**0.5 * np.eye(N)
SIDE = _RNG.normal(size=N)
WEIGHTS = np.linspace(-1, 1, N)

SOLVERS: dict[str, tuple[Any, Any]] = {
    "cg": (linalg.cg, POSITIVE), "bicgstab": (linalg.bicgstab, GENERAL), "gmres": (linalg.gmres, GENERAL),
    "gmres, incremental": (partial(linalg.gmres, solve_method="incremental"), GENERAL),
    "gmres, restarted": (partial(linalg.gmres, restart=4), GENERAL),
}  # fmt: skip
every_solver = pytest.mark.parametrize("name", SOLVERS)
every_algorithm = pytest.mark.parametrize("name", SOLVERS if THOROUGH else ["cg", "bicgstab", "gmres"])
WAYS = {"eager": lambda f: f, "jit": tracer.jit}
every_way = pytest.mark.parametrize(("name", "chosen"), covering(SOLVERS, WAYS))


def close(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@every_way
def test_solutions_of_matrices_and_of_functions(name: str, chosen: str) -> None:
    (solve, a), way = SOLVERS[name], WAYS[chosen]
    expected = np.linalg.solve(a, SIDE)
    close(way(lambda a, b: solve(a, b, tnp.ones(N), tol=1e-12)[0])(a, SIDE), expected)
    scaled = way(lambda a, b: solve(lambda v: a @ v, b, tol=1e-12, M=lambda v: v / tnp.diag(a))[0])
    close(scaled(a, SIDE), expected)


@every_algorithm
def test_complex_maps_of_real_sides(name: str) -> None:
    solve, a = SOLVERS[name]
    skewed = a + 1j * (_MIXED - _MIXED.T)
    found, pullback = tracer.vjp(lambda b: solve(skewed, b, tol=1e-12)[0], SIDE)
    close(found, np.linalg.solve(skewed, SIDE))
    close(pullback(tnp.asarray(WEIGHTS + 0j))[0], np.real(np.linalg.solve(skewed.T, WEIGHTS)))


@pytest.mark.parametrize("name", ["cg", "bicgstab"])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_steps_are_those_of_scipy(name: str, preconditioned: bool) -> None:
    solve, a = SOLVERS[name]
    m = np.diag(1 / np.diag(a)) if preconditioned else None
    for steps in (1, 2, 4):
        expected = getattr(scipy.sparse.linalg, name)(a, SIDE, rtol=1e-14, atol=0.0, maxiter=steps, M=m)[0]
        close(solve(a, SIDE, tol=1e-14, maxiter=steps, M=m)[0], expected, 1e-11)


def test_rounds_of_gmres_are_those_of_scipy() -> None:
    for restart, rounds in ((3, 1), (3, 2), (N, 1), *([(5, 1)] if THOROUGH else [])):
        expected = scipy.sparse.linalg.gmres(GENERAL, SIDE, rtol=1e-14, restart=restart, maxiter=rounds)[0]
        for method in ("batched", "incremental"):
            found, info = linalg.gmres(GENERAL, SIDE, tol=1e-14, restart=restart, maxiter=rounds, solve_method=method)
            close(found, expected, 1e-11)
            assert int(info) == 0


@every_solver
def test_the_residual_is_as_small_as_asked_for_and_not_much_smaller(name: str) -> None:
    solve, a = SOLVERS[name]
    for limits in ({"tol": 1e-3}, {"tol": 0.0, "atol": 1e-3 * float(np.linalg.norm(SIDE))}):
        left = np.linalg.norm(SIDE - a @ np.asarray(solve(a, SIDE, **limits)[0])) / np.linalg.norm(SIDE)
        assert left <= 1e-3
        assert left > 1e-9 or name in ("gmres", "gmres, restarted")
    start = np.linalg.solve(a, SIDE) * (1 + 1e-8)
    np.testing.assert_array_equal(solve(a, SIDE, start, tol=1e-5)[0], start)


@every_way
def test_derivatives_are_those_of_the_solution(name: str, chosen: str) -> None:
    (solve, a), way = SOLVERS[name], WAYS[chosen]

    def solution(a: Any, b: Any) -> Any:
        return solve(lambda v: a @ v, b, np.full(N, 1e3), tol=1e-13)[0]

    expected, turned = np.linalg.solve(a, SIDE), np.linalg.solve(a.T, WEIGHTS)
    small = 1e-30  # a start far away is no part of small cotangents
    by_a, by_b = way(tracer.grad(lambda a, b: (solution(a, b) * WEIGHTS * small).sum(), (0, 1)))(a, SIDE)
    close(by_b, turned * small)
    close(by_a, -np.outer(turned, expected) * small)


@every_algorithm
def test_derivatives_forwards_and_of_second_order(name: str) -> None:
    solve, a = SOLVERS[name]

    def solution(a: Any, b: Any) -> Any:
        return solve(lambda v: a @ v, b, tol=1e-13)[0]

    expected = np.linalg.solve(a, SIDE)
    _, tangent = tracer.jvp(solution, (a, SIDE), (tnp.ones((N, N)), tnp.asarray(WEIGHTS)))
    close(tangent, np.linalg.solve(a, WEIGHTS - np.ones((N, N)) @ expected))
    close(tracer.jacfwd(lambda b: solution(a, b))(SIDE), np.linalg.inv(a))
    second = tracer.hessian(lambda s: (solution(a * s, SIDE) * WEIGHTS).sum())(1.0)
    close(second, 2 * expected @ WEIGHTS)


@every_algorithm
def test_batches_of_sides_and_of_maps(name: str) -> None:
    solve, a = SOLVERS[name]
    sides, scales = np.stack([SIDE, WEIGHTS, 0 * SIDE]), np.asarray([1.0, 2.0, 3.0])
    solved = lambda s, b: solve(lambda v: s * (a @ v), b, tol=1e-12)[0]  # noqa: E731
    found = tracer.jit(tracer.vmap(solved))(scales, sides)
    close(found, np.linalg.solve(a, sides.T).T / scales[:, None])
    gradients = (tracer.vmap(tracer.grad(lambda s, b: (solved(s, b) * WEIGHTS).sum())))(scales, sides)
    close(gradients, -np.linalg.solve(a, sides.T).T @ WEIGHTS / scales**2)


@every_algorithm
def test_vectors_are_trees(name: str) -> None:
    solve, _ = SOLVERS[name]

    def apply(v: Any) -> Any:
        return {"plate": 3 * v["plate"] + v["rest"][0], "rest": [5 * v["rest"][0] + v["plate"].sum()]}

    side = {"plate": tnp.asarray([[4.0, 4.0]]), "rest": [7]}
    found, _ = solve(apply, side, tol=1e-12)
    assert found["plate"].shape == (1, 2)
    close(found["plate"], [[1.0, 1.0]])
    close(found["rest"][0], 1.0)
    gradient = tracer.grad(lambda side: solve(apply, side, tol=1e-12)[0]["rest"][0])(
        {"plate": side["plate"], "rest": [7.0]}
    )
    close(gradient["plate"], np.full((1, 2), -1 / 13))
    close(gradient["rest"][0], 3 / 13)


@every_algorithm
def test_dtypes_are_promoted_and_sides_may_be_empty_or_zero(name: str) -> None:
    solve, a = SOLVERS[name]
    single = solve(lambda v: 2 * v, tnp.ones(3, "float32"))[0]
    assert single.dtype == np.float32
    close(single, np.full(3, 0.5), 1e-6)
    assert solve(a.astype("float32"), SIDE)[0].dtype == np.float64
    assert solve(a, SIDE.astype("float32"))[0].dtype == np.float64
    assert solve(lambda v: 2j * v, SIDE.astype("float32"))[0].dtype == np.complex64
    assert solve(lambda v: 2 * v, 3)[0] == 1.5
    assert solve(lambda v: v, np.zeros(0))[0].shape == (0,)
    assert not np.asarray(solve(a, np.zeros(N))[0]).any()


def test_a_map_without_an_inverse_gives_what_comes_nearest_and_no_nan() -> None:
    a, b = np.diag([2.0, 1.0, 0.0]), np.asarray([2.0, 3.0, 0.0])
    for solve in (linalg.cg, linalg.bicgstab, linalg.gmres):
        close(solve(a, b, tol=1e-10)[0], [1.0, 3.0, 0.0])
    found, info = linalg.gmres(a, np.ones(3), maxiter=3)
    close(np.asarray(found)[:2], [0.5, 1.0])
    assert int(info) == 0
    turned = np.asarray([[0.0, 1.0], [-1.0, 0.0]])  # whose first product is 0: BiCGSTAB stays where it is
    assert np.isfinite(linalg.bicgstab(turned, np.ones(2))[0]).all()
    close(linalg.gmres(turned, np.ones(2), tol=1e-12)[0], [-1.0, 1.0])


@every_way
def test_what_is_no_number_or_infinite_gives_nan_and_never_the_start(name: str, chosen: str) -> None:
    (solve, a), way = SOLVERS[name], WAYS[chosen]
    solver, broken = way(solve), a.copy()
    broken[2, 3] = np.nan
    for matrix, side in ((a, np.where(np.arange(N) == 1, np.nan, SIDE)), (broken, SIDE), (a, SIDE * np.inf)):
        x, info = solver(matrix, side)
        assert np.isnan(x).all()
        assert info is None or int(info) == -1


def test_mistakes_are_told() -> None:
    with pytest.raises(
        ShapeError, match=r"^cg at test_linalg.py:\d+: A is a function, or a square matrix\n  got an arr"
    ):
        linalg.cg(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ShapeError, match=r"^gmres at test_linalg.py:\d+: x0 must be a tree like b\n  expected"):
        linalg.gmres(np.eye(3), np.ones(3), np.ones(2))
    with pytest.raises(ShapeError, match=r"^bicgstab at test_linalg.py:\d+: what A returns must be a tree like b"):
        linalg.bicgstab(lambda v: (v, v), np.ones(3))
    with pytest.raises(ShapeError, match=r"^cg at test_linalg.py:\d+: what M returns must be a tree like b"):
        linalg.cg(np.eye(3), np.ones(3), M=lambda v: v[:2])
    with pytest.raises(ArgumentError, match=r'^gmres at .*: solve_method is "batched" or "incremental"\n  got .qr.\n'):
        linalg.gmres(np.eye(3), np.ones(3), solve_method="qr")
    with pytest.raises(ArgumentError, match=r"^gmres at .*: an iteration needs one direction at least\n  got restart"):
        linalg.gmres(np.eye(3), np.ones(3), restart=0)
    with pytest.raises(
        ArgumentError, match=r"^gmres at test_linalg.py:\d+: restart takes an integer\n  got float"
    ) as told:
        linalg.gmres(np.eye(3), np.ones(3), restart=2.0)
    assert [frame.path.name for frame in told.traceback] == ["test_linalg.py"]
    with pytest.raises(ShapeError, match=r"^cg at test_linalg.py:\d+: the last axis of the first"):
        linalg.cg(np.eye(2), np.ones(3))
    for sparse in (scipy.sparse.eye_array(3), scipy.sparse.linalg.aslinearoperator(np.eye(3))):
        with pytest.raises(
            ArgumentError,
            match=rf"^cg at test_linalg.py:\d+: A is a function of arrays of ours, or a square matrix\n"
            rf"  got {type(sparse).__name__} of scipy.sparse, which computes with NumPy's arrays\n"
            r"  help: A.toarray\(\), or the product written with tracer.numpy\n",
        ):
            linalg.cg(sparse, np.ones(3))
    with pytest.raises(ArgumentError, match=r"^cg at test_linalg.py"):
        linalg.cg(None, np.ones(3))


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize(
    ("dtype", "sizes", "near"),
    [("float64", (1e-300, 1e-200, 1e200, 1e300), 1e-4), ("float32", (1e-38, 1e-25, 1e25, 1e37), 1e-4),
     ("float16", (1e-3, 1.0, 1e2, 1e3), 2e-2)],  # float16: its rounding of b and of what the map gives
)  # fmt: skip
def test_sides_whose_squares_overflow_or_vanish_are_solved(
    name: str, dtype: str, sizes: tuple[float, ...], near: float
) -> None:
    rng = np.random.default_rng(0)
    half = rng.standard_normal((8, 8))
    matrix, side = (half @ half.T / 8 + np.eye(8)).astype(dtype), rng.standard_normal(8)
    for size in sizes:
        b = (side * size).astype(dtype)
        expected = np.linalg.solve(matrix.astype(float), b.astype(float) / size)
        x, _ = getattr(linalg, name)(matrix, b)
        assert x.dtype == dtype
        error = np.asarray(x).astype(float) / size - expected
        assert np.linalg.norm(error) <= near * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_the_tolerance_has_the_names_of_jax_and_of_scipy(name: str) -> None:
    solve, matrix, b = getattr(linalg, name), np.diag([1.0, 2.0, 30.0]), np.asarray([1.0, 1.0, 1.0])
    rough, exact = (solve(matrix, b, **{key: 0.5}, maxiter=1)[0] for key in ("tol", "rtol"))
    np.testing.assert_array_equal(rough, exact)
    assert np.linalg.norm(matrix @ solve(matrix, b, rtol=1e-12)[0] - b) <= 1e-12 * np.linalg.norm(b)
    with pytest.raises(
        ArgumentError,
        match=rf"^{name} at .*: tol and rtol are two names of one tolerance\n  got tol=0.1 and rtol=0.2\n",
    ):
        solve(matrix, b, tol=0.1, rtol=0.2)
    for steps in (2.5, "a"):
        with pytest.raises(ArgumentError, match=rf"^{name} at .*: maxiter takes an integer"):
            solve(matrix, b, maxiter=steps)
    assert np.isfinite(solve(matrix, b, maxiter=tnp.asarray(2))[0]).all()
