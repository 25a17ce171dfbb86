"""Programs that run outside `jit`, with the bits that their equations have when they run one after another.

Small ones are compiled whole where that keeps every bit (see `exact`), and else replayed. In large ones what has one
result is compiled in pieces, each of all that can run at once, so that it is fused; what adds up floats, and the
products that go to BLAS, run between them by the references. An equation comes as late as its readers let it, in the
piece that reads it, so that what passes from piece to piece is little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tracer.ir.primitive import Eager
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, StackType, size
from tracer.lazy import LazyModule
from tracer.primitives.control.calls import call_p
from tracer.primitives.elementwise.powers import pow_p
from tracer.runtime.eager.call_cache import prepared_calls, simplified, step_of
from tracer.runtime.eager.execute import prepare
from tracer.runtime.values.fresh_handles import another
from tracer.trace import trees
from tracer.trace.array import Array, concrete

if TYPE_CHECKING:
    from tracer.runtime import compiled_plans, exact
    from tracer.runtime.compile import compile as compiling
else:
    compiling = LazyModule("tracer.runtime.compile.compile")
    compiled_plans = LazyModule("tracer.runtime.compiled_plans")
    exact = LazyModule("tracer.runtime.exact")

Run = Callable[..., Sequence[Array]]

MOST_SMALL: Final = 1 << 14  # elements of all values together: fewer are not worth compiling in pieces


def prepare_program(program: Program, samples: Sequence[Array]) -> Run:
    """The program as a function of its operands, which are of the samples' types."""
    plain = simplified(program)
    if not all(map(_is_plain, plain.equations)):
        return prepare(call_p, samples, {"program": program, "inline": True})
    if sum(size(v.type) for e in plain.equations for v in e.outputs if isinstance(v.type, ArrayType)) > MOST_SMALL:
        return _InPieces(plain)
    replayed = _replayed(plain)
    structure = trees.flatten((0,) * len(plain.outputs))[1]

    def run(xs: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(replayed(*xs))

    has_results = len({a for a in plain.outputs if isinstance(a, Var)}) == len(plain.outputs) > 0
    staged = compiled_plans.Staged(plain, (), structure)
    found = compiled_plans.compiled_plan(staged, run, list(samples), None) if has_results else None
    return replayed if found is None else lambda *xs: found.run(xs)


def _is_plain(equation: Equation) -> bool:
    """Whether the equation runs by itself, outside every trace, as often as one likes, on whatever numbers.

    Stacks are never arrays, and what may fault would do so on numbers that a compiled plan is tried on.
    """
    if any(isinstance(x.type, StackType) for x in (*equation.inputs, *equation.outputs)):
        return False
    nested = equation.primitive.eager is not Eager.COMPILED and any(True for _ in equation.nested())
    return not nested and not equation.effects


def _replayed(program: Program) -> Run:
    """Its equations one after another."""
    return _InPieces(program, whole=False)


class _Step(NamedTuple):
    """run: from the values of `reads` to those of `makes`. over: what nobody reads any more."""

    run: Run
    reads: Sequence[Var]
    makes: Sequence[Var]
    over: Sequence[Var]


class _InPieces:
    """A program, piece by piece. whole: whether pieces are compiled, or their equations run by themselves, too."""

    def __init__(self, program: Program, *, whole: bool = True) -> None:
        self.program = program
        groups = _groups(program) if whole else [[e] for e in program.equations]
        read_later: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
        steps: list[_Step] = []
        for group in reversed(groups):
            reads, makes = _interface(group, read_later)
            steps.append(_Step(_run_of(group, reads, makes), reads, makes, [v for v in reads if v not in read_later]))
            read_later.update(reads)
        self.steps = steps[::-1]

    def __call__(self, *operands: Array) -> list[Array]:
        known: dict[Var, Array] = dict(zip(self.program.inputs, operands, strict=True))
        for step in self.steps:
            made = step.run(*[known[v] for v in step.reads])
            known.update(zip(step.makes, made, strict=True))
            for variable in step.over:
                del known[variable]
        given = set(self.program.inputs)
        results, seen = [], set[Atom]()
        for atom in self.program.outputs:
            x = _number(atom) if isinstance(atom, Literal) else known[atom]
            results.append(another(x) if atom in given or atom in seen else x)
            seen.add(atom)
        return results


def _number(literal: Literal) -> Array:
    return concrete(np.asarray(literal.value, literal.type.dtype), literal.type.weak)


def _call(compiled: compiling.Compiled, *operands: Array) -> list[Array]:
    return compiled.call(operands)


def _groups(program: Program) -> list[list[Equation]]:
    """The equations in the order in which they run; those of one piece together."""
    last = {v: n for n, e in enumerate(program.equations) for v in e.outputs}
    alone = [not _has_one_result(e) for e in program.equations]
    first = [0] * len(program.equations)  # the first piece that could have it
    for n, equation in enumerate(program.equations):
        before = [last[a] for a in equation.inputs if isinstance(a, Var) and a in last]
        first[n] = max((first[m] + alone[m] for m in before), default=0)
    return _latest(program, alone, first)


def _has_one_result(equation: Equation) -> bool:
    """Whether compiled code computes the equation to the reference's bits, whatever stands around it, untried.

    Powers by known exponents become products, see `passes.powers`.
    """
    tried = exact.is_small_product(equation) or equation.primitive is pow_p
    return exact.is_exact(equation) and not tried


def _latest(program: Program, alone: Sequence[bool], first: Sequence[int]) -> list[list[Equation]]:
    """The groups: of each stage what is compiled together, then what stands alone."""
    stages = max(first, default=0) + 1
    place: dict[Var, int] = {}  # of the first reader
    together: list[list[Equation]] = [[] for _ in range(stages)]
    single: list[list[Equation]] = [[] for _ in range(stages)]
    for n in range(len(program.equations) - 1, -1, -1):
        equation = program.equations[n]
        at = min((place[v] for v in equation.outputs if v in place), default=first[n])
        if alone[n]:
            at = first[n]
            single[at].append(equation)
        else:
            together[at].append(equation)
        for atom in equation.inputs:
            if isinstance(atom, Var):
                place[atom] = min(place.get(atom, at), at)
    groups: list[list[Equation]] = []
    for piece, others in zip(together, single, strict=True):
        groups += [piece[::-1]] if piece else []
        groups += [[equation] for equation in reversed(others)]
    return groups


def _interface(group: Iterable[Equation], read_later: set[Var]) -> tuple[list[Var], list[Var]]:
    """What a group reads from outside, and what others read of it."""
    made = {v: None for e in group for v in e.outputs}
    reads = dict.fromkeys(a for e in group for a in e.inputs if isinstance(a, Var) and a not in made)
    return list(reads), [v for v in made if v in read_later]


def _run_of(group: Sequence[Equation], reads: Sequence[Var], makes: Sequence[Var]) -> Run:
    program = Program(tuple(reads), tuple(group), tuple(makes), "piece")
    if len(group) > 1:
        return partial(_call, compiling.compile_program(program))
    ((call, places),), results = prepared_calls(program)
    step = step_of(call, places)
    chosen = [n - len(reads) for n in results]

    def run(*xs: Array) -> list[Array]:
        made = step(list(xs))
        return [made[n] for n in chosen]

    return run
