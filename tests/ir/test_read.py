"""The reader: what was printed comes back, and what is wrong is shown where it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from tests.grids import each
from tests.ir import toys
from tests.ir.strategies import PARAMS, literals, programs
from tests.ir.test_text import LITERALS
from tests.ir.toys import Writer, f32
from tracer.errors import ProgramTextError
from tracer.ir.check import check_program
from tracer.ir.digest import encode
from tracer.ir.program import Literal, Program, Source
from tracer.ir.read import read_program
from tracer.ir.text import program_text


def read(text: str) -> Program:
    return read_program(text, toys.PRIMITIVES, enums=toys.ENUMS, records=toys.RECORDS)


@pytest.mark.parametrize("write", [toys.looping, toys.branching, toys.sorting, Writer().program])
@pytest.mark.parametrize("sources", [True, False])
def test_a_printed_program_reads_back(write: Any, sources: bool) -> None:
    program = write()
    text = program_text(program, sources=sources)
    again = read(text)
    assert again.digest == program.digest
    assert program_text(again) == text
    assert check_program(again) is again


def test_a_scope_may_end_with_blanks() -> None:
    text = "f(%a: f32[3]) -> f32[3] {\n  %b: f32[3] = neg(%a) # demo.py:3 in a b  \n  return %b\n}"
    (equation,) = read(text).equations
    assert equation.source == Source("demo.py", 3, "", "a b  ")


@given(programs())
def test_any_printed_program_reads_back(program: Program) -> None:
    text = str(check_program(program))
    again = read(text)
    assert str(again) == text
    assert again.digest == program.digest
    assert again.name == program.name


@given(literals())
def test_any_literal_reads_back_bit_for_bit(literal: Literal) -> None:
    again = read(str(Program((), (), (literal,)))).outputs[0]
    assert again == literal


@each("literal", [literal for literal, _ in LITERALS])
def test_odd_literals_read_back_bit_for_bit(literal: Literal) -> None:
    assert read(str(Program((), (), (literal,)))).outputs == (literal,)


@given(PARAMS)
def test_any_parameter_reads_back_with_its_type(value: Any) -> None:
    w = Writer(f32(), file=None)
    again = read(str(w.program(w(toys.odd_p, *w.inputs, value=value)))).equations[0].params["value"]
    assert encode(again) == encode(value)
    assert type(again) is type(value)


def test_comments_give_back_file_and_line() -> None:
    program = read(str(toys.looping()))
    (loop,) = program.equations
    assert loop.source == Source("demo.py", 14, "")
    assert loop.params["body"].equations[0].source == Source("demo.py", 17, "")


def test_white_space_and_other_comments_do_not_matter() -> None:
    text = """
    # a program
    f(%a: f32[3], # the argument
      %b: f32[3]) -> f32[3] { %c: f32[3] = # not a place
        add(%a, %b) # my notes.py:7
      # the end: 3
      return %c }  # done
    """
    program = read(text)
    assert [equation.source for equation in program.equations] == [Source("my notes.py", 7, "")]


def test_nested_programs_take_the_name_of_their_parameter() -> None:
    (equation,) = read(str(toys.branching())).equations
    assert [program.name for program in equation.params["branches"]] == ["branches[0]", "branches[1]"]


ERRORS = [
    (
        "f(%a: f32[3]) -> f32[3] {\n  %b: f32[3] = ad(%a, %a)\n  return %b\n}",
        """\
program text, line 2, column 16: expected the name of a primitive, got "ad"
    %b: f32[3] = ad(%a, %a)
                 ^
  help: did you mean add?""",
    ),
    (
        "f(%a: f32[3]) -> f32[3] {\n  %b: f32[3] = add(%a, )%\n  return %b\n}",
        """\
program text, line 2, column 25: expected a name, a number, a string or a bracket, got "%"
    %b: f32[3] = add(%a, )%
                          ^""",
    ),
    (
        "f(%a: f32[3]) -> f32[3] {\n  return %b\n}",
        """\
program text, line 2, column 10: expected a variable that is defined above, in the same program, got "%b"
    return %b
           ^""",
    ),
    (
        "f(%a: f32[3]) -> f32[2] {\n  return %a\n}",
        """\
