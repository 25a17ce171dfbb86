"""A network of infinite depth: one layer, repeated until its state stands still, classifies handwritten digits.

The number of iterations is known only at run time, and gradients go back through all of them. The `while_loop` needs no
rule of one's own, and no solver for the gradient. Bai, Kolter & Koltun 2019, arXiv:1909.01377. The state is sure to
come to rest, since an iteration brings any two states closer: El Ghaoui et al. 2021, SIAM J. Math. Data Sci. 3(3).
`python -m tracer.examples.equilibrium` runs it.
"""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import tracer.numpy as tnp
from tracer import data, jit, lax, nn, optim, random, value_and_grad
from tracer.examples import digits

BATCH, RATE, STEPS = 64, 3e-3, 880
TOLERANCE, SHRINKING = 1e-4, 0.9  # of the state when it stands still; by which factor an iteration shrinks distances


class Equilibrium(nn.Module):
    """The state z with z = tanh(W z + U x + b): float32 [batch, n] to [batch, m]."""

    def __init__(self, n: int, m: int, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.inward, self.again = nn.Linear(n, m, key=next(keys)), nn.Linear(m, m, bias=False, key=next(keys))

    def weight(self) -> Any:
        """Return W, made of rows whose absolute values sum up to 0.9 at most: float [m, m]."""
        w = self.again.weight
        return w * tnp.minimum(SHRINKING / tnp.abs(w).sum(axis=1, keepdims=True), 1.0)

    def settled(self, x: Any) -> tuple[Any, Any]:
        """Return the state at rest, and the number of iterations to it, an integer."""
        w, drive = self.weight(), self.inward(x)

        def once(run: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            z, _, iterations = run
            new = tnp.tanh(z @ w.T + drive)
            return new, tnp.abs(new - z).max(), iterations + 1

        start = tnp.zeros_like(drive), tnp.asarray(tnp.inf, drive.dtype), 0
        z, _, iterations = lax.while_loop(lambda run: run[1] > TOLERANCE, once, start)
        return z, iterations

    def __call__(self, x: Any) -> Any:
        return self.settled(x)[0]


class Network(nn.Module):
    """An equilibrium of 96 numbers and the logits of ten digits: float32 [batch, 64] to [batch, 10]."""

    def __init__(self, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.body, self.head = Equilibrium(64, 96, key=next(keys)), nn.Linear(96, 10, key=next(keys))

    def __call__(self, x: Any) -> Any:
        return self.head(self.body(x))


def loss(model: Network, x: Any, y: Any) -> Any:
    """Return the mean cross-entropy of a batch."""
    return nn.cross_entropy(model(x), y).mean()


@jit
def accuracy(model: Network, x: Any, y: Any) -> Any:
    """Return the share of images whose digit is the likeliest one."""
    return (model(x).argmax(-1) == y).mean()


def train(key: Any, *, steps: int = STEPS) -> tuple[Network, list[float]]:
    """Return the network after `steps` batches of 64 digits, and the loss of each."""
    of_model, of_order = random.split(key)
    tx = optim.adamw(optim.cosine_decay_schedule(RATE, steps), weight_decay=0.01, mask="matrices")

    @jit(donate_argnums=(0, 1))
    def step(model: Network, opt: Any, x: Any, y: Any) -> tuple[Network, Any, Any]:
        value, slopes = value_and_grad(loss)(model, x, y)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    model = Network(key=of_model)
    opt, losses = tx.init(model), []
    for x, y in islice(data.Loader(tuple(digits.split().train), BATCH, key=of_order), steps):
        model, opt, value = step(model, opt, x, y)
        losses.append(float(value))
    return model, losses


def main(*, steps: int = STEPS, seed: int = 0) -> None:
    """Train the network, and print how many iterations it takes and how many images it gets right."""
    x, y = digits.split().held_out
    before = Network(key=random.split(random.key(seed))[0]).body.settled(x)[1]
    model, losses = train(random.key(seed), steps=steps)
    print(f"loss {losses[0]:.3f} → {sum(losses[-22:]) / len(losses[-22:]):.3f}")
    print(f"iterations until the state stands still: {before} → {model.body.settled(x)[1]}")
    print(f"held out: {float(accuracy(model, x, y)):.2%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a deep equilibrium model on handwritten digits.")
    parser.add_argument("--steps", type=int, default=STEPS, help="batches of 64 digits")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
