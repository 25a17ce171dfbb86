"""Sums, products and running sums of floats in NumPy's order: the same bits as NumPy's, over shapes and axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import jit
from tracer.primitives.arrays.reductions.reductions import reduce_prod
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.control.cumulative import cumprod, cumsum
from tracer.primitives.elementwise.complex_reference import product
from tracer.runtime.exact import exact_program
from tracer.runtime.jit.trace_call import make_program
from tracer.trace.evaluate import evaluate

SHAPES = [
    (1,),
    (2,),
    (7,),
    (8,),
    (9,),
    (29,),
    (128,),
    (3, 5),
    (5, 3),
    (1, 6),
    (2, 3, 4),
    (4, 3, 2),
    (2, 1, 9),
    (2, 2, 3, 2),
]
NUMPYS = {"sum": (reduce_sum, np.add), "prod": (reduce_prod, np.multiply)}


def _by_compiled_code(function: Callable[[Any], Any], x: Any) -> Any:
    """What the written out program gives when it is compiled; None where there is none."""
    program = exact_program(make_program(function)(x))
    return None if program is None else np.asarray(jit(lambda v: evaluate(program, [v])[0])(x))


def _drawn(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.asarray(generator.normal(size=shape) * 10.0 ** generator.integers(-3, 3, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NUMPYS)
def test_reductions_have_numpys_bits(name: str, shape: tuple[int, ...], dtype: str) -> None:
    function, ufunc = NUMPYS[name]
    generator = np.random.default_rng(3)
    every = [axes for count in range(1, len(shape) + 1) for axes in combinations(range(len(shape)), count)]
    for axes in every[:: 1 if len(shape) < 4 else 4]:
        written = 0
        for x in (_drawn(shape, dtype, generator), _drawn(shape, dtype, generator), -np.zeros(shape, dtype)):
            found = _by_compiled_code(lambda v, axes=axes: function(v, axes), x)  # type: ignore[misc]
            if found is not None:
                assert found.tobytes() == ufunc.reduce(x, axis=axes).tobytes(), axes
                written += 1
        assert written == 3 or (name == "prod" and np.prod([shape[axis] for axis in axes]) > 32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("function", "numpys"), [(cumsum, np.cumsum), (cumprod, np.cumprod)])
def test_running_sums_have_numpys_bits(function: Any, numpys: Any, axis: int, reverse: bool) -> None:
    x = _drawn((11, 6), "float64", np.random.default_rng(4))
    flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    found = _by_compiled_code(lambda v: function(v, axis, reverse), x)
    assert found.tobytes() == np.ascontiguousarray(flip(numpys(flip(x), axis=axis))).tobytes()


def test_the_compilers_own_order_is_another() -> None:
    """Were it not, nothing would have to be written out."""
    generator = np.random.default_rng(5)
    xs = [_drawn((n,), "float32", generator) for n in range(20, 30)]
    assert any(np.asarray(jit(lambda v: reduce_sum(v, (0,)))(x)).tobytes() != np.add.reduce(x).tobytes() for x in xs)


@pytest.mark.parametrize(
    "function",
    [lambda x: tnp.dot(tnp.outer(tnp.tile(x, 20), x), x), lambda x: tnp.sum(tnp.tile(x, 100))],
    ids=["matrix by vector", "a long sum"],
)
def test_other_orders_have_no_such_program(function: Callable[[Any], Any]) -> None:
    assert exact_program(make_program(function)(np.arange(9.0))) is None


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 15, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_of_short_vectors_are_added_up_as_numpy_adds(dtype: str, n: int, rng: np.random.Generator) -> None:
    program = exact_program(make_program(tnp.dot)(np.ones(n, dtype), np.ones(n, dtype)))
    assert program is not None
    run = jit(lambda x, y: evaluate(program, [x, y])[0])
    factor = 1 + 0.5j if np.dtype(dtype).kind == "c" else 1.0
    for x, y in ((rng.normal(size=n), rng.normal(size=n)), (-np.zeros(n), np.ones(n)), (np.full(n, 1e30), np.ones(n))):
        x, y = (x * factor).astype(dtype), (y * factor).astype(dtype)
        found = np.asarray(run(x, y))
        expected = np.add.reduce(product(x, y) if x.dtype.kind == "c" else x * y)
        assert found.dtype == dtype
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_complex_sums_have_numpys_bits(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    x = (_drawn((*shape, 2), "float64", rng) @ [1, 1j]).astype(dtype)
    for axes in (tuple(range(len(shape))), (len(shape) - 1,), (0,)):
        found = _by_compiled_code(partial(reduce_sum, axes=axes), x)
        if found is not None:
            assert found.tobytes() == np.add.reduce(x, axis=axes).tobytes()
        else:
            assert shape == (128,)


def test_long_vectors_are_left_to_the_library() -> None:
    for x in (np.ones(65), np.ones(65, "float32"), np.ones(65, "complex128")):
        assert exact_program(make_program(tnp.dot)(x, x)) is None
