"""More calls that NumPy answers too: signals, polynomials, quantiles, histograms, covariances, index tricks, edits."""

from __future__ import annotations

import numpy as np

from tests.numpy.value_cases import WITH_NAN, Case, I, J, P, T, V, X, Y, Z

KNOTS = np.sort(V)
METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
)  # fmt: skip
PARTS = np.array([0, 0.1, 0.25, 0.5, 0.625, 0.9, 1])
COORDINATES = (np.array([0, 4, 2]), np.array([-1, 3, 9]))
TIED = np.array([3.0, 1.0, 3.0, 2.0, 2.0, 8.0, 1.0, 0.0])

SIGNALS = [
    *[
        Case(f"{name} {mode} {len(v)}", lambda xp, x, y, n=name, m=mode: getattr(xp, n)(x, y, m), (V, v))
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for v in (V[:3] + 1, V[:2] - 2, np.arange(8.0))
    ],
    Case("correlate complex", lambda xp, x, y: xp.correlate(x, y, "full"), (Z[0], Z[1])),
    Case("convolve int", lambda xp, x, y: xp.convolve(x, y), (I[0], J[0])),
    Case("interp", lambda xp, x, f: xp.interp(x, KNOTS, f), (X, V)),
    Case("interp at knots", lambda xp: xp.interp(np.r_[KNOTS, np.inf, -np.inf, np.nan], KNOTS, V)),
    Case("interp at equal points", lambda xp, f: xp.interp([-1, 0, 0.5, 2, 3], [-4, 0, 0, 2, 2], f), (V[:5],)),
    Case("interp outside", lambda xp, x, f: xp.interp(x, KNOTS, f, left=-1.0, right=9.0), (3 * X, V)),
    Case("interp period", lambda xp, x, f: xp.interp(x, KNOTS, f, period=1.3), (X, V)),
    *[Case(f"gradient {e}", lambda xp, x, e=e: xp.gradient(x, edge_order=e), (T[0],)) for e in (1, 2)],
    Case("gradient spaced", lambda xp, x: xp.gradient(x, 2.0, np.array([0.0, 1.0, 4.0, 5.0])), (X,)),
    Case("gradient axis", lambda xp, x, h: xp.gradient(x, h[0], axis=1, edge_order=2), (X, P[0])),
    Case("trapezoid", lambda xp, y: xp.trapezoid(y, dx=0.5, axis=0), (X,)),
    Case("trapezoid x", lambda xp, y, x: xp.trapezoid(y, x), (X, V[:4])),
    Case("ediff1d", lambda xp, x: xp.ediff1d(x, to_end=9.0, to_begin=[1.0, 2.0]), (X,)),
    Case("unwrap", lambda xp, x: xp.unwrap(9 * x, axis=0), (X,)),
    Case("unwrap int", lambda xp, x: xp.unwrap(x, period=5), (I,)),
    *[
        Case(f"{name} {n}", lambda xp, name=name, n=n: getattr(xp, name)(n))
        for name in ("hanning", "hamming", "blackman", "bartlett")
        for n in (0, 1, 2, 7)
    ],
]

POLYNOMIALS = [
    Case("polyval", lambda xp, p, x: xp.polyval(p, x), (V, X)),
    Case("polyadd", lambda xp, p, q: xp.polyadd(p, q), (V, V[:3])),
    Case("polysub", lambda xp, p, q: xp.polysub(q, p), (V, V[:3])),
    Case("polymul", lambda xp, p, q: xp.polymul(p, q), (V, V[:3])),
    Case("polydiv", lambda xp, p, q: xp.polydiv(p, q)[0], (V, V[:3])),
    Case("polyder", lambda xp, p: xp.polyder(p, 2), (V,)),
    Case("polyder to nothing", lambda xp, p: xp.polyder(p, 7), (V,)),
    Case("polyint", lambda xp, p: xp.polyint(p, 2, [1.0, 2.0]), (V,)), Case("poly", lambda xp, r: xp.poly(r), (V,)),
    Case("vander", lambda xp, x: xp.vander(x, 4), (V,)),
    Case("vander up", lambda xp, x: xp.vander(x, increasing=True), (V,)),
    Case("trim_zeros", lambda xp: xp.trim_zeros([0, 0, 1, 0, 2, 0])),
    Case("trim_zeros front", lambda xp: xp.trim_zeros([0, 0, 1, 0, 2, 0], "f")),
]  # fmt: skip

