"""Metrics against their definitions, and means over ragged batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, lax, nn

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(60, 4))
LABELS = RNG.integers(0, 4, 60)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
def test_metrics_of_classes_are_their_definitions(way: Any) -> None:
    chosen = SCORES.argmax(-1)
    np.testing.assert_array_equal(way(nn.accuracy)(SCORES, LABELS), chosen == LABELS)
    np.testing.assert_array_equal(nn.accuracy(chosen, LABELS), chosen == LABELS)
    order = np.argsort(-SCORES, -1)[:, :2]
    np.testing.assert_array_equal(
        way(lambda x, y: nn.top_k(x, y, 2))(SCORES, LABELS), (order == LABELS[:, None]).any(-1)
    )
    table = np.array([[((i == LABELS) & (chosen == j)).sum() for j in range(4)] for i in range(4)])
    np.testing.assert_array_equal(way(nn.confusion)(SCORES, LABELS), table)
    precision, recall = np.diag(table) / table.sum(0), np.diag(table) / table.sum(1)
    np.testing.assert_allclose(way(nn.f1)(SCORES, LABELS), 2 * precision * recall / (precision + recall), rtol=1e-13)


def test_equal_scores_rank_in_the_order_of_classes() -> None:
    assert [int(nn.top_k(np.zeros((1, 4)), np.array([c]), 2)[0]) for c in range(4)] == [1, 1, 0, 0]


def test_auroc_counts_pairs_and_ties_by_half() -> None:
    scores, labels = np.round(SCORES[:, 0]), LABELS > 1
    pairs = scores[labels][:, None] - scores[~labels]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    np.testing.assert_allclose(tracer.jit(nn.auroc)(scores, labels), expected, rtol=1e-13)
    assert np.isnan(nn.auroc(scores, labels & False))


def test_r2_is_the_explained_share_of_each_column() -> None:
    y = SCORES + 0.1 * RNG.normal(size=SCORES.shape)
    expected = 1 - ((SCORES - y) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    np.testing.assert_allclose(nn.r2(SCORES, y), expected, rtol=1e-12)
    np.testing.assert_allclose(nn.r2(y.mean(0) + 0 * y, y), 0, atol=1e-12)


def test_classes_that_do_not_occur_have_an_f1_of_zero() -> None:
    assert nn.f1(np.array([0, 0]), np.array([0, 0]), 3).tolist() == [1.0, 0.0, 0.0]


def test_a_mean_is_exact_over_ragged_batches_and_in_loops() -> None:
    values, weights = RNG.normal(size=13), RNG.random(13) > 0.4
    mean = nn.Mean()
    for start in range(0, 13, 5):
        mean = mean.add(values[start : start + 5], weights[start : start + 5])
    np.testing.assert_allclose(mean.value, values[weights].mean(), rtol=1e-14)
    halves = nn.Mean().add(values[:4]) + nn.Mean().add(values[4:])
    np.testing.assert_allclose(halves.value, values.mean(), rtol=1e-14)
    looped, _ = lax.scan(lambda mean, x: (mean.add(x), None), nn.Mean(), values)
    np.testing.assert_allclose(looped.value, values.mean(), rtol=1e-14)
    assert nn.Mean().add([np.nan, 2.0], [0, 1]).value == 2.0
    assert np.isnan(nn.Mean().value)
    assert nn.count(mean) == 0


def test_refused_operands_say_what_fits() -> None:
    with pytest.raises(errors.ArgumentError, match="the number of classes is needed"):
        nn.confusion(LABELS, LABELS)
    with pytest.raises(errors.ShapeError, match=r"the shapes do not fit\n  got f64\[60,4\] and i64\[3\]"):
        nn.accuracy(SCORES, LABELS[:3])
    with pytest.raises(errors.DTypeError, match="takes labels that are integers"):
        nn.accuracy(SCORES, LABELS * 1.0)
    with pytest.raises(errors.DTypeError, match="takes classes that are integers, or an axis of logits"):
        nn.accuracy(SCORES[:, 0], LABELS)
    with pytest.raises(errors.ShapeError, match=r"auroc at .*: the shapes do not fit"):
        nn.auroc(SCORES, LABELS)
    with pytest.raises(errors.OutOfBoundsError):
        tracer.jit(nn.confusion, static_argnums=2)(tnp.asarray([0, 3]), tnp.asarray([0, 1]), 2).block_until_ready()
