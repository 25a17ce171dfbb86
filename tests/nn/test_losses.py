"""Losses: far values, dtypes, averages, CTC by enumeration, refused operands. `layers/` has values beside PyTorch."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import errors, nn

LOGITS = np.random.default_rng(0).normal(size=(4, 3))
LABELS = np.array([0, 2, 1, 1])


def test_far_logits_give_exact_losses() -> None:
    far = np.array([[0.0, -1000.0], [0.0, 800.0]])
    assert nn.cross_entropy(far, np.array([1, 0])).tolist() == [1000.0, 800.0]
    assert nn.cross_entropy(far, np.array([0, 1])).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(nn.binary_cross_entropy(np.array([-40.0, 40.0]), [0, 1]), np.exp([-40.0] * 2), rtol=1e-9)
    slopes = tracer.grad(lambda x: nn.binary_cross_entropy(x, [0, 1, 1, 0]).sum())(np.array([-1e3, 1e3, -1e3, 1e3]))
    assert slopes.tolist() == [0.0, 0.0, -1.0, 1.0]


def test_impossible_classes_that_do_not_occur_cost_nothing() -> None:
    masked = np.array([[0.0, 0.0, -np.inf]])
    shares = np.array([[0.5, 0.5, 0.0]])
    for loss in (lambda x: nn.cross_entropy(x, shares), lambda x: nn.cross_entropy(x, np.array([1]))):
        np.testing.assert_allclose(loss(masked), [np.log(2)], rtol=1e-14)
        assert np.isfinite(np.asarray(tracer.grad(lambda x, loss=loss: loss(x).sum())(masked))).all()
    assert nn.kl_divergence(np.log(np.array([0.5, 0.5])), np.array([1.0, 0.0])) == np.log(2)
    assert nn.kl_divergence(np.array([0.0, -np.inf]), np.array([1.0, 0.0])) == 0.0


def test_ignored_examples_have_neither_loss_nor_derivative() -> None:
    labels = np.array([0, -1, 1, -1])
    loss = nn.cross_entropy(LOGITS, labels, ignore=-1)
    np.testing.assert_allclose(loss[::2], nn.cross_entropy(LOGITS[::2], labels[::2]), rtol=1e-14)
    assert loss[1::2].tolist() == [0.0, 0.0]
    slope = np.asarray(tracer.grad(lambda x: nn.cross_entropy(x, labels, ignore=-1).sum())(LOGITS))
    assert not slope[1::2].any()
    assert slope[::2].all()


def test_labels_outside_of_the_classes_are_errors_in_compiled_code() -> None:
    with pytest.raises(errors.OutOfBoundsError, match="index 3 is out of bounds"):
        tracer.jit(nn.cross_entropy)(LOGITS, tnp.asarray([0, 1, 2, 3])).block_until_ready()


@pytest.mark.parametrize(
    "loss",
    [
        lambda y: nn.cross_entropy(LOGITS, y), lambda y: nn.nll(LOGITS, y), lambda y: nn.focal(LOGITS, y),
        lambda y: nn.linear_cross_entropy(LOGITS, np.ones((3, 3)), y), lambda y: nn.top_k(LOGITS, y, 2),
        lambda y: nn.confusion(LOGITS, y), lambda y: nn.confusion(y, LABELS, 3), lambda y: nn.f1(LOGITS, y),
        lambda y: nn.ctc(LOGITS[:, None], y[:, None]),
    ],
)  # fmt: skip
def test_a_label_below_zero_is_no_class(loss: Any) -> None:
    with pytest.raises(errors.OutOfBoundsError, match=r"^index -1 is out of bounds for axis \d with size 3, at"):
        loss(np.array([0, 1, -1, 0]))
    with pytest.raises(errors.OutOfBoundsError, match=r"^index -100 is out of bounds for axis \d with size 3, at"):
        tracer.jit(loss)(tnp.asarray([0, -100, 2, 0]))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: nn.cross_entropy(x, LABELS), lambda x: nn.nll(nn.log_softmax(x.astype("float32")), LABELS),
        lambda x: nn.focal(x, LABELS), lambda x: nn.mse(x, LOGITS.astype("float32")),
        lambda x: nn.binary_cross_entropy(x, LOGITS > 0), lambda x: nn.cosine_similarity(x, x[::-1]),
        lambda x: nn.ctc(x[:, None], np.ones((4, 1), int)),
    ],
)  # fmt: skip
def test_half_precision_is_computed_in_single(loss: Any) -> None:
    expected = loss(tnp.asarray(LOGITS, "float32"))
    found = loss(tnp.asarray(LOGITS, "bfloat16"))
    assert found.dtype == expected.dtype == "float32"
    assert found.shape == (4,)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.02)
    slope = tracer.grad(lambda x: loss(x).sum())(tnp.asarray(LOGITS, "bfloat16"))
    assert slope.dtype == "bfloat16"


def test_losses_of_elements_are_averaged_over_an_example() -> None:
    x, y = np.arange(24.0).reshape(2, 3, 4), np.zeros((2, 3, 4))
    np.testing.assert_allclose(nn.mse(x, y), (x**2).mean((1, 2)), rtol=1e-14)
    np.testing.assert_allclose(nn.l1(x, y, axes=-1), x.mean(-1), rtol=1e-14)
    assert nn.huber(x, y, axes=()).shape == (2, 3, 4)
    assert nn.mse(x[:0], y[:0]).shape == (0,)
    assert nn.mse(3, 1) == 4.0


def test_focal_loss_of_two_classes_is_that_of_a_sigmoid() -> None:
    x, y = LOGITS[:, 0], np.array([0, 1, 1, 0])
    both = np.stack([0 * x, x], -1)
    np.testing.assert_allclose(nn.focal(both, y, gamma=3.0), nn.focal(x, y, gamma=3.0), rtol=1e-12)
    weighted = nn.focal(both, y, alpha=[0.75, 0.25])
    np.testing.assert_allclose(weighted, nn.focal(x, y, alpha=0.25), rtol=1e-12)


def test_zero_vectors_have_a_finite_cosine_and_derivative() -> None:
    value, slope = tracer.value_and_grad(lambda x: nn.cosine_similarity(x, np.ones(3)))(np.zeros(3))
    assert value == 0.0
    assert np.isfinite(np.asarray(slope)).all()


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2]])
def test_ctc_is_the_sum_over_all_paths(labels: list[int]) -> None:
    logs = np.asarray(nn.log_softmax(np.random.default_rng(1).normal(size=(4, 3))))

    def collapsed(path: tuple[int, ...]) -> list[int]:
        return [c for c, _ in itertools.groupby(path) if c]

    total = sum(
        np.exp(sum(logs[t, c] for t, c in enumerate(path)))
        for path in itertools.product(range(3), repeat=4)
        if collapsed(path) == labels
    )
    np.testing.assert_allclose(nn.ctc(logs[None], np.array([labels])), [-np.log(total)], rtol=1e-12)
    one = tracer.vmap(lambda x, y: nn.ctc(x[None], y[None])[0])(np.stack([logs, logs]), np.array([labels] * 2))
    np.testing.assert_allclose(one, [-np.log(total)] * 2, rtol=1e-12)


def test_ctc_of_too_few_steps_is_infinite_with_derivative_zero() -> None:
    def loss(x: Any) -> Any:
        return nn.ctc(x, np.array([[1, 1], [0, 0]]), label_lengths=np.array([2, 0]), lengths=np.array([2, 0]))

    assert loss(np.zeros((2, 2, 3))).tolist() == [np.inf, 0.0]
    assert not np.asarray(tracer.grad(lambda x: loss(x).sum())(np.zeros((2, 2, 3)))).any()


@each(
    ("call", "expected"),
    [
        (
            lambda: nn.cross_entropy(LOGITS, LABELS[:3]),
            (
                "cross_entropy{at} takes logits [..., c] and labels [...] or [..., c]\n  got f64[4,3] and i64[3]\n"
                "  help: the classes are the last axis"
            ),
        ),
        (
            lambda: nn.cross_entropy(LOGITS, np.ones((4, 3), int)),
            (
                "cross_entropy{at} takes logits [..., c] and labels [...] or [..., c]\n  got f64[4,3] and i64[4,3]\n"
                '  help: labels.astype("float32") are probabilities'
            ),
        ),
        (
            lambda: nn.cross_entropy(LOGITS, LABELS.astype(float)),
            "cross_entropy{at} takes labels that are integers\n  got f64[4]\n  help: labels.astype(int)",
        ),
        (
            lambda: nn.cross_entropy(LOGITS, LABELS, weights=[1.0, 2.0]),
            "cross_entropy{at}: there is one weight for each of 3 classes\n  got f64[2]",
        ),
        (lambda: nn.cross_entropy(LOGITS, LABELS, smoothing=2), "cross_entropy{at}: smoothing is from 0 to 1\n  got 2"),
        (
            lambda: nn.mse(LOGITS[:, :1], LOGITS[:, 0]),
            "mse{at} takes two arrays of one shape\n  got f64[4,1] and f64[4]\n  help: the first one's [..., 0]",
        ),
        (lambda: nn.huber(LOGITS, LOGITS, delta=0), "huber{at}: delta is positive\n  got 0"),
        (lambda: nn.mse(LOGITS + 1j, LOGITS), "mse{at} takes real numbers\n  got c128[4,3]"),
        (
            lambda: nn.ctc(LOGITS, LABELS),
            "ctc{at} takes logits [b, t, c] and labels [b, s]\n  got f64[4,3] and i64[4]",
        ),
    ],
)
def test_refused_operands_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected
