"""The compiled entry: what it recognises, what it hands on, references, memory, and the cyclic garbage collector."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
import threading
import warnings
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.runtime.programs import arange, double, scaled, take
from tracer import nn, random, tree_util
from tracer.errors import ArgumentError, OutOfBoundsError, ShapeError
from tracer.ir import dtypes
from tracer.ir.types import KeyType
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.trigonometric import sin
from tracer.runtime.eager import execute
from tracer.runtime.jit import entry
from tracer.runtime.jit.jit import Calls, jit
from tracer.runtime.native import capi
from tracer.settings import config, gate
from tracer.trace.array import Array, concrete
from tracer.trace.convert import as_array

pytestmark = pytest.mark.skipif(capi.why_not() is not None, reason=str(capi.why_not()))


class Watch:
    """Counts the calls of a jitted function that go by way of Python."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        slow = Calls.slow

        def counted(function: Calls, /, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return slow(function, *args, **kwargs)

        monkeypatch.setattr(Calls, "slow", counted)

    def slow_calls(self, call: Any) -> int:
        before = self.count
        call()
        return self.count - before


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def test_this_python_and_numpy_are_known() -> None:
    assert capi.why_not() is None
    assert entry.entries_enabled()
    assert all(capi.entry_symbols().values())


def test_what_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    why = capi.why_not.__wrapped__
    with monkeypatch.context() as patch:
        patch.setattr(capi, "NDARRAY_NDIM", 20)
        assert why() == "objects are laid out differently: ndarray"
    with monkeypatch.context() as patch:
        patch.setattr(capi, "_NUMPY_ABI", 0x03000000)
        assert why() == "NumPy's binary interface is 0x2000000, not 0x3000000"
    with monkeypatch.context() as patch:
        patch.setattr("sysconfig.get_config_var", lambda name: name == "Py_GIL_DISABLED")
        assert why() == "Python is built without the GIL, and lays objects out differently"
    assert why() is None


def test_containers_with_python_code_of_their_own_go_through_python(watch: Watch) -> None:
    f = jit(lambda tree: tree)
    for tree in (OrderedDict(b=1.0, a=2.0), {(1, 2): 1.0}, deque([1.0])):
        f(tree)
        assert watch.slow_calls(lambda tree=tree: f(tree)) == 1
        assert type(f(tree)) is type(tree)


def test_float32_as_the_default_float_is_part_of_what_is_recognised(watch: Watch) -> None:
    f = jit(lambda x: x)
    config.default_float = "float32"
    try:
        assert f(0.1).dtype == np.float32
        assert watch.slow_calls(lambda: f(0.1)) == 0
        assert float(f(0.1)) == float(np.float32(0.1))
        assert f(0.1j).dtype == np.complex64
        assert complex(f(0.1j)) == complex(np.complex64(0.1j))
    finally:
        config.default_float = "float64"
    assert f(0.1).dtype == np.float64


@pytest.mark.parametrize(
    "args",
    [
        (np.arange(3.0),), (arange(3),), (2.0,), (3,), (True,), (1j,), ((1.0, [2, {"a": arange(2)}]),), (None, 1.0),
        ({"b": 1.0, "a": (2.0,)},), (np.float64(2), [np.int8(3), np.bool_(True)]), (np.complex64(1j), np.float16(2)),
    ],
)  # fmt: skip
def test_a_second_call_with_one_signature_stays_out_of_python(watch: Watch, args: tuple[Any, ...]) -> None:
    f = jit(lambda *trees: trees)
    assert watch.slow_calls(lambda: f(*args)) == 1
    assert watch.slow_calls(lambda: f(*args)) == 0


@pytest.mark.parametrize("dtype", dtypes.OF_NUMPY, ids=str)
def test_numpys_numbers_are_read_where_they_are(watch: Watch, dtype: np.dtype[Any]) -> None:
    f, numbers = jit(lambda x: (x, add(x, x))), [dtype.type(n) for n in (1, 0, 3, -7 if dtype.kind in "if" else 7)]
    f(numbers[0])
    for number in numbers:
        results: list[Any] = []
        assert watch.slow_calls(lambda number=number, into=results: into.append(f(number))) == 0
        same, twice = results[0]
        assert (same.dtype, same.weak_type, same.shape) == (dtype, False, ())
        assert np.asarray(same).tobytes() == number.tobytes()
        assert np.asarray(twice).tobytes() == np.asarray(add(concrete(np.array(number)), number)).tobytes()


def test_numbers_of_another_class_than_numpys_are_handed_on(watch: Watch) -> None:
    f = jit(lambda x: x)
    f(np.float64(2))
    for other in (np.float32(2), type("Meters", (np.float64,), {})(2.0), 2.0):
        assert watch.slow_calls(lambda other=other: f(other)) == 1


def test_numpys_numbers_that_are_donated_stay_what_they_are() -> None:
    f, number = jit(lambda x: add(x, x), donate_argnums=0), np.float64(2)
    for _ in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert float(f(number)) == 4.0
        assert number == 2.0


class Scaled:
    """A node whose children come as a generator, and whose other data is a scale."""

    def __init__(self, parts: Any, scale: Any = "m") -> None:
        self.parts, self.scale = parts, scale


class Fresh:
    """A node whose child is a new array at every flattening."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def tree_flatten(self) -> Any:
        return [self.x + 1 if isinstance(self.x, np.ndarray) else self.x], None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Fresh:
        return cls(*children)


class Keyed:
    """A node with a flattening that has keys, and one that has none."""

    def __init__(self, x: Any) -> None:
        self.x = x


@tree_util.register_dataclass
@dataclass
class Layer:
    """A dataclass with a static field before its only child."""

    width: int = dataclasses.field(metadata={"static": True})
    w: Any = None


class Swapped(NamedTuple):
    """A named tuple with a flattening of its own."""

    a: Any
    b: Any


class Hooked:
    """A node without children whose flattening runs `hook`."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook


tree_util.register_pytree_node(Scaled, lambda s: (iter(s.parts), s.scale), lambda scale, parts: Scaled(parts, scale))
tree_util.register_pytree_node_class(Fresh)
tree_util.register_pytree_with_keys(
    Keyed, lambda k: (((tree_util.GetAttrKey("x"), k.x),), None), lambda _, parts: Keyed(*parts),
    flatten_func=lambda k: ((k.x,), None),
)  # fmt: skip
with warnings.catch_warnings(action="ignore"):  # optree's, of a named tuple
    tree_util.register_pytree_node(Swapped, lambda s: ((s.b, s.a), None), lambda _, parts: Swapped(*reversed(parts)))
tree_util.register_pytree_node(Hooked, lambda h: (h.hook() or (), None), lambda _, parts: Hooked(tuple))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scaled([arange(2), 1.0]), lambda: Scaled(()), lambda: Scaled([Scaled([1.0, {"a": [arange(1)]}])]),
        lambda: Fresh(np.arange(3.0)), lambda: Keyed(2.0), lambda: Layer(3, arange(2)), lambda: Swapped(1.0, arange(2)),
        lambda: [Keyed(None), (Layer(1, 2), 3.0)], lambda: tree_util.Partial(add, 1.0), lambda: {"f": [Keyed(add)]},
    ],
)  # fmt: skip
def test_registered_classes_stay_out_of_python(watch: Watch, make: Any) -> None:
    f = jit(lambda *trees: [x for x in tree_util.tree_leaves(trees) if x is not add])
    expected = f(make(), 1.0)
    assert watch.slow_calls(lambda: f(make(), 1.0)) == 0
    assert [np.asarray(y).tolist() for y in f(make(), 1.0)] == [np.asarray(y).tolist() for y in expected]


