"""Rows that are whole programs: loops, simulations, training steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.row import Row, World
from peers.rows_elementwise import uniform


def _mandelbrot_masked(w: World) -> Any:
    def mandelbrot(re: Any, im: Any) -> Any:
        def step(s: Any) -> Any:
            n, x, y, count = s
            square, other = x * x, y * y
            inside = square + other <= 4
            return (
                n + 1, w.np.where(inside, square - other + re, x), w.np.where(inside, 2 * x * y + im, y),
                count + inside,
            )  # fmt: skip

        start = (0, re, im, w.np.zeros(re.shape, "int64"))
        return w.lax.while_loop(lambda s: s[0] < 100, step, start)[3]

    return mandelbrot


def _mandelbrot_lanes(w: World) -> Any:
    def escape(re: Any, im: Any) -> Any:
        def step(s: Any) -> Any:
            n, x, y = s
            return n + 1, x * x - y * y + re, 2 * x * y + im

        return w.lax.while_loop(lambda s: (s[0] < 100) & (s[1] * s[1] + s[2] * s[2] <= 4), step, (0, re, im))[0]

    return w.root.vmap(w.root.vmap(escape))


def _plane(n: int) -> Any:
    def points() -> Any:
        re, im = np.meshgrid(np.linspace(-2, 0.6, n), np.linspace(-1.3, 1.3, n))
        return re, im

    return points


def _newton(w: World) -> Any:
    def root(a: Any) -> Any:
        return w.lax.while_loop(lambda s: w.np.abs(s * s - a) > 1e-12 * a, lambda s: 0.5 * (s + a / s), a)

    return root


def _lorenz(w: World) -> Any:
    def slope(s: Any) -> Any:
        x, y, z = s
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    def shifted(s: Any, k: Any, h: float) -> Any:
        return tuple(a + h * b for a, b in zip(s, k, strict=True))

    def step(_: Any, s: Any) -> Any:
        h = 0.01
        a = slope(s)
        b = slope(shifted(s, a, h / 2))
        c = slope(shifted(s, b, h / 2))
        d = slope(shifted(s, c, h))
        return tuple(v + h / 6 * (p + 2 * (q + r) + t) for v, p, q, r, t in zip(s, a, b, c, d, strict=True))

    return lambda x, y, z: w.lax.fori_loop(0, 100, step, (x, y, z))


def _lorenz_long(w: World) -> Any:
    short = _lorenz(w)
    return lambda x, y, z: w.lax.fori_loop(0, 100, lambda _, s: short(*s), (x, y, z))


def _recurrent(w: World) -> Any:
    def run(xs: Any, start: Any, inward: Any, recurrent: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = w.np.tanh(x @ inward + h @ recurrent)
            return h, h

        return w.lax.scan(step, start, xs)

    return run


def _heat(steps: int) -> Any:
    def make(w: World) -> Any:
        def step(_: Any, u: Any) -> Any:
            inner = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
            return u.at[1:-1, 1:-1].set(inner + 0.1 * around)

        return lambda u: w.lax.fori_loop(0, steps, step, u)

    return make


def _numpy_heat(steps: int) -> Any:
    def make(w: World) -> Any:
        def heat(u: Any) -> Any:
            u = u.copy()
            for _ in range(steps):
                inner = u[1:-1, 1:-1]
                u[1:-1, 1:-1] = inner + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)
            return u

        return heat

    return make


def _forces(w: World) -> Any:
    def forces(p: Any, m: Any) -> Any:
        d = p[None, :, :] - p[:, None, :]
        r2 = (d * d).sum(axis=-1) + 1e-3
        return (d * (m[None, :] / (r2 * w.np.sqrt(r2)))[:, :, None]).sum(axis=1)

    return forces


def _kmeans(w: World) -> Any:
    def assign(x: Any, centres: Any) -> Any:
        d = (x * x).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres * centres).sum(axis=1)[None, :]
        one_hot = w.np.argmin(d, axis=1)[:, None] == w.np.arange(centres.shape[0])[None, :]
        one_hot = one_hot.astype(x.dtype)
        return (one_hot.T @ x) / one_hot.sum(axis=0)[:, None]

    return assign


def _loss(w: World) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        a, b, c, d = params
        hidden = w.np.maximum(x @ a + b, 0)
        logits = hidden @ c + d
        top = w.np.max(logits, axis=1, keepdims=True)
        normal = w.np.log(w.np.exp(logits - top).sum(axis=1, keepdims=True)) + top
        return -((logits - normal) * y).sum() / x.shape[0]

    return loss


def _mlp(w: World) -> Any:
    gradient = w.root.grad(_loss(w))
    return lambda params, x, y: [p - 0.1 * g for p, g in zip(params, gradient(params, x, y), strict=True)]


def _mlp_arguments() -> Any:
    sizes = [(784, 256), (256,), (256, 10), (10,)]
    params = [uniform(*s, low=-0.05, high=0.05, seed=n) for n, s in enumerate(sizes)]
    return params, uniform(128, 784), np.eye(10, dtype="f4")[np.arange(128) % 10]


def _cnn(w: World) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        a, b, c = params
        hidden = w.np.maximum(w.lax.conv_general_dilated(x, a, (2, 2), "VALID"), 0)
        hidden = w.np.maximum(w.lax.conv_general_dilated(hidden, b, (2, 2), "VALID"), 0)
        logits = hidden.reshape(x.shape[0], -1) @ c
        return -(w.nn.log_softmax(logits) * y).sum() / x.shape[0]

    gradient = w.root.grad(loss)
    return lambda params, x, y: [p - 0.1 * g for p, g in zip(params, gradient(params, x, y), strict=True)]


def _cnn_arguments() -> Any:
    sizes = [(16, 1, 3, 3), (32, 16, 3, 3), (1152, 10)]
    params = [uniform(*s, low=-0.1, high=0.1, seed=n) for n, s in enumerate(sizes)]
    return params, uniform(64, 1, 28, 28), np.eye(10, dtype="f4")[np.arange(64) % 10]


def _logistic_newton(w: World) -> Any:
    def step(weights: Any, x: Any, y: Any) -> Any:
        def loss(v: Any) -> Any:
            z = x @ v
            return (w.np.logaddexp(0.0, z) - y * z).sum() + 0.5 * (v * v).sum()

        direction = w.root.jvp(w.root.grad(loss), (weights,), (w.root.grad(loss)(weights),))[1]
        return weights - 1e-3 * direction

    return step


def _kalman(w: World) -> Any:
    def run(zs: Any, f: Any, h: Any) -> Any:
        def step(state: Any, z: Any) -> Any:
            x, p = state
            x, p = f @ x, f @ p @ f.T + 0.01 * w.np.eye(4)
            gain = p @ h / (h @ p @ h + 0.1)
            x = x + gain * (z - h @ x)
            p = p - w.np.outer(gain, h @ p)
            return (x, p), x

        return w.lax.scan(step, (w.np.zeros(4), w.np.eye(4)), zs)[1]

    return run


def _unrolled(w: World) -> Any:
    def long(x: Any) -> Any:
        for _ in range(100):
            x = x * 0.99 + w.np.sin(x)
        return x

    return long


def _monte_carlo(w: World) -> Any:
    def pi(seed: Any) -> Any:
        x = w.random.uniform(w.random.key(seed), (2, 10**6), dtype="float32")
        return 4 * w.np.mean((x[0] * x[0] + x[1] * x[1] < 1).astype("float32"))

    return pi


def _rotation() -> Any:
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    return uniform(1000, dtype="f8"), f, np.array([1.0, 0, 0, 0])


def _floyd_warshall(w: World) -> Any:
    def step(k: Any, d: Any) -> Any:
        return w.np.minimum(d, d[:, k, None] + d[None, k])

    return lambda d: w.lax.fori_loop(0, d.shape[0], step, d)


def _sweeps(w: World) -> Any:
    """Implicit steps by columns: a forward and a backward substitution for each, which index inner rows."""

    def step(_: Any, u: Any) -> Any:
        n = u.shape[0]
        p = q = v = w.np.ones(u.shape)

        def forward(j: Any, pq: Any) -> Any:
            p, q = pq
            pivot = 1.2 - 0.1 * p[1:-1, j - 1]
            right = 0.1 * u[j, :-2] + 0.8 * u[j, 1:-1] + 0.1 * u[j, 2:]
            return p.at[1:-1, j].set(0.1 / pivot), q.at[1:-1, j].set((right + 0.1 * q[1:-1, j - 1]) / pivot)

        p, q = w.lax.fori_loop(1, n - 1, forward, (p, q))

        def backward(k: Any, v: Any) -> Any:
            j = n - 2 - k
            return v.at[j, 1:-1].set(p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j])

        return w.lax.fori_loop(0, n - 2, backward, v)

    return lambda u: w.lax.fori_loop(0, 20, step, u)


def _sparse_windows(w: World) -> Any:
    """Rows of a sparse matrix by windows of fixed length, masked."""
    length = 16

    def product(values: Any, columns: Any, starts: Any, x: Any) -> Any:
        def row(i: Any, y: Any) -> Any:
            start = starts[i]
            v = w.lax.dynamic_slice(values, (start,), (length,))
            c = w.lax.dynamic_slice(columns, (start,), (length,))
            inside = w.np.arange(length) < starts[i + 1] - start
            return y.at[i].set(w.np.where(inside, v * x[c], 0.0).sum())

        return w.lax.fori_loop(0, x.shape[0], row, w.np.zeros(x.shape))

    return product


def _sparse_rows() -> Any:
    n, each, length = 20000, 8, 16
    random = np.random.default_rng(0)
    values, columns = random.normal(size=n * each), random.integers(0, n, n * each)
    return values, columns, np.minimum(np.arange(n + 1) * each, n * each - length), random.normal(size=n)


def _edit_distance(w: World) -> Any:
    def distance(s: Any, t: Any) -> Any:
        def row(before: Any, given: Any) -> Any:
            first, letter = given

            def cell(left: Any, given: Any) -> Any:
                up, diagonal, other = given
                here = w.np.minimum(w.np.minimum(left, up) + 1, diagonal + (other != letter))
                return here, here

            _, rest = w.lax.scan(cell, first, (before[1:], before[:-1], t))
            return w.np.concatenate([first[None], rest]), None

        start = w.np.arange(t.shape[0] + 1)
        return w.lax.scan(row, start, (w.np.arange(1, s.shape[0] + 1), s))[0][-1]

    return distance


def _edit_distance_by_indices(w: World) -> Any:
    """Edit distance as loops over elements, read and written by their indices."""

    def distance(s: Any, t: Any) -> Any:
        def row(i: Any, before: Any) -> Any:
            def cell(j: Any, now: Any) -> Any:
                least = w.np.minimum(before[j + 1], now[j]) + 1
                return now.at[j + 1].set(w.np.minimum(least, before[j] + (s[i] != t[j])))

            return w.lax.fori_loop(0, t.shape[0], cell, before.at[0].set(i + 1))

        return w.lax.fori_loop(0, s.shape[0], row, w.np.arange(t.shape[0] + 1))[-1]

    return distance


def _solves(w: World) -> Any:
    """Inverse iteration without a shift: systems of one matrix, whose factors do not change."""
    return lambda a, x: w.lax.fori_loop(0, 200, lambda _, x: w.np.linalg.solve(a, x) * 9, x)


def _system() -> Any:
    random = np.random.default_rng(0)
    return random.normal(size=(100, 100)) / 10 + 1j * np.eye(100) * 9, random.normal(size=100) + 0j


def _letters() -> Any:
    random = np.random.default_rng(0)
    return random.integers(0, 4, 300), random.integers(0, 4, 300)


def _of_both_sides(w: World) -> Any:
    return lambda a, x, y: (a @ x, a.T @ y)


_NUMPY = ("numpy",)
ROWS = [
    Row("mandelbrot by mask f8 512", "loops", _plane(512), _mandelbrot_masked, tolerance=1e-1),
    Row("mandelbrot by vmap f8 512", "loops", _plane(512), _mandelbrot_lanes, tolerance=1e-1),
    Row(
        "newton, vmap of while f8 1e5",
        "loops",
        lambda: (uniform(10**5, dtype="f8"),),
        lambda w: w.root.vmap(_newton(w)),
    ),
    Row("newton, one call f8", "loops", lambda: (np.float64(0.7),), _newton),
    Row(
        "lorenz f8, 1e4 steps",
        "loops",
        lambda: (np.float64(1), np.float64(1), np.float64(1)),
        _lorenz_long,
        tolerance=None,
    ),
    Row(
        "lorenz batch of 1e4 f8, 100 steps",
        "loops",
        lambda: tuple(uniform(10**4, dtype="f8", seed=s) for s in range(3)),
        _lorenz,
        tolerance=1e-3,
    ),
    Row(
        "recurrent net f4 100x64x128",
        "loops",
        lambda: (
            uniform(100, 64, 128, low=-1, high=1),
            np.zeros((64, 128), "f4"),
            uniform(128, 128, low=-0.1, high=0.1),
            uniform(128, 128, low=-0.1, high=0.1, seed=1),
        ),
        _recurrent,
    ),
    Row("kalman f8 1000x4", "loops", _rotation, _kalman),
    Row(
        "heat f4 512x512, 100 steps",
        "loops",
        lambda: (uniform(512, 512),),
        _heat(100),
        others={"numpy": _numpy_heat(100)},
    ),
    Row(
        "n-body forces f4 1000", "programs", lambda: (uniform(1000, 3), uniform(1000)), _forces, _NUMPY, tolerance=1e-3
    ),
    Row(
        "k-means step f4 10000x16, 64",
        "programs",
        lambda: (uniform(10000, 16), uniform(64, 16, seed=1)),
        _kmeans,
        tolerance=1e-3,
    ),
    Row(
        "floyd-warshall f8 400",
        "loops",
        lambda: (uniform(400, 400, dtype="f8"),),
        _floyd_warshall,
    ),
    Row("sweeps by columns f8 200x200, 20 steps", "loops", lambda: (uniform(200, 200, dtype="f8"),), _sweeps),
    Row("sparse rows by windows f8 20000x16", "loops", _sparse_rows, _sparse_windows),
    Row("edit distance i8 300x300", "loops", _letters, _edit_distance, tolerance=0),
    Row("edit distance by indices i8 300x300", "loops", _letters, _edit_distance_by_indices, tolerance=0),
    Row("solves by one matrix c16 100x100, 200 steps", "loops", _system, _solves),
    Row(
        "a @ x, a.T @ y f8 4000",
        "contractions",
        lambda: (uniform(4000, 4000, dtype="f8"), *(uniform(4000, dtype="f8", seed=s) for s in (1, 2))),
        _of_both_sides,
    ),
    Row("mlp step f4 128x784x256x10", "programs", _mlp_arguments, _mlp),
    Row("cnn step f4 64x28x28", "programs", _cnn_arguments, _cnn),
    Row(
        "logistic newton direction f8 5000x50",
        "programs",
        lambda: (
            uniform(50, dtype="f8", low=-1, high=1),
            uniform(5000, 50, dtype="f8", low=-1, high=1),
            (uniform(5000, dtype="f8") > 1) * 1.0,
        ),
        _logistic_newton,
    ),
    Row("100 unrolled steps f4 1e5", "programs", lambda: (uniform(10**5),), _unrolled),
    Row("monte carlo f4 1e6", "programs", lambda: (np.int64(1),), _monte_carlo, tolerance=1e-2),
]
