"""Transforms combined, singly, by pairs and by triples, over programs with everything in them.

What the outermost transform gives is compared with finite differences, with a loop over calls, or with the program
itself: compiled, by the reference, and outside jit. Here a fixed choice is tried, each compiled and in one other way in
turn, under the thorough profile every pair with every program in all ways; `python -m tests.transforms.hunt` goes on
for as long as it is let.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.sampling import THOROUGH
from tests.transforms.combining import BY_NAME, TRANSFORMS, WAYS, Chain, allowed, chains, check
from tests.transforms.examples import EXAMPLES

SINGLES_EACH, PAIRS_EACH, TRIPLES_EACH = (len(TRANSFORMS), len(TRANSFORMS) ** 2, 60) if THOROUGH else (1, 1, 1)
SOME = None if THOROUGH else len(TRANSFORMS) + 4  # programs that have a single transform and a triple; all have a pair


def mixed(length: int) -> list[Chain]:
    """All chains of a length in a mixed order, first a few in which every transform stands in every place."""
    every, met = chains(length), set[Any]()
    Random(length).shuffle(every)
    first = []
    for new in (length, 1):
        for chain in every:
            places = set(enumerate(each.name for each in chain))
            if len(places - met) >= new and any(allowed(example, chain) for example in EXAMPLES.values()):
                first.append(chain)
                met |= places
    return list(dict.fromkeys([*first, *every]))


def shares(length: int, each: int, some: int | None = None) -> dict[str, list[Chain]]:
    """So many chains for every program, or for `some` that are spread evenly, in turn, from all in a mixed order."""
    every = mixed(length)
    result = {}
    programs = list(EXAMPLES.items())
    for name, example in programs if some is None else [programs[i * len(programs) // some] for i in range(some)]:
        result[name] = list(islice((chain for chain in every if allowed(example, chain)), each))
        for chain in result[name]:
            every.remove(chain)
            every.append(chain)
    return result


SINGLES, PAIRS, TRIPLES = shares(1, SINGLES_EACH, SOME), shares(2, PAIRS_EACH), shares(3, TRIPLES_EACH, SOME)


def in_turn(number: int) -> Sequence[str]:
    """One of the ways besides compiling, in turn; thoroughly, all."""
    return WAYS if THOROUGH else [WAYS[number % len(WAYS)]]


def test_there_are_enough_programs_and_every_transform_is_tried_in_every_place() -> None:
    """Of the pairs a twelfth are tried here; `scripts/hunt compositions` tries all, over all programs."""
    assert len(EXAMPLES) >= 95
    assert set(PAIRS) == set(EXAMPLES)
    assert {chain[0] for share in SINGLES.values() for chain in share} == set(TRANSFORMS)
    pairs = {chain for share in PAIRS.values() for chain in share}
    assert {inner for inner, _ in pairs} == {outer for _, outer in pairs} == set(TRANSFORMS)
    assert len(pairs) >= 95
    for place in range(3):
        assert {chain[place] for share in TRIPLES.values() for chain in share} == set(TRANSFORMS)


@pytest.mark.parametrize("name", SINGLES)
def test_single_transforms(name: str) -> None:
    for chain in SINGLES[name]:
        check(EXAMPLES[name], chain, in_turn(list(SINGLES).index(name)))


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    for chain in PAIRS[name]:
        check(EXAMPLES[name], chain, in_turn(list(PAIRS).index(name)))


@pytest.mark.parametrize("name", TRIPLES)
def test_triples(name: str) -> None:
    for chain in TRIPLES[name]:
        check(EXAMPLES[name], chain, in_turn(list(TRIPLES).index(name)))


@settings(max_examples=1000 if THOROUGH else 5)
@given(st.sampled_from(sorted(EXAMPLES)), st.lists(st.sampled_from(TRANSFORMS), min_size=1, max_size=4))
def test_drawn_compositions(name: str, chain: Chain) -> None:
    if allowed(EXAMPLES[name], chain) and sum(t.differences for t in chain) <= 3:
        check(EXAMPLES[name], chain, in_turn(len(chain)))


@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("until_another_than_grows", ("while_loop of lanes", "cond of lanes", "grad", "jacrev")),
        ("lanes_of_loops_of_lanes", ("vjp out of scan", "grad")),
        ("lanes_of_loops_of_lanes", ("checkpoint of dots", "fori_loop", "linearize", "hessian")),
    ],
)
def test_compositions_that_once_kept_stacks_of_stacks(name: str, chain: tuple[str, ...]) -> None:
    check(EXAMPLES[name], [BY_NAME[each] for each in chain], in_turn(len(chain)))
