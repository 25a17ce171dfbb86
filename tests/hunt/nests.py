"""The hunt for nests of control flow that go wrong, beside Python's own `if` and `for`.

A nest maps a vector, or a number, to one of its shape. Nests of up to eight levels run eagerly, compiled, batched
and differentiated; those of up to hundreds of levels give the right numbers, or a NestingError.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.hunt.calls import Outcome
from tests.runtime.system import test_interrupts
from tracer import errors, lax

Body = Callable[[Any], Any]
Level = Callable[[random.Random, Body, bool], Body]  # the last: by Python's statements
LANES = np.array([0.5, -1.25])


def branch(rng: random.Random, body: Body, plain: bool) -> Body:
    bound = rng.uniform(-1, 1)
    other = lambda x: x * 0.5 - 0.1  # noqa: E731
    if plain:
        return lambda x: body(x) if np.sum(x) > bound else other(x)
    return lambda x: lax.cond(tnp.sum(x) > bound, body, other, x)


def choice(rng: random.Random, body: Body, plain: bool) -> Body:
    branches = [lambda x: -x, body, lambda x: x + 1.0]
    if plain:
        return lambda x: branches[int(np.clip(np.floor(np.sum(x)), 0, 2))](x)
    return lambda x: lax.switch(tnp.floor(tnp.sum(x)).astype("int32"), branches, x)


def counted(rng: random.Random, body: Body, plain: bool) -> Body:
    rounds = rng.choice((0, 1, 1, 2))
    if plain:
        return lambda x: repeated(body, x, rounds)
    if rng.random() < 0.5:
        return lambda x: lax.fori_loop(0, rounds, lambda i, y: body(y), x)
    return lambda x: lax.while_loop(lambda c: c[0] < rounds, lambda c: (c[0] + 1, body(c[1])), (0, x))[1]


def repeated(body: Body, x: Any, rounds: int) -> Any:
    for _ in range(rounds):
        x = body(x)
    return x


def scanned(rng: random.Random, body: Body, plain: bool) -> Body:
    rounds, back = rng.choice((0, 1, 2)), rng.random() < 0.5
    terms = np.arange(float(rounds)) / 4
    if not plain:

        def step(y: Any, t: Any) -> tuple[Any, Any]:
            return body(y + t), tnp.sum(y)

        def whole(x: Any) -> Any:
            last, sums = lax.scan(step, x, tnp.asarray(terms), reverse=back)
            return last + tnp.sum(sums) * 0.125

        return whole

    def loop(x: Any) -> Any:
        total = 0.0
        for t in terms[::-1] if back else terms:
            total += np.sum(x)
            x = body(x + t)
        return x + total * 0.125

    return loop


def mapped(rng: random.Random, body: Body, plain: bool) -> Body:
    if plain:
        return lambda x: sum(np.asarray(body(x * t)) for t in LANES)
    return lambda x: tnp.sum(tracer.vmap(lambda t: body(x * t))(tnp.asarray(LANES)), axis=0)


def wrapped(rng: random.Random, body: Body, plain: bool) -> Body:
    wrap = rng.choice((tracer.jit, tracer.checkpoint))
    return body if plain else wrap(body)


LEVELS: tuple[Level, ...] = (branch, choice, counted, scanned, mapped, wrapped)


def innermost(rng: random.Random, plain: bool) -> Body:
    n = np if plain else tnp
    return rng.choice((lambda x: x * 0.75 + 0.1, n.sin, lambda x: n.tanh(x) - 0.3))


def nest(seed: int, *, plain: bool) -> tuple[Body, Any, int]:
    """Return a nest, the vector or number that it takes, and its depth; loops and lanes of at most 64 rounds in all."""
    rng = random.Random(seed)
    depth = rng.choice((1, 2, 3, 4, 5, 6, 8, 8)) if rng.random() < 0.9 else rng.choice((30, 60, 120, 250, 400))
    body, busy = innermost(rng, plain), 0
    for _ in range(depth):
        level = rng.choice(LEVELS if busy < 5 else (branch, wrapped, choice))
        busy += level in (counted, scanned, mapped)
        own = rng.randrange(2**32)
        body = level(random.Random(own), body, plain)
    size = rng.choice((None, None, 1, 3, 0))
    return body, np.array(rng.uniform(-1, 1)) if size is None else np.linspace(-0.4, 0.9, size), depth


def findings(seed: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the nest that a seed gives."""
    (body, x, depth), (plain, *_) = nest(seed, plain=False), nest(seed, plain=True)
    size = f"depth {depth}, x {x.shape}"
    expected = Outcome(lambda: plain(x))
    ways: dict[str, Callable[[], Any]] = {"eager": lambda: body(tnp.asarray(x)), "jit": lambda: tracer.jit(body)(x)}
    slope = tracer.grad(lambda y: tnp.sum(body(y)))
    if depth <= 8:
        ways["vmap"] = lambda: tracer.vmap(body)(np.stack([x, x]))[1]
    for word, way in ways.items():
        found = Outcome(way)
        if isinstance(found.error, errors.NestingError) and depth > 8:
            continue
        if found.error is not None:
            yield f"{word} of a nest raises {type(found.error).__name__}", f"{size}: {found}"
        elif not np.allclose(found.values[0], expected.values[0], rtol=1e-7, atol=1e-9):
            yield f"{word} of a nest has other values", f"{size}: {found}, not {expected}"
    if depth <= 6 or seed % 4 == 0:
        yield from slopes(plain, slope, x, size)


def slopes(plain: Body, slope: Body, x: Any, size: str) -> Iterator[tuple[str, str]]:
    """Derivatives, or the errors that say why there is none: of a while_loop in reverse, of a deep nest."""
    found = [Outcome(lambda: slope(tnp.asarray(x))), Outcome(lambda: tracer.jit(slope)(x))]
    for word, one in zip(("eager", "jit"), found, strict=True):
        if one.error is not None and not isinstance(one.error, errors.NestingError | errors.NoRuleError):
            yield f"{word} gradient of a nest raises {type(one.error).__name__}", f"{size}: {one}"
    if all(one.error is None for one in found):
        if not np.allclose(found[0].values[0], found[1].values[0], rtol=1e-7, atol=1e-9):
            yield "gradients of a nest differ", f"{size}: {found[0]} {found[1]}"
        ends = [float(np.sum(plain(x + h))) for h in (1e-6, -1e-6)]
        if abs(ends[0] - ends[1] - 2e-6 * np.sum(found[0].values[0])) > 1e-8 * max(abs(ends[0]), 1.0):
            yield "gradient of a nest is no slope", f"{size}: {found[0]}, differences {(ends[0] - ends[1]) / 2e-6}"


def interrupted(seed: int) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with Ctrl-C in a long nest; one that is not heard at all is found as too slow."""
    body, size = test_interrupts.nest_of(random.Random(1000 + seed))
    x = np.full(size, 0.5) if size else np.float64(0.5)
    seconds = test_interrupts.seconds_until_heard(tracer.jit(body), x)
    if seconds > test_interrupts.HEARD:
        yield "Ctrl-C is heard late", f"after {seconds} s, vector of {size}"
