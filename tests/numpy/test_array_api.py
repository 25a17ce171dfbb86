"""The array API standard 2025.12, beside array_api_strict: names, parameters, dtypes, values, inspection, DLPack."""

from __future__ import annotations

import inspect
import operator
import warnings
from typing import Any

import array_api_strict
import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.numpy.array_api_cases import ALL, BINARY, CALLS, CREATION, FLOATS, INTEGERS, OPERATORS, SIGNATURES, UNARY, X

LINES = SIGNATURES.strip().splitlines()
PARAMETERS = {line.split()[0]: line for line in LINES} | {
    **{name: f"{name} x" for name in UNARY}, **{name: f"{name} x1 x2" for name in BINARY}
}  # fmt: skip


def strict(dtype: str) -> Any:
    return getattr(array_api_strict, dtype)


def same(ours: Any, theirs: Any) -> None:
    """Equal structure, dtypes, shapes and values; ours are arrays of ours."""
    if isinstance(theirs, tuple | list):
        assert isinstance(ours, tuple | list)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    if not hasattr(theirs, "__array_namespace__"):
        assert ours == theirs
        assert type(ours) is type(theirs)
        return
    assert type(ours) is tracer.Array
    got, expected = np.asarray(ours), np.asarray(theirs)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind in "fc":
        precision = np.finfo(got.dtype).eps
        np.testing.assert_allclose(got, expected, rtol=8 * precision, atol=8 * precision)
    else:
        np.testing.assert_array_equal(got, expected)


