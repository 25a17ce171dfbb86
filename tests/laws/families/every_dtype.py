"""One more case for every dtype that a primitive takes at some place, and its own table has not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.laws.cases import ALL, Case, typed
from tracer.errors import TracerError
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
                changed = _with(case, old, short)
                kinds = {(i, t.dtype) for i, t in enumerate(changed.types) if isinstance(t, ArrayType)}
                if not kinds <= seen and (place, changed.types[place].dtype) not in seen and _is_taken(changed):  # type: ignore[union-attr]
                    seen |= kinds
                    yield changed


def _with(case: Case, old: Type, short: str) -> Case:
    """The case with another dtype wherever it has that of `old`."""
    types = [
        typed(short, *type.shape)
        if isinstance(type, ArrayType) and isinstance(old, ArrayType) and type.dtype == old.dtype
        else type
        for type in case.types
    ]
    return replace(case, types=tuple(types), smooth=None)


def _is_taken(case: Case) -> bool:
    try:
        case.primitive.infer(*case.types, **case.params)
    except TracerError:
        return False
    return True
