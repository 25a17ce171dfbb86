"""Digits by other writers: the step of the convolutional network on images that were moved.

Gradients of the first step agree with float64's to rounding, in both libraries: 1e-7 of 0.1. A few are near 1e-8, where
Adam divides rounding by rounding, and a unit that flips spreads it. Over 20 steps from eight seeds, the losses in
float32 part by 6e-7 at most but for one or two seeds, by 1.7e-4 on one processor and 5.5e-4 on another. In
float64 they agree to 1e-14 from every seed. With a tenth of the rate, float32 agrees to 5e-7 from every seed: hence
three rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from beside_torch import training as digits
from beside_torch.pair import Pair, loaded
from tracer import nn, optim, random
from tracer.examples import training, writers

DECAY = 0.05


def pair(dtype: str, rate: float = writers.RATE) -> Pair:
    torch.manual_seed(0)
    theirs = digits.Network(dropout=0.0).to(getattr(torch, dtype))
    ours = loaded(nn.cast(training.Network(dropout=0.0, key=random.key(0)), dtype), theirs)
    tx, key = optim.adamw(rate, weight_decay=DECAY, mask="matrices"), random.key(1)
    state = {"ours": (ours, tx.init(ours))}
    compiled, torch_tx = writers.stepper(tx), digits.adamw(theirs, rate, DECAY)

    def our_step(x: Any, y: Any) -> float:
        model, opt, value = compiled(*state["ours"], x, y, key)
        state["ours"] = model, opt
        return float(value)

    def their_step(x: Any, y: Any) -> float:
        return digits.step(theirs, torch_tx, torch.from_numpy(x), torch.from_numpy(y))

    plain = digits.image_batches(writers.split().train)
    keys = random.split(key, len(plain))
    moved = [writers.moved(batch, key) for batch, key in zip(plain, keys, strict=True)]
    batches = [(np.array(x, dtype), np.array(y)) for x, y in moved]
    lines = [training.Network, training.loss, writers.stepper], [digits.Network, digits.adamw, digits.step]
    return Pair(our_step, their_step, batches, lines)


PAIRS = {
    "writers, CNN": partial(pair, "float32"),
    "writers, CNN, rate / 10": partial(pair, "float32", writers.RATE / 10),
    "writers, CNN, float64": partial(pair, "float64"),
}
