"""Results on the simulated device have the bits that were recorded, which a card must have, too."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

import tracer
from tests.runtime.cuda import digests

RECORDED: dict[str, str] = json.loads(digests.RECORDED.read_text(encoding="utf-8"))


def test_162_programs_are_recorded_by_digests() -> None:
    assert len(RECORDED) == 162
    assert {len(digest) for digest in RECORDED.values()} == {64}
    assert len(set(RECORDED.values())) > 0.9 * len(RECORDED)


@pytest.mark.parametrize("position", [0, 1])
def test_a_program_has_the_recorded_bits(position: int) -> None:
    name, sample = next(islice(digests.golden(), position, None))
    assert digests.digest(name, sample, tracer.devices("cuda-sim")[0].driver) == RECORDED[name]


def test_one_bit_changes_a_digest() -> None:
    class Flipping:
        """The simulated device, with the last bit of a result changed."""

        def __init__(self, driver: Any) -> None:
            self.driver = driver

        def __getattr__(self, name: str) -> Any:
            return getattr(self.driver, name)

        def download(self, *args: Any) -> Any:
            found = self.driver.download(*args)
            found.view(np.uint8)[-1] ^= 1
            return found

    name, sample = next(digests.golden())
    assert digests.digest(name, sample, Flipping(tracer.devices("cuda-sim")[0].driver)) != RECORDED[name]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_all_nans_have_equal_bits(dtype: str) -> None:
    x = np.array([np.nan, 1.0, -0.0], dtype)
    y = x.copy()
    y.view(np.uint8)[0] ^= 1  # of the NaN's payload
    assert x.tobytes() != y.tobytes()
    assert digests._with_one_nan(x).tobytes() == digests._with_one_nan(y).tobytes()
    assert digests._with_one_nan(x)[-1:].tobytes() == digests._with_one_nan(x)[-1:].copy().tobytes()
