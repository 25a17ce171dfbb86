"""Heads of attention beside PyTorch's in float64, with gradients; caches, positions, dropout, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.torch_numbers import Stored, numbers
from tracer import errors, lax, nn, random

KEY = random.key(0)
STORED = Stored()
PARTS = ("q", "k", "v")


def x_of(*shape: int) -> Any:
    return tnp.asarray(numbers("x", shape), "float32")


def torch_arrays(layer: Any, apart: bool) -> dict[str, Any]:
    """The layer's arrays by PyTorch's names, which joins q, k and v where their sizes are equal."""
    found = {"out_proj.weight": layer.out.weight, "out_proj.bias": layer.out.bias}
    weights, biases = ([getattr(getattr(layer, part), name) for part in PARTS] for name in ("weight", "bias"))
    if apart:
        found |= {f"{part}_proj_weight": weight for part, weight in zip(PARTS, weights, strict=True)}
    else:
        found["in_proj_weight"] = np.concatenate(weights)
    if biases[0] is not None:
        found["in_proj_bias"] = np.concatenate(biases)
    return {name: x for name, x in found.items() if x is not None}


def filled(layer: Any, apart: bool, prefix: str = "") -> Any:
    """The layer with numbers that belong to PyTorch's names."""
    put = {name: tnp.asarray(numbers(prefix + name, x.shape)) for name, x in torch_arrays(layer, apart).items()}
    biases = put.get("in_proj_bias", np.zeros(0))
    sizes = np.cumsum([getattr(layer, part).weight.shape[0] for part in PARTS])[:-1]
    whole = put.get("in_proj_weight")
    weights = [put[f"{part}_proj_weight"] for part in PARTS] if apart else np.split(np.asarray(whole), sizes)
    changed = {}
    for part, weight, bias in zip(PARTS, weights, np.split(np.asarray(biases), sizes), strict=True):
        linear = getattr(layer, part)
        changed[part] = linear.replace(weight=tnp.asarray(weight))
        if linear.bias is not None:
            changed[part] = changed[part].replace(bias=tnp.asarray(bias))
    out = layer.out.replace(weight=put["out_proj.weight"])
    return layer.replace(out=out if out.bias is None else out.replace(bias=put["out_proj.bias"]), **changed)


def seen(b: int, t: int, s: int) -> Any:
    mask = numbers("mask", (b, 1, t, s)) > -0.2
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize("n", range(len(STORED.cases["attention"])))
def test_values_and_gradients_are_pytorch_s(n: int) -> None:
    case, stored = STORED.cases["attention"][n], STORED.results("attention", n)
    b, t, s = case["b"], case["t"], case["context"]
    layer = nn.MultiheadAttention(
        case["dim"], case["heads"], bias=case["bias"], context_dim=case["context_dim"], dtype="float64", key=KEY
    )
    apart = case["context_dim"] not in (None, case["dim"])
    inputs = {"x": tnp.asarray(numbers("x", (b, t, case["dim"])))}
    if s is not None:
        inputs["context"] = tnp.asarray(numbers("context", (b, s, case["context_dim"] or case["dim"])))
    call = {"causal": case["causal"], "mask": seen(b, t, s or t) if case["mask"] else None}

    def outputs(layer: Any, inputs: Any) -> Any:
        return layer(inputs["x"], inputs.get("context"), **call)

    def run(layer: Any, inputs: Any) -> Any:
        out = outputs(layer, inputs)
        weights = numbers("out0", out.shape)
        return out, tracer.grad(lambda *args: (outputs(*args) * weights).sum(), argnums=(0, 1))(layer, inputs)

    out, (by_weights, by_inputs) = (run if n % 4 else tracer.jit(run))(filled(layer, apart), inputs)
    got = {"out0": out} | {f"grad {name}": x for name, x in by_inputs.items()}
    got |= {f"grad {name}": x for name, x in torch_arrays(by_weights, apart).items()}
    assert got.keys() == stored.keys()
    for name, expected in stored.items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-12, atol=1e-13, err_msg=f"{name} {case}")


@pytest.mark.parametrize(
    "options",
    [
        {"rope": 1e4, "causal": True},
        {"kv_heads": 1, "qk_norm": True, "causal": True},
        {"window": 2, "causal": True, "rope": 100.0},
        {"window": (1, 0), "head_dim": 6},
    ],
)
def test_a_cache_gives_what_the_whole_gives(options: dict[str, Any]) -> None:
    causal = options.pop("causal", False)
    layer = nn.MultiheadAttention(8, 2, key=KEY, dtype="float64", **options)
    x = tnp.asarray(numbers("x", (3, 7, 8)))
    whole = layer(x, causal=causal)

    @tracer.jit
    def stepwise(layer: Any, x: Any) -> Any:
        first, cache = layer(x[:, :3], causal=causal, cache=layer.cache(3, 7))

        def one(cache: Any, x: Any) -> Any:
            y, cache = layer(x[:, None], causal=causal, cache=cache)
            return cache, y[:, 0]

        cache, rest = lax.scan(one, cache, x[:, 3:].swapaxes(0, 1))
        return tnp.concatenate([first, rest.swapaxes(0, 1)], axis=1), cache

    if not causal:  # the window alone looks back, so no query sees what comes later
        assert options["window"] == (1, 0)
    found, cache = stepwise(layer, x)
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-13)
    assert int(cache.length) == 7
    alone, _ = layer(x[1], causal=causal, cache=layer.cache(1, 9))
    np.testing.assert_allclose(alone, whole[1], rtol=1e-12, atol=1e-13)


