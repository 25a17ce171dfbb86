"""`jit` as users call it: arguments of all kinds, static ones, options, what it tells about itself."""

from __future__ import annotations

import functools
import inspect
import re
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.runtime.programs import arange, count_to, double, line, same, scaled
from tracer.errors import ArgumentError, DeviceError
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.runtime.jit.jit import block_until_ready, jit
from tracer.runtime.system.devices import CPU
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.trace.array import Array
from tracer.transforms.gradients import grad

pytestmark = pytest.mark.usefixtures("way")
Pair = namedtuple("Pair", "left right")


def test_a_numpy_array_and_an_array_give_the_same_result() -> None:
    f = jit(double)
    for _ in range(3):
        same(f(np.arange(3.0)), [0.0, 2.0, 4.0])
        same(f(arange(3)), [0.0, 2.0, 4.0])
    assert f.explain() == f"double compiled once\n  1. at test_jit.py:{line(-2)}: the first call"


@each("value", [2.5, 3, True, 1 + 2j])
def test_python_scalars_are_weak_except_bool(value: Any) -> None:
    f = jit(lambda x: x)
    for _ in range(2):
        result = f(value)
        assert result.weak_type is not isinstance(value, bool)
        same(result, value)


def test_an_integer_beyond_64_bits_is_an_error() -> None:
    f = jit(lambda x: x)
    assert f(2**63 - 1).dtype == np.int64
    assert f(2**63).dtype == np.uint64
    with pytest.raises(TypeError, match="18446744073709551616 does not fit in 64 bits"):
        f(2**64)


def test_other_layouts_are_copied_and_explain_says_so() -> None:
    f = jit(double)
    x = np.arange(12.0).reshape(3, 4)
    for value in (x.T, x[::2], x[:, ::-1], x.astype(">f8")):
        same(f(value), 2 * value.astype("f8"))
    assert "note: argument 0 'x' is not C-contiguous: it is copied at every call" in f.explain()


def test_an_unaligned_array_is_copied() -> None:
    memory = np.zeros(25, np.uint8)
    x = memory[1:].view(np.float64)
    x[:] = [1.0, 2.0, 3.0]
    same(jit(double)(x), [2.0, 4.0, 6.0])


def test_subclasses_and_numpy_scalars_are_arrays() -> None:
    f = jit(double)
    same(f(np.float32(1.5)), np.float32(3.0))
    same(f(np.arange(3.0).view(np.recarray)), [0.0, 2.0, 4.0])
    assert f(np.float64(1.0)).weak_type is False


def test_trees_of_every_sort_go_in_and_come_out() -> None:
    @jit
    def swap(tree: Any) -> Any:
        return {"pair": Pair(tree["b"][1], tree["a"]), "list": [tree["b"][0], None]}

    for _ in range(3):
        result = swap({"b": (1.0, np.ones(2)), "a": arange(2), "none": None})
        assert set(result) == {"list", "pair"}
        assert type(result["pair"]) is Pair
        same(result["pair"].left, [1.0, 1.0])
        same(result["pair"].right, [0.0, 1.0])
        assert result["list"][1] is None


def test_a_result_may_be_a_tuple_or_empty() -> None:
    f = jit(lambda x: (x, double(x)))
    for _ in range(2):
        one, two = f(arange(2))
        same(one, [0.0, 1.0])
        same(two, [0.0, 2.0])
    g = jit(lambda x: None)
    assert g(1.0) is None
    assert g(2.0) is None
    assert jit(lambda: ())() == ()


def test_structures_are_told_apart() -> None:
    f = jit(lambda tree: len(tree) + (10 if isinstance(tree, list) else 0))
    for _ in range(2):
        assert int(f((1.0, 2.0))) == 2
        assert int(f([1.0, 2.0])) == 12
        assert int(f({"a": 1.0})) == 1
        assert int(f({"b": 1.0})) == 1
        assert int(f(OrderedDict(z=1.0, a=2.0))) == 2
        assert int(f(Pair(1.0, 2.0))) == 2
        assert int(f({1: 1.0, True + 1: 2.0, 3: 0.0})) == 3


def test_a_dictionary_may_come_in_another_order() -> None:
    f = jit(lambda d: add(d["a"], mul(d["b"], d["b"])))
    same(f({"a": np.float64(1), "b": np.float64(3)}), 10.0)
    same(f({"b": np.float64(3), "a": np.float64(1)}), 10.0)
    assert f.explain().startswith("lambda compiled once")


