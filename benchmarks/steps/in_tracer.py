"""Training steps in tracer, and what else training asks of the library: calls of modules, epochs, loading."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from steps import shapes
from tracer import data, lax, nn, optim, random
from tracer.examples import characters, digits, training

Run = Callable[[], Any]


def step(row: str, peer: str) -> Run:
    """Make the step of a row."""
    if row.startswith("AdamW"):
        return _update(shapes(row))
    name = row.split()[0].lower()
    return _text(name) if name in characters.MODELS else _images(name)


def _images(name: str) -> Run:
    rng = np.random.default_rng(0)
    tx, model = optim.adamw(2e-3, weight_decay=0.05, mask="matrices"), _model(name)
    x, y = rng.standard_normal((64, 1, 8, 8), "float32"), rng.integers(0, 10, 64)
    compiled, state = training.stepper(tx), [training.Run(model, tx.init(model), random.key(2), tnp.asarray(0))]

    def run() -> None:
        state[0], value = compiled(state[0], x, y)
        float(value)

    return run


def _model(name: str) -> Any:
    """Return a model of images; without dropout, of which PyTorch and JAX would draw other numbers."""
    key = random.key(0)
    return training.Network(dropout=0.0, key=key) if name == "cnn" else training.Perceptron(key=key)


def _text(name: str) -> Run:
    tx, model = characters.optimiser(name, 3000), characters.MODELS[name](103, key=random.key(0))
    compiled, state = characters.stepper(characters.loss, tx), [model, tx.init(model)]
    windows = np.random.default_rng(0).integers(0, 103, (16, 65))

    def run() -> None:
        state[0], state[1], value = compiled(*state, windows)
        float(value)

    return run


def _update(sizes: list[tuple[int, ...]]) -> Run:
    rng, tx = np.random.default_rng(0), optim.adamw(1e-3)
    params = [tnp.asarray(rng.standard_normal(shape, "float32")) for shape in sizes]
    grads = [tnp.asarray(rng.standard_normal(shape, "float32")) for shape in sizes]

    @tracer.jit(donate_argnums=(0, 1))
    def step(params: Any, opt: Any, grads: Any) -> Any:
        updates, opt = tx.update(grads, opt, params)
        return optim.apply_updates(params, updates), opt

    state = [params, tx.init(params)]

    def run() -> None:
        state[:] = step(*state, grads)

    return run


# -- ratios within the library -----------------------------------------------------------------------------------


def least(*runs: Run, rounds: int = 7, clock: Callable[[], float] = time.process_time) -> list[float]:
    """The least time of each in alternating rounds of some calls."""
    counts = []
    for run in runs:
        run()
        begun, n = time.perf_counter(), 0
        while time.perf_counter() - begun < 0.05:
            run()
            n += 1
        counts.append(n)
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, count, found in zip(runs, counts, times, strict=True):
            begun = clock()
            for _ in range(count):
                run()
            found.append((clock() - begun) / count)
    return [min(found) for found in times]


def _module_calls() -> tuple[float, float]:

    layers = [nn.Linear(4, 4, key=key) for key in random.split(random.key(0), 75)]
    model = nn.Sequential(*layers)
    arrays = nn.paths(model)
    assert len(arrays) == 150
    change = tracer.jit(lambda tree: tracer.tree.map(lambda x: x + tnp.float32(1), tree))
    return tuple(least(lambda: change(model), lambda: change(arrays)))  # type: ignore[return-value]


def _epoch() -> tuple[float, float]:

    x, y = (tnp.asarray(a) for a in training.as_images(digits.split().train))
    order = np.random.default_rng(0).permutation(len(x))[: len(x) // 64 * 64].reshape(-1, 64).astype("int32")
    tx, model = optim.adamw(2e-3), training.Perceptron(key=random.key(0))
    first = training.Run(model, tx.init(model), random.key(2), tnp.asarray(0))
    step = training.stepper(tx)
    one = tracer.jit(step.__wrapped__)
    images, labels = np.asarray(x), np.asarray(y)

    def loop() -> None:
        run = first
        for rows in order:
            run, _ = one(run, images[rows], labels[rows])

    scanned = tracer.jit(lambda run, order: lax.scan(lambda run, rows: step(run, x[rows], y[rows]), run, order))
    return tuple(least(loop, lambda: scanned(first, order)))  # type: ignore[return-value]


def _loading() -> tuple[float, float]:
    """Wall time of batches that a thread prepares during steps on one thread, and of the longer of both alone."""

    packed = [
        zlib.compress(np.random.default_rng(n).integers(0, 9, 1 << 18).astype("uint8").tobytes()) for n in range(16)
    ]
    unpack = lambda text: np.frombuffer(zlib.decompress(text), np.uint8)[: 1 << 16]  # noqa: E731
    weight = tnp.asarray(np.random.default_rng(0).standard_normal((256, 256)), "float32")
    step = tracer.jit(lambda x, w: ((x.reshape(-1, 256).astype("float32") @ w) ** 2).sum())
    loader = lambda prefetch: data.Loader(data.Rows(packed, lambda rows: np.stack([unpack(r) for r in rows])), 4,  # noqa: E731
                                          prefetch=prefetch, epochs=8)  # fmt: skip
    batch = next(iter(loader(0)))
    repeats = 6

    def load() -> None:
        for _ in loader(0):
            pass

    def train() -> None:
        for _ in range(32 * repeats):
            step(batch, weight).block_until_ready()

    def both() -> None:
        for x in loader(2):
            for _ in range(repeats):
                step(x, weight).block_until_ready()

    threads = tracer.config.threads
    tracer.config.update("threads", 1)
    together, loading, training = least(both, load, train, clock=time.perf_counter)
    tracer.config.update("threads", threads)
    return together, max(loading, training)


RATIOS: dict[str, Callable[[], tuple[float, float]]] = {
    "module of 150 arrays / dict": _module_calls,
    "loop / epoch as one scan": _epoch,
    "loading / longer of both": _loading,
}
"""Two times each, in seconds."""