@pytest.mark.parametrize(
    "other",
    [Scaled([1.0, 2.0], "n"), Scaled([1.0]), Scaled([1.0, (2.0,)]), Keyed(1.0), [1.0, 2.0], Scaled([1.0, None])],
)
def test_other_instances_of_registered_classes_are_handed_on(watch: Watch, other: Any) -> None:
    f = jit(lambda tree: tree)
    f(Scaled([1.0, 2.0]))
    assert watch.slow_calls(lambda: f(other)) == 1
    assert type(f(other)) is type(other)


def test_a_registered_named_tuple_is_flattened_by_its_own_function() -> None:
    f = jit(lambda pair: pair.a)
    for _ in range(3):
        assert float(f(Swapped(1.0, 2.0))) == 1.0


class Net(nn.Module):
    """A model of layers in a list, a setting and a state."""

    def __init__(self, scale: float = 2.0) -> None:
        self.scale, self.seen = scale, nn.State(arange(2))
        self.layers = [nn.Linear(2, 2, key=random.key(0)), nn.relu, nn.Linear(2, 2, bias=False, key=random.key(1))]


def test_models_stay_out_of_python_as_long_as_their_layouts_are_the_same(watch: Watch) -> None:
    f = jit(lambda model, x: (tree_util.tree_map(lambda a: a + x, model), model.scale * x))
    changed, doubled = f(Net(), 1.0)
    assert watch.slow_calls(lambda: f(Net(), 1.0)) == 0
    assert watch.slow_calls(lambda: f(changed, 1.0)) == 0
    again = f(changed, 1.0)[0]
    assert float(doubled) == 2.0
    np.testing.assert_array_equal(again.layers[0].weight, Net().layers[0].weight + np.float32(2.0))
    np.testing.assert_array_equal(again.seen, [2.0, 3.0])
    others = [Net(3.0), nn.at(Net(), "layers[0]").freeze(), Net().replace(seen=arange(3))]
    for other in others:
        assert watch.slow_calls(lambda other=other: f(other, 1.0)) == 1
    assert float(f(others[0], 1.0)[1]) == 3.0


