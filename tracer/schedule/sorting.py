"""sort, as loop IR."""

from __future__ import annotations

from tracer.errors import InternalError
from tracer.ir.program import Equation
from tracer.schedule.blocks import BlockWriter


def write_sort(writer: BlockWriter, equation: Equation) -> None:
    raise InternalError("sort has no schedule yet")
