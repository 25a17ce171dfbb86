"""Samplers under tracing and batching draw what they draw eagerly; their parameters have derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tracer import random
from tracer.ir import dtypes
from tracer.ir.types import KeyType, array_type
from tracer.primitives.base.reference import run_reference
from tracer.runtime.compile.compile import compile_program
from tracer.trace.array import require_concrete
from tracer.trace.stage import stage
from tracer.transforms.batch import batch_program
from tracer.transforms.jvp import jvp_program

KEYS = np.array([[0, 0], [7, 2**32 - 1], [123456789, 42]], np.uint32)

SAMPLERS: dict[str, Any] = {
    "bits": lambda k: random.bits(k, (3,), "uint16"),
    "uniform": lambda k: random.uniform(k, (2, 3), "float32", -1.0, 2.0),
    "normal": lambda k: random.normal(k, (5,)),
    "complex normal": lambda k: random.normal(k, (5,), "complex64"),
    "randint": lambda k: random.randint(k, (5,), -3, 100, "int8"),
    "bernoulli": lambda k: random.bernoulli(k, np.array([0.2, 0.8])),
    "gumbel": lambda k: random.gumbel(k, (4,), mode="high"),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (4,)),
    "permutation": lambda k: random.permutation(k, 6),
    "permutation of rows": lambda k: random.permutation(k, np.arange(6.0).reshape(3, 2)),
    "choice": lambda k: random.choice(k, 6, (2,), replace=False),
    "choice by p": lambda k: random.choice(k, 3, (4,), p=[0.5, 0.25, 0.25]),
    "categorical": lambda k: random.categorical(k, [[0.0, 1.0], [1.0, 0.0]], shape=(3, 2)),
    "gamma": lambda k: random.gamma(k, np.array([0.5, 2.0])),
    "poisson": lambda k: random.poisson(k, np.array([0.5, 40.0])),
    "binomial": lambda k: random.binomial(k, 50, np.array([0.1, 0.4])),
    "multinomial": lambda k: random.multinomial(k, 9.0, np.array([0.1, 0.4, 0.5])),
    "folded, then drawn": lambda k: random.normal(random.fold_in(k, 3), (2,)),
    "the words of a split": lambda k: random.key_data(random.split(k, (2, 2))),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_traced_or_batched_key_draws_what_an_eager_one_does(name: str) -> None:
    sampler = SAMPLERS[name]
    eager = [require_concrete(sampler(random.wrap_key_data(words))) for words in KEYS]
    staged = stage(lambda xs: [sampler(*xs)], [KeyType(())])
    constants = [require_concrete(c) for c in staged.constants]
    compiled = compile_program(staged.program)
    for words, wanted in zip(KEYS, eager, strict=True):
        (got,) = compiled.run([*constants, words])
        assert got.tobytes() == wanted.tobytes()
    batched = (*(False for _ in constants), True)
    together_program = batch_program(staged.program, batched, 3).program
    (together,) = compile_program(together_program).run([*constants, KEYS])
    np.testing.assert_array_equal(together, np.stack(eager))


def test_a_traced_seed_makes_the_key_of_its_value() -> None:
    program = stage(lambda xs: [random.key(xs[0])], [array_type(dtypes.I64, ())]).program
    assert run_reference(program, [np.asarray(-5)])[0].tolist() == [2**32 - 1, 2**32 - 5]


def test_samples_move_with_their_bounds() -> None:
    types = [array_type(dtypes.F64, ()), KeyType(())]
    program = stage(lambda xs: [random.uniform(xs[1], (4,), minval=xs[0])], types).program
    pushed = jvp_program(program, (True, False)).program
    values, tangents = run_reference(pushed, [np.asarray(0.25), KEYS[1], np.asarray(1.0)])
    np.testing.assert_allclose(tangents, (1.0 - values) / 0.75, rtol=1e-12)
