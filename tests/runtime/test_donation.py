"""Donated arguments: consumed, with an error that says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.runtime.programs import arange, double, line, same, scaled, take
from tracer.errors import ArgumentError, OutOfBoundsError
from tracer.runtime.jit import jit
from tracer.trace.convert import as_array

pytestmark = pytest.mark.usefixtures("way")


def test_donated_arrays_are_consumed() -> None:
    f = jit(scaled, donate_argnums=0)
    x = arange(3)
    for _ in range(2):
        x = f(x, 2.0)
    same(x, [0.0, 4.0, 8.0])
    old = x
    f(x, 2.0)
    with pytest.raises(ArgumentError) as error:
        f(old, 2.0)
    assert str(error.value) == (
        f"an array is used at test_donation.py:{line(-2)} that was donated\n"
        "  got f64[3], given to scaled by donate_argnums\n"
        "  help: use the result of that call, donate a copy (x.copy()), or do not donate this argument"
    )
    for use in (lambda: double(old), lambda: np.asarray(old), lambda: jit(double)(old)):
        with pytest.raises(ArgumentError, match=r"an array is used at .* that was donated"):
            use()


def test_a_donated_array_is_consumed_even_on_a_fault() -> None:
    x = arange(3)
    with pytest.raises(OutOfBoundsError):
        jit(take, donate_argnames="x")(x, np.array([7]))
    with pytest.raises(ArgumentError, match="that was donated"):
        double(x)


def test_a_donated_numpy_array_is_kept_with_a_warning() -> None:
    f = jit(scaled, donate_argnums=0)
    x = np.arange(3.0)
    with pytest.warns(UserWarning, match="1 donated NumPy array kept"):
        f(x, 2.0)
    same(double(as_array(x)), [0.0, 2.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(arange(3), 2.0)
