"""Failing programs made small, and kept as text: a program, then a line with the bytes of each input.

    python -m tests.laws.shrinking values SEED LENGTH
    python -m tests.laws.shrinking derivatives SEED LENGTH

draws the program that a random law failed on, drops what the failure does not need, and writes the rest to
`tests/laws/regressions/`. A failure is the same if it is of the same kind and its message begins with the same word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.laws.agreement import check_derivatives, check_values
from tests.laws.programs import draw_program
from tests.laws.values import Array
from tracer.ir.program import Equation, Program, Var
from tracer.ir.read import read_program
from tracer.ir.text import program_text
from tracer.ir.types import ArrayType, KeyType, storage_type
from tracer.primitives.arrays.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from tracer.primitives.base.reference import reference_outputs
from tracer.primitives.catalogue import BY_NAME

Check = Callable[[Program, Sequence[Array]], Any]
Failing = tuple[Program, list[Array]]

CHECKS: dict[str, Callable[..., Any]] = {"values": check_values, "derivatives": check_derivatives}
REGRESSIONS = Path(__file__).parent / "regressions"
ENUMS = {cls.__name__: cls for cls in (GatherScatterMode,)}
RECORDS = {cls.__name__: cls for cls in (GatherDimensionNumbers, ScatterDimensionNumbers)}


def shrunk(program: Program, values: Sequence[Array], check: Check) -> Failing:
    """The smallest program found on which the check fails in the same way."""
    how = failure(program, values, check)
    assert how is not None, "it does not fail"
    best: Failing = (program, list(values))
    found = True
    while found:
        found = False
        for candidate in _smaller(*best):
            if failure(*candidate, check) == how:
                best, found = candidate, True
                break
    return best


def failure(program: Program, values: Sequence[Array], check: Check) -> str | None:
    """How a check fails: the kind of error, and its first word; None where it does not."""
    try:
        check(program, values)
    except Exception as error:
        return f"{type(error).__name__} {str(error).split(' ')[0]}"
    return None


def _smaller(program: Program, values: Sequence[Array]) -> Iterator[Failing]:
    """Programs that lack an output, or take the results of some equations as inputs; large cuts first."""
    known = results(program, values)
    for atom in reversed(program.outputs):
        if len(program.outputs) > 1:
            yield _needed(replace(program, outputs=(atom,)), values)
    count = len(program.equations)
    cut = count
    while cut:
        for start in range(0, count, cut):
            candidate = _without(program, values, known, program.equations[start : start + cut])
            if candidate is not None and len(candidate[0].equations) < count:
                yield candidate
        cut //= 2


def results(program: Program, values: Sequence[Array]) -> dict[Var, Any]:
    """Every value in the program, by the reference."""
    known: dict[Var, Any] = dict(zip(program.inputs, values, strict=True))
    for equation in program.equations:
        operands = [known[a] if isinstance(a, Var) else np.asarray(a.value) for a in equation.inputs]
        for variable, value in zip(
            equation.outputs, reference_outputs(equation.primitive, operands, equation.params), strict=True
        ):
            known[variable] = value
            if isinstance(variable.type, ArrayType | KeyType):
                stored = storage_type(variable.type)
                whole = np.zeros(stored.shape, stored.dtype) if 0 in stored.shape else value  # keys may lack their axis
                known[variable] = np.array(np.broadcast_to(whole, stored.shape), order="C")
    return known


def _without(
    program: Program, values: Sequence[Array], known: dict[Var, Any], dropped: Sequence[Equation]
) -> Failing | None:
    """The program with the equations' results as inputs; None where a stack would be one."""
    gone = [v for equation in dropped for v in equation.outputs]
    if not all(isinstance(v.type, ArrayType | KeyType) for v in gone):
        return None
    kept = tuple(e for e in program.equations if e not in dropped)
    return _needed(
        replace(program, inputs=(*program.inputs, *gone), equations=kept), [*values, *(known[v] for v in gone)]
    )


def _needed(program: Program, values: Sequence[Array]) -> Failing:
    """Without the equations and inputs that no output depends on."""
    needed = {a for a in program.outputs if isinstance(a, Var)}
    equations = []
    for equation in reversed(program.equations):
        if needed & set(equation.outputs):
            equations.append(equation)
            needed.update(a for a in equation.inputs if isinstance(a, Var))
    pairs = [(v, x) for v, x in zip(program.inputs, values, strict=True) if v in needed]
    inputs = tuple(v for v, _ in pairs)
    return replace(program, inputs=inputs, equations=tuple(reversed(equations))), [x for _, x in pairs]


# As text


def written(program: Program, values: Sequence[Array]) -> str:
    """The program, and its inputs' values as bytes."""
    lines = [x.tobytes().hex() or "-" for x in map(np.asarray, values)]
    return program_text(program, sources=False) + "\n\n" + "\n".join(lines) + "\n"


def read(text: str) -> Failing:
    """What `written` wrote."""
    head, _, tail = text.partition("\n\n")
    program = read_program(head, BY_NAME, enums=ENUMS, records=RECORDS)
    arrays = []
    for line, type in zip(tail.splitlines(), program.input_types, strict=True):
        stored = storage_type(type)
        data = bytes.fromhex("" if line == "-" else line)
        arrays.append(np.frombuffer(data, stored.dtype).reshape(stored.shape))
    return program, arrays


def main(kind: str, seed: str, length: str) -> None:
    """Draw, shrink, write."""
    drawn = draw_program(int(seed), int(length), smooth=kind == "derivatives")
    check = partial(CHECKS[kind], turn=int(seed))
    program, values = shrunk(*drawn, check)
    path = REGRESSIONS / f"{kind}-{seed}.txt"
    path.write_text(written(program, values))
    print(f"{path}: {failure(program, values, check)}\n{path.read_text()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
