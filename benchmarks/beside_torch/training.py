"""Digits by an MLP and by the convolutional network, whose dropout is 0 here: both libraries draw other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

import tracer.numpy as tnp
from beside_torch.pair import Pair, loaded
from tracer import optim, random
from tracer.examples import digits, training

RATE, DECAY = 2e-3, 0.05


class Network(nn.Module):
    def __init__(self, dropout: float = 0.25) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64)
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(64 * 4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.norm1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(torch.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.drop(x.flatten(1)))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x.flatten(1))


def adamw(model: nn.Module, rate: float, decay: float) -> torch.optim.Optimizer:
    """AdamW that decays matrices alone."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate)


def step(model: nn.Module, tx: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    model.train()
    value = nn.functional.cross_entropy(model(x), y)
    tx.zero_grad()
    value.backward()
    tx.step()
    return value.item()


def image_batches(part: digits.Digits, count: int = 20, size: int = 64) -> list[tuple[Any, Any]]:
    x, y = training.as_images(part)
    rows = np.random.default_rng(0).integers(0, len(x), (count, size))
    return [(x[r], y[r]) for r in rows]


def pair_of(ours: Any, theirs: nn.Module, rename: dict[str, str] | None = None) -> Pair:
    """The pair of two image models."""
    lines = [type(ours), training.loss, training.stepper], [type(theirs), adamw, step]
    ours, tx = loaded(ours, theirs, rename), optim.adamw(RATE, weight_decay=DECAY, mask="matrices")
    state = {"run": training.Run(ours, tx.init(ours), random.key(2), tnp.asarray(0))}
    compiled, torch_tx = training.stepper(tx), adamw(theirs, RATE, DECAY)

    def our_step(x: Any, y: Any) -> float:
        state["run"], value = compiled(state["run"], x, y)
        return float(value)

    def their_step(x: Any, y: Any) -> float:
        return step(theirs, torch_tx, torch.from_numpy(x), torch.from_numpy(y))

    return Pair(our_step, their_step, image_batches(digits.split().train), lines)


def mlp() -> Pair:
    torch.manual_seed(0)
    rename = {"layers.0": "layers.layers.0", "layers.2": "layers.layers.1"}
    return pair_of(training.Perceptron(key=random.key(0)), Perceptron(), rename)


def cnn() -> Pair:
    torch.manual_seed(0)
    return pair_of(training.Network(dropout=0.0, key=random.key(0)), Network(dropout=0.0))


PAIRS = {"digits, MLP": mlp, "digits, CNN": cnn}
