"""Vector quantisation and k-means beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq

import tracer
from tracer import errors
from tracer.scipy.cluster import vq


def test_codes_distances_and_whitening_are_scipy_s(rng: np.random.Generator) -> None:
    points = rng.normal(size=(60, 3))
    for mine, theirs in zip(
        tracer.jit(vq.vq)(points, points[:4]), scipy.cluster.vq.vq(points, points[:4]), strict=True
    ):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs)
    np.testing.assert_allclose(vq.whiten(points), scipy.cluster.vq.whiten(points))
    flat = points[:, 0]
    np.testing.assert_allclose(vq.vq(flat, flat[:4])[1], scipy.cluster.vq.vq(flat, flat[:4])[1])


def test_means_from_given_codes_are_scipy_s(rng: np.random.Generator) -> None:
    points = rng.normal(size=(60, 3))
    (codes, distance), expected = vq.kmeans(points, points[:4]), scipy.cluster.vq.kmeans(points, points[:4])
    np.testing.assert_allclose(codes, expected[0])
    assert float(distance) == pytest.approx(expected[1])
    found, labels = tracer.jit(lambda p, k: vq.kmeans2(p, k, minit="matrix"))(points, points[:4])
    expected = scipy.cluster.vq.kmeans2(points, points[:4], minit="matrix")
    np.testing.assert_allclose(found, expected[0])
    assert labels.tolist() == expected[1].tolist()


def test_random_starts_find_separate_clusters(rng: np.random.Generator) -> None:
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    points = (centres[:, None] + 0.1 * rng.normal(size=(3, 20, 2))).reshape(-1, 2)
    key = tracer.random.key(1)
    codes, distance = vq.kmeans(points, 3, rng=key)
    assert float(distance) < 0.2
    np.testing.assert_allclose(sorted(map(tuple, np.round(codes))), sorted(map(tuple, centres)), atol=1e-9)
    assert len(set(vq.kmeans2(points, 3, minit="++", rng=key)[1].tolist())) == 3
    for minit in ("points", "random"):
        codes, labels = vq.kmeans2(points, 3, minit=minit, rng=key)
        assert codes.shape == (3, 2)
        assert labels.shape == (60,)


def test_distances_have_gradients(rng: np.random.Generator) -> None:
    points, codes = rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
    tracer.test_util.check_grads(lambda p, c: vq.vq(p, c)[1], (points, codes), 1)
    assert np.isfinite(tracer.grad(lambda p: vq.vq(p, p)[1].sum())(points)).all()


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ShapeError, match=r"^vq at test_vq.py:.*: observations and codes are rows"):
        vq.vq(np.ones((3, 2)), np.ones((2, 3)))
    with pytest.raises(errors.ArgumentError, match="a random start takes a key"):
        vq.kmeans(np.ones((3, 2)), 2)
    with pytest.raises(errors.ArgumentError, match="no more than observations"):
        vq.kmeans(np.ones((3, 2)), 5, rng=tracer.random.key(0))
