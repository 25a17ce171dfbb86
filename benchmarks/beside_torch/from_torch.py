"""A step of the transformer of `tracer.examples.from_torch`, whose weights come from PyTorch's own layers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from beside_torch.pair import Pair
from tracer import jit, nn, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import from_torch
from tracer.examples.from_torch import CLASSES, DEPTH, DIM, HEADS, HIDDEN, TOKENS, Reader
from tracer.io import safetensors

RATE = 1e-3


class TorchReader(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.embed, self.head = nn.Embedding(TOKENS, DIM), nn.Linear(DIM, CLASSES)
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, batch_first=True) for _ in range(DEPTH))
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embed(tokens)).mean(dim=1))


def loss(model: Reader, tokens: Any, labels: Any) -> Any:
    return nn.cross_entropy(model(tokens), labels).mean()


def pair() -> Pair:
    torch.manual_seed(0)
    torch_model = TorchReader()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        safetensors.write(file, {name: array.numpy() for name, array in torch_model.state_dict().items()}, {})
        model = from_torch.load(file, Reader(key=random.key(0)))
    tx = optim.adam(RATE)

    @jit(donate_argnums=(0, 1))
    def step(model: Reader, opt: Any, tokens: Any, labels: Any) -> tuple[Reader, Any, Any]:
        value, slopes = value_and_grad(loss)(model, tokens, labels)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), model), tx.init(model)]

    def ours(tokens: Any, labels: Any) -> float:
        run[0], run[1], value = step(*run, tokens, labels)
        return float(value)

    adam = torch.optim.Adam(torch_model.parameters(), RATE)

    def theirs(tokens: Any, labels: Any) -> float:
        value = functional.cross_entropy(torch_model(torch.from_numpy(tokens)), torch.from_numpy(labels))
        adam.zero_grad()
        value.backward()
        adam.step()
        return value.item()

    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, TOKENS, (32, 16)), rng.integers(0, CLASSES, 32)) for _ in range(20)]
    return Pair(ours, theirs, batches, ([Reader, loss, step, ours], [TorchReader, theirs]))


PAIRS = {"from_torch, encoder 2×32": pair}
