"""Training steps in PyTorch: as its user writes them, with fused and grouped updates, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from beside_torch import characters, training

from steps import shapes

Run = Callable[[], Any]
_ADAMW = torch.optim.AdamW
_UPDATES = {"fused": {"fused": True}, "foreach": {"foreach": True}, "compile": {"fused": True}}


def step(row: str, peer: str) -> Run:
    """Make the step of a row; peer: "torch", and "fused", "foreach" or "compile" after it."""
    torch.set_num_threads(1)
    how = peer.removeprefix("torch").strip()
    if row.startswith("AdamW"):
        return _update(shapes(row), how)
    torch.optim.AdamW = partial(_ADAMW, **_UPDATES.get(how, {}))  # type: ignore[misc, assignment]
    name = row.split()[0]
    return _text(name, how) if name in ("LSTM", "GPT") else _images(name, how)


def _images(name: str, how: str) -> Run:
    rng = np.random.default_rng(0)
    model: Any = training.Network(0.0) if name == "CNN" else training.Perceptron()
    if how == "compile":
        model.compile()
    tx = training.adamw(model, 2e-3, 0.05)
    x, y = torch.from_numpy(rng.standard_normal((64, 1, 8, 8), "float32")), torch.from_numpy(rng.integers(0, 10, 64))
    return lambda: training.step(model, tx, x, y)


def _text(name: str, how: str) -> Run:
    model: Any = characters.LSTM(103) if name == "LSTM" else characters.GPT(103)
    if how == "compile":
        model.compile()
    tx, schedule = characters.optimiser(model, 2e-3, 3000)
    windows = torch.from_numpy(np.random.default_rng(0).integers(0, 103, (16, 65)))
    return lambda: characters.step(model, tx, schedule, windows)


def _update(sizes: list[tuple[int, ...]], how: str) -> Run:
    """AdamW alone."""
    params = [torch.randn(shape, requires_grad=True) for shape in sizes]
    for p in params:
        p.grad = torch.randn_like(p)
    settings = _UPDATES.get(how, {}) if how != "compile" else {"foreach": True}
    tx = _ADAMW(params, lr=1e-3, weight_decay=1e-4, **settings)
    return torch.compile(tx.step) if how == "compile" else tx.step
