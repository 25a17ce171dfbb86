"""Every public name of tracer.lax has a docstring with an example, which the doctests run."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from tracer import lax


@pytest.mark.parametrize("name", lax.__all__)
def test_every_name_has_an_example(name: str) -> None:
    value: Any = getattr(lax, name)
    assert doctest.DocTestParser().get_examples(value.__doc__ or ""), f"lax.{name} has no example in its docstring"


def test_the_list_of_names_is_sorted_and_complete() -> None:
    assert lax.__all__ == sorted(lax.__all__)
    assert len(set(lax.__all__)) == len(lax.__all__)
