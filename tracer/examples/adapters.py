"""A language model tuned by low-rank adapters: it learns prose, and then, with all its weights frozen, program code.

Prose is the documentation that Python ships, code is modules of its standard library. `nn.at(...).map(...)` puts an
adapter onto every linear layer; they are trained, and merged into the weights: Hu et al. 2021, arXiv:2106.09685.
`python -m tracer.examples.adapters` runs it.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from itertools import islice
from math import log
from pathlib import Path
from pydoc_data import topics
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracer import data, jit, nn, optim, random, value_and_grad

LETTERS, LENGTH, BATCH, RANK = 128, 64, 16, 4  # ASCII; characters of a window; windows of a batch; rank of adapters
STEPS, RATE = 1500, 3e-3
MODULES = "argparse", "ast", "calendar", "difflib", "inspect", "pathlib", "pickle", "statistics", "tarfile", "typing"


class Writer(nn.Module):
    """A transformer that predicts the next letter: integers [b, t] to logits float32 [b, t, 128]."""

    def __init__(self, dim: int = 64, heads: int = 4, depth: int = 2, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.embed = nn.Embedding(LETTERS, dim, scale=0.02, key=next(keys))
        self.blocks = [nn.TransformerBlock(dim, heads, rope=1e4, key=next(keys)) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim)

    def __call__(self, letters: Any) -> Any:
        x = self.embed(letters)
        for block in self.blocks:
            x = block(x, causal=True)
        return self.embed.attend(self.norm(x))


class Text(NamedTuple):
    """The numbers of letters, uint8 [n]: nine tenths to learn from, and the last one to test on."""

    learnt: NDArray[np.uint8]
    held_out: NDArray[np.uint8]


def prose() -> Text:
    """Return the documentation of Python's keywords, operators and types."""
    return letters("\n".join(text for _, text in sorted(topics.topics.items())))


def code() -> Text:
    """Return the source of ten modules of the standard library."""
    files = [Path(str(getattr(find_spec(name), "origin", None))) for name in MODULES]
    return letters("\n".join(file.read_text(encoding="utf-8") for file in files))


def letters(text: str) -> Text:
    """Return a text as numbers, with ? for letters that are not ASCII."""
    return Text(*np.split(np.frombuffer(text.encode("ascii", "replace"), np.uint8), [-(len(text) // 10)]))


@jit
def loss(model: Writer, windows: Any) -> Any:
    """Return the mean cross-entropy of the letters after the first in windows [b, t], in nats."""
    return nn.cross_entropy(model(windows[:, :-1]), windows[:, 1:]).mean()


def trained(model: Any, text: Text, *, steps: int, rate: float, key: Any) -> Any:
    """Return the model after `steps` batches of windows of a text. Frozen weights stay, and cost no gradient."""
    tx = optim.adamw(optim.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps), mask="matrices")

    @jit(donate_argnums=1)
    def step(model: Any, opt: Any, windows: Any) -> tuple[Any, Any]:
        _, slopes = value_and_grad(loss)(model, windows)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt

    opt = tx.init(model)
    for windows in islice(data.Loader(data.Windows(text.learnt, LENGTH + 1), BATCH, key=key), steps):
        model, opt = step(model, opt, windows)
    return model


def adapted(model: Writer, rank: int, *, key: Any) -> Writer:
    """Return the model with all that it has frozen, and an adapter on every linear layer."""
    keys = nn.Keys(key)
    frozen = nn.at(model, "**").freeze()
    result: Writer = nn.at(frozen, nn.Linear).map(lambda linear: nn.LoRA(linear, rank, key=next(keys)))
    return result


def merged(model: Writer) -> Writer:
    """Return a model of plain linear layers that computes the adapted model's results."""
    result: Writer = nn.at(model, nn.LoRA).map(nn.LoRA.merged)
    return result


def bits(model: Writer, text: Text, windows: int = 400) -> float:
    """Return the mean bits of a letter that the model has not seen."""
    starts = np.arange(min(windows, (len(text.held_out) - 1) // LENGTH))
    return float(loss(model, data.Windows(text.held_out, LENGTH + 1, stride=LENGTH)[starts])) / log(2.0)


def main(*, steps: int = STEPS, seed: int = 0) -> float:
    """Train on prose, tune for code by adapters and by all weights, print bits of a letter, return the adapters'."""
    of_model, of_prose, of_adapters, of_code = random.split(random.key(seed), 4)
    base = trained(Writer(key=of_model), prose(), steps=steps, rate=RATE, key=of_prose)
    tuned = trained(adapted(base, RANK, key=of_adapters), code(), steps=steps // 2, rate=3 * RATE, key=of_code)
    whole = trained(base, code(), steps=steps // 2, rate=RATE, key=of_code)
    print(f"{'bits of a letter':<17} {'trained':>8} {'prose':>6} {'code':>6}")
    for name, model, count in (
        ("base", base, nn.count(base)),
        ("adapters", merged(tuned), nn.count(tuned)),
        ("all weights", whole, nn.count(whole)),
    ):
        print(f"{name:<17} {count:>8,} {bits(model, prose()):>6.3f} {bits(model, code()):>6.3f}")
    return bits(merged(tuned), code())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="batches of prose; half as many of code")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
