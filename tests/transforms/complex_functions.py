"""Functions of complex numbers, written for any library with JAX's names: what the table of derivatives is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Z = (0.4 + 0.3j, -0.7 + 1.1j, 1.2 - 0.5j)
DIRECTION = (0.5 - 1.0j, 0.25 + 0.75j, -1.5 + 0.5j)


def functions(np: Any, lax: Any) -> tuple[dict[str, Callable[[Any], Any]], dict[str, Callable[[Any], Any]]]:
    """(to real scalars, holomorphic and elementwise or linear), of c128[3]."""
    real = {
        "abs": lambda z: np.abs(z).sum(),
        "abs2": lambda z: (z.real**2 + z.imag**2).sum(),
        "angle": lambda z: np.angle(z).sum(),
        "real of square": lambda z: (z * z).real.sum(),
        "imag of exp": lambda z: np.exp(z).imag.sum(),
        "conj times": lambda z: (np.conj(z) * z[::-1]).real.sum(),
        "vdot": lambda z: np.vdot(z, z * z).imag,
        "norm": lambda z: np.sqrt((np.abs(z) ** 2).sum()),
        "log abs of sqrt": lambda z: np.log(np.abs(np.sqrt(z + 2.0))).sum(),
        "where": lambda z: np.where(z.real > 0, z * z, np.conj(z)).imag.sum(),
        "scan": lambda z: np.abs(lax.scan(lambda c, u: (c * u + 0.1j, c), z[0], z)[0]),
        "while_loop": lambda z: np.abs(
            lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] ** 2 + z, s[1] + 1), (z, 0))[0]
        ).sum(),
        "cond": lambda z: lax.cond(z[0].real > 0, lambda u: (u**3).real.sum(), lambda u: u.imag.sum(), z),
        "cumsum and gather": lambda z: np.abs(np.cumsum(z)[np.asarray([2, 0, 0])]).sum(),
        "product": lambda z: np.prod(z).real,
    }
    holomorphic = {
        "square": lambda z: z * z, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "tanh": np.tanh,
        "reciprocal": lambda z: 1.0 / z, "power": lambda z: z**2.5, "arctan": np.arctan,
        "polynomial": lambda z: (1.0 + 2.0j) * z**3 - z + 0.5j, "fraction": lambda z: (z - 1.0) / (z * z + 3.0),
        "cumprod": np.cumprod,
    }  # fmt: skip
    return real, holomorphic
