"""Methods of objects, and what else of classes replayed functions read: attributes, fields, members, modules."""

from __future__ import annotations

import functools
import gc
import weakref
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.runtime.replays import TIMES, repeated, slope
from tracer.runtime.following import surroundings_of

LOG: list[Any] = []

pytestmark = pytest.mark.usefixtures("replayed_soon")


class Layer:
    gain = 1.0

    def __init__(self, w: float) -> None:
        self.w = tnp.asarray(w)
        self.history: list[Any] = []

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.gain

    @property
    def twice(self) -> Any:
        return self.w * 2.0


class Model:
    def __init__(self) -> None:
        self.layers = [Layer(2.0), Layer(3.0)]
        self.rate = 0.5
        self.seen: Any = object()  # nothing that the loss reads

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def loss(self, x: Any) -> Any:
        return self.forward(x) * self.rate * self.layers[0].twice


def test_methods_read_the_attributes_of_their_call(planned: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()

    def call() -> float:
        return slope(model.loss)

    assert repeated(call) == 12.0
    for n in range(TIMES):  # as an optimiser does
        model.layers[0].w = tnp.asarray(float(n))
        assert call() == 3.0 * n * n
    assert len(planned) > TIMES
    model.layers[0].w[...] = 2.0
    assert call() == 12.0
    model.rate = 1.0
    assert repeated(call) == 24.0
    model.layers.append(Layer(10.0))
    assert repeated(call) == 240.0
    monkeypatch.setattr(Layer, "gain", 2.0)
    assert repeated(call) == 240.0 * 8
    model.layers[2].gain = 1.0  # an attribute of its own before the class's
    assert repeated(call) == 240.0 * 4
    monkeypatch.setattr(Layer, "__call__", lambda self, x: x * self.w)
    assert repeated(call) == 240.0
    monkeypatch.setattr(Layer, "twice", property(lambda self: self.w))
    assert repeated(call) == 120.0
    model.forward = lambda x: x  # type: ignore[method-assign]
    assert repeated(call) == 2.0
    model.loss = lambda x: 7.0 * x  # type: ignore[method-assign]
    assert repeated(call) == 7.0


def test_an_object_of_another_class_is_another(planned: list[Any]) -> None:
    class Other(Layer):
        def __call__(self, x: Any) -> Any:
            return x * 100.0

    layer = Layer(2.0)

    def call() -> float:
        return slope(lambda x: 1.0 * layer(x))

    assert repeated(call) == 2.0
    layer.__class__ = Other
    assert repeated(call) == 100.0
    layer.__class__ = Layer
    assert repeated(call) == 2.0
    layer = Other(1.0)
    assert repeated(call) == 100.0
    Other.__bases__ = (Model, Layer)
    assert repeated(call) == 100.0
    assert planned


def test_attributes_that_come_and_go_are_seen(planned: list[Any]) -> None:
    layer = Layer(2.0)

    def bias(x: Any) -> Any:
        try:
            return x * layer.bias  # type: ignore[attr-defined]
        except AttributeError:
            return x * layer.w

    def call() -> float:
        return slope(lambda x: 1.0 * bias(x))

    assert repeated(call) == 2.0
    layer.bias = tnp.asarray(5.0)  # type: ignore[attr-defined]
    assert repeated(call) == 5.0
    del layer.bias  # type: ignore[attr-defined]
    assert repeated(call) == 2.0
    Layer.bias = 7.0  # type: ignore[attr-defined]
    try:
        assert repeated(call) == 7.0
    finally:
        del Layer.bias  # type: ignore[attr-defined]
    layer.__dict__ = {"w": tnp.asarray(9.0)}
    assert repeated(call) == 9.0
    assert planned


def test_objects_under_other_names_are_the_same_objects(planned: list[Any]) -> None:
    layer = Layer(2.0)

    def through(box: Any) -> Any:
        (inner,) = box
        alias = inner
        return alias.w

    def call() -> float:
        return slope(lambda x: x * through([layer]))

    assert repeated(call) == 2.0
    layer.w = tnp.asarray(4.0)
    assert call() == 4.0
    layer.w = 5.0  # type: ignore[assignment]  # a number is one of the kind
    assert repeated(call) == 5.0
    layer.w = 6.0  # type: ignore[assignment]
    assert repeated(call) == 6.0
    assert planned


@dataclass
class Settings:
    rate: float = 2.0
    name: str = "a"


def test_dataclasses_are_compared_by_their_fields() -> None:
    one, other = Settings(), Settings()

    def call() -> float:
        return slope(lambda x: x * one.rate if one == other else x)

    assert repeated(call) == 2.0
    one.name = "b"
    assert repeated(call) == 1.0
    other.name = "b"
    one.rate = other.rate = 4.0
    assert repeated(call) == 4.0


class Kind(Enum):
    SOFT = 1
    HARD = 2


def test_members_of_enumerations_are_seen(planned: list[Any]) -> None:
    for _ in range(4):
        for kind, expected in ((Kind.SOFT, 1.0), (Kind.HARD, 2.0)):
            assert repeated(lambda kind=kind: slope(lambda x: x * kind.value)) == expected
    assert planned


class Counted(Enum):
    FIRST = 1

    def size(self) -> int:
        return len(LOG)


class Held(Enum):
    NUMBERS = [2.0]  # noqa: RUF012


def test_members_of_enumerations_that_do_more_run_every_time(planned: list[Any]) -> None:
    kinds = [Counted.FIRST, Held.NUMBERS]
    LOG[:] = [1, 1]
    assert repeated(lambda: slope(lambda x: x * kinds[0].size())) == 2.0
    LOG.append(1)
    assert slope(lambda x: x * kinds[0].size()) == 3.0
    assert repeated(lambda: slope(lambda x: x * kinds[1].value[0])) == 2.0
    Held.NUMBERS.value[0] = 5.0
    assert repeated(lambda: slope(lambda x: x * kinds[1].value[0])) == 5.0
    assert not planned


def test_modules_and_functions_under_other_names_are_looked_at(planned: list[Any]) -> None:
    module, layer = ModuleType("settings"), Layer(1.0)
    module.rate = 2.0  # type: ignore[attr-defined]

    def function() -> float:
        return 1.0

    function.by = 3.0  # type: ignore[attr-defined]
    layer.module, layer.function, held = module, function, [function]  # type: ignore[attr-defined]

    def calls() -> list[float]:
        def aliased(x: Any) -> Any:
            alias = module
            return x * alias.rate

        return [
            slope(lambda x: x * layer.module.rate),  # type: ignore[attr-defined]
            slope(lambda x: x * layer.function.by),  # type: ignore[attr-defined]
            slope(lambda x: x * held[0].by),  # type: ignore[attr-defined]
            slope(aliased),
        ]

    assert repeated(calls) == [2.0, 3.0, 3.0, 2.0]
    module.rate, function.by = 5.0, 7.0  # type: ignore[attr-defined]
    assert repeated(calls) == [5.0, 7.0, 7.0, 5.0]
    assert not planned


def test_modules_of_the_users_are_read_by_name(planned: list[Any]) -> None:
    module = ModuleType("settings")
    module.rate = tnp.asarray(2.0)  # type: ignore[attr-defined]

    def call() -> float:
        return slope(lambda x: x * module.rate)

    assert repeated(call) == 2.0
    module.rate = tnp.asarray(3.0)  # type: ignore[attr-defined]
    assert call() == 3.0
    module.rate = 4.0  # type: ignore[attr-defined]
    assert repeated(call) == 4.0
    assert planned


# What is never replayed


class Counting:
    def __init__(self) -> None:
        self.calls, self.log = 0, [0.0]

    def counts(self, x: Any) -> Any:
        self.calls += 1
        return x

    def appends(self, x: Any) -> Any:
        self.log.append(1.0)
        return x

    @property
    def next(self) -> int:
        self.calls += 1
        return self.calls

    def reads(self, x: Any) -> Any:
        return x * self.next

    @functools.cached_property
    def cached(self) -> float:
        LOG.append(1)
        return 2.0

    def caches(self, x: Any) -> Any:
        return x * self.cached

    @classmethod
    def made(cls) -> Any:
        return cls()

    def makes(self, x: Any) -> Any:
        return x * len(self.made().log)

    def by_name(self, x: Any) -> Any:
        return x * getattr(self, "calls")  # noqa: B009

    def by_dict(self, x: Any) -> Any:
        return x * self.__dict__["calls"]

    def as_text(self, x: Any) -> Any:
        return x * len(f"{self}")

    def as_key(self, x: Any) -> Any:
        return x * id(self)


class Guessing:
    def __getattr__(self, name: str) -> Any:
        return len(LOG)

    def loss(self, x: Any) -> Any:
        return x * self.anything


class Slotted:
    __slots__ = ("w",)

    def __init__(self) -> None:
        self.w = 2.0

    def loss(self, x: Any) -> Any:
        return x * self.w


@pytest.mark.parametrize(
    "name", ["counts", "appends", "reads", "caches", "makes", "by_name", "by_dict", "as_text", "as_key"]
)
def test_objects_that_do_more_run_every_time(name: str, planned: list[Any]) -> None:
    counting = Counting()
    repeated(lambda: slope(getattr(counting, name)))
    assert not planned
    if name in ("counts", "reads"):
        assert counting.calls == TIMES
    if name == "appends":
        assert len(counting.log) == TIMES + 1


@pytest.mark.parametrize("made", [Guessing, Slotted])
def test_objects_of_odd_classes_run_every_time(made: Any, planned: list[Any]) -> None:
    thing = made()
    repeated(lambda: slope(thing.loss))
    if made is Slotted:
        thing.w = 5.0
        assert slope(thing.loss) == 5.0
    assert not planned


# What is kept


@pytest.mark.usefixtures("young_heap")
def test_nothing_of_a_call_stays_but_code(planned: list[Any]) -> None:
    models, last = [Model()], [None]

    def call() -> None:
        a = tnp.ones(3)
        model = models[0]
        function = lambda x: tnp.sum(x * a) * model.rate  # noqa: E731
        tracer.grad(function)(3.0)
        last[0] = (weakref.ref(a), weakref.ref(function))  # type: ignore[call-overload]

    repeated(call)
    assert planned
    planned.clear()
    gone = weakref.ref(models.pop())
    gc.collect()
    assert [reference() for reference in last[0]] == [None, None]  # type: ignore[attr-defined]
    assert gone() is None


def test_surroundings_are_what_the_code_reads() -> None:
    model = Model()
    found = surroundings_of((model.loss,))
    assert found is not None
    operands = found.operands((model.loss,))
    assert operands is not None
    assert [float(x) for x in operands] == [2.0, 3.0]
    assert found.operands((Model().loss,)) is not None
    assert found.operands((Layer(1.0),)) is None
    assert surroundings_of((print,)) is None
