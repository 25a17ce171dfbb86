"""Mistakes with what is not an array."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.mistakes.told import X, fails
from tracer import errors, random, torch_names

DTYPES = (
    "help: the dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, "
    "complex64 and complex128; for storage, int1 to int4, uint1 to uint4 and ml_dtypes' narrow floats"
)


def test_a_dtype_that_does_not_exist() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(3, "float33"),  # here
        f"zeros at @here: no such dtype\n  got 'float33'\n  {DTYPES}",
    )


def test_a_dtype_in_the_other_order_of_bytes() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(3, ">f4"),  # here
        "zeros at @here: no such dtype\n  got '>f4'\n"
        "  help: all arrays are in the machine's order of bytes: take 'float32'",
    )


def test_a_dtype_of_records() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(3, [("x", float)]),  # here
        "zeros at @here: no such dtype\n  got [('x', <class 'float'>)]\n"
        "  help: a record is a dict or a dataclass of arrays, one for each field",
    )


TEXT = "leave text in NumPy's arrays, or number it: numpy.unique(x, return_inverse=True)[1]"


@pytest.mark.parametrize(
    ("value", "dtype", "remedy"),
    [
        (["a", "b"], "<U1", TEXT),
        (np.array([b"a"]), "|S1", TEXT),
        (np.array([1, "a"], object), "object",
         "cast it where it holds numbers, x.astype(float), and leave other objects in a list"),
        (np.array(["2026-11-22"], "datetime64[D]"), "datetime64[D]",
         'keep dates as counts of a unit, x.astype("int64"), or leave them in NumPy\'s arrays'),
        (np.zeros(2, [("x", float)]), "[('x', '<f8')]",
         "a record is a dict or a dataclass of arrays: one for each field, x[name]"),
    ],
)  # fmt: skip
def test_what_holds_no_numbers(value: Any, dtype: str, remedy: str) -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.asarray(value),  # here
        f"asarray at @here: an argument has a dtype that tracer does not compute with\n  got {dtype}\n  help: {remedy}",
    )


def test_none_among_numbers() -> None:
    fails(
        errors.ArgumentError,
        lambda: tnp.asarray([1.0, None]),  # here
        "asarray at @here: the list holds something other than numbers\n  got NoneType: None\n"
        "  help: lists hold numbers and arrays, nested to one depth; NaN may stand for missing values",
    )


def test_ragged_lists() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.asarray([[1.0, 2.0], [3.0]]),  # here
        "asarray at @here: the elements of a list must have equal shapes\n  got a list of 2, a list of 1\n"
        "  help: pad them, or keep a list of arrays",
    )


def test_an_argument_that_is_no_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: tnp.sin("a"),  # here
        "sin at @here: an argument is not an array\n  got str: 'a'\n  help: pass an array, a number or a list of them",
    )


def test_a_missing_key() -> None:
    fails(
        errors.ArgumentError,
        lambda: random.normal((3,)),  # here
        "random.normal at @here takes a key first\n  got tuple\n  help: make one with tracer.random.key(seed)",
    )


def test_a_seed_that_is_no_integer() -> None:
    fails(
        errors.ArgumentError,
        lambda: random.key(0.5),  # here
        "random.key at @here: the seed is an integer\n  got f64*[]\n  help: cast it to int",
    )


def test_a_key_used_as_a_number() -> None:
    key = random.key(0)
    fails(
        errors.DTypeError,
        lambda: key + 1,  # here
        "add at @here: random keys are not numbers\n  help: tracer.random's functions take keys",
    )
    with pytest.raises(errors.ArgumentError, match=r"float at .*: a random key is no number"):
        float(key)


def test_calling_an_array() -> None:
    fails(TypeError, lambda: X(1), "'Array' object is not callable")


@pytest.mark.parametrize("use", [lambda x: {x: 1}, functools.lru_cache(lambda x: x)])
def test_hashing_an_array(use: Any) -> None:
    fails(TypeError, lambda: use(X), "unhashable type: 'Array'")  # Python's own, as for NumPy's arrays


def test_a_method_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Python itself adds the near name when it shows the error: `Array` has no `__getattr__` to slow it down."""
    with pytest.raises(AttributeError) as caught:
        _ = X.reshap
    sys.__excepthook__(caught.type, caught.value, None)
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown == "AttributeError: 'Array' object has no attribute 'reshap'. Did you mean: 'reshape'?"


@each("name", torch_names.MEMBERS)
def test_methods_of_pytorch_say_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(X, name)
    assert str(caught.value) == f"'Array' object has no attribute '{name}' ({torch_names.MEMBERS[name]})"
    assert not hasattr(X, name)
    assert name not in dir(X)


@each(("module", "name"), [(m, n) for m, names in torch_names.NAMES.items() for n in names])
def test_functions_of_pytorch_say_what_to_use(module: str, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert str(caught.value) == f"module '{module}' has no attribute '{name}' ({torch_names.NAMES[module][name]})"


def test_calls_as_in_pytorch() -> None:
    for call, text in (
        (lambda: X.sum(dim=0), r"^sum at test_others.py:\d+ takes no dim=\n  help: it is called axis=$"),
        (lambda: X.view(3, 1), r"^view\(\) takes .*\n  help: x.reshape\(3, 4\) changes the shape; "),
    ):
        with pytest.raises(TypeError, match=text):
            call()


@pytest.mark.parametrize("name", ["tracer.scipy.spatial", "tracer.pmap", "tracer.numpy.ctypeslib"])
def test_imports_of_missing_modules_give_the_reason_of_the_attribute(name: str) -> None:
    parent, _, last = name.rpartition(".")
    with pytest.raises(AttributeError) as attribute:
        getattr(importlib.import_module(parent), last)
    reason = str(attribute.value).partition(" (")[2]
    assert reason
    for statement in (f"import {name}", f"from {parent} import {last}", f"import {name} as other"):
        with pytest.raises(ModuleNotFoundError) as caught:
            exec(statement, {})
        assert str(caught.value) == f"No module named '{name}' ({reason}"


def test_imports_of_other_missing_modules_are_python_s_own_errors() -> None:
    assert importlib.util.find_spec("tracer.nonsense") is None
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'tracer.nonsense'$"):
        importlib.import_module("tracer.nonsense")
    with pytest.raises(ImportError, match=r"cannot import name 'nonsense' from 'tracer.scipy'"):
        exec("from tracer.scipy import nonsense", {})
