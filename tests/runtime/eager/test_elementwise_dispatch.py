"""Eager elementwise functions in compiled code: kernels for every shape, and what calls them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering, each
from tests.laws.tolerances import tolerance_of
from tracer import jit, lax
from tracer.errors import DTypeError, ShapeError
from tracer.ir import dtypes
from tracer.ir.types import array_type
from tracer.numpy.core import promotion
from tracer.primitives.arrays.slice_pad_concatenate import concatenate_p
from tracer.primitives.catalogue import ELEMENTWISE
from tracer.primitives.elementwise.exponential import exp, exp_p
from tracer.runtime.eager import execute
from tracer.runtime.eager.elementwise_dispatch import Elementwise
from tracer.runtime.eager.elementwise_kernels import kernel
from tracer.runtime.jit.entry import entries_enabled, switch
from tracer.trace.array import Array
from tracer.trace.stage import stage

RNG = np.random.default_rng(0)
SHAPES = ((), (0,), (1,), (7,), (3, 5), (2, 0, 4), (1000,), (3, 341))
F64 = array_type(dtypes.F64, ())


def counted() -> tuple[Elementwise, list[Any]]:
    """a * b + b, promoted, and the calls that ran Python."""
    calls: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        calls.append((x, y))
        a, b = promotion.promoted("f", x, y)
        return a * b + b

    return Elementwise(function), calls


@pytest.mark.parametrize(
    ("shape", "dtype", "name"),
    covering(
        SHAPES, ["float32", "float64", "float16", "complex128"], ["exp", "sin", "log", "arctan", "cosh"], least=48
    ),
)
def test_an_eager_function_is_the_compiled_one_to_the_bit(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    function: Any = getattr(tnp, name)
    x = tnp.asarray(RNG.uniform(0.1, 3.0, shape).astype(dtype))
    eagerly, compiled = function(x), jit(function)(x)
    assert eagerly.type == compiled.type
    assert np.asarray(eagerly).tobytes() == np.asarray(compiled).tobytes()


@each("name", [p.name for p in ELEMENTWISE if tolerance_of(p.name, dtypes.F64, is_complex=False)])
def test_what_has_a_tolerance_runs_by_a_kernel(name: str) -> None:
    primitive = next(p for p in ELEMENTWISE if p.name == name)
    assert execute._is_inexact(primitive, [tnp.ones(3)])


def test_one_kernel_serves_all_shapes() -> None:
    execute.clear_caches()
    for shape in SHAPES:
        x = tnp.asarray(RNG.uniform(size=shape))
        assert np.allclose(exp(x), np.exp(np.asarray(x)), rtol=1e-15)
    assert len(execute._kernels) == 1


def test_literals_beside_arrays_reach_the_kernel() -> None:
    x = tnp.asarray([1.0, 2.0, 3.0])
    assert np.allclose(tnp.float_power(x, 2.5), np.asarray(x) ** 2.5, rtol=1e-15)
    assert np.allclose(tnp.arctan2(1.0, x), np.arctan2(1.0, np.asarray(x)), rtol=1e-15)


@pytest.mark.parametrize("name", ["add", "atan2", "pow"])
def test_unequal_shapes_are_refused_as_under_jit(name: str) -> None:
    function = getattr(lax, name)
    function(tnp.ones(3), tnp.ones(3))
    for compiled in (function, jit(function)):
        for shape, shown in (((4,), "f64[4]"), ((1, 3), "f64[1,3]")):
            with pytest.raises(ShapeError, match="must have equal shapes") as caught:
                compiled(tnp.ones(3), tnp.ones(shape))
            assert f"got f64[3] and {shown}" in str(caught.value)
        assert np.array_equal(compiled(tnp.ones(3), tnp.ones(())), function(tnp.ones(3), tnp.ones(3)))


@pytest.mark.parametrize("name", ["sin", "lgamma", "cbrt"])
def test_a_dtype_is_refused_with_the_shape_that_came(name: str) -> None:
    with pytest.raises(DTypeError) as caught:
        getattr(lax, name)(tnp.arange(6).reshape(2, 3))
    assert "got i64[2,3]" in str(caught.value)


def test_what_is_no_single_loop_has_no_kernel() -> None:
    assert kernel(concatenate_p, {"dimension": 0}, [F64, F64], [False, False]) is None
    assert kernel(exp_p, {}, [F64], [False]) is not None


@each(
    "shapes",
    [((3,), (3,)), ((), ()), ((0,), (0,)), ((2, 3), (3,)), ((3,), ()), ((), (2, 2)), ((2, 1), (1, 3))],
    ids=str,
)
def test_a_signature_is_staged_once(shapes: Any) -> None:
    function, calls = counted()
    for _ in range(2):
        a, b = (RNG.uniform(size=shape) for shape in shapes)
        assert np.array_equal(function(tnp.asarray(a), tnp.asarray(b)), a * b + b)
    assert len(calls) == 1
    assert type(calls[0][0]) is Array
    assert calls[0][0]._trace is not None


def test_numbers_of_one_type_share_a_prepared_call() -> None:
    calls: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        calls.append(y)
        return tnp.multiply(x, y)

    product = Elementwise(function)
    x = tnp.arange(3.0)
    for number in (2.0, 3.0, -0.5, 7, 9, True):
        assert np.array_equal(product(x, number), np.arange(3.0) * number)
    assert calls == [2.0, 7, True]


@each(
    ("x", "y"),
    [
        (tnp.ones(3), tnp.ones((2, 3))),  # broadcast
        (tnp.ones(3, "float32"), tnp.ones(3)),  # other dtypes
        (tnp.ones(3), 2**80), (tnp.ones(3), True), (tnp.ones(3), [1.0, 2.0, 3.0]),  # what only Python knows
        (1.0, 2.0),
    ],
)  # fmt: skip
def test_other_calls_have_the_same_results(x: Any, y: Any) -> None:
    total = Elementwise(tnp.add)
    for _ in range(2):
        assert np.array_equal(total(x, y), np.add(np.asarray(x), float(y) if type(y) is int else y))


def test_prepared_functions_are_traced_in_traces() -> None:
    exponential = Elementwise(tnp.exp)
    x = tnp.asarray([0.5, 1.0])
    exponential(x)
    staged = stage(lambda inputs: [exponential(inputs[0]), exponential(x)], [array_type(dtypes.F64, (2,))])
    assert [e.primitive.name for e in staged.program.equations] == ["exp", "exp"]
    assert np.allclose(tracer.grad(lambda v: tnp.sum(exponential(v)))(x), np.exp(np.asarray(x)), rtol=1e-15)


def test_a_changed_setting_is_noticed() -> None:
    half = Elementwise(lambda x: tnp.divide(x, 2))
    x = tnp.asarray(1)  # weak
    assert half(x).dtype == np.float64
    with tracer.config.using(default_float="float32"):
        assert half(x).dtype == np.float32
    assert half(x).dtype == np.float64
    try:
        tracer.config.default_float = "float32"
        assert half(x).dtype == np.float32
    finally:
        tracer.config.default_float = "float64"
    assert half(x).dtype == np.float64


def test_a_result_may_be_rebound_in_a_trace() -> None:
    def f(x: Any) -> Any:
        y = tnp.exp(tnp.asarray([1.0, 2.0]))
        y[0] = 0.0
        return tnp.sum(x * y)

    assert np.isclose(tracer.grad(f)(2.0), np.exp(2.0), rtol=1e-15)


def test_the_first_thing_compiled_may_be_in_a_trace() -> None:
    program = """
