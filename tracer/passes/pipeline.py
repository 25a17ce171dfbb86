"""The program passes in order: the table of contents of everything between tracing and the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from tracer.ir.check import check_program
from tracer.ir.program import Program
from tracer.ir.target import CPU, Target
from tracer.ir.visit import equations
from tracer.passes.base.rewrite import Pass
from tracer.passes.blocked_variance import block_variances
from tracer.passes.cache_blocking import block_chains
from tracer.passes.cse import cse
from tracer.passes.dce import dce
from tracer.passes.expand import expand
from tracer.passes.fma_contraction import contract
from tracer.passes.fold import fold
from tracer.passes.hoist import hoist
from tracer.passes.inline import inline
from tracer.passes.narrow import narrow
from tracer.passes.powers import powers
from tracer.passes.simplify import simplify
from tracer.passes.stacked_products import stacked_products
from tracer.passes.unroll import unroll


@dataclass(frozen=True, slots=True)
class Repeat:
    """Passes run in turn until none changes the program, or `at_most` times."""

    passes: tuple[Pass, ...]
    at_most: int


_FOLD: Final = Pass("fold", fold, looks_back=True)
_SIMPLIFY: Final = Pass("simplify", simplify, looks_back=True)
_CSE: Final = Pass("cse", cse, looks_back=True)
_DCE: Final = Pass("dce", dce, deletes=True)
CONTRACTION: Final = Pass("contract", contract, rounds=True)
"""Left out unless `config.fp_contract` asks for it."""

PIPELINE: Final[tuple[Pass | Repeat, ...]] = (
    Pass("inline", inline),
    _DCE,
    Pass("unroll", unroll),
    _FOLD,
    _SIMPLIFY,
    Pass("narrow", narrow),
    _CSE,
    _DCE,
    Pass("powers", powers, rounds=True),
    Pass("stacked_products", stacked_products, rounds=True),
    Pass("expand", expand, targeted=True),
    Repeat(
        (
            _FOLD,
            _SIMPLIFY,
            Pass("narrow", narrow),
            Pass("hoist", hoist),
            _CSE,
            _DCE,
        ),
        at_most=3,
    ),
    CONTRACTION,
    Pass("block_variances", block_variances, targeted=True, rounds=True),
    Pass("block_chains", block_chains, targeted=True, rounds=True),
)  # fmt: skip


def optimize(program: Program, target: Target = CPU, *, contracts: bool = False, verify: bool = False) -> Program:
    """Return the program after all passes, for one kind of machine.

    contracts: whether a product and a sum become one operation, rounded once. verify: check the program after each
    pass that changed it. Raises InternalError that names the pass.

    Memoised by target and by everything that the program shows, source lines included.
    """
    if verify:
        changes = [after for _, after in stages(program, target, contracts=contracts, verify=True)]
        return changes[-1] if changes else program
    optimized = _optimized(_Key(program, _identity(program)), target, contracts)
    return program if optimized is None else optimized


def stages(
    program: Program,
    target: Target = CPU,
    passes: Sequence[Pass | Repeat] = PIPELINE,
    *,
    contracts: bool = False,
    verify: bool = False,
) -> Iterator[tuple[Pass, Program]]:
    """Yield every pass that changes the program, with the program after it, in order."""
    for step in passes:
        if step is CONTRACTION and not contracts:
            continue
        group, repeats = (step.passes, step.at_most) if isinstance(step, Repeat) else ((step,), 1)
        done: set[Pass] = set()  # passes that would change nothing
        for _ in range(repeats):
            before = program
            for each in group:
                if each in done:
                    continue
                after = each.run(program, target)
                done.add(each)
                if after is program:
                    continue
                if verify:
                    _verify(each, after)
                program = after
                done = {p for p in done if p is each or (each.deletes and p.looks_back and not after.holds_programs)}
                yield each, program
            if program is before:
                break


def names() -> tuple[str, ...]:
    """Return the name of each pass of the pipeline, once."""
    steps = [each for step in PIPELINE for each in (step.passes if isinstance(step, Repeat) else (step,))]
    return tuple(dict.fromkeys(each.name for each in steps))


def _verify(step: Pass, program: Program) -> None:
    try:
        check_program(program)
    except Exception as error:
        error.add_note(f"after the pass {step.name}")
        raise


@dataclass(frozen=True, slots=True)
class _Key:
    """The key of a program: everything that its optimised form depends on or shows."""

    program: Program = field(compare=False)
    identity: Any  # digest, name and source lines


def _identity(program: Program) -> Any:
    lines = tuple([equation.source for equation in equations(program)])
    return (program.digest, program.name, lines)


@lru_cache(maxsize=256)
def _optimized(key: _Key, target: Target, contracts: bool) -> Program | None:
    """Return the program after all passes, or None where none changed it."""
    after = [program for _, program in stages(key.program, target, contracts=contracts)]
    return after[-1] if after else None
