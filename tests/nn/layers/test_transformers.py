"""Transformer blocks, encoders and decoders beside PyTorch's in float64; and a GPT with a cache."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.layers.test_attention_layers import filled as filled_attention
from tests.nn.layers.test_attention_layers import torch_arrays
from tests.nn.torch_numbers import Stored, numbers
from tracer import errors, lax, nn, random

KEY = random.key(0)
STORED = Stored()
exact_gelu = functools.partial(nn.gelu, approximate=False)


def torch_parts(block: Any) -> list[tuple[str, str]]:
    """Our layers in a block, and PyTorch's: attention apart."""
    if block.cross is None:
        return [("norm1", "norm1"), ("norm2", "norm2"), ("up", "linear1"), ("down", "linear2")]
    return [
        ("norm1", "norm1"), ("norm_cross", "norm2"), ("norm2", "norm3"), ("up", "linear1"), ("down", "linear2"),
    ]  # fmt: skip


def block_arrays(block: Any, prefix: str) -> dict[str, Any]:
    found = {}
    for ours, theirs in torch_parts(block):
        layer = getattr(block.mlp if ours in ("up", "down") else block, ours)
        found |= {f"{prefix}{theirs}.{name}": getattr(layer, name) for name in ("weight", "bias")}
    found |= {f"{prefix}self_attn.{name}": x for name, x in torch_arrays(block.attention, False).items()}
    if block.cross is not None:
        found |= {f"{prefix}multihead_attn.{name}": x for name, x in torch_arrays(block.cross, False).items()}
    return found


def filled_block(block: Any, prefix: str) -> Any:
    """The block with numbers that belong to PyTorch's names."""

    def filled(layer: Any, name: str) -> Any:
        return layer.replace(
            **{
                part: tnp.asarray(numbers(f"{prefix}{name}.{part}", getattr(layer, part).shape))
                for part in ("weight", "bias")
            }
        )

    changed = {"attention": filled_attention(block.attention, False, f"{prefix}self_attn.")}
    if block.cross is not None:
        changed["cross"] = filled_attention(block.cross, False, f"{prefix}multihead_attn.")
    inside = {}
    for ours, theirs in torch_parts(block):
        place = inside if ours in ("up", "down") else changed
        place[ours] = filled(getattr(block.mlp if place is inside else block, ours), theirs)
    return block.replace(mlp=block.mlp.replace(**inside), **changed)


def stacked(blocks: list[Any]) -> Any:
    return tracer.tree.map(lambda *leaves: tnp.stack(leaves), *blocks)


@pytest.mark.parametrize("n", range(len(STORED.cases["transformer"])))
def test_values_and_gradients_are_pytorch_s(n: int) -> None:
    case, stored = STORED.cases["transformer"][n], STORED.results("transformer", n)
    options = {
        "hidden": case["hidden"], "activation": exact_gelu if case["gelu"] else nn.relu,
        "norm_first": case["norm_first"], "dtype": "float64", "key": KEY,
    }  # fmt: skip
    decodes, single = "Decoder" in case["kind"], case["kind"].endswith("Layer")
    inputs = {"x": tnp.asarray(numbers("x", (case["b"], case["t"], case["dim"])))}
    if decodes:
        inputs["context"] = tnp.asarray(numbers("context", (case["b"], case["context"], case["dim"])))
    if single:
        model: Any = filled_block(nn.TransformerBlock(case["dim"], case["heads"], cross=decodes, **options), "")
    else:
        kind = nn.TransformerDecoder if decodes else nn.TransformerEncoder
        model = kind(case["dim"], case["heads"], case["depth"], stacked=case["norm_first"], **options)
        blocks = [filled_block(block, f"layers.{i}.") for i, block in enumerate(model.blocks)]
        model = model.replace(blocks=model.blocks.replace(layers=stacked(blocks)) if case["norm_first"] else blocks)
        if model.norm is not None:
            put = {name: tnp.asarray(numbers(f"norm.{name}", (case["dim"],))) for name in ("weight", "bias")}
            model = model.replace(norm=model.norm.replace(**put))

    def outputs(model: Any, inputs: Any) -> Any:
        causal = {} if decodes and not single else {"causal": case["causal"]}
        return model(inputs["x"], inputs["context"], **causal) if decodes else model(inputs["x"], **causal)

    def run(model: Any, inputs: Any) -> Any:
        out = outputs(model, inputs)
        weights = numbers("out0", out.shape)
        return out, tracer.grad(lambda *args: (outputs(*args) * weights).sum(), argnums=(0, 1))(model, inputs)

    out, (by_weights, by_inputs) = (run if n % 3 else tracer.jit(run))(model, inputs)
    got = {"out0": out} | {f"grad {name}": x for name, x in by_inputs.items()}
    if single:
        arrays = block_arrays(by_weights, "")
    else:
        arrays = {}
        for i in range(case["depth"]):
            block = by_weights.blocks
            block = tracer.tree.map(lambda leaf, i=i: leaf[i], block.layers) if case["norm_first"] else block[i]
            arrays |= block_arrays(block, f"layers.{i}.")
        if by_weights.norm is not None:
            arrays |= {"norm.weight": by_weights.norm.weight, "norm.bias": by_weights.norm.bias}
    got |= {f"grad {name}": x for name, x in arrays.items()}
    assert got.keys() == stored.keys()
    for name, expected in stored.items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-12, atol=1e-12, err_msg=f"{name} {case}")


