"""Cross entropy of a linear layer, block by block: the same as of its logits, with less memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, nn

RNG = np.random.default_rng(0)
X, WEIGHT, LABELS = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(7, 4)), RNG.integers(0, 7, (2, 3))


def whole(x: Any, weight: Any, labels: Any = LABELS) -> Any:
    return nn.cross_entropy(x @ weight.T, labels)


@pytest.mark.parametrize("block", [1, 3, 4, 7, 100])
def test_blocks_of_every_size_give_the_loss_of_all_logits(block: int) -> None:
    def f(loss: Any) -> Any:
        return tracer.jit(tracer.value_and_grad(lambda x, w: (loss(x, w) * X[..., 0]).sum(), argnums=(0, 1)))

    expected = f(whole)(X, WEIGHT)
    found = f(lambda x, w: nn.linear_cross_entropy(x, w, LABELS, block=block))(X, WEIGHT)
    for one, other in zip(tracer.tree.leaves(found), tracer.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_derivatives_in_both_modes_and_of_second_order() -> None:
    def f(x: Any, weight: Any) -> Any:
        return nn.linear_cross_entropy(x, weight, LABELS[0, :2], block=3)

    tracer.test_util.check_grads(f, (X[0, :2], WEIGHT), order=2, modes=("fwd", "rev"))
    mapped = tracer.vmap(lambda x, y: nn.linear_cross_entropy(x, WEIGHT, y, block=3))(X, LABELS)
    np.testing.assert_allclose(mapped, whole(X, WEIGHT), rtol=1e-12)


def test_ignored_half_precision_empty_and_far_operands() -> None:
    labels = np.where(LABELS > 3, -1, LABELS)
    np.testing.assert_allclose(
        nn.linear_cross_entropy(X, WEIGHT, labels, block=3, ignore=-1),
        nn.cross_entropy(X @ WEIGHT.T, labels, ignore=-1),
        rtol=1e-12,
    )
    half = tnp.asarray(X, "bfloat16"), tnp.asarray(WEIGHT, "bfloat16")
    found = nn.linear_cross_entropy(*half, LABELS, block=3)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, whole(*(x.astype("float32") for x in half)), rtol=1e-5)
    slopes = tracer.grad(lambda x, w: nn.linear_cross_entropy(x, w, LABELS).sum(), argnums=(0, 1))(*half)
    assert [slope.dtype for slope in slopes] == ["bfloat16", "bfloat16"]
    assert nn.linear_cross_entropy(X[:0], WEIGHT, LABELS[:0]).shape == (0, 3)
    np.testing.assert_allclose(nn.linear_cross_entropy(1e4 * X, WEIGHT, LABELS, block=2), whole(1e4 * X, WEIGHT))


def test_memory_is_that_of_a_block() -> None:
    x, weight, labels = tnp.zeros((64, 8), "float32"), tnp.zeros((4096, 8), "float32"), tnp.zeros(64, "int32")

    def arena(loss: Any) -> int:
        return tracer.jit(tracer.grad(lambda x, w: loss(x, w).sum(), argnums=(0, 1))).lower(x, weight).memory().arena

    blocks = arena(lambda x, w: nn.linear_cross_entropy(x, w, labels, block=128))
    assert blocks < 4 * 64 * 4096 / 8 < arena(lambda x, w: whole(x, w, labels))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: nn.linear_cross_entropy(X, WEIGHT.T, LABELS),
            (
                "linear_cross_entropy{at} takes x [..., n], weight [c, n] and labels [...]\n"
                "  got f64[2,3,4], f64[4,7] and i64[2,3]"
            ),
        ),
        (
            lambda: nn.linear_cross_entropy(X, WEIGHT, LABELS * 1.0),
            (
                "linear_cross_entropy{at} takes floats and labels that are integers\n"
                "  got f64[2,3,4], f64[7,4] and f64[2,3]"
            ),
        ),
        (
            lambda: nn.linear_cross_entropy(X, WEIGHT, LABELS, block=0),
            "linear_cross_entropy{at}: there are blocks of one class at least\n  got block=0",
        ),
    ],
)
def test_refused_operands_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected
