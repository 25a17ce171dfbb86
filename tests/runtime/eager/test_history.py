"""Calls with numbers: no result depends on the number that the first call of a signature had."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import covering
from tracer.errors import TracerError

BINARY = [
    name for name in dir(np) if isinstance(f := getattr(np, name), np.ufunc) and f.nin == 2 and hasattr(tnp, name)
]
ARRAYS = ([7, -7, 3], [0.5, -0.0, np.nan])
NUMBERS = {"int": (2, 0, -1, 64, 2**60), "float": (2.0, 0.0, -0.0, -0.5, np.inf)}


def outcome(function: Any, x: Any, y: Any) -> Any:
    try:
        result = np.asarray(function(x, y))
    except TracerError as error:
        return type(error)
    return result.dtype, result.tobytes()


@pytest.mark.parametrize(("kind", "name"), covering(NUMBERS, BINARY, least=48))
def test_a_result_is_that_of_the_function_itself_whatever_came_before(name: str, kind: str) -> None:
    function = getattr(tnp, name)
    alone = inspect.unwrap(function)
    for elements in ARRAYS:
        for number in NUMBERS[kind]:
            x = tnp.asarray(elements)
            assert outcome(function, x, number) == outcome(alone, x, number), (elements, number)
            assert outcome(function, number, x) == outcome(alone, number, x), (number, elements)
