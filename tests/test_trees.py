"""Trees: maps, paths, registered classes, vectors of leaves, segments; callbacks and debug.print."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import nn, ops, random, tree, tree_util
from tracer.errors import ArgumentError, ShapeError
from tracer.flatten_util import ravel_pytree
from tracer.trace import trees


class Pair(NamedTuple):
    first: Any
    second: Any


TREE = {"b": [1, (2, None)], "a": Pair(3, 4)}


def test_leaves_come_in_the_order_of_sorted_keys_and_go_back() -> None:
    leaves, structure = tree.flatten(TREE)
    assert leaves == [3, 4, 1, 2]
    assert tree.unflatten(structure, leaves) == TREE
    assert tree.leaves(None) == []
    assert tree.map(lambda x, y: x + y, TREE, TREE) == {"b": [2, (4, None)], "a": Pair(6, 8)}
    assert tree.reduce(lambda a, b: a + b, TREE) == 10
    assert tree.all([True, True])
    assert tree.map(len, [[1, 2], [3]], is_leaf=lambda x: isinstance(x, list) and isinstance(x[0], int)) == [2, 1]
    with pytest.raises(ArgumentError, match="the trees have different structures"):
        tree.map(lambda x, y: x, [1], [1, 2])


def test_paths_name_every_leaf() -> None:
    paths = [tree_util.keystr(path) for path, _ in tree.leaves_with_path(TREE)]
    assert paths == ["['a'].first", "['a'].second", "['b'][0]", "['b'][1][0]"]
    named = tree.map_with_path(lambda path, x: f"{tree_util.keystr(path, simple=True, separator='/')}={x}", TREE)
    assert named["b"] == ["b/0=1", ("b/1/0=2", None)]


def test_leaves_may_be_told_by_their_paths() -> None:
    value = {"a": [1, {"b": 2}], "c": (3, None)}

    def stop(path: Any, x: Any) -> bool:
        return tree_util.keystr(path) == "['a'][1]"

    found = tree.leaves_with_path(value, is_leaf=stop, is_leaf_takes_path=True)
    assert [(tree_util.keystr(path), x) for path, x in found] == [
        ("['a'][0]", 1), ("['a'][1]", {"b": 2}), ("['c'][0]", 3)
    ]  # fmt: skip
    mapped = tree.map_with_path(lambda path, x: len(path), value, is_leaf=stop, is_leaf_takes_path=True)
    assert mapped == {"a": [2, 2], "c": (2, None)}


def test_reductions_take_a_start_and_leaves() -> None:
    assert tree.reduce(lambda a, b: a + b, [1, (2, 3)], 10) == 16
    assert tree.reduce(lambda a, b: a + b, [[1], [2]], [], lambda x: isinstance(x, list) and len(x) == 1) == [1, 2]
    assert tree.reduce_associative(lambda a, b: a + b, [1, (2, 3), [4, 5, 6]]) == 21
    assert tree.reduce_associative(max, [], identity=0) == 0
    with pytest.raises(ArgumentError, match="the tree has no leaves"):
        tree.reduce_associative(max, [])


def test_prefixes_are_spread_over_trees() -> None:
    assert tree.broadcast((1, 2, 3), (0, {"a": 0, "b": None}, (0, 0))) == (1, {"a": 2, "b": None}, (3, 3))
    assert tree.broadcast(5, [0, 0]) == [5, 5]
    with pytest.raises(ArgumentError, match=r"tree.broadcast at .*: the trees have different structures"):
        tree.broadcast((1, 2), (0, 0, 0))


def test_classes_may_name_their_children() -> None:
    @tree_util.register_pytree_with_keys_class
    class Layer:
        def __init__(self, weight: Any, bias: Any) -> None:
            self.weight, self.bias = weight, bias

        def tree_flatten_with_keys(self) -> Any:
            keys = tree_util.GetAttrKey("weight"), tree_util.GetAttrKey("bias")
            return tuple(zip(keys, (self.weight, self.bias), strict=True)), None

        @classmethod
        def tree_unflatten(cls, aux: None, children: Any) -> Any:
            return cls(*children)

    assert [tree_util.keystr(path) for path, _ in tree.leaves_with_path([Layer(1, 2)])] == ["[0].weight", "[0].bias"]
    gradient = tracer.grad(lambda layer: layer.weight * layer.bias)(Layer(2.0, 3.0))
    assert (float(gradient.weight), float(gradient.bias)) == (3.0, 2.0)
    with pytest.raises(tracer.errors.DTypeError, match=r"argument 0, layer.bias has no gradient"):
        tracer.grad(lambda layer: layer.weight * 1.0)(Layer(2.0, 3))


def test_static_fields_belong_to_the_structure() -> None:
    @tree_util.register_dataclass
    @dataclass
    class Layer:
        weight: float
        name: str = tree.static(default="dense")

    assert tree.map(lambda w: 2 * w, Layer(1.5)) == Layer(3.0)
    assert tree.structure(Layer(1.0)) != tree.structure(Layer(1.0, "other"))


def test_transpose_turns_trees_inside_out() -> None:
    inside_out = tree.transpose(
        tree.structure([0, 0]), tree.structure({"a": 0, "b": 0}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    )
    assert inside_out == {"a": [1, 3], "b": [2, 4]}


def test_classes_become_nodes() -> None:
    @tree_util.register_pytree_node_class
    class Point:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

        def tree_flatten(self) -> Any:
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, aux: None, children: Any) -> Any:
            return cls(*children)

    @tree_util.register_dataclass
    @dataclass
    class Model:
        weights: Any
        name: str = field(metadata={"static": True})

    moved = tracer.jit(lambda p: Point(p.x + 1, p.y))(Point(1.0, 2.0))
    assert (float(moved.x), float(moved.y)) == (2.0, 2.0)
    gradient = tracer.grad(lambda m: tnp.sum(m.weights**2))(Model(tnp.asarray([1.0, 2.0]), "linear"))
    assert gradient.name == "linear"
    assert gradient.weights.tolist() == [2.0, 4.0]
    (path, _), *_ = tree.leaves_with_path(Model(1.0, "m"))
    assert tree_util.keystr(path) == ".weights"
    partial = tree_util.Partial(lambda a, b: a * b, 3.0)
    assert float(tracer.jit(lambda f, x: f(x))(partial, 2.0)) == 6.0


def test_ravel_pytree_goes_there_and_back() -> None:
    params = {"w": np.arange(6.0).reshape(2, 3), "n": np.array([7], np.float32), "s": 1.5}
    vector, unravel = ravel_pytree(params)
    assert vector.dtype == np.float64
    back = unravel(vector)
    assert back["n"].dtype == np.float32
    for name, value in params.items():
        np.testing.assert_array_equal(np.asarray(back[name]), value)
    assert tracer.jit(lambda v: unravel(v)["w"])(vector).shape == (2, 3)
    with pytest.raises(ShapeError, match="the vector must have 8 elements"):
        unravel(np.zeros(3))
    assert ravel_pytree({})[1](tnp.zeros(0)) == {}


def test_segments_are_summed_and_compared() -> None:
    data, ids = np.array([5.0, 1.0, 4.0, 2.0]), np.array([0, 2, 0, 9])
    assert ops.segment_sum(data, ids, 3).tolist() == [9.0, 0.0, 1.0]
    assert ops.segment_prod(data, ids, 3).tolist() == [20.0, 1.0, 1.0]
    assert ops.segment_max(data, ids, 3).tolist() == [5.0, -np.inf, 1.0]
    assert ops.segment_min(data, ids, 3).tolist() == [4.0, np.inf, 1.0]
    assert ops.segment_sum(np.ones((4, 2)), ids).shape == (10, 2)
    assert tracer.jit(lambda d: ops.segment_sum(d, ids, 3))(data).tolist() == [9.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", ["int32", "int8", "int64"])
def test_segments_of_ids_out_of_range_are_dropped(dtype: str) -> None:
    data, ids = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0, -1, -6, 2, 7], dtype)
    wanted = {
        ops.segment_sum: [1.0, 0.0, 4.0], ops.segment_prod: [1.0, 1.0, 4.0],
        ops.segment_min: [1.0, np.inf, 4.0], ops.segment_max: [1.0, -np.inf, 4.0],
    }  # fmt: skip
    for segment, result in wanted.items():
        traced = tracer.jit(segment, static_argnums=2)
        assert segment(data, ids, 3).tolist() == traced(data, ids, 3).tolist() == result
        assert segment(data, ids, 0).shape == traced(data, ids, 0).shape == (0,)
        lanes = tracer.vmap(lambda d, i, segment=segment: segment(d, i, 3))(np.stack([data] * 2), np.stack([ids] * 2))
        assert lanes.tolist() == [result] * 2
    assert ops.segment_sum(data, ids, 3, mode="clip").tolist() == [6.0, 0.0, 9.0]
    moved = tracer.grad(lambda x: (ops.segment_sum(x, ids, 3) * np.array([1.0, 2.0, 3.0])).sum())(data)
    assert moved.tolist() == [1.0, 0.0, 0.0, 3.0, 0.0]


def test_segments_refuse_a_mode_that_raises() -> None:
    with pytest.raises(ArgumentError, match=r"segment_sum at .*: ids out of range are dropped, clipped or wrapped"):
        ops.segment_sum(np.ones(2), np.array([0, 1]), 2, mode="raise")


def test_callbacks_run_python_from_compiled_code() -> None:
    wanted = tracer.ShapeDtypeStruct((3,), "float64")

    @tracer.jit
    def f(x: Any) -> Any:
        return tracer.pure_callback(lambda v: np.sort(v)[::-1], wanted, x) + 1.0

    assert f(np.array([1.0, 3.0, 2.0])).tolist() == [4.0, 3.0, 2.0]
    assert tracer.vmap(f)(np.array([[1.0, 3.0, 2.0]])).tolist() == [[4.0, 3.0, 2.0]]
    with pytest.raises(ShapeError, match="result has the wrong shape"):
        tracer.pure_callback(lambda v: v[:2], wanted, np.ones(3))


def test_debug_print_runs_once_for_every_run_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    @tracer.jit
    def f(x: Any) -> Any:
        tracer.debug.print("in {x:.1f}, {}", x > 1, x=x)
        y = tracer.lax.fori_loop(0, 2, lambda i, v: (tracer.debug.print("step {}", i), v + 1)[1], x)
        tracer.debug.print("out {}", y)
        return y

    assert float(f(1.0)) == 3.0
    assert capsys.readouterr().out == "in 1.0, False\nstep 0\nstep 1\nout 3.0\n"
    f(5.0)
    assert capsys.readouterr().out.startswith("in 5.0, True\n")
    with pytest.raises(ArgumentError, match="the format names values that were not given"):
        tracer.debug.print("{} {y}", 1.0)


def test_gradients_with_none_say_what_skips_it() -> None:
    model = nn.Sequential(nn.Linear(2, 3, key=random.key(0)), nn.BatchNorm(3))
    slopes = tracer.grad(lambda model: model(tnp.ones((4, 2), "float32")).sum())(model)
    with pytest.raises(TypeError, match="unsupported operand") as raised:
        tree.map(lambda p, g: p - 0.1 * g, model, slopes)
    skips = "nn.map(f, model, grads) skips arrays that are not trained, whose gradients are None"
    assert raised.value.__notes__ == [f"help: another tree has None where the first has a leaf; {skips}"]
    with pytest.raises(ArgumentError, match="help: every tree must have the structure of the first; nn"):
        tree.map(lambda g, p: p, slopes, model)
    with pytest.raises(TypeError) as raised:
        tree.map(lambda p, g: p - {}, model, model)
    assert not hasattr(raised.value, "__notes__")
    assert tree.map(lambda p, g: p if g is None else p - g, model, slopes).layers[1].running_mean.shape == (3,)


@tree_util.register_dataclass
@dataclass
class Weighed:
    """A dataclass that compiled calls read by its attributes."""

    w: Any
    name: str = field(default="a", metadata={"static": True})
    made: ClassVar[list[str]] = []

    def __post_init__(self) -> None:
        self.made.append(self.name)


def test_compiled_calls_read_dataclasses_by_attributes_and_build_them_by_their_constructor() -> None:
    assert trees.attributes(Weighed(1.0)) == ({"name": "a"}, ("w",))
    traced: list[str] = []
    f = tracer.jit(lambda x: (traced.append(x.name), dataclasses.replace(x, w=2 * x.w))[1])
    equal = "".join(["a"])  # another object
    assert [f(Weighed(1.0)).w, f(Weighed(2.0, equal)).w, f(Weighed(3.0, "b")).w] == [2, 4, 6]
    assert traced == ["a", "b"]
    Weighed.made.clear()
    more = Weighed(4.0)
    more.seen = True  # type: ignore[attr-defined]  # an attribute beside the fields
    assert (f(more).w, Weighed.made, len(traced)) == (8, ["a", "a"], 2)
    del more.w
    with pytest.raises(AttributeError, match="no attribute 'w'"):
        f(more)
