"""Normal samples of several variables: their definition, shapes, derivatives, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, random

KEY = random.key(3)
MEAN = np.asarray([1.0, -2.0, 0.5])
COV = np.asarray([[2.0, 0.3, 0.1], [0.3, 1.0, -0.4], [0.1, -0.4, 1.5]])


def test_samples_are_normal_numbers_times_the_factor() -> None:
    found = random.multivariate_normal(KEY, MEAN, COV, (2,))
    normals = np.asarray(random.normal(KEY, (2, 3)))
    np.testing.assert_allclose(found, MEAN + normals @ np.linalg.cholesky(COV).T, rtol=1e-13)


def test_means_and_covariances_broadcast() -> None:
    assert random.multivariate_normal(KEY, np.zeros((4, 1, 3)), np.stack([COV] * 2)).shape == (4, 2, 3)
    assert random.multivariate_normal(KEY, MEAN, COV).shape == (3,)
    assert random.multivariate_normal(KEY, MEAN, COV, dtype="float32").dtype == "float32"
    many = np.asarray(tracer.jit(lambda key: random.multivariate_normal(key, MEAN, COV, (40000,)))(KEY))
    np.testing.assert_allclose(many.mean(0), MEAN, atol=0.05)
    np.testing.assert_allclose(np.cov(many.T), COV, atol=0.05)


def test_samples_are_differentiated_by_both() -> None:
    operands = tnp.asarray(MEAN), tnp.asarray(COV)
    tracer.test_util.check_grads(lambda m, c: random.multivariate_normal(KEY, m, c, (2,)).sum(), operands, 1)


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(errors.ShapeError, match=r"mean is \[\*b, n\] and cov \[\*c, n, n\]"):
        random.multivariate_normal(KEY, MEAN, COV[:2])
    with pytest.raises(errors.ShapeError, match="broadcast to the shape"):
        random.multivariate_normal(KEY, np.zeros((2, 3)), COV, (3,))
    with pytest.raises(errors.ArgumentError, match="no such method"):
        random.multivariate_normal(KEY, MEAN, COV, method="svd")
    with pytest.raises(errors.MatrixError, match="positive definite"):
        random.multivariate_normal(KEY, MEAN, -COV)
    with pytest.raises(errors.DTypeError, match="takes real numbers"):
        random.multivariate_normal(KEY, MEAN * 1j, COV)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("n", "m"), [(4, None), (5, 3), (3, 5), (1, 1)])
def test_orthogonal_matrices_are_orthonormal_and_have_any_sign(n: int, m: int | None, dtype: str) -> None:
    draw = tracer.jit(lambda key: tracer.random.orthogonal(key, n, (60,), dtype, m))
    found = np.asarray(draw(tracer.random.key(3)))
    assert (found.shape, found.dtype) == ((60, n, n if m is None else m), np.dtype(dtype))
    long = found if found.shape[1] >= found.shape[2] else np.swapaxes(found, 1, 2)
    inner = np.swapaxes(long.conj(), 1, 2) @ long
    np.testing.assert_allclose(inner, np.broadcast_to(np.eye(inner.shape[1]), inner.shape), atol=1e-5)
    assert 10 < np.count_nonzero(found[:, 0, 0].real > 0) < 50


def test_sizes_of_orthogonal_matrices_are_not_negative() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^random\.orthogonal at .*: sizes are not negative\n  got n=-1"):
        tracer.random.orthogonal(tracer.random.key(0), -1)