def both(call: Any, *values: Any) -> None:
    """The call on our arrays and on array_api_strict's; values are (array, dtype) pairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = call(array_api_strict, *(array_api_strict.asarray(v.tolist(), dtype=strict(d)) for v, d in values))
    same(call(tnp, *(tnp.asarray(v.tolist(), dtype=d) for v, d in values)), theirs)


def values(dtype: str) -> Any:
    """X in a dtype, with fractions and imaginary parts where it has them."""
    kind = np.dtype(dtype).kind
    return (X % 2 == 1) if kind == "b" else X + 0.25 if kind == "f" else X + 0.5j * X[::-1] if kind == "c" else X


# Names and parameters


def test_functions_take_the_standards_arguments() -> None:
    for name, parameters in PARAMETERS.items():
        positional, _, keywords = parameters.partition("|")
        arguments = [None] * len(positional.split()[1:])
        signature = inspect.signature(getattr(tnp, name))
        signature.bind(*arguments, **dict.fromkeys(keywords.split()))


def test_every_function_of_the_standard_has_a_case() -> None:
    assert set(PARAMETERS) == {*UNARY, *BINARY, *CALLS, *CREATION}


def test_constants_are_python_floats() -> None:
    for name in ("e", "inf", "nan", "pi"):
        assert type(getattr(tnp, name)) is float
    assert tnp.newaxis is None
    assert tnp.__array_api_version__ == "2025.12"


@each("name", ALL)
def test_dtypes_are_equal_to_those_of_arrays(name: str) -> None:
    dtype = getattr(tnp, name)
    assert tnp.zeros(1, dtype=dtype).dtype == dtype
    assert dtype == tnp.zeros(1, dtype=dtype).dtype
    assert (dtype == "no such dtype") is False
    assert hash(dtype) == hash(getattr(tnp, name))


# Functions


@each("name", UNARY)
def test_unary_functions(name: str) -> None:
    for dtype in UNARY[name]:
        given = values(dtype)
        if dtype in (*FLOATS, "complex64", "complex128") and name in ("acos", "asin", "atanh"):
            given = given / 20
        elif name == "acosh" or (name.startswith("log") and dtype in FLOATS):
            given = given + 1
        both(lambda xp, x: getattr(xp, name)(x), (given, dtype))


def operands(dtype: str) -> tuple[Any, Any, Any]:
    """Of a binary function: an array, an array of one element that divides, and a Python scalar."""
    y = values(dtype)[:1]
    y = y if dtype == "bool" else np.maximum(y, 1) if np.dtype(dtype).kind != "c" else y + 1
    return values(dtype), y, True if dtype == "bool" else 2


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_of_arrays_and_scalars(name: str) -> None:
    for dtype in BINARY[name]:
        x, y, scalar = operands(dtype)
        both(lambda xp, x, y: getattr(xp, name)(x, y), (x, dtype), (y, dtype))
        both(lambda xp, x, y, scalar=scalar: getattr(xp, name)(x, scalar), (x, dtype), (y, dtype))


SYMBOLS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "**": operator.pow, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_and_their_reflected_and_augmented_forms(symbol: str) -> None:
    combine = SYMBOLS[symbol]
    augmented = getattr(operator, f"i{combine.__name__.strip('_')}", None)
    for dtype in OPERATORS[symbol]:
        x, y, scalar = operands(dtype)
        both(lambda xp, x, y: combine(x, y), (x, dtype), (y, dtype))
        both(
            lambda xp, x, y, scalar=scalar: (combine(x, scalar), combine(scalar, y)), (x, dtype), (y, dtype)
        )  # fmt: skip
        if augmented is not None:
            both(lambda xp, x, y: augmented(xp.asarray(x, copy=True), y), (x, dtype), (y, dtype))


@pytest.mark.parametrize("name", CALLS)
def test_other_functions(name: str) -> None:
    kinds, call = CALLS[name]
    for dtype in kinds:
        both(call, (values(dtype), dtype))


@each("name", CREATION)
def test_creation_and_dtype_functions(name: str) -> None:
    same(CREATION[name](tnp), CREATION[name](array_api_strict))


def test_integer_dtypes_promote_as_the_standard_says() -> None:
    for kinds in (INTEGERS, (*FLOATS, "complex64", "complex128")):
        for first in kinds:
            for second in kinds:
                try:
                    expected = array_api_strict.result_type(strict(first), strict(second))
                except TypeError:  # an unsigned 64-bit integer with a signed one
                    continue
                found = tnp.result_type(getattr(tnp, first), getattr(tnp, second))
                assert str(expected).rpartition(".")[2] == found.name


# The extensions: what needs no transform and no factorisation

FREQUENCIES = [
    lambda fft: fft.fftfreq(5, d=0.5), lambda fft: fft.rfftfreq(6, d=2.0),
    lambda fft: fft.fftshift(X), lambda fft: fft.fftshift(X, axes=1), lambda fft: fft.ifftshift(X, axes=(0, -1)),
    lambda fft: fft.ifftshift(X[:, 0]), lambda fft: fft.rfftfreq(1), lambda fft: fft.fftfreq(1),
]  # fmt: skip


@each("call", FREQUENCIES)
def test_frequencies_and_their_order_are_numpys(call: Any) -> None:
    np.testing.assert_array_equal(call(tnp.fft), call(np.fft), strict=True)


def test_frequencies_may_be_of_any_float_dtype() -> None:
    assert tnp.fft.fftfreq(4, dtype="float32").dtype == tnp.fft.rfftfreq(4, dtype="float32").dtype == np.float32


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_sign_of_zeros_is_a_positive_zero(dtype: str) -> None:
    assert not tnp.signbit(tnp.sign(tnp.asarray([-0.0, 0.0], dtype=dtype))).any()


BY_VALUE = {
    "fft": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
    "linalg": "cond eig eigh eigvals eigvalsh matrix_rank pinv qr svd svdvals",
}


@each(("module", "name"), [(m, name) for m, names in BY_VALUE.items() for name in names.split()])
def test_factorisations_and_transforms_of_known_values_are_numpys(module: str, name: str) -> None:
    x = np.eye(3) + np.arange(9.0).reshape(3, 3) / 20
    given = x @ x.T if module == "linalg" else x
    ours, theirs = (getattr(getattr(xp, module), name)(v) for xp, v in ((tnp, tnp.asarray(given)), (np, given)))
    assert type(ours).__name__ == (type(theirs).__name__ if isinstance(theirs, tuple) else "Array")
    for a, b in zip(tracer.tree.leaves(ours), theirs if isinstance(theirs, tuple) else [theirs], strict=True):
        assert isinstance(a, tracer.Array)
        np.testing.assert_array_equal(a, b)


def test_extensions_say_what_they_lack() -> None:
    with pytest.raises(tracer.errors.ArgumentError, match="a transform has at least one sample\n  got n=0"):
        tnp.fft.fftfreq(0)


# The array object


def test_attributes_and_conversions() -> None:
    x = tnp.asarray([[1.0, 2.0, 3.0]])
    assert (x.ndim, x.shape, x.size, x.dtype, x.device) == (2, (1, 3), 3, tnp.float64, tracer.devices()[0])
    assert x.T.shape == x.mT.shape == (3, 1)
    assert [bool(x[0, 0]), int(x[0, 1]), float(x[0, 2]), complex(x[0, 2])] == [True, 2, 3.0, 3 + 0j]
    assert operator.index(tnp.asarray(5)) == 5
    assert x.to_device(x.device) is x


INDICES: list[Any] = [
    (0, ...), (-1, 2), (slice(None, None, -2), slice(1, 3)), (..., 1), (None, 0, None, slice(None)),
    (slice(0, 0), ...), (2, slice(None, -1)),
]  # fmt: skip


@each("index", INDICES, ids=str)
def test_basic_indexing_and_assignment(index: Any) -> None:
    both(lambda xp, x: x[index], (X, "int64"))
    if None in index:
        return

    def written(xp: Any, x: Any) -> Any:
        x = xp.asarray(x, copy=True)
        x[index] = 9
        return x

    both(written, (X, "int64"))


@pytest.mark.parametrize("bit", [True, False])
def test_masks_and_single_bools_are_indices(bit: bool) -> None:
    x = tnp.asarray(X)
    np.testing.assert_array_equal(x[x > 2], X[X > 2])
    np.testing.assert_array_equal(x[tnp.asarray(bit)], X[np.asarray(bit)])
    np.testing.assert_array_equal(x[bit, 1:], X[bit, 1:])
    np.testing.assert_array_equal(x[0, [1], bit], X[0, [1], bit])
    expected = X.copy()
    expected[bit] = 5
    x[bit] = 5
    np.testing.assert_array_equal(x, expected)


# Inspection and devices


def test_the_namespace_tells_what_it_can() -> None:
    info = tnp.zeros(1).__array_namespace__().__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    assert info.default_dtypes(device="cpu") == {
        "real floating": np.float64, "complex floating": np.complex128, "integral": np.int64, "indexing": np.int64,
    }  # fmt: skip
    assert set(info.dtypes()) == set(ALL)
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert info.dtypes(kind="real floating") == {"float32": np.float32, "float64": np.float64}
    with tracer.config.using(default_float="float32"):
        assert info.default_dtypes()["complex floating"] == np.complex64
    with pytest.raises(tracer.errors.ArgumentError, match="kind must be the name of a kind"):
        info.dtypes(kind=7)


MAKERS = [tnp.zeros, tnp.ones, tnp.empty, tnp.arange, tnp.eye, lambda n, **options: tnp.full(n, 1, **options)]


@each("make", MAKERS)
def test_creation_takes_devices_and_refuses_those_that_are_not_there(make: Any) -> None:
    assert make(2, device=tracer.devices()[0]).device == tracer.devices()[0]
    with pytest.raises(tracer.errors.DeviceError, match="no device 'moon'"):
        make(2, device="moon")


# DLPack

versioned = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy's capsules had no versions, and none were read-only"
)


@versioned
@pytest.mark.parametrize("dtype", ALL)
def test_memory_is_shared_both_ways_whatever_the_dtype(dtype: str) -> None:
    given = values(dtype).astype(dtype)
    ours = tnp.from_dlpack(given)
    theirs = np.from_dlpack(ours)
    assert ours.dtype == theirs.dtype == given.dtype
    assert np.shares_memory(given, theirs)
    assert not theirs.flags.writeable
    np.testing.assert_array_equal(theirs, given)


@versioned
def test_capsules_are_versioned_where_the_consumer_knows_versions() -> None:
    x = tnp.arange(3.0)
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert x.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(x, copy=True)
    assert copied.flags.writeable
    assert not np.shares_memory(copied, np.asarray(x))


def test_what_dlpack_hands_over_is_copied_on_demand() -> None:
    given = np.arange(3.0)
    ours = tnp.from_dlpack(given, copy=True, device="cpu")
    given[:] = 0
    np.testing.assert_array_equal(ours, [0.0, 1.0, 2.0])
