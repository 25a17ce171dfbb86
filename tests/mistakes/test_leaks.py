"""Mistakes with traced arrays that are kept, and arrays that are written to."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.mistakes.told import fails
from tracer import errors, grad, jit, jvp, vmap


@pytest.mark.parametrize(
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
        "  help: return it from the function instead of storing it in a global, a closure or an object",
    )


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
