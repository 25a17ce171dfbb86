"""Docstrings in parts: what is put into them, and into which."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tests.grids import each
from tracer.trace.docstrings import ABSENT, names, parameters, say, say_of_elements, signed_as, with_paragraph
from tracer.trace.tracebacks import boundary


def half(x: Any, out: Any = None, *, exact: bool = False) -> Any:
    """Half of x.

    exact: whether it is rounded; in place of `out` nothing is written.

    >>> half(2.0)
    1.0
    """


def double(x: Any, factor: float = 2.0) -> Any:
    """Twice x."""


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    return boundary(function)


def shown(function: Callable[..., Any]) -> str:
    """A docstring without its margin, which only some compilers take away, and with the end of its last line."""
    return f"{inspect.cleandoc(function.__doc__ or '')}\n"


def test_paragraphs_come_before_the_example_and_at_the_end_of_a_docstring_without_one() -> None:
    assert (half.__doc__ or "").partition(">>>")[0].count("\n\n") == 2
    text = with_paragraph(half.__doc__ or "", ["Of numbers.", "Of any."])
    bare = inspect.cleandoc(text)
    assert "nothing is written.\n\nOf numbers.\nOf any.\n\n>>> half(2.0)\n1.0" in bare
    assert inspect.cleandoc(with_paragraph(inspect.cleandoc(half.__doc__ or ""), ["Of numbers.", "Of any."])) == bare
    assert with_paragraph("Twice x.", ["Of numbers."]).rstrip() == "Twice x.\n\n    Of numbers."


@each(
    ("prose", "is_named"),
    [
        ("axis: one or several", True), ("a, axis, ddof: as of `var`", True), ("float64 unless axis= says", True),
        ("along `axis`", True), ("along an axis", False), ("an axis, and others", False), ("axis1: the first", False),
        ("max(axis, 0)", False), ("axis(x): a function", True), ("axis (of x)", False),
    ],
)  # fmt: skip
def test_parameters_are_named_where_something_is_said_of_them(prose: str, *, is_named: bool) -> None:
    assert names(prose, "axis") == is_named


def test_phrases_are_added_for_parameters_that_nothing_is_said_of() -> None:
    face = copied(half)
    say([face], {"x": "a number.", "out": "never added.", "exact": "never added.", "no_parameter": "never added."})
    lines = inspect.cleandoc(face.__doc__ or "").splitlines()
    assert lines.count("x: a number.") == 1
    assert not [line for line in lines if "never" in line]
    before = face.__doc__
    say([face], {"x": "a number."})
    assert face.__doc__ == before
    assert "a number" not in (half.__doc__ or "")


def test_parameters_of_one_phrase_share_a_line() -> None:
    face = copied(double)
    say([face], dict.fromkeys(("factor", "x"), "numbers."))
    assert "\nx, factor: numbers.\n" in shown(face)


def test_functions_of_elements_say_operands_shapes_and_dtypes() -> None:
    faces = [copied(half), copied(double)]
    say_of_elements(faces, complex_too=("double",))
    assert "\nx: real numbers [*s]. Returns floats [*s].\n" in shown(faces[0])
    expected = "\nx, factor: numbers, whose shapes broadcast to [*s]. Returns floats or complex numbers [*s].\n"
    assert expected in shown(faces[1])
    before = faces[1].__doc__
    say_of_elements(faces[1:])
    assert faces[1].__doc__ == before


def test_parameters_are_those_of_the_function_within() -> None:
    assert parameters(copied(copied(half))) == ("x", "out", "exact")


def test_a_function_that_hands_on_shows_the_other_ones_signature() -> None:
    @signed_as(half)
    def handing_on(*args: Any, **kwargs: Any) -> Any:
        return half(*args, **kwargs)

    assert inspect.signature(copied(handing_on)) == inspect.signature(half)


def test_defaults_that_are_absent_look_so() -> None:
    def function(x: Any = ABSENT) -> None: ...

    assert str(inspect.signature(function)) == "(x: 'Any' = absent) -> 'None'"
