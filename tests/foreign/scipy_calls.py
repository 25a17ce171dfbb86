"""Functions of SciPy's that compute on the arrays of any namespace, and what comes of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import constants, differentiate, integrate, interpolate, ndimage, optimize, signal, special, stats
from scipy.cluster import hierarchy, vq
from scipy.optimize import elementwise
from scipy.spatial.transform import Rotation

import tracer
import tracer.numpy as tnp
from tests.foreign.outcomes import NUMPY, REFUSED, WRONG, Case

_rng = np.random.default_rng(0)
X = _rng.normal(size=(6, 4))
P = np.abs(X) + 0.5
V, W = _rng.normal(size=12), _rng.normal(size=12)
U = _rng.uniform(0.1, 0.9, (3, 4))
K = _rng.normal(size=3)
KNOTS, HEIGHTS = np.arange(12.0), np.sin(np.arange(12.0))


def xp_of(x: Any) -> Any:
    return tnp if isinstance(x, tracer.Array) else np


def _test(name: str, *more: Any) -> Callable[..., Any]:
    """The statistic and the p-value of a test of hypotheses."""

    def call(*xs: Any) -> Any:
        found = getattr(stats, name)(*xs, *more)
        return found.statistic, found.pvalue

    return call


def _stat(name: str, *more: Any) -> Callable[..., Any]:
    def call(*xs: Any) -> Any:
        found = getattr(stats, name)(*xs, *more)
        return tuple(found) if isinstance(found, tuple) else found

    return call


def _statistics(names: str, *operands: Any, more: tuple[Any, ...] = (), **outcomes: Any) -> list[Case]:
    return [Case(f"stats.{name}", _stat(name, *more), operands, **outcomes) for name in names.split()]


def _tests(names: str, *operands: Any, more: tuple[Any, ...] = (), **outcomes: Any) -> list[Case]:
    return [Case(f"stats.{name}", _test(name, *more), operands, **outcomes) for name in names.split()]


def _specials(names: str, *operands: Any, **outcomes: Any) -> list[Case]:
    return [Case(f"special.{name}", getattr(special, name), operands, **outcomes) for name in names.split()]


STATISTICS: list[Case] = [
    *_statistics(
        "gmean zscore gzscore skew kurtosis sem kstat kstatvar tmin tmax differential_entropy circmean circvar circstd "
        "describe",
        P,
    ),
    *_statistics("hmean variation tmean tvar tstd tsem gstd iqr median_abs_deviation lmoment", P, jit=REFUSED),
    *_statistics("entropy", P),
    *_statistics("mode", np.round(P), jit=REFUSED, grad=None),
    *_statistics("rankdata", P, jit=REFUSED, grad=None),
    *_statistics("sigmaclip", V, jit=REFUSED),
    *_statistics("moment pmean", P, more=(2,), jit=REFUSED),
    *_statistics("quantile", P, more=(0.3,), jit=REFUSED),
    *_statistics("trim_mean", P, more=(0.1,)),
    *_statistics("zmap", V, W),
    Case("stats.boxcox_llf", lambda x: stats.boxcox_llf(0.5, x), (P,)),
    Case("stats.yeojohnson_llf", lambda x: stats.yeojohnson_llf(0.5, x), (P,), jit=REFUSED),
    Case("stats.false_discovery_control", stats.false_discovery_control, (U[0],), jit=REFUSED),
    Case("stats.directional_stats", lambda x: stats.directional_stats(x).mean_direction, (P,)),
    *_tests("pearsonr", V, W, jit=REFUSED),
    *_tests("ttest_ind ttest_rel", V, W),
    *_tests("ttest_1samp", P, more=(0.3,)),
    *_tests("jarque_bera skewtest kurtosistest normaltest", V + 0.1 * V**2),
    *_tests("bartlett", V, W),
    *_tests("levene", V, W, jit=REFUSED),
    *_tests("fligner", V, W, jit=REFUSED),
    *_tests("chisquare power_divergence", P),
    *_tests("combine_pvalues", U[0]),
    *_tests("cramervonmises ks_1samp", V, more=(special.ndtr,), jit=REFUSED, grad=None),
    *_tests("f_oneway", V, W),
    *_tests("alexandergovern", V, W, jit=REFUSED),
    *_tests(
        "epps_singleton_2samp "
        "mannwhitneyu wilcoxon kruskal ansari mood brunnermunzel cramervonmises_2samp spearmanrho chatterjeexi",
        V,
        W,
        jit=REFUSED,
        grad=None,
    ),
    *_tests("friedmanchisquare", V, W, V + W, jit=REFUSED, grad=None),
    Case(
        "stats.ttest_ind_from_stats",
        lambda a, b: _pair(stats.ttest_ind_from_stats(*a[:2], 5, *b[:2], 6)),
        (P[0, :2], P[1, :2]),
    ),
    Case("stats.monte_carlo_test", lambda x: _pair(stats.monte_carlo_test(x, _sampler(x), _mean)), (V,), grad=None),
    Case(
        "stats.permutation_test",
        lambda x, y: _pair(stats.permutation_test((x, y), _gap, n_resamples=99, rng=np.random.default_rng(0))),
        (V, W),
        grad=None,
    ),
    Case(
        "stats.bootstrap",
        lambda x: (
            stats.bootstrap(
                (x,), _mean, n_resamples=99, method="percentile", rng=np.random.default_rng(0)
            ).standard_error
        ),
        (V,),
        jit=REFUSED,
        grad=None,
    ),
]


def _pair(found: Any) -> tuple[Any, Any]:
    return found.statistic, found.pvalue


def _sampler(x: Any) -> Callable[..., Any]:
    generator = np.random.default_rng(0)
    return lambda size: xp_of(x).asarray(generator.normal(size=size))


def _mean(x: Any, axis: int) -> Any:
    return x.mean(axis=axis)


def _gap(x: Any, y: Any, axis: int) -> Any:
    return x.mean(axis=axis) - y.mean(axis=axis)


SPECIALS: list[Case] = [
    *_specials("logsumexp softmax log_softmax", X),
    *_specials("erf erfc expit logit ndtr ndtri log_ndtr gammaln psi gamma entr erfinv", U),
    *_specials("cbrt cosm1 exp10 exp2 expm1 exprel gammasgn i0 i0e i1 i1e log1p log_expit rgamma", U),
    *_specials("dawsn erfcx exp1 expi spence j0 j1 k0 k0e k1 k1e loggamma y0 y1", U),
    *_specials(
        "xlogy xlog1py rel_entr kl_div beta betaln binom boxcox boxcox1p huber poch pseudo_huber chdtr chdtrc",
        U + 1.0,
        U[::-1] + 1.0,
    ),
    Case("special.gammainc", lambda x: special.gammainc(xp_of(x).asarray(1.5), x), (U,)),
    Case("special.gammaincc", lambda x: special.gammaincc(xp_of(x).asarray(1.5), x), (U,)),
    Case("special.betainc", lambda x: special.betainc(xp_of(x).asarray(1.5), xp_of(x).asarray(2.5), x), (U,)),
    Case("special.betaincc", lambda x: special.betaincc(xp_of(x).asarray(1.5), xp_of(x).asarray(2.5), x), (U,)),
    *[
        Case(
            f"special.{name}",
            lambda x, name=name: getattr(special, name)(xp_of(x).asarray(2.0), xp_of(x).asarray(5.0), x),
            (U,),
        )
        for name in ("fdtr", "fdtrc")
    ],
    Case("special.stdtr", lambda x: special.stdtr(xp_of(x).asarray(3.0), x), (X,)),
    Case("special.multigammaln", lambda x: special.multigammaln(x, 2), (U + 2.0,)),
    *[Case(f"special.{name}", getattr(special, name), (U,), jit=REFUSED, grad=REFUSED) for name in ("ellipk", "zetac")],
]

SIGNALS: list[Case] = [
    *[
        Case(
            f"signal.{name}",
            lambda x, y, name=name: getattr(signal, name)(x, y, mode="same"),
            (V, K),
            jit=REFUSED,
            grad=REFUSED,
        )
        for name in ("convolve", "correlate")
    ],
    Case("signal.fftconvolve", lambda x, y: signal.fftconvolve(x, y, mode="same"), (V, K)),
    Case(
        "signal.oaconvolve",
        lambda x, y: signal.oaconvolve(x, y, mode="same"),
        (V, K),
        eager=WRONG,
        jit=WRONG,
        grad=WRONG,
    ),
    Case("signal.envelope", signal.envelope, (V,)),
    Case("signal.hilbert", signal.hilbert, (V,)),
    Case("signal.resample", lambda x: signal.resample(x, 20), (V,)),
    *[
        Case(f"signal.{name}", call, (V,), jit=REFUSED, grad=REFUSED)
        for name, call in {
            "detrend": signal.detrend,
            "medfilt": lambda x: signal.medfilt(x, 3),
            "resample_poly": lambda x: signal.resample_poly(x, 2, 1),
            "savgol_filter": lambda x: signal.savgol_filter(x, 5, 2),
            "wiener": lambda x: signal.wiener(x, 3),
            "lfilter": lambda x: signal.lfilter(xp_of(x).asarray([1.0, 0.5]), xp_of(x).asarray([1.0, 0.2]), x),
            "upfirdn": lambda x: signal.upfirdn(xp_of(x).asarray(K), x, 2),
        }.items()
    ],
    Case("signal.vectorstrength", lambda x: signal.vectorstrength(x, 2.0), (V,), jit=REFUSED),
    Case("signal.gauss_spline", lambda x: signal.gauss_spline(x, 3), (V,)),
    Case("signal.freqz", lambda b: signal.freqz(b, worN=8), (K,)),
    *[
        Case(f"ndimage.{name}", call, (X,), jit=REFUSED, grad=REFUSED)
        for name, call in {
            "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
            "sobel": ndimage.sobel,
            "laplace": ndimage.laplace,
            "median_filter": lambda x: ndimage.median_filter(x, 3),
            "uniform_filter": lambda x: ndimage.uniform_filter(x, 3),
            "zoom": lambda x: ndimage.zoom(x, 2),
            "rotate": lambda x: ndimage.rotate(x, 30),
            "shift": lambda x: ndimage.shift(x, 0.5),
            "sum": ndimage.sum,
            "center_of_mass": lambda x: ndimage.center_of_mass(x**2),
            "variance": ndimage.variance,
        }.items()
    ],
    Case("ndimage.convolve", ndimage.convolve, (X, X[:3, :3]), jit=REFUSED, grad=REFUSED),
    Case("ndimage.map_coordinates", ndimage.map_coordinates, (X, P[:2, :3]), jit=REFUSED, grad=REFUSED),
    Case("ndimage.label", ndimage.label, ((X > 0).astype(int),), jit=REFUSED, grad=None),
    Case("ndimage.binary_erosion", ndimage.binary_erosion, (X > -1,), jit=REFUSED, grad=None),
]

CALCULUS: list[Case] = [
    Case("integrate.trapezoid", lambda y: integrate.trapezoid(y, dx=0.1), (X,)),
    Case("integrate.cumulative_trapezoid", lambda y: integrate.cumulative_trapezoid(y, dx=0.1), (X,)),
    Case("integrate.cumulative_simpson", lambda y: integrate.cumulative_simpson(y, dx=0.1), (X,)),
    Case("integrate.romb", lambda y: integrate.romb(y, dx=0.1), (X[:5].T,)),
    Case("integrate.simpson", lambda y: integrate.simpson(y, dx=0.1), (X,), eager=NUMPY, jit=REFUSED, grad=REFUSED),
    Case(
        "integrate.cubature",
        lambda a, b: integrate.cubature(_hill, a, b).estimate,
        (np.zeros(2), np.ones(2)),
        jit=REFUSED,
    ),
    Case(
        "integrate.tanhsinh",
        lambda a: integrate.tanhsinh(_bell, a, 2.0 + a).integral,
        (np.array([0.0, 0.3]),),
        jit=REFUSED,
    ),
    Case(
        "integrate.nsum",
        lambda a: integrate.nsum(lambda k: 1 / k**2, a, xp_of(a).asarray(np.inf)).sum,
        (np.array([1.0, 2.0]),),
        eager=WRONG,
        jit=REFUSED,
        grad=None,
    ),
    Case(
        "integrate.qmc_quad",
        lambda a, b: integrate.qmc_quad(_flat, a, b, qrng=stats.qmc.Halton(2, rng=0)).integral,
        (np.zeros(2), np.ones(2)),
        jit=REFUSED,
    ),
    Case("differentiate.derivative", lambda x: differentiate.derivative(_wave, x).df, (U[0],), jit=REFUSED, grad=None),
    Case("differentiate.jacobian", lambda x: differentiate.jacobian(_wave, x).df, (U[0],), jit=REFUSED, grad=None),
    Case(
        "differentiate.hessian",
        lambda x: differentiate.hessian(_form, x).ddf,
        (U[0],),
        jit=REFUSED,
        grad=None,
        tolerance=1e-7,
    ),
    Case(
        "optimize.elementwise.find_root",
        lambda a: elementwise.find_root(_cubic, (a, 2.0 + a)).x,
        (np.array([0.0, 1.0]),),
        jit=REFUSED,
        grad=None,
    ),
    Case(
        "optimize.elementwise.find_minimum",
        lambda a: elementwise.find_minimum(_bowl, (a, 0.5 + a, 3.0 + a)).x,
        (np.array([0.0, 0.3]),),
        jit=REFUSED,
        grad=None,
    ),
    Case(
        "optimize.elementwise.bracket_root",
        lambda a: elementwise.bracket_root(_cubic, a, 0.5 + a).bracket,
        (np.array([0.0, 0.4]),),
        jit=REFUSED,
        grad=None,
    ),
    Case(
        "optimize.elementwise.bracket_minimum",
        lambda a: elementwise.bracket_minimum(_bowl, a).bracket,
        (np.array([0.0, 0.4]),),
        jit=REFUSED,
        grad=None,
    ),
    Case("optimize.rosen", optimize.rosen, (U[0],)),
    Case("optimize.rosen_der", optimize.rosen_der, (U[0],)),
    Case("optimize.rosen_hess", optimize.rosen_hess, (U[0],)),
    Case("optimize.rosen_hess_prod", optimize.rosen_hess_prod, (U[0], U[1])),
]


def _hill(x: Any) -> Any:
    return xp_of(x).sum(xp_of(x).exp(-(x**2)), axis=-1)


def _bell(x: Any) -> Any:
    return xp_of(x).exp(-(x**2))


def _flat(x: Any) -> Any:
    return xp_of(x).sum(x, axis=0)


def _wave(x: Any) -> Any:
    return xp_of(x).sin(x)


def _form(x: Any) -> Any:
    return xp_of(x).sum(xp_of(x).exp(x) * x[::-1], axis=0)


def _cubic(x: Any) -> Any:
    return x**3 - 2.0


def _bowl(x: Any) -> Any:
    return (x - 1.0) ** 2


GEOMETRY: list[Case] = [
    Case("spatial.transform.Rotation.as_matrix", lambda q: Rotation.from_quat(q).as_matrix(), (X,)),
    Case("spatial.transform.Rotation.as_euler", lambda v: Rotation.from_rotvec(v).as_euler("xyz"), (X[:, :3],)),
    Case("spatial.transform.Rotation.apply", lambda q, v: Rotation.from_quat(q).apply(v), (X, X[:, :3])),
    Case(
        "spatial.transform.Rotation.__mul__",
        lambda q, r: (Rotation.from_quat(q) * Rotation.from_quat(r)).as_quat(),
        (X, X[::-1]),
    ),
    Case("cluster.vq.whiten", vq.whiten, (X,)),
    *[
        Case(f"cluster.vq.{name}", call, (X,), jit=REFUSED, grad=REFUSED)
        for name, call in {
            "vq": lambda x: vq.vq(x, x[:2]),
            "kmeans": lambda x: vq.kmeans(x, x[:2]),
            "kmeans2": lambda x: vq.kmeans2(x, x[:2], minit="matrix"),
        }.items()
    ],
    Case("cluster.hierarchy.linkage", hierarchy.linkage, (X,), jit=REFUSED, grad=REFUSED),
    *[
        Case(
            f"interpolate.{name}",
            lambda x, y, t, make=make: make(x, y)(t),
            (KNOTS, HEIGHTS, P),
            jit=REFUSED,
            grad=REFUSED,
        )
        for name, make in {
            "CubicSpline": interpolate.CubicSpline,
            "Akima1DInterpolator": interpolate.Akima1DInterpolator,
            "make_interp_spline": interpolate.make_interp_spline,
            "RegularGridInterpolator": lambda x, y: (
                lambda t: interpolate.RegularGridInterpolator((x,), y)(t[..., None])
            ),
        }.items()
    ],
    Case(
        "interpolate.RBFInterpolator",
        lambda x, y, t: interpolate.RBFInterpolator(x[:, None], y)(t.reshape(-1, 1)),
        (KNOTS, HEIGHTS, P),
    ),
    Case(
        "interpolate.PchipInterpolator",
        lambda x, y, t: interpolate.PchipInterpolator(x, y)(t),
        (KNOTS, HEIGHTS, P),
        eager=REFUSED,
        jit=REFUSED,
        grad=REFUSED,
    ),
    Case("constants.convert_temperature", lambda x: constants.convert_temperature(x, "C", "K"), (V,)),
]

CASES = [*STATISTICS, *SPECIALS, *SIGNALS, *CALCULUS, *GEOMETRY]
