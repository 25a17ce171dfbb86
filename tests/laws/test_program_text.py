"""Law: text that is nearly a program is read, or refused by an error of the project's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from tests.laws.programs import draw_program
from tests.laws.sampling import THOROUGH, sampled
from tests.laws.shrinking import ENUMS, RECORDS
from tracer.errors import InternalError, ProgramTextError
from tracer.ir.check import check_program
from tracer.ir.program import Program
from tracer.ir.read import read_program
from tracer.ir.text import program_text
from tracer.primitives.catalogue import BY_NAME

ODD = (
    "0", "-1", "1", "9" * 20, "9" * 5000, "1e999", "f32", "float0", "key", "stack", "None", "True", "...", "()", "(1,)",
    "%a", "@add", "nan:f32", "true:bool", "300:u8", "inf:i8", "1:f64*", "<x>", "\x00", "é", "{", "}", "[", "]", '"',
)  # fmt: skip


def read(text: str) -> Program:
    return read_program(text, BY_NAME, enums=ENUMS, records=RECORDS)


def mutants(text: str, rng: np.random.Generator, count: int) -> Iterator[str]:
    """Yield texts with a token left out, exchanged, copied over another, inserted or replaced, or with the end cut."""
    tokens = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(count):
        changed = list(tokens)
        first, second = (int(n) for n in rng.integers(len(tokens), size=2))
        match rng.integers(6):
            case 0:
                del changed[first]
            case 1:
                changed[first], changed[second] = changed[second], changed[first]
            case 2:
                changed[first] = changed[second]
            case 3:
                changed.insert(first, changed[second])
            case 4:
                changed[first] = ODD[int(rng.integers(len(ODD)))]
            case _:
                del changed[first:]
        yield "".join(changed)


@sampled(4)
def test_mutated_text_is_read_or_refused_by_our_own_errors(seed: int) -> None:
    text = program_text(draw_program(seed % 10_000, 5).program)
    with suppress(ProgramTextError):  # of a program with functions of Python's, which cannot be read back
        read(text)
        for mutant in mutants(text, np.random.default_rng(seed), 200 if THOROUGH else 40):
            with suppress(ProgramTextError, InternalError):
                program_text(check_program(read(mutant)))


def test_a_literal_of_more_digits_than_python_reads_is_refused_at_its_place() -> None:
    text = f"f(%a: i64[]) -> i64[] {{\n  %b: i64[] = add(%a, {'9' * 5000}:i64)\n  return %b\n}}"
    with pytest.raises(ProgramTextError, match=r"^program text, line 2, column \d+: expected a value of i64"):
        read(text)


def test_a_comment_with_a_line_number_that_no_file_has_is_no_place() -> None:
    program = read(f"f(%a: i64[]) -> i64[] {{\n  %b: i64[] = add(%a, %a)  # f.py:{'9' * 5000}\n  return %b\n}}")
    assert program.equations[0].source is None


@pytest.mark.parametrize(
    "value",
    ["(" * 100_000, "((" * 200 + "))" * 200, "9" * 5000, "GatherDimensionNumbers(a=1)", "GatherDimensionNumbers()"],
    ids=["open", "nested", "digits", "unknown field", "no fields"],
)
def test_strange_parameters_are_refused_at_their_place(value: str) -> None:
    text = f"f(%a: f64[]) -> f64[] {{\n  %b: f64[] = sin(%a, p={value})\n  return %b\n}}"
    with pytest.raises((ProgramTextError, InternalError)) as caught:
        check_program(read(text))
    if isinstance(caught.value, ProgramTextError):
        assert str(caught.value).startswith("program text, line 2, column ")
