"""Transforms and loops that are called often are replayed: with the same values, and where nothing else can happen."""

from __future__ import annotations

import functools
import gc
import pickle
import random as drawing
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import OutOfBoundsError
from tracer.runtime import transformed
from tracer.runtime.transformed import often
from tracer.trace import trees

X = tnp.asarray(np.linspace(0.5, 5.0, 10))
M = tnp.asarray(np.random.default_rng(3).normal(size=(4, 4)))
FACTOR = 2.0
TABLE = {"w": 2.0}


def small(x: Any) -> Any:
    return tnp.sum(tnp.sin(x) ** 2)


def layers(parameters: Any, x: Any) -> Any:
    for w, b in parameters:
        x = tnp.tanh(x @ w + b)
    return tnp.mean(x**2)


def step(carry: Any, x: Any) -> Any:
    return carry + tnp.sin(x), carry * x


def below(x: Any) -> Any:
    return x < 100.0


def twice(x: Any) -> Any:
    return 2.0 * x


def count(i: Any, x: Any) -> Any:
    return x + i


def branches(x: Any) -> Any:
    return lax.cond(x[0] > 1.0, twice, tnp.negative, x)


CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: tracer.grad(small)(X),
    "value_and_grad": lambda: tracer.value_and_grad(layers)([(M, X[:4])] * 2, M),
    "grad of a number": lambda: tracer.grad(tnp.tanh)(0.5),
    "jacfwd": lambda: tracer.jacfwd(tnp.sin)(X),
    "jacrev": lambda: tracer.jacrev(twice)(X),
    "hessian": lambda: tracer.hessian(small)(X),
    "vmap": lambda: tracer.vmap(twice)(M),
    "vmap of grad": lambda: tracer.vmap(tracer.grad(small))(M),
    "scan": lambda: lax.scan(step, 0.0, X),
    "scan from the end": lambda: lax.scan(step, 0.0, X, reverse=True),
    "while_loop": lambda: lax.while_loop(below, twice, 3.0),
    "fori_loop": lambda: lax.fori_loop(0, 5, count, X),
    "cond": lambda: lax.cond(X[0] > 2.0, twice, tnp.negative, X),
    "switch": lambda: lax.switch(1, [twice, tnp.negative], X),
    "map": lambda: lax.map(twice, M),
    "jvp": lambda: tracer.jvp(small, (X,), (X,)),
    "hvp": lambda: tracer.hvp(small, (X,), (X,)),
    "grad of a branch": lambda: tracer.jacrev(branches)(X),
}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is made at the second call, and compiled at the third after it."""
    monkeypatch.setattr(often, "calls", 2)
    monkeypatch.setattr(often, "replays", 2)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What came to a plan, and what was compiled."""
    made: list[str] = []
    run, improve = transformed._run, transformed.Transformed._improve

    def spied_run(*args: Any) -> Any:
        made.append("plan")
        return run(*args)

    def spied_improve(self: Any, *args: Any) -> None:
        improve(self, *args)
        made.extend(["compiled"] * self._chained)

    monkeypatch.setattr(transformed, "_run", spied_run)
    monkeypatch.setattr(transformed.Transformed, "_improve", spied_improve)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_frequent_calls_have_the_values_and_types_of_the_first(name: str) -> None:
    results = [trees.flatten(CALLS[name]())[0] for _ in range(9)]
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            np.testing.assert_allclose(np.asarray(first), np.asarray(later), rtol=1e-14)


@pytest.mark.parametrize(
    "transformed_call",
    [
        lambda f: lax.scan(f, 0.0, X), lambda f: tracer.vmap(f)(X, X), lambda f: tracer.jacrev(f)(X, X),
        lambda f: tracer.jvp(f, (X, X), (X, X)),
    ],
)  # fmt: skip
def test_what_depends_on_its_arguments_alone_is_compiled(transformed_call: Any, planned: list[str]) -> None:
    def body(c: Any, x: Any) -> Any:
        return c + tnp.sin(tnp.sum(x)), c * 2.0

    repeated(lambda: transformed_call(body))
    assert planned == ["plan", "compiled"]


def test_values_keep_their_bits() -> None:
    derivative = tracer.value_and_grad(small)
    values = {np.asarray(derivative(X)[0]).tobytes() for _ in range(9)}
    assert values == {np.asarray(small(X)).tobytes()}


