"""How the laws are drawn: one test for each primitive, hypothesis giving the seeds of the operands."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.laws.cases import Case, all_cases
from tracer.ir.primitive import Primitive
from tracer.primitives.catalogue import CATALOGUE

THOROUGH = os.environ.get("TRACER_HYPOTHESIS_PROFILE") == "thorough"

SEEDS = st.integers(0, 2**32 - 1)


def sampled(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test of `seed` for so many seeds; forty times as many under the thorough profile.

    Each parameter's run is a property of its own: given to a parametrized test itself, hypothesis' plugin would wrap
    one function's settings once more for every parameter.
    """
    limited = settings(
        max_examples=examples * (40 if THOROUGH else 1),
        phases=[Phase.explicit, Phase.generate],  # a smaller seed is no simpler
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**arguments: Any) -> None:
            def drawn(seed: int) -> None:
                test(**arguments, seed=seed)

            limited(given(seed=SEEDS)(drawn))()

        own = inspect.signature(test)
        run.__signature__ = own.replace(parameters=[p for p in own.parameters.values() if p.name != "seed"])  # type: ignore[attr-defined]
        return run

    return decorate


def primitives_with(condition: Callable[[Primitive], bool], law: str) -> Any:
    """Parametrize a test over the primitives that a law applies to.

    By the scope, all laws of a module are tried on one primitive before the next, so that they share what is compiled.
    """
    chosen = [p for p in CATALOGUE if condition(p) and not excused(p, law)]
    return pytest.mark.parametrize("primitive", chosen, ids=str, scope="module")


def excused(primitive: Primitive, law: str) -> bool:
    """Whether the primitive's record says why a law does not apply to it."""
    return law in primitive.laws or "all" in primitive.laws


def generator(seed: int, case: Case) -> np.random.Generator:
    """Values of a case depend on the seed and on the case's place among its primitive's alone."""
    return np.random.default_rng([seed, all_cases()[case.primitive.name].index(case)])
