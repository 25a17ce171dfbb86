"""Layers of attention: heads with a cache of keys and values, and the positions that they know."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracer import lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.attention import attended
from tracer.nn.layers.dropout import Dropout
from tracer.nn.layers.linear import Linear
from tracer.nn.layers.norms import RMSNorm
from tracer.nn.module import Keys, Module, place
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class KVCache(NamedTuple):
    """Keys and values of the positions that attention has seen: k, v: [b, most, heads, size]; length: int32, how many.

    >>> layer = nn.MultiheadAttention(8, 2, key=tracer.random.key(0))
    >>> layer.cache(3, 100).k.shape
    (3, 100, 2, 4)
    """

    k: Any
    v: Any
    length: Any

    def appended(self, k: Array, v: Array) -> KVCache:
        """Return the cache with keys and values [b, t, heads, size] appended.

        Raises OutOfBoundsError, in compiled code too, where they do not fit.
        """
        count, most = k.shape[1], self.k.shape[1]
        if count == 0:
            return self
        last = tnp.arange(most, dtype="int32")[self.length + (count - 1)]  # whose bounds are checked
        first = last - (count - 1)
        put = lax.dynamic_update_slice_in_dim
        return KVCache(
            put(self.k, k.astype(self.k.dtype), first, 1), put(self.v, v.astype(self.v.dtype), first, 1), last + 1
        )


def _without_offset(layer: Linear) -> Linear:
    return layer if layer.bias is None else layer.replace(bias=tnp.zeros_like(layer.bias))


def _as_glorot(layer: Linear, together: int | None) -> Linear:
    """Return a new layer with its weight uniform within (6 / (inputs + outputs))**0.5, and a bias of 0.

    together: the outputs of the matrix that the weight is a part of.
    """
    m, n = layer.weight.shape
    spread = (6 * max(n, 1) / max(n + (together or m), 1)) ** 0.5  # the layer drew within n**-0.5
    return _without_offset(layer.replace(weight=layer.weight * spread))


class MultiheadAttention(Module):
    """Attention of several heads, with linear maps before and after. Vaswani et al. 2017, arXiv:1706.03762.

    dim: features of the input and the result; heads: of queries; kv_heads: of keys and values, a divisor of heads,
    which then share them (arXiv:2305.13245), by default as many; head_dim: features of a head, dim / heads by default;
    context_dim: features of `context`; bias: whether the linear maps have one; rope: the base of rotary positions, such
    as 1e4, see `rotary`; qk_norm: whether queries and keys are divided by their root mean square, with weights
    (arXiv:2302.05442); window: how many positions a query sees before and after its own, one number or a pair; dropout:
    rate for weights of attention, in training copies. q, k, v, out: linear layers, which start as PyTorch's: the first
    three by Glorot & Bengio 2010 (as one matrix, where there is one source), biases at 0.

    >>> layer = nn.MultiheadAttention(8, 4, kv_heads=2, rope=1e4, key=tracer.random.key(0))
    >>> x = tnp.ones((2, 5, 8), "float32")
    >>> layer(x, causal=True).shape
    (2, 5, 8)
    >>> y, cache = layer(x[:, :1], causal=True, cache=layer.cache(2, 5))
    >>> cache.k.shape, int(cache.length)
    ((2, 5, 2, 2), 1)
    """

    def __init__(
        self, dim: int, heads: int, *, kv_heads: int | None = None, head_dim: int | None = None,
        context_dim: int | None = None, bias: bool = True, rope: float | None = None, qk_norm: bool = False,
        window: int | tuple[int, int] | None = None, dropout: float = 0.0, dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        shared = heads if kv_heads is None else kv_heads
        if heads < 1 or shared < 1 or heads % shared or (head_dim is None and dim % heads):
            raise ArgumentError(
                message(
                    f"nn.MultiheadAttention{here()}: heads must divide dim, and kv_heads must divide heads",
                    f"got dim={dim}, heads={heads}, kv_heads={kv_heads}",
                    help="head_dim=... makes heads of any size" if heads > 0 and dim % heads else None,
                )
            )
        size, keys = dim // heads if head_dim is None else head_dim, Keys(key)
        if rope is not None and size % 2:
            raise ArgumentError(
                message(f"nn.MultiheadAttention{here()}: rotary positions take heads of even size", f"got {size}")
            )
        self.heads, self.kv_heads, self.rope, self.window = heads, shared, rope, window
        source = dim if context_dim is None else context_dim
        layers = [
            Linear(n, m * size, bias=bias, dtype=dtype, key=next(keys))
            for n, m in ((dim, heads), (source, shared), (source, shared))
        ]
        together = (heads + 2 * shared) * size if source == dim else None
        self.q, self.k, self.v = (_as_glorot(layer, together) for layer in layers)
        self.out = _without_offset(Linear(heads * size, dim, bias=bias, dtype=dtype, key=next(keys)))
        self.q_norm = RMSNorm(size, dtype=dtype) if qk_norm else None
        self.k_norm = RMSNorm(size, dtype=dtype) if qk_norm else None
        self.drop = Dropout(dropout)
        self.size = size

    def __call__(
        self, x: Any, context: Any = None, *, causal: bool = False, mask: Any = None, bias: Any = None,
        cache: KVCache | None = None, key: Array | None = None,
    ) -> Any:  # fmt: skip
        """Return the result, and with `cache` the pair (result, cache).

        x: floats [b, t, dim] or [t, dim]; context: where keys and values come from, [b, s, context_dim], x by default;
        causal: whether a position sees none after its own; mask: bools that broadcast to [b, heads, t, s], False
        for hidden positions; bias: numbers for the logits, of such a shape. cache: keys and values of the positions
        before x; with it s counts all places of the cache. key: for dropout, in place of the training copy's.
        """
        x = tnp.asarray(x)
        source = x if context is None else tnp.asarray(context)
        self._check(x, source, cache)
        start = 0 if cache is None else cache.length
        q = self._heads(self.q(x), self.heads, self.q_norm, start)
        k = self._heads(self.k(source), self.kv_heads, self.k_norm, start)
        v = self._heads(self.v(source), self.kv_heads)
        window, with_cache = self.window, cache is not None
        if cache is not None:
            cache = cache.appended(k, v) if k.ndim == 4 else _of_one(cache, k, v)
            seen = _seen_in_cache(start, x.shape[-2], cache.k.shape[1], causal, window)
            mask = seen if mask is None else mask & seen
            k, v, causal, window = cache.k.astype(q.dtype), cache.v.astype(q.dtype), False, None
            k, v = (k, v) if q.ndim == 4 else (k[0], v[0])
        found = attended(
            q, k, v, bias, mask, is_causal=causal, local_window_size=window,
            on_weights=lambda weights: self.drop(weights, key=key),
        )  # fmt: skip
        y = self.out(found.reshape(*found.shape[:-2], self.heads * self.size))
        return (y, cache) if with_cache else y

    def cache(self, batch: int, most: int, dtype: Any = None) -> KVCache:
        """Return an empty cache of `most` positions, in the dtype of the weights unless another is given."""
        if dtype is None:
            dtype = trees.flatten(self.k)[0][0].dtype
        shape = (batch, most, self.kv_heads, self.size)
        return KVCache(tnp.zeros(shape, dtype), tnp.zeros(shape, dtype), tnp.asarray(0, "int32"))

    def _heads(self, x: Array, count: int, norm: Any = None, start: Any = None) -> Array:
        """Return [..., t, count * size] as [..., t, count, size], normalised and rotated where the layer does so."""
        x = x.reshape(*x.shape[:-1], count, self.size)
        if norm is not None:
            x = norm(x)
        return rotary(x, start, self.rope) if start is not None and self.rope is not None else x

    def _check(self, x: Array, source: Array, cache: KVCache | None) -> None:
        if x.ndim not in (2, 3) or source.ndim != x.ndim or x.shape[:-2] != source.shape[:-2]:
            came = str(x.type) if source is x else f"{x.type} and the context {source.type}"
            raise ShapeError(
                message(f"{place(self)} takes [b, t, n] or [t, n]", f"got {came}{here()}", help="x[None] adds an axis")
            )
        if cache is None:
            return
        if source is not x:
            raise ArgumentError(
                message(
                    f"{place(self)}{here()}: a cache holds the positions of x itself",
                    "got context= and cache=",
                    help="leave out cache=",
                )
            )
        batch = x.shape[0] if x.ndim == 3 else 1
        wanted = (batch, cache.k.shape[1], self.kv_heads, self.size)
        if cache.k.shape != wanted:
            raise ShapeError(
                message(
                    f"{place(self)}{here()}: the cache belongs to other heads or another batch",
                    f"expected {list(wanted)}, got {list(cache.k.shape)}",
                    help=f"layer.cache({batch}, {cache.k.shape[1]})",
                )
            )


def _of_one(cache: KVCache, k: Array, v: Array) -> KVCache:
    return cache.appended(k[None], v[None])


def _seen_in_cache(start: Any, count: int, most: int, causal: bool, window: Any) -> Array:
    """Return which places of the cache positions start, start + 1, ... see: bool [1, 1, count, most]."""
    query, place = start + tnp.arange(count)[:, None], tnp.arange(most)
    seen: Any = place <= query if causal else (place < start + count) & (query >= 0)
    if window is not None:
        before, behind = window if isinstance(window, tuple) else (window, window)
        seen = seen & (place >= query - before) & (place <= query + behind)
    return tnp.broadcast_to(seen, (1, 1, count, most))


def rotary(x: Any, start: Any = 0, base: float = 1e4, scale: float | None = None, interleaved: bool = False) -> Array:
    """Return queries or keys rotated by their positions: products of both then depend on distances alone.

    x: floats [..., t, heads, size], of even size. The pair i of features at position p turns by the angle p base**(-2 i
    / size) / scale. base: a number; start: the first position, an integer, or integers [...] for each sequence; scale:
    the divisor of positions, for longer sequences than in training (arXiv:2306.15595). interleaved: whether pairs
    are neighbours, as in Su et al. 2021, arXiv:2104.09864, or i and i + size / 2, as in GPT-NeoX and Llama. Computed in
    float32 at least. Raises ShapeError for odd sizes, DTypeError for integers.

    >>> x = tnp.asarray([[[1.0, 0.0]], [[1.0, 0.0]]])
    >>> nn.rotary(x)[:, 0]
    Array([[1.        , 0.        ],
           [0.54030231, 0.84147098]], f64)
    """
    x = tnp.asarray(x)
    if x.ndim < 3 or x.shape[-1] % 2:
        raise ShapeError(message(f"nn.rotary{here()} takes [..., t, heads, size] of even size", f"got {x.type}"))
    if not dtypes.is_float(x.dtype):
        raise DTypeError(message(f"nn.rotary{here()} takes floats", f"got {x.type}", help='x.astype("float32")'))
    wide = tnp.promote_types(x.dtype, "float32")
    half = x.shape[-1] // 2
    position = (tnp.asarray(start)[..., None] + tnp.arange(x.shape[-3])).astype(wide)
    position = position if scale is None else position / scale
    angle = (position[..., None] * base ** -(tnp.arange(half, dtype=wide) / half))[..., None, :]
    cos, sin = tnp.cos(angle), tnp.sin(angle)
    pairs = x.astype(wide).reshape(*x.shape[:-1], *((half, 2) if interleaved else (2, half)))
    a, b = (pairs[..., 0], pairs[..., 1]) if interleaved else (pairs[..., 0, :], pairs[..., 1, :])
    turned = tnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1 if interleaved else -2)
    result: Array = turned.reshape(x.shape).astype(x.dtype)
    return result


def alibi(heads: int, t: int, s: int | None = None, *, dtype: Any = "float32") -> Array:
    """Return a bias for attention that falls with the distance of positions, [heads, t, s].

    heads: their number; dtype: of the result; t, s: the number of queries, which are the last positions, and of keys, t
    by default. The head n of a power of two has the slope 2**(-8 (n + 1) / heads); other numbers of heads take every
    second one of the next power's, too. Press, Smith & Lewis 2022, arXiv:2108.12409.

    >>> nn.alibi(8, 3)[0]
    Array([[-0. , -0.5, -1. ],
           [-0.5, -0. , -0.5],
           [-1. , -0.5, -0. ]], f32)
    """
    if heads < 1:
        raise ArgumentError(message(f"nn.alibi{here()}: there must be 1 head or more", f"got {heads}"))
    s = t if s is None else s
    power = 2 ** int(np.log2(heads))
    slopes = [2.0 ** (-8 * (n + 1) / power) for n in range(power)]
    slopes += [2.0 ** (-4 * (n + 1) / power) for n in range(0, 2 * (heads - power), 2)]
    distance = tnp.abs(tnp.arange(s - t, s)[:, None] - tnp.arange(s))
    bias: Array = -tnp.asarray(slopes, dtype)[:, None, None] * distance.astype(dtype)
    return bias


class SinusoidalPositions(Module):
    """Add sines and cosines of the positions. Vaswani et al. 2017, arXiv:1706.03762.

    n: features, an even number; base: of the wavelengths. x: floats [..., t, n]; start: the first position. Features
    2 i and 2 i + 1 get the sine and cosine of position / base**(2 i / n).

    >>> nn.SinusoidalPositions(2)(tnp.zeros((2, 2), "float32"))
    Array([[0.        , 1.        ],
           [0.84147096, 0.5403023 ]], f32)
    """

    def __init__(self, n: int, *, base: float = 1e4) -> None:
        if n < 2 or n % 2:
            raise ArgumentError(message(f"nn.SinusoidalPositions{here()} takes an even number of features", f"got {n}"))
        self.n, self.base = n, float(base)

    def __call__(self, x: Any, start: Any = 0) -> Array:
        x = tnp.asarray(x)
        if x.ndim < 2 or x.shape[-1] != self.n:
            raise ShapeError(message(f"{place(self)} takes [..., t, {self.n}]", f"got {x.type}{here()}"))
        wide = tnp.promote_types(x.dtype, "float32")
        half = self.n // 2
        position = (tnp.asarray(start)[..., None] + tnp.arange(x.shape[-2])).astype(wide)
        angle = position[..., None] * self.base ** -(tnp.arange(half, dtype=wide) / half)
        table = tnp.stack([tnp.sin(angle), tnp.cos(angle)], axis=-1).reshape(*angle.shape[:-1], self.n)
        result: Array = (x.astype(wide) + table).astype(x.dtype)
        return result
