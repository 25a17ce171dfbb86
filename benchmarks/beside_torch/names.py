"""Names by a GRU: rows of one length, whose padding the loss ignores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from beside_torch.pair import Pair, loaded
from tracer import optim, random
from tracer.examples import characters, names

GRU_NAMES = {f"{name}_l0": f"cells.0.{name}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}


class Namer(nn.Module):
    def __init__(self, hidden: int = names.HIDDEN) -> None:
        super().__init__()
        kinds = len(names.ALPHABET)
        self.embed, self.gru = nn.Embedding(kinds, hidden), nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, kinds)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        y, _ = self.gru(self.embed(tokens))
        return self.head(y)


def step(model: nn.Module, tx: Any, rows: torch.Tensor) -> float:
    logits = model(rows[:, :-1].clamp(min=0))
    value = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=names.PADDING)
    tx.zero_grad()
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    tx.step()
    return value.item()


def pair() -> Pair:
    torch.manual_seed(0)
    theirs = Namer()
    ours = loaded(names.Namer(key=random.key(0)), theirs, GRU_NAMES)
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(names.RATE))
    compiled, torch_tx = characters.stepper(names.loss, tx), torch.optim.Adam(theirs.parameters(), lr=names.RATE)
    state = {"ours": (ours, tx.init(ours))}

    def our_step(rows: Any) -> float:
        model, opt, value = compiled(*state["ours"], rows)
        state["ours"] = model, opt
        return float(value)

    def their_step(rows: Any) -> float:
        return step(theirs, torch_tx, torch.from_numpy(rows.astype(np.int64)))

    rows = names.encode(names.load())
    batches = [(rows[chosen],) for chosen in np.random.default_rng(0).integers(0, len(rows), (20, names.BATCH))]
    return Pair(our_step, their_step, batches, ([names.Namer, names.loss, characters.stepper], [Namer, step]))


PAIRS = {"names, GRU 256": pair}
