"""A step of the network of `tracer.examples.equilibrium` in both libraries, through all iterations of the loop."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from beside_torch.pair import Pair, loaded
from tracer import data, jit, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import digits, equilibrium
from tracer.examples.equilibrium import BATCH, RATE, SHRINKING, TOLERANCE, Equilibrium, Network


class TorchEquilibrium(torch.nn.Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.inward, self.again = torch.nn.Linear(n, m), torch.nn.Linear(m, m, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.again.weight
        w = w * torch.clamp(SHRINKING / w.abs().sum(dim=1, keepdim=True), max=1.0)
        drive = self.inward(x)
        z, moved = torch.zeros_like(drive), float("inf")
        while moved > TOLERANCE:
            new = torch.tanh(z @ w.T + drive)
            z, moved = new, (new - z).abs().max().item()
        return z


class TorchNetwork(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = TorchEquilibrium(64, 96), torch.nn.Linear(96, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def pair() -> Pair:
    torch.manual_seed(0)
    torch_model = TorchNetwork()
    model = loaded(Network(key=random.key(0)), torch_model)
    tx = optim.adamw(RATE, weight_decay=0.01)

    @jit(donate_argnums=(0, 1))
    def step(model: Network, opt: Any, x: Any, y: Any) -> tuple[Network, Any, Any]:
        value, slopes = value_and_grad(equilibrium.loss)(model, x, y)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), model), tx.init(model)]

    def ours(x: Any, y: Any) -> float:
        run[0], run[1], value = step(*run, x, y)
        return float(value)

    adamw = torch.optim.AdamW(torch_model.parameters(), RATE, weight_decay=0.01)

    def theirs(x: Any, y: Any) -> float:
        value = functional.cross_entropy(torch_model(torch.from_numpy(x)), torch.from_numpy(y))
        adamw.zero_grad()
        value.backward()
        adamw.step()
        return value.item()

    batches = list(data.Loader(tuple(digits.split().train), BATCH, key=random.key(1), epochs=1))
    return Pair(
        ours, theirs, batches,
        ([Equilibrium, Network, equilibrium.loss, step, ours], [TorchEquilibrium, TorchNetwork, theirs]),
    )  # fmt: skip


PAIRS = {"equilibrium, 96": pair}
