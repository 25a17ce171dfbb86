"""Docstrings of tracer.lax: an example that runs, the shapes and arguments by name, and the errors that are raised."""

from __future__ import annotations

import doctest
import inspect
import re
from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tests.lax.wrong_calls import WRONG
from tracer import errors, lax
from tracer.errors import DTypeError, ShapeError

FUNCTIONS = [name for name in lax.__all__ if not inspect.isclass(getattr(lax, name))]
OF_NO_ARRAYS = {"axis_size", "padtype_to_pads"}


def prose(name: str) -> str:
    """What a docstring says before its examples."""
    return re.sub(r"\s+", " ", (getattr(lax, name).__doc__ or "").partition(">>>")[0])


@each("name", lax.__all__)
def test_every_name_has_an_example(name: str) -> None:
    value: Any = getattr(lax, name)
    assert doctest.DocTestParser().get_examples(value.__doc__ or ""), f"lax.{name} has no example in its docstring"


def test_the_list_of_names_is_sorted_and_complete() -> None:
    assert lax.__all__ == sorted(lax.__all__)
    assert len(set(lax.__all__)) == len(lax.__all__)


@each("name", FUNCTIONS)
def test_shapes_and_wanted_arguments_are_named(name: str) -> None:
    text = prose(name)
    if name not in OF_NO_ARRAYS:
        assert re.search(r"\[[^\]]*\]|any shape|shapes", text), f"lax.{name} says nothing of shapes"
    for parameter in inspect.signature(getattr(lax, name)).parameters.values():
        if parameter.default is parameter.empty:
            assert re.search(rf"\b{parameter.name}\b", text), f"lax.{name} says nothing of {parameter.name}"


# elementwise functions say which kinds of dtypes they take: "x: floats or complex numbers [*s]. Returns ..."

SAMPLES = {
    "bool": np.array([True]), "integers": np.array([1], np.int32), "floats": np.array([0.5], np.float32),
    "complex numbers": np.array([0.5 + 0.5j], np.complex64),
}  # fmt: skip
TOGETHER = {"numbers": ["integers", "floats", "complex numbers"], "real numbers": ["integers", "floats"]}
SETTINGS: dict[str, tuple[Any, ...]] = {"integer_pow": (2,), "reduce_precision": (5, 5)}
SENTENCE = re.compile(r"\b(\w+(?:, \w+)?): ([a-z, ]+) \[\*s\](?: of one dtype, [^.]*)?\. Returns ([^.]*), \[\*s\]\.")
RETURNED = {
    "the same dtype": lambda x: x, "bool": lambda x: np.dtype(bool),
    "the dtype of the parts": lambda x: np.dtype(np.float32),
    "complex numbers of that precision": lambda x: np.dtype(np.complex64),
    "real numbers of that precision": lambda x: np.dtype(np.float32) if x.kind == "c" else x,
}  # fmt: skip
ELEMENTWISE = [name for name in FUNCTIONS if SENTENCE.search(prose(name)) and name not in WRONG]


def test_elementwise_functions_are_found() -> None:
    assert len(ELEMENTWISE) > 60


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_kinds_of_dtypes_are_those_that_are_taken(name: str) -> None:
    found = SENTENCE.search(prose(name))
    assert found is not None
    operands, kinds, returned = found.groups()
    said = {kind for part in re.split(r", | or ", kinds) for kind in TOGETHER.get(part, [part])}
    function, count = getattr(lax, name), len(operands.split(", "))
    for kind, x in SAMPLES.items():
        arguments = [x] * count + list(SETTINGS.get(name, ()))
        if kind not in said:
            with pytest.raises(DTypeError):
                function(*arguments)
            assert "Raises DTypeError for other dtypes" in prose(name)
            continue
        y = function(*arguments)
        assert y.shape == x.shape
        assert y.dtype == RETURNED[returned](x.dtype)
        if count == 2:
            with pytest.raises(DTypeError):
                function(x, next(other for other in SAMPLES.values() if other is not x))
            with pytest.raises(ShapeError):
                function(x, np.ones(3, x.dtype))


def errors_of(name: str) -> set[str]:
    """The errors that a docstring names; those of another function, where it raises as that does."""
    text = prose(name)
    named = set(re.findall(r"\b(\w+Error)\b", text))
    return named.union(*map(errors_of, re.findall(r"Raises as `(\w+)`", text)))


@each("name", [name for name in FUNCTIONS if name not in ELEMENTWISE])
def test_the_errors_that_a_docstring_names_are_raised(name: str) -> None:
    calls = WRONG.get(name, {})
    assert errors_of(name) <= set(calls), f"no wrong call of lax.{name} for every error that it names"
    for error, call in calls.items():
        with pytest.raises(getattr(errors, error)) as raised:
            call()
        assert type(raised.value).__name__ == error
        assert raised.value.__context__ is None or raised.value.__suppress_context__
        assert error in errors_of(name), f"lax.{name} does not say that it raises {error}"
