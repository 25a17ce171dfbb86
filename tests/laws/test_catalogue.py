"""The catalogue is complete: every primitive is in it and has cases, and a law that does not apply says why."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

import tracer
from tests.laws.cases import cases_of
from tests.laws.differences import actives
from tests.laws.programs import GENERIC
from tests.laws.sampling import generator
from tests.laws.test_derivatives import smooth_cases
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.types import ArrayType, KeyType, size
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


KINDS_OF_SIZE = {"no elements", "no axes", "one element", "an odd number", "many"}
MANY = 32  # elements that fill the widest vectors

_AXES = "it works along an axis"
_ONE_LOOP = "transforms make it of a while_loop, whose cases have these"
SIZES_NOT_TRIED = {
    **{
        name: ({"no axes"}, _AXES)
        for name in (
            "iota", "concatenate", "split", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "sort", "top_k",
            "conv",
        )
    },
    **{name: (KINDS_OF_SIZE - {"no axes"}, _ONE_LOOP) for name in ("loop_push", "loop_pull", "loop_bend")},
    **{name: ({"no axes"}, "it takes matrices") for name in ("cholesky", "lu", "triangular_solve", "solve")},
    "check": (KINDS_OF_SIZE - {"no axes"}, "its operands are scalars"),
}  # fmt: skip


def sizes_of(primitive: Primitive) -> set[str]:
    """The kinds of size among the operands and results of a primitive's cases."""
    programs = [case.program for case in cases_of(primitive.name)]
    types = [t for p in programs for t in (*p.input_types, *p.output_types) if isinstance(t, ArrayType | KeyType)]
    found: set[str] = set()
    for type in types:
        count = size(type)
        found |= {"no axes"} if not type.shape else {"one element"} if count == 1 else set()
        found |= {"no elements"} if not count else {"an odd number"} if count % 2 and count > 1 else set()
        found |= {"many"} if count >= MANY else set()
    return found


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_every_primitive_is_tried_on_every_kind_of_size(primitive: Primitive) -> None:
    if not cases_of(primitive.name):
        assert "all" in primitive.laws
        return
    excused, _ = SIZES_NOT_TRIED.get(primitive.name, (set(), ""))
    assert KINDS_OF_SIZE - sizes_of(primitive) == excused, "add cases, or a reason to SIZES_NOT_TRIED"


SPECIAL = {"NaN", "inf", "-inf", "0.0", "-0.0"}
SPECIAL_NOT_TRIED = dict.fromkeys(("loop_push", "loop_pull", "loop_bend"), _ONE_LOOP)


def specials_among(values: Array) -> set[str]:
    """Which special floats are there, and which ends of integers, with the dtype."""
    if dtypes.is_complex(values.dtype):
        return specials_among(values.real) | specials_among(values.imag)
    if dtypes.is_float(values.dtype):
        wide = values.astype(np.float64)
        zero, negative = wide == 0, np.signbit(wide)
        at = {
            "NaN": np.isnan(wide), "inf": np.isposinf(wide), "-inf": np.isneginf(wide), "0.0": zero & ~negative,
            "-0.0": zero & negative,
        }  # fmt: skip
        return {name for name, where in at.items() if where.any()}
    if dtypes.is_integer(values.dtype):
        short, ends = dtypes.short_name(values.dtype), np.iinfo(values.dtype)
        return {f"{short} {end}" for end in ("min", "max") if (values == getattr(ends, end)).any()}
    return set()


def wanted(primitive: Primitive) -> set[str]:
    """The special values of the dtypes of all operands that may have any value."""
    found: set[str] = set()
    for case in cases_of(primitive.name):
        for i in case.given:
            type = case.types[i]
            if isinstance(type, ArrayType) and size(type) and case.values[i] in GENERIC:
                if dtypes.is_inexact(type.dtype):
                    found |= SPECIAL
                elif dtypes.is_integer(type.dtype):
                    found |= {f"{dtypes.short_name(type.dtype)} {end}" for end in ("min", "max")}
    return found


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_special_values_are_drawn_for_every_primitive(primitive: Primitive) -> None:
    missing = wanted(primitive)
    types = [t for case in cases_of(primitive.name) for t in case.types]
    takes_floats = any(isinstance(t, ArrayType) and dtypes.is_inexact(t.dtype) for t in types)
    if takes_floats and primitive.name not in SPECIAL_NOT_TRIED:
        missing |= SPECIAL
    for seed in range(100):
        for case in cases_of(primitive.name):
            if not missing:
                return
            for values in case.draw(generator(seed, case)):
                missing -= specials_among(values)
    assert not missing, "draw them, or say why not in SPECIAL_NOT_TRIED"
