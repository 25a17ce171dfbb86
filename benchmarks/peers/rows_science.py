"""Rows of the sciences: special functions, signals, minima and fits, differential equations, images, sparse arrays."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from peers.row import Maker, Row, World

_SAME = ("numpy",)
_NO_JAX = ("jax",)


def _numbers(count: int, low: float, high: float) -> Any:
    return np.random.default_rng(count).uniform(low, high, count)


def _scipy(w: World, name: str) -> Any:
    """A module of SciPy, or of the peer's functions under SciPy's names."""
    return import_module(f"scipy.{name}" if w.root is None else f"{w.root.__name__}.scipy.{name}")


# Special functions


def _special(name: str, *before: float, after: tuple[float, ...] = ()) -> Maker:
    return lambda w: lambda x: getattr(w.special, name)(*before, x, *after)


def _function(label: str, name: str, span: tuple[float, float], *before: float, after: Any = (), **given: Any) -> Row:
    count = int(float(label.split()[-1]))
    return Row(
        f"{name} {label}", "special functions", partial(lambda *ends: (_numbers(*ends),), count, *span),
        _special(name, *before, after=after), _SAME, tolerance=1e-9, **given,
    )  # fmt: skip


_SPECIAL = [
    _function("f8 1e6", "ndtri", (0.001, 0.999)),
    _function("f8 1e6", "i0e", (-20, 20)),
    _function("f8 1e6", "zeta", (1.5, 20), after=(2.0,)),
    _function("f8 1e6", "gammainc", (0.1, 20), 3.0),
    _function("f8 1e5", "betainc", (0.01, 0.99), 2.5, 4.0),
    _function("f8 1e5", "hyp1f1", (-5, 5), 1.5, 2.5),
    _function("f8 1e5", "spence", (0.1, 9)),
    _function("f8 1e5", "expi", (0.1, 20)),
]

# Signals


def _signal(name: str, **given: Any) -> Maker:
    return lambda w: lambda *xs: getattr(_scipy(w, "signal"), name)(*xs, **given)


def _stft(w: World) -> Any:
    return lambda x: _scipy(w, "signal").stft(x, nperseg=256)[2]


def _stft_torch(w: World) -> Any:
    window = w.np.hann_window(256, dtype=w.np.float64)
    return lambda x: (
        w.np.stft(x, 256, 128, 256, window, center=True, pad_mode="constant", return_complex=True) / window.sum()
    )


_FILTER = ([0.2, 0.3, 0.1], [1.0, -0.5, 0.2])


def _lfilter(w: World) -> Any:
    b, a = (np.asarray(part) for part in _FILTER)
    return lambda x: _scipy(w, "signal").lfilter(b, a, x)


_SIGNALS = [
    Row(
        "fftconvolve f8 1e5, 1e3", "signals", lambda: (_numbers(10**5, -1, 1), _numbers(10**3, -1, 1)),
        _signal("fftconvolve"), _SAME, tolerance=1e-9,
    ),
    Row(
        "fftconvolve f8 512x512, 31x31", "signals",
        lambda: (_numbers(512**2, -1, 1).reshape(512, 512), _numbers(961, -1, 1).reshape(31, 31)),
        _signal("fftconvolve", mode="same"), _SAME, tolerance=1e-9,
    ),
    Row("stft f8 2^20", "signals", lambda: (_numbers(2**20, -1, 1),), _stft, _SAME, tolerance=1e-9),
    Row(
        "welch f8 2^20", "signals", lambda: (_numbers(2**20, -1, 1),),
        lambda w: lambda x: _scipy(w, "signal").welch(x, nperseg=1024)[1], _SAME, tolerance=1e-9,
    ),
    Row("lfilter f8 1e6", "signals", lambda: (_numbers(10**6, -1, 1),), _lfilter, _SAME, tolerance=1e-9,
        without=_NO_JAX),
    Row("savgol_filter f8 1e6", "signals", lambda: (_numbers(10**6, -1, 1),),
        _signal("savgol_filter", window_length=11, polyorder=3), _SAME, tolerance=1e-9, without=_NO_JAX),
]  # fmt: skip

# Minima, fits, differential equations


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _bfgs(w: World) -> Any:
    minimize = _scipy(w, "optimize").minimize
    return lambda x: minimize(_rosenbrock, x, method="BFGS").x


def _bfgs_scipy(w: World) -> Any:
    optimize = _scipy(w, "optimize")
    return lambda x: optimize.minimize(optimize.rosen, x, jac=optimize.rosen_der, method="BFGS").x


def _minimum(n: int) -> Row:
    return Row(
        f"minimize BFGS Rosenbrock of {n}", "minima and equations", lambda: (_numbers(n, 0.5, 0.9),), _bfgs,
        others={"numpy": _bfgs_scipy}, tolerance=1e-3,
    )  # fmt: skip


def _decay(xp: Any, t: Any, p: Any) -> Any:
    return p[0] * xp.exp(-p[1] * t) + p[2]


def _data() -> Any:
    t = np.linspace(0, 3, 1000)
    return t, _decay(np, t, (3.0, 1.5, 0.2)) + 0.05 * np.random.default_rng(0).normal(size=t.size)


def _fit(w: World) -> Any:
    fit = _scipy(w, "optimize").least_squares
    return lambda t, y: fit(lambda p: _decay(w.np, t, p) - y, np.ones(3), method="lm").x


def _pendulum(xp: Any, t: Any, y: Any) -> Any:
    return [y[1], -xp.sin(y[0]) - 0.1 * y[1]]


_TIMES = np.linspace(0, 20, 100)


def _ivp(method: str, tolerance: float, function: Any = _pendulum, until: float = 20.0) -> Maker:
    times = _TIMES * (until / 20)
    return lambda w: lambda y: _scipy(w, "integrate").solve_ivp(
        partial(function, w.np), (0.0, until), y, method, times, rtol=tolerance, atol=tolerance
    ).y  # fmt: skip


def _robertson(xp: Any, t: Any, y: Any) -> Any:
    slow, fast, square = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [fast - slow, slow - fast - square, square]


def _odeint(w: World) -> Any:
    solve = import_module(f"{w.root.__name__}.experimental.ode").odeint
    return lambda y, times: solve(lambda y, t: w.np.stack(_pendulum(w.np, t, y)), y, times, rtol=1e-9, atol=1e-9)


def _odeint_scipy(w: World) -> Any:
    return lambda y, times: _scipy(w, "integrate").odeint(
        lambda y, t: _pendulum(np, t, y), y, times, rtol=1e-9, atol=1e-9
    )


def _odeint_gradient(w: World) -> Any:
    return w.root.grad(lambda y, times: (_odeint(w)(y, times) ** 2).sum())


_START = (np.array([1.0, 0.0]),)
_EQUATIONS = [
    _minimum(10),
    _minimum(100),
    Row("least_squares f8 1000, 3", "minima and equations", _data, _fit, _SAME, tolerance=1e-4, without=_NO_JAX),
    Row("solve_ivp DOP853 pendulum", "minima and equations", lambda: _START, _ivp("DOP853", 1e-9), _SAME,
        tolerance=1e-6, without=_NO_JAX),
    Row("solve_ivp RK45 pendulum", "minima and equations", lambda: _START, _ivp("RK45", 1e-6), _SAME,
        tolerance=1e-4, without=_NO_JAX),
    Row("solve_ivp Radau Robertson", "minima and equations", lambda: (np.array([1.0, 0, 0]),),
        _ivp("Radau", 1e-6, _robertson, 1e4), _SAME, tolerance=1e-4, without=_NO_JAX),
    Row("odeint pendulum", "minima and equations", lambda: (*_START, _TIMES), _odeint,
        others={"numpy": _odeint_scipy}, tolerance=1e-6),
    Row("odeint gradient pendulum", "minima and equations", lambda: (*_START, _TIMES), _odeint_gradient,
        tolerance=1e-5),
]  # fmt: skip

# Images and interpolation


def _image(n: int) -> Any:
    return (_numbers(n * n, 0, 1).reshape(n, n),)


def _filter(name: str, *given: Any, **options: Any) -> Maker:
    return lambda w: lambda x: getattr(_scipy(w, "ndimage"), name)(x, *given, **options)


def _coordinates(w: World) -> Any:
    return lambda x, i, j: _scipy(w, "ndimage").map_coordinates(x, [i, j], order=1, mode="nearest")


def _grid(w: World) -> Any:
    def read(values: Any, points: Any) -> Any:
        axes = tuple(np.linspace(0, 1, n) for n in (40, 50, 60))
        return _scipy(w, "interpolate").RegularGridInterpolator(axes, values, bounds_error=False)(points)

    return read


def _spline(w: World) -> Any:
    return lambda x, y, t: _scipy(w, "interpolate").CubicSpline(x, y)(t)


_IMAGES = [
    Row("interp f8 1e6 in 1e3", "images and interpolation",
        lambda: (_numbers(10**6, -1, 11), np.linspace(0, 10, 1000), _numbers(1000, -1, 1)),
        lambda w: w.np.interp, _SAME, tolerance=1e-9),
    Row("RegularGridInterpolator f8 1e5 in 40x50x60", "images and interpolation",
        lambda: (_numbers(120000, -1, 1).reshape(40, 50, 60), _numbers(3 * 10**5, 0, 1).reshape(-1, 3)),
        _grid, _SAME, tolerance=1e-9),
    Row("CubicSpline f8 1e4 at 1e5", "images and interpolation",
        lambda: (np.linspace(0, 1, 10**4) ** 2, _numbers(10**4, -1, 1), _numbers(10**5, 0, 1)), _spline, _SAME,
        tolerance=1e-8, without=_NO_JAX),
    Row("gaussian_filter f8 1024x1024", "images and interpolation", lambda: _image(1024),
        _filter("gaussian_filter", 2.0), _SAME, tolerance=1e-9, without=_NO_JAX),
    Row("median_filter f8 256x256", "images and interpolation", lambda: _image(256), _filter("median_filter", 3),
        _SAME, tolerance=1e-9, without=_NO_JAX),
    Row("maximum_filter f8 1024x1024", "images and interpolation", lambda: _image(1024),
        _filter("maximum_filter", 5), _SAME, tolerance=1e-9, without=_NO_JAX),
    Row("rotate f8 512x512", "images and interpolation", lambda: _image(512), _filter("rotate", 30.0, order=1), _SAME,
        tolerance=1e-9, without=_NO_JAX),
    Row("map_coordinates f8 1e6", "images and interpolation",
        lambda: (*_image(1024), _numbers(10**6, 0, 1023), _numbers(10**6 + 1, 0, 1023)[1:]), _coordinates, _SAME,
        tolerance=1e-9),
]  # fmt: skip

# Sparse arrays, clusters


def _entries(rows: int, each: int) -> Any:
    """A matrix [rows, rows] by rows: values, columns and the beginnings of rows."""
    random = np.random.default_rng(rows)
    columns = np.sort(random.integers(0, rows, (rows, each)), 1).astype(np.int32)
    return random.normal(size=rows * each), columns.ravel(), np.arange(0, rows * each + 1, each, dtype=np.int32)


def _with(operand: Any, rows: int = 10**5, each: int = 10) -> Any:
    return lambda: (*_entries(rows, each), operand)


def _coo(operand: Any, rows: int = 10**5, each: int = 10) -> Any:
    def arguments() -> Any:
        data, columns, _ = _entries(rows, each)
        lines = np.repeat(np.arange(rows, dtype=np.int32), each)
        return data, np.stack([lines, columns], 1), operand

    return arguments


def _csr_product(w: World) -> Any:
    n = 10**5
    if w.name == "numpy":
        return lambda data, columns, starts, x: import_module("scipy.sparse").csr_array((data, columns, starts)) @ x
    sparse = import_module(f"{w.root.__name__}.experimental.sparse")
    return lambda data, columns, starts, x: sparse.CSR((data, columns, starts), shape=(n, n)) @ x


def _bcoo_product(w: World) -> Any:
    n = 10**5
    if w.name == "numpy":
        sparse = import_module("scipy.sparse")
        return lambda data, indices, x: sparse.coo_array((data, (indices[:, 0], indices[:, 1])), shape=(n, n)) @ x
    sparse = import_module(f"{w.root.__name__}.experimental.sparse")
    return lambda data, indices, x: sparse.BCOO((data, indices), shape=(n, n)) @ x


def _csr_torch(w: World) -> Any:
    n = 10**5
    return lambda data, columns, starts, x: w.np.sparse_csr_tensor(starts, columns, data, (n, n)) @ x


def _coo_torch(w: World) -> Any:
    n = 10**5
    return lambda data, indices, x: w.np.sparse_coo_tensor(indices.T, data, (n, n)) @ x


def _line(w: World) -> Any:
    def residual(u: Any) -> Any:
        p = w.np.concatenate([0 * u[:1], u, 0 * u[:1]])
        return p[2:] - 2 * u + p[:-2] + w.np.exp(u) * 1e-3

    return residual


def _jacobian(w: World, *, sparse: bool) -> Any:
    derivative = w.root.sparse_jacobian if sparse and w.name == "tracer" else w.root.jacfwd
    return lambda u, x: derivative(_line(w))(u) @ x


def _kmeans(w: World) -> Any:
    return lambda points, codes: _scipy(w, "cluster.vq").kmeans(points, codes, thresh=0.0)[0]


def _points(count: int, features: int, codes: int) -> Any:
    random = np.random.default_rng(count)
    centres = random.normal(size=(codes, features)) * 5
    points = centres[random.integers(0, codes, count)] + random.normal(size=(count, features))
    return points, points[:codes]


_SPARSE = [
    Row("CSR product f8 1e5x1e5, 1e6, vector", "sparse and clusters", _with(_numbers(10**5, -1, 1)), _csr_product,
        _SAME, tolerance=1e-9),
    Row("CSR product f8 1e5x1e5, 1e6, 16 columns", "sparse and clusters",
        _with(_numbers(16 * 10**5, -1, 1).reshape(-1, 16)), _csr_product, _SAME, tolerance=1e-9),
    Row("BCOO product f8 1e5x1e5, 1e6, vector", "sparse and clusters", _coo(_numbers(10**5, -1, 1)), _bcoo_product,
        _SAME, tolerance=1e-9),
    Row("jacobian dense f8 2000", "sparse and clusters", lambda: (_numbers(2000, 0, 1), _numbers(2001, -1, 1)[1:]),
        partial(_jacobian, sparse=False), tolerance=1e-9),
    Row("jacobian sparse f8 2000", "sparse and clusters", lambda: (_numbers(2000, 0, 1), _numbers(2001, -1, 1)[1:]),
        partial(_jacobian, sparse=True), tolerance=1e-9),
    Row("vq f8 1e5x8, 64 codes", "sparse and clusters", lambda: _points(10**5, 8, 64),
        lambda w: _scipy(w, "cluster.vq").vq, _SAME, tolerance=1e-9),
    Row("kmeans f8 1e4x4, 16 codes", "sparse and clusters", lambda: _points(10**4, 4, 16), _kmeans, _SAME,
        tolerance=1e-9, without=_NO_JAX),
]  # fmt: skip

ROWS = [*_SPECIAL, *_SIGNALS, *_EQUATIONS, *_IMAGES, *_SPARSE]
TORCH: dict[str, Maker] = {
    "ndtri": lambda w: w.special.ndtri,
    "i0e": lambda w: w.special.i0e,
    "zeta": lambda w: lambda x: w.special.zeta(x, w.np.tensor(2.0, dtype=x.dtype)),
    "gammainc": lambda w: lambda x: w.special.gammainc(w.np.tensor(3.0, dtype=x.dtype), x),
    "stft": _stft_torch,
    "CSR product": _csr_torch,
    "BCOO product": _coo_torch,
    "jacobian dense": lambda w: lambda u, x: w.np.func.jacfwd(_line(w))(u) @ x,
}  # fmt: skip
