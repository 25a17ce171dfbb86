"""Functions whose stages the tests of the explorer look at. Their line numbers are found, not written down."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tracer import lax


def layer(w: Any, b: Any, x: Any) -> Any:
    hidden = tnp.tanh(x @ w + b)
    steps = lax.scan(lambda carry, row: (0.9 * carry + row, tnp.sin(carry)), hidden[0], hidden)[1]
    shifted = tnp.exp(steps) - 1.0
    return tnp.mean(shifted**2)


LAYER = (np.ones((8, 4)), np.ones(4), np.ones((16, 8)))


def line_of(text: str) -> int:
    """Return the number of the line of this file that holds a text."""
    return next(n for n, line in enumerate(linecache.getlines(__file__), 1) if text in line)
