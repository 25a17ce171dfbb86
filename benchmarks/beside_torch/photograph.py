"""A step of the network of sines of `tracer.examples.photograph` in both libraries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from beside_torch.pair import Pair, loaded
from tracer import jit, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import photograph
from tracer.examples.photograph import BATCH, RATE, WAVES, Sines, uniform_linear


class TorchSines(torch.nn.Module):
    def __init__(self, width: int = 28, depth: int = 3) -> None:
        super().__init__()
        sizes = [2, *[width] * depth, 3]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(n, m) for n, m in pairwise(sizes))
        for layer, bound in zip(self.layers, [1 / 2, *[(6 / width) ** 0.5 / WAVES] * depth], strict=True):
            torch.nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.sin(WAVES * layer(x))
        return 0.5 + self.layers[-1](x)


def pair() -> Pair:
    torch.manual_seed(0)
    torch_model = TorchSines()
    model = loaded(Sines(key=random.key(0)), torch_model)
    tx = optim.adam(RATE)

    @jit(donate_argnums=(0, 1))
    def step(model: Sines, opt: Any, places: Any, colours: Any) -> tuple[Sines, Any, Any]:
        value, slopes = value_and_grad(photograph.loss)(model, places, colours)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), model), tx.init(model)]

    def ours(places: Any, colours: Any) -> float:
        run[0], run[1], value = step(*run, places, colours)
        return float(value)

    adam = torch.optim.Adam(torch_model.parameters(), RATE)

    def theirs(places: Any, colours: Any) -> float:
        value = ((torch_model(torch.from_numpy(places)) - torch.from_numpy(colours)) ** 2).mean()
        adam.zero_grad()
        value.backward()
        adam.step()
        return value.item()

    picture = photograph.photograph()
    places, colours = np.asarray(photograph.grid(*picture.shape[:2])).reshape(-1, 2), picture.reshape(-1, 3)
    rows = np.random.default_rng(0).integers(0, len(places), (20, BATCH))
    return Pair(
        ours, theirs, [(places[some], colours[some]) for some in rows],
        ([Sines, uniform_linear, photograph.loss, step, ours], [TorchSines, theirs]),
    )  # fmt: skip


PAIRS = {"photograph, sines 28×3": pair}
