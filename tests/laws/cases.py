"""The cases that the laws run over: for every primitive, equations on operands of every dtype, rank and kind of size.

A law asks `cases_of(name)`. A new primitive needs a line in the table of its family, in `tests/laws/families/`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from tests.grids import THOROUGH
from tests.laws.values import Array, Draw
from tracer.ir import dtypes
from tracer.ir.primitive import Primitive
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, KeyType, Type, array_type, is_differentiable, size
from tracer.trace.stage import stage
from tracer.trace.trace import as_literal, bind_all


@dataclass(frozen=True, eq=False)
class Case:
    """One equation to try, or a small program around equations of the primitive.

    body: the function of the operands that is the program, where it is more than the equation alone. values: how
    each operand is drawn where values are compared. smooth: the same where derivatives are, None where the case has
    none to compare. literals: operands that are scalar literals of their type's dtype, by position.
    """

    primitive: Primitive
    types: tuple[Type, ...]
    values: tuple[Draw, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    smooth: tuple[Draw, ...] | None = None
    literals: Mapping[int, Any] = field(default_factory=dict)
    body: Callable[..., Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.types) == len(self.smooth or self.types), self

    @cached_property
    def given(self) -> tuple[int, ...]:
        """The positions of the operands that are inputs of the program."""
        return tuple(i for i in range(len(self.types)) if i not in self.literals)

    @cached_property
    def program(self) -> Program:
        """The equation or the body, as a program of the operands that are no literals."""

        def run(inputs: list[Any]) -> list[Any]:
            if self.body is not None:
                return list(self.body(*inputs))
            operands = dict(zip(self.given, inputs, strict=True))
            full = [
                operands[i] if i in operands else as_literal(self.literals[i], type.dtype)  # type: ignore[union-attr]
                for i, type in enumerate(self.types)
            ]
            return list(bind_all(self.primitive, full, self.params))

        staged = stage(run, [self.types[i] for i in self.given], name=self.primitive.name)
        assert not staged.constants
        return staged.program

    def draw(self, rng: np.random.Generator) -> list[Array]:
        """Operands for comparisons of values."""
        return [np.asarray(self.values[i](rng, self.types[i])) for i in self.given]

    def draw_smooth(self, rng: np.random.Generator) -> list[Array]:
        """Operands for comparisons of derivatives."""
        assert self.smooth is not None
        return [np.asarray(self.smooth[i](rng, self.types[i])) for i in self.given]

    @property
    def is_exact_enough(self) -> bool:
        """Whether finite differences mean something: every inexact operand and result has 64-bit parts."""
        wide = (dtypes.F64, dtypes.C128)
        types = [*self.program.input_types, *self.program.output_types]
        return all(t.dtype in wide for t in types if is_differentiable(t))  # type: ignore[union-attr]

    def __repr__(self) -> str:
        literals = f" literals {dict(self.literals)}" if self.literals else ""
        if self.body is not None:
            name = getattr(self.body, "__name__", self.body)
            return f"{self.primitive.name} in {name}({', '.join(map(str, self.types))})"
        params = ", ".join(f"{k}={v}" for k, v in self.params.items() if not isinstance(v, Program | tuple))
        return f"{self.primitive.name}({', '.join(map(str, self.types))}; {params}){literals}"


def case(
    primitive: Primitive,
    types: Sequence[Type],
    values: Draw | Sequence[Draw],
    smooth: Draw | Sequence[Draw] | None = None,
    *,
    literals: Mapping[int, Any] | None = None,
    **params: Any,
) -> Case:
    """A case; one draw serves all operands."""

    def each(draws: Draw | Sequence[Draw]) -> tuple[Draw, ...]:
        return (draws,) * len(types) if callable(draws) else tuple(draws)

    return Case(primitive, tuple(types), each(values), params, None if smooth is None else each(smooth), literals or {})


def program_case(
    primitive: Primitive,
    types: Sequence[Type],
    body: Callable[..., Sequence[Any]],
    values: Draw | Sequence[Draw],
    smooth: Draw | Sequence[Draw] | None = None,
) -> Case:
    """A case of a function that binds the primitive, among others."""
    made = case(primitive, types, values, smooth)
    return replace(made, body=body)


def typed(short: str, *shape: int) -> Type:
    """`typed("f64", 3, 4)` is f64[3,4]; "key" is a dtype too."""
    return KeyType(shape) if short == "key" else array_type(dtypes.BY_SHORT_NAME[short], shape)


SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = (*SIGNED, "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
ALL = ("bool", *NUMBERS)
WIDE = ("f64", "c128")


LARGE = 1000  # elements of an operand or result, beyond which values alone are compared


@cache
def all_cases() -> dict[str, tuple[Case, ...]]:
    """Every family's cases and those of the dtypes they leave out, by the name of the primitive."""
    from tests.laws.families import FAMILIES
    from tests.laws.families.every_dtype import cases_of_every_dtype

    found: dict[str, list[Case]] = {}
    for family in FAMILIES:
        for item in family():
            found.setdefault(item.primitive.name, []).append(item)
    return {name: (*items, *cases_of_every_dtype(items)) for name, items in found.items()}


