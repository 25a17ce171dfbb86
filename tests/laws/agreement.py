"""What holds of any program: the array reference, interpreted loops and LLVM agree, and gradients are differences.

Errors grow from equation to equation, so a program is not compared with NumPy as a whole: every equation is, on the
operands that loops computed. As a whole it has the bits of its equations run one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from tests.laws.accepted import accepted
from tests.laws.comparing import check_close, size_of
from tests.laws.differences import actives, check_gradient, check_jvp
from tests.laws.leaves import BY_LIBRARY, run_by_leaves
from tests.laws.machines import WIDTHS, Native, Order, Width, run_loops
from tests.laws.tolerances import EPSILON, Tolerance, tolerance_of
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.dtypes import DType
from tracer.ir.program import Equation, Literal, Program, Var
from tracer.ir.types import ArrayType
from tracer.ir.visit import equations
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import reference_outputs, run_reference
from tracer.primitives.base.shapes import optimization_barrier_p
from tracer.schedule.pipeline import schedule
from tracer.transforms.linearize import linearize_program
from tracer.transforms.transpose import transpose_program


class Way(NamedTuple):
    """How a program is run: the bits of vectors that LLVM writes for, the order in which loops are interpreted, and
    whether results may take the memory of operands."""

    width: Width
    order: Order
    donated: bool

    def __str__(self) -> str:
        return f"vectors of {self.width} bits, {self.order.value}{', donated' * self.donated}"


def check_values(program: Program, values: Sequence[Array], turn: int = 0) -> None:
    """Equation by equation as NumPy has it; as a whole, by LLVM and interpreted, as equation by equation.

    turn: chooses the way; the passes are verified one by one where it is a multiple of four.
    """
    way = Way(WIDTHS[turn % len(WIDTHS)], tuple(Order)[turn % len(Order)], turn // 4 % 2 == 1)
    known = run_by_leaves(check_program(program), values)
    check_equations(program, known)
    if turn % 4 == 0:
        optimize(program, verify=True)
    problem = differs(program, values, known, way)
    if problem is not None:  # the order of a sum follows memory, so that another fusion may round it in another way
        pinned = held_apart(program)
        assert pinned is not program, problem
        again = differs(pinned, values, run_by_leaves(pinned, values), way)
        assert again is None, f"{again}\n  and where nothing is held apart:\n{problem}"
        assert differs(program, values, known, way, in_order=False) is None, problem


ORDERED = ("reduce_sum", "reduce_prod", "reduce_window_sum", "cumsum", "cumprod", "cumlogsumexp", "dot_general", "conv")


def reordered(program: Program, result: DType) -> Tolerance | None:
    """What may become of a result by sums in another order and constants folded by NumPy."""
    if not dtypes.is_inexact(result):
        return None
    rounded = [dtypes.real_dtype(dtype) for dtype in _sums(program) if dtypes.is_inexact(dtype)]
    coarsest = max((EPSILON[dtype] for dtype in rounded), default=0.0)
    units = max(2.0**12, 2.0**6 * coarsest / EPSILON[dtypes.real_dtype(result)])
    return Tolerance(units, "sums in another order, constants folded by NumPy, and what follows from them", units)


def _sums(program: Program) -> Iterator[DType]:
    """The dtypes of the results that depend on an order."""
    for equation in equations(program):
        if equation.primitive.name in ORDERED:
            yield from (v.type.dtype for v in equation.outputs if isinstance(v.type, ArrayType))


def differs(
    program: Program, values: Sequence[Array], known: Mapping[Var, Any], way: Way, *, in_order: bool = True
) -> str | None:
    """How the program as a whole, by LLVM and interpreted, is not what is known of its outputs; None where it is.

    in_order: whether the bits must be equal; else they are close. Interpreted, they always must be LLVM's.
    """
    optimized = optimize(program)
    scheduled = schedule(optimized, donated=range(len(program.inputs)) if way.donated else ())
    compiled = Native(scheduled, way.width).run(values)
    if not sums_by_library(optimized):
        for n, (a, b) in enumerate(zip(run_loops(scheduled, values, way.order), compiled, strict=True)):
            check_close(a, b, None, f"output {n}: interpreted, against LLVM; {way}")
    for atom, got in zip(program.outputs, compiled, strict=True):
        if not isinstance(atom, Var):
            continue
        allowed = None if in_order else reordered(program, got.dtype)
        try:
            what = f"{_definition(program, atom)}: LLVM, against one by one; {way}"
            check_close(got, np.asarray(known[atom]), allowed, what)
        except AssertionError as error:
            return str(error)
    return None


def held_apart(program: Program) -> Program:
    """The program with a barrier before every reduction that rounds, so that nothing is fused into it, and one behind
    every constant, so that none is folded into others."""
    written: list[Equation] = []
    for equation in program.equations:
        params = {name: _apart(value) for name, value in equation.params.items()}
        inputs, outputs = equation.inputs, equation.outputs
        if equation.primitive.name in ORDERED and all(isinstance(atom, Var) for atom in inputs):
            kept, twins = ([Var(atom.type) for atom in inputs] for _ in range(2))  # of one alone nothing is stored
            written.append(Equation(optimization_barrier_p, (*inputs, *inputs), {}, (*kept, *twins), equation.source))
            inputs = tuple(kept)
        constant = _is_constant(equation)
        if constant:
            outputs = tuple(Var(v.type) for v in outputs)
        changed = constant or inputs is not equation.inputs
        changed = changed or any(params[n] is not v for n, v in equation.params.items())
        written.append(replace(equation, inputs=inputs, params=params, outputs=outputs) if changed else equation)
        if constant:
            written.append(Equation(optimization_barrier_p, outputs, {}, equation.outputs, equation.source))
    same = len(written) == len(program.equations) and all(map(is_, written, program.equations))
    return program if same else replace(program, equations=tuple(written))


def _is_constant(equation: Equation) -> bool:
    """Whether the results are seen to be what they are before the program runs."""
    if equation.primitive.name == "integer_pow":
        return equation.params["y"] == 0
    return bool(equation.inputs) and all(isinstance(a, Literal) for a in equation.inputs) and not equation.effects


def _apart(value: Any) -> Any:
    """A parameter, the programs in it rewritten."""
    if isinstance(value, Program):
        return held_apart(value)
    if isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
        items = tuple(map(_apart, value))
        return value if all(map(is_, items, value)) else items
    return value


def check_equations(program: Program, known: Mapping[Var, Any]) -> None:
    """Each equation's results against its reference, on the operands that are known."""
    for equation in program.equations:
        if any(True for _ in equation.nested()):
            continue  # in nested programs errors grow
        operands = [np.asarray(a.value) if isinstance(a, Literal) else known[a] for a in equation.inputs]
        expected = reference_outputs(equation.primitive, operands, equation.params)
        for variable, value in zip(equation.outputs, expected, strict=True):
            if isinstance(variable.type, ArrayType):
                check_equation(equation, variable, operands, known[variable], np.asarray(value))


