"""A step of the adapters of `tracer.examples.adapters` in both libraries, with all other weights frozen."""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch
from torch.nn import functional

from beside_torch.pair import Pair, loaded
from tracer import data, jit, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import adapters
from tracer.examples.adapters import BATCH, LENGTH, LETTERS, RANK, Writer

RATE = 9e-3


class TorchLoRA(torch.nn.Module):
    def __init__(self, linear: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        m, n = linear.weight.shape
        self.linear = linear.requires_grad_(False)
        self.a = torch.nn.Parameter(torch.empty(rank, n).uniform_(-(n**-0.5), n**-0.5))
        self.b = torch.nn.Parameter(torch.zeros(m, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + x @ self.a.T @ self.b.T


class TorchAttention(torch.nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (torch.nn.Linear(dim, dim) for _ in range(4))
        half = dim // heads // 2
        angle = torch.arange(LENGTH)[:, None] * 1e4 ** -(torch.arange(half) / half)
        self.register_buffer("cos", torch.cos(angle), persistent=False)
        self.register_buffer("sin", torch.sin(angle), persistent=False)

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * self.cos - b * self.sin, a * self.sin + b * self.cos], dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        seen = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2))


class TorchFeedForward(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class TorchBlock(torch.nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.attention, self.mlp = TorchAttention(dim, heads), TorchFeedForward(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TorchWriter(torch.nn.Module):
    def __init__(self, dim: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(LETTERS, dim)
        torch.nn.init.normal_(self.embed.weight, std=0.02)
        self.blocks = torch.nn.ModuleList(TorchBlock(dim, heads) for _ in range(depth))
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.embed(letters)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embed.weight.T


def torch_adapted(model: TorchWriter, rank: int) -> TorchWriter:
    model.requires_grad_(False)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear):
                setattr(parent, name, TorchLoRA(child, rank))
    return model


def pair() -> Pair:
    torch.manual_seed(0)
    torch_model = torch_adapted(TorchWriter(), RANK)
    model = loaded(adapters.adapted(Writer(key=random.key(0)), RANK, key=random.key(1)), torch_model)
    tx = optim.adamw(RATE, mask="matrices")

    @jit(donate_argnums=(0, 1))
    def step(model: Writer, opt: Any, windows: Any) -> tuple[Writer, Any, Any]:
        value, slopes = value_and_grad(adapters.loss)(model, windows)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), model), tx.init(model)]

    def ours(windows: Any) -> float:
        run[0], run[1], value = step(*run, windows)
        return float(value)

    adamw = torch.optim.AdamW([p for p in torch_model.parameters() if p.requires_grad], RATE, weight_decay=1e-4)

    def theirs(windows: Any) -> float:
        letters = torch.from_numpy(windows.astype("int64"))
        value = functional.cross_entropy(torch_model(letters[:, :-1]).flatten(0, 1), letters[:, 1:].flatten())
        adamw.zero_grad()
        value.backward()
        adamw.step()
        return value.item()

    loader = data.Loader(data.Windows(adapters.code().learnt, LENGTH + 1), BATCH, key=random.key(2), prefetch=0)
    parts = [TorchLoRA, TorchAttention, TorchFeedForward, TorchBlock, TorchWriter, torch_adapted, theirs]
    return Pair(
        ours, theirs, [(windows,) for windows in islice(loader, 20)],
        ([Writer, adapters.adapted, adapters.loss, step, ours], parts),
    )  # fmt: skip


PAIRS = {"adapters, GPT 2×64": pair}
