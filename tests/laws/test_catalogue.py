"""The catalogue is complete: every primitive is in it and has cases, and a law that does not apply says why."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import tracer
from tests.laws.cases import COMPLEX, FLOATS, LARGE, Case, all_cases, cases_of
from tests.laws.differences import actives
from tests.laws.programs import GENERIC
from tests.laws.sampling import generator
from tests.laws.test_backends import interpreted_cases
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


KINDS_OF_SIZE = {"no elements", "no axes", "one element", "an odd number", "many", "more than a thousand"}
MANY = 32  # elements that fill the widest vectors

_AXES = "it works along an axis"
_ONE_LOOP = "transforms make it of a while_loop, whose cases have these"
SIZES_NOT_TRIED = {
    **{
        name: ({"no axes"}, _AXES)
        for name in (
            "iota", "concatenate", "split", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "sort", "top_k",
            "conv", "fft", "row_products",
        )
    },
    **{name: (KINDS_OF_SIZE - {"no axes"}, _ONE_LOOP) for name in ("loop_push", "loop_pull", "loop_bend")},
    **{
        name: ({"no axes"}, "it takes matrices")
        for name in (
            "cholesky", "lu", "triangular_solve", "solve", "geqrf", "geqp3", "qr", "householder_product", "eigh", "svd",
            "geev", "eig", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve",
        )
    },
    "check": (KINDS_OF_SIZE - {"no axes"}, "its operands are scalars"),
}  # fmt: skip


def sizes_of(primitive: Primitive) -> set[str]:
    """The kinds of size among the operands and results of a primitive's cases."""
    programs = [case.program for case in all_cases().get(primitive.name, ())]
    types = [t for p in programs for t in (*p.input_types, *p.output_types) if isinstance(t, ArrayType | KeyType)]
    found: set[str] = set()
    for type in types:
        count = size(type)
        found |= {"no axes"} if not type.shape else {"one element"} if count == 1 else set()
        found |= {"no elements"} if not count else {"an odd number"} if count % 2 and count > 1 else set()
        found |= {"many"} if count >= MANY else set()
        found |= {"more than a thousand"} if count > LARGE else set()
    return found


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_every_primitive_is_tried_on_every_kind_of_size(primitive: Primitive) -> None:
    if not cases_of(primitive.name):
        assert "all" in primitive.laws
        return
    excused, _ = SIZES_NOT_TRIED.get(primitive.name, (set(), ""))
    assert KINDS_OF_SIZE - sizes_of(primitive) == excused, "add cases, or a reason to SIZES_NOT_TRIED"


@pytest.mark.parametrize("primitive", [p for p in CATALOGUE if not isinstance(p.lower, NoRule)], ids=str)
def test_every_dtype_of_every_primitive_is_interpreted(primitive: Primitive) -> None:
    """Elements of it, as an operand or a result, at every place where a case of its law has it."""
    if {"llvm", "all"} & set(primitive.laws):
        return

    def found(cases: Sequence[Case]) -> set[tuple[str, int, str]]:
        return {
            (what, i, dtypes.short_name(type.dtype))
            for case in cases
            for what, types in (("operand", case.types), ("result", case.program.output_types))
            for i, type in enumerate(types)
            if isinstance(type, ArrayType) and size(type)
        }

    missing = found(cases_of(primitive.name)) - found(interpreted_cases(primitive.name))
    assert not missing, f"never interpreted: {sorted(missing)}"


SPECIAL = ("NaN", "inf", "-inf", "0.0", "-0.0")
_ALL_SPECIAL = {f"{kind} {name}" for kind in ("real", "complex", *FLOATS, *COMPLEX) for name in SPECIAL}
_COMPLEX_SPECIAL = {f"{kind} {name}" for kind in COMPLEX for name in SPECIAL}
_INFINITE_PARTS = {f"{kind} {name}" for kind in COMPLEX for name in ("inf", "-inf")}
_ORDER = "the product of infinite parts and others depends on the order of the factors"
SPECIAL_NOT_TRIED = {
    **dict.fromkeys(("loop_push", "loop_pull", "loop_bend"), (_ALL_SPECIAL, _ONE_LOOP)),
    **dict.fromkeys(("reduce_prod", "cumprod", "scatter_mul"), (_INFINITE_PARTS, _ORDER)),
    "solve": (_COMPLEX_SPECIAL, "a system of one is a quotient, and LAPACK has its own of infinite parts"),
    **dict.fromkeys(
        ("geqrf", "geqp3", "qr", "householder_product", "hessenberg", "tridiagonal", "tridiagonal_solve"),
        (_ALL_SPECIAL, "which elements are lost depends on the order of LAPACK's sums"),
    ),
    "cumlogsumexp": (_COMPLEX_SPECIAL, "where terms cancel all digits go"),
}


def specials_among(values: Array, kind: str) -> set[str]:
    """Which special floats or parts are there, and which ends of integers, each after the kind."""
    if dtypes.is_complex(values.dtype):
        return specials_among(values.real, kind) | specials_among(values.imag, kind)
    if dtypes.is_float(values.dtype):
        with np.errstate(invalid="ignore"):  # signalling NaN
            wide = values.astype(np.float64)
        zero, negative = wide == 0, np.signbit(wide)
        at = {
            "NaN": np.isnan(wide), "inf": np.isposinf(wide), "-inf": np.isneginf(wide), "0.0": zero & ~negative,
            "-0.0": zero & negative,
        }  # fmt: skip
        return {f"{kind} {name}" for name, where in at.items() if where.any()}
    if dtypes.is_integer(values.dtype):
        ends = np.iinfo(values.dtype)
        return {f"{kind} {end}" for end in ("min", "max") if (values == getattr(ends, end)).any()}
    return set()


def kind_of(case: Case, type: ArrayType) -> str:
    """The dtype; around control flow, only whether it is complex."""
    inexact = dtypes.is_inexact(type.dtype)
    if case.body is None or not inexact:
        return dtypes.short_name(type.dtype)
    return "complex" if dtypes.is_complex(type.dtype) else "real"


@cache
def kinds_of(case: Case) -> set[str]:
    """The kinds of its operands."""
    types = (case.types[i] for i in case.given)
    return {kind_of(case, type) for type in types if isinstance(type, ArrayType)}


def wanted(primitive: Primitive) -> set[str]:
    """The special floats of all dtypes that it takes, and the ends of the integers that may be any."""
    found: set[str] = set()
    for case in cases_of(primitive.name):
        for i in case.given:
            type = case.types[i]
            if not isinstance(type, ArrayType) or not size(type):
                continue
            if dtypes.is_inexact(type.dtype):
                found |= {f"{kind_of(case, type)} {name}" for name in SPECIAL}
            elif dtypes.is_integer(type.dtype) and case.values[i] in GENERIC:
                found |= {f"{kind_of(case, type)} {end}" for end in ("min", "max")}
    return found


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_special_values_are_drawn_for_every_primitive(primitive: Primitive) -> None:
    excused, _ = SPECIAL_NOT_TRIED.get(primitive.name, (set(), ""))
    missing = wanted(primitive) - excused
    for seed in range(300):
        for case in cases_of(primitive.name):
            if not missing:
                return
            if kinds_of(case).isdisjoint(each.rpartition(" ")[0] for each in missing):
                continue
            for i, values in zip(case.given, case.draw(generator(seed, case)), strict=True):
                type = case.types[i]
                if isinstance(type, ArrayType):
                    missing -= specials_among(values, kind_of(case, type))
    assert not missing, f"draw them, or say why not in SPECIAL_NOT_TRIED: {sorted(missing)}"
