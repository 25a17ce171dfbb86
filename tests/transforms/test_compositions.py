"""Transforms combined, singly, by pairs and by triples, over programs with everything in them.

What the outermost transform gives is compared with finite differences, with a loop over calls, or with the program
itself: compiled, by the reference, and outside jit. Each pair of transforms meets a program at least; under the
thorough profile every pair meets every program.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.sampling import THOROUGH
from tests.transforms.combining import TRANSFORMS, Chain, allowed, chains, check
from tests.transforms.programs import EXAMPLES

PAIRS_EACH, TRIPLES_EACH = (len(TRANSFORMS) ** 2, 60) if THOROUGH else (3, 1)


def shares(length: int, each: int) -> dict[str, list[Chain]]:
    """So many chains for every program, in turn, from all in a mixed order."""
    every = chains(length)
    Random(length).shuffle(every)
    result = {}
    for name, example in EXAMPLES.items():
        result[name] = [chain for chain in every if allowed(example, chain)][:each]
        every = [chain for chain in every if chain not in result[name]] + result[name]
    return result


PAIRS, TRIPLES = shares(2, PAIRS_EACH), shares(3, TRIPLES_EACH)

programs = pytest.mark.parametrize("name", EXAMPLES)


def test_there_are_enough_programs_and_every_pair_is_tried() -> None:
    assert len(EXAMPLES) >= 40
    tried = {tuple(t.name for t in chain) for share in PAIRS.values() for chain in share}
    assert len(tried) == len(TRANSFORMS) ** 2


@programs
def test_every_transform(name: str) -> None:
    for transform in TRANSFORMS:
        if allowed(EXAMPLES[name], [transform]):
            check(EXAMPLES[name], [transform])


@programs
def test_pairs(name: str) -> None:
    for chain in PAIRS[name]:
        check(EXAMPLES[name], chain)


@programs
def test_triples(name: str) -> None:
    for chain in TRIPLES[name]:
        check(EXAMPLES[name], chain)


@given(st.sampled_from(sorted(EXAMPLES)), st.lists(st.sampled_from(TRANSFORMS), min_size=1, max_size=4))
def test_drawn_compositions(name: str, chain: Chain) -> None:
    if allowed(EXAMPLES[name], chain) and sum(t.differences for t in chain) <= 3:
        check(EXAMPLES[name], chain)
