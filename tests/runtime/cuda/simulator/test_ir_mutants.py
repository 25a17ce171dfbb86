"""What a wrong schedule would write, in every kernel of some programs: the simulator or the bits show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from tests.codegen.cuda.test_emit import CHECKED, gpu_module
from tests.grids import THOROUGH
from tests.runtime.cuda.simulator.ir_mutants import bits_of, changes, source_of_all, telling_inputs, what_shows
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.runtime.cuda.simulator.kernels import Order

_EVERYWHERE: Final[Mapping[str, str]] = {
    r"shuffle down": "only the first lane's value is read, and it is the same",
    r"shuffle by 1 more": "17, 9, 5, 3 and 1 reach all lanes too; order alone changes",
    r"eq with 1": "all lanes, or threads, hold the value that one stores",
    r"irem with 33": "all lanes hold the value that one stores",
    r"idiv with 31": "multiples of 32 below 31 * 32 give the same warp",
}
_CLAMP: Final = "both arms are equal where the numbers are"
_ROUNDING: Final = "a correction below the last bit, which tests of the math functions see"
EQUIVALENT: Final[Mapping[str, Mapping[str, str]]] = {
    "fused_f32": {r"ge for gt|le for lt": _CLAMP},
    "softmax": {
        r"rows0, \d+: (ge for gt|le for lt)": _CLAMP,
        r"rows0, \d+: (loop to 2|loop with twice the step|mul with 12[79]|.* with [35] k)": "one round is all",
        r"rows0, \d+: irem with 3": "the last warp has no column, and a maximum may take values twice",
    },
    "few_column_sums": {
        r"nest0, \d+: (le for lt|lt with 86|always)": "the thread too many stores a total that nobody reads",
    },
    "two_axes": {r"nest0, (14: add for sub|36: sub for add|40: le for lt)": _ROUNDING},
    "transposed": {r"nest0, \d+: loop to 4": "the fourth round has no element"},
    "running_sums": {r"nest0, \d+: loop to 5": "the fifth tile has no column"},
    "iterated": {
        r"loop0, \d+: (le for lt|lt with 3[13]|always)": "a thread without work has no element of its kernel either",
        r"loop0, (33|53): loop with twice the step": "a thread has one pair of columns",
        r"loop0, 14: no barrier": "the thread that reads the cell has stored it",
        r"loop0, \d+: no barrier": "the shuffles of the rows order the accesses of the next iteration's thread",
    },
    "joined": {
        r"maps0, \d+: (le for lt|lt with 2|mul with 3[13]|sub with 2|min for max)": "each part is one block",
    },
    "any_of_row": {
        r"nest0, 2: loop with twice the step": "a thread has one group of columns",
        r"ge for gt": "no number is 2.5",
        r"load a1 with 99 b": "the elements left out decide no row",
    },
}
"""Changes that change nothing, as patterns of what changed, and why."""

MUTATED: Final = (
    "fused_f32", "choice_f32", "softmax", "column_sums", "few_column_sums", "full_sum", "two_axes", "short_rows",
    "any_of_row", "transposed", "running_sums", "joined", "gathered", "checked",
    "iterated",
)  # fmt: skip


def inputs_for(name: str, rng: np.random.Generator) -> list[list[Any]]:
    """Sets of operands on which a fault shows; indices within bounds and beyond them."""
    if name == "checked":
        x, inside = np.arange(1, 10, dtype=np.float32), np.arange(600) % 9
        outside = inside.copy()
        outside[[400, 77]] = 9, -10
        return [[x, inside], [x, outside]]
    given = inputs_of(name, rng)
    if name == "gathered":
        return [given, [given[0], given[1] * 3 - 9]]
    return [given, *telling_inputs(PROGRAMS[name][1], rng)]


@pytest.mark.parametrize("name", MUTATED)
def test_every_mutant_of_the_ir_shows_itself_or_is_equivalent(name: str) -> None:
    """Every eighth mutant, from a program's first to eighth on; thoroughly, all."""
    module = gpu_module(program_of(*(CHECKED if name == "checked" else PROGRAMS[name])))
    found, inputs = list(changes(module)), inputs_for(name, np.random.default_rng(1))
    assert len(found) >= 20
    if not THOROUGH:
        found = found[MUTATED.index(name) % 8 :: 8]
    source = source_of_all(module, found)
    wanted = [bits_of(source, given, Order.FORWARD, {}) for given in inputs]
    patterns = [*_EVERYWHERE, *EQUIVALENT.get(name, {})]
    for number, change in enumerate(found):
        shown = what_shows(source, number, change, inputs, wanted)
        assert shown or any(re.search(f": .*({p})$|^({p})$", change.what) for p in patterns), change.what
