"""Execution of a program outside `jit`: one operation after another, each by its prepared call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Literal, Program
from tracer.ir.types import storage_type
from tracer.trace.array import Array, concrete
from tracer.trace.source import user_source
from tracer.trace.state import state
from tracer.trace.trace import bind_all, check_alive, eager


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
        trace: Any = None
        active = 0
        for place, x in enumerate(operands):
            if x.__class__ is Array and x._trace is not None:
                if trace is None:
                    trace = x._trace
                    if not trace.is_open or trace.thread != state.thread:
                        check_alive(x)
                elif x._trace is not trace:
                    return bind_all(self.primitive, operands, self.params)
                active |= 1 << place
        if trace is not None and trace.is_device and state.staging is None:
            for x in operands:
                if x.__class__ is Array:
                    trace.device.checked(self.primitive.name, x, follows=False)
        if trace is None or trace.record_prepared is None or state.staging is not None:
            return bind_all(self.primitive, operands, self.params)
        outputs: Sequence[Array] = trace.record_prepared(trace, self, operands, active, user_source())
        return outputs


class PreparedProgram:
    """Program with a prepared call for every equation.

    Values have numbers: the inputs first, then the literals, then the equations' outputs in order. results: the
    numbers of the program's outputs.
    """

    __slots__ = ("_literals", "program", "results", "steps")

    def __init__(self, program: Program) -> None:
        self.program = program
        atoms = [*(atom for equation in program.equations for atom in equation.inputs), *program.outputs]
        self._literals = tuple(dict.fromkeys(atom for atom in atoms if isinstance(atom, Literal)))
        numbered: list[Atom] = [*program.inputs, *self._literals]
        numbers = {atom: n for n, atom in enumerate(numbered)}
        self.steps: list[tuple[Operation, list[int]]] = []
        for equation in program.equations:
            samples = [atom if isinstance(atom, Literal) else _sample(atom.type) for atom in equation.inputs]
            call = eager.prepare(equation.primitive, samples, equation.params)
            reads = [numbers[atom] for atom in equation.inputs]
            self.steps.append((Operation(equation.primitive, equation.params, call), reads))
            for variable in equation.outputs:
                numbers[variable] = len(numbers)
        self.results = [numbers[atom] for atom in program.outputs]

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs, literals and the outputs of all operations. Traces record operations on their arrays."""
        values = [*inputs, *self._literals]
        for x in inputs:
            if x._trace is not None:
                if state.staging is None and all(y._trace is None or y._trace.is_device for y in inputs):
                    return self._on_device(x._trace, inputs)
                for operation, reads in self.steps:
                    values += operation.on_traced([values[n] for n in reads])
                return values
        for operation, reads in self.steps:
            values += operation.call(*[values[n] for n in reads])
        return values

    def _on_device(self, trace: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return the values with those of the results alone, of the whole program run where the inputs lie."""
        values: list[Any] = [*inputs, *self._literals]
        count = len(values)
        values += [None] * sum(len(equation.outputs) for equation in self.program.equations)
        for number, output in zip(self.results, trace.device.run(self.program, inputs), strict=True):
            if number >= count:
                values[number] = output
        return values


def _sample(type: Any) -> Array:
    """Return an array of the type, whose elements must not be read."""
    storage = storage_type(type)
    return concrete(np.broadcast_to(np.zeros((), storage.dtype), storage.shape), getattr(type, "weak", False), type)
