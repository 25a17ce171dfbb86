"""What counts as close: no tolerance reaches infinity, and complex numbers that are not finite count by parts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.laws.tolerances import Tolerance, close, same_bits

inf, nan = math.inf, math.nan
LOOSE = Tolerance(1024, "as wide as any", absolute=64)

APART = [
    (5.0, inf), (inf, 5.0), (-inf, inf), (nan, inf), (0.0, nan), (1.0, 2.0),
    (complex(inf, nan), complex(nan, nan)), (complex(nan, 0), complex(nan, nan)), (complex(inf, 0), complex(-inf, 0)),
    (complex(inf, 1), complex(inf, 2)), (complex(1, 2), complex(inf, 2)), (complex(inf, inf), complex(inf, -inf)),
]  # fmt: skip
TOGETHER = [
    (inf, inf), (nan, nan), (0.0, -0.0), (1.0, 1.0 + 1e-14), (np.finfo(float).max, inf),
    (complex(nan, inf), complex(nan, -inf)), (complex(nan, 2), complex(nan, -2)), (complex(inf, 1), complex(inf, 1)),
    (complex(inf, 1e300), complex(np.finfo(float).max, 1e300)), (1e16 + 1j, 1e16 + 0j),
]  # fmt: skip


@pytest.mark.parametrize(("got", "expected"), APART, ids=str)
def test_what_is_not_close(got: complex, expected: complex) -> None:
    assert not close(np.array([got]), np.array([expected]), LOOSE).any()
    assert not same_bits(np.array([got]), np.array([expected])).any()


@pytest.mark.parametrize(("got", "expected"), TOGETHER, ids=str)
def test_what_is_close(got: complex, expected: complex) -> None:
    assert close(np.array([got]), np.array([expected]), LOOSE).all()
