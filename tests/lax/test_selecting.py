"""select_and_scatter beside loops over windows, and beside the gradient of pooling."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import lax
from tracer.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(9)
JOINS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SETTINGS: list[Any] = [
    ((6,), (2,), (2,), ((0, 0),)),
    ((7,), (3,), (1,), ((1, 1),)),
    ((5, 6), (2, 3), (1, 2), ((0, 1), (1, 0))),
    ((2, 4, 4), (1, 2, 2), (1, 2, 2), ((0, 0), (0, 0), (0, 0))),
    ((3,), (5,), (1,), ((0, 0),)),
]


def places(setting: Any) -> tuple[int, ...]:
    sizes, window, strides, pads = setting
    rows = zip(sizes, window, strides, pads, strict=True)
    return tuple(max(0, (n + low + high - w) // step + 1) for n, w, step, (low, high) in rows)


def expected(x: Any, source: Any, start: float, greatest: bool, join: Any, setting: Any) -> Any:
    _, window, strides, pads = setting
    result = np.full(x.shape, start, x.dtype)
    for place in np.ndindex(*source.shape):
        corner = [p * s - low for p, s, (low, _) in zip(place, strides, pads, strict=True)]
        ranges = [range(max(c, 0), min(c + w, n)) for c, w, n in zip(corner, window, x.shape, strict=True)]
        inside = list(itertools.product(*ranges))
        best = (max if greatest else min)(inside, key=lambda index: x[index])  # the first of equal ones
        result[best] = join(result[best], source[place])
    return result


@pytest.mark.parametrize(
    ("setting", "join", "choice", "dtype"),
    covering(SETTINGS, JOINS, ["ge", "le"], ["float64", "float32", "int32"], least=32),
    ids=str,
)
def test_every_value_reaches_the_element_that_its_window_chose(
    dtype: str, choice: str, join: str, setting: Any
) -> None:
    x = RNG.integers(-4, 5, setting[0]).astype(dtype)
    source = RNG.integers(-4, 5, places(setting)).astype(dtype)
    wanted = expected(x, source, 1, choice == "ge", JOINS[join], setting)
    for way in (lambda f: f, tracer.jit):
        call = way(
            lambda x, source: lax.select_and_scatter(
                x, getattr(lax, choice), *setting[1:], source, 1, getattr(lax, join)
            )
        )
        np.testing.assert_array_equal(call(x, source), wanted)


@pytest.mark.parametrize("setting", SETTINGS[:4], ids=str)
def test_it_is_the_gradient_of_pooling(setting: Any) -> None:
    x, source = RNG.normal(size=setting[0]), RNG.normal(size=places(setting))
    _, pull = tracer.vjp(lambda x: lax.reduce_window(x, -np.inf, lax.max, *setting[1:]), x)
    found = lax.select_and_scatter(x, lax.ge, *setting[1:], source, 0.0, lax.add)
    np.testing.assert_allclose(found, pull(source)[0], rtol=1e-14)


def test_it_is_linear_in_its_source_and_batched() -> None:
    x, source = RNG.normal(size=(3, 6)), RNG.normal(size=(3, 3))
    pooled = lambda x, s: lax.select_and_scatter(x, lax.ge, (2,), (2,), "VALID", s, 0.0, lax.add)  # noqa: E731
    rows = tracer.vmap(pooled)(x, source)
    np.testing.assert_array_equal(rows, np.stack([np.asarray(pooled(a, b)) for a, b in zip(x, source, strict=True)]))
    gradient = tracer.grad(lambda s: (pooled(x[0], s) ** 2).sum())(source[0])
    np.testing.assert_allclose(gradient, 2 * source[0], rtol=1e-14)


def test_mistakes() -> None:
    x = tnp.arange(4.0)
    with pytest.raises(ShapeError, match=r"source has one value for every window\n  expected f64\[2\], got f64\[3\]"):
        lax.select_and_scatter(x, lax.ge, (2,), (2,), "VALID", tnp.ones(3), 0.0, lax.add)
    with pytest.raises(ArgumentError, match=r"select is not a supported operation\n  help: lax\.ge or le"):
        lax.select_and_scatter(x, lambda a, b: a > b + 1, (2,), (2,), "VALID", tnp.ones(2), 0.0, lax.add)
    with pytest.raises(ArgumentError, match=r"scatter is not a supported operation\n  help: lax\.add, mul, min or max"):
        lax.select_and_scatter(x, lax.ge, (2,), (2,), "VALID", tnp.ones(2), 0.0, lax.sub)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_select_takes_integers_as_predicates(way: Any) -> None:
    x, y = tnp.arange(3.0), -tnp.ones(3)
    for pred in (np.array([0, 1, 2], "int32"), np.array([0, 1, 1], "uint8")):
        assert way(lax.select)(pred, x, y).tolist() == [-1.0, 1.0, 2.0]
    assert way(lax.select)(1, x, y).tolist() == x.tolist()
    assert tracer.grad(lambda x: lax.select(np.array([0, 1, 1], "int32"), x, y).sum())(x).tolist() == [0.0, 1.0, 1.0]