@cache
def cases_of(name: str) -> tuple[Case, ...]:
    """The cases of a primitive, but the large ones; none is a defect that `test_catalogue` reports."""
    return tuple(case for case in all_cases().get(name, ()) if longest(case) <= LARGE)


@cache
def large_cases_of(name: str) -> tuple[Case, ...]:
    """The large ones."""
    return tuple(case for case in all_cases().get(name, ()) if longest(case) > LARGE)


def longest(case: Case) -> int:
    """The most elements of an operand or result."""
    return max(map(size, (*case.program.input_types, *case.program.output_types)), default=0)


def kinds(case: Case) -> set[tuple[object, ...]]:
    """The dtypes of operands and results that have elements, each with its place, and how indices are taken."""
    operands, results = case.program.input_types, case.program.output_types
    placed = [
        *((case.given[i], t) for i, t in enumerate(operands)),
        *((f"result {i}", t) for i, t in enumerate(results)),
    ]
    found: set[tuple[object, ...]] = {(i, t.dtype) for i, t in placed if isinstance(t, ArrayType) and size(t)}
    return found | {("mode", case.params.get("mode"))}


def without_dtypes(case: Case) -> Any:
    """All of a case but its dtypes: cases that are equal in it differ in dtypes alone."""
    params = {name: value for name, value in case.params.items() if not isinstance(value, np.dtype)}
    return tuple(type.shape for type in case.types), case.body, repr(params), tuple(case.literals)


def with_all_kinds(cases: Sequence[Case]) -> list[Case]:
    """The first of the cases that together have the kinds of all."""
    chosen: list[Case] = []
    seen: set[tuple[object, ...]] = set()
    for case in cases:
        if not kinds(case) <= seen:
            chosen.append(case)
            seen |= kinds(case)
    return chosen


def covering_cases(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Each dtype at every place of a long case, and cases that differ in dtypes alone once, with a dtype in turn.

    Of these the ones that have traits of their own. Of cases with a dtype among their parameters, such as conversions,
    one for each choice of dtypes, too. Thoroughly, all.
    """
    if THOROUGH:
        return tuple(cases)
    alike: dict[Any, list[Case]] = {}
    for case in cases:
        alike.setdefault(without_dtypes(case), []).append(case)
        if wanted := _dtypes_among_parameters(case):
            alike.setdefault((*_dtypes(case), *wanted), []).append(case)
    first = [same[number % len(same)] for number, same in enumerate(alike.values())]
    chosen: dict[Case, None] = {}
    seen: set[object] = set()
    for case in (*with_all_kinds(sorted(cases, key=longest, reverse=True)), *first):
        if not traits(case) <= seen or not kinds(case) <= seen:
            chosen[case] = None
            seen |= traits(case) | kinds(case)
    return tuple(case for case in cases if case in chosen)


def traits(case: Case) -> set[object]:
    """What a case tries besides its dtypes: shapes, and parameters by pairs, and with the operands' ranks."""
    shapes = tuple(type.shape for type in case.types)
    given = [(name, repr(value)) for name, value in case.params.items() if not isinstance(value, np.dtype)]
    among = [("ranks", tuple(map(len, shapes))), *given]
    places = ("literals", tuple(case.literals))
    conversion = [(*_dtypes(case), *wanted)] if (wanted := _dtypes_among_parameters(case)) else []
    return {("shapes", shapes, case.body), places, *conversion, *itertools.combinations(among, 2)}


def _dtypes(case: Case) -> tuple[Any, ...]:
    return tuple(getattr(type, "dtype", None) for type in case.types)


def _dtypes_among_parameters(case: Case) -> list[Any]:
    return [value for value in case.params.values() if isinstance(value, np.dtype)]
