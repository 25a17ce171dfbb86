"""Train a small network on handwritten digits, convolutional or not: it stops early, saves, and goes on where it was.

`python -m tracer.examples.training FOLDER` runs it. Killed at any step and started again, it ends with the same bits.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import tracer
import tracer.numpy as tnp
from tracer import data, io, jit, logs, nn, optim, random, value_and_grad
from tracer.examples import digits

BATCH, EPOCHS, RATE, PATIENCE = 64, 12, 2e-3, 5


class Network(nn.Module):
    """Two convolutions with batch norms and pooling, and one linear layer: float32 [b, 1, 8, 8] to [b, 10]."""

    def __init__(self, *, dropout: float = 0.25, key: Any) -> None:
        keys = nn.Keys(key)
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1, key=next(keys)), nn.BatchNorm(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1, key=next(keys)), nn.BatchNorm(64)
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(64 * 4, 10, key=next(keys))

    def __call__(self, x: Any) -> Any:
        x = nn.max_pool(nn.relu(self.norm1(self.conv1(x))), 2)
        x = nn.max_pool(nn.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.drop(x.reshape(len(x), -1)))


class Perceptron(nn.Module):
    """One hidden layer: float32 [b, 1, 8, 8] to [b, 10]."""

    def __init__(self, *, key: Any) -> None:
        self.layers = nn.MLP([64, 128, 10], key=key)

    def __call__(self, x: Any) -> Any:
        return self.layers(x.reshape(len(x), -1))


MODELS: dict[str, Callable[..., nn.Module]] = {"cnn": Network, "mlp": Perceptron}


class Run(NamedTuple):
    """State of a run: all that a restart needs but the position in the data."""

    model: Any
    opt: Any
    key: Any
    step: Any


def as_images(part: digits.Digits) -> tuple[Any, Any]:
    """Return images [n, 1, 8, 8] and labels [n]."""
    return part.images.reshape(-1, 1, 8, 8), part.labels


def loss(model: Any, x: Any, y: Any, key: Any) -> tuple[Any, Any]:
    """Return the mean cross-entropy of a batch, and the model with new running statistics."""
    model = model.training(key)
    return nn.cross_entropy(model(x), y).mean(), model.inference()


@jit
def accuracy(model: Any, x: Any, y: Any) -> Any:
    """Return the share of images whose digit is the most likely one."""
    return (model(x).argmax(-1) == y).mean()


def stepper(tx: optim.GradientTransformation) -> Callable[..., Any]:
    """Return a compiled step of training with the optimiser `tx`."""

    @jit(donate_argnums=0)
    def step(run: Run, x: Any, y: Any) -> tuple[Run, Any]:
        key = random.fold_in(run.key, run.step)
        (value, model), slopes = value_and_grad(loss, has_aux=True)(run.model, x, y, key)
        updates, opt = tx.update(slopes, run.opt, model)
        return Run(optim.apply_updates(model, updates), opt, run.key, run.step + 1), value

    return step


def train(
    folder: str, *, model: str = "cnn", epochs: int = EPOCHS, patience: int = PATIENCE, stop_at: int | None = None,
    seed: int = 0,
) -> tuple[Run, float]:  # fmt: skip
    """Return the state after training, and the best accuracy on held-out images.

    folder: where it saves, and goes on from; model: of `MODELS`; patience: epochs without a better accuracy
    after which it ends; stop_at: leaves after this step.
    """
    parts = digits.split()
    of_data, of_model, of_steps = random.split(random.key(seed), 3)
    loader = data.Loader(as_images(parts.train), BATCH, key=of_data, epochs=epochs)
    tx = optim.adamw(optim.cosine_decay_schedule(RATE, epochs * len(loader)), weight_decay=0.05, mask="matrices")
    step = stepper(tx)

    def start() -> Run:
        first = MODELS[model](key=of_model)
        return Run(first, tx.init(first), of_steps, tnp.asarray(0))

    saves, log = io.Checkpoints(folder, keep=2), logs.Log(folder)
    abstract = {"run": tracer.eval_shape(start), "loader": loader.state, "best": 0.0, "since": 0}
    found = saves.restore(abstract) or {**abstract, "run": start()}
    run, best, since = found["run"], found["best"], found["since"]
    loader.seek(found["loader"])
    for x, y in logs.progress(loader, epochs * len(loader)):
        if since == patience:  # here, so that a run that has stopped stays as it is when it is started again
            break
        run, value = step(run, x, y)
        log.add(loss=value)
        if loader.state["batch"] == 0:  # an epoch is over
            got = float(accuracy(run.model, *as_images(parts.held_out)))
            best, since = (got, 0) if got > best else (best, since + 1)
            log.write(run.step, accuracy=got, rate=optim.rate(run.opt))
            state = {"run": run, "loader": loader.state, "best": best, "since": since}
            saves.save(int(run.step), state, accuracy=got)
        if stop_at is not None and int(run.step) >= stop_at:
            break
    saves.wait()
    return run, best


def main(
    *, folder: str | None = None, model: str = "cnn", steps: int | None = None, seed: int = 0, epochs: int = EPOCHS
) -> float:
    """Train, print and return the best accuracy on held-out images."""
    with tempfile.TemporaryDirectory() as other:
        _, best = train(folder or other, model=model, epochs=epochs, stop_at=steps, seed=seed)
    print(f"{model}, held out: {best:.2%}")
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="where to save; without it nothing is kept")
    parser.add_argument("--model", choices=sorted(MODELS), default="cnn")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--steps", type=int, help="leave after this step; started again, training goes on")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
