"""Vector quantisation and k-means: Lloyd 1982, IEEE Trans. Inf. Theory 28(2)."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer import random
from tracer.absent import absent
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.lax import fori_loop, while_loop
from tracer.numpy import absolute, argmin, asarray, inf, mean, min, sqrt, square, std, sum, where, zeros
from tracer.numpy.core.conversion import unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.ops import segment_sum
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = ["kmeans", "kmeans2", "vq", "whiten"]


def whiten(obs: Any, check_finite: bool = True) -> Array:
    """Divide each feature by its standard deviation; by 1 where that is 0.

    obs: real numbers [m, n], m observations of n features; check_finite: accepted for SciPy. Returns floats [m, n].

    >>> tracer.scipy.cluster.vq.whiten(tnp.asarray([[1.0, 2.0], [3.0, 2.0]]))
    Array([[1., 2.],
           [3., 2.]], f64)
    """
    (points,) = _points("whiten", obs)
    spread = std(points, 0)
    return points / where(spread == 0, 1, spread)


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the index of each observation's nearest code, and the distance to it.

    obs: real numbers [m, n] or [m]; code_book: real numbers [k, n] or [k]; check_finite: accepted for SciPy. Returns
    (int32 [m], floats [m]). Raises ShapeError where features do not agree, DTypeError for complex numbers.

    >>> tracer.scipy.cluster.vq.vq(tnp.asarray([[0.0], [2.5]]), tnp.asarray([[0.0], [2.0]]))
    (Array([0, 1], i32), Array([0. , 0.5], f64))
    """
    points, codes = _points("vq", obs, code_book)
    return _nearest(points, codes)