QUANTILES = [
    *[Case(f"quantile {m}", lambda xp, x, m=m: xp.quantile(x, PARTS, method=m), (V,)) for m in METHODS],
    *[Case(f"quantile of ties {m}", lambda xp, m=m: xp.quantile(TIED, PARTS, method=m)) for m in METHODS],
    Case("quantile axes", lambda xp, x: xp.quantile(x, [[0.2], [0.7]], axis=(0, 2), keepdims=True), (T,)),
    Case("quantile nan", lambda xp, x: xp.quantile(x, 0.4, axis=0), (WITH_NAN,)),
    Case("percentile", lambda xp, x: xp.percentile(x, 30, axis=1), (X,)),
    *[
        Case(f"nanquantile {m}", lambda xp, x, m=m: xp.nanquantile(x, [0.2, 0.7], axis=0, method=m), (WITH_NAN,))
        for m in METHODS
    ],
    Case("nanpercentile", lambda xp, x: xp.nanpercentile(x, 30), (WITH_NAN,)),
    Case("nanmedian", lambda xp, x: xp.nanmedian(x, axis=1, keepdims=True), (WITH_NAN,)),
    Case("nanmedian of complex numbers", lambda xp: xp.nanmedian(np.array([[1 + 1j, 3j, 2], [np.nan, 2j, 1]]), axis=1)),
    Case("nanvar", lambda xp, x: xp.nanvar(x, axis=0, ddof=1), (WITH_NAN,)),
    Case("nanstd", lambda xp, x: xp.nanstd(x, axis=1, keepdims=True), (WITH_NAN,)),
    Case("nanprod", lambda xp, x: xp.nanprod(x, axis=1), (WITH_NAN,)),
    Case("cov", lambda xp, x: xp.cov(x), (X,)), Case("cov vector", lambda xp, x: xp.cov(x), (V,)),
    Case("cov pair", lambda xp, x, y: xp.cov(x, y, rowvar=False, bias=True), (X, Y)),
    Case("cov weights", lambda xp, x, w: xp.cov(x, aweights=w, fweights=np.array([1, 2, 1, 3])), (X, P[0])),
    Case("cov complex", lambda xp, x: xp.cov(x), (Z,)), Case("corrcoef", lambda xp, x: xp.corrcoef(x), (X,)),
]  # fmt: skip

COUNTS = [
    Case("histogram", lambda xp, x: xp.histogram(x, 4), (X,)),
    Case("histogram range", lambda xp, x: xp.histogram(x, 4, (-1.0, 1.0)), (X,)),
    Case("histogram edges", lambda xp, x, w: xp.histogram(x, [-1.0, 0.0, 2.0], weights=w), (X, P)),
    Case("histogram density", lambda xp, x: xp.histogram(x, 5, density=True), (X,)),
    Case("histogram int", lambda xp, x: xp.histogram(x, 3), (I,)),
    Case("histogram of one value", lambda xp: xp.histogram(np.ones(3), 2)),
    Case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y, (2, 3), density=True), (X[0], Y[0])),
    Case("histogramdd", lambda xp, x, w: xp.histogramdd(x, 2, weights=w)[0], (X, P[:, 0])),
    Case("histogram_bin_edges", lambda xp: xp.histogram_bin_edges(X, "auto")),
    Case("digitize", lambda xp, x: xp.digitize(x, KNOTS), (np.r_[X[0], KNOTS],)),
    Case("digitize right", lambda xp, x: xp.digitize(x, KNOTS, right=True), (np.r_[X[0], KNOTS],)),
    Case("digitize down", lambda xp, x: xp.digitize(x, KNOTS[::-1]), (np.r_[X[0], KNOTS],)),
    Case("union1d", lambda xp: xp.union1d(I, J)), Case("intersect1d", lambda xp: xp.intersect1d(I, J)),
    Case("intersect1d indices", lambda xp: xp.intersect1d(I, J, return_indices=True)),
    Case("setdiff1d", lambda xp: xp.setdiff1d(I, J)), Case("setxor1d", lambda xp: xp.setxor1d(I, J)),
]  # fmt: skip

