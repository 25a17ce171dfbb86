"""An ensemble of 50 networks that predict means and variances, as `folds.py` trains them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from beside_torch.folds import STEPS, cosine, stacked, train
from beside_torch.pair import Pair
from tracer import jit, random, vmap
from tracer import nn as our_nn
from tracer.examples import ensemble, folds, tables


def loss(found: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    mean, log_variance = found.unbind(-1)
    deviation = torch.exp(0.5 * log_variance)
    return (torch.log(deviation) + 0.5 * ((y - mean) / deviation) ** 2).mean()


def pair() -> Pair:
    torch.manual_seed(0)
    table = tables.load("diabetes")
    ones = np.ones(len(table.targets), np.float32)
    x = np.array(folds.scaled(table.features, ones))
    y = ((table.targets - table.targets.mean()) / table.targets.std()).astype("float32")
    theirs = [nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 2)) for _ in range(ensemble.MEMBERS)]
    ours = stacked(our_nn.MLP([10, 32, 2], activation=our_nn.tanh, key=random.key(0)), theirs)

    @jit
    def run(models: Any, x: Any, y: Any) -> Any:
        def one(model: Any) -> Any:
            return folds.trained(
                model, lambda model: ensemble.loss(model, x, y, ones), ensemble.optimiser(STEPS), STEPS
            )

        return vmap(one)(models)[1].mean(axis=0)

    def our_run() -> Any:
        return run(ours, x, y)

    def their_run() -> Any:
        rows = [torch.from_numpy(part).expand(len(theirs), *part.shape) for part in (x, y)]
        return train(theirs, loss, cosine, 1.0, *rows)

    lines = [ensemble.distribution, ensemble.loss, ensemble.optimiser, folds.trained], [loss, cosine, train]
    return Pair(our_run, their_run, None, lines)


PAIRS = {"ensemble, 50 MLPs in one": pair}
