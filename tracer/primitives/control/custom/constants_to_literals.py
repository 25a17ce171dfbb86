"""Conversion of constants to literals, for programs of custom rules: such a program closes over no array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.program import Literal, Program
from tracer.ir.types import ArrayType, array_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import reshape
from tracer.trace.array import Array, is_recorded
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged, stage
from tracer.trace.trace import Operand

_MAX_ELEMENTS = 1024


def closed(staged: Staged) -> Program:
    """Return the staged program with its constants as literals. Raises ArgumentError for a large or traced constant."""
    return close_over(staged.program, staged.constants)


def close_over(program: Program, constants: Sequence[Array]) -> Program:
    """Turn a program of (constants..., inputs...) into one of the inputs, with the constants as literals."""
    if not constants:
        return program

    def run(inputs: list[Array]) -> list[Operand]:
        return evaluate(program, [*map(_written, constants), *inputs])

    return stage(run, program.input_types[len(constants) :], name=program.name).program


def _written(array: Array) -> Any:
    """Write a concrete array in literals, one per element unless all are equal."""
    type = array.type
    if is_recorded(array) or not isinstance(type, ArrayType) or array._value.size > _MAX_ELEMENTS:
        raise ArgumentError(
            message(
                f"a custom rule{here()} makes an array that the program of a loop, a branch or a call cannot hold",
                f"got {type}",
                help="make it outside the rule, which may close over it, or pass it as an argument",
            )
        )
    value, scalar = np.asarray(array._value), array_type(type.dtype, (), type.weak)
    elements = value.reshape(-1)
    if not value.size or (elements.view(np.uint8).reshape(value.size, -1) == elements[:1].view(np.uint8)).all():
        only = elements[0] if value.size else type.dtype.type(0)
        return broadcast_in_dim(Literal(only, scalar), type.shape, ())
    parts = [broadcast_in_dim(Literal(element, scalar), (1,), ()) for element in elements]
    return reshape(concatenate(parts, 0), type.shape)
