"""Results of jitted calls: the compiled entry makes trees of every kind as the function returned them."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import jit, nn, random, tree, tree_util
from tracer.errors import ModuleError
from tracer.runtime.native import capi


class Pair(NamedTuple):
    a: Any
    b: Any


class Held:
    """Registered class, whose making fails where `Held.error` says so."""

    error: BaseException | None = None

    def __init__(self, array: Any, rest: Any) -> None:
        self.array, self.rest = array, rest

    def __repr__(self) -> str:
        return f"Held({self.array}, {self.rest})"

    @staticmethod
    def put_together(_: None, children: Any) -> Held:
        if Held.error is not None:
            raise Held.error
        return Held(*children)


tree_util.register_pytree_node(Held, lambda held: ((held.array, held.rest), None), Held.put_together)


class Layer(nn.Module):
    """Module with a slot, settings, one of which hides a class's attribute, a property and state."""

    __slots__ = ("unset",)
    rate = 2

    def __init__(self, x: Any) -> None:
        self.sizes, self.rate = [1, 2], 3
        self.x, self.parts = x, {"b": x + 1, "a": (x + 2, None)}
        self.count = nn.State(tnp.asarray(4))

    @property
    def double(self) -> Any:
        return 2 * self.x


Make = Callable[[Any, Any], Any]
KINDS: dict[str, Make] = {
    "list": lambda x, y: [x, [], (y,), (), None],
    "dict": lambda x, y: {"b": x, "c": {}, "a": y},
    "named tuple": lambda x, y: Pair(x, Pair((), y)),
    "registered": lambda x, y: Held(x, {"rest": [y, y]}),
    "ordered": lambda x, y: OrderedDict(b=x, a=y),
    "default": lambda x, y: defaultdict(list, b=x, a=y),
    "deque": lambda x, y: deque([x, y], maxlen=5),
    "module": lambda x, y: {"z": [Layer(x), (y, Held(Layer(y), None))]},
    "nothing": lambda x, y: None,
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_call_returns_the_functions_tree(make: Make) -> None:
    f, x = jit(lambda x, y: make(x + y, y)), np.asarray([1.0, 2.0])
    expected = make(*jit(lambda x, y: (x + y, y))(x, 2.0))
    results = [f(x, 2.0) for _ in range(3)]
    assert {repr(result) for result in results} == {repr(expected)}
    assert [tree.structure(result) for result in results] == [tree.structure(expected)] * 3
    np.testing.assert_array_equal(tree.leaves(results[2])[:1], tree.leaves(expected)[:1])
    assert results[1] is not results[2] or expected is None


def test_modules_that_calls_return_are_closed_and_keep_settings_roles_and_metadata() -> None:
    f, model = jit(lambda model: tree.map(lambda x: x + 1, model)), Layer(np.arange(3))
    f(model)
    changed = f(f(model))
    assert (changed.sizes, changed.rate, changed.double.tolist()) == ([1, 2], 3, [4, 6, 8])
    assert (int(changed.count), changed.layout) == (6, model.layout)
    assert list(changed.__dict__) == ["sizes", "rate", "_layout", "x", "parts", "count"]
    assert list(changed.parts) == ["b", "a"]
    assert not hasattr(changed, "unset")
    assert weakref.ref(changed)() is changed
    assert changed.__dict__ is not f(model).__dict__
    with pytest.raises(ModuleError, match="the module is closed"):
        changed.x = 1


@pytest.mark.skipif(capi.why_not() is not None, reason=str(capi.why_not()))
def test_modules_pass_calls_without_python_code() -> None:
    layers = [nn.Linear(2, 2, key=random.key(n)) for n in range(3)]
    f, model = jit(lambda model: tree.map(lambda x: x + 1, model)), {"net": nn.Sequential(*layers)}
    model, names = f(f(model)), []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f(model)
    finally:
        sys.setprofile(None)
    assert names == []


@pytest.mark.parametrize("fails", [False, True])
def test_no_references_to_parts_of_results_leak(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    model = Layer(np.arange(3))
    f = jit(lambda model: [{"a": model}, Held(model.x + 1, (model, None)), [model]])
    for _ in range(2):
        f(model)
    monkeypatch.setattr(Held, "error", ValueError("mine") if fails else None)

    def call() -> None:
        try:
            f(model)
        except ValueError as error:
            assert fails
            error.__traceback__ = None

    call()
    watched = (Layer, Held, None, model, model.layout, model.sizes, "sizes", dict, tuple)
    gc.collect()
    before, blocks = [sys.getrefcount(thing) for thing in watched], sys.getallocatedblocks()
    for _ in range(2000):
        call()
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched]
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) < 20
    assert sys.getallocatedblocks() - blocks < 400
