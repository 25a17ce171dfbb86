"""Attention beside JAX's, compiled, batched and differentiated; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.reference_cases import ATTENTION, operands, options
from tracer import errors
from tracer.nn import dot_product_attention

STORED = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))["attention"]
QUERY, KEY, VALUE, BIAS, MASK = operands()


@pytest.mark.parametrize("label", ATTENTION)
@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_values_are_jax_s(label: str, way: Any) -> None:
    found = way(lambda q, k, v: dot_product_attention(q, k, v, **options(ATTENTION[label], BIAS, MASK)))(
        QUERY, KEY, VALUE
    )
    results = found if isinstance(found, tuple) else (found,)
    assert len(results) == len(STORED[label])
    for ours, theirs in zip(results, STORED[label], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


def test_queries_without_features_attend_to_all_keys_alike() -> None:
    q, k = np.zeros((1, 2, 1, 0)), np.zeros((1, 3, 1, 0))
    y, residual = dot_product_attention(q, k, k, return_residual=True)
    assert y.shape == (1, 2, 1, 0)
    np.testing.assert_allclose(residual, np.log(3.0))


def test_without_a_batch_it_is_that_of_a_batch_of_one() -> None:
    one = dot_product_attention(QUERY[0], KEY[0], VALUE[0], is_causal=True)
    np.testing.assert_allclose(one, dot_product_attention(QUERY, KEY, VALUE, is_causal=True)[0], rtol=1e-6)
    both = tracer.vmap(lambda q, k, v: dot_product_attention(q, k, v, is_causal=True))(QUERY, KEY, VALUE)
    np.testing.assert_allclose(both[0], one, rtol=1e-5, atol=1e-6)


def test_float64_is_not_computed_in_float32() -> None:
    q, k, v = (np.asarray(x, "float64") for x in (QUERY, KEY, VALUE))
    grouped = q.reshape(2, 4, 2, 2, 3)
    logits = np.einsum("btkgh,bskh->bkgts", grouped, k) / np.sqrt(3)
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = np.einsum("bkgts,bskh->btkgh", weights, v).reshape(q.shape)
    np.testing.assert_allclose(dot_product_attention(q, k, v), expected, rtol=1e-13)


@pytest.mark.parametrize("label", ["plain", "causal", "scaled", "masked", "lengths"])
def test_gradients_are_right(label: str) -> None:
    q, k, v, bias = (tnp.asarray(x, "float64") for x in (QUERY, KEY, VALUE, BIAS))
    call = options(ATTENTION[label], bias, MASK)
    weights = np.cos(np.arange(QUERY.size)).reshape(QUERY.shape)
    tracer.test_util.check_grads(
        lambda *xs: (dot_product_attention(*xs, **call) * weights).sum(), (q, k, v), order=1, modes=["fwd", "rev"]
    )


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(errors.DTypeError, match=r"^dot_product_attention at test_attention.py:\d+: query, key"):
        dot_product_attention(QUERY, KEY, np.asarray(VALUE, "float64"))
    with pytest.raises(errors.DTypeError, match="takes real numbers"):
        dot_product_attention(QUERY * 1j, KEY, VALUE)
    with pytest.raises(errors.ShapeError, match="the shapes do not belong together"):
        dot_product_attention(QUERY, KEY, VALUE[:, :3])
    with pytest.raises(errors.ShapeError, match="heads are a multiple"):
        dot_product_attention(QUERY[:, :, :3], KEY, VALUE)
    with pytest.raises(errors.DTypeError, match="mask holds bools"):
        dot_product_attention(QUERY, KEY, VALUE, mask=BIAS)
    with pytest.raises(errors.ShapeError, match="bias broadcasts to"):
        dot_product_attention(QUERY, KEY, VALUE, bias=np.ones((3, 2, 4, 4, 5)))
    with pytest.raises(errors.ArgumentError, match="there is one implementation"):
        dot_product_attention(QUERY, KEY, VALUE, implementation="cudnn")
    with pytest.raises(errors.ShapeError, match="lengths are integers"):
        dot_product_attention(QUERY, KEY, VALUE, query_seq_lengths=[1, 2, 3])