EDITS = [
    Case("insert", lambda xp, x: xp.insert(x, 1, 9.0), (V,)),
    Case("insert row", lambda xp, x, v: xp.insert(x, -1, v, axis=0), (X, Y[0])),
    Case("insert many", lambda xp, x: xp.insert(x, [3, 0, 3], [7.0, 8.0, 9.0]), (V,)),
    Case("insert columns", lambda xp, x: xp.insert(x, [0, 2], 5.0, axis=1), (X,)),
    Case("resize", lambda xp, x: xp.resize(x, (3, 4)), (V,)), Case("resize down", lambda xp, x: xp.resize(x, 3), (X,)),
    Case("piecewise", lambda xp, x: xp.piecewise(x, [x < -0.5, x > 0.5], [lambda v: v * v, 3.0, lambda v: -v]), (X,)),
    Case("apply_over_axes", lambda xp, x: xp.apply_over_axes(xp.sum, x, [0, 2]), (T,)),
    Case("fromfunction", lambda xp: xp.fromfunction(lambda i, j: 2 * i + j, (2, 3))),
    Case("geomspace", lambda xp: xp.geomspace(1.0, 1000.0, 7)),
    Case("geomspace open", lambda xp, x: xp.geomspace(x, 2 * x, 4, endpoint=False, axis=1), (P[0],)),
    Case("sort_complex", lambda xp, x: xp.sort_complex(x), (Z[0],)),
    Case("matvec", lambda xp, x, y: xp.matvec(x, y), (T, X[0])),
    Case("vecmat", lambda xp, x, y: xp.vecmat(x, y), (Z[:, :3], Z)),
    Case("ix_", lambda xp, x: x[xp.ix_([2, 0], [True, False, True, True])], (X,)),
    Case("mgrid", lambda xp: xp.mgrid[0:3, 1:2:3j]), Case("ogrid", lambda xp: xp.ogrid[0:3, 0:4:2]),
    Case("mgrid vector", lambda xp: xp.mgrid[2:5]),
    Case("r_", lambda xp, x: xp.r_[0.0, x, 1:3], (V,)), Case("c_", lambda xp, x, y: xp.c_[x, y], (V, V)),
    Case("tril_indices", lambda xp: xp.tril_indices(3, 1, 4)), Case("triu_indices", lambda xp: xp.triu_indices(3, -1)),
    Case("tril_indices_from", lambda xp: xp.tril_indices_from(X)),
    Case("triu_indices_from", lambda xp: xp.triu_indices_from(X)),
    Case("mask_indices", lambda xp: xp.mask_indices(3, xp.tril, -1)),
    Case("unravel_index", lambda xp, i: xp.unravel_index(i, (3, 4)), (np.array([[0, 5], [11, 7]]),)),
    *[
        Case(f"ravel_multi_index {m}", lambda xp, i, j, m=m: xp.ravel_multi_index((i, j), (3, 4), m), COORDINATES)
        for m in ("clip", "wrap", ("wrap", "clip"))
    ],
    Case("ravel_multi_index", lambda xp, i, j: xp.ravel_multi_index((i, j), (9, 12)), (COORDINATES[0], I[1, :3] % 12)),
    Case("vectorize", lambda xp, x, y: xp.vectorize(lambda a, b: a * b + 1)(x, y), (X, X[0])),
    Case(
        "vectorize signature",
        lambda xp, x, y: xp.vectorize(xp.matmul, signature="(m,n),(n)->(m)")(x, y), (T, X[0]),
    ),
]  # fmt: skip

BREADTH = [*SIGNALS, *POLYNOMIALS, *QUANTILES, *COUNTS, *EDITS]