def kmeans(
    obs: Any, k_or_guess: Any, iter: int = 20, thresh: Any = 1e-5, check_finite: bool = True, *, rng: Any = None
) -> tuple[Array, Array]:  # fmt: skip
    """Return codes [k, n] from which the mean distance of observations is small, and that distance.

    obs: real numbers [m, n] or [m]; k_or_guess: codes to start from [k, n], or a concrete integer: then the best of
    `iter` starts from random observations is returned, which `rng`, a key of `tracer.random`, draws. thresh: the change
    of the mean distance at which the iteration ends; check_finite: accepted for SciPy. Returns floats. Unlike in SciPy,
    a code without observations stays where it is. Raises ArgumentError without a key for random starts.

    >>> points = tnp.asarray([[0.0], [0.2], [5.0], [5.2]])
    >>> codes, distance = tracer.scipy.cluster.vq.kmeans(points, tnp.asarray([[0.0], [5.0]]))
    >>> codes.round(6), distance.round(6)
    (Array([[0.1],
           [5.1]], f64), Array(0.1, f64))
    """
    if not _is_count(k_or_guess):
        points, codes = _points("kmeans", obs, k_or_guess)
        found, distance = _lloyd(points, codes, thresh)
        return (found[:, 0] if asarray(obs).ndim == 1 else found), distance
    (points,) = _points("kmeans", obs)
    count, starts = _count("kmeans", points, k_or_guess), integer("kmeans", "iter", iter)
    key = _key("kmeans", rng)

    def attempt(i: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        codes, distance = _lloyd(points, _drawn(random.fold_in(key, i), points, count), thresh)
        better = distance < best[1]
        return where(better, codes, best[0]), where(better, distance, best[1])

    start = (points[:count], asarray(inf, points.dtype))
    found, distance = fori_loop(0, starts, attempt, start)
    return (found[:, 0] if asarray(obs).ndim == 1 else found), distance


def kmeans2(
    data: Any, k: Any, iter: int = 10, thresh: Any = 1e-5, minit: str = "random", missing: str = "warn",
    check_finite: bool = True, *, rng: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return codes [k, n] after `iter` iterations of k-means, and the index of the nearest code of each observation.

    data: real numbers [m, n] or [m]; k: a concrete integer, or the codes to start from [k, n] for "matrix". minit:
    "points" draws observations, "++" far ones (Arthur & Vassilvitskii 2007), "random" from a normal distribution with
    the mean and deviations of the data, "matrix" takes k; rng: a key of `tracer.random` for these draws. missing:
    "warn" is accepted for SciPy: a code without observations stays where it is. thresh, check_finite: not used, as in
    SciPy. Returns (floats [k, n], int32 [m]). Raises ArgumentError without a key for a random start.

    >>> points = tnp.asarray([[0.0], [0.2], [5.0], [5.2]])
    >>> codes, labels = tracer.scipy.cluster.vq.kmeans2(points, tnp.asarray([[0.0], [5.0]]), minit="matrix")
    >>> codes.round(6), labels
    (Array([[0.1],
           [5.1]], f64), Array([0, 0, 1, 1], i32))
    """
    if minit not in ("matrix", "points", "random", "++") or missing not in ("warn", "raise"):
        text = f'kmeans2{here()}: minit is "random", "points", "++" or "matrix", and missing "warn"'
        raise ArgumentError(message(text, f"got minit={minit!r}, missing={missing!r}"))
    if minit == "matrix" or not _is_count(k):
        points, codes = _points("kmeans2", data, k)
    else:
        (points,) = _points("kmeans2", data)
        codes = _started(minit, _key("kmeans2", rng), points, _count("kmeans2", points, k))
    codes = fori_loop(
        0, integer("kmeans2", "iter", iter), lambda _, codes: _moved(points, codes, _nearest(points, codes)[0]), codes
    )
    labels, _ = _nearest(points, codes)
    return (codes[:, 0] if asarray(data).ndim == 1 else codes), labels


def _points(name: str, *values: Any) -> list[Array]:
    given = unified(name, [promoted_inexact(name, v)[0] for v in values])
    if any(dtypes.is_complex(x.dtype) for x in given):
        raise DTypeError(message(f"{name}{here()}: features are real numbers", f"got {given[0].type}"))
    found = [x[:, None] if x.ndim == 1 else x for x in given]
    if any(x.ndim != 2 or x.shape[1] != found[0].shape[1] for x in found):
        got = f"got {' and '.join(str(x.type) for x in given)}"
        raise ShapeError(message(f"{name}{here()}: observations and codes are rows of equally many features", got))
    return found


def _is_count(k: Any) -> bool:
    return isinstance(k, int) or (hasattr(k, "ndim") and not k.ndim)


def _count(name: str, points: Array, k: Any) -> int:
    count = integer(name, "k", k)
    if not 1 <= count <= points.shape[0]:
        text = f"{name}{here()}: there is one code at least, and no more than observations"
        raise ArgumentError(message(text, f"got {count} for {points.type}"))
    return count


def _key(name: str, rng: Any) -> Any:
    if rng is None:
        remedy = "rng=tracer.random.key(0), or give the codes to start from"
        raise ArgumentError(message(f"{name}{here()}: a random start takes a key", "got rng=None", help=remedy))
    return rng


def _nearest(points: Array, codes: Array) -> tuple[Array, Array]:
    squares = sum(square(points[:, None] - codes), -1)
    index = argmin(squares, 1)
    least = min(squares, 1)
    positive = least > 0
    return index.astype("int32"), where(positive, sqrt(where(positive, least, 1)), 0)


def _moved(points: Array, codes: Array, labels: Array) -> Array:
    """Return the mean of each code's observations; a code without any stays."""
    k = codes.shape[0]
    counts = segment_sum(labels * 0 + asarray(1, points.dtype), labels, k)[:, None]
    totals = segment_sum(points, labels, k)
    return where(counts > 0, totals / where(counts > 0, counts, 1), codes)


def _lloyd(points: Array, codes: Array, thresh: Any) -> tuple[Array, Array]:
    def iteration(s: Any) -> Any:
        codes, _, distance = s
        labels, distances = _nearest(points, codes)
        return _moved(points, codes, labels), distance, mean(distances)

    far = asarray(inf, points.dtype)
    start = iteration((codes, far, far))
    codes, _, _ = while_loop(lambda s: ~(absolute(s[1] - s[2]) <= thresh), iteration, start)
    return codes, mean(_nearest(points, codes)[1])


def _drawn(key: Any, points: Array, count: int) -> Array:
    return points[random.choice(key, points.shape[0], (count,), replace=False)]


def _started(minit: str, key: Any, points: Array, count: int) -> Array:
    if minit == "points":
        return _drawn(key, points, count)
    if minit == "random":
        centred = points - mean(points, 0)
        draws = random.normal(key, (count, points.shape[0]), points.dtype)
        return mean(points, 0) + draws @ centred / sqrt(max(points.shape[0] - 1, 1))
    first = points[random.randint(random.fold_in(key, 0), (), 0, points.shape[0])]
    codes = zeros((count, points.shape[1]), points.dtype) + first

    def add(i: Array, codes: Array) -> Array:
        squares = square(_nearest(points, codes)[1])
        chosen = random.choice(random.fold_in(key, i), points.shape[0], p=squares / sum(squares))
        return codes.at[i].set(points[chosen])

    return fori_loop(1, count, add, codes)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)


set_boundaries(globals(), __all__)
