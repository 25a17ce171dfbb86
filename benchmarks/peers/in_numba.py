"""The rows as a user of Numba writes them: loops in compiled functions, the outermost one in parallel where it pays.

`w.root` is `numba`. Constants carry the dtype of the arrays, or float32 would be computed in float64.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from peers.row import Maker, World


def _axpy(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def axpy(x, y):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] + x[i] + y[i]
        return out

    return axpy


def _polynomial(w: World) -> Any:
    prange, c = w.root.prange, [np.float32(v) for v in (0.2, 0.3, 0.7, 0.1)]
    c0, c1, c2, c3 = c

    @w.root.njit(parallel=True)
    def polynomial(x, y):
        out = np.empty_like(x)
        for i in prange(x.size):
            a, b = x[i], y[i]
            out[i] = (((((a * c0 + b) * a - c1) * a + b) * a + c2) * a - b) * a + c3
        return out

    return polynomial


def _gelu(w: World) -> Any:
    prange, half, one = w.root.prange, np.float32(0.5), np.float32(1)
    inner, cubic = np.float32(0.7978845608), np.float32(0.044715)

    @w.root.njit(parallel=True)
    def gelu(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            a = x[i]
            out[i] = half * a * (one + np.tanh(inner * (a + cubic * a * a * a)))
        return out

    return gelu


def _where(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def where(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] * x[i] if x[i] > 1 else -x[i]
        return out

    return where


def _quotient(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def quotient(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] // 7 + x[i] % 7
        return out

    return quotient


def _black_scholes(w: World) -> Any:
    prange, njit = w.root.prange, w.root.njit
    rate, half, one, sigma = np.float32(0.03), np.float32(0.5), np.float32(1), np.float32(0.2)
    scale = np.float32(0.7071067811865476)

    @njit
    def cdf(z):
        return half * (one + np.float32(math.erf(z * scale)))

    @njit(parallel=True)
    def price(s, k, t):
        out = np.empty_like(s)
        for i in prange(s.size):
            root = sigma * np.sqrt(t[i])
            d1 = (np.log(s[i] / k[i]) + (rate + half * sigma * sigma) * t[i]) / root
            out[i] = s[i] * cdf(d1) - k[i] * np.exp(-rate * t[i]) * cdf(d1 - root)
        return out

    return price


def _elementwise(function: Any) -> Maker:
    def make(w: World) -> Any:
        prange = w.root.prange

        @w.root.njit(parallel=True)
        def over(x):
            out = np.empty_like(x)
            for i in prange(x.size):
                out[i] = function(x[i])
            return out

        return over

    return make


def _rsqrt(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def rsqrt(x):
        out, one = np.empty_like(x), x.dtype.type(1)
        for i in prange(x.size):
            out[i] = one / np.sqrt(x[i])
        return out

    return rsqrt


def _power(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def power(x, y):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] ** y[i]
        return out

    return power


def _sum(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def total(x):
        found = 0.0  # one float32 for all would lose digits
        for i in prange(x.size):
            found += x[i]
        return found

    return total


def _sum_rows(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def rows(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            out[i] = x[i].sum()
        return out

    return rows


def _argmax(w: World) -> Any:
    return w.root.njit(lambda x: x.argmax())


def _softmax(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def softmax(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            top = x[i].max()
            total = x.dtype.type(0)
            for j in range(x.shape[1]):
                out[i, j] = np.exp(x[i, j] - top)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total
        return out

    return softmax


def _logsumexp(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def logsumexp(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            top = x[i].max()
            total = x.dtype.type(0)
            for j in range(x.shape[1]):
                total += np.exp(x[i, j] - top)
            out[i] = np.log(total) + top
        return out

    return logsumexp


def _transpose(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def transpose(x):
        n, m = x.shape
        out = np.empty((m, n), x.dtype)
        for i in prange((n + 31) // 32):
            for j in range(0, m, 32):
                for a in range(32 * i, min(32 * i + 32, n)):
                    for b in range(j, min(j + 32, m)):
                        out[b, a] = x[a, b]
        return out

    return transpose


def _gather(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def gather(table, index):
        out = np.empty((index.size,) + table.shape[1:], table.dtype)  # noqa: RUF005  # numba unpacks no tuples here
        for i in prange(index.size):
            out[i] = table[index[i]]
        return out

    return gather


def _scatter(w: World) -> Any:
    @w.root.njit
    def scatter(x, index, values):
        out = x.copy()
        for i in range(index.size):
            out[index[i]] += values[i]
        return out

    return scatter


def _matmul(w: World) -> Any:
    return w.root.njit(lambda a, b: a @ b)


def _cumsum(w: World) -> Any:
    return w.root.njit(lambda x: np.cumsum(x))  # noqa: PLW0108  # njit takes Python functions alone


def _mandelbrot(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def mandelbrot(re, im):
        out = np.zeros(re.shape, np.int64)
        for i in prange(re.shape[0]):
            for j in range(re.shape[1]):
                x, y, n = re[i, j], im[i, j], 0
                while n < 100 and x * x + y * y <= 4:
                    x, y = x * x - y * y + re[i, j], 2 * x * y + im[i, j]
                    n += 1
                out[i, j] = n
        return out

    return mandelbrot


def _newton(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def newton(a):
        out = np.empty_like(a)
        for i in prange(a.size):
            s = a[i]
            while abs(s * s - a[i]) > 1e-12 * a[i]:
                s = 0.5 * (s + a[i] / s)
            out[i] = s
        return out

    return newton


def _lorenz_step(w: World) -> Any:
    @w.root.njit
    def slope(x, y, z):
        return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z

    @w.root.njit
    def run(x, y, z, steps):
        h = 0.01
        for _ in range(steps):
            a0, a1, a2 = slope(x, y, z)
            b0, b1, b2 = slope(x + h / 2 * a0, y + h / 2 * a1, z + h / 2 * a2)
            c0, c1, c2 = slope(x + h / 2 * b0, y + h / 2 * b1, z + h / 2 * b2)
            d0, d1, d2 = slope(x + h * c0, y + h * c1, z + h * c2)
            x += h / 6 * (a0 + 2 * (b0 + c0) + d0)
            y += h / 6 * (a1 + 2 * (b1 + c1) + d1)
            z += h / 6 * (a2 + 2 * (b2 + c2) + d2)
        return x, y, z

    return run


def _lorenz(w: World) -> Any:
    run = _lorenz_step(w)
    return w.root.njit(lambda x, y, z: run(x, y, z, 10_000))


def _lorenz_batch(w: World) -> Any:
    run, prange = _lorenz_step(w), w.root.prange

    @w.root.njit(parallel=True)
    def batch(x, y, z):
        a, b, c = np.empty_like(x), np.empty_like(y), np.empty_like(z)
        for i in prange(x.size):
            a[i], b[i], c[i] = run(x[i], y[i], z[i], 100)
        return a, b, c

    return batch


def _heat(w: World) -> Any:
    prange, four, tenth = w.root.prange, np.float32(4), np.float32(0.1)

    @w.root.njit(parallel=True)
    def heat(u):
        old, new = u.copy(), u.copy()
        for _ in range(100):
            for i in prange(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - four * old[i, j]
                    new[i, j] = old[i, j] + tenth * around
            old, new = new, old
        return old

    return heat


def _forces(w: World) -> Any:
    prange, soft, zero = w.root.prange, np.float32(1e-3), np.float32(0)

    @w.root.njit(parallel=True)
    def forces(p, m):
        out = np.empty_like(p)
        for i in prange(p.shape[0]):
            a = b = c = zero
            for j in range(p.shape[0]):
                x, y, z = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
                r2 = x * x + y * y + z * z + soft
                f = m[j] / (r2 * np.sqrt(r2))
                a, b, c = a + x * f, b + y * f, c + z * f
            out[i, 0], out[i, 1], out[i, 2] = a, b, c
        return out

    return forces


def _kalman(w: World) -> Any:
    @w.root.njit
    def kalman(zs, f, h):
        x, p, eye = np.zeros(4), np.eye(4), np.eye(4)
        out = np.empty((zs.size, 4))
        for t in range(zs.size):
            x, p = f @ x, f @ p @ f.T + 0.01 * eye
            gain = p @ h / (h @ p @ h + 0.1)
            x = x + gain * (zs[t] - h @ x)
            p = p - np.outer(gain, h @ p)
            out[t] = x
        return out

    return kalman


def _recurrent(w: World) -> Any:
    @w.root.njit
    def run(xs, h, inward, recurrent):
        states = np.empty((xs.shape[0],) + h.shape, h.dtype)  # noqa: RUF005  # numba unpacks no tuples here
        for t in range(xs.shape[0]):
            h = np.tanh(xs[t] @ inward + h @ recurrent)
            states[t] = h
        return h, states

    return run


def _unrolled(w: World) -> Any:
    prange, factor = w.root.prange, np.float32(0.99)

    @w.root.njit(parallel=True)
    def long(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            v = x[i]
            for _ in range(100):
                v = v * factor + np.sin(v)
            out[i] = v
        return out

    return long


def _each_matrix(name: str) -> Maker:
    """Numba's own function of every matrix of a stack."""

    def make(w: World) -> Any:
        prange, function = w.root.prange, getattr(np.linalg, name)

        @w.root.njit(parallel=True)
        def each(a):
            out = np.empty_like(a)
            for i in prange(len(a)):
                out[i] = function(a[i])
            return out

        return each

    return make


