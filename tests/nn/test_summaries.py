"""Summaries: layers with types and sizes, folds, totals, and that nothing is allocated or run."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, nn, random
from tracer.runtime.compile import compile as compiling

KEY = random.key(0)
Struct = tracer.ShapeDtypeStruct


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


def test_a_convolutional_model_has_a_line_for_every_layer() -> None:
    lines = str(nn.summary(CNN(key=KEY), Struct((64, 1, 8, 8), "float32"))).splitlines()
    assert lines[:7] == [
        "model  CNN        f32[64,1,8,8]  → f32[64,10]      21,578",
        "conv1  Conv2d     f32[64,1,8,8]  → f32[64,32,8,8]     320",
        "norm1  BatchNorm  f32[64,32,8,8] → f32[64,32,8,8]      64",
        "conv2  Conv2d     f32[64,32,4,4] → f32[64,64,4,4]  18,496",
        "norm2  BatchNorm  f32[64,64,4,4] → f32[64,64,4,4]     128",
        "drop   Dropout    f32[64,256]    → f32[64,256]          0",
        "head   Linear     f32[64,256]    → f32[64,10]       2,570",
    ]
    start, peak = lines[7].split("; forward ")
    assert start == "21,578 trained, 192 state, 85.0 KiB"
    flops = int(peak.split(" flops")[0].replace(",", ""))
    assert 2 * 64 * (64 * 288 + 16 * 18432 + 2560) < flops < 1.1 * 2 * 64 * (64 * 288 + 16 * 18432 + 2560)
    assert len(lines) == 8


class Blocks(nn.Module):
    def __init__(self, *, key: Any) -> None:
        k = nn.Keys(key)
        self.blocks = [nn.Residual(nn.Linear(8, 8, key=next(k)), nn.relu) for _ in range(4)]
        self.blocks.append(nn.Residual(nn.Linear(8, 8, bias=False, key=next(k))))
        self.unused = nn.Linear(2, 2, key=next(k))

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x, [x, x]


def test_equal_neighbours_share_a_line_and_unused_layers_have_no_types() -> None:
    model = nn.at(Blocks(key=KEY), "unused").freeze()
    found = nn.summary(model, np.ones((3, 8), "float32"))
    assert [row[:2] for row in found.rows] == [
        ("model", "Blocks"), ("blocks[0…3]", "Residual ×4"), ("blocks[0].layers[0]", "Linear"),
        ("blocks[4]", "Residual"), ("blocks[4].layers[0]", "Linear"), ("unused", "Linear"),
    ]  # fmt: skip
    assert found.rows[1][4] == "72 each"
    assert found.rows[0][2:] == ("f32[3,8]", "f32[3,8], f32[3,8], …", "352")
    assert found.rows[-1][2:] == ("", "", "0")
    assert found.totals[0].startswith("352 trained, 6 frozen, 1,432 B; forward ")
    shallow = nn.summary(model, np.ones((3, 8), "float32"), depth=1)
    assert [row[0] for row in shallow.rows] == ["model", "blocks[0…3]", "blocks[4]", "unused"]


@pytest.mark.parametrize("remat", [False, True])
def test_layers_of_a_stack_are_shown_by_what_one_of_them_maps(remat: bool) -> None:
    model = nn.TransformerEncoder(8, 2, 5, hidden=16, remat=remat, key=KEY)
    rows = {row[0]: row[1:] for row in nn.summary(model, Struct((2, 3, 8), "float32"), depth=4).rows}
    assert rows["blocks.layers"] == ("TransformerBlock", "f32[2,3,8]", "f32[2,3,8]", f"{nn.count(model) - 16:,}")
    assert rows["blocks.layers.mlp.up"] == ("Linear", "f32[2,3,8]", "f32[2,3,16]", "720")


def test_nothing_is_allocated_or_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a program runs")

    model = tracer.eval_shape(functools.partial(nn.MLP, [10_000, 1_000_000, 10]), key=KEY)
    monkeypatch.setattr(compiling.Compiled, "call", refuse)
    found = nn.summary(model, Struct((4, 10_000), "float32"))
    assert found.rows[0][2:] == ("f32[4,10000]", "f32[4,10]", "10,011,000,010")
    assert found.totals[0].startswith("10,011,000,010 trained, 38,188.9 MiB; forward 80,08")


def test_a_training_step_adds_its_cost_and_memory() -> None:
    model, x = nn.MLP([64, 128, 10], key=KEY), Struct((32, 64), "float32")

    @tracer.jit
    def step(model: Any, x: Any) -> Any:
        grads = tracer.grad(lambda m: tnp.square(m(x)).sum())(model)
        return tracer.tree.map(lambda p, g: p - 0.1 * g, model, grads)

    found = nn.summary(model, x, step=(step, model, x))
    lowered = step.lower(model, x)
    assert len(found.totals) == 3
    assert found.totals[1].startswith(f"training step {lowered.cost().flops:,} flops; peak ")
    assert found.totals[2].startswith("arguments 45.5 KiB, results 37.5 KiB beside donated ones, temporaries ")
    plain = nn.summary(model, x, step=(step.__wrapped__, model, x))  # a function that is not jitted yet
    assert plain.totals[1].split(" flops")[0] == found.totals[1].split(" flops")[0]


def test_notebooks_show_a_table() -> None:
    text = nn.summary(nn.MLP([4, 2], key=KEY), Struct((3, 4), "float32"))._repr_html_()
    names = re.findall(r"<th[^>]*>(\w+)</th>", text)
    assert names == ["layer", "class", "input", "result", "trained"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", text)[-5:] == ["layers[0]", "Linear", "f32[3,4]", "f32[3,2]", "10"]
    assert text.count("<tr>") == 3
    assert "10 trained, 40 B" in text


def test_a_model_called_wrongly_fails_as_it_does_in_a_call_and_leaves_no_record() -> None:
    model = nn.MLP([4, 2], key=KEY)
    with pytest.raises(errors.ShapeError, match=r"Linear .layers\[0\]: the last axis has 5 elements"):
        nn.summary(model, Struct((3, 5), "float32"))
    assert model(np.ones((3, 4), "float32")).shape == (3, 2)
    with pytest.raises(errors.ArgumentError, match=r"nn.summary at .* takes a module"):
        nn.summary([model], Struct((3, 4), "float32"))  # type: ignore[arg-type]