def test_a_stack_of_blocks_is_the_list_of_them() -> None:
    encoder = nn.TransformerEncoder(8, 2, 2, hidden=16, gated=True, norm=nn.RMSNorm, remat=True, key=KEY)
    listed = nn.TransformerEncoder(8, 2, 2, hidden=16, gated=True, norm=nn.RMSNorm, remat=True, stacked=False, key=KEY)
    blocks = [nn.remat(block) for block in encoder.blocks]
    listed = listed.replace(blocks=blocks, norm=encoder.norm)
    x = tnp.asarray(numbers("x", (2, 5, 8)), "float32")
    np.testing.assert_allclose(encoder(x), listed(x), rtol=1e-5, atol=1e-6)
    by_stack = tracer.grad(lambda model: tnp.square(model(x)).sum())(encoder).blocks.layers
    by_list = tracer.grad(lambda model: tnp.square(model(x)).sum())(listed).blocks
    parts = [block.module for block in by_list]
    for one, other in zip(tracer.tree.leaves(by_stack), tracer.tree.leaves(stacked(parts)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stacked", [True, False])
def test_a_decoder_s_cache_gives_what_the_whole_gives(stacked: bool) -> None:
    decoder = nn.TransformerDecoder(8, 2, 2, hidden=8, rope=1e4, stacked=stacked, dtype="float64", key=KEY)
    x, context = (tnp.asarray(numbers(name, (2, 5, 8))) for name in ("x", "context"))
    cache = decoder.cache(2, 5)
    step = tracer.jit(type(decoder).__call__) if stacked else type(decoder).__call__
    parts = []
    for part in (x[:, :2], x[:, 2:3], x[:, 3:]):
        y, cache = step(decoder, part, context, cache=cache)
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), decoder(x, context), rtol=1e-12, atol=1e-13)


def test_dropout_acts_in_training_copies_alone_and_draws_anew_in_every_block() -> None:
    encoder = nn.TransformerEncoder(8, 2, 2, hidden=8, dropout=0.3, key=KEY)
    x = tnp.asarray(numbers("x", (2, 5, 8)), "float32")
    run = tracer.jit(lambda model, key: model.training(key)(x))
    assert np.abs(run(encoder, KEY) - encoder(x)).max() > 0.01
    np.testing.assert_allclose(run(encoder, KEY), encoder.training(KEY)(x), rtol=1e-5, atol=1e-6)
    assert np.abs(run(encoder, KEY) - run(encoder, random.key(1))).max() > 0.01


def test_a_block_without_a_context_refuses_one_and_the_other_way_round() -> None:
    x = tnp.asarray(numbers("x", (2, 5, 8)), "float32")
    with pytest.raises(errors.ArgumentError, match=r"TransformerBlock at .* takes no context"):
        nn.TransformerBlock(8, 2, key=KEY)(x, x)
    with pytest.raises(errors.ArgumentError, match=r"TransformerBlock at .* takes a context"):
        nn.TransformerBlock(8, 2, cross=True, key=KEY)(x)


class GPT(nn.Module):
    def __init__(self, vocab: int, dim: int = 16, heads: int = 2, depth: int = 2, *, key: Any) -> None:
        k = nn.Keys(key)
        self.embed = nn.Embedding(vocab, dim, scale=0.02, key=next(k))
        self.blocks = [nn.TransformerBlock(dim, heads, rope=1e4, key=next(k)) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim)

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, causal=True)
        return self.embed.attend(self.norm(x))

    def decode(self, tokens: Any, caches: Any) -> Any:
        x, kept = self.embed(tokens), []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block(x, causal=True, cache=cache)
            kept.append(cache)
        return self.embed.attend(self.norm(x)), kept


@tracer.jit(static_argnames=("count", "greedy"))
def generate(model: Any, prompt: Any, key: Any, count: int, greedy: bool = False) -> Any:
    caches = [b.attention.cache(len(prompt), prompt.shape[1] + count) for b in model.blocks]
    logits, caches = model.decode(prompt, caches)

    def one(carry: Any, key: Any) -> Any:
        last, caches = carry
        token = (last.argmax(-1) if greedy else random.categorical(key, last)).astype("int32")
        logits, caches = model.decode(token[:, None], caches)
        return (logits[:, -1], caches), token

    return lax.scan(one, (logits[:, -1], caches), random.split(key, count))[1].T


