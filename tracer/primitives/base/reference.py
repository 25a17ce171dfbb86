"""Reference interpreter of the array IR: runs programs on NumPy arrays by the references of their primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tracer.errors import InternalError
from tracer.ir.primitive import NoRule, Primitive, Rule
from tracer.ir.program import Atom, Literal, Program, Source, Var
from tracer.ir.types import Float0Type, StackType, Type, storage_type
from tracer.trace.state import state

Value = Any  # np.ndarray; for a stack, with its items along the leading axis


_interpreter: ContextVar[Callable[[Program, Sequence[Value]], list[Value]] | None] = ContextVar(
    "interpreter", default=None
)


@contextmanager
def interpreted_by(run: Callable[[Program, Sequence[Value]], list[Value]]) -> Iterator[None]:
    """Run every program by `run` in place of `run_reference`, also the nested ones."""
    token = _interpreter.set(run)
    try:
        yield
    finally:
        _interpreter.reset(token)


def run_reference(program: Program, inputs: Sequence[Value]) -> list[Value]:
    """Run a program on NumPy arrays and return its outputs. Nothing is compiled, and faults raise at once."""
    if (run := _interpreter.get()) is not None:
        return run(program, inputs)
    environment: dict[Var, Value] = dict(zip(program.inputs, inputs, strict=True))
    outer_source = state.source
    try:
        for equation in program.equations:
            values = [_read(environment, atom) for atom in equation.inputs]
            outputs = reference_outputs(equation.primitive, values, equation.params, equation.source)
            for variable, value in zip(equation.outputs, outputs, strict=True):
                environment[variable] = fitted(value, variable.type, equation.primitive.name)
    finally:
        state.source = outer_source
    return [_read(environment, atom) for atom in program.outputs]


def reference_outputs(
    primitive: Primitive, values: Sequence[Value], params: Mapping[str, Any], source: Source | None = None
) -> Sequence[Value]:
    """Return the outputs of one primitive on NumPy arrays, always as a sequence."""
    reference = reference_of(primitive)
    if source is not None:
        state.source = source
    with np.errstate(all="ignore"):
        outputs = reference(*values, **params)
    return outputs if primitive.multiple else (outputs,)


def reference_of(primitive: Primitive) -> Rule:
    """Return a primitive's function of NumPy arrays. Raises InternalError if it has none."""
    if isinstance(primitive.reference, NoRule):
        raise InternalError(f"{primitive.name} has no reference: {primitive.reference.why}")
    return primitive.reference


def _read(environment: Mapping[Var, Value], atom: Atom) -> Value:
    if isinstance(atom, Literal):
        return np.asarray(atom.value, atom.type.dtype)
    return environment[atom]


def fitted(value: Value, type: Type, name: str) -> Value:
    """Return the value in the shape of `type`: splats are broadcast. Raises InternalError for a wrong dtype."""
    if isinstance(type, StackType | Float0Type):
        return value
    expected = storage_type(type)
    array = np.asarray(value)
    if array.dtype != expected.dtype:
        raise InternalError(f"the reference of {name} gave {array.dtype} where {type} was inferred")
    if array.size == 0 and array.shape != expected.shape:  # empty keys may come back without their hidden axis
        return np.zeros(expected.shape, expected.dtype)
    if array.shape != expected.shape:
        array = np.broadcast_to(array, expected.shape)
    return array
