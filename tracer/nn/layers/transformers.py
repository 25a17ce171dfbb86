"""Transformer blocks, and encoders and decoders made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.nn.activations import gelu
from tracer.nn.layers.attention_layers import KVCache, MultiheadAttention
from tracer.nn.layers.dropout import Dropout
from tracer.nn.layers.linear import Linear
from tracer.nn.layers.norms import LayerNorm
from tracer.nn.module import Keys, Module, place
from tracer.nn.stacks import Remat, Stack
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class FeedForward(Module):
    """down(activation(up(x))), or down(activation(gate(x)) * up(x)): the part of a block that sees one position.

    n, hidden: features outside and inside; gated: whether there is a gate (Shazeer 2020, arXiv:2002.05202); dropout:
    rate inside, in training copies.

    >>> nn.FeedForward(4, 16, gated=True, key=tracer.random.key(0))(tnp.ones((5, 4), "float32")).shape
    (5, 4)
    """

    def __init__(
        self, n: int, hidden: int, *, activation: Callable[[Any], Any] = gelu, gated: bool = False, bias: bool = True,
        dropout: float = 0.0, dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        keys = Keys(key)
        self.activation = activation
        self.up = Linear(n, hidden, bias=bias, dtype=dtype, key=next(keys))
        self.gate = Linear(n, hidden, bias=bias, dtype=dtype, key=next(keys)) if gated else None
        self.down = Linear(hidden, n, bias=bias, dtype=dtype, key=next(keys))
        self.drop = Dropout(dropout)

    def __call__(self, x: Any) -> Any:
        up = self.up(x)
        inside = self.activation(up) if self.gate is None else self.activation(self.gate(x)) * up
        return self.down(self.drop(inside))


class TransformerBlock(Module):
    """Attention and a feed-forward network, each with a norm and added to its input.

    dim, heads: as of `MultiheadAttention`; hidden: features inside the feed-forward network, 4 * dim by default;
    activation, gated: its function, and whether it has a gate; norm: makes a norm from dim, such as nn.RMSNorm;
    norm_first: whether norms stand before the parts (arXiv:2002.04745), or after the sums, as in Vaswani et al. 2017,
    arXiv:1706.03762; dropout: rate for the weights of attention, inside the network and before the sums, in training
    copies; cross: whether a second attention, `cross`, reads a context; bias: whether linear maps have one. Further
    arguments are of `MultiheadAttention`: kv_heads, head_dim, rope, qk_norm, window.

    >>> block = nn.TransformerBlock(8, 2, rope=1e4, key=tracer.random.key(0))
    >>> block(tnp.ones((3, 5, 8), "float32"), causal=True).shape
    (3, 5, 8)
    """

    def __init__(
        self, dim: int, heads: int, *, hidden: int | None = None, activation: Callable[[Any], Any] = gelu,
        norm: Callable[..., Any] = LayerNorm, norm_first: bool = True, dropout: float = 0.0, gated: bool = False,
        cross: bool = False, bias: bool = True, context_dim: int | None = None, dtype: Any = "float32", key: Array,
        **attention: Any,
    ) -> None:  # fmt: skip
        keys = Keys(key)
        made = functools.partial(MultiheadAttention, dim, heads, bias=bias, dropout=dropout, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = norm(dim, dtype=dtype)
        self.attention = made(key=next(keys), **attention)
        if cross:
            plain = {name: value for name, value in attention.items() if name not in ("rope", "window")}
            self.norm_cross = norm(dim, dtype=dtype)
            self.cross: Any = made(key=next(keys), context_dim=context_dim, **plain)
        else:
            self.cross = None
        self.norm2 = norm(dim, dtype=dtype)
        self.mlp = FeedForward(
            dim, 4 * dim if hidden is None else hidden, activation=activation, gated=gated, bias=bias, dropout=dropout,
            dtype=dtype, key=next(keys),
        )  # fmt: skip
        self.drop = Dropout(dropout)

    def __call__(
        self, x: Any, context: Any = None, *, causal: bool = False, mask: Any = None, bias: Any = None,
        context_mask: Any = None, cache: KVCache | None = None,
    ) -> Any:  # fmt: skip
        """Return the result, and with `cache` the pair (result, cache).

        x: floats [b, t, dim] or [t, dim]; context: read by `cross`, [b, s, context_dim]; causal, mask, bias, cache: of
        the first attention; context_mask: bools that broadcast to [b, heads, t, s].
        """
        if (context is None) != (self.cross is None):
            self._refuse_context(context)
        kept = []

        def attention(x: Any) -> Any:
            found = self.attention(x, causal=causal, mask=mask, bias=bias, cache=cache)
            if cache is None:
                return found
            kept.append(found[1])
            return found[0]

        x = self._added(x, self.norm1, attention)
        if self.cross is not None:
            x = self._added(x, self.norm_cross, lambda x: self.cross(x, context, mask=context_mask))
        x = self._added(x, self.norm2, self.mlp)
        return x if cache is None else (x, kept[0])

    def _added(self, x: Any, norm: Callable[[Any], Any], part: Callable[[Any], Any]) -> Any:
        if self.norm_first:
            return x + self.drop(part(norm(x)))
        return norm(x + self.drop(part(x)))

    def _refuse_context(self, context: Any) -> None:
        takes = "takes no context" if self.cross is None else "takes a context"
        remedy = "TransformerBlock(..., cross=True)" if self.cross is None else "block(x, context)"
        raise ArgumentError(message(f"{place(self)}{here()} {takes}", help=remedy))


class _Blocks(Module):
    """Transformer blocks one after another, and a norm of their result."""

    def __init__(
        self, dim: int, heads: int, depth: int, *, stacked: bool = True, remat: bool = False,
        norm: Callable[..., Any] = LayerNorm, norm_first: bool = True, dtype: Any = "float32", key: Array,
        **block: Any,
    ) -> None:  # fmt: skip
        keys = Keys(key)
        made = functools.partial(TransformerBlock, dim, heads, norm=norm, norm_first=norm_first, dtype=dtype, **block)
        if stacked:
            self.blocks: Any = Stack(made, depth, key=next(keys), remat=remat)
        else:
            blocks = [made(key=next(keys)) for _ in range(depth)]
            self.blocks = [Remat(block) for block in blocks] if remat else blocks
        self.norm = norm(dim, dtype=dtype) if norm_first else None

    def _through(self, x: Any, context: Any = None, cache: Any = None, **call: Any) -> Any:
        if isinstance(self.blocks, Stack):
            each = None if cache is None else {"cache": cache}
            found = self.blocks(x, context, each=each, **call)
            x, cache = found if cache is not None else (found, None)
        else:
            caches = []
            for n, block in enumerate(self.blocks):
                if cache is None:
                    x = block(x, context, **call)
                else:
                    x, new = block(x, context, cache=trees.tree_map(lambda leaf, n=n: leaf[n], cache), **call)
                    caches.append(new)
            cache = trees.tree_map(lambda *leaves: tnp.stack(leaves), *caches) if caches else None
        return x if self.norm is None else self.norm(x), cache


class TransformerEncoder(_Blocks):
    """Transformer blocks that see the whole sequence, and a norm of their result where norms stand first.

    dim, heads, depth: features, heads and number of blocks; stacked: whether the blocks are one `Stack`, compiled once,
    or a list; remat: whether blocks keep their inputs alone for gradients. Further arguments are of `TransformerBlock`.

    >>> encoder = nn.TransformerEncoder(8, 2, 3, hidden=16, key=tracer.random.key(0))
    >>> encoder(tnp.ones((2, 5, 8), "float32")).shape
    (2, 5, 8)
    """

    def __call__(self, x: Any, *, causal: bool = False, mask: Any = None, bias: Any = None) -> Any:
        """Return floats [b, t, dim] for x: [b, t, dim]; mask, bias: as of `MultiheadAttention`, for every block."""
        return self._through(x, causal=causal, mask=mask, bias=bias)[0]


class TransformerDecoder(_Blocks):
    """Transformer blocks that see the positions before, and a context; and a norm where norms stand first.

    Arguments as of `TransformerEncoder`. cross: whether the blocks read a context.

    >>> decoder = nn.TransformerDecoder(8, 2, 3, hidden=16, key=tracer.random.key(0))
    >>> decoder(tnp.ones((2, 5, 8), "float32"), tnp.ones((2, 7, 8), "float32")).shape
    (2, 5, 8)
    """

    def __init__(self, dim: int, heads: int, depth: int, *, cross: bool = True, key: Array, **options: Any) -> None:
        super().__init__(dim, heads, depth, cross=cross, key=key, **options)

    def __call__(
        self, x: Any, context: Any = None, *, mask: Any = None, bias: Any = None, context_mask: Any = None,
        cache: KVCache | None = None,
    ) -> Any:  # fmt: skip
        """Return the result, and with `cache` the pair (result, cache).

        x: floats [b, t, dim]; context: [b, s, dim]; masks: as of `TransformerBlock`, for every block; cache: of all
        blocks, as `cache` makes it.
        """
        y, kept = self._through(x, context, cache, causal=True, mask=mask, bias=bias, context_mask=context_mask)
        return y if cache is None else (y, kept)

    def cache(self, batch: int, most: int, dtype: Any = None) -> KVCache:
        """Return empty caches of all blocks, with an axis of blocks first."""
        blocks = self.blocks
        if isinstance(blocks, Stack):
            one, count = blocks.layers.attention.cache(batch, most, dtype), blocks.count
        else:
            first: Any = blocks[0].module if isinstance(blocks[0], Remat) else blocks[0]
            one, count = first.attention.cache(batch, most, dtype), len(blocks)
        return KVCache(*(tnp.zeros((count, *part.shape), part.dtype) for part in one))
