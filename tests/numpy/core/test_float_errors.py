"""Programs that say what becomes of floating-point errors run as they are, unless they want to be stopped."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer.errors import ArgumentError


def test_divisions_under_errstate_give_infinities_and_nothing_else() -> None:
    x = tnp.asarray([1.0, 0.0, -1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tnp.errstate(divide="ignore", invalid="ignore"):
            np.testing.assert_array_equal(x / 0.0, [np.inf, np.nan, -np.inf])
            np.testing.assert_array_equal(np.ones(2) / np.zeros(2), [np.inf, np.inf])


def test_a_function_is_decorated_with_errstate() -> None:
    @tnp.errstate(all="ignore")
    def logarithm(x: Any) -> Any:
        return tnp.log(x)

    assert logarithm(tnp.zeros(1))[0] == -np.inf


def test_settings_are_returned_and_restored() -> None:
    before = np.geterr()
    old = tnp.seterr(all="ignore")
    try:
        assert old == before
        assert set(tnp.geterr().values()) == {"ignore"}
    finally:
        tnp.seterr(**old)
    assert np.geterr() == before


@pytest.mark.parametrize(("name", "setting"), [("errstate", "raise"), ("seterr", "print")])
def test_settings_that_would_stop_a_program_are_refused(name: str, setting: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        getattr(tnp, name)(divide=setting)
    assert str(caught.value).startswith(f"{name} at test_float_errors.py:")
    assert str(caught.value).endswith(
        f": floating-point errors never stop a program, nor call anything\n  got divide={setting!r}\n"
        '  help: they give inf and NaN, which isfinite finds; "ignore" and "warn" are taken'
    )
