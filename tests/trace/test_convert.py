"""From Python and NumPy values to arrays: dtypes, weakness, memory, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tracer import errors
from tracer.ir import dtypes
from tracer.trace.convert import as_array


@each(
    ("value", "dtype", "weak"),
    [
        (True, "bool", False), (3, "int64", True), (2**63, "uint64", True), (2.5, "float64", True),
        (1j, "complex128", True), (np.float32(1), "float32", False), (np.arange(3, dtype="int8"), "int8", False),
    ],
)  # fmt: skip
def test_values_get_their_dtype_and_weakness(value: Any, dtype: str, weak: bool) -> None:
    x = as_array(value)
    assert (str(x.dtype), x.weak_type) == (dtype, weak)
    assert np.array_equal(x, value)


@pytest.mark.parametrize(
    "given",
    [
        np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::-2], np.arange(3, dtype=">i4"),
        np.arange(3).astype("longlong"), np.asfortranarray(np.ones((2, 3))), np.ones(3)[:0],
        np.ma.masked_array([1.0, 2.0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("copy", [True, False])
def test_memory_is_contiguous_native_and_ours(given: Any, copy: bool) -> None:
    x = as_array(given, copy=copy)
    value = x._value
    assert type(value) is np.ndarray
    assert value.flags.c_contiguous
    assert value.flags.aligned
    assert value.dtype is dtypes.ONE_OBJECT[value.dtype]
    assert np.array_equal(value, given)
    assert not np.shares_memory(value, given) or not copy


def test_copy_false_shares_what_it_can() -> None:
    given = np.arange(3.0)
    assert as_array(given, copy=False)._value is given
    assert not np.shares_memory(as_array(given)._value, given)


def test_unaligned_memory_is_copied() -> None:
    given = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.float64, offset=1)
    assert not given.flags.aligned
    assert as_array(given, copy=False)._value.flags.aligned


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (2**64, errors.DTypeError, "does not fit in 64 bits"),
        (np.asarray(["a"]), errors.DTypeError, "has a dtype that tracer does not compute with"),
        (np.zeros(2, "datetime64[s]"), errors.DTypeError, "has a dtype that tracer does not compute with"),
        ("a", errors.ArgumentError, "is not an array"),
        (None, errors.ArgumentError, "is not an array"),
    ],
)
def test_other_values_are_refused(value: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        as_array(value)
