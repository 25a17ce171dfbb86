"""Ctrl-C in long loops of any nesting, and in long library calls: heard in a fraction of a second."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import THOROUGH
from tracer import config, grad, jit, lax, vmap
from tracer.runtime.system.long_calls import PATIENCE

DELAY = 0.05
HEARD = 8.0  # seconds of the processors: above any noise of a machine, below the shortest whole call's time

Nest = Callable[[Any], Any]


def seconds_until_heard(f: Callable[..., Any], *arguments: Any) -> float:
    """Return the processors' time from Ctrl-C to the end of a call of `f`, pressed once it is compiled and runs."""
    begun = time.monotonic()
    f.lower(*arguments).compile()  # type: ignore[attr-defined]
    compiling = time.monotonic() - begun  # the call compiles again, at most as long
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(DELAY + compiling, press)
    try:
        timer.start()  # a starved processor may get here after the press
        f(*arguments)
    except KeyboardInterrupt:
        return time.process_time() - pressed[0]
    finally:
        timer.cancel()
    pytest.fail("the call was over before it was interrupted")


def counted(rng: random.Random, length: int, body: Nest) -> Nest:
    return lambda x: lax.fori_loop(0, length, lambda i, y: body(y), x)


def counted_at_run_time(rng: random.Random, length: int, body: Nest) -> Nest:
    return lambda x: lax.fori_loop(0, length + (tnp.ravel(x)[0] > 1e30), lambda i, y: body(y), x)


def scanned(rng: random.Random, length: int, body: Nest) -> Nest:
    return lambda x: lax.scan(lambda y, _: (body(y), None), x, None, length=length)[0]


def conditional(rng: random.Random, length: int, body: Nest) -> Nest:
    def step(carry: Any) -> Any:
        return carry[0] + 1, body(carry[1])

    return lambda x: lax.while_loop(lambda carry: carry[0] < length, step, (0, x))[1]


def mapped(rng: random.Random, length: int, body: Nest) -> Nest:
    lanes = tnp.arange(8.0)
    return counted(rng, length, lambda y: y + tnp.sum(vmap(lambda t: body(y * t))(lanes), axis=0))


LOOPS = [counted, counted_at_run_time, scanned, conditional, mapped]


def branch(rng: random.Random, body: Nest) -> Nest:
    return lambda x: lax.cond(tnp.ravel(x)[0] > 0, body, lambda y: body(y + 1.0), x)


def innermost(rng: random.Random) -> Nest:
    return rng.choice(
        [lambda x: x * 0.999 + 0.001, tnp.sin, lambda x: tnp.sqrt(x * x + 1.0), lambda x: x / 1.001 + 1.0]
    )


def nest_of(rng: random.Random) -> tuple[Nest, int]:
    """Return loops in loops of 10^13 rounds in all, and the length of the vector that they compute on."""
    depth, size = rng.randint(1, 4), rng.choice([0, 0, 5, 100, 4096])
    left, nest = 10**13, innermost(rng)
    for level in range(depth):
        length = left if level == depth - 1 else max(int(left ** (rng.uniform(0.5, 1.5) / (depth - level))), 1)
        left = max(left // length, 1)
        if rng.random() < 0.3:
            nest = branch(rng, nest)
        nest = rng.choice(LOOPS if level < depth - 1 else LOOPS[:-1])(rng, length, nest)
    return nest, size


@pytest.mark.parametrize("seed", range(24 if THOROUGH else 12))
def test_every_nest_hears_ctrl_c(seed: int) -> None:
    nest, size = nest_of(random.Random(seed))
    x = np.full(size, 0.5) if size else np.float64(0.5)
    assert seconds_until_heard(jit(nest), x) < HEARD


def test_scans_in_scans_and_lanes_of_counted_loops_hear_ctrl_c() -> None:
    rng = random.Random(0)
    body = innermost(rng)
    million = 10**6
    nests: list[tuple[Nest, Any]] = [
        (counted(rng, million, counted(rng, million, body)), np.float64(0.5)),
        (scanned(rng, million, scanned(rng, million, body)), np.float64(0.5)),
        (vmap(counted(rng, 10**9, body)), np.full(4096, 0.5)),
        (vmap(counted(rng, million, counted(rng, 10**4, tnp.sin))), np.full((4096, 3), 0.5)),
        (lambda x: tnp.sum(tnp.sin(tnp.arange(10**12) * x)), np.float64(0.5)),
    ]
    for nest, x in nests:
        assert seconds_until_heard(jit(nest), x) < HEARD


def test_a_chain_of_loops_each_short_hears_ctrl_c() -> None:
    """No loop of the outer one's body is long, and all together are."""

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = lax.fori_loop(0, 10**6, lambda i, y: y * 0.999 + 0.001, x)
        return x

    assert seconds_until_heard(jit(lambda x: lax.fori_loop(0, 10**4, lambda i, y: chain(y), x)), np.float64(1)) < HEARD


def test_reverse_sweeps_hear_ctrl_c() -> None:
    def f(x: Any) -> Any:
        outer = lax.fori_loop(0, 10**5, lambda i, y: lax.fori_loop(0, 10**6, lambda j, z: tnp.sin(z), y), x)
        return outer * x

    with config.using(loop_memory=1 << 20):
        assert seconds_until_heard(jit(grad(f)), np.float64(1)) < HEARD


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "bfloat16"])
def test_long_products_hear_ctrl_c(dtype: str) -> None:
    """Zeros are multiplied as any other numbers, and take no memory until they are read."""
    n = 12000 if dtype == "float32" else 9000 if dtype == "float64" else 4000
    a = tnp.zeros((n, n), dtype)
    if dtype == "bfloat16":
        a = tnp.zeros((16384, 16384), dtype)
    assert seconds_until_heard(jit(tnp.matmul), a, a) < HEARD