def repeated(call: Callable[[], Any]) -> Any:
    """The last of enough calls for machine code."""
    for _ in range(8):
        result = call()
    return result


def test_other_numbers_and_functions_under_names_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Any) -> Any:
        return FACTOR * own * inner(x)

    def same(x: Any) -> Any:
        return x

    def other(x: Any) -> Any:
        return 10.0 * x

    own, inner = 1.0, same
    derivative = tracer.grad(scaled)
    assert float(repeated(lambda: derivative(3.0))) == 2.0
    own = 5.0
    assert float(repeated(lambda: derivative(3.0))) == 10.0
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert float(repeated(lambda: derivative(3.0))) == 15.0
    inner = other
    assert float(repeated(lambda: derivative(3.0))) == 150.0
    other.__code__ = twice.__code__
    assert float(repeated(lambda: derivative(3.0))) == 30.0


def test_names_that_come_before_pythons_are_seen(monkeypatch: pytest.MonkeyPatch, planned: list[str]) -> None:
    def size(x: Any) -> Any:
        return abs(x)

    derivative = tracer.grad(size)
    assert float(repeated(lambda: derivative(3.0))) == 1.0
    assert planned == ["plan", "compiled"]
    monkeypatch.setitem(globals(), "abs", lambda x: 5.0 * x)
    assert float(repeated(lambda: derivative(3.0))) == 5.0
    monkeypatch.delitem(globals(), "abs")
    assert float(repeated(lambda: derivative(3.0))) == 1.0


def test_other_defaults_are_seen() -> None:
    def scaled(x: Any, by: float = 2.0, *, more: float = 1.0) -> Any:
        return x * by * more

    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 2.0
    scaled.__defaults__ = (4.0,)
    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 4.0
    scaled.__kwdefaults__["more"] = 2.0
    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 8.0


def test_items_of_containers_are_seen() -> None:
    own = [1.0, {"b": tnp.asarray(2.0)}]

    def scaled(x: Any) -> Any:
        return x * own[0] * own[1]["b"] * TABLE["w"]

    try:
        assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 4.0
        TABLE["w"] = 3.0
        assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 6.0
        own[1]["b"] = tnp.asarray(5.0)
        assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 15.0
        own[0] = 2.0
        assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 30.0
    finally:
        TABLE["w"] = 2.0


class Pair(NamedTuple):
    a: Any
    b: Any


class Shifted(NamedTuple):
    a: Any

    def shifted(self) -> Any:
        return self.a + len(LOG)


def test_named_tuples_are_compiled_but_not_methods_of_the_users(planned: list[str]) -> None:
    def swap(c: Pair, x: Any) -> Any:
        return Pair(c.b, c.a + x), None

    def shift(c: Shifted, x: Any) -> Any:
        return Shifted(c.shifted()), x

    repeated(lambda: lax.scan(shift, Shifted(0), tnp.arange(3)))
    assert not planned
    repeated(lambda: lax.scan(swap, Pair(0.0, 0.0), X))
    assert planned == ["plan", "compiled"]


def test_other_functions_of_libraries_under_names_are_seen() -> None:
    activation = tnp.sin

    def activated(x: Any) -> Any:
        return activation(x)

    assert float(repeated(lambda: tracer.grad(activated)(0.0))) == 1.0
    activation = tnp.cos
    assert float(repeated(lambda: tracer.grad(activated)(0.0))) == 0.0
    activation = np.tan
    assert float(repeated(lambda: tracer.grad(activated)(0.0))) == 1.0


def test_what_python_reads_of_numpys_arrays_is_seen() -> None:
    weights = np.ones(2)

    def scaled(x: Any) -> Any:
        return (x if weights[0] > 0 else -x) * float(weights.sum())

    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 2.0
    weights[:] = -2.0
    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 4.0


