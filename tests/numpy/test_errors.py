"""Errors begin with the function that the user called, whichever others it is written with; none comes from within."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering, each
from tracer.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError, TracerError
from tracer.numpy import __all__

X = tnp.ones((2, 3))
FUNCTIONS = {n: f for n in __all__ if inspect.isfunction(f := getattr(tnp, n))}
WITH_AXIS = [n for n, f in FUNCTIONS.items() if "axis" in inspect.signature(f).parameters]
PLAIN = {  # what functions with an axis take before it, where that is not arrays alone
    "array_split": (X, 2), "split": (X, 2), "partition": (X, 1), "argpartition": (X, 1),
    "percentile": (X, 50), "quantile": (X, 0.5), "nanpercentile": (X, 50), "nanquantile": (X, 0.5), "repeat": (X, 2),
    "roll": (X, 1), "delete": (X, 0), "insert": (X, 0, 1.0), "take": (X, [0]), "compress": ([True], X),
    "apply_over_axes": (tnp.sum, X), "concatenate": ([X, X],), "concat": ([X, X],), "stack": ([X, X],),
    "packbits": (tnp.ones((2, 3), "uint8"),), "unpackbits": (tnp.ones((2, 3), "uint8"),),
    "linspace": (X, X), "geomspace": (X, X), "logspace": (X, X), "put_along_axis": (X, tnp.zeros((2, 3), int), 1.0),
    "take_along_axis": (X, tnp.zeros((2, 3), int)), "trapezoid": (X,), "cross": (X, X), "lexsort": ([X, X],),
}  # fmt: skip


def arguments(name: str) -> tuple[Any, ...]:
    if name in PLAIN:
        return PLAIN[name]
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (X,) * len([p for p in needed if p.name != "axis"])


@each(("name", "run"), covering(WITH_AXIS, [lambda f, *x: f(*x), lambda f, *x: tracer.jit(lambda: f(*x))()], least=76))
def test_an_axis_out_of_range_is_reported_by_the_function_called(name: str, run: Any) -> None:
    function = FUNCTIONS[name]
    given, named = ((tnp.sum, 9, X), {}) if name == "apply_along_axis" else (arguments(name), {"axis": 9})
    with pytest.raises((TracerError, IndexError, ValueError)) as caught:
        run(lambda: function(*given, **named))
    inner = re.match(r"([a-z_]\w*) at ", str(caught.value))
    assert inner is None or inner[1] == function.__name__
    assert inner or "axis" in str(caught.value)


DERIVED = [
    ("mean", lambda: tnp.mean(X, axis=9)), ("std", lambda: tnp.std(X, out=np.zeros(7))),
    ("std", lambda: X.std(axis=9)), ("count_nonzero", lambda: tnp.count_nonzero(X, axis=9)),
    ("cross", lambda: tnp.cross(X, tnp.ones((4, 3)))), ("fliplr", lambda: tnp.fliplr(tnp.ones(3))),
    ("average", lambda: tnp.average(X, axis=9)), ("nanmax", lambda: tnp.nanmax(X, axis=9)),
]  # fmt: skip


@each(("name", "call"), DERIVED, ids=[name for name, _ in DERIVED])
def test_derived_functions_are_named(name: str, call: Any) -> None:
    with pytest.raises(TracerError, match=rf"^{name} at test_errors\.py:\d+"):
        call()
    with pytest.raises(TracerError, match=rf"^{name} at test_errors\.py:\d+"):
        tracer.jit(call)()


def test_what_a_users_function_raises_stays_as_it_is() -> None:
    def wrong(row: Any) -> Any:
        return row + tnp.ones(7)

    with pytest.raises(TracerError, match=r"^add at test_errors\.py"):
        tnp.apply_along_axis(wrong, 0, X)
    with pytest.raises(TracerError, match=r"^mean at test_errors\.py"):
        tnp.apply_along_axis(lambda row: tnp.mean(row, axis=3), 0, X)


@each("name", ["subtract", "max", "all", "logical_not", "power", "gcd", "remainder"])
def test_random_keys_are_no_numbers(name: str) -> None:
    key = tracer.random.key(0)
    operands = (key,) if name in ("max", "all", "logical_not") else (key, key)
    with pytest.raises(DTypeError, match=f"^{name} at .*: random keys are not numbers"):
        getattr(tnp, name)(*operands)


@each("name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"])
def test_joining_needs_a_sequence(name: str) -> None:
    with pytest.raises(TracerError, match=rf"^{name} at .* takes a sequence of arrays\n  got NoneType"):
        getattr(tnp, name)(None)


def test_integers_that_do_not_fit_are_refused_in_lists_and_ranges() -> None:
    for make in (lambda: tnp.asarray([1, 300], "int8"), lambda: tnp.array([[300]], "int8")):
        with pytest.raises(DTypeError, match="the integer 300 does not fit in i8"):
            make()
    with pytest.raises(DTypeError, match=r"arange at .*: the integer 300 does not fit in i8"):
        tnp.arange(300, 302, dtype="int8")
    with pytest.raises(DTypeError, match="the integer -1 does not fit in u64"):
        tnp.asarray([-1], "uint64")
    with pytest.raises(TracerError, match=r"arange at .*: its bounds are numbers\n  got str"):
        tnp.arange("a")
    assert tnp.asarray([127, -128], "int8").tolist() == [127, -128]


WRONG: dict[str, tuple[Any, str]] = {
    "split": (
        lambda: tnp.split(X, None),
        (
            "split at test_errors.py:LINE: indices_or_sections takes an integer\n  got None\n"
            "  help: give an integer, or an object with __index__"
        ),
    ),
    "round": (
        lambda: tnp.round(X, 1.5),
        (
            "round at test_errors.py:LINE: decimals takes an integer\n  got float: 1.5\n"
            "  help: round it to an integer: int(...), or // where it is divided"
        ),
    ),
    "std": (
        lambda: tnp.std(X, ddof="a"),
        "std at test_errors.py:LINE: ddof is a number\n  got 'a'\n  help: 0 divides by the count",
    ),
    "add signature": (
        lambda: tnp.add(X, X, signature="dd->d"),  # type: ignore[call-arg]
        "add at test_errors.py:LINE takes no signature=\n  help: of ufuncs: loops follow from the dtypes",
    ),
    "sum": (lambda: tnp.sum(X, along=0), "sum at test_errors.py:LINE takes no along="),  # type: ignore[call-arg]
    "multiply": (
        lambda: tnp.multiply(X),  # type: ignore[call-arg]
        "multiply() missing 1 required positional argument: 'x2'",
    ),
    "delete": (lambda: tnp.delete(X, "a"), "delete at test_errors.py:LINE: places are integers or bools\n  got <U1"),
}


@each(("call", "text"), WRONG.values(), ids=WRONG)
def test_arguments_that_python_refuses_are_told_of_the_function(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert re.sub(r"\.py:\d+", ".py:LINE", str(caught.value)) == text
    assert [frame.name for frame in caught.traceback][-1:] == ["<lambda>"]


@each(
    ("call", "kind", "text"),
    [
        (lambda x: tnp.choose(x - 2, [x, x]), OutOfBoundsError, "choose at .*: choices are numbered from 0"),
        (lambda x: tnp.histogram(x, x[::-1]), ArgumentError, "histogram at .*: the edges of bins must not descend"),
        (lambda x: tnp.cov(x, aweights=x - 1), ArgumentError, "cov at .*: weights must not be negative"),
        (lambda x: tnp.interp(x, x, x, period=0), ArgumentError, "interp at .*: the period must not be 0"),
        (lambda x: tnp.sum(x, where=tnp.eye(3) > 0), ShapeError, "sum at .*: where= has more axes than the array"),
        (lambda x: tnp.nanmean(x / 2, dtype=int), DTypeError, "nanmean at .*: averages of floats are floats"),
        (lambda x: tnp.nanvar(x / 2, dtype=int), DTypeError, "nanvar at .*: averages of floats are floats"),
        (lambda x: tnp.int8(300), DTypeError, "int8 at .*: the integer 300 does not fit in int8"),
        (lambda x: tnp.uint8(-1), DTypeError, "uint8 at .*: the integer -1 does not fit in uint8"),
        (lambda x: tnp.int8([1, 300]), DTypeError, "int8 at .*: the integer 300 does not fit in i8"),
        (lambda x: tnp.float32("a"), ArgumentError, "float32 at .*: an argument is not an array\n  got str: 'a'"),
        (
            lambda x: tnp.linalg.matrix_power(tnp.eye(3), 1.5),
            TypeError,
            "matrix_power at .*: n takes an integer\n  got float: 1.5\n  help: ",
        ),
        (
            lambda x: tnp.asarray(10**400),
            DTypeError,
            "asarray at .*: an integer of 1329 bits does not fit in 64 bits\n  help: as a float it is inf\n",
        ),
        (lambda x: (x / 2).at[0].add(10**400), DTypeError, "x.at.i..add at .*: an integer of 1329 bits does not fit"),
        (lambda x: tnp.sin(10**400), DTypeError, "sin at .*: an integer of 1329 bits does not fit in 64 bits"),
    ],
)
def test_bad_values_are_refused_as_by_numpy_at_every_call(
    call: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    for _ in range(2):
        with pytest.raises(kind, match=f"^{text}") as caught:
            call(tnp.arange(3))
        assert caught.traceback[-1].name == "<lambda>"


def test_traced_choices_are_counted_from_zero() -> None:
    choose = tracer.jit(lambda i: tnp.choose(i, [tnp.arange(2), tnp.arange(2)]))
    assert choose(tnp.asarray([1, 0])).tolist() == [0, 1]
    with pytest.raises(OutOfBoundsError):
        choose(tnp.asarray([-1, 0]))
