"""BCOO, COO, CSR and CSC beside dense arrays, SciPy's sparse arrays, and JAX's treatment of padding and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import errors, jit, lax, vmap
from tracer.experimental import sparse
from tracer.scipy.sparse.linalg import cg

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64")
SOME = ("float32", "complex128")  # under jit
MATRICES = (sparse.COO, sparse.CSR, sparse.CSC)
BOTH = pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])


def drawn(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0, share: float = 0.4) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.integers(1, 9, shape).astype(dtype)
    return (values * (rng.random(shape) < share)).astype(dtype)


DENSE = drawn((4, 5))
M = sparse.BCOO.fromdense(DENSE)


def same(found: Any, wanted: Any) -> None:
    """The values, and the dtype."""
    found = sparse.todense(found)
    assert found.shape == np.shape(wanted)
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(("way", "dtype"), [*((lambda f: f, d) for d in DTYPES), *((jit, d) for d in SOME)])
def test_products_of_every_dtype_are_those_of_dense_matrices(way: Any, dtype: str) -> None:
    d, x, y = drawn((4, 5), dtype), drawn((5,), dtype, 1, 1), drawn((5, 3), dtype, 2, 1)

    @way
    def results(m: Any) -> list[Any]:
        return [m @ x, m @ y, y.T @ m.T, m.T, -m, m * 2]

    for kind in (sparse.BCOO, *MATRICES):
        m = kind.fromdense(d)
        assert m.dtype == dtype
        for found, wanted in zip(results(m), [d @ x, d @ y, y.T @ d.T, d.T, -d, d * 2], strict=True):
            same(found, wanted)


def test_dtypes_of_products_promote() -> None:
    m = sparse.BCOO.fromdense(drawn((4, 5), "float32"))
    assert (m @ tnp.ones(5, "float64")).dtype == "float64"
    assert (m * tnp.ones(5, "complex64")).dtype == "complex64"
    assert (m + sparse.BCOO.fromdense(drawn((4, 5), "int32"))).dtype == "float32"
    assert (m @ np.ones(5)).dtype == "float64"
    assert (np.ones(4) @ m).dtype == "float64"


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (0, 0)])
@BOTH
def test_empty_and_single_shapes(way: Any, shape: tuple[int, int]) -> None:
    d = np.ones(shape)
    for kind in (sparse.BCOO, *MATRICES):
        m = kind.fromdense(d)
        same(m, d)
        same(way(lambda m: m @ tnp.ones(shape[1]))(m), d @ np.ones(shape[1]))
        same(way(lambda m: m.T @ tnp.ones((shape[0], 2)))(m), d.T @ np.ones((shape[0], 2)))
    same(M._like(M.data)[2:2], DENSE[2:2])
    same(sparse.BCOO.fromdense(d).sum_duplicates(), d)


def test_an_index_out_of_bounds_is_padding() -> None:
    data = tnp.asarray([1.0, 2.0, 7.0, 8.0])
    indices = tnp.asarray([[0, 1], [1, 0], [2, 0], [-1, 1]])
    m = sparse.BCOO((data, indices), shape=(2, 2))
    d = np.asarray([[0.0, 1.0], [2.0, 0.0]])
    same(m, d)
    same(m @ tnp.asarray([1.0, 10.0]), d @ [1.0, 10.0])
    same(m.T @ tnp.asarray([1.0, 10.0]), d.T @ [1.0, 10.0])
    same(m.sum(0), d.sum(0))
    same(m.sum(1), d.sum(1))
    same(m.sum(), d.sum())
    same(m @ m, d @ d)
    same(m * m, d * d)
    same(m + m, 2 * d)
    same(m.reshape(4), d.reshape(4))
    same(m[1], d[1])
    same(m[0, 1], d[0, 1])
    same(sparse.bcoo_concatenate([m, m], dimension=0), np.concatenate([d, d]))
    same(sparse.bcoo_rev(m, [0]), d[::-1])
    assert m.to_scipy().nnz == 2
    assert m.sum_duplicates().nse == 2
    c = sparse.COO((data, indices[:, 0], indices[:, 1]), shape=(2, 2))
    same(c @ tnp.asarray([1.0, 10.0]), d @ [1.0, 10.0])
    same(c.sum(0), d.sum(0))
    same(c.sum(1), d.sum(1))
    r = sparse.CSR((data, tnp.asarray([1, 0, 0, 0]), tnp.asarray([0, 1, 2])), shape=(2, 2))
    same(r, d)
    same(r @ tnp.asarray([1.0, 10.0]), d @ [1.0, 10.0])
    assert r.to_scipy().nnz == 2


def test_values_at_equal_indices_add_up() -> None:
    m = sparse.BCOO((tnp.asarray([1.0, 2.0, -4.0]), tnp.asarray([[0, 1], [0, 1], [1, 0]])), shape=(2, 2))
    d = np.asarray([[0.0, 3.0], [-4.0, 0.0]])
    same(m, d)
    same(m * m, d * d)
    same(abs(m), abs(d))
    same(m**2, d**2)
    merged = m.sum_duplicates()
    assert merged.indices.tolist() == [[0, 1], [1, 0]]
    assert merged.data.tolist() == [3.0, -4.0]
    padded = jit(lambda m: m.sum_duplicates(nse=4))(m)
    assert (padded.nse, padded.indices.tolist()) == (4, [[0, 1], [1, 0], [2, 2], [2, 2]])
    same(padded, d)
    zeros = sparse.BCOO((tnp.asarray([1.0, -1.0]), tnp.asarray([[0, 0], [0, 0]])), shape=(2, 2))
    assert (zeros.sum_duplicates().nse, zeros.sum_duplicates(remove_zeros=False).nse) == (1, 1)
    explicit = sparse.BCOO((tnp.asarray([0.0, 1.0]), tnp.asarray([[0, 0], [1, 0]])), shape=(2, 2))
    assert (explicit.sum_duplicates().nse, explicit.sum_duplicates(remove_zeros=False).nse) == (1, 2)


def test_bools_are_patterns() -> None:
    m = sparse.BCOO((tnp.asarray([True, True, True]), tnp.asarray([[0, 1], [0, 1], [1, 0]])), shape=(2, 2))
    assert m.todense().tolist() == [[False, True], [True, False]]


@BOTH
def test_sums_and_parts(way: Any) -> None:
    d = drawn((3, 4, 5))
    m = sparse.BCOO.fromdense(d)
    for axis in (0, 1, 2, -1, (0, 2), None):
        same(way(lambda m, axis=axis: m.sum(axis))(m), d.sum(axis))
    for index in (1, -1, (slice(None), 2), (slice(1, 3), slice(None, None, 2)), (..., 3), (1, 2, 4), slice(5, 9)):
        same(way(lambda m, index=index: m[index])(m), d[index])
    for index in (
        None,
        (slice(None, 0, -2), None, 1),
        (..., slice(3, -9, -1), None),
        (1, None, 2, 4),
        slice(None, None, -1),
    ):
        same(way(lambda m, index=index: m[index])(m), d[index])
    dense = sparse.BCOO.fromdense(d, n_dense=1)
    same(way(lambda m: m[::-1, None, 1:, None, ::2, None])(dense), d[::-1, None, 1:, None, ::2, None])
    same(way(lambda m: m.reshape(12, -1))(m), d.reshape(12, 5))
    same(way(lambda m: m.transpose((2, 0, 1)))(m), d.transpose(2, 0, 1))
    same(sparse.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(3, 4, 5), strides=(2, 1, 3)), d[::2, 1:, 1::3])
    same(sparse.bcoo_squeeze(m[1:2], dimensions=[0]), d[1])
    for start in (0, 1, 7):
        found = way(lambda m, s: sparse.bcoo_dynamic_slice(m, (s, 0, s), (2, 4, 3)))(m, start)
        same(found, np.asarray(lax.dynamic_slice(tnp.asarray(d), (start, 0, start), (2, 4, 3))))


@BOTH
def test_sums_and_products_of_two(way: Any) -> None:
    e = drawn((4, 5), seed=3)
    n = sparse.BCOO.fromdense(e)
    x = tnp.asarray(drawn((5,), seed=4, share=1))
    same(way(lambda m, n: m + n)(M, n), DENSE + e)
    same(way(lambda m, n: m - n)(M, n), DENSE - e)
    same(way(lambda m, n: m * n)(M, n), DENSE * e)
    same(way(lambda m, n: m @ n.T)(M, n), DENSE @ e.T)
    same(way(lambda m, x: m * x)(M, x), DENSE * np.asarray(x))
    same(way(lambda m, x: x * m / 2)(M, x), DENSE * np.asarray(x) / 2)
    same(way(lambda m: m / (tnp.abs(m.todense()) + 1))(M), DENSE / (abs(DENSE) + 1))
    same(way(lambda m: m + tnp.ones(5))(M), DENSE + 1)
    same(way(lambda m: 1.0 - m)(M), 1 - DENSE)
    same(sum([M, M]), 2 * DENSE)
    same(sparse.bcoo_extract(M, e), np.where(DENSE != 0, e, 0))


def test_general_products_contract_any_axes() -> None:
    d, x = drawn((3, 4, 5)), drawn((4, 3, 2), seed=1, share=1)
    m = sparse.BCOO.fromdense(d)
    for numbers in (
        (((1,), (0,)), ((), ())), (((1,), (0,)), ((0,), (1,))), (((0, 1), (1, 0)), ((), ())), (((), ()), ((0,), (1,))),
        (((), ()), ((), ())),
    ):  # fmt: skip
        wanted = lax.dot_general(tnp.asarray(d), tnp.asarray(x), numbers)
        same(sparse.bcoo_dot_general(m, x, dimension_numbers=numbers), np.asarray(wanted))
        same(sparse.bcoo_dot_general(m, sparse.BCOO.fromdense(x), dimension_numbers=numbers), np.asarray(wanted))
        turned = tuple(pair[::-1] for pair in numbers)
        wanted = lax.dot_general(tnp.asarray(x), tnp.asarray(d), turned)
        same(sparse.bcoo_dot_general(x, m, dimension_numbers=turned), np.asarray(wanted))
        places = np.argwhere(np.ones(wanted.shape))[::3].astype(np.int32)
        sampled = sparse.bcoo_dot_general_sampled(x, d, places, dimension_numbers=turned)
        np.testing.assert_allclose(sampled, np.asarray(wanted)[tuple(places.T)])
    for shape in ((5,), (5, 2), (3, 5, 2)):
        y = drawn(shape, seed=2, share=1)
        same(m @ y, d @ y)
    same(M @ drawn((2, 5, 3), share=1), DENSE @ drawn((2, 5, 3), share=1))
    same(drawn((2, 3, 4), share=1) @ M, drawn((2, 3, 4), share=1) @ DENSE)


@BOTH
def test_batch_and_dense_axes(way: Any) -> None:
    d = drawn((2, 4, 5))
    x = drawn((5, 3), seed=1, share=1)
    other = tnp.arange(5.0)
    wanted = [
        d, d @ x, d.transpose(1, 2, 0), d, 2 * d, d * d, d * np.arange(5.0), d[1], d[:, 2:],
        d.sum(0), d.sum(1), d.sum(2),
    ]  # fmt: skip

    @way
    def results(m: Any) -> list[Any]:
        return [
            m.todense(), m @ x, m.transpose((1, 2, 0)), m.transpose((0, 1, 2)), m + m, m * m, m * other, m[1], m[:, 2:],
            m.sum(0), m.sum(1), m.sum(2),
        ]  # fmt: skip

    for n_batch, n_dense in ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (0, 3), (3, 0)):
        m = sparse.BCOO.fromdense(d, n_batch=n_batch, n_dense=n_dense)
        assert (m.n_batch, m.n_sparse, m.n_dense) == (n_batch, 3 - n_batch - n_dense, n_dense)
        for found, value in zip(results(m), wanted, strict=True):
            same(found, value)
        same(m.sum_duplicates(), d)
        same(m.sort_indices(), d)
        same(m.update_layout(n_batch=0, n_dense=0), d)
    # a batch axis of length 1 is repeated
    m = sparse.BCOO((M.data[None], M.indices[None]), shape=(3, 4, 5))
    same(m, np.stack([DENSE] * 3))
    same(m @ x, np.stack([DENSE @ x] * 3))


def test_vmap_maps_over_values_and_over_whole_arrays() -> None:
    stack = tnp.stack([M.data, 2 * M.data, -M.data])
    x = tnp.arange(5.0)
    found = vmap(lambda data: sparse.BCOO((data, M.indices), shape=M.shape) @ x)(stack)
    same(found, np.stack([DENSE, 2 * DENSE, -DENSE]) @ np.arange(5.0))
    many = vmap(lambda s: M * s)(tnp.asarray([1.0, 2.0]))
    same(vmap(lambda m: m.todense())(many), np.stack([DENSE, 2 * DENSE]))
    c = sparse.CSR.fromdense(DENSE)
    found = vmap(lambda d: sparse.CSR((d, c.indices, c.indptr), shape=c.shape) @ x)(tnp.stack([c.data, 3 * c.data]))
    same(found, np.stack([DENSE, 3 * DENSE]) @ np.arange(5.0))
    found = vmap(lambda d: sparse.BCOO.fromdense(d, nse=8).sum_duplicates(nse=8) @ x)(tnp.stack([DENSE, DENSE * 0]))
    same(found, np.stack([DENSE, DENSE * 0]) @ np.arange(5.0))


def test_fromdense_keeps_the_first_entries() -> None:
    m = jit(lambda d: sparse.BCOO.fromdense(d, nse=2))(tnp.asarray([[0.0, 1.0], [2.0, 3.0]]))
    assert m.indices.tolist() == [[0, 1], [1, 0]]
    assert m.data.tolist() == [1.0, 2.0]
    more = sparse.bcoo_fromdense([[0.0, 1.0]], nse=3)
    assert (more.indices.tolist(), more.data.tolist()) == ([[0, 1], [1, 2], [1, 2]], [1.0, 0.0, 0.0])


@pytest.mark.parametrize("kind", [sparse.BCOO, *MATRICES])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dia", "lil"])
def test_scipy_s_arrays_come_and_go(kind: Any, format: str) -> None:
    theirs = scipy.sparse.coo_array(DENSE).asformat(format)
    m = kind.from_scipy_sparse(theirs)
    same(m, DENSE)
    assert m.data.dtype == DENSE.dtype
    back = m.to_scipy()
    assert back.shape == DENSE.shape
    np.testing.assert_array_equal(back.toarray(), DENSE)
    same(kind.from_scipy_sparse(scipy.sparse.csr_matrix(DENSE)), DENSE)


def test_scipy_s_arrays_of_one_axis_and_large_matrices() -> None:
    same(sparse.BCOO.from_scipy_sparse(scipy.sparse.coo_array(np.asarray([0.0, 3.0]))), np.asarray([0.0, 3.0]))
    theirs = scipy.sparse.random_array((1000, 700), density=0.01, rng=np.random.default_rng(0), format="csr")
    x, y = np.random.default_rng(1).standard_normal((700, 3)), np.random.default_rng(2).standard_normal(1000)
    for kind in (sparse.BCOO, *MATRICES):
        m = kind.from_scipy_sparse(theirs)
        np.testing.assert_allclose(jit(lambda m, x: m @ x)(m, x), theirs @ x, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(jit(lambda m, y: m.T @ y)(m, y), theirs.T @ y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(jit(lambda m, y: y @ m)(m, y), y @ theirs, rtol=1e-12, atol=1e-12)


def test_functions_of_matrices() -> None:
    x, y = drawn((5,), seed=1, share=1), drawn((5, 2), seed=2, share=1)
    z = drawn((4, 2), seed=3, share=1)
    for from_dense, vector, matrix, dense in (
        (sparse.coo_fromdense, sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense),
        (sparse.csr_fromdense, sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense),
    ):
        m = from_dense(DENSE)
        same(dense(m), DENSE)
        same(vector(m, x), DENSE @ x)
        same(vector(m, z[:, 0], transpose=True), DENSE.T @ z[:, 0])
        same(matrix(m, y), DENSE @ y)
        same(matrix(m, z, transpose=True), DENSE.T @ z)
    for kind in MATRICES:
        m = kind.fromdense(DENSE)
        same(m * tnp.arange(5.0), DENSE * np.arange(5.0))
        same(m / 2, DENSE / 2)
        same(m.sum(), DENSE.sum())
        same(m.sum(1), DENSE.sum(1))
        same(m.astype("complex64"), DENSE.astype("complex64"))


@pytest.mark.parametrize("format", ["bcoo", "coo", "csr", "csc"])
def test_empty_and_eye(format: str) -> None:
    for n, m, k in ((3, 3, 0), (3, 5, 1), (5, 3, -2), (2, 2, 7), (2, 2, -7), (0, 2, 0)):
        same(sparse.eye(n, m, k, dtype="float32", sparse_format=format), np.eye(n, m, k, "float32"))
    same(sparse.empty((2, 3), "int32", sparse_format=format), np.zeros((2, 3), "int32"))


def test_random_entries_are_distinct_unless_said_otherwise() -> None:
    key = tracer.random.key(3)
    m = sparse.random_bcoo(key, (6, 7), nse=0.5, dtype="float32", sorted_indices=True)
    assert (m.nse, m.dtype, m.sum_duplicates(remove_zeros=False).nse) == (21, np.float32, 21)
    assert m.indices.tolist() == sorted(m.indices.tolist())
    batched = sparse.random_bcoo(key, (2, 6, 3), nse=4, n_batch=1, n_dense=1, generator=tracer.random.normal)
    assert (batched.data.shape, batched.indices.shape) == ((2, 4, 3), (2, 4, 1))
    assert sparse.random_bcoo(key, (2, 2), nse=9, unique_indices=False).nse == 9
    with pytest.raises(errors.ArgumentError) as told:
        sparse.random_bcoo(key, (2, 2), nse=9)
    assert str(told.value).splitlines()[1:] == ["  got nse=9 for 4 elements", "  help: unique_indices=False"]


def test_sparse_arrays_are_trees() -> None:
    leaves, structure = tracer.tree.flatten(M)
    assert [leaf.shape for leaf in leaves] == [M.data.shape, M.indices.shape]
    again = tracer.tree.unflatten(structure, leaves)
    assert (again.shape, again.indices_sorted, again.unique_indices) == (M.shape, True, True)
    assert repr(M) == f"BCOO(f64[4, 5], nse={M.nse})"
    assert repr(tracer.tree.map(lambda x: None, M)) == "BCOO(shape=(4, 5))"
    total = lax.fori_loop(0, 3, lambda i, m: m + m._like(m.data) if False else m * 2.0, M)
    same(total, 8 * DENSE)
    x, _ = tracer.scipy.sparse.linalg.cg(lambda v: M.T @ (M @ v) + v, tnp.ones(5))
    np.testing.assert_allclose(x, np.linalg.solve(DENSE.T @ DENSE + np.eye(5), np.ones(5)), rtol=1e-5)


def test_derivatives_by_values_and_operands() -> None:
    x = tnp.asarray(drawn((5,), seed=1, share=1))

    def f(data: Any, x: Any) -> Any:
        m = sparse.BCOO((data, M.indices), shape=M.shape)
        return tnp.sin(m @ x).sum() + ((m @ m.T).todense() * (m * m).sum()).sum()

    def g(data: Any, x: Any) -> Any:
        d = tnp.zeros(M.shape).at[M.indices[:, 0], M.indices[:, 1]].add(data)
        return tnp.sin(d @ x).sum() + ((d @ d.T) * (d * d).sum()).sum()

    for way in (lambda f: f, jit):
        for found, wanted in zip(
            way(tracer.grad(f, (0, 1)))(M.data, x), tracer.grad(g, (0, 1))(M.data, x), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)
    np.testing.assert_allclose(tracer.hessian(f)(M.data, x), tracer.hessian(g)(M.data, x), rtol=1e-8, atol=1e-8)


@BOTH
def test_sparse_derivatives_have_the_indices_of_the_argument(way: Any) -> None:
    x = tnp.arange(5.0)

    def f(m: Any, x: Any) -> Any:
        return (m @ x) ** 2

    wanted = np.asarray(tracer.jacfwd(lambda d: f(d, x))(tnp.asarray(DENSE)))
    kept = np.where(DENSE != 0, wanted, 0)
    for transform in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        same(way(transform(f))(M, x), kept)
        by_m, by_x = way(transform(f, (0, 1)))(M, x)
        same(by_m, kept)
        np.testing.assert_allclose(by_x, tracer.jacfwd(f, 1)(tnp.asarray(DENSE), x))
    for m in (M, *(kind.fromdense(DENSE) for kind in MATRICES)):
        found = way(sparse.grad(lambda m, x: f(m, x).sum()))(m, x)
        assert type(found) is type(m)
        same(found, kept.sum(0))
        (value, aux), found = way(sparse.value_and_grad(lambda m, x: (f(m, x).sum(), x), has_aux=True))(m, x)
        same(found, kept.sum(0))
        assert (float(value), aux.tolist()) == (float(f(m, x).sum()), x.tolist())
    with pytest.raises(errors.ArgumentError, match=r"jacfwd at test_arrays.py:.*: the Jacobian by a CSR has more than"):
        sparse.jacfwd(f)(sparse.CSR.fromdense(DENSE), x)


WRONG = [
    (lambda: sparse.BCOO((tnp.ones(3), tnp.zeros((2, 1), int)), shape=(4,)), errors.ShapeError,
     ("BCOO at {}: data is [*batch, nse, *dense] and indices [*batch, nse, n_sparse]\n"
     "  got data f64[3] and indices i64[2,1] for shape (4,)\n"
     "  help: the shape has the batch axes, then n_sparse axes, then the dense axes")),
    (lambda: sparse.BCOO((tnp.ones(3), tnp.zeros((3, 1))), shape=(4,)), errors.ArgumentError,
     "BCOO: indices at {}: indices are integers\n  got f64[3,1]"),
    (lambda: M @ tnp.ones(4), errors.ShapeError,
     ("BCOO @ at {}: the last axis of the first operand meets the last but one of the second\n"
     "  got shapes (4, 5) and (4,)")),
    (lambda: sparse.CSR.fromdense(DENSE) @ tnp.ones(4), errors.ShapeError,
     ("CSR @ at {}: the operand has 5 rows, for a matrix of shape (4, 5)\n  got f64[4]\n"
     "  help: a vector [n] or a matrix [n, k]")),
    (lambda: M * tnp.ones(4), errors.ShapeError,
     "BCOO at {}: the dense operand broadcasts to the sparse one's shape\n  got (4,) for (4, 5)"),
    (lambda: M + M.T, errors.ShapeError, "BCOO + BCOO at {}: arrays have equal shapes\n  got (4, 5) and (5, 4)"),
    (lambda: M[[0, 1]], errors.ArgumentError,
     ("BCOO[...] at {} takes integers, slices, None and an ellipsis\n  got [0, 1] for 2 axes\n"
     "  help: multiply by a matrix that selects, or index m.todense()")),
    (lambda: np.asarray(M), errors.ArgumentError,
     ("BCOO at {}: a sparse array is not converted to a dense one by itself\n"
     "  help: m.todense(), or m.to_scipy() for SciPy's")),
    (lambda: jit(lambda m: m.sum_duplicates())(M), errors.ArgumentError,
     ("sum_duplicates at {}: the number of entries depends on traced values\n"
     "  help: give nse, as in m.sum_duplicates(nse=m.nse)")),
    (lambda: jit(sparse.BCOO.fromdense)(DENSE), errors.ArgumentError,
     ("bcoo_fromdense at {}: the number of entries depends on traced values\n"
     "  help: give nse, the number of entries to keep")),
    (lambda: sparse.eye(2, sparse_format="dia"), errors.ArgumentError,
     "eye at {}: sparse_format is one of 'bcoo', 'coo', 'csr', 'csc'\n  got 'dia'"),
    (lambda: M.reshape(3, 3), errors.ShapeError,
     "bcoo_reshape at {}: the new shape has as many elements\n  got (3, 3) for (4, 5)"),
]  # fmt: skip


@each("number", range(len(WRONG)))
def test_wrong_calls_say_what_was_expected(number: int) -> None:
    call, kind, text = WRONG[number]
    with pytest.raises(kind) as told:
        call()
    line = call.__code__.co_firstlineno
    assert str(told.value) == text.replace("{}", f"test_arrays.py:{line}")
    assert told.traceback[-1].path.name == "test_arrays.py"


def test_products_by_rows_have_derivatives_of_every_mode_and_order() -> None:
    a = drawn((6, 5), seed=3)
    m, v = sparse.CSR.fromdense(a), np.arange(5.0)

    def energy(data: Any, x: Any) -> Any:
        return tnp.sin(sparse.CSR((data, m.indices, m.indptr), shape=m.shape) @ x).sum()

    def dense(data: Any, x: Any) -> Any:
        rows, columns = np.nonzero(a)
        return tnp.sin(tnp.zeros(m.shape).at[rows, columns].set(data) @ x).sum()

    for argument in (0, 1):
        same(jit(tracer.grad(energy, argument))(m.data, v), tracer.grad(dense, argument)(m.data, v))
        same(tracer.hessian(energy, argument)(m.data, v), tracer.hessian(dense, argument)(m.data, v))
        same(tracer.jacfwd(energy, argument)(m.data, v), tracer.jacrev(dense, argument)(m.data, v))
    pattern = tracer.jacobian_sparsity(lambda x: m @ x)(v)
    same(pattern.todense(), a != 0)


def test_conjugate_gradients_with_a_matrix_by_rows_are_differentiable() -> None:
    a = np.diag(np.full(6, 4.0)) - np.eye(6, k=1) - np.eye(6, k=-1)
    m, b = sparse.CSR.fromdense(a), np.arange(6.0)

    def solved(data: Any, b: Any) -> Any:
        matrix = sparse.CSR((data, m.indices, m.indptr), shape=m.shape)
        return cg(lambda x: matrix @ x, b, tol=1e-12)[0]

    weights = np.linspace(1, 2, 6)
    found = jit(tracer.grad(lambda d, b: weights @ solved(d, b), (0, 1)))(m.data, b)
    adjoint = np.linalg.solve(a, weights)
    same(found[1], adjoint)
    rows, columns = np.nonzero(a)
    same(found[0], -adjoint[rows] * np.linalg.solve(a, b)[columns])


@pytest.mark.parametrize("kind", [sparse.CSR, sparse.CSC])
def test_padding_of_compressed_matrices_adds_nothing_though_it_is_nan(kind: Any) -> None:
    data, indices, indptr = np.array([2.0, np.nan, 3.0, np.nan]), np.array([1, -1, 0, 0]), np.array([0, 2, 3])
    m = kind((data, indices, indptr), shape=(2, 2))
    dense = np.array([[0, 2.0], [3, 0]]) if kind is sparse.CSR else np.array([[0, 3.0], [2, 0]])
    for x in (np.array([1.0, 10]), np.array([[1.0, 5], [10, 7]])):
        same(m @ x, dense @ x)
        same(x.T @ m, x.T @ dense)