def test_gpt_with_a_cache_is_the_whole_and_generates_in_one_program() -> None:
    model = nn.cast(GPT(11, key=KEY), "float64")
    prompt = tnp.asarray([[1, 2, 3], [4, 5, 6]], "int32")
    found = generate(model, prompt, KEY, count=4, greedy=True)
    tokens = prompt
    for _ in range(4):
        tokens = tnp.concatenate([tokens, model(tokens)[:, -1:].argmax(-1).astype("int32")], axis=1)
    np.testing.assert_array_equal(found, tokens[:, 3:])
    whole = model(tokens)
    logits, _ = model.decode(tokens, [b.attention.cache(2, 7) for b in model.blocks])
    np.testing.assert_allclose(logits, whole, rtol=1e-12, atol=1e-13)
    drawn = generate(model, prompt, KEY, count=4)
    assert drawn.shape == (2, 4)
    assert 0 <= drawn.min() <= drawn.max() < 11


def test_gpt_learns_to_repeat() -> None:
    model = GPT(5, key=KEY)
    tokens = tnp.asarray(np.tile([[0, 1, 2, 3, 4]], (2, 3)), "int32")

    def loss(model: Any) -> Any:
        logits = nn.log_softmax(model(tokens[:, :-1]))
        return -tnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1).mean()

    @tracer.jit
    def step(model: Any) -> Any:
        value, grads = tracer.value_and_grad(loss)(model)
        return value, tracer.tree.map(lambda p, g: p - 0.5 * g, model, grads)

    first, model = step(model)
    for _ in range(50):
        last, model = step(model)
    assert last < 0.2 * first
    found = generate(model, tokens[:, :3], KEY, count=4, greedy=True)
    np.testing.assert_array_equal(found[0], [3, 4, 0, 1])


class CharLSTM(nn.Module):
    def __init__(self, vocab: int, dim: int, hidden: int, *, key: Any) -> None:
        k = nn.Keys(key)
        self.embed, self.lstm = nn.Embedding(vocab, dim, key=next(k)), nn.LSTM(dim, hidden, key=next(k))
        self.head = nn.Linear(hidden, vocab, key=next(k))

    def __call__(self, tokens: Any, state: Any = None) -> Any:
        ys, state = self.lstm(self.embed(tokens), state)
        return self.head(ys), state


def test_a_character_lstm_learns_and_reads_on_from_its_state() -> None:
    text = "to be or not to be, that is the question"
    letters = sorted(set(text))
    tokens = tnp.asarray([[letters.index(c) for c in text]], "int32")
    model = CharLSTM(len(letters), 8, 32, key=KEY)

    def loss(model: Any) -> Any:
        logits = nn.log_softmax(model(tokens[:, :-1])[0])
        return -tnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1).mean()

    @tracer.jit
    def step(model: Any) -> Any:
        value, grads = tracer.value_and_grad(loss)(model)
        return value, tracer.tree.map(lambda p, g: p - 2.0 * g, model, grads)

    first, model = step(model)
    for _ in range(120):
        last, model = step(model)
    assert last < 0.25 * first
    whole, _ = model(tokens)
    start, state = model(tokens[:, :10])
    rest, _ = model(tokens[:, 10:], state)
    np.testing.assert_allclose(np.concatenate([start, rest], axis=1), whole, rtol=1e-3, atol=1e-4)


class CNN(nn.Module):
    def __init__(self, *, key: Any) -> None:
        k = nn.Keys(key)
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1, key=next(k)), nn.BatchNorm(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1, key=next(k)), nn.BatchNorm(64)
        self.drop, self.head = nn.Dropout(0.25), nn.Linear(64 * 4, 10, key=next(k))

    def __call__(self, x: Any) -> Any:
        x = nn.max_pool(nn.relu(self.norm1(self.conv1(x))), 2)
        x = nn.max_pool(nn.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.drop(x.reshape(len(x), -1)))


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_perceptron_and_a_convolutional_model_fit_a_batch(kind: str) -> None:
    model: Any = nn.MLP([64, 128, 10], key=KEY) if kind == "mlp" else CNN(key=KEY)
    x = random.normal(KEY, (8, 1, 8, 8), "float32")
    x = x.reshape(8, 64) if kind == "mlp" else x
    labels = tnp.arange(8)

    def loss(model: Any, key: Any) -> Any:
        model = model.training(key)
        logits = nn.log_softmax(model(x))
        return -logits[tnp.arange(8), labels].mean(), model.inference()

    @tracer.jit
    def step(model: Any, key: Any) -> Any:
        (value, model), grads = tracer.value_and_grad(loss, has_aux=True)(model, key)
        new = tracer.tree.map(lambda p, g: p - 0.1 * g, nn.trained(model), grads)
        return value, nn.merged(model, new)

    first, model = step(model, KEY)
    for n in range(15):
        last, model = step(model, random.fold_in(KEY, n))
    assert last < 0.5 * first
    assert nn.count(model) == (9610 if kind == "mlp" else 21_578)
