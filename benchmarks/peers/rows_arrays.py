"""Rows about whole arrays: reductions, normalisations, contractions, movement of data, sorting, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.row import Row, World
from peers.rows_elementwise import uniform


def _method(name: str, **given: Any) -> Any:
    return lambda w: lambda x: getattr(w.np, name)(x, **given)


def _moments(w: World) -> Any:
    return lambda x: (w.np.mean(x, axis=-1), w.np.var(x, axis=-1))


def _softmax(w: World) -> Any:
    def softmax(x: Any) -> Any:
        e = w.np.exp(x - w.np.max(x, axis=-1, keepdims=True))
        return e / w.np.sum(e, axis=-1, keepdims=True)

    return softmax


def _logsumexp(w: World) -> Any:
    def logsumexp(x: Any) -> Any:
        top = w.np.max(x, axis=-1, keepdims=True)
        return w.np.log(w.np.sum(w.np.exp(x - top), axis=-1)) + top[..., 0]

    return logsumexp


def _layernorm(w: World) -> Any:
    def layernorm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - w.np.mean(x, axis=-1, keepdims=True)
        return centred / w.np.sqrt(w.np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale + shift

    return layernorm


def _of_gradient(make: Any) -> Any:
    """The gradient of the sum of squares of what `make` makes, by the first argument."""

    def gradient(w: World) -> Any:
        inner = make(w)
        return w.root.grad(lambda *xs: (inner(*xs) ** 2).sum())

    return gradient


def _attention(w: World) -> Any:
    softmax = _softmax(w)
    return lambda q, k, v: softmax(q @ w.np.swapaxes(k, -1, -2) / 8) @ v


def _attention_gradients(w: World) -> Any:
    attention = _attention(w)
    return w.root.grad(lambda q, k, v: (attention(q, k, v) ** 2).sum(), argnums=(0, 1, 2))


def _queries(n: int) -> Any:
    """Queries, keys and values of 8 heads of 64."""
    return lambda: tuple(uniform(8, n, 64, low=-1, high=1, seed=s) for s in range(3))


def _matmul(w: World) -> Any:
    return lambda a, b: a @ b


def _matmul_bf16(w: World) -> Any:
    """Operands come as their bits, since NumPy has no bf16; the result is widened."""
    bf16 = lambda x: w.lax.bitcast_convert_type(x, w.np.bfloat16)  # noqa: E731
    return lambda a, b: (bf16(a) @ bf16(b)).astype(w.np.float32)


def _matmul_transposed(w: World) -> Any:
    return lambda a, b: a.T @ b


def _bias_relu(w: World) -> Any:
    return lambda a, b, c: w.np.maximum(a @ b + c, 0)


def _convolution(w: World) -> Any:
    return lambda x, kernel: w.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")


def _convolution_gradients(w: World) -> Any:
    forward = _convolution(w)
    return w.root.grad(lambda x, kernel: (forward(x, kernel) ** 2).sum(), argnums=(0, 1))


def _transpose(w: World) -> Any:
    return lambda x: w.np.ascontiguousarray(x.T) if w.name == "numpy" else x.T


def _permute(w: World) -> Any:
    def permute(x: Any) -> Any:
        moved = w.np.transpose(x, (0, 2, 3, 1))
        return w.np.ascontiguousarray(moved) if w.name == "numpy" else moved

    return permute


def _take(w: World) -> Any:
    return lambda table, index: table[index]


def _scatter(w: World) -> Any:
    if w.name != "numpy":
        return lambda x, index, values: x.at[index].add(values)

    def add_at(x: Any, index: Any, values: Any) -> Any:
        result = x.copy()
        np.add.at(result, index, values)
        return result

    return add_at


def _concatenate(w: World) -> Any:
    return lambda x, y: w.np.concatenate([x, y], axis=1)


def _pad(w: World) -> Any:
    return lambda x: w.np.pad(x, ((2, 2), (3, 3)))


def _cast(w: World) -> Any:
    return lambda x: x.astype("float64")


def _wide() -> Any:
    return (uniform(4000, 2500, dtype="f8"),)


def _halves() -> Any:
    return uniform(4000, 1250, dtype="f8"), uniform(4000, 1250, dtype="f8", seed=1)


def _shuffled(n: int) -> Any:
    return np.random.default_rng(0).permutation(n)


def _random(name: str, shape: tuple[int, ...]) -> Any:
    def make(w: World) -> Any:
        def sample(seed: Any) -> Any:
            return getattr(w.random, name)(w.random.key(seed), shape, dtype="float32")

        return sample

    return make


def _numpy_random(name: str, shape: tuple[int, ...]) -> Any:
    def make(w: World) -> Any:
        return lambda seed: getattr(np.random.default_rng(seed), name)(size=shape, dtype="float32")

    return make


def _sizes(n: int, dtype: str = "f4") -> Any:
    return lambda: (uniform(n, n, dtype=dtype, low=-1, high=1), uniform(n, n, dtype=dtype, low=-1, high=1, seed=1))


def _bits(n: int) -> Any:
    """The operands in bf16, as integers."""
    return lambda: tuple((x.view(np.uint32) >> 16).astype(np.int16) for x in _sizes(n)())


_NUMPY = ("numpy",)
_ROWS = lambda: (uniform(1024, 1024, low=-3, high=3),)  # noqa: E731
ROWS = [
    Row("sum f4 1e3", "reductions", lambda: (uniform(1000),), _method("sum"), _NUMPY),
    Row("sum f4 1e6", "reductions", lambda: (uniform(10**6),), _method("sum"), _NUMPY),
    Row("sum f4 1e7", "reductions", lambda: (uniform(10**7),), _method("sum"), _NUMPY),
    Row("sum f8 1e7", "reductions", lambda: (uniform(10**7, dtype="f8"),), _method("sum"), _NUMPY),
    Row("sum rows f4 4096x1024", "reductions", lambda: (uniform(4096, 1024),), _method("sum", axis=1), _NUMPY),
    Row("sum columns f4 4096x1024", "reductions", lambda: (uniform(4096, 1024),), _method("sum", axis=0), _NUMPY),
    Row(
        "sum axes 0,2 f4 128x64x128",
        "reductions",
        lambda: (uniform(128, 64, 128),),
        _method("sum", axis=(0, 2)),
        _NUMPY,
    ),
    Row("sum short rows f4 1e6x4", "reductions", lambda: (uniform(10**6, 4),), _method("sum", axis=1), _NUMPY),
    Row("max f4 1e6", "reductions", lambda: (uniform(10**6),), _method("max"), _NUMPY),
    Row("argmax f4 1e6", "reductions", lambda: (uniform(10**6),), _method("argmax"), _NUMPY, tolerance=0),
    Row("argmax rows f4 1024x1024", "reductions", _ROWS, _method("argmax", axis=1), _NUMPY, tolerance=0),
    Row("mean, var f4 1024x1024", "reductions", _ROWS, _moments, _NUMPY),
    Row("softmax f4 1024x1024", "normalisations", _ROWS, _softmax, _NUMPY),
    Row("logsumexp f4 1024x1024", "normalisations", _ROWS, _logsumexp, _NUMPY),
    Row(
        "layernorm f4 1024x1024",
        "normalisations",
        lambda: (*_ROWS(), uniform(1024), uniform(1024, seed=1)),
        _layernorm,
        _NUMPY,
    ),
    Row("softmax gradient f4 1024x1024", "derivatives", _ROWS, _of_gradient(_softmax), tolerance=1e-3),
    Row(
        "layernorm gradient f4 1024x1024",
        "derivatives",
        lambda: (*_ROWS(), uniform(1024), uniform(1024, seed=1)),
        _of_gradient(_layernorm),
        tolerance=1e-2,
    ),
    *(Row(f"attention f4 8x{n}x64", "contractions", _queries(n), _attention, _NUMPY) for n in (256, 1024)),
    Row("attention gradients f4 8x1024x64", "derivatives", _queries(1024), _attention_gradients, tolerance=1e-3),
    *(Row(f"matmul f4 {n}", "contractions", _sizes(n), _matmul, _NUMPY) for n in (16, 64, 256, 1024, 2048)),
    Row("matmul bf16 1024", "contractions", _bits(1024), _matmul_bf16, tolerance=1e-2),
    Row("matmul f8 512", "contractions", _sizes(512, "f8"), _matmul, _NUMPY),
    Row("matmul transposed f4 512", "contractions", _sizes(512), _matmul_transposed, _NUMPY),
    Row("matmul bias relu f4 512", "contractions", lambda: (*_sizes(512)(), uniform(512)), _bias_relu, _NUMPY),
    Row("matvec f4 2048", "contractions", lambda: (uniform(2048, 2048), uniform(2048)), _matmul, _NUMPY),
    Row(
        "batched matmul f4 1024x16x16",
        "contractions",
        lambda: (uniform(1024, 16, 16), uniform(1024, 16, 16, seed=1)),
        _matmul,
        _NUMPY,
    ),
    Row(
        "convolution f4 16x32x32x32, 3x3",
        "contractions",
        lambda: (uniform(16, 32, 32, 32, low=-1, high=1), uniform(32, 32, 3, 3, low=-1, high=1)),
        _convolution,
    ),
    Row(
        "convolution gradients f4 16x32x32x32, 3x3",
        "derivatives",
        lambda: (uniform(16, 32, 32, 32, low=-1, high=1), uniform(32, 32, 3, 3, low=-1, high=1)),
        _convolution_gradients,
        tolerance=1e-3,
    ),
    Row("transpose f4 2048", "movement", lambda: (uniform(2048, 2048),), _transpose, _NUMPY, tolerance=0),
    Row(
        "transpose f8 1000x1500",
        "movement",
        lambda: (uniform(1000, 1500, dtype="f8"),),
        _transpose,
        _NUMPY,
        tolerance=0,
    ),
    Row("permute f4 16x64x56x56", "movement", lambda: (uniform(16, 64, 56, 56),), _permute, _NUMPY, tolerance=0),
    Row(
        "concatenate f4 1024x512",
        "movement",
        lambda: (uniform(1024, 512), uniform(1024, 512, seed=1)),
        _concatenate,
        _NUMPY,
        tolerance=0,
    ),
    Row("pad f4 1024x1024", "movement", _ROWS, _pad, _NUMPY, tolerance=0),
    Row(
        "gather rows f4 10000x64, 8192",
        "movement",
        lambda: (uniform(10000, 64), np.random.default_rng(0).integers(0, 10000, 8192)),
        _take,
        _NUMPY,
        tolerance=0,
    ),
    Row(
        "gather f4 1e6, 1e6",
        "movement",
        lambda: (uniform(10**6), np.random.default_rng(0).integers(0, 10**6, 10**6)),
        _take,
        _NUMPY,
        tolerance=0,
    ),
    Row("transpose f8 1e7", "movement", _wide, _transpose, _NUMPY, tolerance=0),
    Row("concatenate f8 1e7", "movement", _halves, _concatenate, _NUMPY, tolerance=0),
    Row("pad f8 1e7", "movement", _wide, _pad, _NUMPY, tolerance=0),
    Row("take f8 1e7", "movement", lambda: (*_wide(), _shuffled(4000)), _take, _NUMPY, tolerance=0),
    Row("cast f4 to f8 1e7", "movement", lambda: (uniform(10**7),), _cast, _NUMPY, tolerance=0),
    Row(
        "scatter add f4 1e5, 1e6",
        "movement",
        lambda: (uniform(10**5), np.random.default_rng(0).integers(0, 10**5, 10**6), uniform(10**6)),
        _scatter,
        _NUMPY,
    ),
    Row("sort f4 1e6", "ordering", lambda: (uniform(10**6),), _method("sort"), _NUMPY, tolerance=0),
    Row(
        "sort rows f8 1000x1000",
        "ordering",
        lambda: (uniform(1000, 1000, dtype="f8"),),
        _method("sort"),
        _NUMPY,
        tolerance=0,
    ),
    Row("argsort f8 1e5", "ordering", lambda: (uniform(10**5, dtype="f8"),), _method("argsort"), _NUMPY, tolerance=0),
    Row("cumsum f8 1e7", "cumulative", lambda: (uniform(10**7, dtype="f8"),), _method("cumsum"), _NUMPY),
    Row(
        "cumsum f4 1e6",
        "cumulative",
        lambda: (uniform(10**6, low=-1, high=1),),
        _method("cumsum"),
        _NUMPY,
        tolerance=1e-3,
    ),
    Row("cumsum columns f4 1024x1024", "cumulative", _ROWS, _method("cumsum", axis=0), _NUMPY, tolerance=1e-3),
    Row(
        "uniform f4 1e6",
        "random",
        lambda: (np.int64(1),),
        _random("uniform", (10**6,)),
        others={"numpy": _numpy_random("random", (10**6,))},
        tolerance=None,
    ),
    Row(
        "normal f4 1e7",
        "random",
        lambda: (np.int64(1),),
        _random("normal", (10**7,)),
        others={"numpy": _numpy_random("standard_normal", (10**7,))},
        tolerance=None,
    ),
]