import tracer, tracer.numpy as tnp
from tracer.runtime.jit.entry import entries_enabled
print(float(tracer.grad(lambda x: x * tnp.exp(tnp.asarray(0.0)))(2.0)), entries_enabled())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0", str(entries_enabled())]


def test_without_entries_programs_of_one_shape_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tnp.asarray(RNG.uniform(size=(3, 5)))
    before = tnp.exp(x)
    execute.clear_caches()
    monkeypatch.setattr(switch, "ctypes_only", True)
    assert np.asarray(exp(x)).tobytes() == np.asarray(before).tobytes()
    monkeypatch.undo()
    execute.clear_caches()


def test_integers_round_once_to_floats() -> None:
    number = 2**60 + 2**36 + 1  # by way of float64 it would round to even
    assert float((tnp.asarray([0.0], "float32") + number)[0]) == float(np.int64(number).astype(np.float32))


def test_arrays_of_equal_dtypes_have_one_object_for_them() -> None:
    for given in (np.arange(3).astype(np.longlong), np.arange(3.0).astype(">f8"), np.arange(3, dtype="=i4")):
        x = tnp.asarray(given)
        assert x.dtype is dtypes.ONE_OBJECT[x.dtype]
        assert np.allclose(tnp.exp(x), np.exp(given), rtol=1e-6)  # of int32 it is a float32


@pytest.mark.parametrize(
    "number", [np.float64(0.1), np.float32(0.1), np.int64(3), np.int8(-3), np.uint64(7), np.bool_(True)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
def test_numpys_numbers_beside_arrays_are_promoted_as_within_a_trace(number: Any, dtype: str) -> None:
    x = tnp.asarray(np.arange(1, 6), dtype=dtype)
    for name in ("add", "multiply", "divide", "maximum", "less", "power", "arctan2"):
        if name == "power" and number.dtype.kind == "i" and number < 0:
            continue
        function = getattr(tnp, name)
        for call in (lambda function=function: function(x, number), lambda function=function: function(number, x)):
            found = call()
            inner = tracer.vmap(lambda _, call=call: call())(tnp.zeros(1))[0]  # promoted as numbers
            assert found.type == inner.type, name
            np.testing.assert_allclose(found, inner, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_numpys_numbers_share_a_prepared_call() -> None:
    calls: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        calls.append(y)
        return tnp.multiply(x, y)

    product = Elementwise(function)
    x = tnp.arange(4.0)
    for number in (np.float64(2), np.float64(3), np.float32(2), np.float32(4), np.int8(2), np.int8(5)):
        assert product(x, number).tolist() == (np.arange(4.0) * number).tolist()
    assert len(calls) == 3
    assert product(x, type("Meters", (np.float64,), {})(2.0)).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_integers_that_do_not_fit_are_refused_as_before_the_call_was_prepared() -> None:
    x = tnp.asarray(np.arange(3), dtype="int8")
    assert (x + 1).tolist() == [1, 2, 3]
    with pytest.raises(DTypeError, match="the integer 300 does not fit in i8"):
        x + 300
