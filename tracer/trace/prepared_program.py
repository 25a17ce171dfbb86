"""Execution of a program outside `jit`: one operation after another, each by its prepared call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir.program import Literal, Program
from tracer.ir.types import storage_type
from tracer.trace.array import Array, concrete
from tracer.trace.source import user_source
from tracer.trace.state import state
from tracer.trace.trace import Trace, bind_all, check_alive, eager

Read = int | Literal


class PreparedProgram:
    """Program with a prepared call for every equation.

    Values have numbers: the inputs first, then the equations' outputs in order. results: the program's outputs, each
    the number of a value, or a literal.
    """

    __slots__ = ("program", "results", "steps")

    def __init__(self, program: Program) -> None:
        self.program = program
        numbers = {variable: n for n, variable in enumerate(program.inputs)}
        self.steps: list[tuple[Callable[..., Sequence[Array]], list[Read]]] = []
        for equation in program.equations:
            atoms = equation.inputs
            samples = [atom if isinstance(atom, Literal) else _sample(atom.type) for atom in atoms]
            reads = [atom if isinstance(atom, Literal) else numbers[atom] for atom in atoms]
            self.steps.append((eager.prepare(equation.primitive, samples, equation.params), reads))
            for variable in equation.outputs:
                numbers[variable] = len(numbers)
        self.results: list[Read] = [a if isinstance(a, Literal) else numbers[a] for a in program.outputs]

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs and the outputs of all operations. Traces record the operations on their arrays."""
        values = list(inputs)
        for x in inputs:
            if x._trace is not None:
                return self._bound(values, {x._trace for x in inputs if x._trace is not None})
        for call, reads in self.steps:
            values += call(*[values[n] if n.__class__ is int else n for n in reads])
        return values

    def _bound(self, values: list[Any], traces: set[Trace]) -> list[Any]:
        """Send each operation to its trace. One trace alone is not looked for again at every operation."""
        steps = zip(self.program.equations, self.steps, strict=True)
        if len(traces) > 1 or state.staging is not None:
            for equation, (_, reads) in steps:
                operands = [n if isinstance(n, Literal) else values[n] for n in reads]
                values += bind_all(equation.primitive, operands, equation.params)
            return values
        (trace,) = traces
        check_alive(next(x for x in values if x._trace is trace))
        source = user_source()
        for equation, (call, reads) in steps:
            operands = [values[n] if n.__class__ is int else n for n in reads]
            for x in operands:
                if x.__class__ is Array and x._trace is trace:
                    values += trace.process(trace, equation.primitive, operands, equation.params, source)
                    break
            else:
                values += call(*operands)
        return values


def _sample(type: Any) -> Array:
    """Return an array of the type, whose elements must not be read."""
    storage = storage_type(type)
    return concrete(np.broadcast_to(np.zeros((), storage.dtype), storage.shape), getattr(type, "weak", False), type)
