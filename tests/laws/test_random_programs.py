"""Laws of whole random programs: reference, interpreted loops and LLVM agree, and gradients are differences.

Programs that once failed are kept as text in `tests/laws/regressions/`, with the values of their operands: see
`shrinking`, which makes them small.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.laws.agreement import check_derivatives, check_values
from tests.laws.programs import draw_program
from tests.laws.sampling import THOROUGH
from tests.laws.shrinking import CHECKS, REGRESSIONS, read
from tracer.ir import dtypes
from tracer.ir.types import array_type
from tracer.primitives.arrays.sorting import top_k
from tracer.primitives.catalogue import CATALOGUE
from tracer.primitives.elementwise.arithmetic import mul
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.stage import stage

SEEDS, LENGTHS = st.integers(0, 2**32 - 1), st.integers(5, 40)
PROGRAMS = 5000 if THOROUGH else 10  # of either kind
COMPARED = 0.8  # the least share of derivatives, on average, that must lie where programs are smooth

ROOT = Path(__file__).resolve().parents[2]

NOT_DRAWN = {
    "custom_linear": "it stands in linear programs until they are transposed",
    "linear_solve": "it solves what the user's functions say: see tests/lax/test_linear_solves.py",
}


def random_programs(test: Callable[..., Any]) -> Callable[..., Any]:
    """Many seeds and lengths; a failing program is shortened."""
    limited = settings(
        max_examples=PROGRAMS, database=None, deadline=None, print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    return limited(given(seed=SEEDS, length=LENGTHS)(test))


@random_programs
def test_a_random_program_computes_the_same_everywhere(seed: int, length: int) -> None:
    check_values(*draw_program(seed, length), turn=seed)


def test_the_derivatives_of_random_programs_are_differences() -> None:
    shares = []

    @random_programs
    def check(seed: int, length: int) -> None:
        shares.append(check_derivatives(*draw_program(seed, length, smooth=True), seed))

    check()
    assert np.mean(shares) > COMPARED


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.txt")), ids=lambda path: path.stem)
def test_what_failed_once_does_not_fail_again(path: Any) -> None:
    kind, seed = path.stem.split("-")
    CHECKS[kind](*read(path.read_text()), turn=int(seed))


def test_a_seed_draws_the_same_program_in_every_process() -> None:
    """This process has another seed of hashes, unless the user chose this one."""
    printing = "from tests.laws.programs import draw_program as d; print([d(s, 12) for s in range(20)])"
    other = subprocess.run(
        [sys.executable, "-c", printing], env={**os.environ, "PYTHONHASHSEED": "20261"}, cwd=ROOT, check=True,
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert other == f"{[draw_program(seed, 12) for seed in range(20)]}\n", "the order of a set decides"


def test_every_primitive_is_drawn() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(250):
        draw_program(seed, 5 + seed % 36, counted=drawn)
    missing = {p.name for p in CATALOGUE} - set(drawn)
    assert missing == set(NOT_DRAWN), "give it cases of fewer elements, or say why not"


def test_wrong_derivatives_are_found_and_those_of_ties_are_let_be() -> None:
    """A derivative that leaves a term out, beside the middle of three zeros, which has no gradient."""

    vectors = [array_type(dtypes.F64, (3,))] * 2

    def program(term: Callable[[Any], Any]) -> Any:
        return stage(lambda xs: [*top_k(xs[0], 3)[:1], mul(xs[1], term(xs[1]))], vectors).program

    values = [np.zeros(3), np.asarray([0.5, 1.0, 1.5])]
    for seed in range(4):
        assert check_derivatives(program(lambda x: x), values, seed) > 0
        with pytest.raises(AssertionError, match="differences"):
            check_derivatives(program(stop_gradient), values, seed)
