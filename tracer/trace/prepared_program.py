"""Execution of a program outside `jit`: one operation after another, each by its prepared call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracer.ir.primitive import Primitive
from tracer.ir.program import Literal, Program
from tracer.ir.types import storage_type
from tracer.trace.array import Array, concrete
from tracer.trace.source import user_source
from tracer.trace.state import state
from tracer.trace.trace import bind_all, check_alive, eager

Read = int | Literal


class Operation:
    """One operation, prepared for operand types. recipes: the records of define-by-run traces, by active operands."""

    __slots__ = ("call", "params", "primitive", "recipes")

    def __init__(self, primitive: Primitive, params: Mapping[str, Any], call: Callable[..., Sequence[Array]]) -> None:
        self.primitive = primitive
        self.params = params
        self.call = call
        self.recipes: dict[int, Any] = {}

    def on_traced(self, operands: Sequence[Any]) -> Sequence[Array]:
        """Return the outputs for operands of which some belong to traces; define-by-run traces have a short way."""
        trace = None
        for x in operands:
            if x.__class__ is Array and x._trace is not None and x._trace is not trace:
                if trace is not None:
                    return bind_all(self.primitive, operands, self.params)
                trace = x._trace
                check_alive(x)
        if trace is None or trace.record_prepared is None or state.staging is not None:
            return bind_all(self.primitive, operands, self.params)
        outputs: Sequence[Array] = trace.record_prepared(trace, self, operands, user_source())
        return outputs


class PreparedProgram:
    """Program with a prepared call for every equation.

    Values have numbers: the inputs first, then the equations' outputs in order. results: the program's outputs, each
    the number of a value, or a literal.
    """

    __slots__ = ("program", "results", "steps")

    def __init__(self, program: Program) -> None:
        self.program = program
        numbers = {variable: n for n, variable in enumerate(program.inputs)}
        self.steps: list[tuple[Operation, list[Read]]] = []
        for equation in program.equations:
            atoms = equation.inputs
            samples = [atom if isinstance(atom, Literal) else _sample(atom.type) for atom in atoms]
            reads = [atom if isinstance(atom, Literal) else numbers[atom] for atom in atoms]
            call = eager.prepare(equation.primitive, samples, equation.params)
            self.steps.append((Operation(equation.primitive, equation.params, call), reads))
            for variable in equation.outputs:
                numbers[variable] = len(numbers)
        self.results: list[Read] = [a if isinstance(a, Literal) else numbers[a] for a in program.outputs]

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs and the outputs of all operations. Traces record the operations on their arrays."""
        values = list(inputs)
        for x in inputs:
            if x._trace is not None:
                for operation, reads in self.steps:
                    values += operation.on_traced([values[n] if n.__class__ is int else n for n in reads])
                return values
        for operation, reads in self.steps:
            values += operation.call(*[values[n] if n.__class__ is int else n for n in reads])
        return values


def _sample(type: Any) -> Array:
    """Return an array of the type, whose elements must not be read."""
    storage = storage_type(type)
    return concrete(np.broadcast_to(np.zeros((), storage.dtype), storage.shape), getattr(type, "weak", False), type)