def _determinants(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def determinants(a):
        out = np.empty(len(a), a.dtype)
        for i in prange(len(a)):
            out[i] = np.linalg.det(a[i])
        return out

    return determinants


def _solutions(w: World) -> Any:
    prange = w.root.prange

    @w.root.njit(parallel=True)
    def solutions(a, b):
        out = np.empty_like(b)
        for i in prange(len(a)):
            out[i] = np.linalg.solve(a[i], b[i])
        return out

    return solutions


def _solution(w: World) -> Any:
    @w.root.njit
    def solution(a, b):
        return np.linalg.solve(a, b)

    return solution


_FUNCTIONS: Final = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "exp2": np.exp2, "log2": np.log2, "expm1": np.expm1, "log1p": np.log1p, "arcsin": np.arcsin,
    "arccos": np.arccos, "arctan": np.arctan, "arcsinh": np.arcsinh, "arctanh": np.arctanh, "sqrt": np.sqrt,
    "cbrt": np.cbrt, "erf": math.erf, "erfc": math.erfc, "gammaln": math.lgamma,
}  # fmt: skip


def _floyd_warshall(w: World) -> Any:
    @w.root.njit
    def paths(d):
        d = d.copy()
        for k in range(d.shape[0]):
            for i in range(d.shape[0]):
                for j in range(d.shape[0]):
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])
        return d

    return paths