def test_keyword_arguments_are_traced_in_any_order_and_defaults_stay_python() -> None:
    @jit
    def f(x: Any, *, up: Any, down: Any = 7.0) -> Any:
        return add(up, neg(down)) if isinstance(down, Array) else up

    for _ in range(2):
        same(f(1.0, up=np.float64(3), down=np.float64(1)), 2.0)
        same(f(1.0, down=np.float64(1), up=np.float64(3)), 2.0)
        same(f(1.0, up=np.float64(5)), 5.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sideways'"):
        f(1.0, up=1.0, sideways=2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        f(up=1.0)


def test_static_arguments_are_python_values_by_number_or_name() -> None:
    @functools.partial(jit, static_argnums=1)
    def power(x: Any, n: int, *, shift: float = 0.0) -> Any:
        result = x
        for _ in range(n - 1):
            result = mul(result, x)
        return result

    for _ in range(2):
        same(power(np.float64(3), 2), 9.0)
        same(power(np.float64(3), 3), 27.0)
        same(power(np.float64(3), n=3), 27.0)
    assert "static argument 1 'n': 2 -> 3" in power.explain()
    assert "static argument 'n': by name, before by position" in power.explain()
    assert power.explain().count("\n") == 3


def test_equal_static_values_of_different_types_are_different() -> None:
    f = jit(lambda x, flag: x if flag is True else double(x), static_argnames="flag")
    same(f(np.float64(1), flag=1), 2.0)
    same(f(np.float64(1), flag=True), 1.0)
    same(f(np.float64(1), True), 1.0)
    same(f(np.float64(1), 1.0), 2.0)


def test_static_objects_are_compared_by_eq() -> None:
    class Config:
        def __init__(self, n: float) -> None:
            self.n = n

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Config) and other.n == self.n

        def __hash__(self) -> int:
            return hash(self.n)

    f = jit(lambda c, x: scaled(x, c.n), static_argnums=0)
    for _ in range(2):
        same(f(Config(3.0), np.float64(2)), 6.0)
        same(f(Config(4.0), np.float64(2)), 8.0)
    assert f.explain().startswith("lambda compiled 2 times")


def test_an_unhashable_static_argument_is_named() -> None:
    f = jit(scaled, static_argnums=1)
    with pytest.raises(ArgumentError) as error:
        f(1.0, [2])
    assert str(error.value) == (
        f"jit of scaled at test_jit.py:{line(-2)}: the static argument 1 'factor' cannot be hashed\n"
        "  got list: [2]\n"
        "  help: static arguments are compared by == and hash: pass a tuple, a string or a frozen dataclass, or leave "
        "it out of static_argnums to have it traced"
    )


def test_an_argument_that_is_no_array_is_named() -> None:
    f = jit(lambda x, options: x)
    with pytest.raises(ArgumentError) as error:
        f(1.0, {"mode": {"fast"}})
    assert str(error.value) == (
        f"jit of lambda at test_jit.py:{line(-2)}: argument 1, options['mode'] is not an array\n"
        "  got set: {'fast'}\n"
        "  help: pass arrays and numbers, or trees of them; "
        "tracer.tree_util.register_pytree_node makes a tree of a class"
    )


def test_functions_and_text_inside_trees_belong_to_the_signature() -> None:
    traced = []

    @jit
    def f(layer: Any) -> Any:
        traced.append(layer["name"])
        return layer["activation"](layer["x"])

    for name, function in (("first", tnp.sin), ("first", tnp.sin), ("first", tnp.cos), ("second", tnp.cos)) * 3:
        y = f({"name": name, "activation": function, "x": 1.0, "bias": None})
        assert float(y) == float(function(1.0))
    assert traced == ["first", "first", "second"]
    assert "argument 0 'layer': " in str(f.explain())
    assert "'activation': sin" in str(f.explain())


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ArgumentError) as error:
        jit(double, static_argnums=1)
    assert str(error.value) == (
        f"jit of double at test_jit.py:{line(-2)}: static_argnums names argument 1\n"
        "  the function has 1 positional parameter\n"
        "  help: count from 0, or use names"
    )
    with pytest.raises(ArgumentError, match="static_argnums takes integers"):
        jit(double, static_argnums="x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="argument 0 'x' is both static and donated"):
        jit(double, static_argnums=0, donate_argnums=0)
    with pytest.raises(ArgumentError, match=r"jit at test_jit.py:.* takes a function"):
        jit(3)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match=r"jit at test_jit.py:.*: no device 'cuda:0'"):
        jit(double, device="cuda:0")
    assert jit(double, device=CPU)(1.0).weak_type


