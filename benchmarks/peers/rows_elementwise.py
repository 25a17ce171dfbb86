"""Rows without reductions: elementwise chains by size and dtype, and the functions of mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.row import Row, World


def uniform(*shape: int, dtype: str = "f4", low: float = 0.1, high: float = 2.0, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def _axpy(w: World) -> Any:
    return lambda x, y: 2 * x + y


def _polynomial(w: World) -> Any:
    return lambda x, y: (((((x * 0.2 + y) * x - 0.3) * x + y) * x + 0.7) * x - y) * x + 0.1


def _gelu(w: World) -> Any:
    return lambda x: 0.5 * x * (1 + w.np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _black_scholes(w: World) -> Any:
    xp = w.np

    def cdf(z: Any) -> Any:
        return 0.5 * (1 + w.special.erf(z * 0.7071067811865476))

    def price(s: Any, k: Any, t: Any, r: float = 0.03, v: float = 0.2) -> Any:
        root = v * xp.sqrt(t)
        d1 = (xp.log(s / k) + (r + 0.5 * v * v) * t) / root
        return s * cdf(d1) - k * xp.exp(-r * t) * cdf(d1 - root)

    return price


def _greeks(w: World) -> Any:
    price = _black_scholes(w)
    return w.root.grad(lambda s, k, t: price(s, k, t).sum(), argnums=(0, 1, 2))


def _where(w: World) -> Any:
    return lambda x: w.np.where(x > 1, x * x, -x)


def _arctan2(w: World) -> Any:
    return w.np.arctan2


def _arccosh(w: World) -> Any:
    return lambda x: w.np.arccosh(x + 1)


def _quotient(w: World) -> Any:
    return lambda x: x // 7 + x % 7


def _state(w: World) -> Any:
    """A rational equation of state, as in ocean models."""
    xp = w.np

    def density(t: Any, s: Any, p: Any) -> Any:
        root = xp.sqrt(s)
        top = 999.8 + t * (7.35 + t * (-0.055 + t * 3.4e-4)) + s * (2.59 - 7.7e-3 * t + 4.9e-4 * s)
        top = top + p * (1.04e-2 + 1.0e-7 * t * t + 3.2e-6 * s + p * (-2.5e-8 - 1.5e-12 * t * t))
        low = 1 + t * (7.3e-3 + t * (-4.6e-5 + t * (6.8e-7 + t * 1.4e-10)))
        low = low + s * (1.8e-3 - t * (9.2e-6 + t * t * 1.8e-10) + root * (4.8e-6 + t * t * 1.6e-9))
        return top / (low + p * (6.8e-6 - p * (t * t * t * 2.4e-16 + p * t * 3.9e-17)))

    return density


def _function(name: str) -> Any:
    def make(w: World) -> Any:
        owner = w.special if name in _SPECIAL else w.np
        return getattr(owner, name)

    return make


_SPECIAL = ("erf", "erfc", "erfinv", "gammaln", "digamma")


def _rsqrt(w: World) -> Any:
    return w.lax.rsqrt if w.lax is not None else lambda x: 1 / w.np.sqrt(x)


def _power(w: World) -> Any:
    return w.np.power


def _copy(w: World) -> Any:
    if w.name != "numpy":
        return w.np.copy
    kept: list[Any] = []

    def copy(x: Any) -> Any:
        """To where the last copy went: fresh memory takes longer to come by than to fill."""
        if not kept:
            kept.append(np.empty_like(x))
        np.copyto(kept[0], x)
        return kept[0]

    return copy


_NUMPY = ("numpy",)
ROWS = [
    Row("copy f4 1e7", "elementwise", lambda: (uniform(10**7),), _copy, _NUMPY, tolerance=0),
    Row("copy f8 1e7", "elementwise", lambda: (uniform(10**7, dtype="f8"),), _copy, _NUMPY, tolerance=0),
    *(
        Row(
            f"axpy {d} {n:.0e}".replace("e+0", "e"),
            "elementwise",
            lambda n=n, d=d: (uniform(n, dtype=d), uniform(n, dtype=d, seed=1)),
            _axpy,
            _NUMPY,
        )
        for d in ("f4", "f8")
        for n in (1000, 1_000_000, 10_000_000)
    ),
    Row("polynomial f4 1e6", "elementwise", lambda: (uniform(10**6), uniform(10**6, seed=1)), _polynomial, _NUMPY),
    Row("polynomial f4 1e7", "elementwise", lambda: (uniform(10**7), uniform(10**7, seed=1)), _polynomial, _NUMPY),
    Row("gelu f4 1e6", "elementwise", lambda: (uniform(10**6, low=-3, high=3),), _gelu, _NUMPY),
    Row("where f4 1e6", "elementwise", lambda: (uniform(10**6),), _where, _NUMPY),
    Row("divmod i8 1e6", "elementwise", lambda: (np.arange(10**6) * 977,), _quotient, _NUMPY, tolerance=0),
    Row(
        "black-scholes f4 1e6",
        "elementwise",
        lambda: (uniform(10**6, low=80, high=120), uniform(10**6, low=80, high=120, seed=1), uniform(10**6, seed=2)),
        _black_scholes,
        _NUMPY,
    ),
    Row(
        "black-scholes greeks f4 1e6",
        "derivatives",
        lambda: (uniform(10**6, low=80, high=120), uniform(10**6, low=80, high=120, seed=1), uniform(10**6, seed=2)),
        _greeks,
        tolerance=1e-3,
    ),
    *(
        Row(
            f"equation of state{contracted} f8 1e6",
            "elementwise",
            lambda: (
                uniform(10**6, dtype="f8", low=0, high=30),
                uniform(10**6, dtype="f8", low=30, high=38, seed=1),
                uniform(10**6, dtype="f8", low=0, high=4000, seed=2),
            ),
            _state,
            _NUMPY,
            settings={"fp_contract": True} if contracted else {},
        )
        for contracted in ("", ", contracted")
    ),
    *(
        Row(
            f"{name} {d} 1e6",
            "mathematics",
            lambda d=d: (uniform(10**6, dtype=d, low=0.05, high=0.95),),
            _function(name),
            _NUMPY,
            tolerance=1e-5,
        )
        for d in ("f4", "f8")
        for name in ("exp", "log", "sin", "tanh", "erf")
    ),
    *(
        Row(
            f"{name} f8 1e6",
            "mathematics",
            lambda: (uniform(10**6, dtype="f8", low=0.05, high=0.95),),
            _function(name),
            _NUMPY,
            tolerance=1e-5,
        )
        for name in (
            "cos",
            "tan",
            "exp2",
            "log2",
            "expm1",
            "log1p",
            "arctan",
            "arcsin",
            "arccos",
            "sinh",
            "cosh",
            "arcsinh",
            "arctanh",
            "sqrt",
            "cbrt",
            "erfc",
            "erfinv",
            "gammaln",
            "digamma",
        )
    ),
    *(
        Row(f"rsqrt {d} 1e6", "mathematics", lambda d=d: (uniform(10**6, dtype=d),), _rsqrt, _NUMPY)
        for d in ("f4", "f8")
    ),
    Row("arccosh f8 1e6", "mathematics", lambda: (uniform(10**6, dtype="f8"),), _arccosh, _NUMPY),
    Row(
        "arctan2 f8 1e6",
        "mathematics",
        lambda: (uniform(10**6, dtype="f8", low=-1), uniform(10**6, dtype="f8", low=-1, seed=1)),
        _arctan2,
        _NUMPY,
    ),
    Row("pow f4 1e6", "mathematics", lambda: (uniform(10**6), uniform(10**6, seed=1)), _power, _NUMPY),
    Row(
        "pow f8 1e6",
        "mathematics",
        lambda: (uniform(10**6, dtype="f8"), uniform(10**6, dtype="f8", seed=1)),
        _power,
        _NUMPY,
    ),
]
