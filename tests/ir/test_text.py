"""What a printed program looks like."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.counted_calls import python_calls
from tests.grids import each
from tests.ir import toys
from tests.ir.toys import Writer, f32, number
from tracer.ir.dtypes import BF16, BOOL, C64, C128, F8E4M3FN, F16, F32, F64, I8, I64, U64
from tracer.ir.program import Equation, Literal, Program, Source, Var, literal
from tracer.ir.text import equation_text, is_silent, literal_text, param_text, program_text, variable_name
from tracer.ir.types import KeyType, StackType, array_type


def test_a_loop_prints_its_programs_as_blocks_and_its_lines_in_one_column() -> None:
    assert (
        str(toys.looping())
        == """\
g(%a: f32[3]) -> f32[3] {
  %b: f32[3] = while_loop(%a) {             # demo.py:14
    cond(%c: f32[3]) -> bool[] {
      %d: bool[3] = lt(%c, 100.0:f32)       # demo.py:15
      %e: bool[] = reduce_or(%d, axes=(0,)) # demo.py:16
      return %e
    }
    body(%f: f32[3]) -> f32[3] {
      %g: f32[3] = add(%f, %f)              # demo.py:17
      return %g
    }
  }
  return %b
}"""
    )


def test_tuples_of_programs_print_as_numbered_blocks() -> None:
    assert (
        program_text(toys.branching(), sources=False)
        == """\
choose(%a: bool[], %b: f32[3]) -> f32[3] {
  %c: f32[3] = cond(%a, %b) {
    branches[0](%d: f32[3]) -> f32[3] {
      %e: f32[3] = add(%d, %d)
      return %e
    }
    branches[1](%f: f32[3]) -> f32[3] {
      %g: f32[3] = neg(%f)
      return %g
    }
  }
  return %c
}"""
    )


def test_several_outputs_stand_before_the_equals_sign_and_in_parentheses_after_the_arrow() -> None:
    assert (
        str(toys.sorting())
        == """\
order(%a: f32[3], %b: i64[3]) -> (f32[3], i64[3]) {
  %c: f32[3], %d: i64[3] = sort(%a, %b, dimension=0, num_keys=1) # demo.py:8
  return %c, %d
}"""
    )


def test_a_program_of_nothing_prints() -> None:
    assert (
        str(Program((), (), ()))
        == """\
f() -> () {
  return
}"""
    )


def test_an_equation_without_outputs_has_no_equals_sign() -> None:
    w = Writer(f32(), file=None)
    w(toys.show_p, *w.inputs, format='x = "{}"\n')
    assert (
        str(w.program(number(1.0), name="<lambda>"))
        == """\
<lambda>(%a: f32[]) -> f32[] {
  show(%a, format="x = \\"{}\\"\\n")
  return 1.0:f32
}"""
    )


def test_programs_among_other_things_in_a_tuple_leave_dots_behind() -> None:
    w = Writer(f32(3), file=None)
    y = w(toys.odd_p, *w.inputs, rules=(None, toys.doubling()), depth=1)
    assert (
        program_text(w.program(y), sources=False)
        == """\
