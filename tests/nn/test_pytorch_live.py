"""Layers with drawn sizes beside PyTorch itself, where it is installed: values and all gradients in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tracer import interop, nn, random

torch = pytest.importorskip("torch")
KEY = random.key(0)
few = settings(max_examples=12, deadline=None, derandomize=True)


def agree(theirs: Any, ours: Any, shape: tuple[int, ...], call: Any = None) -> None:
    """Compare a module and a layer with its weights: results, and gradients by the names of the state dict."""
    module = theirs.double()
    layer = interop.from_torch(module, nn.cast(ours, "float64"))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    run = call or (lambda f, x: f(x))
    y = run(module, x)
    weights = torch.randn(y.shape, dtype=torch.float64)
    (y * weights).sum().backward()

    def loss(layer: Any, x: Any) -> Any:
        y = run(layer, x)
        return (y * weights.numpy()).sum(), y

    step = tracer.jit(tracer.value_and_grad(loss, argnums=(0, 1), has_aux=True))
    (_, found), (of_layer, of_x) = step(layer, tnp.asarray(x.detach().numpy()))
    named = interop.to_torch(of_layer)
    pairs = [(found, y), (of_x, x.grad), *((named[name], p.grad) for name, p in module.named_parameters())]
    for ours_, theirs_ in pairs:
        expected = theirs_.detach().numpy()
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(np.asarray(ours_), expected, rtol=1e-12, atol=1e-12 * scale)


@few
@given(st.data())
def test_convolutions(data: Any) -> None:
    small = st.integers(1, 3)
    rank, groups, transposed = data.draw(st.integers(1, 2)), data.draw(small), data.draw(st.booleans())
    features = groups * data.draw(small), groups * data.draw(small)
    size, stride, dilation = (data.draw(st.tuples(*[small] * rank)) for _ in range(3))
    padding = data.draw(st.tuples(*[st.integers(0, 2)] * rank))
    options = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "bias": data.draw(st.booleans()),
    }
    name = f"Conv{'Transpose' if transposed else ''}{rank}d"
    sizes = [(k - 1) * d + 1 + data.draw(st.integers(1, 5)) for k, d in zip(size, dilation, strict=True)]
    module = getattr(torch.nn, name)(*features, size, **options)
    layer = getattr(nn, name)(*features, size, **options, key=KEY)
    agree(module, layer, (data.draw(small), features[0], *sizes))


@few
@given(
    st.sampled_from(["RNN", "LSTM", "GRU"]), st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.booleans(),
    st.booleans(), st.integers(1, 5),
)  # fmt: skip
def test_recurrent_layers(kind: str, n: int, hidden: int, layers: int, both: bool, bias: bool, steps: int) -> None:
    module = getattr(torch.nn, kind)(n, hidden, layers, bidirectional=both, bias=bias, batch_first=True)
    layer = getattr(nn, kind)(n, hidden, layers, bidirectional=both, bias=bias, key=KEY)
    agree(module, layer, (2, steps, n), lambda f, x: f(x)[0])


@few
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.booleans())
def test_attention(heads: int, size: int, steps: int, bias: bool) -> None:
    dim = heads * size
    module = torch.nn.MultiheadAttention(dim, heads, bias=bias, batch_first=True)
    layer = nn.MultiheadAttention(dim, heads, bias=bias, key=KEY)
    agree(module, layer, (2, steps, dim), lambda f, x: f(x, x, x)[0] if f is module else f(x))


@few
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.sampled_from(["Avg", "Max"]))
def test_adaptive_pools(rows: int, columns: int, height: int, width: int, kind: str) -> None:
    name, output = f"Adaptive{kind}Pool2d", (rows, columns)
    agree(getattr(torch.nn, name)(output), getattr(nn, name)(output), (2, 2, height, width))