def test_captured_arrays_are_read_at_every_call() -> None:
    ours, numpys = tnp.ones(3), np.ones(3)

    def weighed(x: Any) -> Any:
        return tnp.sum(x * ours * numpys)

    assert repeated(lambda: tracer.grad(weighed)(tnp.ones(3))).tolist() == [1.0, 1.0, 1.0]
    ours[1] = 2.0
    assert repeated(lambda: tracer.grad(weighed)(tnp.ones(3))).tolist() == [1.0, 2.0, 1.0]
    numpys[:] = 3.0
    assert repeated(lambda: tracer.grad(weighed)(tnp.ones(3))).tolist() == [3.0, 6.0, 3.0]


def test_attributes_of_objects_are_read_at_every_call(planned: list[str]) -> None:
    settings = SimpleNamespace(rate=2.0)

    def scaled(x: Any) -> Any:
        return x * settings.rate

    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 2.0
    settings.rate = 3.0
    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 3.0
    assert not planned


def test_attributes_of_functions_are_read_at_every_call(planned: list[str]) -> None:
    def scaled(x: Any) -> Any:
        return x * scaled.by

    scaled.by = 2.0
    assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 2.0
    scaled.by = 5.0
    assert float(tracer.grad(scaled)(3.0)) == 5.0
    assert not planned


def test_what_becomes_of_floating_point_errors_is_asked_at_every_call() -> None:
    def scaled(x: Any) -> Any:
        return x * len(np.geterr()["divide"])

    with np.errstate(divide="warn"):
        assert float(repeated(lambda: tracer.grad(scaled)(3.0))) == 4.0
    with np.errstate(divide="ignore"):
        assert float(tracer.grad(scaled)(3.0)) == 6.0


@pytest.mark.parametrize("call", [lambda f: tracer.grad(f)(1.0), lambda f: lax.cond(True, f, f, 1.0)])
def test_debuggers_see_the_users_functions_run(call: Any) -> None:
    def body(x: Any) -> Any:
        return x * 2.0

    repeated(lambda: call(body))
    seen = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: seen.append(frame.f_code))
    try:
        call(body)
    finally:
        sys.settrace(before)
    assert body.__code__ in seen


def test_settings_are_read_at_every_call() -> None:
    def ones(x: Any) -> Any:
        return x + tnp.zeros(3)

    before = tracer.config.default_float
    assert repeated(lambda: tracer.vmap(ones)(np.ones((2, 3), np.float32))).dtype == "float64"
    with tracer.config.using(default_float="float32"):
        assert repeated(lambda: tracer.vmap(ones)(np.ones((2, 3), np.float32))).dtype == "float32"
    try:
        tracer.config.default_float = "float32"
        assert repeated(lambda: tracer.vmap(ones)(np.ones((2, 3), np.float32))).dtype == "float32"
    finally:
        tracer.config.default_float = before


LOG: list[Any] = []
TOTAL = 0


def prints(x: Any) -> Any:
    print("run")
    return x


def appends(x: Any) -> Any:
    LOG.append(1)
    return x


def counts(x: Any) -> Any:
    global TOTAL  # noqa: PLW0603
    TOTAL += 1
    return x


def draws(x: Any) -> Any:
    return x * drawing.random()


def draws_with_numpy(x: Any) -> Any:
    return x * np.random.random()  # noqa: NPY002


def imports(x: Any) -> Any:
    import math

    return x * math.pi


def makes_an_object(x: Any) -> Any:
    return x * SimpleNamespace(a=2.0).a


def runs_a_method_of_a_list(x: Any) -> Any:
    LOG.extend([])
    LOG.pop() if LOG else LOG.append(2.0)
    return x


@pytest.mark.parametrize(
    "function",
    [
        prints, appends, counts, draws, draws_with_numpy, imports, makes_an_object, runs_a_method_of_a_list,
        SimpleNamespace(f=draws).f,
    ],
)  # fmt: skip
def test_what_does_more_than_compute_runs_every_time(function: Any, planned: list[str]) -> None:
    def outer(x: Any) -> Any:
        return function(x)

    repeated(lambda: tracer.jacfwd(outer)(3.0))
    assert not planned


def test_what_appends_runs_every_time() -> None:
    LOG.clear()
    repeated(lambda: tracer.grad(appends)(3.0))
    assert len(LOG) == 8


