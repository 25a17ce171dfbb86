"""Recurrent layers beside PyTorch's in float64, with gradients; and jitted, batched, at edges, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.torch_numbers import Stored, numbers
from tracer import errors, nn, random

KEY = random.key(0)
STORED = Stored()
ARRAYS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def torch_names(layer: Any) -> list[tuple[int, str, str]]:
    """Cells by number, their arrays, and PyTorch's names of these."""
    if not hasattr(layer, "cells"):
        return [(0, name, name) for name in ARRAYS if getattr(layer, name) is not None]
    directions = 2 if layer.bidirectional else 1
    return [
        (n, name, f"{name}_l{n // directions}" + "_reverse" * (n % directions))
        for n, cell in enumerate(layer.cells)
        for name in ARRAYS
        if getattr(cell, name) is not None
    ]


def filled(layer: Any) -> Any:
    """The layer with numbers that belong to PyTorch's names."""
    changed = list(getattr(layer, "cells", [layer]))
    for n, name, torch_name in torch_names(layer):
        value = numbers(torch_name, getattr(changed[n], name).shape)
        changed[n] = changed[n].replace(**{name: tnp.asarray(value)})
    return layer.replace(cells=changed) if hasattr(layer, "cells") else changed[0]


def weighed(outputs: list[Any]) -> Any:
    return sum((out * numbers(f"out{n}", out.shape)).sum() for n, out in enumerate(outputs))


def compare(case: dict[str, Any], group: str, n: int, layer: Any, call: dict[str, Any], inputs: dict[str, Any]) -> None:
    def outputs(layer: Any, inputs: Any) -> list[Any]:
        state = (inputs["h"], inputs["c"]) if "c" in inputs else inputs.get("h")
        found = layer(inputs["x"], state, **call)
        if group == "cell":
            return [*found] if isinstance(found, tuple) else [found]
        ys, last = found
        return [ys, *last] if isinstance(last, tuple) else [ys, last]

    stored = STORED.results(group, n)

    def run(layer: Any, inputs: Any) -> Any:
        by = tracer.grad(lambda *args: weighed(outputs(*args)), argnums=(0, 1))
        return outputs(layer, inputs), by(layer, inputs)

    found, (by_weights, by_inputs) = (run if n % 3 else tracer.jit(run))(filled(layer), inputs)
    got = {f"out{i}": out for i, out in enumerate(found)} | {f"grad {name}": x for name, x in by_inputs.items()}
    cells = by_weights.cells if group == "recurrent" else [by_weights]
    got |= {f"grad {torch_name}": getattr(cells[i], name) for i, name, torch_name in torch_names(layer)}
    assert got.keys() == stored.keys()
    for name, expected in stored.items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-12, atol=1e-13, err_msg=f"{name} {case}")


@pytest.mark.parametrize("n", range(len(STORED.cases["recurrent"])))
def test_values_and_gradients_are_pytorch_s(n: int) -> None:
    case = STORED.cases["recurrent"][n]
    shape = (case["layers"] * (1 + case["bidirectional"]), case["b"], case["hidden"])
    names = ["x", *(["h"] + ["c"] * (case["kind"] == "LSTM")) * case["state"]]
    inputs = {name: tnp.asarray(numbers(name, shape)) for name in names}
    inputs["x"] = tnp.asarray(numbers("x", (case["b"], case["t"], case["n"])))
    options = {"activation": nn.relu} if case["relu"] else {}
    layer = getattr(nn, case["kind"])(
        case["n"], case["hidden"], case["layers"], bidirectional=case["bidirectional"], bias=case["bias"], key=KEY,
        dtype="float64", **options,
    )  # fmt: skip
    compare(case, "recurrent", n, layer, {} if case["lengths"] is None else {"lengths": case["lengths"]}, inputs)


