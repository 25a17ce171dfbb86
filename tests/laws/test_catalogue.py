"""The catalogue is complete: every primitive is in it and has cases, and a law that does not apply says why."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tracer
from tests.laws.cases import cases_of
from tests.laws.differences import actives
from tests.laws.test_derivatives import smooth_cases
from tracer.ir.primitive import NoRule, Primitive
from tracer.primitives.catalogue import BY_NAME, CATALOGUE

LAWS = ("types", "jvp", "transpose", "batch", "llvm", "passes", "text", "smooth", "all")


def modules() -> list[str]:
    """Every module of the package but those that run when they are imported, or need what may be absent."""
    found = [m.name for m in pkgutil.walk_packages(tracer.__path__, "tracer.")]
    return [name for name in found if name != "tracer.__main__" and ".examples." not in name]


def test_no_primitive_is_outside_the_catalogue() -> None:
    strays = {
        f"{name}.{attribute}"
        for name in modules()
        for attribute, value in vars(importlib.import_module(name)).items()
        if isinstance(value, Primitive) and value not in CATALOGUE
    }
    assert not strays, f"add them to the tuple of their family, and that to the catalogue: {sorted(strays)}"


def test_names_in_the_catalogue_are_unique() -> None:
    names = [primitive.name for primitive in CATALOGUE]
    assert len(names) == len(set(names)) == len(BY_NAME), sorted({n for n in names if names.count(n) > 1})


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_every_primitive_has_cases(primitive: Primitive) -> None:
    excused = "all" in primitive.laws
    assert cases_of(primitive.name) or excused, "add a line to its family's table in tests/laws/families"
    assert all(case.primitive is primitive for case in cases_of(primitive.name)), "two primitives of one name"


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_a_law_that_is_skipped_has_a_reason(primitive: Primitive) -> None:
    assert set(primitive.laws) <= set(LAWS), "no such law"
    assert all(len(why.split()) >= 4 for why in primitive.laws.values())
    for rule in (primitive.reference, primitive.jvp, primitive.transpose, primitive.batch, primitive.lower):
        if isinstance(rule, NoRule):
            assert len(rule.why.split()) >= 4, f"no reason: {rule.why!r}"


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_a_primitive_with_a_derivative_has_a_case_to_difference(primitive: Primitive) -> None:
    if isinstance(primitive.jvp, NoRule) or {"jvp", "all"} & set(primitive.laws):
        return
    moves = any(any(actives(case.program)) for case in cases_of(primitive.name))
    assert not moves or smooth_cases(primitive), "give its cases of f64 a draw of smooth points"


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_every_rule_that_is_no_function_is_a_norule(primitive: Primitive) -> None:
    for rule in (primitive.reference, primitive.transpose, primitive.batch):
        assert callable(rule) or isinstance(rule, NoRule)
