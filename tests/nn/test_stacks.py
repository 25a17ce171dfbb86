"""Stacks of layers and recomputed layers: values, gradients, keys and state as of the layers one after another."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.torch_numbers import numbers
from tracer import errors, nn, random

KEY = random.key(0)
X = np.asarray(numbers("x", (6, 4)), "float32")


class Layer(nn.Module):
    """A layer that draws, writes state and keeps a flag."""

    def __init__(self, *, rate: float = 0.0, key: Any) -> None:
        self.linear = nn.Linear(4, 4, key=key)
        self.norm = nn.BatchNorm(4)
        self.drop = nn.Dropout(rate)

    def __call__(self, x: Any, extra: Any = None, *, negative: bool = False) -> Any:
        y = nn.tanh(self.norm(self.linear(self.drop(x))))
        y = y if extra is None else y + extra
        return -y if negative else y


def loss(model: Any, key: Any = KEY) -> Any:
    model = model.training(key)
    return tnp.square(model(X)).sum(), model.inference()


def listed(stack: Any) -> Any:
    return nn.Sequential(*stack)


def close(found: Any, expected: Any) -> None:
    for one, other in zip(tracer.tree.leaves(found), tracer.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def unstacked(layers: Any, count: int) -> list[Any]:
    return [tracer.tree.map(lambda leaf, n=n: leaf[n], layers) for n in range(count)]


@pytest.mark.parametrize("options", [{}, {"remat": True}, {"unroll": 2}])
def test_a_stack_trains_as_its_layers_do(options: dict[str, Any]) -> None:
    stack = nn.Stack(Layer, 3, key=KEY, **options)
    model = listed(stack)
    np.testing.assert_allclose(stack(X), model(X), rtol=1e-5, atol=1e-6)
    run = tracer.value_and_grad(loss, has_aux=True)
    (value, written), grads = tracer.jit(run)(stack)
    (expected, by_layer), each = run(model)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    close(unstacked(grads.layers, 3), each.layers)
    close(unstacked(written.layers, 3), by_layer.layers)
    means = written.layers.norm.running_mean
    assert means.shape == (3, 4)
    assert np.abs(means).min() > 0
    assert grads.layers.norm.running_mean is None


def test_layers_of_a_stack_draw_with_keys_of_their_own() -> None:
    ones = np.ones((1000, 4), "float32")
    stack = nn.Stack(Halver, 3, key=KEY)
    y = np.asarray(stack.training(KEY)(ones))
    assert set(np.unique(y)) == {0.0, 8.0}
    assert 0.08 < np.mean(y > 0) < 0.17  # an eighth remains where masks differ, a half where they are one
    np.testing.assert_array_equal(y, tracer.jit(lambda m, k: m.training(k)(ones))(stack, KEY))
    np.testing.assert_array_equal(stack(ones), ones)
    opened = stack.training(KEY)
    assert np.any(opened(ones) != opened(ones))  # each call draws anew
    with pytest.raises(errors.ModuleError, match=r"draws .* in a training copy without a key"):
        stack.training()(ones)


class Halver(nn.Module):
    def __init__(self, *, key: Any) -> None:
        self.drop = nn.Dropout(0.5)
        self.scale = tnp.ones(())

    def __call__(self, x: Any) -> Any:
        return (self.drop(x) * self.scale).astype(x.dtype)


def test_a_frozen_stack_writes_no_state() -> None:
    stack = nn.Stack(Layer, 2, key=KEY)
    frozen = nn.at(stack, "layers.norm").freeze()
    (_, written), grads = tracer.value_and_grad(loss, has_aux=True)(frozen)
    np.testing.assert_array_equal(written.layers.norm.running_mean, 0)
    assert grads.layers.norm.weight is None
    assert grads.layers.linear.weight.shape == (2, 4, 4)


def test_each_layer_gets_its_own_part_of_each() -> None:
    stack = nn.Stack(lambda key: Pair(key=key), 3, key=KEY)
    extra = tnp.asarray(numbers("extra", (3, 4)), "float32")
    y, sums = tracer.jit(lambda stack, x, extra: stack(x, each={"extra": extra}))(stack, X, extra)
    x, expected = X, []
    for n, layer in enumerate(stack):
        x, one = layer(x, extra[n])
        expected.append(one)
    np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(errors.ArgumentError, match="with each=, layers return pairs"):
        nn.Stack(Layer, 3, key=KEY)(X, each={"extra": extra})


class Pair(nn.Module):
    def __init__(self, *, key: Any) -> None:
        self.layer = Layer(key=key)

    def __call__(self, x: Any, extra: Any) -> Any:
        y = self.layer(x, extra)
        return y, y.sum()


def test_flags_stay_python_s_and_arrays_pass_to_every_layer() -> None:
    for remat in (False, True):
        stack = nn.Stack(Layer, 2, key=KEY, remat=remat)
        found = tracer.jit(lambda stack, x: stack(x, x, negative=True))(stack, X)
        x = X
        for layer in stack:
            x = layer(x, X, negative=True)
        np.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-6)


def test_parts_of_a_stack() -> None:
    stack = nn.Stack(functools.partial(nn.Linear, 4, 4), 5, key=KEY)
    assert (len(stack), len(list(stack)), len(stack[1:4]), len(stack[-2:])) == (5, 5, 3, 2)
    np.testing.assert_array_equal(stack[-1].weight, stack.layers.weight[4])
    np.testing.assert_allclose(stack[3:](stack[:3](X)), stack(X), rtol=1e-5, atol=1e-6)
    assert np.unique(stack.layers.weight).size == 5 * 16
    assert list(nn.paths(stack)) == ["layers.weight", "layers.bias"]
    with pytest.raises(IndexError):
        stack[5]


def test_a_stack_of_many_layers_is_one_loop_of_few_equations() -> None:
    def equations(count: int) -> int:
        stack = nn.Stack(Layer, count, key=KEY)
        return len(tracer.jit(stack).lower(X).program().equations)

    assert equations(3) == equations(12)


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="there must be 1 layer or more"):
        nn.Stack(Layer, 0, key=KEY)
    with pytest.raises(errors.ArgumentError, match="make returns a module"):
        nn.Stack(lambda key: random.normal(key, (2,)), 3, key=KEY)
    with pytest.raises(errors.ArgumentError, match="the slice has no layers"):
        nn.Stack(Layer, 2, key=KEY)[2:]
    with pytest.raises(errors.ModuleError, match=r"tracer.checkpoint takes functions"):
        nn.remat(tnp.sin)


class Twice(nn.Module):
    """A remat made once, and one made at the call, of the same layers."""

    def __init__(self, *, inside: bool, key: Any) -> None:
        layer = Layer(rate=0.5, key=key)
        self.inside = inside
        self.layer: Any = nn.remat(layer) if inside else layer

    def __call__(self, x: Any) -> Any:
        return (self.layer if self.inside else nn.remat(self.layer))(x)


@pytest.mark.parametrize("inside", [True, False])
def test_remat_keeps_values_keys_and_state(inside: bool) -> None:
    model = Twice(inside=inside, key=KEY)
    layer = Layer(rate=0.5, key=KEY)
    np.testing.assert_allclose(model(X), layer(X), rtol=1e-6)

    def plain(layer: Any) -> Any:  # the copy within draws from the first key of the outer one
        return loss(layer, random.fold_in(KEY, 1))

    (value, written), grads = tracer.jit(tracer.value_and_grad(loss, has_aux=True))(model)
    (expected, by_layer), each = tracer.value_and_grad(plain, has_aux=True)(layer)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    inner = (lambda m: m.layer.module) if inside else (lambda m: m.layer)
    close(inner(written), by_layer)
    close(inner(grads), each)


def test_remat_computes_again_and_its_policy_keeps() -> None:
    keys = nn.Keys(KEY)
    mlp = nn.MLP([8, 64, 64, 8], activation=nn.tanh, key=next(keys))
    x = tnp.ones((128, 8), "float32")

    def flops(model: Any) -> int:
        return tracer.jit(tracer.value_and_grad(lambda m: m(x).sum())).lower(model).flops()

    plain, again = flops(mlp), flops(nn.remat(mlp))
    kept = flops(nn.remat(mlp, tracer.checkpoint_policies.everything_saveable))
    assert plain <= kept < again


def test_stacks_are_differentiated_twice_and_vmapped() -> None:
    stack = nn.cast(nn.Stack(functools.partial(nn.MLP, [3, 3], activation=nn.tanh), 2, key=KEY, remat=True), "float64")
    x = tnp.asarray(numbers("x", (2, 3)))
    tracer.test_util.check_grads(lambda x: nn.tanh(stack(x)), (x,), order=2, modes=["fwd", "rev"])
    models = tracer.vmap(lambda key: nn.Stack(Layer, 2, key=key))(random.split(KEY, 3))
    found = tracer.vmap(lambda model: model(X))(models)
    one = tracer.tree.map(lambda leaf: leaf[1], models)
    np.testing.assert_allclose(found[1], one(X), rtol=1e-5, atol=1e-6)
