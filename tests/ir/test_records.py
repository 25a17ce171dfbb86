"""Records that are made when modules are imported: their fields are those that they are declared with."""

from __future__ import annotations

from typing import Any

import pytest

from tracer.ir.primitive import Composite, Pointwise, Scatter
from tracer.ir.scalar import ScalarOp


def test_records_are_equal_by_their_fields_and_have_defaults() -> None:
    assert Pointwise(ScalarOp.SIN) == Pointwise(op=ScalarOp.SIN) != Pointwise(ScalarOp.COS)
    assert hash(Scatter()) == hash(Scatter(None))
    assert Scatter() != Pointwise(ScalarOp.ADD)
    assert not Composite(print).computes
    with pytest.raises(AttributeError, match="is immutable"):
        Scatter().op = ScalarOp.ADD  # type: ignore[misc]


@pytest.mark.parametrize(
    "make",
    [
        Pointwise,
        lambda: Pointwise(ScalarOp.SIN, ScalarOp.COS),
        lambda: Pointwise(operation=ScalarOp.SIN),
        lambda: Pointwise(ScalarOp.SIN, op=ScalarOp.SIN),
    ],
    ids=["too few", "too many", "misspelt", "twice"],
)
def test_records_that_are_made_wrongly_are_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"Pointwise takes \(op\)"):
        make()
