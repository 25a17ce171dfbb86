"""Adapters learn code while the weights below keep their bits, and merge into them."""

from __future__ import annotations

import numpy as np
import pytest

from tracer import nn, random, tree
from tracer.examples import adapters


def test_adapters_learn_and_the_weights_below_stay(seed: int) -> None:
    keys = random.split(random.key(seed), 4)
    prose, code = adapters.prose(), adapters.code()
    model = adapters.Writer(32, 2, 1, key=keys[0])
    base = adapters.trained(model, prose, steps=120, rate=6e-3, key=keys[1])
    start = adapters.adapted(base, 4, key=keys[2])
    assert nn.count(start) == 6 * 4 * 64 + 2 * 4 * (128 - 32) == sum(x.size for x in tree.leaves(nn.trained(start)))
    assert adapters.bits(start, code) == pytest.approx(adapters.bits(base, code))  # at first they change nothing

    tuned = adapters.trained(start, code, steps=120, rate=2e-2, key=keys[3])
    assert adapters.bits(tuned, code) < adapters.bits(base, code) - 0.08
    assert adapters.bits(adapters.merged(tuned), code) == pytest.approx(adapters.bits(tuned, code), rel=1e-5)
    kept = [nn.at(layers, lambda path, part: part is not None and path.endswith("linear")) for layers in (start, tuned)]
    for before, after in zip(*(tree.leaves(found.get()) for found in kept), strict=True):
        assert np.array_equal(before, after)
    assert np.array_equal(base.embed.weight, tuned.embed.weight)


def test_texts_are_cut_into_what_is_learnt_and_what_is_held_out() -> None:
    text = adapters.letters("résumé " * 10)
    assert bytes(text.learnt).startswith(b"r?sum? ")
    assert (len(text.learnt), len(text.held_out)) == (63, 7)
