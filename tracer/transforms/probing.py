"""Probes: a program rewritten so that a function sees the operands and results of each equation, in loops too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Structured
from tracer.ir.program import Equation, Program
from tracer.ir.types import array_type
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, sub
from tracer.trace.array import Array
from tracer.trace.evaluate import Environment, read
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, as_literal, bind_all

_INDEX = array_type(dtypes.I64, ())


class Around(NamedTuple):
    """Loop around an equation. iteration: i64 [], the index of the running iteration."""

    loop: Equation
    iteration: Operand


Loops = tuple[Around, ...]
Probe = Callable[[Equation, Sequence[Operand], Sequence[Operand], Loops], None]
"""Function of (equation, operands, results, the loops around it, the outermost first) that binds more equations."""
Observe = Callable[[Program], Probe]
"""Function from a program, or a nested one, to the probe of its equations."""


def probed(program: Program, observe: Observe, *, keep_rules: bool = False) -> Program:
    """Return the program with the equations that probes bind, after each equation without nested programs.

    Calls are inlined; operations that hold programs, such as linear solves, are written in simpler ones. keep_rules:
    whether functions with derivative rules of their own keep the rules, and the names of loops around them are lost.
    """

    def run(inputs: list[Array]) -> list[Operand]:
        return _Walk(observe, keep_rules).run(program, inputs, ())

    return stage(run, [v.type for v in program.inputs], name=program.name).program


class _Walk:
    """Evaluator of a program in the trace that is open, which calls the probes."""

    def __init__(self, observe: Observe, keep_rules: bool) -> None:
        self._observe = observe
        self._keep_rules = keep_rules

    def run(self, program: Program, values: Sequence[Operand], around: Loops) -> list[Operand]:
        """Return the program's outputs."""
        probe = self._observe(program)
        environment: Environment = dict(zip(program.inputs, values, strict=True))
        outer = state.source
        try:
            for equation in program.equations:
                state.source = equation.source
                xs = [read(environment, atom) for atom in equation.inputs]
                ys = self._nested(equation, xs, around)
                if ys is None:
                    ys = bind_all(equation.primitive, xs, equation.params)
                    probe(equation, xs, ys, around)
                environment.update(zip(equation.outputs, ys, strict=True))
        finally:
            state.source = outer
        return [read(environment, atom) for atom in program.outputs]

    def _nested(self, equation: Equation, xs: list[Operand], around: Loops) -> Sequence[Operand] | None:
        """Return the results of an equation with nested programs, probed; None for other equations."""
        params = equation.params
        match equation.primitive.lower:
            case Structured("custom_jvp" | "custom_vjp") if self._keep_rules:
                inner = probed(params["program"], self._observe, keep_rules=True)
                return bind_all(equation.primitive, xs, {**params, "program": inner})
            case Structured("call") if self._keep_rules and "rule" in params:  # a batching rule
                return None
            case Structured("call" | "custom_jvp" | "custom_vjp"):
                return self.run(params["program"], xs, around)
            case Structured("cond"):
                return self._cond(equation, xs, around)
            case Structured("scan"):
                return self._scan(equation, xs, around)
            case Structured("while"):
                return self._while(equation, xs, around)
            case Structured("for"):
                return self._for(equation, xs, around)
            case Composite(expand) if next(equation.nested(), None) is not None:
                written = stage(partial(_expanded, expand, params), [x.type for x in xs], name=equation.primitive.name)
                return self.run(written.program, [*written.constants, *xs], around)
        return None

    def _cond(self, equation: Equation, xs: list[Operand], around: Loops) -> Sequence[Operand]:
        branches: tuple[Program, ...] = equation.params["branches"]
        outside = _iterations(around)

        def branch(program: Program) -> Program:
            def run(inputs: list[Array]) -> list[Operand]:
                return self.run(program, inputs[len(outside) :], _seen(around, inputs))

            return _staged(run, [*outside, *xs[1:]], program)

        return cond_branches(xs[0], tuple(map(branch, branches)), *outside, *xs[1:])

    def _scan(self, equation: Equation, xs: list[Operand], around: Loops) -> Sequence[Operand]:
        """Add the iteration as a carry that is an index along the scanned axis. It counts down in reverse."""
        params = equation.params
        consts, carries, body = params["consts"], params["carries"], params["body"]
        outside, reverse = _iterations(around), params["reverse"]
        skip = len(outside)

        def run(inputs: list[Array]) -> list[Operand]:
            iteration = inputs[skip + consts]
            values = [*inputs[skip : skip + consts], *inputs[skip + consts + 1 :]]
            ys = self.run(body, values, (*_seen(around, inputs), Around(equation, iteration)))
            return [(sub if reverse else add)(iteration, as_literal(1, dtypes.I64)), *ys]

        first = as_literal(params["length"] - 1 if reverse else 0, dtypes.I64)
        slices = body.inputs[consts + carries :]
        staged = _staged(run, [*outside, *xs[:consts], first, *xs[consts : consts + carries], *slices], body)
        return scan_program(
            staged, [*outside, *xs[:consts]], [first, *xs[consts : consts + carries]], xs[consts + carries :],
            length=params["length"], reverse=reverse, unroll=params.get("unroll", 1),
        )[1:]  # fmt: skip

    def _while(self, equation: Equation, xs: list[Operand], around: Loops) -> Sequence[Operand]:
        params = equation.params
        first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
        outside = _iterations(around)
        skip = len(outside)

        def inside(program: Program, consts: int) -> Callable[[list[Array]], list[Operand]]:
            def run(inputs: list[Array]) -> list[Operand]:
                iteration = inputs[skip + consts]
                values = [*inputs[skip : skip + consts], *inputs[skip + consts + 1 :]]
                ys = self.run(program, values, (*_seen(around, inputs), Around(equation, iteration)))
                return ys if program is params["cond"] else [add(iteration, as_literal(1, dtypes.I64)), *ys]

            return run

        zero = as_literal(0, dtypes.I64)
        carry = [zero, *xs[second:]]
        cond = _staged(inside(params["cond"], first), [*outside, *xs[:first], *carry], params["cond"])
        body = _staged(inside(params["body"], second - first), [*outside, *xs[first:second], *carry], params["body"])
        return while_program(
            cond, body, [*outside, *xs[:first]], [*outside, *xs[first:second]], carry, memory=params.get("memory", 0)
        )[1:]

    def _for(self, equation: Equation, xs: list[Operand], around: Loops) -> Sequence[Operand]:
        params = equation.params
        body, consts = params["body"], params["consts"]
        outside = _iterations(around)

        def run(inputs: list[Array]) -> list[Operand]:
            step, rest = inputs[0], inputs[1 + len(outside) :]
            return self.run(body, [step, *rest], (*_seen(around, inputs[1:]), Around(equation, step)))

        staged = _staged(run, [xs[0], *outside, *xs[1:]], body)
        return for_program(
            staged, [xs[0], *outside, *xs[1:]], consts=consts + len(outside), reverse=params["reverse"]
        )  # fmt: skip


def _expanded(expand: Callable[..., Any], params: Mapping[str, Any], inputs: list[Array]) -> list[Operand]:
    results = expand(*inputs, **params)
    return list(results) if isinstance(results, tuple | list) else [results]


def _iterations(around: Loops) -> list[Operand]:
    return [loop.iteration for loop in around]


def _seen(around: Loops, inputs: Sequence[Operand]) -> Loops:
    """Return the loops around a nested program, with the iterations that are its first inputs."""
    return tuple(loop._replace(iteration=x) for loop, x in zip(around, inputs, strict=False))


def _staged(run: Callable[[list[Array]], list[Operand]], samples: Sequence[Any], program: Program) -> Program:
    """Return a nested program that takes operands of the samples' types. It closes over no arrays."""
    staged = stage(run, [x.type for x in samples], name=program.name)
    assert not staged.constants, "nested programs are closed"
    return staged.program
