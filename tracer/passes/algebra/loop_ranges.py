"""Ranges of integers in bodies of loops: of counters, of slices of stacked values, and of values from outside.

A scan knows the first and the last value of a carry to which its body adds a constant. So `x[i]` in a `fori_loop` with
bounds known while tracing needs no check, and counts no index from the end.
"""

from __future__ import annotations

from tracer.ir.program import Equation, Literal, Program, Var
from tracer.passes.algebra.identities import dtype_of, limits_of
from tracer.passes.algebra.ranges import Range, range_of
from tracer.passes.base.loops import Loop, loop_of
from tracer.passes.base.rewrite import Rewrite, rewrite_parameters
from tracer.passes.base.rewriter import Rewriter, Rule
from tracer.primitives.control.scan import scan_p
from tracer.primitives.elementwise.arithmetic import add_p

Known = tuple[Range | None, ...]
"""Range of each input of a program, or None."""


def rewriting_with_ranges(rule: Rule) -> Rewrite:
    """Return the pass that applies a rule everywhere, to nested programs first, with the ranges of loops' inputs."""

    def run(program: Program) -> Program:
        done: dict[tuple[int, Known], tuple[Program, Program]] = {}  # by id of the program, which the entry keeps alive

        def each(program: Program, known: Known) -> Program:
            found = done.get((id(program), known))
            if found is None:
                nested = _nested(program, known) if program.holds_programs else program
                found = done[id(program), known] = (program, _rewriter(rule, nested, known).run(nested))
            return found[1]

        def _nested(program: Program, known: Known) -> Program:
            at = _rewriter(rule, program, known)
            at.definitions = {variable: equation for equation in program.equations for variable in equation.outputs}
            equations = tuple([_inside(equation, at) for equation in program.equations])
            same = all(a is b for a, b in zip(equations, program.equations, strict=True))
            return program if same else Program(program.inputs, equations, program.outputs, program.name)

        def _inside(equation: Equation, at: Rewriter) -> Equation:
            loop = loop_of(equation)
            body = None if loop is None else loop.body
            known = () if loop is None else _of_body(loop, at)
            return rewrite_parameters(equation, lambda p: each(p, known if p is body else _unknown(p)))

        return each(program, _unknown(program))

    return run


def _rewriter(rule: Rule, program: Program, known: Known) -> Rewriter:
    at = Rewriter(rule)
    at.ranges = {v: found for v, found in zip(program.inputs, known, strict=True) if found is not None}
    return at


def _unknown(program: Program) -> Known:
    return (None,) * len(program.inputs)


def _of_body(loop: Loop, at: Rewriter) -> Known:
    """Return the ranges of a body's inputs. at: a rewriter with the definitions around the loop."""
    ranges: dict[Var, Range | None] = {}
    for variable, atom in zip((*loop.const_inputs, *loop.x_inputs), (*loop.consts, *loop.xs), strict=True):
        ranges[variable] = range_of(atom, at)
    for variable, first, after in zip(loop.carry_inputs, loop.carry, loop.next_carry, strict=True):
        found = range_of(first, at)
        if found is not None:
            ranges[variable] = found if after is variable else _counted(loop, found, variable, after)
    return tuple([_told(ranges.get(variable), variable) for variable in loop.body.inputs])


def _counted(loop: Loop, first: Range, variable: Var, after: object) -> Range | None:
    """Return the range of a carry to which a scan's body adds a constant, else None."""
    if loop.equation.primitive is not scan_p:
        return None
    made = next((e for e in loop.body.equations if after in e.outputs), None)
    if made is None or made.primitive is not add_p or variable not in made.inputs:
        return None
    step = made.inputs[made.inputs[0] is variable]
    if not isinstance(step, Literal):
        return None
    last = int(step.value) * max(loop.equation.params["length"] - 1, 0)
    return first[0] + min(last, 0), first[1] + max(last, 0)


def _told(found: Range | None, variable: Var) -> Range | None:
    """Return the range if it tells more than the dtype does; None where it may wrap."""
    if found is None:
        return None
    dtype = dtype_of(variable)
    assert dtype is not None
    lowest, highest = map(int, limits_of(dtype))
    inside = lowest <= found[0] and found[1] <= highest
    return found if inside and found != (lowest, highest) else None
