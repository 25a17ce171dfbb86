"""Nests of gathers: the axes of a window run as one loop beside the check of its index."""

from __future__ import annotations

import re

import numpy as np

from tracer import jit


def test_axes_of_a_gathered_row_join_beside_the_check() -> None:
    x, rows = np.zeros((100, 8, 8), "float32"), np.zeros(16, "int32")
    text = str(jit(lambda x, rows: x[rows]).lower(x, rows).loops())
    assert re.findall(r"in 0\.\.(\d+)", text)[-2:] == ["16", "64"]
    assert "fault 0 where" in text
