"""One more case for every dtype that a primitive takes at some place, and its own table has not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.laws.cases import ALL, Case, typed
from tracer.errors import TracerError
from tracer.ir.dtypes import BY_SHORT_NAME
from tracer.ir.types import ArrayType, Type, size

SMALL = 40  # elements of an operand: the dtype is what these cases are about


def cases_of_every_dtype(cases: Sequence[Case]) -> Iterator[Case]:
    """The cases that one primitive's table lacks: equations like those of the table, on other dtypes."""
    seen = {(i, type.dtype) for case in cases for i, type in enumerate(case.types) if isinstance(type, ArrayType)}
    for case in cases:
        if case.body is not None or case.literals or any(size(type) > SMALL for type in case.types):
            continue
        for place, old in enumerate(case.types):
            for short in ALL if isinstance(old, ArrayType) else ():
                if (place, BY_SHORT_NAME.get(short)) in seen:
                    continue
                types = _with(case.types, old, short)
                kinds = {(i, t.dtype) for i, t in enumerate(types) if isinstance(t, ArrayType)}
                if _is_taken(case, types):
                    seen |= kinds
                    yield replace(case, types=types, smooth=None)


def _with(types: Sequence[Type], old: Type, short: str) -> tuple[Type, ...]:
    """The types with another dtype wherever they have that of `old`."""
    return tuple(
        typed(short, *type.shape)
        if isinstance(type, ArrayType) and isinstance(old, ArrayType) and type.dtype == old.dtype
        else type
        for type in types
    )


def _is_taken(case: Case, types: Sequence[Type]) -> bool:
    try:
        case.primitive.infer(*types, **case.params)
    except TracerError:
        return False
    return True