def test_methods_partials_and_callables_are_functions() -> None:
    class Model:
        scale = 3.0

        @functools.partial(jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return scaled(x, self.scale)

        def __call__(self, x: Any) -> Any:
            return scaled(x, self.scale)

    model = Model()
    for _ in range(2):
        same(model.apply(np.float64(2)), 6.0)
        same(Model.apply(model, np.float64(2)), 6.0)
        same(jit(model)(np.float64(2)), 6.0)
        same(jit(model.__call__)(np.float64(2)), 6.0)
        same(jit(functools.partial(scaled, factor=4.0))(np.float64(2)), 8.0)


def test_a_jitted_function_looks_like_the_function() -> None:
    f = jit(scaled)
    assert f.__name__ == "scaled"
    assert f.__wrapped__ is scaled
    assert f.__module__ == scaled.__module__
    assert list(inspect.signature(f).parameters) == ["x", "factor"]
    assert callable(f)
    assert repr(f) == "<jit of scaled>"


def test_a_failed_trace_is_tried_again() -> None:
    fail = [True]

    @jit
    def f(x: Any) -> Any:
        if fail[0]:
            raise KeyError("not yet")
        return x

    for _ in range(2):
        with pytest.raises(KeyError, match="not yet"):
            f(1.0)
    fail[0] = False
    same(f(1.0), 1.0)


def test_clear_cache_compiles_again() -> None:
    f = jit(double)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert f.explain().startswith("double compiled 2 times")


def test_explain_names_the_argument_that_changed() -> None:
    f = jit(lambda params, x: add(params["w"], x))
    f({"w": np.ones(2)}, np.ones(2))
    f({"w": np.ones(3)}, np.ones(3))
    f({"w": np.float32(1)}, np.float32(1))
    start = line(-3)
    assert f.explain() == (
        "lambda compiled 3 times\n"
        f"  1. at test_jit.py:{start}: the first call\n"
        f"  2. at test_jit.py:{start + 1}: argument 0, params['w']: f64[2] -> f64[3]\n"
        "      argument 1 'x': f64[2] -> f64[3]\n"
        f"  3. at test_jit.py:{start + 2}: argument 0, params['w']: f64[3] -> f32[]\n"
        "      argument 1 'x': f64[3] -> f32[]"
    )
    assert repr(f.explain()) == str(f.explain())


def reasons(f: Any) -> list[str]:
    """What `explain` says, without the places."""
    return [re.sub(r" *(\d+\. at [\w.]+:\d+: )?", "", text, count=1) for text in str(f.explain()).splitlines()[2:]]


@each(
    ("calls", "said"),
    [
        ([((1.5,), {}), ((2,), {})], ["argument 0 'x': f64*[] -> i64*[]"]),
        ([((1.5,), {}), ((np.float64(2),), {})], ["argument 0 'x': f64*[] -> f64[] (a star marks a Python number)"]),
        ([((1.5,), {}), ((1.5, 2.5), {})], ["argument 1 'y': not given before"]),
        ([((1.5, 2.5), {}), ((1.5,), {})], ["argument 1 'y': no longer given"]),
        ([((1.5, 2.5), {}), ((1.5,), {"y": 2.5})], ["argument 'y': by name, before by position"]),
        ([((), {"x": 1.5}), ((1.5,), {})], ["argument 0 'x': by position, before by name"]),
        ([(({"a": 1.5},), {}), (({"a": 1.5, "b": 2.5},), {})], ["argument 0 'x': {'a': *} -> {'a': *, 'b': *}"]),
        ([(((1.5,),), {}), (([1.5],), {})], ["argument 0 'x': (*,) -> [*]"]),
        ([((1.5,), {"n": 2}), ((1.5,), {"n": 3})], ["static argument 'n': 2 -> 3"]),
        ([((1.5,), {"n": 2}), ((1.5,), {"n": 2.0})], ["static argument 'n': 2 -> 2.0"]),
        ([((1.5,), {"n": 2}), ((1.5,), {})], ["static argument 'n': no longer given"]),
        ([((1.5,), {}), ((1.5,), {"n": 2})], ["static argument 'n': given as 2"]),
        (
            [((np.ones(2),), {}), ((np.ones(3, "f4"),), {}), ((np.ones(4, "f4"),), {})],
            ["argument 0 'x': f64[2] -> f32[3]", "argument 0 'x': f32[3] -> f32[4]"],
        ),
        (
            [(({"a": 1.5},), {}), (({"b": 1.5},), {}), (({"a": np.float32(1)},), {})],
            [
                "argument 0 'x': {'a': *} -> {'b': *}",
                "argument 0, x['a']: f64*[] -> f32[] (a star marks a Python number)",
            ],
        ),
    ],
)  # fmt: skip
def test_explain_compares_with_the_call_that_was_most_alike(calls: Any, said: list[str]) -> None:
    f = jit(lambda x, y=None, n=None: x, static_argnames="n")
    for args, kwargs in calls:
        f(*args, **kwargs)
    assert reasons(f) == said


def test_explain_says_that_it_has_forgotten() -> None:
    f = jit(lambda x: x)
    for n in range(20):
        f(np.ones(n))
    first, second, third, *_ = str(f.explain()).splitlines()
    assert (first, second) == ("lambda compiled 20 times", "  the last 16:")
    assert third.strip().startswith("5. at test_jit.py")


def test_eval_shape_computes_nothing() -> None:
    f = jit(lambda x: {"y": double(x)})
    assert f.eval_shape(ShapeDtypeStruct((2, 3), "float32")) == {"y": ShapeDtypeStruct((2, 3), "float32")}


def test_results_of_calls_within_a_trace_can_be_rebound_there() -> None:
    f = jit(double)

    def g(x: Any) -> Any:
        y = f(np.float64(3))
        y._rebind(y)
        return mul(x, y)

    same(grad(g)(np.float64(1)), 6.0)


def test_empty_arrays_and_zero_trips() -> None:
    same(jit(double)(np.zeros((0, 3))), np.zeros((0, 3)))
    same(jit(count_to(-1.0))(np.float64(5)), 5.0)


def test_block_until_ready_returns_its_argument() -> None:
    x = arange(2)
    assert block_until_ready(x) is x