def test_no_references_to_leaves_of_models_leak() -> None:
    f, model = jit(lambda model: model.seen + 1.0), Net()
    watched = (model, model.__dict__, model.seen, model.layers, model.layers[0].weight, model.layout, "_layout")
    for _ in range(3):
        f(model)
    gc.collect()
    before, blocks = counts(*watched), sys.getallocatedblocks()
    for _ in range(10_000):
        f(model)
    assert max(abs(b - a) for a, b in zip(before, counts(*watched), strict=True)) < 20
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 400


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_an_exception_in_flattening_passes_through(watch: Watch, error: BaseException) -> None:
    raises = False

    def hook() -> None:
        if raises:
            raise error

    f = jit(lambda tree: tree[0])
    f([arange(2), Hooked(hook)])
    f([arange(2), Hooked(hook)])
    raises = True
    with pytest.raises(type(error)) as caught:
        f([arange(2), Hooked(hook)])
    assert caught.value is error
    assert watch.count == 1


@pytest.mark.parametrize("kind", [list, dict])
def test_flattening_may_change_the_containers_around_it(kind: type) -> None:
    f = jit(lambda tree: tree_util.tree_leaves(tree)[0])
    holder: list[Any] = []

    def hook() -> None:
        if holder:
            holder[0].clear()

    for clears in (False, False, True):
        inner = [1.0 * np.arange(3.0), Hooked(hook), 2.0]
        tree: Any = inner if kind is list else dict(zip("abc", inner, strict=True))
        del inner
        if not clears:
            assert np.asarray(f(tree)).tolist() == [0.0, 1.0, 2.0]
            continue
        holder.append(tree)
        with contextlib.suppress(KeyError, IndexError, ValueError):  # what is left has another structure
            f(tree)


def test_keywords_stay_out_of_python(watch: Watch) -> None:
    f = jit(lambda x, **rest: add(x, rest["y"]))
    assert watch.slow_calls(lambda: f(arange(1), y=arange(1), z=3)) == 1
    assert watch.slow_calls(lambda: f(arange(1), y=arange(1), z=3)) == 0
    assert watch.slow_calls(lambda: f(arange(1), z=3, y=arange(1))) == 1


def test_static_arguments_stay_out_of_python(watch: Watch) -> None:
    f = jit(lambda x, mode, shape: x, static_argnums=(1, 2))
    f(1.0, "a b c".replace(" ", "-"), (3, 4))
    assert watch.slow_calls(lambda: f(1.0, "a b c".replace(" ", "-"), (3, 4))) in (0, 1)
    shape = (3, 4)
    f(1.0, "fast", shape)
    assert watch.slow_calls(lambda: f(1.0, "fa" + "st", shape)) == 0


def test_several_signatures_stay_out_of_python(watch: Watch) -> None:
    f = jit(double)
    arguments = [np.arange(3.0), np.arange(3), 1.0, (np.zeros((2, 2), "f4"))]
    for x in arguments:
        f(x)
    for _ in range(2):
        for x in arguments:
            assert watch.slow_calls(lambda x=x: f(x)) == 0


