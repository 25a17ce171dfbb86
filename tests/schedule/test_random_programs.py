"""Random programs compute what the reference does: fusion, buffers in place, control flow and passes together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grids import THOROUGH
from tests.schedule.random_programs import random_program
from tests.schedule.running import agree_program, interpreted, shared


@settings(max_examples=1000 if THOROUGH else 50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_random_programs_compute_what_the_reference_does(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(lambda n: int(rng.integers(n)), steps)
    agree_program(program, [rng.uniform(-1.0, 1.0, t.shape) for t in program.input_types])


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_random_programs_may_be_shared_by_threads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(lambda n: int(rng.integers(n)), 4)
    agree_program(program, [rng.uniform(-1.0, 1.0, t.shape) for t in program.input_types], shared)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_random_programs_keep_the_rules_of_the_loop_ir(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(lambda n: int(rng.integers(n)), 4)
    agree_program(program, [rng.uniform(-1.0, 1.0, t.shape) for t in program.input_types], interpreted)
