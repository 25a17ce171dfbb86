"""Text by an LSTM and by a GPT with rotary positions, whose attention PyTorch's user writes by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from beside_torch.pair import Pair, loaded
from tracer import random
from tracer.examples import characters

LSTM_NAMES = {f"{name}_l0": f"cells.0.{name}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
TEXT = characters.load()
KINDS = len(TEXT.alphabet)


class LSTM(nn.Module):
    def __init__(self, kinds: int, dim: int = 256) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(kinds, dim), nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, kinds)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y, _ = self.lstm(self.embed(tokens))
        return self.head(y)


def rotary(x: torch.Tensor, base: float = 1e4) -> torch.Tensor:
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half) / half)
    cos, sin, (a, b) = angle.cos(), angle.sin(), x.split(half, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, dim = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = functional.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, dim))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(dim), Attention(dim, heads), nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict({"up": nn.Linear(dim, 4 * dim), "down": nn.Linear(4 * dim, dim)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp["down"](functional.gelu(self.mlp["up"](self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, kinds: int, dim: int = 128, heads: int = 4, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(kinds, dim)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embed.weight.T


def optimiser(model: nn.Module, rate: float, steps: int) -> tuple[Any, Any]:
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.01},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    warm = max(steps // 20, 1)

    def share(step: int) -> float:
        if step < warm:
            return step / warm
        return 0.5 * (1 + np.cos(np.pi * min((step - warm) / (steps - warm), 1)))

    tx = torch.optim.AdamW(groups, lr=rate)
    return tx, torch.optim.lr_scheduler.LambdaLR(tx, share)


def step(model: nn.Module, tx: Any, schedule: Any, windows: torch.Tensor) -> float:
    value = functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
    tx.zero_grad()
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    tx.step()
    schedule.step()
    return value.item()


def pair_of(name: str, theirs: nn.Module, parts: tuple[list[Any], list[Any]], names: dict[str, str]) -> Pair:
    """The pair of two models of text."""
    ours = loaded(characters.MODELS[name](KINDS, key=random.key(0)), theirs, names)
    steps = characters.STEPS[name]
    tx = characters.optimiser(name, steps)
    compiled, (torch_tx, schedule) = (
        characters.stepper(characters.loss, tx),
        optimiser(theirs, characters.RATES[name], steps),
    )
    state = {"ours": (ours, tx.init(ours))}

    def our_step(windows: Any) -> float:
        model, opt, value = compiled(*state["ours"], windows)
        state["ours"] = model, opt
        return float(value)

    def their_step(windows: Any) -> float:
        return step(theirs, torch_tx, schedule, torch.from_numpy(windows.astype(np.int64)))

    starts = np.random.default_rng(0).integers(0, len(TEXT.train) - characters.LENGTH, (20, characters.BATCH, 1))
    batches = [(TEXT.train[row + np.arange(characters.LENGTH + 1)],) for row in starts]
    ours_too, theirs_too = [characters.loss, characters.optimiser, characters.stepper], [optimiser, step]
    return Pair(our_step, their_step, batches, ([*parts[0], *ours_too], [*parts[1], *theirs_too]))


def lstm() -> Pair:
    torch.manual_seed(0)
    return pair_of("lstm", LSTM(KINDS), ([characters.LSTM], [LSTM]), LSTM_NAMES)


def gpt() -> Pair:
    torch.manual_seed(0)
    return pair_of("gpt", GPT(KINDS), ([characters.GPT], [rotary, Attention, Block, GPT]), {})


PAIRS = {"characters, LSTM 256": lstm, "characters, GPT 4×128": gpt}