@pytest.mark.parametrize(
    "other",
    [
        np.arange(4.0), np.arange(3.0).reshape(1, 3), np.arange(3, dtype="f4"), np.arange(6.0)[::2],
        np.arange(3.0).astype(">f8"), 1.0, as_array(2.0), [1.0], (), None,
    ],
)  # fmt: skip
def test_other_arguments_are_handed_on(watch: Watch, other: Any) -> None:
    f = jit(lambda x: x)
    f(np.arange(3.0))
    assert watch.slow_calls(lambda: f(other)) == 1
    assert watch.slow_calls(lambda: f(np.arange(3.0))) == 0


def test_a_weak_and_a_strong_scalar_are_told_apart() -> None:
    f = jit(lambda x: x)
    for _ in range(2):
        assert f(2.0).weak_type
        assert not f(np.float64(2.0)).weak_type
        assert not f(concrete(np.array(2.0))).weak_type
        assert f(concrete(np.array(2.0), weak=True)).weak_type


def test_keys_and_their_words_are_told_apart() -> None:
    words = np.zeros((3, 2), np.uint32)
    f = jit(lambda x: x)
    for _ in range(2):
        key = f(concrete(words, type=KeyType((3,))))
        assert key.type == KeyType((3,))
        assert f(concrete(words)).shape == (3, 2)
        assert f(words).shape == (3, 2)


def test_a_call_while_something_is_traced_goes_through_python(watch: Watch) -> None:
    f = jit(double)
    f(1.0)
    gate.close()
    try:
        assert watch.slow_calls(lambda: f(1.0)) == 1
    finally:
        gate.open()
    assert watch.slow_calls(lambda: f(1.0)) == 0


def test_an_exception_in_python_passes_through(watch: Watch) -> None:
    f = jit(double)
    f(1.0)
    with pytest.raises(ArgumentError, match="is not an array"):
        f("text")
    assert float(f(1.0)) == 2.0


def test_a_fault_leaves_no_frame_of_ours() -> None:
    f = jit(take)
    x, i = arange(3), np.array([5])
    f(x, np.array([1]))
    with pytest.raises(OutOfBoundsError) as error:
        f(x, i)
    assert error.traceback[-1].path.name == "test_entry.py"


def test_no_error_shows_frames_of_ours() -> None:
    def wrong(x: Any) -> Any:
        return add(x, arange(4))

    f, g = jit(wrong), jit(lambda x: {}[x.shape])
    f(arange(4))
    g.__call__ = entry.front(g._calls.guarded)
    for call, error in ((lambda: f(1.0), ShapeError), (lambda: g(1.0), KeyError), (lambda: g(1.0, 2.0), TypeError)):
        with pytest.raises(error) as caught:
            call()
        assert {frame.path.name for frame in caught.traceback} == {"test_entry.py"}


