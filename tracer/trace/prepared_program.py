"""Execution of a program outside `jit`: one operation after another, each by its prepared call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Literal, Program
from tracer.ir.types import storage_type
from tracer.trace.array import Array, concrete
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all, eager


class Operation:
    """One operation, prepared for operand types. recipes: the records of define-by-run traces, by active operands.

    call, one, raw: of the prepared call, see `tracer.runtime.eager.execute.Prepared`. split: makes the programs of the
    derivative from the flags of active operands, where these programs serve all calls.
    """

    __slots__ = ("call", "one", "params", "primitive", "raw", "recipes", "split")

    def __init__(self, primitive: Primitive, params: Mapping[str, Any], prepared: Any) -> None:
        self.primitive = primitive
        self.params = params
        self.call: Callable[..., Sequence[Array]]
        self.one: Callable[..., Array] | None
        self.raw: Callable[..., Any] | None
        self.call, self.one, self.raw = prepared
        self.recipes: dict[int, Any] = {}
        self.split: Callable[[tuple[bool, ...]], SplitOperation | None] | None = None

    def on_traced(self, operands: Sequence[Any]) -> Sequence[Array]:
        """Return the outputs for operands of which some belong to traces; define-by-run traces have a short way."""
        trace: Any
        innermost: Any = state.innermost
        if len(operands) == 1 and operands[0].__class__ is Array:
            x: Any = operands[0]
            trace = x._trace
            if trace is None or trace is not innermost or trace.record_prepared is None:
                return self._bound(trace, operands)
            return trace.record_prepared(trace, self, operands, 1, [x._atom], [x._value])  # type: ignore[no-any-return]
        inputs: list[Any] = []
        values: list[Any] = []  # the operands, with values of the enclosing level in place of the trace's arrays
        trace = None
        active, bit = 0, 1
        for x in operands:
            if x.__class__ is Array:
                own = x._trace
                if own is not None:
                    if own is not trace:
                        if trace is not None:
                            return bind_all(self.primitive, operands, self.params)
                        trace = own
                    active |= bit
                    inputs.append(x._atom)
                    x = x._value
            values.append(x)
            bit += bit
        if trace is None or trace is not innermost or trace.record_prepared is None:
            return self._bound(trace, operands)
        outputs: Sequence[Array] = trace.record_prepared(trace, self, operands, active, inputs, values)
        return outputs

    def _bound(self, trace: Any, operands: Sequence[Any]) -> Sequence[Array]:
        """Return the outputs by way of `bind_all`, after a check of the places of operands on a device."""
        if trace is not None and trace.is_device and state.staging is None:
            for x in operands:
                if x.__class__ is Array:
                    trace.device.checked(self.primitive.name, x)
        return bind_all(self.primitive, operands, self.params)


class SplitOperation(NamedTuple):
    """Derivative of an operation as programs. forward: operands -> (outputs..., residuals...).

    linear: (residuals..., active tangents...) -> nonzero tangents. reached: the flags of these among the outputs.
    """

    forward: PreparedProgram
    linear: Program
    reached: Sequence[bool]


class PreparedProgram:
    """Program with a prepared call for every equation.

    Values have numbers: the inputs first, then the literals, then the equations' outputs in order. results: the
    numbers of the program's outputs. is_raw: whether all operations run on NumPy values.
    """

    __slots__ = (
        "_given",
        "_literals",
        "_numbers",
        "_only",
        "_outputs",
        "_raw",
        "is_raw",
        "program",
        "results",
        "steps",
    )

    def __init__(self, program: Program) -> None:
        self.program = program
        atoms = [*(atom for equation in program.equations for atom in equation.inputs), *program.outputs]
        self._literals = tuple(dict.fromkeys(atom for atom in atoms if isinstance(atom, Literal)))
        self._numbers = [literal_value(x) for x in self._literals]
        numbered: list[Atom] = [*program.inputs, *self._literals]
        self._given = len(numbered)
        numbers = {atom: n for n, atom in enumerate(numbered)}
        self.steps: list[tuple[Operation, list[int]]] = []
        for equation in program.equations:
            samples = [atom if isinstance(atom, Literal) else _sample(atom.type) for atom in equation.inputs]
            made = eager.prepare(equation.primitive, samples, equation.params)
            reads = [numbers[atom] for atom in equation.inputs]
            self.steps.append((Operation(equation.primitive, equation.params, made), reads))
            for variable in equation.outputs:
                numbers[variable] = len(numbers)
        self.results = [numbers[atom] for atom in program.outputs]
        types = [atom.type for atom in program.outputs]
        self._outputs = [(n, t, getattr(t, "weak", False)) for n, t in zip(self.results, types, strict=True)]
        is_one = len(self._outputs) == 1 and self.results[0] >= self._given
        self._only = self._outputs[0] if is_one else None
        self.is_raw = all(operation.raw is not None for operation, _ in self.steps)
        self._raw = [_raw_step(operation, reads) for operation, reads in self.steps]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the program's outputs; inputs and literals among them as they are."""
        values: list[Any] = []
        for x in inputs:
            if x._trace is not None:
                break
            values.append(x._value)
        if not self.is_raw or len(values) < len(inputs):
            found = self.values(inputs)
            return [found[n] for n in self.results]
        eager.quietly(self.extend, values)
        if self._only is not None:
            n, type, weak = self._only
            return [concrete(values[n], weak, type)]
        outputs: list[Any] = []
        for n, type, weak in self._outputs:
            if n >= self._given:
                outputs.append(concrete(values[n], weak, type))
            else:
                outputs.append(inputs[n] if n < len(inputs) else self._literals[n - len(inputs)])
        return outputs

    def extend(self, values: list[Any]) -> None:
        """Append the literals and the outputs of all operations to the NumPy values of the inputs.

        NumPy must not warn: see `EagerSlot.quietly`. Requires `is_raw`.
        """
        values += self._numbers
        for call, only, operands, several in self._raw:
            result = call(values[only]) if operands is None else call(*operands(values))
            if several:
                values += result
            else:
                values.append(result)

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
        """Run the whole program where the inputs lie, and return the values, None between inputs and results."""
        values: list[Any] = [*inputs, *self._literals]
        count = len(values)
        values += [None] * sum(len(equation.outputs) for equation in self.program.equations)
        for number, output in zip(self.results, trace.device.run(self.program, inputs), strict=True):
            if number >= count:
                values[number] = output
        return values


_Step = tuple[Any, int, Any, bool]


def _raw_step(operation: Operation, reads: Sequence[int]) -> _Step:
    """Return an operation on NumPy values: call, only operand or getter of all, whether it is multiple."""
    several = operation.primitive.multiple
    if len(reads) == 1:
        return operation.raw, reads[0], None, several
    return operation.raw, 0, itemgetter(*reads) if reads else _nothing, several


def _nothing(_: Any) -> tuple[()]:
    return ()


def literal_value(x: Literal) -> Any:
    """Return a literal as NumPy's references take it."""
    return x.value if isinstance(x.value, np.generic) else np.asarray(x.value, x.type.dtype)


def array_of_literal(x: Operand) -> Array:
    """Return a literal as an operand of a prepared call."""
    assert isinstance(x, Literal)
    return concrete(np.asarray(x.value, x.type.dtype), x.type.weak)


def _sample(type: Any) -> Array:
    """Return an array of the type, whose elements must not be read."""
    storage = storage_type(type)
    return concrete(np.broadcast_to(np.zeros((), storage.dtype), storage.shape), getattr(type, "weak", False), type)
