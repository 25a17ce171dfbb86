"""Types for annotations are types, not text."""

from __future__ import annotations

import typing
from dataclasses import dataclass

import numpy as np
import pytest

import tracer.numpy as tnp
import tracer.typing as ttp


@pytest.mark.parametrize("name", ttp.__all__)
def test_types_join_with_none_and_others(name: str) -> None:
    kind = getattr(ttp, name)
    assert not isinstance(kind, str)
    assert type(None) in typing.get_args(kind | None)
    assert type(None) in typing.get_args(None | kind)
    assert str in typing.get_args(typing.Union[kind, str])  # noqa: UP007  # as older code writes it


def test_array_like_tells_arrays_from_others() -> None:
    for value in (tnp.ones(2), np.ones(2), np.float32(1), True, 1, 1.0, 1j):
        assert isinstance(value, ttp.ArrayLike)
    for other in ("text", None, [1.0], object()):
        assert not isinstance(other, ttp.ArrayLike)


def test_annotations_of_other_modules_are_resolved() -> None:
    @dataclass
    class Layer:
        weight: ttp.ArrayLike | None
        size: ttp.Shape | None = None

    assert typing.get_type_hints(Layer, vars(typing) | {"ttp": ttp})["weight"] == ttp.ArrayLike | None
