"""The tables of cases, one file for each family of primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.laws.cases import Case
from tests.laws.families.contractions import contraction_cases
from tests.laws.families.control import control_cases
from tests.laws.families.decompositions import decomposition_cases
from tests.laws.families.elementwise import elementwise_cases
from tests.laws.families.factorizations import factorization_cases
from tests.laws.families.indexing import indexing_cases
from tests.laws.families.random_bits import random_cases
from tests.laws.families.reductions import reduction_cases
from tests.laws.families.shapes import shape_cases
from tests.laws.families.sweeps import sweep_cases
from tests.laws.families.transforms import transform_cases

FAMILIES: tuple[Callable[[], Iterator[Case]], ...] = (
    elementwise_cases,
    shape_cases,
    indexing_cases,
    reduction_cases,
    contraction_cases,
    factorization_cases,
    transform_cases,
    decomposition_cases,
    random_cases,
    control_cases,
    sweep_cases,
)