@pytest.mark.parametrize("routine", [tnp.linalg.cholesky, tnp.linalg.inv, lambda a: tnp.linalg.solve(a, a)])
def test_long_factorizations_hear_ctrl_c(routine: Nest) -> None:
    a = np.eye(8000, dtype="float64")
    assert seconds_until_heard(jit(routine), a) < HEARD


def test_an_interrupted_product_leaves_the_next_one_right() -> None:
    f = jit(tnp.matmul)
    seconds_until_heard(f, np.zeros((8000, 8000)), np.zeros((8000, 8000)))
    a = np.arange(90_000.0).reshape(300, 300)
    np.testing.assert_array_equal(f(a, np.eye(300)), a)


def test_products_in_pieces_have_the_bits_of_one_call() -> None:
    """Rows of the result computed alone are too few to be divided."""
    rng = np.random.default_rng(0)
    for dtype, (m, n, k) in {
        "float32": (1500, 1500, 700),
        "float64": (800, 4200, 600),
        "complex64": (700, 700, 600),
    }.items():
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
        whole = np.asarray(jit(tnp.matmul)(a, b))
        np.testing.assert_array_equal(whole[: m // 8], jit(tnp.matmul)(a[: m // 8], b))
        np.testing.assert_allclose(whole, a @ b, rtol=0, atol=1e-3 if dtype in ("float32", "complex64") else 1e-10)


@pytest.mark.parametrize(("dtype", "size"), [("float64", 3600), ("complex64", 2400)])  # half a second on 2 cores
def test_long_products_outside_jit_hear_ctrl_c(dtype: str, size: int) -> None:
    a = tnp.zeros((size, size), dtype)
    timer = threading.Timer(DELAY, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        a @ a
    timer.join()
    b = tnp.eye(1100, dtype=dtype)
    np.testing.assert_array_equal(b @ b, np.eye(1100))


def test_errors_of_long_calls_outside_jit_are_those_of_short_ones() -> None:
    texts = []
    for n in (100, 1100):
        with pytest.raises(np.linalg.LinAlgError) as error:
            tnp.linalg.inv(tnp.zeros((n, n)))
        texts.append(str(error.value).replace(str(n), "n"))
    assert texts[0] == texts[1]
    assert "test_interrupts.py" in texts[0]


def test_short_loops_of_unknown_length_leave_ctrl_c_to_python() -> None:
    """Calls of `PATIENCE` steps and around it: none is stopped, on the main thread or another, and Ctrl-C is heard."""
    count = jit(lambda n: lax.while_loop(lambda s: s < n, lambda s: s + 1, 0))
    rounds = [0, 1, PATIENCE // 4, *range(PATIENCE // 3 - 3, PATIENCE // 3 + 3), PATIENCE, 10 * PATIENCE]
    found = [int(count(n)) for n in rounds]
    thread = threading.Thread(target=lambda: found.extend(int(count(n)) for n in rounds))
    thread.start()
    thread.join()
    assert found == rounds * 2
    assert seconds_until_heard(count, 2**62) < HEARD
    assert int(count(3)) == 3