def test_a_bug_of_ours_shows_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(double)
    f(1.0)
    monkeypatch.setattr("tracer.runtime.jit.trace_call.stage", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable") as caught:
        f(2)
    assert {"jit.py", "trace_call.py"} <= {frame.path.name for frame in caught.traceback}


def test_results_own_their_memory() -> None:
    f = jit(lambda x: (x, x))
    x = np.arange(1000.0)
    for result in (*f(x), *f(x)):
        value = result._value
        assert value.base is None
        assert value.flags.owndata
        assert not np.shares_memory(value, x)
    one, other = f(x)
    assert not np.shares_memory(one._value, other._value)


def test_results_outlive_everything_else() -> None:
    f = jit(double)
    f(1.0)
    y = f(np.arange(3.0))
    del f
    gc.collect()
    assert np.asarray(y).tolist() == [0.0, 2.0, 4.0]


def counts(*things: object) -> list[int]:
    return [sys.getrefcount(thing) for thing in things]


@pytest.mark.parametrize("fails", [False, True])
def test_no_references_leak(fails: bool) -> None:
    x, a, tree = np.arange(3.0), arange(3), {"k": [1.5, arange(3)]}
    i = np.array([7 if fails else 1])
    f = jit(lambda x, a, tree, i: {"y": take(add(x, a), i), "x": tree["k"]})

    def call() -> None:
        try:
            f(x, a, tree, i)
        except OutOfBoundsError:
            assert fails

    call()
    call()
    watched = (x.dtype, i.dtype, x, a, a._value, tree, tree["k"], np.ndarray, Array, None, True, False, f, f.__call__)
    gc.collect()
    before, blocks = counts(*watched), sys.getallocatedblocks()
    for _ in range(1000 if fails else 100_000):
        call()
    after = counts(*watched)
    assert max(b - a for a, b in zip(before, after, strict=True)) < 20
    assert min(b - a for a, b in zip(before, after, strict=True)) > -20
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500  # one a call would be a thousand


@pytest.mark.parametrize("fails", [False, True])
def test_no_references_to_leaves_of_registered_classes_leak(fails: bool) -> None:
    x, other = arange(3), np.arange(6.0)[::2] if fails else np.arange(3.0)
    fresh, layer = Fresh(np.arange(3.0)), Layer(10**6, x)
    f = jit(lambda *trees: tree_util.tree_leaves(trees)[0])
    arguments = [layer, [x, fresh], Scaled([x, Keyed(x)]), other]
    for _ in range(3):
        f(*arguments)
    watched = (x, x._value, x.dtype, fresh, fresh.x, layer, layer.width, arguments[1], arguments[2], other, None, f)
    gc.collect()
    before, blocks = counts(*watched), sys.getallocatedblocks()
    for _ in range(500 if fails else 10_000):
        f(*arguments)
    after = counts(*watched)
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 20
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 400


def test_donated_leaves_of_registered_classes_are_given_away(watch: Watch) -> None:
    f = jit(lambda layer: layer.w + 1.0, donate_argnums=0)
    for _ in range(3):
        x = as_array(np.arange(1000.0))
        address = x._value.ctypes.data
        y = f(Layer(1, x))
        assert y._value.ctypes.data == address
        with pytest.raises(ArgumentError, match="was donated"):
            x + 1
    assert watch.count == 1


def test_no_references_leak_when_arguments_are_handed_on() -> None:
    f = jit(lambda x, y: x)
    a, wrong = arange(3), np.arange(6.0)[::2]
    for _ in range(3):
        f(a, wrong)
    before = counts(a, a._value, wrong, wrong.dtype)
    for _ in range(500):
        f(a, wrong)
    after = counts(a, a._value, wrong, wrong.dtype)
    assert max(b - a for a, b in zip(before, after, strict=True)) < 20


def test_results_are_seen_by_the_garbage_collector() -> None:
    result = jit(double)(arange(3))
    assert gc.is_tracked(result)
    value = jit(lambda x: (x, x))(1.0)
    assert gc.is_tracked(value)


def test_a_jitted_function_in_a_cycle_is_collected() -> None:
    class Model:
        pass

    def build() -> Any:
        model = Model()
        model.weights = arange(3)
        model.apply = jit(lambda x: add(x, model.weights))
        for _ in range(3):
            model.apply(arange(3))
        return weakref.ref(model), weakref.ref(model.apply), weakref.ref(model.weights)

    gone = build()
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]


def test_a_large_arena_is_used_again_and_freed() -> None:
    f = jit(lambda x: add(take(x, np.arange(100_000) % 7), take(x, np.arange(100_000) % 5)))
    x = arange(10)
    first = np.asarray(f(x))
    for _ in range(20):
        np.testing.assert_array_equal(f(x), first)
    del f
    gc.collect()


def test_threads_share_an_executable() -> None:
    f = jit(lambda x, s: add(scaled(x, s), take(x, np.arange(20_000))))
    x = np.arange(20_000.0)
    f(x, np.full(20_000, 1.0))
    wrong: list[Any] = []

    def work(number: float) -> None:
        factor = np.full(20_000, number)
        for _ in range(60):
            if not (np.asarray(f(x, factor)) == x * (number + 1)).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_handle_may_be_rebound_while_the_program_runs() -> None:
    """The value read by a call is held by it, whatever other threads do with the handle."""
    handle = as_array(np.ones(200_000))
    f = jit(lambda x: add(x, handle))
    x, stop = np.zeros(200_000), threading.Event()
    f(x)

    def rebind() -> None:
        while not stop.is_set():
            handle._value = np.ones(200_000)

    thread = threading.Thread(target=rebind)
    thread.start()
    try:
        for _ in range(100):
            assert (np.asarray(f(x)) == 1.0).all()
    finally:
        stop.set()
        thread.join()


def test_the_layout_of_objects_is_tried_alike_within_a_trace() -> None:
    assert jit(lambda x: x if capi.why_not.__wrapped__() is None else 0.0)(1.0) == 1.0


def test_functions_run_where_entries_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry.switch, "ctypes_only", True)
    monkeypatch.setattr(execute, "_kernels", {})
    np.testing.assert_allclose(sin(as_array(np.asarray([0.5, 1.0]))), np.sin([0.5, 1.0]))