f(%a: f32[3]) -> f32[3] {
  %b: f32[3] = odd(%a, rules=(None, ...), depth=1) {
    rules[1](%c: f32[3]) -> f32[3] {
      %d: f32[3] = add(%c, %c)
      return %d
    }
  }
  return %b
}"""
    )


def test_one_program_used_twice_has_names_of_its_own_each_time() -> None:
    double = toys.doubling()
    w = Writer(array_type(BOOL, ()), f32(3))
    y = w(toys.cond_p, *w.inputs, branches=(double, double))[0]
    text = program_text(w.program(y), sources=False)
    assert "branches[0](%d: f32[3])" in text
    assert "branches[1](%f: f32[3])" in text


def test_a_nested_program_of_the_same_variables_does_not_rename_the_outer_ones() -> None:
    double = toys.doubling()
    (x,), (y,) = double.inputs, (Var(f32(3)),)
    calls = (Equation(toys.cond_p, (x,), {"branches": (double,)}, (y,)), *double.equations)
    assert str(Program((x,), calls, (y, x))).split("\n")[-3:] == [
        "  %e: f32[3] = add(%a, %a)     # demo.py:15",
        "  return %b, %a",
        "}",
    ]


def test_an_overlong_line_does_not_push_the_sources_of_the_others_away() -> None:
    w = Writer(f32(3))
    w(toys.odd_p, *w.inputs, text="x" * 200)
    y = w(toys.add_p, *w.inputs, number(1.0))
    lines = str(w.program(y)).split("\n")
    assert lines[2] == "  %c: f32[3] = add(%a, 1.0:f32) # demo.py:2"
    assert lines[1].endswith('") # demo.py:1')


def test_sources_show_the_file_without_its_directory_and_nothing_that_breaks_the_line() -> None:
    x = Var(f32())
    for file in ("/tmp/a\nb.py", "C:\\tmp\\a\tb.py"):
        program = Program((x,), (Equation(toys.neg_p, (x,), {}, (Var(f32()),), Source(file, 3, "g")),), ())
        assert str(program).split("\n")[1] == "  %b: f32[] = neg(%a) # a?b.py:3"


def test_variables_are_counted_in_letters() -> None:
    names = [variable_name(n) for n in (0, 25, 26, 51, 52, 701, 702)]
    assert names == ["a", "z", "aa", "az", "ba", "zz", "aaa"]


def test_a_variable_without_a_definition_prints_as_a_question_mark() -> None:
    assert str(Program((), (), (Var(f32()),))) == "f() -> f32[] {\n  return %?\n}"


def test_an_equation_prints_alone_with_the_names_that_it_has_in_its_program() -> None:
    program = toys.looping()
    assert equation_text(program, program.equations[0]) == "%b: f32[3] = while_loop(%a) # demo.py:14"


LITERALS = [
    (literal(100, F32), "100.0:f32"),
    (literal(2, F64, weak=True), "2.0:f64*"),
    (literal(3, I64), "3:i64"),
    (literal(-128, I8), "-128:i8"),
    (literal(2**64 - 1, U64), "18446744073709551615:u64"),
    (literal(True, BOOL), "true:bool"),
    (literal(0.1, F32), "0.1:f32"),
    (literal(0.1, F16), "0.1:f16"),
    (literal(0.1, BF16), "0.1:bf16"),
    (literal(0.1, F8E4M3FN), "0.1:f8e4m3fn"),
    (literal(448, F8E4M3FN), "450.0:f8e4m3fn"),
    (literal(np.float32(np.pi), F32), "3.1415927:f32"),
    (literal(1e-45, F32), "1e-45:f32"),
    (literal(1e300, F64), "1e+300:f64"),
    (literal(np.nan, F32), "nan:f32"),
    (literal(np.inf, BF16), "inf:bf16"),
    (literal(-np.inf, F64), "-inf:f64"),
    (literal(-0.0, F32), "-0.0:f32"),
    (literal(1 + 2j, C64), "(1+2j):c64"),
    (literal(complex(-0.0, -0.0), C128), "(-0-0j):c128"),
    (literal(complex(0.1, np.inf), C64), "(0.1+infj):c64"),
    (literal(complex(np.nan, -np.inf), C128), "(nan-infj):c128"),
    (toys.scalar_of(np.uint32(0xFFC00000).tobytes(), F32), "nan(0xffc00000):f32"),
]  # fmt: skip


@each(("value", "text"), LITERALS, ids=[text for _, text in LITERALS])
def test_literals_print_with_the_fewest_digits_and_their_type(value: Literal, text: str) -> None:
    assert literal_text(value) == text


def f(x: Any) -> Any:
    return x


PARAMS: list[tuple[Any, str]] = [
    ((0,), "(0,)"),
    ((), "()"),
    (((0, 1), ("a", None)), '((0, 1), ("a", None))'),
    (True, "True"),
    (1.0, "1.0"),
    (1, "1"),
    (1 - 2j, "(1-2j)"),
    (float("-inf"), "-inf"),
    (F32, "f32"),
    (np.float32(1.5), "1.5:f32"),
    (f32(2, 3), "f32[2,3]"),
    (StackType(KeyType((2,))), "stack[key[2]]"),
    (toys.Mode.CLIP, "Mode.CLIP"),
    (toys.add_p, "@add"),
    (toys.Window((3,), F32), "Window(size=(3,), dtype=f32)"),
    ({"a": 1}, '{"a": 1}'),
    (f, "<function f>"),
    (lambda x: x, "<function lambda>"),
    (partial(f, 1), "<partial>"),
    (object(), "<object>"),
    ("µ\u2028", '"\\u00b5\\u2028"'),
]


@each(("value", "text"), PARAMS, ids=[text for _, text in PARAMS])
def test_parameters_print_as_they_are_read(value: Any, text: str) -> None:
    assert param_text(value) == text


def test_printing_takes_linear_time() -> None:
    program, short = toys.chain(10_000), toys.chain(2_500)
    assert 10_000 < python_calls(lambda: str(program)) < 4.2 * python_calls(lambda: str(short))
    text = str(program)
    assert text.count("\n") == 10_002
    assert "%ntq: f32[8] = add(%ntp, 1.5:f32)" in text


def test_parameters_that_say_nothing_new_are_silent() -> None:
    (equation, *_) = toys.chain(1).equations
    for value in (None, False, (), "", (8,), np.dtype("float32")):
        assert is_silent(equation, value)
    for value in (True, 0, (2,), "x", np.dtype("int8"), np.zeros(3), (np.zeros(3),), 0.0):
        assert not is_silent(equation, value)