PRODUCTS = ("reduce_prod", "cumprod")


def _is_settled(equation: Equation, x: Array) -> Array:
    """Where no part of a product overflows or underflows, in whatever order: else zero times infinity may be met."""
    size = np.abs(x)
    ordinary = np.isfinite(x) & (size > 0)
    large, small = np.where(ordinary & (size > 1), size, 1), np.where(ordinary & (size < 1), size, 1)
    above, below = (
        reference_outputs(equation.primitive, [y.astype(x.dtype)], equation.params)[0] for y in (large, small)
    )
    return np.isfinite(above) & (np.abs(below) > 0)


def check_equation(
    equation: Equation, variable: Var, operands: Sequence[Array], got: Array, expected: Array
) -> None:  # fmt: skip
    """One result, within its primitive's tolerance."""
    expected = np.broadcast_to(expected, got.shape)
    is_complex = any(isinstance(a.type, ArrayType) and dtypes.is_complex(a.type.dtype) for a in equation.inputs)
    expected = accepted(equation.primitive.name, operands, got, expected)
    if equation.primitive.name in PRODUCTS and dtypes.is_inexact(got.dtype):
        expected = np.where(_is_settled(equation, operands[0]), expected, got)
    tolerance = tolerance_of(equation.primitive.name, got.dtype, is_complex=is_complex)
    scale = None
    if tolerance is not None and tolerance.of_terms:
        sizes = [size_of(x) for x in operands]
        results = reference_outputs(equation.primitive, sizes, equation.params)
        scale = np.asarray(results[equation.outputs.index(variable)])
        expected = np.where(np.isfinite(scale), expected, got)  # where partial sums overflow, their order decides
    check_close(got, expected, tolerance, f"{_shown(equation)}: loops, against NumPy", operands, scale)


def _definition(program: Program, variable: Any) -> str:
    return next((_shown(e) for e in program.equations if variable in e.outputs), f"input {variable}")


def _shown(equation: Equation) -> str:
    operands, results = (", ".join(str(a.type) for a in atoms) for atoms in (equation.inputs, equation.outputs))
    return f"{equation.primitive.name}({operands}) -> {results}"


def sums_by_library(program: Program) -> bool:
    """Whether a library sums floats: the interpreter has NumPy in its place, which sums in another order."""
    return any(
        dtypes.is_inexact(e.outputs[0].type.dtype)  # type: ignore[union-attr]
        for e in equations(program)
        if e.primitive.name in BY_LIBRARY
    )


def check_derivatives(program: Program, values: Sequence[Array], turn: int = 0) -> float:
    """Forward and reverse mode against differences; now and then the gradient's program optimised and compiled, too.

    Returns the share of the derivatives that could be compared: where the program is smooth. turn: a seed of the
    directions in which it is differentiated; the gradient is compiled where it is a multiple of four.
    """
    active, rng = actives(program), np.random.default_rng(turn)
    if not any(active):
        return 1.0
    shares = [check_gradient(program, values, rng, "gradient")]
    shares.append(check_jvp(program, values, rng, "jvp", alone=False))
    if turn % 4 == 0:
        check_compiled_gradient(program, values, rng)
    return min(shares)


GROWN = Tolerance(2.0**12, "roundings of forty equations and of their derivatives, which grow on the way")


def check_compiled_gradient(program: Program, values: Sequence[Array], rng: np.random.Generator) -> None:
    """The program of the gradient by LLVM is what it is by the reference."""
    active = actives(program)
    split = linearize_program(program, active)
    check_program(split.forward)
    if not any(split.active_outputs):
        return
    linear = (False,) * len(split.sources) + (True,) * sum(active)
    gradient = check_program(transpose_program(split.linear, linear).program)
    if any(not isinstance(t, ArrayType) for t in gradient.input_types):
        return  # stacks have no place at the border of a compiled program
    residuals = split.residuals(list(values), run_reference(split.forward, values))
    cotangents = [rng.standard_normal(t.shape).astype(t.dtype) for t in gradient.input_types[len(residuals) :]]
    given = [*residuals, *cotangents]
    compiled = Native(schedule(optimize(gradient, verify=True))).run(given)
    for n, (a, b) in enumerate(zip(compiled, run_reference(gradient, given), strict=True)):
        scale = np.full_like(b, np.max(np.abs(b), initial=1.0))
        check_close(a, b, GROWN, f"gradient {n} by LLVM", (), scale)
