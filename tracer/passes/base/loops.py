"""Loops of every kind by the roles of their operands; programs restricted to some inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.primitive import Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.primitives.control.for_loop import for_p
from tracer.primitives.control.scan import scan_p
from tracer.primitives.control.while_loop import while_p

Atoms = tuple[Atom, ...]
Flags = Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """While_loop, scan or for_loop in parts.

    body: (step, consts, carry, slices of xs) -> (carry, slices of ys); only a for_loop has a count, and a step.
    cond: (cond_consts, carry) -> bool; only a while_loop has one. finals and ys are the equation's outputs.
    """

    equation: Equation
    cond: Program | None
    body: Program
    count: Atoms
    cond_consts: Atoms
    consts: Atoms
    carry: Atoms
    xs: Atoms
    finals: tuple[Var, ...]
    ys: tuple[Var, ...]

    @property
    def const_inputs(self) -> tuple[Var, ...]:
        """Inputs of the body that never change."""
        return self.body.inputs[len(self.count) :][: len(self.consts)]

    @property
    def carry_inputs(self) -> tuple[Var, ...]:
        """Inputs of the body for the carries."""
        return self.body.inputs[len(self.count) + len(self.consts) :][: len(self.carry)]

    @property
    def x_inputs(self) -> tuple[Var, ...]:
        """Inputs of the body for slices of xs."""
        return self.body.inputs[len(self.count) + len(self.consts) + len(self.carry) :]

    @property
    def next_carry(self) -> Atoms:
        """Outputs of the body for the carries."""
        return self.body.outputs[: len(self.carry)]

    @property
    def y_outputs(self) -> Atoms:
        """Outputs of the body for slices of ys."""
        return self.body.outputs[len(self.carry) :]

    def joined(self) -> Equation:
        """Return the parts as an equation."""
        old, params = self.equation, dict(self.equation.params)
        params["body"] = self.body
        if self.cond is not None:
            params["cond"] = self.cond
            params["cond_consts"], params["body_consts"] = len(self.cond_consts), len(self.consts)
        else:
            params["consts"] = len(self.consts)
            if "carries" in params:
                params["carries"] = len(self.carry)
        inputs = (*self.count, *self.cond_consts, *self.consts, *self.carry, *self.xs)
        return Equation(old.primitive, inputs, params, (*self.finals, *self.ys), old.source)


def loop_of(equation: Equation) -> Loop | None:
    """Return the equation as a loop, or None if it is not one."""
    params, inputs, outputs = equation.params, equation.inputs, equation.outputs
    if equation.primitive is while_p:
        first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
        groups = (), inputs[:first], inputs[first:second], inputs[second:], ()
        return Loop(equation, params["cond"], params["body"], *groups, outputs, ())
    if equation.primitive is scan_p:
        first, second = params["consts"], params["consts"] + params["carries"]
        parts = (), (), inputs[:first], inputs[first:second], inputs[second:]
        return Loop(equation, None, params["body"], *parts, outputs[: second - first], outputs[second - first :])
    if equation.primitive is for_p:
        first = 1 + params["consts"]
        return Loop(equation, None, params["body"], inputs[:1], (), inputs[1:first], inputs[first:], (), outputs, ())
    return None


def called_program(equation: Equation) -> Program | None:
    """Return the program that a call runs on the equation's operands, or None if it is not a call."""
    match equation.primitive.lower:
        case Structured("call" | "custom_jvp" | "custom_vjp"):
            program: Program = equation.params["program"]
            return program
        case _:
            return None


def restrict(program: Program, inputs: Flags, outputs: Flags) -> Program:
    """Return the program with the flagged inputs and outputs alone; the same object if all are flagged."""
    if all(inputs) and all(outputs):
        return program
    return Program(pick(program.inputs, inputs), program.equations, pick(program.outputs, outputs), program.name)


def pick(values: Sequence[Any], flags: Flags) -> tuple[Any, ...]:
    """Return the flagged values."""
    return tuple(value for value, on in zip(values, flags, strict=True) if on)


def read_variables(program: Program) -> set[Var]:
    """Return the variables that equations or the outputs read."""
    read = {atom for equation in program.equations for atom in equation.inputs if isinstance(atom, Var)}
    read.update(atom for atom in program.outputs if isinstance(atom, Var))
    return read
