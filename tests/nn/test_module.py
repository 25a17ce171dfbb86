"""Modules: what is a child, a setting, a role; closing, training copies, selections, and how transforms see them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import checkpoint, errors, grad, jit, lax, nn, random, tree, value_and_grad, vmap

KEY = random.key(0)
X = np.linspace(-1, 1, 24, dtype="float32").reshape(6, 4)


class Net(nn.Module):
    """Children: layers and functions in a list, a dict, state, integers. Settings: a number, a function."""

    def __init__(self, *, key: Any, scale: float = 2.0) -> None:
        keys = nn.Keys(key)
        self.scale = scale
        self.activation = nn.relu
        self.layers = [nn.Linear(4, 8, key=next(keys)), nn.tanh, nn.Dropout(0.5)]
        self.heads = {"a": nn.Linear(8, 2, key=next(keys)), "b": None}
        self.order = tnp.asarray([1, 0])
        self.calls = nn.State(tnp.asarray(0))

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        if self.is_training:
            self.update(calls=self.calls + 1)
        return self.scale * self.activation(self.heads["a"](x)[..., self.order])


def loss(model: Net, x: Any, key: Any) -> Any:
    model = model.training(key)
    return model(x).sum(), model.inference()


def test_children_and_settings_are_told_apart_by_value() -> None:
    net = Net(key=KEY)
    assert net.layout.names == ("layers", "heads", "order", "calls")
    assert net.layout.settings == {"scale": 2.0, "activation": nn.relu}
    assert [role.value for role in net.layout.roles] == ["tree", "tree", "param", "state"]
    assert list(nn.paths(net)) == [
        "layers[0].weight", "layers[0].bias", "heads['a'].weight", "heads['a'].bias", "order", "calls",
    ]  # fmt: skip
    assert nn.count(net) == 8 * 4 + 8 + 2 * 8 + 2
    assert repr(net) == (
        "Net(order=i64[2], calls=i64*[], scale=2.0, activation=relu\n"
        "  layers[0]: Linear(weight=f32[8,4], bias=f32[8])\n"
        "  layers[1]: tanh\n"
        "  layers[2]: Dropout(rate=0.5, axes=None)\n"
        "  heads['a']: Linear(weight=f32[2,8], bias=f32[2])\n"
        "  heads['b']: None\n"
        ")"
    )


def test_equal_models_have_one_structure_and_other_settings_another() -> None:
    one, same, other = Net(key=KEY), Net(key=random.key(1)), Net(key=KEY, scale=3.0)
    assert one.layout is same.layout
    assert tree.structure(one) == tree.structure(same) != tree.structure(other)
    traced = []

    @jit
    def f(model: Net, x: Any) -> Any:
        traced.append(model.scale)
        return model(x)

    f(one, X), f(same, X)
    np.testing.assert_allclose(f(other, X), 1.5 * f(one, X), rtol=1e-6)
    assert traced == [2.0, 3.0]


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_gradients_skip_state_and_integers_and_training_copies_write(way: Any) -> None:
    net = Net(key=KEY)
    (_, written), slopes = way(value_and_grad(loss, has_aux=True))(net, X, random.key(1))
    assert (int(net.calls), int(written.calls)) == (0, 1)
    assert slopes.calls is slopes.order is None
    assert slopes.layers[0].weight.shape == (8, 4)
    assert slopes.layout is net.layout
    assert tree.structure(nn.merged(net, slopes)) == tree.structure(net)


def test_gradients_are_those_of_the_same_arrays_in_a_dict() -> None:
    layer = nn.Linear(4, 3, key=KEY)

    def of_arrays(arrays: dict[str, Any]) -> Any:
        return tnp.sum(tnp.sin(X @ arrays["weight"].T + arrays["bias"]))

    expected = grad(of_arrays)(nn.paths(layer))
    slopes = grad(lambda layer: tnp.sum(tnp.sin(layer(X))))(layer)
    for name, slope in nn.paths(slopes).items():
        np.testing.assert_allclose(slope, expected[name], rtol=1e-6)


def test_frozen_parts_have_no_gradient_and_write_no_state() -> None:
    net = nn.at(Net(key=KEY), "**").freeze()
    assert nn.count(net) == 0
    assert not tree.leaves(nn.trained(net))
    assert not tree.leaves(grad(lambda model: model(X).sum())(net))
    assert int(net.training(KEY).inference().calls) == 0
    half = nn.at(Net(key=KEY), "layers[*]").freeze()
    slopes = jit(grad(lambda model: model(X).sum()))(half)
    assert slopes.layers[0].weight is None
    assert slopes.heads["a"].weight.shape == (2, 8)
    assert nn.at(half, nn.Linear).thaw().layers[0].layout is Net(key=KEY).layers[0].layout
    np.testing.assert_array_equal(half(X), Net(key=KEY)(X))


def test_selections() -> None:
    net = Net(key=KEY)
    assert nn.at(net, "**.bias").paths() == ["layers[0].bias", "heads['a'].bias"]
    assert nn.at(net, nn.Linear).paths() == ["layers[0]", "heads['a']"]
    assert nn.at(net, "layers[*]").paths() == ["layers[0]", "layers[1]", "layers[2]"]
    assert nn.at(net, lambda path, part: path == "order").get()[0] is net.order
    doubled = nn.at(net, "**.weight").map(lambda w: 2 * w)
    np.testing.assert_array_equal(doubled.layers[0].weight, 2 * net.layers[0].weight)
    assert doubled.layers[0].bias is net.layers[0].bias
    mask = nn.at(net, "**.weight").mask()
    assert tree.structure(mask) == tree.structure(net)
    assert tree.leaves(mask) == [True, False, True, False, False, False]
    wider = nn.at(net, "heads['a']").set(nn.Linear(8, 5, key=KEY))
    assert wider.heads["a"].weight.shape == (5, 8)


def test_models_pass_through_every_transform() -> None:
    net = Net(key=KEY)
    expected = np.asarray(net(X))
    models = vmap(lambda key: Net(key=key))(random.split(KEY, 3))
    assert models.layers[0].weight.shape == (3, 8, 4)
    stacked = vmap(lambda model: model(X))(models)
    np.testing.assert_allclose(stacked[1], tree.map(lambda x: x[1], models)(X), rtol=1e-6)
    np.testing.assert_allclose(checkpoint(lambda model: model(X))(net), expected, rtol=1e-6)

    def step(model: Net, _: None) -> Any:
        return tree.map(lambda x: x + 0, model), model(X)

    last, outputs = lax.scan(step, net, None, length=2)
    np.testing.assert_allclose(outputs[1], expected, rtol=1e-6)
    assert tree.structure(last) == tree.structure(net)
    np.testing.assert_allclose(lax.cond(True, lambda m: m(X), lambda m: 0 * m(X), net), expected, rtol=1e-6)
    abstract = tracer.eval_shape(lambda key: Net(key=key), KEY)
    assert abstract.layers[0].weight.shape == (8, 4)
    assert abstract.layout is net.layout


def test_jitted_steps_donate_the_arrays_of_models() -> None:
    net = nn.MLP([4, 4], key=KEY)
    old = net.layers[0].weight
    step = jit(lambda model: tree.map(lambda x: x + 1, model), donate_argnums=0)
    assert step.lower(net).memory().results == 0
    step(net)
    with pytest.raises(errors.TracerError, match="donated"):
        old + 1


def test_models_pickle_and_copy() -> None:
    net = Net(key=KEY)
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), copy.copy(net)):
        assert other.layout is net.layout
        np.testing.assert_array_equal(other(X), net(X))


def test_dataclasses_are_modules() -> None:
    @dataclasses.dataclass
    class Scaled(nn.Module):
        weight: Any
        power: int = 2

        def __call__(self, x: Any) -> Any:
            return self.weight * x**self.power

    model = Scaled(tnp.asarray(3.0))
    assert float(grad(lambda m: m(2.0))(model).weight) == 4.0
    assert model.layout.settings == {"power": 2}


def test_scopes_name_the_layers_in_traced_programs() -> None:
    program = tracer.make_program(lambda model: model(X))(Net(key=KEY))
    scopes = {equation.source.scope for equation in program.equations if equation.source}
    assert {"layers[0]", "heads['a']"} <= scopes


def test_layers_draw_in_the_order_of_the_program() -> None:
    layer = nn.Dropout(0.5)

    class Twice(nn.Module):
        def __init__(self) -> None:
            self.drop = layer

        def __call__(self, x: Any) -> Any:
            return self.drop(x), self.drop(x)

    one, two = Twice().training(KEY)(np.ones(64))
    again = Twice().training(KEY)(np.ones(64))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(one, again[0])
    np.testing.assert_array_equal(two, again[1])
    np.testing.assert_array_equal(layer(np.ones(64)), np.ones(64))
    kept = np.asarray(nn.Dropout(0.2).training(KEY)(np.ones(10_000)))
    assert 0.78 < np.mean(kept > 0) < 0.82
    assert np.unique(kept).tolist() == [0.0, 1.25]
    rows = np.asarray(nn.Dropout(0.5, axes=(1,)).training(KEY)(np.ones((64, 3))))
    assert {tuple(row) for row in rows} == {(0.0,) * 3, (2.0,) * 3}


def test_an_explicit_key_wins() -> None:
    layer = nn.Dropout(0.5)
    np.testing.assert_array_equal(layer(np.ones(9), key=KEY), layer.training(random.key(5))(np.ones(9), key=KEY))


def refuses(run: Any, text: str, kind: type[Exception] = errors.ModuleError) -> None:
    with pytest.raises(kind) as error:
        run()
    assert str(error.value).splitlines()[0].split(" at ")[0] + "|" + str(error.value).rpartition("  help: ")[2] == text


def test_errors_name_the_layer_and_the_remedy() -> None:
    net = Net(key=KEY)
    refuses(lambda: setattr(net, "scale", 1), "Net.scale is assigned|model.replace(scale=...) returns a changed copy")
    refuses(
        lambda: net.replace(scales=1),
        "replace|there are layers, heads, order, calls, scale, activation",
    )
    refuses(lambda: net.update(calls=1), "calls of Net is written|model.training(key) makes one")
    refuses(lambda: net.training()(X), "Dropout .layers[2] draws|model.training(key)")
    copy = net.training(KEY)
    refuses(
        lambda: copy.update(order=tnp.asarray([0, 1])),
        "order of Net is written|self.order = nn.State(array) in __init__",
    )
    refuses(lambda: copy.update(calls=tnp.zeros(2)), "calls of Net is written|keep its type")
    shape = errors.ShapeError
    refuses(
        lambda: net(X[:, :3]),
        "Linear .layers[0]: the last axis has 3 elements, the layer takes 4|nn.Linear(3, 8, ...)",
        shape,
    )
    refuses(
        lambda: net(np.ones((5, 2, 2), "float32")),
        "Linear .layers[0]: the last axis has 2 elements, the layer takes 4|x.reshape(len(x), -1) has 4",
        shape,
    )
    refuses(
        lambda: net(X.astype("float64")),
        'Linear .layers[0]: the input is wider than the layer|x.astype("float32"), or nn.cast(model, "float64")',
        errors.DTypeError,
    )


def test_training_copies_are_of_one_trace() -> None:
    net = Net(key=KEY)

    def outside(x: Any) -> Any:
        model = net.training(KEY)
        return lax.scan(lambda c, _: (c, model(x)), 0.0, None, length=2)[1]

    with pytest.raises(
        errors.ModuleError, match=r"Dropout .layers\[2\] draws at .* within a loop, branch or transform"
    ):
        outside(X)


def test_arrays_of_numpy_must_say_whether_they_are_trained() -> None:
    class Table(nn.Module):
        def __init__(self, array: Any) -> None:
            self.table = array

    assert nn.count(Table(np.arange(3))) == 0
    refuses(
        lambda: Table(np.ones(3)),
        "Table.table|tnp.asarray(x) is trained, nn.State(x) is not",
        errors.ArgumentError,
    )
    assert Table(nn.State(np.ones(3))).layout.role("table").value == "state"


def test_shared_arrays_and_keys_are_told() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            self.one = nn.Linear(2, 2, key=KEY)
            self.two = [self.one]

    with pytest.raises(errors.ModuleError, match=r"Shared at .*: \.two\[0\] is \.one, and as a tree these are two"):
        Shared()

    class SameKey(nn.Module):
        def __init__(self, key: Any) -> None:
            self.one = nn.Linear(2, 2, key=key)
            self.two = nn.Linear(2, 2, key=key)

    with pytest.warns(UserWarning, match=r"Linear \.one and Linear \.two draw from one key"):
        SameKey(KEY)


def test_layers_of_products() -> None:
    table = nn.Embedding(5, 3, padding=0, key=KEY)
    np.testing.assert_array_equal(table(np.asarray([0])), np.zeros((1, 3)))
    slopes = grad(lambda table: table(np.asarray([0, 2, 2])).sum())(table)
    np.testing.assert_array_equal(slopes.weight, np.asarray([[0.0], [0], [2], [0], [0]]) * np.ones(3))
    with pytest.raises(errors.OutOfBoundsError):
        jit(lambda table, i: table(i))(table, np.asarray([5]))
    for dtype in ("int8", "uint8", "uint64"):
        rows = nn.Embedding(300, 1, key=KEY)
        np.testing.assert_array_equal(rows(np.asarray([[127, 0]], dtype)), rows.weight[np.asarray([[127, 0]])])
    bilinear = nn.Bilinear(2, 3, 4, key=KEY)
    x1, x2 = np.ones((7, 2), "float32"), np.full((7, 3), 2, "float32")
    expected = np.einsum("bi,kij,bj->bk", x1, bilinear.weight, x2) + np.asarray(bilinear.bias)
    np.testing.assert_allclose(bilinear(x1, x2), expected, rtol=1e-5)
    assert nn.cast(bilinear, "float64").weight.dtype == np.float64
    weights = np.asarray(nn.Linear(100, 200, key=KEY).weight)
    assert np.abs(weights).max() <= 0.1
    np.testing.assert_allclose(weights.std(), 0.1 / 3**0.5, rtol=0.02)


def test_rows_of_a_table_do_not_count_from_the_end() -> None:
    net = {"embed": nn.Sequential(nn.Embedding(3, 2, key=KEY))}
    with pytest.raises(errors.OutOfBoundsError, match=r"^index -1 is out of bounds for axis 0 with size 3, at"):
        net["embed"](np.asarray([0, -1]))
    slope = grad(lambda net, i: net["embed"](i).sum())
    with pytest.raises(
        errors.OutOfBoundsError, match=r"index -1 .* at test_module.py:\d+ in layers\[0\]\n  help: indices count from 0"
    ):
        jit(slope)(net, np.asarray([0, -1]))
    with tracer.config.using(index_errors=False):
        np.testing.assert_array_equal(net["embed"](np.asarray([-1, 5])), net["embed"](np.asarray([0, 2])))


def test_casts_are_to_floats() -> None:
    layer = nn.Linear(2, 3, key=random.key(0))
    with pytest.raises(errors.DTypeError, match=r"^nn.cast at test_module.py:\d+ takes a dtype of floats\n  got int32"):
        nn.cast(layer, "int32")
    with pytest.raises(errors.DTypeError, match=r"^nn.cast at test_module.py:\d+: no such dtype\n  got 'halves'"):
        nn.cast(layer, "halves")


def test_casts_and_changes_of_a_training_copy_are_training_copies() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4, key=KEY), nn.Dropout(0.5))
    copy = model.training(random.key(3))
    half = nn.cast(copy, "bfloat16")
    assert all(module.is_training for module in (half, *half.layers[::2]))
    np.testing.assert_array_equal(half.layers[2](X), model.training(random.key(3)).layers[0](X))
    assert not np.array_equal(half.layers[0](X), model.training(random.key(3)).layers[0](X))  # another draw
    assert copy.layers[0].replace(rate=0.25).is_training
    with pytest.raises(errors.ModuleError, match=r"Dropout \.layers\[0\] draws"):
        nn.cast(model.training(), "bfloat16")(X)
    assert not nn.cast(copy.inference(), "float64").is_training


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_a_step_in_bfloat16_keeps_parameters_and_statistics_in_float32(way: Any) -> None:
    class Normed(nn.Module):
        def __init__(self, *, key: Any) -> None:
            self.linear, self.norm, self.drop = nn.Linear(4, 8, key=key), nn.BatchNorm(8), nn.Dropout(0.5)

        def __call__(self, x: Any) -> Any:
            return self.drop(self.norm(self.linear(x)))

    def narrow(model: Any, x: Any) -> Any:
        copy = nn.cast(model.training(KEY), "bfloat16")
        y = copy(x.astype("bfloat16"))
        return y.astype("float32").sum(), (copy.inference(), y)

    model = Normed(key=KEY)
    (_, (written, y)), slopes = way(value_and_grad(narrow, has_aux=True))(model, X)
    assert y.dtype == "bfloat16"
    assert tree.structure(written) == tree.structure(model)
    assert {str(x.dtype) for x in tree.leaves((written, slopes))} == {"float32"}
    np.testing.assert_array_equal(written.linear.weight, model.linear.weight)
    assert np.abs(np.asarray(written.norm.running_mean)).max() > 0
    assert nn.cast(model, "bfloat16").norm.running_var.dtype == np.float32
    assert nn.cast(model, "float64").norm.running_var.dtype == np.float64


def test_explain_names_the_setting_that_changed() -> None:
    step = jit(lambda model, x: model(x))
    net = nn.Sequential(nn.Linear(2, 2, key=KEY), nn.Dropout(0.5))
    step(net, np.ones((1, 2), "float32"))
    step(nn.at(net, "layers[1]").set(nn.Dropout(0.0)), np.ones((1, 2), "float32"))
    assert "argument 0 'model': model.layers[1].rate 0.5 -> 0.0" in str(step.explain())


def test_compiled_faults_name_the_layer() -> None:
    net = {"embed": nn.Sequential(nn.Embedding(3, 2, key=KEY))}
    with pytest.raises(errors.OutOfBoundsError, match=r"with size 3, at test_module.py:\d+ in layers\[0\]"):
        jit(lambda net, x: net["embed"](x))(net, np.asarray([3]))


def test_names_of_other_libraries_say_what_to_use() -> None:
    model = nn.MLP([2, 3], key=random.key(0))
    with pytest.raises(AttributeError) as raised:
        model.eval()
    assert str(raised.value) == (
        "'MLP' object has no attribute 'eval' (a model is for inference; model.training(key) is a copy to train)"
    )
    with pytest.raises(AttributeError, match=r"^'MLP' object has no attribute 'wieght'$"):
        _ = model.wieght
    assert not hasattr(model, "__array__")

    class Broken(nn.Module):
        @property
        def width(self) -> Any:
            return self.wdith

    with pytest.raises(AttributeError, match=r"^'Broken' object has no attribute 'wdith'$"):
        _ = Broken().width
    for module, name in (("nn", "ReLU"), ("nn", "BatchNorm2d"), ("data", "DataLoader"), ("io", "load_state_dict")):
        with pytest.raises(AttributeError, match=rf"module 'tracer\.{module}' has no attribute '{name}' \(.+\)"):
            getattr(import_module(f"tracer.{module}"), name)


def test_a_model_with_forward_alone_says_its_name() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError) as raised:
        Net()(1.0)
    assert re.fullmatch(
        r"Net at test_module\.py:\d+ has no __call__\n  help: rename forward to __call__", str(raised.value)
    )
