"""Calls that take a function or a class of the user's: optimizers, quadrature, interpolants, sparse matrices, losses.

Each is a recipe: a name, and a function of a source of arguments that returns arrays and a call of them. The call
takes a namespace, `tracer`, or `SimpleNamespace(scipy=scipy)` where SciPy has the names, and the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tests.hunt.drawing import Draw

Method = Callable[..., Any]
Room = Callable[["Draw"], tuple[tuple[Any, ...], Method]]
FLOAT = ("float64", "float64", "float32")
OPTIMIZERS = [
    "adabelief",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "amsgrad",
    "adan",
    "fromage",
    "lamb",
    "lars",
    "lion",
    "nadam",
    "novograd",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sm3",
    "yogi",
    "sign_sgd",
    "optimistic_gradient_descent",
    "muon",
    "adafactor",
]
LOSSES = ("mse", "l1", "huber", "r2")
FILTERS = ("convolve", "convolve1d", "correlate", "correlate1d")
MODES = ("reflect", "constant", "nearest", "mirror", "wrap")


def _bowl(d: Draw) -> tuple[Any, Any]:
    """Return a start and the place of a minimum, both [n]."""
    n, dtype = d.pick(1, 2, 3), d.pick(*FLOAT)
    return np.array([d.rng.gauss(0, 1) for _ in range(n)], dtype), np.array(
        [d.rng.gauss(0, 1) for _ in range(n)], dtype
    )


def _minimize(d: Draw) -> tuple[tuple[Any, ...], Method]:
    method = d.pick("BFGS", "L-BFGS-B")
    return _bowl(d), lambda root, x, c: root.scipy.optimize.minimize(
        lambda y: ((y - c) ** 2).sum() + ((y - c) ** 4).sum(), x, method=method
    ).x.round(2)


def _root(d: Draw) -> tuple[tuple[Any, ...], Method]:
    return _bowl(d), lambda root, x, c: root.scipy.optimize.root(lambda y: y - c + 0.1 * (y - c) ** 3, x).x.round(3)


def _least_squares(d: Draw) -> tuple[tuple[Any, ...], Method]:
    return _bowl(d), lambda root, x, c: root.scipy.optimize.least_squares(
        lambda y: (y - c) * 2.0, x, method="lm"
    ).x.round(3)


def _quad(d: Draw) -> tuple[tuple[Any, ...], Method]:
    ends = np.array(d.rng.gauss(0, 1)), np.array(d.pick(1.0, 2.5, -0.5))
    return ends, lambda root, a, b: root.scipy.integrate.quad(lambda t: 1.0 / (1.0 + t * t), a, b)[0]


def _solve_ivp(d: Draw) -> tuple[tuple[Any, ...], Method]:
    method = d.pick("RK45", "RK23")
    start = np.array([d.rng.gauss(0, 1) for _ in range(d.pick(1, 2, 3))])
    return (start, np.array(0.5)), lambda root, y, rate: root.scipy.integrate.solve_ivp(
        lambda t, u, r: -r * u, (0.0, 1.0), y, method=method, args=(rate,), t_eval=np.array([0.0, 0.5, 1.0])
    ).y.round(2)


def _interpolant(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        n, dtype = d.pick(2, 3, 4, 6), d.pick(*FLOAT)
        x = np.cumsum([0.25 + d.rng.random() for _ in range(n)]).astype(dtype)
        y = np.array([d.rng.gauss(0, 1) for _ in range(n)], dtype)
        q = np.array([d.rng.uniform(0.0, float(x[-1]) + 0.5) for _ in range(d.pick(0, 1, 3))], dtype)
        return (x, y, q), lambda root, x, y, q: getattr(root.scipy.interpolate, name)(x, y)(q)

    return room


def _grid(d: Draw) -> tuple[tuple[Any, ...], Method]:
    method, shape = d.pick("linear", "nearest"), (d.pick(2, 3), d.pick(2, 4))
    points = tuple(np.arange(float(n)) for n in shape)
    values = np.array([d.rng.gauss(0, 1) for _ in range(shape[0] * shape[1])]).reshape(shape)
    q = np.array([[d.rng.uniform(0, n - 1) for n in shape] for _ in range(d.pick(0, 1, 3))]).reshape(-1, 2)
    return (values, q), lambda root, v, q: root.scipy.interpolate.RegularGridInterpolator(points, v, method=method)(q)


def _filter(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        x, mode = d.array(d.shape_of(1 if name.endswith("1d") else d.pick(1, 2)), d.pick(*FLOAT)), d.pick(*MODES)
        w = d.array(tuple(d.pick(1, 2, 3) for _ in x.shape), x.dtype)
        return (x, w), lambda root, x, w: getattr(root.scipy.ndimage, name)(x, w, mode=mode)

    return room


def _smoother(name: str, *sizes: Any) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        size, mode = d.pick(*sizes), d.pick(*MODES)
        x = d.array(d.shape_of(d.pick(1, 2)), d.pick(*FLOAT))
        return (x,), lambda root, x: getattr(root.scipy.ndimage, name)(x, *size, mode=mode)

    return room


def _sosfilt(d: Draw) -> tuple[tuple[Any, ...], Method]:
    sections = np.array([[d.rng.gauss(0, 1) for _ in range(3)] + [1.0, 0.3, d.pick(0.1, -0.2)] for _ in range(2)])
    return (sections, d.array((d.size(),), "float64")), lambda root, s, x: root.scipy.signal.sosfilt(s, x)


def _savgol(d: Draw) -> tuple[tuple[Any, ...], Method]:
    order, mode = d.pick(0, 1, 2), d.pick("interp", "nearest", "mirror", "wrap", "constant")
    x = d.array((d.pick(3, 5, 6),), "float64")
    return (x,), lambda root, x: root.scipy.signal.savgol_filter(x, 3, order, mode=mode)


def _vq(d: Draw) -> tuple[tuple[Any, ...], Method]:
    width, dtype = d.pick(1, 2, 3), d.pick(*FLOAT)
    points, book = d.array((d.size(), width), dtype), d.array((d.pick(1, 2, 4), width), dtype)
    return (points, book), lambda root, x, c: root.scipy.cluster.vq.vq(x, c)[1]


def _optimizer(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        shape, dtype = d.shape_of(d.pick(0, 1, 2)), d.pick(*FLOAT)

        def steps(root: Any, x: Any, g: Any) -> Any:
            rule = getattr(root.optim, name)(0.125)
            state, place = rule.init({"w": x}), {"w": x}
            for scale in (1.0, -0.5):
                moves, state = rule.update({"w": g * scale}, state, place)
                place = root.optim.apply_updates(place, moves)
            return place

        return (d.array(shape, dtype), d.array(shape, dtype)), steps

    return room


def _loss(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        x = d.array(d.shape_of(d.pick(1, 2)), d.pick(*FLOAT))
        return (x, d.array(x.shape, x.dtype)), lambda root, x, y: getattr(root.nn, name)(x, y)

    return room


def _labelled(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        n, classes = d.size(), d.pick(1, 2, 4)
        x = d.array((n, classes), d.pick(*FLOAT))
        return (x, d.indices((n,), classes)), lambda root, x, y: getattr(root.nn, name)(x, y)

    return room


def _krylov(name: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        n = d.pick(0, 1, 2, 4)
        a = np.array([d.rng.gauss(0, 0.2) for _ in range(n * n)]).reshape(n, n)
        matrix, b = a @ a.T + 2.0 * np.eye(n), np.array([d.rng.gauss(0, 1) for _ in range(n)])
        return (matrix, b), lambda root, a, b: getattr(root.scipy.sparse.linalg, name)(a, b)[0].round(3)

    return room


def _sparse(kind: str) -> Room:
    def room(d: Draw) -> tuple[tuple[Any, ...], Method]:
        n, m, dtype = d.size(), d.size(), d.pick(*FLOAT)
        x = d.array((n, m), dtype) * d.array((n, m), "bool").astype(dtype)

        def product(root: Any, x: Any, v: Any) -> Any:
            matrix = getattr(root.experimental.sparse, kind).fromdense(x, nse=x.size)
            return matrix @ v, matrix.todense()

        return (np.nan_to_num(x), np.nan_to_num(d.array((m,), dtype), posinf=1.0, neginf=1.0)), product

    return room


ROOMS: dict[str, Room] = {
    "room scipy.optimize.minimize": _minimize, "room scipy.optimize.root": _root,
    "room scipy.optimize.least_squares": _least_squares, "room scipy.integrate.quad": _quad,
    "room scipy.integrate.solve_ivp": _solve_ivp, "room scipy.interpolate.RegularGridInterpolator": _grid,
    **{
        f"room scipy.interpolate.{name}": _interpolant(name)
        for name in ("Akima1DInterpolator", "CubicSpline", "PchipInterpolator")
    },
    **{f"room scipy.ndimage.{name}": _filter(name) for name in FILTERS},
    "room scipy.ndimage.gaussian_filter": _smoother("gaussian_filter", (0.5,), (1.0,)),
    "room scipy.ndimage.median_filter": _smoother("median_filter", (1,), (2,), (3,)),
    "room scipy.ndimage.uniform_filter": _smoother("uniform_filter", (1,), (2,), (3,)),
    "room scipy.ndimage.maximum_filter": _smoother("maximum_filter", (1,), (3,)),
    "room scipy.ndimage.laplace": _smoother("laplace", ()), "room scipy.ndimage.sobel": _smoother("sobel", ()),
    "room scipy.signal.sosfilt": _sosfilt, "room scipy.signal.savgol_filter": _savgol,
    "room scipy.cluster.vq.vq": _vq,
    **{f"room optim.{name}": _optimizer(name) for name in OPTIMIZERS},
    **{f"room nn.{name}": _loss(name) for name in LOSSES},
    **{f"room nn.{name}": _labelled(name) for name in ("cross_entropy", "focal")},
    **{f"room scipy.sparse.linalg.{name}": _krylov(name) for name in ("cg", "bicgstab", "gmres")},
    **{f"room experimental.sparse.{kind}": _sparse(kind) for kind in ("BCOO", "CSR", "COO")},
}  # fmt: skip
