"""Objects of the wrong form among the arguments of public functions: a clear error of ours, not one of Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import each
from tests.mistakes.told import fails
from tracer import errors, jit, lax, nn, random, scipy
from tracer.trace.tracebacks import boundary

X = np.ones((2, 3))
WINDOWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
UPDATES = lax.ScatterDimensionNumbers((1,), (0,), (0,))
PLACE = np.array([[0]])


def test_an_axis_alone_where_a_tuple_is_taken() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.reduce_sum(X, 1),  # here
        "reduce_sum at @here: an argument is not of the expected form\n  got: 'int' object is not iterable\n"
        "  help: compare the call with the parameters that help(reduce_sum) describes",
    )


def test_an_array_without_elements_where_a_flag_is_taken() -> None:
    fails(
        errors.ArgumentError,
        lambda: tnp.percentile(X, 30, keepdims=np.zeros((0, 5))),  # here
        "percentile at @here: an argument is not of the expected form\n  got: The truth value of an empty array is "
        "ambiguous. Use `array.size > 0` to check that an array is not empty.\n"
        "  help: compare the call with the parameters that help(percentile) describes",
    )


def test_lists_where_a_dtype_is_taken() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.broadcasted_iota([[1], [1, 2]], (2,), 0),  # here
        "broadcasted_iota at @here: an argument is not of the expected form\n"
        "  got: Field elements must be 2- or 3-tuples, got '[1]'\n"
        "  help: compare the call with the parameters that help(broadcasted_iota) describes",
    )


def test_a_dict_among_the_operands_of_a_scatter() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.scatter_add(X, {"a": 1}, X[:1], UPDATES),  # here
        "scatter_add at @here takes arrays\n  got dict: {'a': 1}\n  help: make one of it: tracer.numpy.asarray",
    )


def test_an_integer_beyond_64_bits() -> None:
    fails(
        errors.DTypeError,
        lambda: lax.sin(2**200),  # here
        "an integer does not fit in 64 bits at @here\n  help: give a number: bool, integer, float or complex",
    )


def test_a_date() -> None:
    fails(
        errors.DTypeError,
        lambda: lax.exp(np.datetime64("2020-01-01")),  # here
        "scalars of dtype datetime64[D] are not supported at @here\n"
        "  help: give a number: bool, integer, float or complex",
    )


def test_a_dtype_that_is_none() -> None:
    fails(
        errors.DTypeError,
        lambda: random.normal(random.key(0), (), slice(None)),  # here
        "random.normal at @here: no such dtype\n  got slice(None, None, None)\n"
        "  help: the dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64 "
        "and complex128; for storage, int1 to int4, uint1 to uint4 and ml_dtypes' narrow floats",
    )


@each(
    "call",
    [
        lambda: lax.expand_dims(X, 1.5), lambda: lax.squeeze(X, 5.0), lambda: lax.rev(X, None),
        lambda: lax.dot_general(X, X, "x"), lambda: lax.dot_general(X, X, (((1,), (1,)), None)),
        lambda: lax.concatenate(5, 0), lambda: lax.stack(5), lambda: lax.pad(X, 0.0, [(1, 2), (1, 2)]),
        lambda: lax.dynamic_slice(X, None, (1, 1)), lambda: lax.dynamic_update_slice(X, None, (0, 0)),
        lambda: lax.conv_general_dilated(X[None], X[None], (1,), None), lambda: lax.full_like({}, 1),
        lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), (1, 1), None), lambda: lax.gather(X, PLACE, 5, (1, 3)),
        lambda: lax.gather(X, "a", WINDOWS, (1, 3)), lambda: lax.scatter(X, PLACE, X[:1], 5),
        lambda: jit(lambda x: lax.scatter_mul(x, PLACE, ..., UPDATES))(X), lambda: tnp.binary_repr(set()),
        lambda: random.binomial(random.key(0), [np.ones(2), "y"], 0.5), lambda: tnp.min_scalar_type([np.ones(2), "y"]),
        lambda: scipy.ndimage.map_coordinates(X, None, 1), lambda: scipy.ndimage.map_coordinates(X, [X, X], {}),
    ],
)  # fmt: skip
def test_objects_of_other_forms_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(errors.ArgumentError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: lax.iota({}, 3),
        lambda: random.normal(random.key(0), (), "\ud800"),
        lambda: random.randint(random.key(0), (), 0, 5, "zz"),
    ],
)
def test_objects_that_are_no_dtypes_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(errors.DTypeError):
        call()


def test_errors_of_the_users_own_objects_stay_as_they_are() -> None:
    class Axes:
        def __iter__(self) -> Any:
            raise TypeError("'int' object is not iterable")

    with pytest.raises(TypeError) as caught:
        lax.reduce_sum(X, Axes())  # type: ignore[arg-type]
    assert type(caught.value) is TypeError


ARRAYLESS: dict[str, Callable[[], Any]] = {
    "gather": lambda: lax.gather("", X, WINDOWS, (1, 3)),
    "index_in_dim": lambda: lax.index_in_dim("", 0),
    "dynamic_index_in_dim": lambda: lax.dynamic_index_in_dim(operand="", index=0),
    "dynamic_slice": lambda: lax.dynamic_slice("", (0,), (1,)),
    "dynamic_slice_in_dim": lambda: lax.dynamic_slice_in_dim("", 0, 1),
    "dynamic_update_slice": lambda: lax.dynamic_update_slice("", X, (0, 0)),
}


@each("name", list(ARRAYLESS))
def test_texts_where_arrays_are_taken(name: str) -> None:
    for call in (ARRAYLESS[name], jit(ARRAYLESS[name])):
        with pytest.raises(errors.ArgumentError, match=rf"^{name} at \S+ takes arrays and scalars\n  got str\n"):
            call()


def test_attributes_that_no_argument_lacks_stay_bugs() -> None:
    """The error is about an argument only where one is of that class."""

    def broken(x: Any) -> Any:
        return None.ndim  # type: ignore[attr-defined]

    broken.__code__ = broken.__code__.replace(co_filename=errors.__file__)
    with pytest.raises(AttributeError):
        boundary(broken)(X)


REFUSED: dict[str, Callable[[], Any]] = {
    "flags": lambda: lax.cumsum(X, reverse=np.array([True, False])),
    "sizes": lambda: nn.avg_pool(np.ones((1, 4, 4, 1)), [np.ones(2), "y"]),
    "dtypes of records": lambda: lax.iota((), 3),
    "texts that are no Unicode": lambda: lax.iota("\ud800", 3),
    "dtypes of bits": lambda: random.bits(random.key(0), (), ()),
    "dtypes of signs": lambda: random.rademacher(random.key(0), (), ()),
    "orders whose factorials overflow": lambda: lax.polygamma(171, 1.5),
    "ranks that no array has": lambda: lax.broadcast_to_rank(X, 2**62),
    "sizes beyond memory": lambda: scipy.special.multigammaln(3.0, 2**200),
    "a number for a diagonal": lambda: scipy.linalg.eigh_tridiagonal(5.0, np.ones(2)),
    "a negative length": lambda: scipy.signal.hilbert(np.ones(3), -1),
}


@each("what", list(REFUSED))
def test_objects_that_numpy_or_python_refused(what: str) -> None:
    with pytest.raises(errors.TracerError):
        REFUSED[what]()


def test_arrays_of_more_axes_than_parts_of_numpy_take() -> None:
    """NumPy's `ufunc.at` crashes above 32 axes, and its `broadcast` refuses them."""
    x = np.arange(2.0).reshape(2, *(1,) * 39)
    assert np.asarray(tnp.asarray(x).at[np.array([1, 1])].add(1.0)).ravel().tolist() == [0.0, 3.0]
    assert np.asarray(lax.conj(x)).ravel().tolist() == [0.0, 1.0]
    assert lax.reduce_precision(np.ones(2), 2**200, 2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("decimals", [-(2**32), -25, -3, 400, 2**32])
def test_rounding_to_any_digits(decimals: int) -> None:
    """Tens that a dtype does not hold, or digits that it does not have, were an OverflowError."""
    for dtype in ("bool", "int8", "int64", "float64", "complex128"):
        x = np.array([1, 0, 1], dtype)
        np.testing.assert_array_equal(tnp.round(x, decimals), x if decimals > 0 else np.zeros_like(x))
