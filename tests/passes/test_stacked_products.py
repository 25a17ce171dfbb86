"""Products of the steps of a scan: which are made at once, before it or after it, and which stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.passes.programs import f64, traced
from tests.passes.test_hoist import names
from tests.schedule.running import run
from tracer import lax
from tracer.ir.check import check_program
from tracer.ir.program import Program
from tracer.ir.types import ArrayType
from tracer.passes.dce import dce
from tracer.passes.pipeline import optimize, stages
from tracer.passes.stacked_products import stacked_products
from tracer.primitives.base.reference import run_reference
from tracer.tree_util import tree_leaves

STEPS, BATCH, N = 7, 3, 24
W, U, B, H, XS = f64(N, N), f64(N, N), f64(N), f64(BATCH, N), f64(STEPS, BATCH, N)


def net(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = tnp.tanh(x @ w + h @ u + b)
        return h, h

    return lax.scan(step, h, xs)


def loss(w: Any, u: Any, b: Any, h: Any, xs: Any) -> Any:
    last, all_of_them = net(w, u, b, h, xs)
    return tnp.sum(last) + tnp.sum(all_of_them**2)


def rewritten(function: Callable[..., Any], *types: ArrayType) -> tuple[Program, Program]:
    """The program before and after the pass, which computes the same, as does what is compiled."""
    before = traced(lambda *arrays: tree_leaves(function(*arrays)), *types)
    for each, result in stages(before):
        if each.name in ("stacked_products", "expand"):
            break
        before = result
    after = check_program(stacked_products(before))
    assert stacked_products(after) is after
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(t.shape) for t in types]
    wanted = run_reference(before, arrays)
    for got in (run_reference(after, arrays), run(optimize(before), arrays)):
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-13 * np.abs(a).max())
    return before, after


def in_scans(program: Program) -> list[int]:
    """How many products each scan has in its body."""
    scans = [e.params["body"] for e in dce(program).equations if e.primitive.name == "scan"]
    return [names(body).count("dot_general") for body in scans]


def test_products_of_slices_and_weights_come_before_the_scan() -> None:
    before, after = rewritten(net, W, U, B, H, XS)
    assert (in_scans(before), in_scans(after)) == ([2], [1])
    assert names(after)[0] == "dot_general"
    (product,) = [e for e in after.equations if e.primitive.name == "dot_general"]
    (body,) = [e.params["body"] for e in before.equations if e.primitive.name == "scan"]
    same = next(e for e in body.equations if e.primitive.name == "dot_general")
    assert product.source == same.source


def test_gradients_by_weights_are_summed_after_the_scan() -> None:
    before, after = rewritten(tracer.grad(loss, argnums=(0, 1, 2)), W, U, B, H, XS)
    assert (in_scans(before), in_scans(after)) == ([2, 3], [1, 1])
    backward = [e for e in after.equations if e.primitive.name == "scan"][-1]
    assert backward.params["carries"] == 1  # the cotangent of h


def test_scans_in_reverse_sum_all_steps_on_what_they_began_with() -> None:
    def outer(c: Any, xs: Any, ys: Any) -> Any:
        return lax.scan(lambda c, s: (s[0].T @ tnp.sin(s[1]) + c, s[0] * 2), c, (xs, ys), reverse=True)

    before, after = rewritten(outer, f64(N, N), f64(STEPS, 1, N), f64(STEPS, 1, N))
    assert (in_scans(before), in_scans(after)) == ([1], [0])


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (
            lambda c, w, xs: lax.scan(lambda c, x: (c + tnp.sum(x @ w), c), c, xs),
            (f64(), f64(2, 2), f64(STEPS, BATCH, 2)),
        ),
        (lambda w, xs: lax.scan(lambda c, x: (c, x @ w), w, xs), (W, f64(STEPS, 4, N))),
        (lambda w, xs: lax.scan(lambda c, x: (c + x @ w, None), tnp.zeros((BATCH, N)), xs), (W, f64(3, BATCH, N))),
        (lambda c, xs: lax.scan(lambda c, x: (c + x.T @ x, c[0]), c, xs), (W, XS)),  # the sum so far is read
        (lambda c, xs: lax.scan(lambda c, x: (c - x.T @ x, None), c, xs), (W, XS)),  # it is no sum
        (lambda c, xs: lax.scan(lambda c, x: (c + tnp.sin(x.T @ x), None), c, xs), (W, XS)),
        (lambda c, xs: lax.scan(lambda c, x: (c + tnp.sin(x).T @ tnp.cos(x), None), c, xs), (f64(2, 2), f64(9, 5, 2))),
    ],
    ids=["large results", "many rows", "few steps", "read sums", "differences", "sums of functions", "large operands"],
)
def test_other_products_stay(function: Callable[..., Any], types: tuple[ArrayType, ...]) -> None:
    before, after = rewritten(function, *types)
    assert after is before
