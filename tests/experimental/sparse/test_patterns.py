"""Sparse Jacobians and Hessians: exact patterns of stencils, the values of `jacfwd` and `hessian`, few colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.laws.sampling import THOROUGH
from tests.transforms.examples import EXAMPLES
from tracer import errors, jit, lax
from tracer.experimental import sparse
from tracer.transforms.sparsity import coloring

X = tnp.asarray(np.random.default_rng(0).standard_normal(9))


def is_sparse(x: Any) -> bool:
    return isinstance(x, sparse.BCOO)


def dense(tree: Any) -> Any:
    return tracer.tree.map(sparse.todense, tree, is_leaf=is_sparse)


def leaves(tree: Any) -> list[Any]:
    return list(tracer.tree.leaves(dense(tree)))


def check(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    assert len(leaves(found)) == len(leaves(wanted))
    for a, b in zip(leaves(found), leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def pattern(f: Any, n: int = 9, **options: Any) -> np.ndarray[Any, Any]:
    found = tracer.jacobian_sparsity(f, **options)(tracer.ShapeDtypeStruct((n,), "float64"))
    return np.asarray(found.todense()).astype(int)


def band(n: int, below: int, above: int) -> np.ndarray[Any, Any]:
    return np.tri(n, k=above, dtype=int) - np.tri(n, k=-below - 1, dtype=int)


def brusselator(y: Any) -> Any:
    """Lefever & Nicolis 1971: two species that diffuse on a torus [2, n, n]."""
    n = int(np.sqrt(y.size // 2))
    u, v = y.reshape(2, n, n)

    def laplacian(a: Any) -> Any:
        return tnp.roll(a, 1, 0) + tnp.roll(a, -1, 0) + tnp.roll(a, 1, 1) + tnp.roll(a, -1, 1) - 4 * a

    return tnp.stack([1 + u * u * v - 4.4 * u + laplacian(u), 3.4 * u - u * u * v + laplacian(v)]).ravel()


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


# Patterns


A = np.asarray(band(9, 1, 0) * np.random.default_rng(1).standard_normal((9, 9)))
SPARSE = sparse.BCOO.fromdense(A)
INDEX = np.asarray([3, 3, 0, 8])

EXACT = {
    "elementwise": (lambda x: tnp.sin(x) * x + tnp.exp(-x), np.eye(9)),
    "constant": (lambda x: tnp.floor(x) + 1, np.zeros((9, 9))),
    "stop_gradient": (lambda x: x + lax.stop_gradient(x[::-1]), np.eye(9)),
    "tridiagonal": (lambda x: tnp.convolve(x, tnp.asarray([1.0, -2.0, 1.0]), "same") * x, band(9, 1, 1)),
    "differences": (lambda x: x[1:] - x[:-1], band(9, 0, 1)[:8]),
    "roll": (lambda x: tnp.roll(x, 1) * x, np.eye(9) + np.roll(np.eye(9), 1, 0)),
    "reverse": (lambda x: x[::-1] ** 2, np.eye(9)[::-1]),
    "gather": (lambda x: x[INDEX] * 2, np.eye(9)[INDEX]),
    "scatter": (lambda x: tnp.zeros(9).at[INDEX].add(x[:4]), np.eye(9)[:, INDEX] @ np.eye(4, 9) > 0),
    "overwrite": (lambda x: x.at[2:4].set(x[0]), np.eye(9)[[0, 1, 0, 0, 4, 5, 6, 7, 8]]),
    "sum": (lambda x: (x**2).sum(), np.ones(9)),
    "rows": (lambda x: x.reshape(3, 3).sum(1), np.kron(np.eye(3), np.ones(3))),
    "columns": (lambda x: x.reshape(3, 3).max(0), np.kron(np.ones(3), np.eye(3))),
    "cumsum": (tnp.cumsum, np.tri(9)),
    "known matrix": (lambda x: A @ x, A != 0),
    "known mask": (lambda x: tnp.where(np.arange(9) < 3, x, x[0]), np.eye(9)[[0, 1, 2] + [0] * 6]),
    "known zeros": (lambda x: x * (np.arange(9) % 2) + x[0], np.diag(np.arange(9) % 2) + np.eye(9)[[0] * 9] > 0),
    "sparse matrix": (lambda x: SPARSE @ x, A != 0),
    "concatenate": (lambda x: tnp.concatenate([x[:2], x[7:]]), np.eye(9)[[0, 1, 7, 8]]),
    "pad": (lambda x: tnp.pad(x, 1), np.eye(11, 9, -1)),
    "outer": (lambda x: tnp.outer(x[:2], x[2:4]).ravel(), [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]),
    "matmul": (lambda x: (x.reshape(3, 3) @ tnp.ones((3, 2)))[:, 0], np.kron(np.eye(3), np.ones(3))),
    "vmap": (lambda x: tracer.vmap(lambda r: r / tnp.linalg.norm(r))(x.reshape(3, 3)).ravel(),
             np.kron(np.eye(3), np.ones((3, 3)))),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: tnp.roll(x, 1), x),
             np.eye(9) + np.roll(np.eye(9), 1, 0)),
    "known cond": (lambda x: lax.cond(np.True_, lambda x: x, lambda x: tnp.roll(x, 1), x), np.eye(9)),
    "stepper": (lambda x: lax.fori_loop(0, 2, lambda i, u: u + A @ u, x), band(9, 2, 0)),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), 1.0, x)[1], np.tri(9)),
    "reverse scan": (lambda x: lax.scan(lambda c, v: (v, c * v), 1.0, x, reverse=True)[1], band(9, 0, 1)),
    "endless": (lambda x: lax.while_loop(lambda u: u.sum() < 9, lambda u: u * 2, x), np.eye(9)),
    "fixpoint": (lambda x: lax.while_loop(lambda u: u.sum() < 9, lambda u: tnp.maximum(u, A @ u), x), np.tri(9)),
    "fft": (lambda x: tnp.fft.fft(x.reshape(3, 3)).real.ravel(), np.kron(np.eye(3), np.ones((3, 3)))),
    "solve": (lambda x: tracer.vmap(tnp.linalg.solve)(np.stack([np.eye(3)] * 3), x.reshape(3, 3)).ravel(),
              np.kron(np.eye(3), np.ones((3, 3)))),
    "checkpoint": (tracer.checkpoint(lambda x: tnp.sin(x) * tnp.roll(x, 1)), np.eye(9) + np.roll(np.eye(9), 1, 0)),
    "jit": (jit(lambda x: x[1:] * x[:-1]), band(9, 0, 1)[:8]),
    "gradient": (tracer.grad(lambda x: (x[1:] * x[:-1]).sum()), band(9, 1, 1) - np.eye(9)),
}  # fmt: skip


@each("name", EXACT)
def test_patterns_are_exact(name: str) -> None:
    function, wanted = EXACT[name]
    found = pattern(function, 4 if name == "outer" else 9)
    np.testing.assert_array_equal(found, np.asarray(wanted).astype(int))


def test_an_unknown_index_may_lead_anywhere() -> None:
    @jit  # outside of it, the index is captured with its value
    def entries(x: Any, i: Any) -> Any:
        return [tracer.jacobian_sparsity(f)(x, i).todense() for f in functions]

    functions = (
        lambda x, i: tnp.stack([x[i], x[0]]),
        lambda x, i: x.reshape(3, 3)[:, i],
        lambda x, i: lax.dynamic_update_slice(x, x[:2] * 2, (i,)),
    )
    known = [tracer.jacobian_sparsity(f)(X, 2).todense() for f in functions]
    np.testing.assert_array_equal(known[0], np.eye(9)[[2, 0]])
    np.testing.assert_array_equal(known[1], np.eye(9)[[2, 5, 8]])
    np.testing.assert_array_equal(known[2], np.eye(9)[[0, 1, 0, 1, 4, 5, 6, 7, 8]])
    found, rows, written = entries(X, 2)
    assert found.tolist() == [[True] * 9, [True] + [False] * 8]
    np.testing.assert_array_equal(rows, np.kron(np.eye(3), np.ones(3)))
    np.testing.assert_array_equal(written, np.eye(9) + np.eye(9)[[0] * 9] + np.eye(9)[[1] * 9] > 0)


def test_a_rule_of_one_s_own_says_the_pattern() -> None:
    @tracer.custom_jvp
    def straight(x: Any) -> Any:
        return tnp.round(x)

    straight.defjvp(lambda primals, tangents: (straight(*primals), tangents[0]))
    np.testing.assert_array_equal(pattern(straight), np.eye(9))


@pytest.mark.parametrize("n", [7, 40])
def test_the_brusselator_has_six_entries_in_a_row(n: int) -> None:
    found = tracer.jacobian_sparsity(brusselator)(tracer.ShapeDtypeStruct((2 * n * n,), "float64"))
    assert found.nse == 6 * 2 * n * n
    y = tnp.linspace(0.5, 1.5, 2 * n * n)
    if n == 7:
        np.testing.assert_array_equal(found.todense(), np.asarray(tracer.jacfwd(brusselator)(y)) != 0)
        check(tracer.sparse_jacobian(brusselator)(y), tracer.jacfwd(brusselator)(y))


# Colours


def test_a_large_band_is_done_in_one_sweep_of_products() -> None:
    n = 100_000

    def f(x: Any) -> Any:
        return x**2 - tnp.pad(x, 1)[:-2] * tnp.pad(x, 1)[2:]

    x = tnp.linspace(0.0, 1.0, n)
    j = jit(tracer.sparse_jacobian(f))(x)
    assert (j.nse, j.shape) == (3 * n - 2, (n, n))
    v = tnp.cos(x)
    np.testing.assert_allclose(j @ v, tracer.jvp(f, (x,), (v,))[1], rtol=1e-12, atol=1e-12)


# Values


def real(tree: Any) -> bool:
    kinds = {np.asarray(leaf).dtype.kind for leaf in tracer.tree.leaves(tree)}
    return kinds <= {"f"}


@pytest.mark.parametrize(
    "name", [n for n, e in EXAMPLES.items() if e.forward and real(e.point)][:: 1 if THOROUGH else 4]
)
def test_jacobians_of_programs_are_those_of_jacfwd(name: str) -> None:
    f, x = EXAMPLES[name].function, tracer.tree.map(tnp.asarray, EXAMPLES[name].point)
    if not real(f(x)):
        pytest.skip("its result is complex or an integer")
    wanted = tracer.jacfwd(f)(x)
    mode = ("auto", "forward", "reverse")[sum(map(ord, name)) % 3]
    check(tracer.sparse_jacobian(f, mode=mode)(x), wanted)


HESSIANS = ("network", "scattered_product", "scanned", "newton", "branch_in_loop", "with_custom_vjp", "checkpointed",
            "sorted_sum")  # fmt: skip


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_of_programs_are_those_of_hessian(name: str) -> None:
    f, x, _ = EXAMPLES[name]

    def total(x: Any) -> Any:
        return sum((leaf**2).sum() for leaf in tracer.tree.leaves(f(x)))

    check(tracer.sparse_hessian(total)(x), tracer.hessian(total)(x))


def test_hessians_of_the_usual_functions() -> None:
    h = jit(tracer.sparse_hessian(rosenbrock))(X)
    assert h.nse == 25
    check(h, tracer.hessian(rosenbrock)(X))
    np.testing.assert_array_equal(tracer.hessian_sparsity(rosenbrock)(X).todense(), band(9, 1, 1))

    def arrow(x: Any) -> Any:
        return x[0] * x.sum() + (x**3).sum()

    h = tracer.sparse_hessian(arrow)(X)
    assert h.nse == 25
    check(h, tracer.hessian(arrow)(X))
    rows, columns = np.asarray(h.indices).T
    assert coloring.color_symmetric(rows, columns, 9).max() == 1


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_trees_of_arguments_and_results(way: Any) -> None:
    def f(p: Any, y: Any, k: Any = 1.0) -> Any:
        return {"a": p["x"][1:] * p["s"] * k, "b": (p["x"].sum() * y, tnp.arange(2), y)}

    p, y = {"x": X, "s": tnp.asarray(2.0)}, tnp.asarray(3.0)
    for argnums in (0, (0, 1)):
        for mode in ("forward", "reverse"):
            found = way(tracer.sparse_jacobian(f, argnums, mode=mode))(p, y, k=2.0)
            check(found, tracer.jacfwd(f, argnums)(p, y, k=2.0))
    given = tracer.jacobian_sparsity(f, (0, 1))(p, y)
    check(way(tracer.sparse_jacobian(f, (0, 1), pattern=given))(p, y), tracer.jacfwd(f, (0, 1))(p, y))
    full = tracer.tree.map(lambda x: np.ones(x.shape), tracer.jacfwd(f)(p, y))
    check(way(tracer.sparse_jacobian(f, pattern=full))(p, y), tracer.jacfwd(f)(p, y))

    def g(p: Any, y: Any) -> Any:
        return (p["x"][1:] * p["x"][:-1]).sum() * p["s"] + y**3 * p["s"]

    for argnums in (1, (0, 1)):
        check(way(tracer.sparse_hessian(g, argnums))(p, y), tracer.hessian(g, argnums)(p, y))
        given = tracer.hessian_sparsity(g, argnums)(p, y)
        check(way(tracer.sparse_hessian(g, argnums, pattern=given))(p, y), tracer.hessian(g, argnums)(p, y))


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_axes_dtypes_aux_and_holomorphic_functions(way: Any) -> None:
    m = tnp.asarray(np.random.default_rng(3).standard_normal((2, 3)), "float32")
    f = way(tracer.sparse_jacobian(lambda m: (m[:, 1:] * m[:, :-1], {"total": m.sum()}), has_aux=True))
    found, aux = f(m)
    assert (found.shape, found.dtype, found.nse) == ((2, 2, 2, 3), np.float32, 8)
    check(found, tracer.jacfwd(lambda m: m[:, 1:] * m[:, :-1])(m), 1e-6)
    assert float(aux["total"]) == pytest.approx(float(m.sum()))
    h, aux = way(tracer.sparse_hessian(lambda m: ((m**3).sum(), 7), has_aux=True))(m)
    check(h, tracer.hessian(lambda m: (m**3).sum())(m), 1e-5)
    assert int(aux) == 7
    z = tnp.asarray([1.0 + 2.0j, 3.0 - 1.0j, 0.5j])
    for mode in ("forward", "reverse"):
        found = way(tracer.sparse_jacobian(lambda z: z**2 * z[0], holomorphic=True, mode=mode))(z)
        check(found, tracer.jacfwd(lambda z: z**2 * z[0], holomorphic=True)(z))


def test_scalars_and_empty_arrays() -> None:
    check(tracer.sparse_jacobian(tnp.sin)(0.5), tracer.jacfwd(tnp.sin)(0.5))
    check(tracer.sparse_hessian(lambda x: x**3)(0.5), tracer.hessian(lambda x: x**3)(0.5))
    for n in (0, 1):
        x = tnp.ones(n)
        check(tracer.sparse_jacobian(lambda x: x**2)(x), tracer.jacfwd(lambda x: x**2)(x))
        check(tracer.sparse_hessian(lambda x: (x**2).sum())(x), tracer.hessian(lambda x: (x**2).sum())(x))
    assert tracer.sparse_jacobian(tnp.floor)(X).nse == 0


def test_derivatives_of_sparse_derivatives_and_lanes() -> None:
    def energy(x: Any) -> Any:
        return (tracer.sparse_jacobian(lambda u: tnp.sin(u) * tnp.roll(u, 1))(x) @ x).sum()

    def same(x: Any) -> Any:
        return (tracer.jacfwd(lambda u: tnp.sin(u) * tnp.roll(u, 1))(x) @ x).sum()

    np.testing.assert_allclose(tracer.grad(energy)(X), tracer.grad(same)(X), rtol=1e-9)
    rows = tnp.stack([X, 2 * X])
    found = tracer.vmap(lambda x: tracer.sparse_jacobian(lambda u: u**3)(x).todense())(rows)
    np.testing.assert_allclose(found, tracer.vmap(tracer.jacfwd(lambda u: u**3))(rows))


def test_patterns_may_be_given_as_arrays() -> None:
    full = tnp.ones((9, 9), bool)
    tri = scipy.sparse.diags_array([np.ones(8), np.ones(9), np.ones(8)], offsets=[-1, 0, 1])
    for given in (full, np.asarray(full), tri, tri.tocsr(), sparse.BCOO.from_scipy_sparse(tri)):
        h = tracer.sparse_hessian(rosenbrock, pattern=given)(X)
        assert h.nse == (81 if given.shape == (9, 9) and not hasattr(given, "nnz") and not is_sparse(given) else 25)
        check(h, tracer.hessian(rosenbrock)(X))


# Errors


def swapped(x: Any) -> Any:
    return x[::-1]


def centred(x: Any) -> Any:
    return x - x.mean()


ERRORS = [
    (lambda: tracer.sparse_jacobian(swapped, mode="backward"), errors.ArgumentError,
     ("sparse_jacobian at {}: mode is one of 'auto', 'forward', 'reverse'\n  got 'backward'")),
    (lambda: tracer.sparse_jacobian(swapped)(3), errors.DTypeError,
     ("sparse_jacobian of swapped at {}: argument 0 has no derivative\n"
      "  expected a floating or complex dtype, got i64*[]\n"
      "  help: pass a float, as 2.0 for 2, or cast with .astype(float)")),
    (lambda: tracer.sparse_jacobian(swapped, pattern=np.ones((9, 8)))(X), errors.ShapeError,
     ("sparse_jacobian of swapped at {}: a block of the pattern is [*output, *input]\n  got (9, 8) for (9, 9)")),
    (lambda: tracer.sparse_jacobian(swapped, pattern=[np.ones((9, 9))])(X), errors.ArgumentError,
     ("sparse_jacobian of swapped at {}: the pattern has another structure than the result\n"
      "  got [*], expected *\n  help: pass the result of tracer.jacobian_sparsity(f)(...)")),
    (lambda: jit(lambda p: tracer.sparse_jacobian(swapped, pattern=p)(X).data)(np.ones((9, 9))), errors.ArgumentError,
     ("sparse_jacobian of swapped at {}: the pattern is known while tracing\n  got a traced one\n"
      "  help: let the function capture it")),
    (lambda: tracer.sparse_hessian(swapped)(X), errors.ShapeError,
     ("sparse_hessian of swapped at {}: the function must return a scalar\n  got f64[9]\n"
      "  help: reduce it, as with .sum() or .mean(); jacrev and jacfwd differentiate arrays")),
    (lambda: tracer.jacobian_sparsity(centred)(tnp.ones(6000)), errors.ArgumentError,
     ("jacobian_sparsity of centred at {}: the pattern has too many entries to be sparse\n"
      "  an intermediate result depends on too many inputs, as a norm or a solution of a system does\n"
      "  help: give pattern=..., or use jacfwd, jacrev or products with the Jacobian: jvp, vjp, hvp")),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_wrong_calls_say_what_was_expected(number: int) -> None:
    call, kind, text = ERRORS[number]
    with pytest.raises(kind) as told:
        call()
    assert str(told.value) == text.replace("{}", f"test_patterns.py:{call.__code__.co_firstlineno}")
