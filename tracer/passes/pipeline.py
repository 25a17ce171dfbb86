"""The passes, in order: the table of contents of what happens to a program before it is scheduled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from tracer.ir.check import check_program
from tracer.ir.program import Program
from tracer.ir.visit import equations
from tracer.passes.base.rewrite import Pass
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

PIPELINE: Final[tuple[Pass | Repeat, ...]] = (
    Pass("inline", inline),
    _DCE,
    Pass("unroll", unroll),
    Repeat(
        (
            _FOLD,
            _SIMPLIFY,
            Pass("narrow", narrow),
            _CSE,
            _DCE,
        ),
        at_most=2,
    ),
    Pass("powers", powers, rounds=True),
    Pass("stacked_products", stacked_products, rounds=True),
    Pass("expand", expand),
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
)  # fmt: skip
CONTRACTION: Final = Pass("contract", contract, rounds=True)
"""The last one, where `config.fp_contract` asks for it."""


def optimize(program: Program, *, contracts: bool = False, verify: bool = False) -> Program:
    """Run all passes. contracts: whether products and sums become one operation, rounded once. verify: check the
    program after each pass that changed it; InternalError names the pass.

    Remembers its results: a program that differs in nothing, source lines included, is not optimised again.
    """
    if verify:
        return next(reversed([after for _, after in stages(program, contracts=contracts, verify=True)]), program)
    optimized = _optimized(_Key(program, _identity(program)), contracts)
    return program if optimized is None else optimized


def stages(program: Program, *, contracts: bool = False, verify: bool = False) -> Iterator[tuple[Pass, Program]]:
    """Every pass that changes the program, with the program after it, in order."""
    for step in (*PIPELINE, CONTRACTION) if contracts else PIPELINE:
        passes, rounds = (step.passes, step.at_most) if isinstance(step, Repeat) else ((step,), 1)
        done: set[Pass] = set()  # what would find nothing to do
        for _ in range(rounds):
            before = program
            for each in passes:
                if each in done:
                    continue
                after = each.run(program)
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


def _verify(step: Pass, program: Program) -> None:
    try:
        check_program(program)
    except Exception as error:
        error.add_note(f"after the pass {step.name}")
        raise


def explain_passes(program: Program) -> str:
    """The program as it was traced, and after each pass that changed it, as text."""
    parts = [f"# traced\n{program}"]
    parts += [f"# after {step.name}{' (rounds)' * step.rounds}\n{after}" for step, after in stages(program)]
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Key:
    """A program by everything that its optimised form depends on or shows."""

    program: Program = field(compare=False)
    identity: Any  # digest, names, lines and values that compare by identity


def _identity(program: Program) -> Any:
    lines = tuple([equation.source for equation in equations(program)])
    return (program.digest, program.name, lines)


@lru_cache(maxsize=256)
def _optimized(key: _Key, contracts: bool) -> Program | None:
    """The program after all passes; None where it stayed as it was."""
    after = [program for _, program in stages(key.program, contracts=contracts)]
    return after[-1] if after else None
