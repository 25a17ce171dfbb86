"""Keys: seeds, raw words, splitting and folding, and what is told to those who err."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tracer import random
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.settings import config
from tracer.trace.array import require_concrete


def words(keys: Any) -> list[int]:
    found: list[int] = require_concrete(random.key_data(keys)).ravel().tolist()
    return found


@each(
    ("seed", "high", "low"),
    [
        (0, 0, 0), (42, 0, 42), (-1, 2**32 - 1, 2**32 - 1), (2**40 + 3, 256, 3), (2**63 - 1, 2**31 - 1, 2**32 - 1),
        (2**63, 2**31, 0), (np.int32(-1), 0, 2**32 - 1), (np.uint64(2**63), 2**31, 0), (np.uint8(7), 0, 7),
        (np.asarray(9), 0, 9),
    ],
)  # fmt: skip
def test_a_seed_becomes_its_two_words(seed: Any, high: int, low: int) -> None:
    assert words(random.key(seed)) == [high, low]


def test_raw_words_are_taken_wherever_a_key_is_and_stay_raw() -> None:
    raw, typed = random.PRNGKey(3), random.key(3)
    assert (raw.shape, raw.dtype) == ((2,), np.uint32)
    for derive in (random.split, lambda k: random.split(k, (2, 2)), lambda k: random.fold_in(k, 7)):
        assert derive(raw).dtype == np.uint32
        assert words(derive(raw)) == words(derive(typed))
    for draw in (random.normal, lambda k: random.choice(k, 5), lambda k: random.randint(k, (4,), 0, 9)):
        assert require_concrete(draw(raw)).tobytes() == require_concrete(draw(typed)).tobytes()
    assert words(np.array([0, 3], np.uint32)) == [0, 3]


def test_wrapping_undoes_unwrapping() -> None:
    keys = random.split(random.key(1), 3)
    assert words(random.wrap_key_data(random.key_data(keys))) == words(keys)
    assert random.key_impl(keys) == "threefry2x32"
    assert words(random.clone(keys)) == words(keys)


def test_the_generator_may_be_named() -> None:
    assert words(random.key(1, impl="threefry2x32")) == words(random.key(1, dtype=random.key(0).dtype)) == [0, 1]
    with pytest.raises(ArgumentError, match="there is no generator 'rbg'"):
        random.key(0, impl="rbg")


@each(
    ("error", "pattern", "call"),
    [
        (ArgumentError, "the seed is an integer", lambda k: random.key(1.5)),
        (ArgumentError, "the seed is an integer", lambda k: random.key(True)),
        (ShapeError, "the seed is a single integer", lambda k: random.key(np.arange(3))),
        (ArgumentError, "does not fit in 64 bits", lambda k: random.key(2**64)),
        (ArgumentError, "takes a key first", lambda k: random.normal(0, (3,))),
        (ArgumentError, "takes a key first", lambda k: random.normal((3,))),
        (ShapeError, "takes a single key", lambda k: random.normal(random.split(k))),
        (ArgumentError, "data must be from 0 to", lambda k: random.fold_in(k, -1)),
        (ArgumentError, "the data is an integer", lambda k: random.fold_in(k, 0.5)),
        (ShapeError, "must not be negative", lambda k: random.normal(k, (-1,))),
        (ArgumentError, "a shape is a tuple of integers", lambda k: random.normal(k, "float32")),
        (DTypeError, "samples floats", lambda k: random.uniform(k, (), "int32")),
        (DTypeError, "samples integers", lambda k: random.randint(k, (), 0, 2, "float32")),
        (DTypeError, "gives unsigned integers", lambda k: random.bits(k, (), "int32")),
        (DTypeError, "the probability is a float", lambda k: random.bernoulli(k, 1)),
        (ShapeError, "the parameters must broadcast", lambda k: random.uniform(k, (2,), minval=np.zeros(3))),
        (ShapeError, "the parameters must broadcast", lambda k: random.randint(k, (), np.zeros(3, int), 5)),
        (ShapeError, "more draws than elements", lambda k: random.choice(k, 3, (4,), replace=False)),
        (ShapeError, "one probability for every element", lambda k: random.choice(k, 3, p=np.ones(4))),
        (ArgumentError, "takes an array with axes, or an integer", lambda k: random.permutation(k, 1.5)),
        (ShapeError, "must end in the logits", lambda k: random.categorical(k, np.zeros((2, 3)), shape=(3,))),
        (ArgumentError, "unknown mode", lambda k: random.gumbel(k, (), mode="medium")),
    ],
)  # fmt: skip
def test_mistakes_are_told(error: type[Exception], pattern: str, call: Any) -> None:
    with pytest.raises(error, match=pattern):
        call(random.key(0))


def test_a_message_names_the_place_and_the_remedy() -> None:
    with pytest.raises(ArgumentError) as caught:
        random.normal(0, (3,))
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("random.normal at test_keys.py:")
    assert rest == ["  got int", "  help: make one with tracer.random.key(seed)"]


def test_the_default_dtype_is_the_configured_one() -> None:
    key = random.key(0)
    assert random.normal(key).dtype == np.float64
    with config.using(default_float="float32"):
        assert random.normal(key).dtype == random.uniform(key).dtype == np.float32
        assert random.uniform(key, dtype="float64").dtype == np.float64
        assert random.categorical(key, [0.0, 1.0]).dtype == np.int64


def test_samplers_accept_empty_shapes() -> None:
    key = random.key(0)
    for sampler in (random.normal, random.uniform, random.gumbel, random.exponential, random.maxwell):
        assert sampler(key, (0, 3)).shape == (0, 3)
    assert random.permutation(key, 0).shape == (0,)
    assert random.choice(key, 0, (0,)).shape == (0,)
    assert random.split(key, 0).shape == (0,)


def test_normal_samples_have_mean_0_and_variance_1() -> None:
    samples = require_concrete(random.normal(random.key(5), (100_000,)))
    assert abs(samples.mean()) < 0.02
    assert abs(samples.var() - 1) < 0.02