def _sparse_rows(w: World) -> Any:
    @w.root.njit
    def product(values, columns, starts, x):
        y = np.empty_like(x)
        for i in range(x.size):
            total = 0.0
            for j in range(starts[i], starts[i + 1]):
                total += values[j] * x[columns[j]]
            y[i] = total
        return y

    return product


def _newton_once(w: World) -> Any:
    @w.root.njit
    def root(a):
        s = a
        while abs(s * s - a) > 1e-12 * a:
            s = 0.5 * (s + a / s)
        return s

    return root


def _sweeps(w: World) -> Any:
    @w.root.njit
    def sweeps(u):
        n = u.shape[0]
        u, v = u.copy(), np.ones(u.shape)
        p, q = np.ones(u.shape), np.ones(u.shape)
        for _ in range(20):
            v[:] = p[:] = q[:] = 1.0
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    pivot = 1.2 - 0.1 * p[i, j - 1]
                    right = 0.1 * u[j, i - 1] + 0.8 * u[j, i] + 0.1 * u[j, i + 1]
                    p[i, j] = 0.1 / pivot
                    q[i, j] = (right + 0.1 * q[i, j - 1]) / pivot
            for j in range(n - 2, 0, -1):
                for i in range(1, n - 1):
                    v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
            u, v = v, u
        return u

    return sweeps


def _edit_distance(w: World) -> Any:
    @w.root.njit
    def distance(s, t):
        before, here = np.arange(t.size + 1), np.empty(t.size + 1, np.int64)
        for i in range(s.size):
            here[0] = i + 1
            for j in range(t.size):
                here[j + 1] = min(min(here[j], before[j + 1]) + 1, before[j] + (t[j] != s[i]))
            before, here = here, before
        return before[-1]

    return distance


BY_BEGINNING: Final[dict[str, Maker]] = {
    **{name: _elementwise(function) for name, function in _FUNCTIONS.items()},
    "call with one": lambda w: w.root.njit(lambda x: x + x),
    "call with ten": lambda w: w.root.njit(lambda *xs: xs[0] + xs[9]),
    "floyd-warshall f8 400": _floyd_warshall,
    "newton, one call f8": _newton_once,
    "sweeps by columns f8 200x200, 20 steps": _sweeps,
    "sparse rows by windows f8 20000x16": _sparse_rows,
    "edit distance i8 300x300": _edit_distance,
    "edit distance by indices i8 300x300": _edit_distance,
    "rsqrt": _rsqrt,
    "axpy": _axpy,
    "polynomial": _polynomial,
    "gelu": _gelu,
    "where": _where,
    "divmod": _quotient,
    "black-scholes f4": _black_scholes,
    "pow": _power,
    "sum f4": _sum,
    "sum f8": _sum,
    "sum rows": _sum_rows,
    "sum short rows": _sum_rows,
    "argmax f4": _argmax,
    "softmax f4": _softmax,
    "logsumexp": _logsumexp,
    "transpose": _transpose,
    "gather rows": _gather,
    "gather f4": _gather,
    "scatter add": _scatter,
    "matmul f4": _matmul,
    "matmul f8": _matmul,
    "matvec": _matmul,
    "cumsum f8": _cumsum,
    "cumsum f4": _cumsum,
    "mandelbrot by": _mandelbrot,
    "newton": _newton,
    "lorenz f8": _lorenz,
    "lorenz batch": _lorenz_batch,
    "heat": _heat,
    "n-body": _forces,
    "kalman": _kalman,
    "recurrent net": _recurrent,
    "100 unrolled": _unrolled,
    "solve f8": _solutions,
    "solve f8 one": _solution,
    "cholesky": _each_matrix("cholesky"),
    "inv": _each_matrix("inv"),
    "det": _determinants,
}
