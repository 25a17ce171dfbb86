"""Ten programs at every stage: as traced, optimised, as loop nests, and after each loop pass that changes them.

tests/golden/programs has a page for each program. A page shows of each stage only the functions that it changed.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import tracer
from tests.golden_programs import PROGRAMS
from tracer.ir.loop import Module
from tracer.ir.loop.check import check_module
from tracer.ir.loop.text import function_text
from tracer.ir.target import CPU
from tracer.ir.text import program_text
from tracer.passes import pipeline
from tracer.schedule.pipeline import LOOP_PIPELINE, loop_stages, loops

DONE: Final = {
    "inline": "calls are replaced by what they call",
    "dce": "equations without a use are deleted",
    "unroll": "short loops are written out",
    "fold": "constants are computed",
    "simplify": "algebraic rules are applied, which leave the bits of results alone",
    "narrow": "integers are computed in fewer bits where their ranges allow it",
    "cse": "equal equations become one",
    "powers": "powers of one value share their products",
    "stacked_products": "products with one operand in common become one product",
    "expand": "composite equations are written as simpler ones",
    "hoist": "equations that do not change from iteration to iteration leave their loop",
    "block_variances": "sums of squares about a mean are cut into blocks that stay in the cache",
    "block_chains": "chained matrix products are cut into blocks that stay in the cache",
    "fuse_rows": "nests over the same rows become one nest, which does all its work on a row before the next",
    "fold_storage": "an array that is used row by row becomes one row on the stack",
    "reuse_buffers": "an array takes the memory of another, or of a result, that it replaces element by element",
    "allocate_arena": "arrays that do not live at the same time share the arena",
    "split_reductions": "long reductions are cut into blocks, whose partial results are reduced in turn",
    "vectorise": "one loop of each nest computes as many iterations at once as a vector has lanes",
    "store_nontemporal": "large results bypass the caches",
    "key_minmax": "maxima and minima of floats compare integers that are ordered like the floats",
    "expand_math": "mathematical functions become polynomials and tables",
    "parallelise": "threads share long nests in parts of `by` iterations, and vector loops lose their remainders",
    "choose_kernels": "every matrix product gets its kernel",
    "outline_reductions": "large reductions become calls of functions that other programs share",
    "multiply_roots": "square roots become products where the divider would be the bottleneck",
    "unroll_and_inline": "short loops and the only calls of short functions are marked, to be written in place",
}
"""What each pass does, as its section says first."""

WIDTH = 116


def page(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the sections of a program's page, in order."""
    name = function.__name__
    yield f"# {name}: the Python\n{inspect.getsource(function).rstrip()}"
    program = tracer.jit(function).lower(*PROGRAMS[function]).program()
    yield f"# traced: one equation for every operation that ran\n{_folded(program_text(program, sources=False))}"
    changes = list(pipeline.stages(program, CPU, verify=True))
    optimized = changes[-1][1] if changes else program
    yield "\n".join(
        [
            "# optimized: the program after the passes that changed it",
            *dict.fromkeys(f"# {step.name}: {DONE[step.name]}" for step, _ in changes),
            _folded(program_text(optimized, sources=False)),
        ]
    )
    nests = loops(optimized, CPU).module
    before, idle = _functions(nests), []
    yield f"# loops: a function for each loop nest, and their calls in order\n{_paragraphs(nests, before)}"
    for loop_pass, module in loop_stages(nests, CPU):
        check_module(module)
        after = _functions(module)
        if after == before:
            idle.append(loop_pass.name)
        else:
            changed = {name: text for name, text in after.items() if before.get(name) != text}
            yield f"# {loop_pass.name}: {DONE[loop_pass.name]}\n{_paragraphs(module, changed)}"
        before = after
    yield f"# unchanged by {', '.join(idle)}"


def _functions(module: Module) -> dict[str, str]:
    """Return the text of each function by its name, the entry's with the size of the arena."""
    texts = {f.name: _folded(function_text(f)) for f in module.functions}
    if module.arena:
        texts[module.entry] = f"arena {module.arena} bytes\n\n{texts[module.entry]}"
    return texts


def _paragraphs(module: Module, texts: dict[str, str]) -> str:
    """Return the functions with a blank line between two, the entry last."""
    return "\n\n".join(text for _, text in sorted(texts.items(), key=lambda item: item[0] == module.entry))


def _folded(text: str) -> str:
    """Return the text with lines of at most `WIDTH` columns, broken at spaces."""
    lines = []
    for line in text.splitlines():
        margin = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(
            line.strip(), WIDTH, initial_indent=margin, subsequent_indent=f"{margin}    ", break_long_words=False
        ) or [""]
    return "\n".join(lines)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_a_program_reads_as_reviewed_at_every_stage(
    function: Callable[..., Any], golden: Callable[[str, str], None]
) -> None:
    golden(f"programs/{function.__name__}", "\n\n".join(page(function)))


def test_every_pass_has_its_sentence() -> None:
    steps = [step for each in pipeline.PIPELINE for step in getattr(each, "passes", (each,))]
    names = {step.name for step in (*steps, *LOOP_PIPELINE) if step is not pipeline.CONTRACTION}
    assert names == set(DONE)