@pytest.mark.parametrize("n", range(len(STORED.cases["cell"])))
def test_cells_are_pytorch_s(n: int) -> None:
    case = STORED.cases["cell"][n]
    names = ["h", "c"] if case["kind"] == "LSTMCell" else ["h"]
    inputs = {name: tnp.asarray(numbers(name, (case["b"], case["hidden"]))) for name in names}
    inputs["x"] = tnp.asarray(numbers("x", (case["b"], case["n"])))
    layer = getattr(nn, case["kind"])(case["n"], case["hidden"], bias=case["bias"], dtype="float64", key=KEY)
    compare(case, "cell", n, layer, {}, inputs)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_reading_from_the_end_is_reading_the_flipped_sequence(kind: Any) -> None:
    layer = kind(2, 3, layers=2, key=KEY)
    x = tnp.asarray(numbers("x", (2, 4, 2)), "float32")
    ys, last = layer(x, reverse=True)
    flipped, expected = layer(x[:, ::-1])
    np.testing.assert_array_equal(ys, flipped[:, ::-1])
    for found, wanted in zip(tracer.tree.leaves(last), tracer.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_sequence_with_a_length_is_the_sequence_cut_there_in_both_directions() -> None:
    layer = nn.LSTM(2, 3, layers=2, bidirectional=True, key=KEY)
    x = tnp.asarray(numbers("x", (3, 5, 2)), "float32")
    ys, last = layer(x, lengths=tnp.asarray([0, 3, 5]))
    for part in (ys[0], ys[1, 3:], last[0][:, 0]):
        assert not np.any(part)
    cut, expected = layer(x[1:2, :3])
    np.testing.assert_allclose(ys[1, :3], cut[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(last[1][:, 1], expected[1][:, 0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(4, 2), (1, 1, 2), (0, 4, 2), (3, 0, 2), (2, 3, 4, 2)])
def test_any_number_of_leading_axes_and_empty_ones(shape: tuple[int, ...]) -> None:
    layer = nn.GRU(2, 3, bidirectional=True, key=KEY)
    x = tnp.asarray(numbers("x", shape), "float32")
    ys, last = tracer.jit(lambda layer, x: layer(x))(layer, x)
    assert (ys.shape, last.shape) == ((*shape[:-1], 6), (2, *shape[:-2], 3))
    assert last.shape == layer.init(shape[:-2]).shape
    assert ys.dtype == last.dtype == "float32"
    if x.ndim == 4:
        one, _ = layer(x[1, 2])
        np.testing.assert_allclose(ys[1, 2], one, rtol=1e-5, atol=1e-7)


def test_a_state_that_is_passed_on_continues_the_sequence() -> None:
    layer = nn.LSTM(2, 3, layers=2, key=KEY)
    x = tnp.asarray(numbers("x", (2, 6, 2)), "float32")
    whole, _ = layer(x)
    first, state = layer(x[:, :4])
    second, _ = layer(x[:, 4:], state)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, rtol=1e-5, atol=1e-7)


def test_ensembles_are_vmapped_and_bfloat16_stays() -> None:
    models = tracer.vmap(lambda key: nn.GRU(2, 3, key=key))(random.split(KEY, 4))
    x = tnp.asarray(numbers("x", (2, 5, 2)), "float32")
    ys, _ = tracer.vmap(lambda model: model(x))(models)
    third, _ = tracer.tree.map(lambda leaf: leaf[2], models)(x)
    np.testing.assert_allclose(ys[2], third, rtol=1e-5, atol=1e-7)
    narrow, state = nn.cast(nn.LSTM(2, 3, key=KEY), "bfloat16")(x.astype("bfloat16"))
    assert narrow.dtype == state[0].dtype == state[1].dtype == "bfloat16"
    wide, _ = nn.GRU(2, 3, dtype="float64", key=KEY)(x)  # narrower inputs are promoted
    assert wide.dtype == "float64"


def test_dropout_stands_between_layers_in_training_copies_alone() -> None:
    layer = nn.RNN(2, 8, layers=2, dropout=0.5, key=KEY)
    x = tnp.asarray(numbers("x", (2, 5, 2)), "float32")
    plain, _ = layer(x)
    np.testing.assert_array_equal(plain, nn.RNN(2, 8, layers=2, key=KEY)(x)[0])
    first, _ = layer.training(KEY)(x)
    assert np.abs(first - plain).max() > 0.01
    np.testing.assert_array_equal(first, tracer.jit(lambda m, k: m.training(k)(x)[0])(layer, KEY))
    np.testing.assert_array_equal(layer(x, key=KEY)[0], layer(x, key=KEY)[0])
    single = nn.RNN(2, 8, dropout=0.5, key=KEY)
    np.testing.assert_array_equal(single.training(KEY)(x)[0], single(x)[0])


def test_weights_are_within_the_square_root_of_the_size() -> None:
    for name, weight in nn.paths(nn.LSTM(4, 25, layers=2, key=KEY)).items():
        assert 0.15 < np.abs(weight).max() <= 0.2, name
    assert nn.LSTM(3, 4, bias=False, key=KEY).cells[0].bias_hh is None


class Tagger(nn.Module):
    def __init__(self, *, key: Any) -> None:
        self.lstm = nn.LSTM(3, 4, key=key)

    def __call__(self, x: Any, *args: Any, **call: Any) -> Any:
        return self.lstm(x, *args, **call)[0]


def test_errors_name_the_layer_what_it_takes_and_what_came() -> None:
    model, x = Tagger(key=KEY), np.ones((2, 5, 3), "float32")
    with pytest.raises(errors.ShapeError, match=r"LSTMCell .lstm.cells\[0\]: the last axis has 2 elements, .* takes 3"):
        model(x[..., :2])
    with pytest.raises(errors.ShapeError, match=r"LSTM .lstm takes \[..., t, n\]"):
        model(x[0, 0])
    with pytest.raises(errors.DTypeError, match="the input is wider than the layer"):
        model(x.astype("float64"))
    with pytest.raises(errors.ArgumentError, match=r"the state is a pair \(h, c\)"):
        model(x, tnp.zeros((1, 2, 4), "float32"))
    with pytest.raises(errors.ShapeError, match=r"the state is \[1, 2, 4\]\n  got f32\[2,4\]"):
        model(x, (np.zeros((2, 4), "float32"),) * 2)
    with pytest.raises(errors.DTypeError, match="the state is float32"):
        model(x, (np.zeros((1, 2, 4)),) * 2)
    with pytest.raises(errors.ShapeError, match=r"lengths are integers \[2\], one for each sequence"):
        model(x, lengths=[1, 2, 3])
    with pytest.raises(errors.ArgumentError, match="reads both ways already"):
        nn.GRU(3, 4, bidirectional=True, key=KEY)(x, reverse=True)
    with pytest.raises(errors.ArgumentError, match="there must be 1 layer or more"):
        nn.RNN(3, 4, 0, key=KEY)
    with pytest.raises(errors.ModuleError, match="draws"):
        nn.RNN(3, 4, 2, dropout=0.5, key=KEY).training()(x)


def test_derivatives_of_second_order_and_in_both_modes() -> None:
    layer = nn.GRU(2, 2, bidirectional=True, dtype="float64", key=KEY)
    x = tnp.asarray(numbers("x", (2, 3, 2)))
    tracer.test_util.check_grads(lambda x: layer(x, lengths=[2, 3])[0], (x,), order=2, modes=["fwd", "rev"])