program text, line 1, column 18: expected the types of the outputs, f32[3], got f32[2]
  f(%a: f32[3]) -> f32[2] {
                   ^""",
    ),
    (
        "f(%a: f32[3]) -> f32[3] {\n  %a: f32[3] = neg(%a)\n  return %a\n}",
        """\
program text, line 2, column 3: expected a new variable, got "%a"
    %a: f32[3] = neg(%a)
    ^
  help: every variable is defined once""",
    ),
    (
        "f(%a: f32[3]) -> f32[3] {\n  %b: f32[3] = odd(%a, rule=<function f>)\n  return %b\n}",
        """\
program text, line 2, column 29: expected a value, got "<function f>"
    %b: f32[3] = odd(%a, rule=<function f>)
                              ^
  help: <function f> is opaque: a program that holds it cannot be read back""",
    ),
    (
        "f(%a: f32[3]) -> f32[3] {\n  return %a",
        """\
program text, line 2, column 12: expected "," or "}", got the end of the text
    return %a
             ^""",
    ),
    (
        "f() -> i8[] {\n  return 300:i8\n}",
        """\
program text, line 2, column 10: expected a value of i8, got "300:i8"
    return 300:i8
           ^""",
    ),
    (
        "f() -> () {\n  return\n}\nand more",
        """\
program text, line 4, column 1: expected the end of the text, got "and"
  and more
  ^""",
    ),
]


@each(("text", "expected"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_shows_the_place_what_was_expected_and_what_stands_there(text: str, expected: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        read(text)
    assert str(caught.value) == expected


def test_the_caret_stands_right_below_the_place_after_tabs_too() -> None:
    with pytest.raises(ProgramTextError) as caught:
        read("f() -> () {\n\t\tno()\n\treturn\n}")
    _, line, caret, *_ = str(caught.value).split("\n")
    assert line.index("no") == caret.index("^")
    assert "\t" not in line


PARTS = [
    ("f32[3", 'expected "," or "]"'),
    ("f33[3]", "expected the name of a type"),
    ("f32[-1]", "expected a whole number, 0 or more"),
    ("stack[float0[]]", "expected the type of an array or of keys"),
]


@pytest.mark.parametrize(("type", "expected"), PARTS)
def test_wrong_types_are_refused(type: str, expected: str) -> None:
    with pytest.raises(ProgramTextError, match=re.escape(expected)):
        read(f"f(%a: {type}) -> () {{\n  return\n}}")


VALUES = [
    ("Mode.CLIPS", "the name of a member of Mode"),
    ("Model.CLIP", "the name of an enum that was passed to read_program(enums=...)"),
    ("Windows(size=1)", "the name of a record that was passed to read_program(records=...)"),
    ("f32, x=1", "a new parameter"),
    ("f32, %a", "a parameter"),
    ("float", "the name of a dtype"),
    ("2.5:i8", "a value of i8"),
    ("...", "a value"),
    ("(1, ...)", "a program for every ... among the parameters"),
    ("((...,),)", "a value"),
    ('"\\q"', "a string with JSON's escapes"),
    ("@ad", "the name of a primitive"),
    ("(1, ...)) { p(1", "a variable"),
    ("(1, ...)) { x[0]() -> () { return } }", "another program"),
    ("1) { x() -> () { return } }", "another program"),
    ("1) { y[1]() -> () { return } }", "another program"),
    ("1) { y() -> () { return } y() -> () { return } }", "another program"),
]


@each(("value", "expected"), VALUES, ids=[value for value, _ in VALUES])
def test_wrong_parameters_are_refused(value: str, expected: str) -> None:
    with pytest.raises(ProgramTextError, match=f"expected {re.escape(expected)}"):
        read(f"f(%a: f32[]) -> () {{\n  %b: f32[] = odd(%a, x={value})\n  return\n}}")


def test_text_that_is_cut_off_anywhere_raises_the_same_error() -> None:
    text = str(toys.looping())
    for end in range(len(text)):
        with pytest.raises(ProgramTextError):
            read(text[:end])