def test_an_overfull_cache_is_an_index_error_in_compiled_code() -> None:
    layer = nn.MultiheadAttention(8, 2, key=KEY)
    cache = layer.cache(2, 3)
    call = tracer.jit(lambda layer, x, cache: layer(x, causal=True, cache=cache))
    _, cache = call(layer, x_of(2, 2, 8), cache)
    _, full = call(layer, x_of(2, 1, 8), cache)
    assert int(full.length) == 3
    for way in (call, lambda layer, x, cache: layer(x, cache=cache)):
        with pytest.raises(errors.OutOfBoundsError, match="index 3 is out of bounds for axis 0 with size 3"):
            way(layer, x_of(2, 2, 8), cache)
    same, unchanged = layer(x_of(2, 0, 8), cache=full)
    assert same.shape == (2, 0, 8)
    assert int(unchanged.length) == 3


def test_weights_start_as_pytorchs() -> None:
    one, two = nn.MultiheadAttention(64, 4, key=KEY), nn.MultiheadAttention(64, 4, context_dim=32, key=KEY)
    for layer, bound in (
        (one.q, (6 / 256) ** 0.5), (one.k, (6 / 256) ** 0.5), (one.v, (6 / 256) ** 0.5), (one.out, 1 / 8),
        (two.q, (6 / 128) ** 0.5), (two.k, (6 / 96) ** 0.5), (two.v, (6 / 96) ** 0.5),
    ):  # fmt: skip
        assert not np.any(layer.bias)
        np.testing.assert_allclose(np.abs(layer.weight).max(), bound, rtol=0.01)
        np.testing.assert_allclose(np.std(layer.weight), bound / 3**0.5, rtol=0.05)
    assert nn.MultiheadAttention(64, 4, bias=False, key=KEY).q.bias is None


def test_a_cache_may_be_narrower_than_the_layer() -> None:
    layer = nn.MultiheadAttention(8, 2, key=KEY)
    y, cache = layer(x_of(2, 5, 8), causal=True, cache=layer.cache(2, 5, "bfloat16"))
    assert (y.dtype, cache.k.dtype) == ("float32", "bfloat16")
    np.testing.assert_allclose(y, layer(x_of(2, 5, 8), causal=True), atol=1e-2)
    narrow = nn.cast(layer, "bfloat16")
    assert narrow.cache(2, 5).v.dtype == "bfloat16" == narrow(x_of(2, 5, 8).astype("bfloat16")).dtype


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_is_a_product_with_complex_numbers(interleaved: bool) -> None:
    x = numbers("x", (2, 5, 3, 6))
    pairs = x[..., ::2] + 1j * x[..., 1::2] if interleaved else x[..., :3] + 1j * x[..., 3:]
    position = (np.arange(5)[None] + np.asarray([[4], [9]])) / 2.0
    turned = pairs * np.exp(1j * position[..., None, None] * 100.0 ** (-2 * np.arange(3) / 6))
    parts = (turned.real, turned.imag)
    expected = np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)
    found = nn.rotary(tnp.asarray(x), tnp.asarray([4, 9]), 100.0, scale=2.0, interleaved=interleaved)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    # products of queries and keys depend on distances alone
    q, k = tnp.asarray(numbers("q", (4, 1, 6))), tnp.asarray(numbers("k", (4, 1, 6)))
    near, far = (tnp.einsum("tnh,snh->ts", nn.rotary(q, start), nn.rotary(k, start)) for start in (0, 11))
    np.testing.assert_allclose(near, far, rtol=1e-11)
    assert nn.rotary(tnp.asarray(x, "bfloat16")).dtype == "bfloat16"


def test_alibi_has_the_slopes_of_the_paper() -> None:
    np.testing.assert_allclose(-nn.alibi(8, 2)[:, 1, 0], 2.0 ** -np.arange(1, 9))
    twelve = -nn.alibi(12, 2, dtype="float64")[:, 1, 0]  # eight of eight heads, then every second one of sixteen
    np.testing.assert_allclose(twelve, [*2.0 ** -np.arange(1, 9), *2.0 ** -np.arange(0.5, 4, 1)])
    last = nn.alibi(4, 1, 5)
    assert last.shape == (4, 1, 5)
    np.testing.assert_allclose(last[0, 0], -0.25 * np.arange(4, -1, -1))
    layer = nn.MultiheadAttention(8, 4, key=KEY)
    x = x_of(2, 5, 8)
    assert np.abs(layer(x, bias=nn.alibi(4, 5)) - layer(x)).max() > 1e-4


