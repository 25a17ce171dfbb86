"""Fifty networks at once, five on each of ten folds: `vmap` in both libraries, `lax.scan` over steps in ours."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state

import tracer
from beside_torch.pair import Pair, loaded
from tracer import jit, random, vmap
from tracer import nn as our_nn
from tracer import numpy as tnp
from tracer.examples import folds, tables

SEEDS, STEPS = 5, 20
NAMES = {"0": "layers.0", "2": "layers.1"}


def loss(logits: torch.Tensor, y: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    return (nn.functional.cross_entropy(logits, y, reduction="none") * seen).sum() / seen.sum()


def train(
    models: list[nn.Module], loss: Callable[..., Any], rate: Any, decay: float, *batch: torch.Tensor
) -> list[Any]:
    """The mean losses before 20 steps of all networks, whose data are along the first axis of each tensor."""
    parameters, _ = stack_module_state(models)
    base = copy.deepcopy(models[0])

    def of_one(parameters: dict[str, torch.Tensor], x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return loss(functional_call(base, parameters, (x,)), *others)

    gradient = torch.vmap(grad_and_value(of_one))
    weights = [p for name, p in parameters.items() if name.endswith("weight")]
    biases = [p for name, p in parameters.items() if name.endswith("bias")]
    groups = [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}]
    tx = torch.optim.AdamW(groups, lr=rate(0))
    values = []
    for step in range(STEPS):
        for group in tx.param_groups:
            group["lr"] = rate(step)
        slopes, value = gradient(parameters, *batch)
        for name, p in parameters.items():
            p.grad = slopes[name]
        tx.step()
        values.append(value.mean())
    return values


def cosine(step: int) -> float:
    return 1e-2 * 0.5 * (1 + np.cos(np.pi * step / STEPS))


def stacked(model: Any, theirs: list[nn.Module]) -> Any:
    """Our models with the weights of theirs, along a first axis."""
    return tracer.tree.map(lambda *x: tnp.stack(x), *[loaded(model, other, NAMES) for other in theirs])


def cancer() -> Pair:
    torch.manual_seed(0)
    x, y = tables.load("breast_cancer")
    held_out = tables.folds(random.key(0), y)
    seen = (~held_out).astype("float32")
    scaled = np.array(vmap(folds.scaled, in_axes=(None, 0))(x, seen))
    theirs = [nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(SEEDS * len(seen))]
    ours = stacked(our_nn.MLP([30, 32, 2], key=random.key(0)), theirs)
    rows = [np.tile(part, (SEEDS, *[1] * (part.ndim - 1))) for part in (scaled, np.tile(y, (10, 1)), seen)]

    @jit
    def run(models: Any, x: Any, y: Any, seen: Any) -> Any:
        def one(model: Any, x: Any, y: Any, seen: Any) -> Any:
            return folds.trained(model, lambda model: folds.loss(model, x, y, seen), folds.optimiser(STEPS), STEPS)

        return vmap(one)(models, x, y, seen)[1].mean(axis=0)

    def our_run() -> Any:
        return run(ours, *rows)

    def their_run() -> Any:
        return train(theirs, loss, cosine, 0.1, *map(torch.from_numpy, rows))

    lines = [folds.loss, folds.optimiser, folds.trained], [loss, cosine, train]
    return Pair(our_run, their_run, None, lines)


PAIRS = {"folds, 50 MLPs in one": cancer}
