"""Names of PyTorch's state dicts: each of its arrays gets to the layer that computes with it, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.nn.torch_numbers import numbers
from tracer import errors, io, nn, random, tree
from tracer.io.state_dicts import gathered, places, scattered

KEY = random.key(0)
KEYS = nn.Keys(KEY)

LINEAR = {"weight": (2, 3), "bias": (2,)}
ATTENTION = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4), "out_proj.bias": (4,)}
NORM = {"weight": (4,), "bias": (4,)}
FEEDS = {"linear1.weight": (8, 4), "linear1.bias": (8,), "linear2.weight": (4, 8), "linear2.bias": (4,)}
LSTM = {"weight_ih": (8, 3), "weight_hh": (8, 2), "bias_ih": (8,), "bias_hh": (8,)}


def under(start: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"{start}.{name}": shape for name, shape in shapes.items()}


def encoder_layer(start: str) -> dict[str, tuple[int, ...]]:
    return under(start, under("self_attn", ATTENTION) | FEEDS | under("norm1", NORM) | under("norm2", NORM))


def decoder_layer(start: str) -> dict[str, tuple[int, ...]]:
    return encoder_layer(start) | under(start, under("multihead_attn", ATTENTION) | under("norm3", NORM))


def attention(**options: Any) -> Any:
    return nn.MultiheadAttention(4, 2, key=KEY, **options)


# Maker of a model, shapes of PyTorch's state dict, and for some paths of the model: name and rows of the dict's array
CASES: dict[str, tuple[Callable[[], Any], dict[str, tuple[int, ...]], dict[str, tuple[str, slice | None]]]] = {
    "Linear": (lambda: nn.Linear(3, 2, key=KEY), LINEAR, {"weight": ("weight", None)}),
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(3, 2, key=next(KEYS)), nn.relu, nn.Sequential(nn.Linear(2, 3, key=next(KEYS)))),
        under("0", LINEAR) | {"2.0.weight": (3, 2), "2.0.bias": (3,)},
        {"layers[2].layers[0].bias": ("2.0.bias", None)},
    ),
    "BatchNorm": (lambda: nn.BatchNorm(4), NORM | {"running_mean": (4,), "running_var": (4,)}, {}),
    "MultiheadAttention": (
        attention, ATTENTION,
        {"k.weight": ("in_proj_weight", slice(4, 8)), "v.bias": ("in_proj_bias", slice(8, 12))},
    ),
    "MultiheadAttention of contexts": (
        lambda: attention(context_dim=3),
        {"q_proj_weight": (4, 4), "k_proj_weight": (4, 3), "v_proj_weight": (4, 3), "in_proj_bias": (12,),
         "out_proj.weight": (4, 4), "out_proj.bias": (4,)},
        {"k.weight": ("k_proj_weight", None), "k.bias": ("in_proj_bias", slice(4, 8))},
    ),
    "MultiheadAttention with shared heads, which PyTorch has not": (
        lambda: attention(kv_heads=1, bias=False),
        {"q.weight": (4, 4), "k.weight": (2, 4), "v.weight": (2, 4), "out.weight": (4, 4)},
        {"k.weight": ("k.weight", None)},
    ),
    "LSTM": (
        lambda: nn.LSTM(3, 2, 2, bidirectional=True, key=KEY),
        {f"{name}_l{layer}{way}": (shape[0], 4) if layer and name == "weight_ih" else shape
         for layer in range(2) for way in ("", "_reverse") for name, shape in LSTM.items()},
        {"cells[1].weight_ih": ("weight_ih_l0_reverse", None), "cells[2].bias_hh": ("bias_hh_l1", None)},
    ),
    "SpectralNorm": (
        lambda: nn.SpectralNorm(nn.Linear(3, 2, key=next(KEYS)), key=next(KEYS)),
        {"bias": (2,), "parametrizations.weight.original": (2, 3), "parametrizations.weight.0._u": (2,),
         "parametrizations.weight.0._v": (3,)},
        {"layer.weight": ("parametrizations.weight.original", None), "u": ("parametrizations.weight.0._u", None)},
    ),
    "WeightNorm": (
        lambda: nn.Sequential(nn.WeightNorm(nn.Linear(3, 2, key=KEY))),
        under("0", {"bias": (2,), "parametrizations.weight.original0": (2, 1),
                    "parametrizations.weight.original1": (2, 3)}),
        {"layers[0].g": ("0.parametrizations.weight.original0", None)},
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(4, 2, 2, hidden=8, stacked=False, remat=True, key=KEY),
        encoder_layer("layers.0") | encoder_layer("layers.1") | under("norm", NORM),
        {"blocks[1].module.mlp.up.weight": ("layers.1.linear1.weight", None)},
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(4, 2, 2, hidden=8, stacked=False, key=KEY),
        decoder_layer("layers.0") | decoder_layer("layers.1") | under("norm", NORM),
        {"blocks[0].norm_cross.bias": ("layers.0.norm2.bias", None),
         "blocks[0].norm2.bias": ("layers.0.norm3.bias", None),
         "blocks[1].cross.q.weight": ("layers.1.multihead_attn.in_proj_weight", slice(0, 4))},
    ),
}  # fmt: skip


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    return {name: numbers(name, shape).astype("float32") for name, shape in shapes.items()}


def written(model: Any) -> dict[str, Any]:
    return scattered(zip(places(model, None), map(np.asarray, tree.leaves(model)), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_arrays_go_where_they_are_used_and_back(name: str) -> None:
    make, shapes, spots = CASES[name]
    model, arrays = make(), drawn(shapes)
    loaded = io.load_weights(model, arrays)
    for path, (theirs, rows) in spots.items():
        np.testing.assert_array_equal(nn.paths(loaded)[path], arrays[theirs][slice(None) if rows is None else rows])
    found = written(loaded)
    assert found.keys() == arrays.keys()
    for theirs, array in arrays.items():
        np.testing.assert_array_equal(found[theirs], array, err_msg=theirs)


@pytest.mark.parametrize("kind", [nn.TransformerEncoder, nn.TransformerDecoder])
def test_stacks_take_and_give_the_arrays_of_lists(kind: Any) -> None:
    name = kind.__name__
    arrays = drawn(CASES[name][1])
    apart = io.load_weights(kind(4, 2, 2, hidden=8, stacked=False, key=KEY), arrays)
    stacked = io.load_weights(kind(4, 2, 2, hidden=8, key=KEY), arrays)
    np.testing.assert_array_equal(stacked.blocks.layers.attention.v.weight[1], apart.blocks[1].attention.v.weight)
    assert all(np.array_equal(array, arrays[theirs]) for theirs, array in written(stacked).items())


def test_files_of_tracer_keep_its_own_names(tmp_path: Path) -> None:
    for n, (make, _, _) in enumerate(CASES.values()):
        model = make()
        io.save(tmp_path / f"{n}.safetensors", model)
        blank = tree.map(lambda leaf: leaf * 0, model)
        loaded = io.load_weights(blank, tmp_path / f"{n}.safetensors")
        for one, other in zip(tree.leaves(loaded), tree.leaves(model), strict=True):
            np.testing.assert_array_equal(one, other)
    stacked = nn.TransformerEncoder(4, 2, 2, hidden=8, key=KEY)
    io.save(tmp_path / "stacked", stacked)
    again = io.load_weights(tree.map(lambda leaf: leaf * 0, stacked), tmp_path / "stacked")
    np.testing.assert_array_equal(again.blocks.layers.mlp.up.weight, stacked.blocks.layers.mlp.up.weight)


def test_hooks_of_earlier_versions_and_counts_of_batches() -> None:
    spectral = CASES["SpectralNorm"][0]()
    arrays = drawn({"bias": (2,), "weight_orig": (2, 3), "weight_u": (2,), "weight_v": (3,)})
    loaded = io.load_weights(spectral, arrays)
    np.testing.assert_array_equal(loaded.layer.weight, arrays["weight_orig"])
    np.testing.assert_array_equal(loaded.v, arrays["weight_v"])
    normed = nn.WeightNorm(nn.Linear(3, 2, key=KEY))
    arrays = drawn({"bias": (2,), "weight_g": (2, 1), "weight_v": (2, 3)})
    np.testing.assert_array_equal(io.load_weights(normed, arrays).layer.weight, arrays["weight_v"])
    batched = CASES["BatchNorm"][0]()
    arrays = drawn(CASES["BatchNorm"][1])
    io.load_weights(batched, arrays | {"num_batches_tracked": np.asarray(3)})


def test_matrices_of_hugging_faces_conv1d_are_turned() -> None:
    arrays = drawn({"h.attn.c_attn.weight": (4, 12), "h.attn.c_attn.bias": (12,), "h.attn.c_proj.weight": (4, 4),
                    "h.attn.c_proj.bias": (4,)})  # fmt: skip
    rename = {"h.attn": "attention", "c_attn.weight": "in_proj_weight", "c_attn.bias": "in_proj_bias", "c_proj": "out"}
    loaded = io.load_weights({"attention": attention()}, arrays, rename=rename, transposed=("c_attn", "c_proj"))
    np.testing.assert_array_equal(loaded["attention"].k.weight, arrays["h.attn.c_attn.weight"].T[4:8])
    np.testing.assert_array_equal(loaded["attention"].out.weight, arrays["h.attn.c_proj.weight"].T)


def test_weights_below_a_correction_of_low_rank() -> None:
    plain = nn.MLP([3, 4, 2], key=KEY)
    tuned = nn.at(plain, "layers[*]").map(lambda layer: nn.LoRA(layer, 2, key=next(KEYS)))
    arrays = {path.replace("[", ".").replace("]", ""): np.asarray(x) + 1 for path, x in nn.paths(plain).items()}
    loaded = io.load_weights(tuned, arrays, strict=False)
    np.testing.assert_array_equal(loaded.layers[0].linear.weight, arrays["layers.0.weight"])
    assert loaded.layers[0].a is tuned.layers[0].a


def test_what_does_not_fit_is_told_by_name() -> None:
    arrays = drawn(ATTENTION)
    with pytest.raises(errors.CheckpointError, match=r"in_proj_bias has another shape\n  expected 12 rows, got \[13\]"):
        io.load_weights(attention(), arrays | {"in_proj_bias": np.zeros(13)})
    with pytest.raises(errors.CheckpointError, match=r"missing there: out_proj\.bias"):
        io.load_weights(attention(), {name: x for name, x in arrays.items() if name != "out_proj.bias"})
    with pytest.raises(errors.CheckpointError, match=r"only there: bias_k"):
        io.load_weights(attention(), arrays | {"bias_k": np.zeros(4)})
    first = next(iter(places(attention(), arrays)))
    assert gathered(first, arrays).shape == (4, 4)
