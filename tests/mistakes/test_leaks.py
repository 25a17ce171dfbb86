"""Mistakes with traced arrays that are kept, and arrays that are written to."""

from __future__ import annotations

import inspect
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.mistakes.told import fails
from tracer import errors, grad, jit, jvp, vmap


@each(
    "use",
    [lambda y: y + 1, float, bool, np.asarray, jit(tnp.sin), lambda y: y.sum(), lambda y: y.copy(), tnp.max],
)
def test_a_traced_array_kept_in_a_global(use: Any) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2  # made
        kept.append(y)
        return y

    def reuse() -> Any:
        jit(f)(1.0)
        return use(kept[0])

    with pytest.raises(errors.LeakedTracerError) as caught:
        reuse()
    lines, first = inspect.getsourcelines(f)
    assert str(caught.value).partition("\n")[2] == (
        f"  an array f64*[], `y` made at test_leaks.py:{first + 1} while `f` was traced, outlived its trace\n"
        "  it is kept as `kept[0]`\n"
        "  help: return it from the function instead of storing it in a global, a closure or an object"
    )
    assert lines[1].endswith("# made\n")


@pytest.mark.parametrize("run", [lambda f: grad(f)(1.0), lambda f: jvp(f, (1.0,), (1.0,))])
def test_a_differentiated_array_kept_in_a_global(run: Any) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2  # made
        kept.append(y)
        return y * y

    run(f)
    fails(
        errors.LeakedTracerError,
        lambda: kept[0] + 1,  # here
        "leaked traced array at @here\n"
        "  an array f64*[], `y` made at @made while `f` was traced, outlived its trace\n"
        "  it is kept as `kept[0]`\n"
        "  help: return it from the function instead of storing it in a global, a closure or an object",
    )


class Layer:
    """Something of the user's that keeps what it computes."""

    __slots__ = ("__dict__", "hidden")

    def __init__(self) -> None:
        self.cache: dict[str, Any] = {}

    def __call__(self, x: Any) -> Any:
        self.hidden = x * 2  # made
        return self.hidden


def told(use: Any) -> list[str]:
    with pytest.raises(errors.LeakedTracerError) as caught:
        use()
    return str(caught.value).splitlines()[1:]


HELP = "  help: return it from the function instead of storing it in a global, a closure or an object"


def test_a_traced_array_kept_by_an_attribute() -> None:
    layer = Layer()
    jit(layer)(1.0)
    made = inspect.getsourcelines(Layer.__call__)[1] + 1
    assert told(lambda: layer.hidden + 1) == [
        f"  an array f64*[], `self.hidden` made at test_leaks.py:{made} while `Layer` was traced, outlived its trace",
        "  it is kept as `layer.hidden`",
        HELP,
    ]


def test_a_traced_array_kept_deep_in_an_object() -> None:
    model = SimpleNamespace(layers=[Layer(), Layer()])

    def f(x: Any) -> Any:
        model.layers[1].cache["h"] = x
        return x

    def call() -> None:
        jit(f)(1.0)

    call()
    place = f"test_leaks.py:{inspect.getsourcelines(call)[1] + 1}"
    assert told(lambda: tnp.sin(model.layers[1].cache["h"])) == [
        f"  an array f64*[], an argument of `f` called at {place} while `f` was traced, outlived its trace",
        "  it is kept as `model.layers[1].cache['h']`",
        HELP,
    ]


def test_a_traced_array_kept_by_a_closure_and_by_a_function() -> None:
    hidden = None

    def f(x: Any) -> Any:
        nonlocal hidden
        hidden = tnp.sin(
            x * 2,
        )
        f.kept = x * 3  # type: ignore[attr-defined]
        return x

    jit(f)(1.0)
    first = inspect.getsourcelines(f)[1]

    def use(y: Any) -> Any:
        return y + hidden

    assert told(lambda: use(1.0))[1:] == ["  it is kept as `hidden`", HELP]
    assert told(lambda: f.kept + 1)[:2] == [  # type: ignore[attr-defined]
        f"  an array f64*[], `f.kept` made at test_leaks.py:{first + 5} while `f` was traced, outlived its trace",
        HELP,
    ]


def test_a_traced_array_kept_in_a_module_and_in_a_class() -> None:
    class Counter:
        last: Any = None

    def f(x: Any) -> Any:
        Counter.last = x
        globals()["KEPT"] = (x + 1, None)
        return x

    jit(f)(1.0)
    try:
        assert told(lambda: Counter.last * 2)[1:] == ["  it is kept as `Counter.last`", HELP]
        assert told(lambda: globals()["KEPT"][0] * 2)[1:] == ["  it is kept as `KEPT[0]`", HELP]
    finally:
        del globals()["KEPT"]


def test_looking_for_a_leaked_array_runs_nothing_of_the_users() -> None:
    class Loud:
        @property
        def value(self) -> Any:
            raise AssertionError("a property was read")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

    class Listing(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("a list was iterated")

        def __eq__(self, other: object) -> bool:
            raise AssertionError("a list was compared")

        __hash__ = None  # type: ignore[assignment]

    loud, listing, itself = Loud(), Listing(), []  # type: ignore[var-annotated]
    itself.append(itself)

    def f(x: Any) -> Any:
        listing.append(x)
        return x

    jit(f)(1.0)

    def use() -> Any:
        assert (type(loud), len(itself)) == (Loud, 1)
        return listing[0] + 1

    assert told(use)[1:] == ["  it is kept as `listing[0]`", HELP]


@pytest.mark.parametrize("run", [jit, vmap, grad])
def test_writing_to_an_argument(run: Any) -> None:
    def f(x: Any) -> Any:
        x[...] = 1.0  # here
        return x.sum()

    fails(
        errors.MutationError,
        lambda: run(f)(tnp.arange(3.0)),
        "x[i] = v at @here: the current trace does not own this array (an argument of the traced function)\n"
        f"  got f64[{'' if run is vmap else '3'}]\n"
        "  help: write to a copy, x = x.copy(), or use x = x.at[i].set(v)",
    )


def test_a_traced_array_on_another_thread() -> None:
    told: list[str] = []

    def f(x: Any) -> Any:
        def work() -> None:
            with pytest.raises(errors.LeakedTracerError) as caught:
                x + 1.0
            told.append(str(caught.value).partition("while ")[2])

        thread = Thread(target=work)
        thread.start()
        thread.join()
        return x

    assert jit(f)(1.0) == 1.0
    expected = (
        "`f` was traced, belongs to a trace on another thread\n  it is kept as `x`\n"
        "  help: hand other threads arrays whose values are known: what is traced stays on the thread that traces"
    )
    assert told == [expected]


def test_writing_to_a_captured_array() -> None:
    x = tnp.arange(3.0)

    def f(v: Any) -> Any:
        x[0] = v  # here
        return x

    fails(
        errors.MutationError,
        lambda: jit(f)(1.0),
        "x[i] = v at @here: the current trace does not own this array (made outside it)\n  got f64[3]\n"
        "  help: write to a copy, x = x.copy(), or use x = x.at[i].set(v)",
    )


def test_deleting_an_element() -> None:
    def delete() -> None:
        x = tnp.arange(3.0)
        del x[0]  # here

    fails(
        errors.MutationError,
        delete,
        "del x[i] at @here: arrays keep their size\n  got f64[3]\n  help: x = tracer.numpy.delete(x, i)",
    )
