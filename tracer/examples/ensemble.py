"""Numbers with error bars: ensembles of 50 networks predict how diabetes goes on, and how far off they may be.

Each network gives a mean and a variance, and learns by the likelihood of a normal distribution; where the networks
disagree, the ensemble is less sure than any of them (Lakshminarayanan et al. 2017, arXiv:1612.01474). Ten folds of 50
networks are one program. `python -m tracer.examples.ensemble` prints how much is explained, and how often the truth
lies within the intervals. This is about as often as they say.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import tracer.numpy as tnp
from tracer import jit, nn, optim, random, vmap
from tracer.examples import tables
from tracer.examples.folds import scaled, trained, weighted_mean
from tracer.scipy.special import ndtr

HIDDEN, MEMBERS, STEPS = 32, 50, 100
LEVELS = (0.5, 0.8, 0.9, 0.95)


class Prediction(NamedTuple):
    """Normal distributions of targets: means and standard deviations, both of one shape."""

    mean: Any
    deviation: Any


def distribution(model: nn.MLP, x: Any) -> Prediction:
    """Return one network's prediction for features [n, d]: [n]."""
    mean, log_variance = tnp.moveaxis(model(x), -1, 0)
    return Prediction(mean, tnp.exp(0.5 * log_variance))


def loss(model: nn.MLP, x: Any, y: Any, seen: Any) -> Any:
    """Return minus the mean log-likelihood of targets [n] whose rows are seen, up to a constant."""
    found = distribution(model, x)
    return weighted_mean(tnp.log(found.deviation) + 0.5 * ((y - found.mean) / found.deviation) ** 2, seen)


def optimiser(steps: int) -> optim.GradientTransformation:
    """Return AdamW with a rate that falls to 0."""
    return optim.adamw(optim.cosine_decay_schedule(1e-2, steps), weight_decay=1.0, mask="matrices")


def fit(key: Any, x: Any, y: Any, seen: Any, *, steps: int) -> Prediction:
    """Return the predictions for all rows of a network that was trained on the rows that are seen."""
    model = nn.MLP([x.shape[1], HIDDEN, 2], activation=nn.tanh, key=key)
    model, _ = trained(model, lambda model: loss(model, x, y, seen), optimiser(steps), steps)
    return distribution(model, x)


def mixed(members: Prediction) -> Prediction:
    """Return mean and deviation of the equal mixture of members, [m, n] -> [n]."""
    mean = members.mean.mean(axis=0)
    return Prediction(mean, tnp.sqrt((members.deviation**2 + (members.mean - mean) ** 2).mean(axis=0)))


@jit(static_argnames="steps")
def predictions(keys: Any, x: Any, y: Any, held_out: Any, *, steps: int) -> Prediction:
    """Return for each row the prediction of an ensemble of keys [m] that has not seen it; folds: bool [k, n]."""

    def of_fold(held_out: Any) -> Prediction:
        seen = (~held_out).astype("float32")
        mean = weighted_mean(y, seen)
        deviation = tnp.sqrt(weighted_mean((y - mean) ** 2, seen))
        members = vmap(lambda key: fit(key, scaled(x, seen), (y - mean) / deviation, seen, steps=steps))(keys)
        found = mixed(members)
        return Prediction(mean + deviation * found.mean, deviation * found.deviation)

    found = vmap(of_fold)(held_out)
    return Prediction(*(tnp.where(held_out, values, 0).sum(axis=0) for values in found))


def coverage(found: Prediction, y: Any, levels: Any) -> Any:
    """Return how many of the targets [n] lie within the central intervals of these levels, as shares of 1."""
    place = tnp.abs(2 * ndtr((y - found.mean) / found.deviation) - 1)  # level of the interval that just holds it
    return (place[:, None] <= tnp.asarray(levels)).mean(axis=0)


def validate(*, steps: int = STEPS, seed: int = 0, members: int = MEMBERS) -> tuple[Prediction, Any]:
    """Return the predictions for held-out patients, and their targets: the progression within a year, 25 to 346."""
    table, (of_folds, of_networks) = tables.load("diabetes"), random.split(random.key(seed))
    held_out = tables.folds(of_folds, np.zeros(len(table.targets), int))
    y = table.targets.astype("float32")
    return predictions(random.split(of_networks, members), table.features, y, held_out, steps=steps), y


def main(*, steps: int = STEPS, seed: int = 0) -> dict[str, float]:
    """Validate; print and return the share of variance that is explained, and the coverage of intervals."""
    found, y = validate(steps=steps, seed=seed)
    reached = {"R²": float(nn.r2(found.mean, y))}
    reached |= {f"{level:.0%}": float(share) for level, share in zip(LEVELS, coverage(found, y, LEVELS), strict=True)}
    print(f"R² {reached['R²']:.3f}; within intervals of", *(f"{k}: {v:.1%}" for k, v in reached.items() if k != "R²"))
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
