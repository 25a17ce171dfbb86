"""Training of a two-layer network on handwritten digits with `jit` and `value_and_grad`, compared with NumPy.

The upper half is the program as a user writes it; the lower half trains, times and reports it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import tracer
import tracer.numpy as tnp
from tracer import jit, random, value_and_grad
from tracer.examples import digits

HIDDEN = 128
BATCH = 64
LEARNING_RATE = 0.2  # falls linearly to zero over the run
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
EPOCHS = 100

Parameters: TypeAlias = dict[str, tracer.Array]
NumpyParameters: TypeAlias = dict[str, NDArray[np.float32]]


def initial_parameters(key: tracer.Array) -> Parameters:
    """Return weights scaled by the square root of the number of inputs, and zero biases, all float32."""
    hidden_key, out_key = random.split(key)
    return {
        "hidden": random.normal(hidden_key, (digits.PIXELS, HIDDEN), dtype="float32") / digits.PIXELS**0.5,
        "hidden_bias": tnp.zeros(HIDDEN, dtype="float32"),
        "out": random.normal(out_key, (HIDDEN, digits.CLASSES), dtype="float32") / HIDDEN**0.5,
        "out_bias": tnp.zeros(digits.CLASSES, dtype="float32"),
    }


def scores(parameters: Parameters, images: tracer.Array) -> tracer.Array:
    """Return unnormalised log-probabilities of the ten digits: float32 [n, 64] to float32 [n, 10]."""
    hidden = tnp.maximum(images @ parameters["hidden"] + parameters["hidden_bias"], 0.0)
    return hidden @ parameters["out"] + parameters["out_bias"]


def loss(parameters: Parameters, images: tracer.Array, labels: tracer.Array) -> tracer.Array:
    """Return the mean cross-entropy in nats of the labels, int64 [n], given the images, float32 [n, 64]."""
    z = scores(parameters, images)
    z = z - tnp.max(z, axis=1, keepdims=True)
    log_normaliser = tnp.log(tnp.sum(tnp.exp(z), axis=1))
    return tnp.mean(log_normaliser - z[tnp.arange(len(labels)), labels])


@jit
def train_step(
    parameters: Parameters, velocity: Parameters, rate: float, images: tracer.Array, labels: tracer.Array
) -> tuple[Parameters, Parameters, tracer.Array]:
    """Take one step of gradient descent with momentum and weight decay; returns the loss before the step as well."""
    value, gradient = value_and_grad(loss)(parameters, images, labels)
    velocity = tracer.tree.map(
        lambda v, g, p: MOMENTUM * v - rate * (g + WEIGHT_DECAY * p), velocity, gradient, parameters
    )
    return tracer.tree.map(lambda p, v: p + v, parameters, velocity), velocity, value


@jit
def accuracy(parameters: Parameters, images: tracer.Array, labels: tracer.Array) -> tracer.Array:
    """Return the fraction of images whose highest score is at their label."""
    return tnp.mean(tnp.argmax(scores(parameters, images), axis=1) == labels)


def numpy_train_step(
    parameters: NumpyParameters,
    velocity: NumpyParameters,
    rate: float,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
) -> tuple[NumpyParameters, NumpyParameters, np.float32]:
    """Compute `train_step` in plain NumPy, with the gradient derived by hand."""
    count = len(labels)
    rows = np.arange(count)
    hidden = np.maximum(images @ parameters["hidden"] + parameters["hidden_bias"], 0)
    z = hidden @ parameters["out"] + parameters["out_bias"]
    z = z - np.max(z, axis=1, keepdims=True)
    exponentials = np.exp(z)
    normaliser = np.sum(exponentials, axis=1)
    value = np.mean(np.log(normaliser) - z[rows, labels])

    z_gradient = exponentials / normaliser[:, None]
    z_gradient[rows, labels] -= 1
    z_gradient /= count
    hidden_gradient = (z_gradient @ parameters["out"].T) * (hidden > 0)
    gradient = {
        "hidden": images.T @ hidden_gradient,
        "hidden_bias": np.sum(hidden_gradient, axis=0),
        "out": hidden.T @ z_gradient,
        "out_bias": np.sum(z_gradient, axis=0),
    }
    velocity = {
        name: MOMENTUM * velocity[name] - rate * (gradient[name] + WEIGHT_DECAY * parameters[name])
        for name in parameters
    }
    return {name: parameters[name] + velocity[name] for name in parameters}, velocity, value


def batches(data: digits.Digits, rng: np.random.Generator) -> Iterator[digits.Digits]:
    """Yield one epoch in random order, `BATCH` shifted images at a time; an incomplete last batch is dropped."""
    order = rng.permutation(len(data.labels))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield digits.Digits(shifted(data.images[chosen], rng), data.labels[chosen])


def shifted(images: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Shift about half of the images [n, 64] by at most a pixel along each axis, so the network learns strokes."""
    count = len(images)
    offsets = rng.integers(-1, 2, (count, 2)) * rng.integers(0, 2, (count, 1))
    padded = np.pad(images.reshape(count, 8, 8), ((0, 0), (1, 1), (1, 1)))
    rows = 1 + offsets[:, 0, None, None] + np.arange(8)[:, None]
    columns = 1 + offsets[:, 1, None, None] + np.arange(8)
    moved: NDArray[np.float32] = padded[np.arange(count)[:, None, None], rows, columns]
    return moved.reshape(count, digits.PIXELS)


