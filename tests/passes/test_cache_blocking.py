"""Chains of matrix products in blocks of rows: which are cut, and that they compute what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import lax, nn
from tracer.ir.check import check_program
from tracer.ir.program import Equation, Program
from tracer.ir.target import CPU, Blocks
from tracer.ir.visit import equations
from tracer.passes.cache_blocking import block_chains
from tracer.primitives.base.reference import run_reference
from tracer.runtime.compile.compile import compile_program
from tracer.trace.convert import as_array

HEADS, QUERIES, SIZE = 4, 64, 8
SHAPE = (HEADS, QUERIES, SIZE)


def values(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def optimized(f: Callable[..., Any], operands: list[Any]) -> Program:
    return tracer.jit(f).lower(*operands).optimized()


def cut(program: Program, block: int, least: int = 8_000) -> Program:
    return check_program(block_chains(program, replace(CPU, blocks=Blocks(chain_least=least, chain=block))))


def scans(program: Program) -> Iterator[Equation]:
    return (e for e in equations(program) if e.primitive.name == "scan")


def same(f: Callable[..., Any], operands: list[Any], block: int) -> list[int]:
    """The lengths of the scans that f is cut into, which computes what it did, compiled too."""
    lowered = tracer.jit(f).lower(*operands)
    inputs = [np.asarray(x) for x in (*lowered._traced.captured, *operands)]
    whole = lowered.optimized()
    blocked = cut(whole, block)
    expected = run_reference(whole, inputs)
    compiled = compile_program(blocked).call([as_array(x) for x in inputs])
    for found in (run_reference(blocked, inputs), compiled):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-10)  # sums that cancel, of thousands
    return [e.params["length"] for e in scans(blocked)]


def attention(q: Any, k: Any, v: Any) -> Any:
    return nn.softmax(q @ tnp.swapaxes(k, -1, -2) / 8.0, -1) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q @ tnp.swapaxes(k, -1, -2) + tnp.where(tnp.tri(QUERIES, dtype=bool), 0.0, -np.inf)
    return nn.softmax(scores, -1) @ v


def loss(q: Any, k: Any, v: Any) -> Any:
    return (attention(q, k, v) ** 2).sum()


def test_keys_are_turned_once_before_the_blocks_that_read_them() -> None:
    operands = values(SHAPE[1:], SHAPE[1:], SHAPE[1:])
    blocked = cut(optimized(attention, operands), 20_000)
    (scan,) = scans(blocked)
    assert "transpose" in {e.primitive.name for e in blocked.equations[: blocked.equations.index(scan)]}
    products = [e for e in equations(scan.params["body"]) if e.primitive.name == "dot_general"]
    assert [e.params["dimension_numbers"][0] for e in products] == [((1,), (0,))] * 2
    assert len(same(attention, operands, 20_000)) == 1


def test_attention_is_cut_by_heads_then_by_queries() -> None:
    operands = values(SHAPE, SHAPE, SHAPE)
    assert same(attention, operands, 140_000) == [2]
    assert same(attention, operands, 1 << 20) == []
    assert same(attention, operands, 70_000) == [4]
    assert same(attention, operands, 20_000) == [4, 4]


def test_a_mask_is_cut_too() -> None:
    assert same(causal, values(SHAPE, SHAPE, SHAPE), 20_000) == [4, 4]


def test_a_gradient_is_cut_by_heads() -> None:
    assert same(tracer.grad(loss, argnums=(0, 1, 2)), values(SHAPE, SHAPE, SHAPE), 20_000) == [4]


def test_a_matrix_is_cut_by_rows() -> None:
    def nearest(x: Any, centres: Any) -> Any:
        return tnp.argmin((centres**2).sum(1) - 2.0 * x @ centres.T, 1)

    def kernel(x: Any, centres: Any, weights: Any) -> Any:
        return tnp.exp(x @ centres.T) @ weights

    x, centres, weights = values((160, 3), (50, 3), (50, 2))
    assert same(nearest, [x, centres], 16_000) == [4]
    assert same(kernel, [x, centres, weights], 16_000) == [8]


def test_the_rows_of_a_product_are_sixteen_at_least() -> None:
    x, w = values((96, 3), (500, 2))
    lengths = same(lambda x, w: tnp.exp(x @ tnp.ones((3, 500))) @ w, [x, w], 6_000)
    assert lengths == [6]


@each(
    ("f", "shapes"),
    [
        (lambda x, w: (tnp.exp(x @ w), (tnp.exp(x @ w) @ w.T)), [(64, 3), (3, 80)]),
        (lambda x, w: tnp.cumsum(x @ w, 0) @ w.T, [(64, 3), (3, 80)]),
        (lambda x, w: (x @ w).T @ (x @ w), [(64, 3), (3, 80)]),
        (lambda x, w: tnp.exp(x @ w) @ w.T, [(61, 3), (3, 80)]),
        (lambda x, w: tnp.exp(x @ w) @ w.T, [(8, 3), (3, 800)]),
        (lambda x, w: tnp.exp(x @ w) @ w.T, [(64, 40), (40, 80)]),
    ],
    ids=["large results", "along rows", "across rows", "prime", "few rows", "large matrices"],
)
def test_what_is_not_cut(f: Any, shapes: list[tuple[int, ...]]) -> None:
    program = optimized(f, values(*shapes))
    assert cut(program, 4_000) is program


def test_small_chains_stay_whole() -> None:
    program = optimized(attention, values(SHAPE, SHAPE, SHAPE))
    assert block_chains(program) is program


def test_what_others_read_stays_outside() -> None:
    def f(q: Any, k: Any, v: Any, bias: Any) -> Any:
        spread = tnp.broadcast_to(bias, (HEADS, QUERIES, QUERIES))
        first = tnp.sin(spread).sum()
        weights = nn.softmax(q @ tnp.swapaxes(k, -1, -2) + spread + first, -1)
        return weights @ v, weights.max(-1), spread[0]

    assert same(f, values(SHAPE, SHAPE, SHAPE, (QUERIES,)), 20_000) == [4, 4]


def test_nested_programs_are_cut() -> None:
    def f(q: Any, k: Any, v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, x: attention(x, k, v), q)

    assert same(f, values(SHAPE, SHAPE, SHAPE), 70_000) == [3, 4]


def test_effects_stay_in_order() -> None:
    seen: list[str] = []

    def f(q: Any, k: Any, v: Any) -> Any:
        y = attention(q, k, v)
        tracer.debug.callback(lambda _: seen.append("after"), y[0, 0, 0])
        tracer.debug.callback(lambda _: seen.append("apart"), q[0, 0, 0])
        return y

    operands = values(SHAPE, SHAPE, SHAPE)
    compile_program(cut(optimized(f, operands), 70_000)).call([as_array(x) for x in operands])
    assert seen == ["after", "apart"]


def test_what_lies_between_is_not_in_memory() -> None:
    shape = tracer.ShapeDtypeStruct((8, 2048, 64), "float32")
    scores = 8 * 2048 * 2048 * 4
    forward, backward = (tracer.jit(f).lower(shape, shape, shape) for f in (attention, tracer.grad(loss)))
    assert forward.memory().arena < scores / 20
    assert backward.memory().arena < scores


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda y, x: tnp.exp(-(y**2)),
    "softmax": lambda y, x: nn.softmax(y, -1),
    "centre": lambda y, x: y - y.mean(-1, keepdims=True),
    "across": lambda y, x: y - y.mean(-2, keepdims=True),
    "mask": lambda y, x: tnp.where(tnp.arange(y.shape[-1]) % 2 == 0, y, 0.0),
    "transposed": lambda y, x: tnp.swapaxes(tnp.swapaxes(y, -1, -2) * 2.0, -1, -2),
    "mixed": lambda y, x: y @ tnp.cos(tnp.ones((y.shape[-1], 24))),
    "flat": lambda y, x: tnp.tanh(y.reshape(-1, y.shape[-1])).reshape(y.shape),
    "own": lambda y, x: y @ tnp.swapaxes(y, -1, -2),
    "operand": lambda y, x: y * x.sum(-1, keepdims=True),
    "by heads": lambda y, x: tnp.flip(y, 0),
}


@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6), st.booleans(), st.sampled_from([4_000, 40_000])
)
def test_random_chains(steps: list[str], is_matrix: bool, block: int) -> None:
    x = values((48, 5) if is_matrix else (3, 32, 5))[0]

    def f(x: Any) -> Any:
        y = x @ tnp.swapaxes(x, -1, -2)
        for step in steps:
            y = STEPS[step](y, x)
        return y.sum(-1), y @ tnp.ones((y.shape[-1], 2))

    same(f, [x], block)
