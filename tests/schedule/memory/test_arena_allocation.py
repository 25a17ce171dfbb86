"""The arena: arrays share room where their times do not meet; one is written over another where that is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
from tests.schedule.running import staged
from tracer import lax
from tracer import numpy as tnp
from tracer.ir.loop import Block, Buffer, For, If, Invoke, Module, Space, While
from tracer.ir.loop.walk import accesses_of, blocks_of, statements_of
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import loops, schedule

RNG = np.random.default_rng(2)


def attention(q: Any, k: Any, v: Any) -> Any:
    return tracer.nn.softmax(q @ k.mT / 8.0, axis=-1) @ v


def products(x: Any) -> Any:
    return tnp.sin(x @ x) @ tnp.cos(x @ x.T) + x.sum(0) @ x


def looping(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        a = tnp.sin(c @ x) @ x
        b = lax.cond(row.sum() > 0, lambda: (a @ x) * row, lambda: (c @ x) @ x)
        return b / (1.0 + tnp.abs(b).max()), a.sum()

    return lax.scan(step, x, x)


def stepping(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, tnp.tanh(s[1] @ x) + s[1].T @ x), (0, x))[1]


SQUARE = RNG.normal(size=(40, 40))
PROGRAMS = [
    (attention, tuple(RNG.normal(size=(4, 32, 16)) for _ in range(3))),
    (products, (SQUARE,)),
    (looping, (SQUARE,)),
    (stepping, (SQUARE,)),
    (tracer.grad(lambda x: (looping(x)[0] ** 2).sum()), (SQUARE,)),
]


def module_of(function: Any, arguments: Any) -> Module:
    return schedule(optimize(staged(function, [np.asarray(a) for a in arguments]))).module


def arrays(block: Block) -> set[Buffer]:
    named = (b for s in statements_of(block) for b, _, _ in accesses_of(s))
    return {b for b in named if b.space is Space.ARENA}


def apart(a: Buffer, b: Buffer) -> bool:
    first, second = sorted((a, b), key=lambda buffer: buffer.offset)
    return first.offset + first.size * first.dtype.itemsize <= second.offset


def check(block: Block, outside: frozenset[Buffer]) -> None:
    """Arrays that are in use at one time lie apart: those that live around this block, in it, and in blocks within.

    An array lives in the innermost block that has all that name it.
    """
    uses: dict[Buffer, list[int]] = {}
    here: set[Buffer] = set()
    for number, s in enumerate(block.statements):
        within = [arrays(inner) for inner in blocks_of(s)]
        here |= {b for b, _, _ in accesses_of(s) if b.space is Space.ARENA}
        here |= {b for found in within for b in found if sum(b in other for other in within) > 1}
        for buffer in arrays(Block((s,))):
            uses.setdefault(buffer, []).append(number)
    here |= {b for b, at in uses.items() if len(at) > 1}
    for number, s in enumerate(block.statements):
        living = outside | {b for b in here - outside if min(uses[b]) <= number <= max(uses[b])}
        assert all(a == b or apart(a, b) for a in living for b in living), s
        for inner in blocks_of(s):
            check(inner, living)


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS)
def test_arrays_in_use_at_one_time_lie_apart(function: Any, arguments: Any) -> None:
    module = module_of(function, arguments)
    entry = next(f for f in module.functions if f.name == module.entry)
    assert any(isinstance(s, Invoke | For | If | While) for s in entry.body.statements)
    check(entry.body, frozenset())
    found = arrays(entry.body)
    assert max(b.offset + b.size * b.dtype.itemsize for b in found) <= module.arena


def test_room_is_used_again() -> None:
    arguments = (SQUARE,)
    plain = loops(optimize(staged(products, list(arguments)))).module
    assert module_of(products, arguments).arena < plain.arena


def test_a_softmax_is_written_over_the_scores() -> None:
    q, k, v = (RNG.normal(size=(2, 128, 64)) for _ in range(3))
    module = module_of(attention, (q, k, v))
    scores = 2 * 128 * 128 * 8
    assert module.arena < 2 * scores
    assert any("_over_" in f.name for f in module.functions)
    found = np.asarray(tracer.jit(attention)(q, k, v))
    weights = np.exp(q @ k.swapaxes(1, 2) / 8.0)
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-9)


def test_columns_are_transformed_over_the_rows() -> None:
    x = RNG.normal(size=(128, 96)) + 1j
    assert module_of(tnp.fft.fft2, (x,)).arena == 0
    assert module_of(lambda a: (tnp.fft.fft2(a), tnp.fft.fft(a)), (x,)).arena == 0
    odd = RNG.normal(size=(101, 96)) + 1j  # NumPy transforms these columns, from one array to another
    assert module_of(tnp.fft.fft2, (odd,)).arena == 16 * 101 * 96


@pytest.mark.parametrize("rows", [16, 33, 128])
def test_rows_that_read_their_neighbours_are_not_written_over(rows: int) -> None:
    """Each row of the second product's operand needs another row of the first."""

    def shifted(x: Any, y: Any) -> Any:
        scores = x @ y
        weights = tracer.nn.softmax(scores + tnp.roll(scores, 1, axis=0), axis=-1)
        return weights @ y.T

    x, y = RNG.normal(size=(rows, 32)), RNG.normal(size=(32, 200))
    scores = x @ y
    weights = np.exp(scores + np.roll(scores, 1, axis=0))
    expected = weights / weights.sum(-1, keepdims=True) @ y.T
    np.testing.assert_allclose(np.asarray(tracer.jit(shifted)(x, y)), expected, rtol=1e-9)


@pytest.mark.parametrize(("rows", "columns"), [(64, 256), (200, 37), (4096, 5), (20000, 3)])
def test_rows_of_every_length_may_be_written_over_others(rows: int, columns: int) -> None:
    def normalized(x: Any, y: Any) -> Any:
        scores = x @ y
        return tracer.nn.softmax(scores, axis=-1) @ y.T

    x, y = RNG.normal(size=(rows, 50)), RNG.normal(size=(50, columns))
    weights = np.exp(x @ y)
    expected = weights / weights.sum(-1, keepdims=True) @ y.T
    np.testing.assert_allclose(np.asarray(tracer.jit(normalized)(x, y)), expected, rtol=1e-8)


def test_a_result_is_computed_where_it_goes() -> None:
    """A product, and what is computed from its elements in turn, need no memory but the result's."""

    def layer(x: Any, y: Any, shift: Any) -> Any:
        return tnp.maximum(x @ y + shift, 0.0)

    x, y, shift = (RNG.normal(size=shape) for shape in ((128, 100), (100, 130), (130,)))
    assert module_of(layer, (x, y, shift)).arena == 0
    np.testing.assert_allclose(np.asarray(tracer.jit(layer)(x, y, shift)), np.maximum(x @ y + shift, 0), rtol=1e-9)


def test_results_that_read_their_neighbours_or_are_read_are_not_made_of_others() -> None:
    def steps(x: Any, y: Any) -> Any:
        made = x @ y
        shifted = made + tnp.roll(made, 1, axis=0)
        return shifted, tnp.exp(made), (shifted @ y) * 2.0 + shifted, made.T @ x

    x, y = RNG.normal(size=(100, 100)), RNG.normal(size=(100, 100))
    made = x @ y
    shifted = made + np.roll(made, 1, axis=0)
    expected = shifted, np.exp(made), (shifted @ y) * 2 + shifted, made.T @ x
    for found, known in zip(tracer.jit(steps)(x, y), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), known, rtol=1e-8)
