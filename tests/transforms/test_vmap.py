"""Arguments of `vmap`: what is mapped, and what the function receives as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, vmap

X = np.arange(3.0)


class Settings:
    """Object that is neither an array nor a tree."""

    scale = 2.0


def test_arguments_without_an_axis_stay_as_they_are() -> None:
    settings, table, seen = Settings(), np.arange(4), []

    def f(x: Any, *rest: Any) -> Any:
        seen.append(rest)
        return x * settings.scale

    given = (settings, 3, 2.5, True, "text", tnp.sin, None, {"a": settings, "n": 1}, table)
    y = vmap(f, in_axes=(0, *[None] * len(given)))(X, *given)
    np.testing.assert_array_equal(y, 2.0 * X)
    ((*rest, array),) = seen
    assert rest == [*given[:-1]]
    assert [type(x) for x in rest[1:4]] == [int, float, bool]
    assert array is table


def test_numbers_without_an_axis_are_sizes_and_static_choices() -> None:
    def f(x: Any, n: int, parts: dict[str, Any]) -> Any:
        return tnp.zeros(n) + x if parts["up"] else parts["x"] * x

    batched = vmap(f, in_axes=(0, None, {"up": None, "x": 0}))
    np.testing.assert_array_equal(batched(X, 2, {"up": True, "x": X}), np.stack([X, X], 1))
    np.testing.assert_array_equal(jit(lambda x: batched(x, 2, {"up": False, "x": x}))(X), X * X)


def test_arrays_without_an_axis_cannot_be_written_to() -> None:
    w = tnp.ones(2)

    def f(x: Any, w: Any) -> Any:
        w[0] = x
        return w

    try:
        vmap(f, in_axes=(0, None))(X, w)
    except tracer.errors.MutationError:
        pass
    else:
        raise AssertionError("the caller's array was written to")
    np.testing.assert_array_equal(w, [1.0, 1.0])


def test_functions_text_and_none_inside_trees_are_structure() -> None:
    tree = {"f": tnp.sin, "name": "sin", "bias": None, "x": X}
    np.testing.assert_allclose(vmap(lambda t: t["f"](t["x"]))(tree), np.sin(X))
    axes = {"f": None, "name": 0, "bias": None, "x": 0}
    np.testing.assert_allclose(vmap(lambda t: t["f"](t["x"]), in_axes=(axes,))(tree), np.sin(X))
    np.testing.assert_allclose(vmap(lambda *, t: t["f"](t["x"]))(t=tree), np.sin(X))