def test_writing_to_what_is_captured_happens_every_time(planned: list[str]) -> None:
    seen, kept = np.zeros(1), [0]

    def notes(x: Any) -> Any:
        seen[0] += 1
        kept[0] += 1
        return x

    def hides(x: Any) -> Any:
        np.add(seen, 1, out=seen)
        return x

    repeated(lambda: tracer.grad(notes)(3.0))
    assert (seen[0], kept) == (8.0, [8])
    repeated(lambda: tracer.grad(hides)(3.0))
    assert not planned


def test_numbers_beside_what_is_differentiated_stay_numbers(planned: list[str]) -> None:
    def power(x: Any, n: Any) -> Any:
        return tnp.sum(x**n)

    derivative = tracer.value_and_grad(power)
    for _ in range(8):
        derivative(X, tnp.asarray(3))  # of the type that a number has as an array
        assert np.asarray(derivative(X, 3)[0]).tobytes() == np.asarray(tnp.sum(X**3)).tobytes()
    assert planned == ["plan", "compiled"] or planned == ["plan"]
    planned.clear()
    repeated(lambda: derivative(X, 3))
    assert not planned


def test_python_follows_values(planned: list[str]) -> None:
    def bent(x: Any) -> Any:
        return 2.0 * x if x > 0 else 3.0 * x

    for _ in range(6):
        assert float(tracer.grad(bent)(1.0)) == 2.0
        assert float(tracer.grad(bent)(-1.0)) == 3.0
    assert not planned


def test_effects_happen_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(c: Any, x: Any) -> Any:
        tracer.debug.print("at {}", x)
        return c, x

    repeated(lambda: lax.scan(shown, 0.0, tnp.arange(2)))
    assert capsys.readouterr().out.count("at") == 16


def test_errors_name_the_line_of_every_call() -> None:
    def taken(c: Any, i: Any) -> Any:
        return c, X[i]

    messages = []
    for n in [1, 1, 1, 1, 1, 1, 12, 12]:
        try:
            lax.scan(taken, 0.0, tnp.asarray([n]))
        except OutOfBoundsError as error:
            messages.append(str(error))
    assert len(messages) == 2
    assert messages[0] == messages[1]
    assert "index 12 is out of bounds for axis 0 with size 10, at test_transformed.py" in messages[0]


def test_large_calls_are_left_to_the_compiled_backward_pass(planned: list[str]) -> None:
    repeated(lambda: tracer.grad(small)(tnp.ones(20_000)))
    assert not planned


def test_a_loop_that_ends_for_these_numbers_alone_is_compiled(planned: list[str]) -> None:
    def grown(x: Any) -> Any:
        return 2.0 * x

    assert float(repeated(lambda: lax.while_loop(below, grown, 3.0))) == 192.0
    assert planned == ["plan", "compiled"]


@pytest.mark.usefixtures("young_heap")
def test_functions_go_away_with_what_is_known_of_them() -> None:
    def local(x: Any) -> Any:
        return x * 2.0

    for _ in range(8):
        tracer.grad(local)(3.0)
    gone = weakref.ref(local)
    del local
    gc.collect()
    assert gone() is None


def test_what_is_known_of_a_function_is_not_of_its_wrappers() -> None:
    repeated(lambda: tracer.grad(twice)(3.0))

    @functools.wraps(twice)
    def wrapper(x: Any) -> Any:
        return 7.0 * x

    assert float(tracer.grad(wrapper)(3.0)) == 7.0
    assert float(tracer.grad(twice)(3.0)) == 2.0
    assert pickle.loads(pickle.dumps(vars(twice))).keys() == vars(twice).keys()


def test_rules_that_are_set_anew_are_seen() -> None:
    @tracer.custom_jvp
    def own(x: Any) -> Any:
        return x

    def call(x: Any) -> Any:
        return own(x)

    own.defjvp(lambda xs, dxs: (xs[0], 10.0 * dxs[0]))
    assert float(repeated(lambda: tracer.grad(call)(3.0))) == 10.0
    own.defjvp(lambda xs, dxs: (xs[0], 20.0 * dxs[0]))
    assert float(repeated(lambda: tracer.grad(call)(3.0))) == 20.0


def test_results_are_new_handles() -> None:
    def same(c: Any, x: Any) -> Any:
        return c, x

    given = tnp.zeros(3)
    for _ in range(8):
        result, _ = lax.scan(same, given, X)
        result[0] = 9.0
    assert given.tolist() == [0.0, 0.0, 0.0]
