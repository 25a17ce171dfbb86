"""A step of the diffusion model of `tracer.examples.generation` in both libraries, with the same noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from beside_torch.pair import Pair, loaded
from tracer import jit, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import digits, generation
from tracer.examples.generation import BATCH, LEVELS, RATE, Diffusion


class TorchDiffusion(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.label, self.level = nn.Embedding(10, 64), nn.Embedding(LEVELS, 64)
        self.inward, self.outward = nn.Linear(64 + 64 + 64, 256), nn.Linear(256, 64)
        self.middle = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)) for _ in range(2)
        )

    def forward(self, x: torch.Tensor, labels: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        h = self.inward(torch.cat([x, self.label(labels), self.level(level)], dim=-1))
        for layer in self.middle:
            h = h + layer(h)
        return self.outward(h)


def torch_error(model: TorchDiffusion, x: Any, labels: Any, level: Any, noise: Any) -> torch.Tensor:
    signal = torch.from_numpy(np.array(generation.SIGNAL))[level][:, None]
    noisy = signal * (2 * x - 1) + torch.sqrt(1 - signal**2) * noise
    return ((model(noisy, labels, level) - noise) ** 2).mean()


def pair() -> Pair:
    torch.manual_seed(0)
    torch_model = TorchDiffusion()
    inside = {"0": "layers.0", "1": "layers.1.layers.0", "3": "layers.1.layers.1"}
    parts = {f"middle.{n}.{theirs}": f"middle.{n}.{ours}" for n in range(2) for theirs, ours in inside.items()}
    model = loaded(Diffusion(key=random.key(0)), torch_model, parts)
    tx = optim.adam(RATE)

    @jit(donate_argnums=(0, 1))
    def step(model: Diffusion, opt: Any, *batch: Any) -> tuple[Diffusion, Any, Any]:
        value, slopes = value_and_grad(Diffusion.error)(model, *batch)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), model), tx.init(model)]

    def ours(*batch: Any) -> float:
        run[0], run[1], value = step(*run, *batch)
        return float(value)

    adam = torch.optim.Adam(torch_model.parameters(), RATE)

    def theirs(*batch: Any) -> float:
        value = torch_error(torch_model, *map(torch.from_numpy, batch))
        adam.zero_grad()
        value.backward()
        adam.step()
        return value.item()

    rng, images = np.random.default_rng(0), digits.split().train
    batches = []
    for rows in rng.integers(0, len(images.labels), (20, BATCH)):
        noise = rng.standard_normal((BATCH, 64)).astype(np.float32)
        batches.append((images.images[rows], images.labels[rows], rng.integers(0, LEVELS, BATCH), noise))
    own = [Diffusion.__init__, Diffusion.__call__, Diffusion.error]
    return Pair(ours, theirs, batches, ([*own, step, ours], [TorchDiffusion, torch_error, theirs]))


PAIRS = {"generation, diffusion": pair}
