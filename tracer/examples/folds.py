"""Ten-fold cross-validation of a small network on three classic tables: all folds and seeds train in one program.

`fit` trains one network on all rows but a fold's; two `vmap`s make it a fit for every seed and fold. Rows are masked
instead of cut out, so folds need not have equal sizes. `python -m tracer.examples.folds` prints the accuracies.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import tracer.numpy as tnp
from tracer import jit, lax, nn, optim, random, value_and_grad, vmap
from tracer.examples import tables

HIDDEN, SEEDS, STEPS = 32, 5, 300
TABLES = ("breast_cancer", "wine", "iris")


def weighted_mean(x: Any, weights: Any) -> Any:
    """Return the mean along the first axis of x [n, ...] with weights [n]."""
    return tnp.tensordot(weights, x, 1) / weights.sum()


def scaled(x: Any, seen: Any) -> Any:
    """Return features [n, d] with mean 0 and deviation 1 over the rows that are seen.

    Nothing of unseen rows leaks.
    """
    centred = x - weighted_mean(x, seen)
    return centred / tnp.sqrt(weighted_mean(centred**2, seen))


def optimiser(steps: int) -> optim.GradientTransformation:
    """Return AdamW with a rate that falls to 0, and strong decay of weights, for tables are small."""
    return optim.adamw(optim.cosine_decay_schedule(1e-2, steps), weight_decay=0.1, mask="matrices")


def loss(model: nn.MLP, x: Any, y: Any, seen: Any) -> Any:
    """Return the mean cross-entropy over the rows that are seen."""
    return weighted_mean(nn.cross_entropy(model(x), y), seen)


def trained(model: nn.MLP, value: Callable[[nn.MLP], Any], tx: optim.GradientTransformation, steps: int) -> Any:
    """Return the model after some steps down the slope of `value`, and the value before each step, [steps]."""

    def step(state: Any, _: Any) -> Any:
        model, opt = state
        now, slopes = value_and_grad(value)(model)
        updates, opt = tx.update(slopes, opt, model)
        return (optim.apply_updates(model, updates), opt), now

    (model, _), values = lax.scan(step, (model, tx.init(model)), None, length=steps)
    return model, values


def fit(key: Any, x: Any, y: Any, held_out: Any, *, classes: int, steps: int) -> Any:
    """Return the accuracy on the rows that are held out, bool [n], of a network trained on all other rows."""
    seen = (~held_out).astype("float32")
    x = scaled(x, seen)
    model = nn.MLP([x.shape[1], HIDDEN, classes], key=key)
    model, _ = trained(model, lambda model: loss(model, x, y, seen), optimiser(steps), steps)
    return weighted_mean(nn.accuracy(model(x), y), held_out.astype("float32"))


@jit(static_argnames=("classes", "steps"))
def accuracies(keys: Any, x: Any, y: Any, held_out: Any, *, classes: int, steps: int) -> Any:
    """Return accuracies on held-out rows for all seeds and folds, [s, k], of keys [s] and folds, bool [k, n]."""

    def fit_one(key: Any, held_out: Any) -> Any:
        return fit(key, x, y, held_out, classes=classes, steps=steps)

    return vmap(vmap(fit_one, in_axes=(None, 0)), in_axes=(0, None))(keys, held_out)


def validate(name: str, *, steps: int = STEPS, seed: int = 0) -> Any:
    """Return accuracies [SEEDS, 10] for a table, of `SEEDS` initial networks on each of ten folds."""
    table, (of_folds, of_networks) = tables.load(name), random.split(random.key(seed))
    held_out = tables.folds(of_folds, table.targets)
    classes = int(table.targets.max()) + 1
    return accuracies(random.split(of_networks, SEEDS), *table, held_out, classes=classes, steps=steps)


def main(*, steps: int = STEPS, seed: int = 0) -> dict[str, float]:
    """Validate on all tables; print and return the mean accuracies."""
    reached = {}
    for name in TABLES:
        found = validate(name, steps=steps, seed=seed)
        reached[name] = float(found.mean())
        print(f"{name:<14} {reached[name]:.1%} ± {float(found.mean(axis=0).std()):.1%} over folds")
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