def test_sinusoids_are_those_of_the_paper() -> None:
    layer = nn.SinusoidalPositions(6)
    found = layer(np.zeros((2, 5, 6)), start=3)
    place, pair = np.arange(3, 8)[:, None], np.arange(3)
    angle = place / 10000 ** (2 * pair / 6)
    np.testing.assert_allclose(found[1, :, ::2], np.sin(angle), rtol=1e-13)
    np.testing.assert_allclose(found[0, :, 1::2], np.cos(angle), rtol=1e-13)
    each = layer(np.zeros((2, 5, 6)), start=tnp.asarray([3, 0]))
    np.testing.assert_allclose(each[0], found[0])
    assert each.dtype == "float64"


def test_dropout_zeroes_weights_of_attention() -> None:
    layer = nn.MultiheadAttention(4, 2, dropout=0.5, key=KEY)
    plain = nn.MultiheadAttention(4, 2, key=KEY)
    x = x_of(2, 6, 4)
    np.testing.assert_array_equal(layer(x), plain(x))
    first = layer.training(KEY)(x)
    assert np.abs(first - plain(x)).max() > 1e-3
    np.testing.assert_allclose(first, layer(x, key=tracer.random.fold_in(KEY, 1)), rtol=1e-6)
    # on average the weights are what they were
    many = tracer.vmap(lambda key: layer(x, key=key))(random.split(KEY, 4000))
    np.testing.assert_allclose(many.mean(0), plain(x), atol=0.02)


def test_heads_that_share_keys_are_heads_with_repeated_keys() -> None:
    layer = nn.MultiheadAttention(8, 4, kv_heads=2, key=KEY)
    whole = nn.MultiheadAttention(8, 4, key=KEY)
    parts = {
        name: getattr(layer, name).replace(
            weight=tnp.repeat(getattr(layer, name).weight.reshape(2, 2, 8), 2, 0).reshape(8, 8),
            bias=tnp.repeat(getattr(layer, name).bias.reshape(2, 2), 2, 0).reshape(8),
        )
        for name in ("k", "v")
    }
    whole = whole.replace(q=layer.q, out=layer.out, **parts)
    np.testing.assert_allclose(layer(x_of(2, 5, 8)), whole(x_of(2, 5, 8)), rtol=1e-5, atol=1e-7)


def test_normalised_queries_and_keys_do_not_feel_their_size() -> None:
    layer = nn.MultiheadAttention(8, 2, qk_norm=True, bias=False, key=KEY)
    larger = layer.replace(q=layer.q.replace(weight=100 * layer.q.weight))
    np.testing.assert_allclose(larger(x_of(2, 5, 8)), layer(x_of(2, 5, 8)), atol=1e-3)
    assert layer.q_norm.weight.shape == (4,)


def test_errors_say_what_is_taken() -> None:
    layer = nn.MultiheadAttention(8, 2, key=KEY)
    for arguments in ((8, 3), (8, 0)):
        with pytest.raises(errors.ArgumentError, match="heads must divide dim"):
            nn.MultiheadAttention(*arguments, key=KEY)
    with pytest.raises(errors.ArgumentError, match="heads must divide dim"):
        nn.MultiheadAttention(8, 4, kv_heads=3, key=KEY)
    with pytest.raises(errors.ArgumentError, match="rotary positions take heads of even size"):
        nn.MultiheadAttention(6, 2, rope=1e4, key=KEY)
    with pytest.raises(errors.ShapeError, match=r"takes \[b, t, n\] or \[t, n\]"):
        layer(x_of(2, 3, 4, 8))
    with pytest.raises(errors.ShapeError, match=r"and the context f32\[3,5,8\]"):
        layer(x_of(2, 4, 8), x_of(3, 5, 8))
    with pytest.raises(errors.ShapeError, match=r"Linear .q: the last axis has 4 elements, the layer takes 8"):
        layer(x_of(2, 3, 4))
    with pytest.raises(errors.ArgumentError, match="a cache holds the positions of x itself"):
        layer(x_of(2, 4, 8), x_of(2, 5, 8), cache=layer.cache(2, 9))
    with pytest.raises(errors.ShapeError, match=r"expected \[2, 9, 2, 4\], got \[3, 9, 2, 4\]"):
        layer(x_of(2, 4, 8), cache=layer.cache(3, 9))
    with pytest.raises(errors.ShapeError, match="of even size"):
        nn.rotary(x_of(2, 3, 5))
    with pytest.raises(errors.DTypeError, match="takes floats"):
        nn.rotary(tnp.ones((2, 3, 4), int))
    with pytest.raises(errors.ArgumentError, match="1 head or more"):
        nn.alibi(0, 4)
    with pytest.raises(errors.ArgumentError, match="even number"):
        nn.SinusoidalPositions(3)
    with pytest.raises(errors.ShapeError, match=r"takes \[..., t, 4\]"):
        nn.SinusoidalPositions(4)(x_of(2, 3))
