"""Schedules as data: every primitive that lowers has one, and no file tells operations apart by their names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tracer
from tracer.errors import InternalError
from tracer.ir.dtypes import F64
from tracer.ir.primitive import Library, NoRule, Primitive
from tracer.ir.program import Equation, Var
from tracer.ir.types import array_type
from tracer.primitives.catalogue import CATALOGUE
from tracer.schedule.dispatch import ALL, SCHEDULES

PACKAGE = Path(tracer.__file__).parent


@pytest.mark.parametrize("primitive", CATALOGUE, ids=str)
def test_every_primitive_that_lowers_has_a_schedule(primitive: Primitive) -> None:
    if isinstance(primitive.lower, NoRule):
        return
    found = ALL.of(Equation(primitive, (), {}, ()))
    assert found in SCHEDULES
    assert found.lowering is type(primitive.lower)


def test_a_lowering_without_a_schedule_is_a_bug() -> None:
    x = Var(array_type(F64, (3,)))
    unknown = Primitive("unknown", None, np.sin, None, None, None, Library("unknown"))  # type: ignore[arg-type]
    with pytest.raises(InternalError, match=r"^unknown has no schedule: Library\(kind='unknown'\)"):
        ALL.of(Equation(unknown, (x,), {}, (x,)))


def test_operations_are_told_apart_by_their_lowerings_alone() -> None:
    """No test on a primitive or its name in what schedules, runs and spells programs."""
    test = re.compile(r"primitive\.name (==|!=|in|not)|primitive is (not )?\w+_p\b|primitive (not )?in \(")
    rooms = ("schedule", "codegen", "runtime")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for room in rooms
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if test.search(line)
    ]
    assert found == []
