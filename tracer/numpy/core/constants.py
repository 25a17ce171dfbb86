"""Mathematical constants as Python floats, which are weak in promotion, and `newaxis`."""

from __future__ import annotations

from typing import Final

import numpy as np

pi: Final = np.pi
e: Final = np.e
euler_gamma: Final = np.euler_gamma
inf: Final = float("inf")
nan: Final = float("nan")
newaxis: Final = None
