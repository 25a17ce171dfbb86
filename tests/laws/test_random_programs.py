"""Laws of whole random programs: reference, LLVM and interpreted loops agree, and gradients are differences.

Programs that once failed are kept as text in `tests/laws/regressions/`, with the seeds of their operands in the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.laws.comparing import check_close
from tests.laws.differences import actives, check_gradient, check_jvp
from tests.laws.machines import Native, Order, run_loops
from tests.laws.programs import Drawn, draw_program
from tests.laws.sampling import THOROUGH
from tests.laws.tolerances import COMPOSED, tolerance_of
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.primitive import Library
from tracer.ir.program import Equation, Literal, Program, Var
from tracer.ir.types import ArrayType
from tracer.ir.visit import equations
from tracer.passes.pipeline import optimize
from tracer.primitives.reference import reference_outputs, run_reference
from tracer.schedule.lower import schedule
from tracer.transforms.linearize import linearize_program
from tracer.transforms.transpose import transpose_program

SEEDS, LENGTHS = st.integers(0, 2**32 - 1), st.integers(5, 40)
PROGRAMS = 5000 if THOROUGH else 30  # of either kind


def drawn_programs(count: int) -> Any:
    return lambda test: settings(
        max_examples=count, database=None, deadline=None, print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )(given(seed=SEEDS, length=LENGTHS)(test))  # fmt: skip


@drawn_programs(PROGRAMS)
def test_a_random_program_computes_the_same_everywhere(seed: int, length: int) -> None:
    check_everywhere(draw_program(seed, length))


@drawn_programs(PROGRAMS)
def test_the_derivatives_of_a_random_program_are_differences(seed: int, length: int) -> None:
    drawn = draw_program(seed, min(length, 20), smooth=True)
    check_derivatives(drawn, np.random.default_rng(seed))


def check_everywhere(drawn: Drawn) -> None:
    """Every equation agrees with its reference on what LLVM computed before it; fused or not, the bits are equal."""
    program, values, everything = drawn
    check_program(program)
    optimized = optimize(program, verify=True)
    whole = Native(schedule(optimize(everything))).run(values)
    check_equations(everything, values, whole)
    scheduled = schedule(optimized)
    alone = Native(scheduled).run(values)
    position = {atom: n for n, atom in enumerate(everything.outputs)}
    for n, (atom, got) in enumerate(zip(program.outputs, alone, strict=True)):
        check_close(got, whole[position[atom]], None, f"output {n}, fused against not")
    if not sums_by_library(optimized):
        for order in (Order.FORWARD, Order.SHUFFLED):
            for n, (a, b) in enumerate(zip(run_loops(scheduled, values, order), alone, strict=True)):
                check_close(a, b, None, f"output {n}, interpreted {order.value} against LLVM")


def check_equations(everything: Program, values: Sequence[Array], results: Sequence[Array]) -> None:
    """Each equation's results against its reference on the operands that LLVM found."""
    known: dict[Any, Array] = dict(zip(everything.inputs, values, strict=True))
    known |= dict(zip(everything.outputs, results, strict=True))
    for equation in everything.equations:
        if not all(isinstance(a, Literal) or a in known for a in equation.inputs):
            results_here: Sequence[Any] = ()
        else:
            operands = [np.asarray(a.value) if isinstance(a, Literal) else known[a] for a in equation.inputs]
            results_here = reference_outputs(equation.primitive, operands, equation.params)
        for variable, expected in zip(equation.outputs, results_here, strict=False):
            if variable in known:
                check_equation(equation, variable, operands, known[variable], np.asarray(expected))
            else:  # keys and stacks, which no program returns
                known[variable] = expected


def check_equation(
    equation: Equation, variable: Var, operands: Sequence[Array], got: Array, expected: Array
) -> None:
    name, expected = equation.primitive.name, np.broadcast_to(expected, got.shape)
    nested = any(True for _ in equation.nested())
    is_complex = any(isinstance(a.type, ArrayType) and dtypes.is_complex(a.type.dtype) for a in equation.inputs)
    tolerance = tolerance_of(name, got.dtype, is_complex=is_complex)
    scale = None
    if nested and dtypes.is_inexact(got.dtype):
        return  # its own equations are compared where programs are not nested; here errors may have grown
    if nested:
        return
    if tolerance is not None and tolerance.of_terms:
        sizes = [np.abs(x).astype(x.dtype) if dtypes.is_inexact(x.dtype) else x for x in operands]
        found = reference_outputs(equation.primitive, sizes, equation.params)
        scale = np.asarray(found[equation.outputs.index(variable)])
    what = f"{name}({', '.join(str(a.type) for a in equation.inputs)}) -> {variable.type}"
    check_close(got, expected, tolerance, what, operands, scale)


def sums_by_library(program: Program) -> bool:
    """Whether BLAS multiplies floats: the interpreter has NumPy in its place, which sums in another order."""
    return any(
        isinstance(e.primitive.lower, Library) and dtypes.is_inexact(e.outputs[0].type.dtype)  # type: ignore[union-attr]
        for e in equations(program)
        if e.primitive.name == "dot_general"
    )


def check_derivatives(drawn: Drawn, rng: np.random.Generator) -> None:
    """Forward and reverse mode against differences; the gradient's program optimised and compiled, too."""
    program, values, _ = drawn
    active = actives(program)
    if not any(active):
        return
    check_jvp(program, values, rng, "jvp")
    check_gradient(program, values, rng, "gradient")
    split = linearize_program(program, active)
    check_program(split.forward)
    if not any(split.active_outputs):
        return
    linear = (False,) * split.residual_count + (True,) * sum(active)
    gradient = check_program(transpose_program(split.linear, linear).program)
    results = run_reference(split.forward, values)
    residuals = split.residuals(list(values), results)
    cotangents = [rng.standard_normal(t.shape).astype(t.dtype) for t in gradient.input_types[len(residuals) :]]  # type: ignore[union-attr]
    given = [*residuals, *cotangents]
    if any(not isinstance(t, ArrayType) for t in gradient.input_types):
        return  # stacks have no place at the border of a compiled program
    compiled = Native(schedule(optimize(gradient, verify=True))).run(given)
    for n, (a, b) in enumerate(zip(compiled, run_reference(gradient, given), strict=True)):
        scale = np.full_like(b, np.max(np.abs(b), initial=1.0))
        check_close(a, b, COMPOSED, f"gradient {n} by LLVM", (), scale)


# Programs that failed once

REGRESSIONS = Path(__file__).parent / "regressions"


def stored() -> Iterator[Path]:
    yield from sorted(REGRESSIONS.glob("*.txt"))


@pytest.mark.parametrize("path", list(stored()), ids=lambda path: path.stem)
def test_what_failed_once_does_not_fail_again(path: Path) -> None:
    from tests.laws.test_programs import ENUMS, RECORDS
    from tests.laws.values import anything
    from tracer.ir.read import read_program
    from tracer.primitives.catalogue import BY_NAME

    program = read_program(path.read_text(), BY_NAME, enums=ENUMS, records=RECORDS)
    arrays = [v for e in program.equations for v in e.outputs if isinstance(v.type, ArrayType)]
    everything = Program(program.inputs, program.equations, tuple(arrays))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        check_everywhere(Drawn(program, [anything(rng, t) for t in program.input_types], everything))