@dataclass(frozen=True)
class Report:
    """Results of a run: accuracy on 0..1, losses in nats, times in seconds; of steps the least, on one thread."""

    accuracy: float
    losses: tuple[float, ...]  # the mean of each epoch
    first_step: float  # tracing, compiling and running
    step: float
    numpy_step: float
    program: str  # the IR of the loss


def run(*, epochs: int = EPOCHS, seed: int = 0, held_out: int = 360) -> Report:
    """Train for `epochs`, with a line of progress, and measure on the held-out digits."""
    data = digits.split(held_out)
    parameters = initial_parameters(random.key(seed))
    velocity = tracer.tree.map(tnp.zeros_like, parameters)
    rng = np.random.default_rng(seed)
    show = _progress(epochs)

    times: list[float] = []
    epoch_losses: list[float] = []
    for epoch in range(1, epochs + 1):
        rate = LEARNING_RATE * (1 - (epoch - 1) / epochs)
        step_losses: list[float] = []
        for images, labels in batches(data.train, rng):
            start = time.perf_counter()
            parameters, velocity, value = train_step(parameters, velocity, rate, images, labels)
            step_losses.append(float(value))
            times.append(time.perf_counter() - start)
        epoch_losses.append(float(np.mean(step_losses)))
        show(epoch, epoch_losses[-1])

    batch = next(batches(data.train, rng))
    step, numpy_step = _least_times_on_one_thread()
    return Report(
        accuracy=float(accuracy(parameters, *data.held_out)),
        losses=tuple(epoch_losses),
        first_step=times[0],
        step=step,
        numpy_step=numpy_step,
        program=str(tracer.make_program(loss)(parameters, *batch)),
    )


def few_steps(device: str, *, count: int = 5, seed: int = 0) -> list[float]:
    """Take some steps on a device, and return the losses before them."""
    losses = []
    with tracer.default_device(device):
        parameters = initial_parameters(random.key(seed))
        velocity = tracer.tree.map(tnp.zeros_like, parameters)
        for images, labels in islice(batches(digits.split().train, np.random.default_rng(seed)), count):
            parameters, velocity, value = train_step(parameters, velocity, LEARNING_RATE, images, labels)
            losses.append(float(value))
    return losses


def print_report(report: Report) -> None:
    """Print the report."""
    print(f"held-out accuracy: {100 * report.accuracy:.1f} %")
    print(f"compile: {1e3 * (report.first_step - report.step):.1f} ms (the first step, less one later step)")
    print(f"step: {1e6 * report.step:.0f} µs for {BATCH} images, loss and gradient and update, on one thread")
    print(f"step in plain NumPy: {1e6 * report.numpy_step:.0f} µs, on one thread, with the gradient derived by hand")
    print("(times of steps are the least of 300)")
    print(f"\nThe loss, as traced:\n{report.program}")


def _progress(epochs: int) -> Callable[[int, float], None]:
    """Show progress: one line rewritten on a terminal, else a line every tenth of the way."""
    start = time.perf_counter()
    terminal = sys.stdout.isatty()
    stride = max(1, epochs // 10)

    def show(epoch: int, value: float) -> None:
        last = epoch == epochs
        line = f"epoch {epoch:3d} of {epochs}   loss {value:.4f}   {time.perf_counter() - start:.1f} s"
        if terminal:
            print(f"\r{line}", end="\n" if last else "", flush=True)
        elif last or epoch % stride == 0:
            print(line, flush=True)

    return show


_ONE_THREAD = dict.fromkeys(
    ("TRACER_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""Variables that libraries read at their start. By luck of its threads, OpenBLAS takes 100 µs or 48,000 for a step."""


def least_times(repeats: int = 300) -> tuple[float, float]:
    """Return the least times in seconds of a step and of its twin in plain NumPy, run in turn."""
    parameters = initial_parameters(random.key(0))
    velocity = tracer.tree.map(tnp.zeros_like, parameters)
    by_hand = [{name: np.array(value) for name, value in tree.items()} for tree in (parameters, velocity)]
    batch = next(batches(digits.split().train, np.random.default_rng(0)))
    train_step(parameters, velocity, LEARNING_RATE, *batch)
    times: list[tuple[float, float]] = []
    for _ in range(repeats):
        start = time.perf_counter()
        train_step(parameters, velocity, LEARNING_RATE, *batch)
        between = time.perf_counter()
        numpy_train_step(by_hand[0], by_hand[1], LEARNING_RATE, *batch)
        times.append((between - start, time.perf_counter() - between))
    step, numpy_step = (min(column) for column in zip(*times, strict=True))
    return step, numpy_step


def _least_times_on_one_thread() -> tuple[float, float]:
    """Return `least_times` of a fresh process, in which every library has one thread."""
    command = [sys.executable, "-m", __name__]
    done = subprocess.run(command, env=os.environ | _ONE_THREAD, capture_output=True, text=True, check=True)
    step, numpy_step = map(float, done.stdout.split())
    return step, numpy_step


if __name__ == "__main__":
    print(*least_times())
