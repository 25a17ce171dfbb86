"""tools/check_language.py refuses what the glossary refuses, and little else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.check_language import GLOSSARY, findings, main, read_words, words

ROOT = Path(__file__).parents[1]


def found(tmp_path: Path, text: str, *, suffix: str = ".py") -> list[tuple[int, str]]:
    path = tmp_path / f"module{suffix}"
    path.write_text(text, encoding="utf-8")
    return list(findings(path))


def docstring(tmp_path: Path, text: str) -> list[str]:
    return [message for _, message in found(tmp_path, f'def f():\n    """{text}"""\n')]


@pytest.mark.parametrize("opener", ["What", "Whatever", "Those", "That of", "The same", "As said", "Others"])
def test_openers_without_a_subject_are_refused(tmp_path: Path, opener: str) -> None:
    message, *_ = docstring(tmp_path, f"Return it. {opener} here is read.")
    assert message == f"name the subject, not {opener!r}: {opener} here is read."


@pytest.mark.parametrize("opener", ["The", "A", "An", "Which", "Where", "How", "Both", "Each"])
def test_a_functions_docstring_starts_with_a_verb(tmp_path: Path, opener: str) -> None:
    assert docstring(tmp_path, f"{opener} types of it.") == [f"start with a verb: {opener} types of it."]


@pytest.mark.parametrize(
    "code",
    [
        'def f({name}, *, others):\n    """Run it.\n\n    what: the operation.\n\n    others, what: arrays.\n    """\n',
        'class C:\n    """Running.\n\n    what: its name.\n    """\n\n    {name}: str\n',
        'class C:\n    """Base.\n\n    what, x: its name.\n    """\n\n    def __init__(self, {name}): ...\n',
    ],
)
def test_only_a_parameters_own_name_may_open_its_description(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, code.format(name="what"))
    [(_, message)] = found(tmp_path, code.format(name="it"))
    assert message.startswith("name the subject, not 'what'")


def test_a_parameters_name_without_a_description_is_an_opener(tmp_path: Path) -> None:
    (_, message), _ = found(tmp_path, 'def f(what):\n    """Run.\n\n    what is read.\n    """\n')
    assert message == "name the subject, not 'what': what is read."


def test_properties_and_classes_start_with_a_noun(tmp_path: Path) -> None:
    text = 'class C:\n    """The class."""\n\n    @property\n    def x(self):\n        """The value."""\n'
    assert not found(tmp_path, text)


def test_a_name_to_avoid_is_told_with_the_term(tmp_path: Path) -> None:
    assert docstring(tmp_path, "Return the greatest.") == ["'greatest' is 'max, min': Return the greatest."]
    assert docstring(tmp_path, "Return lest.") == ["'lest': Return lest."]


@pytest.mark.parametrize("call", ["ValueError({})", "message({})", "errors.AxisError(message(help={}))", "warn({})"])
def test_texts_of_errors_are_read_but_not_their_values(tmp_path: Path, call: str) -> None:
    code = call.format("f'the greatest of {what} is 1'")
    assert found(tmp_path, f"f(\n{code}\n)\n") == [(2, "'greatest' is 'max, min': the greatest of `…` is 1")]
    assert not found(tmp_path, call.format("f'the max of {greatest}'"))
    assert not found(tmp_path, "print('the greatest')")


def test_possessives_without_a_noun_are_refused(tmp_path: Path) -> None:
    assert docstring(tmp_path, "Call a sort of NumPy's.") == [
        "possessive, \"sort of NumPy's\": Call a sort of NumPy's."
    ]
    assert not docstring(tmp_path, "Return the bits of NumPy's sort, and an order of JAX's own.")


@pytest.mark.parametrize(
    "text",
    [
        "Return at least one; round to even.",
        "Return the greatest common divisor.",
        "Call `whatever` and the text 'x'.",
        "Say `What` it is, or `that of` it.",
        "Return it.\n\n    >>> What\n    ",
        "Whether to materialise `operand` before `scatter`.",
    ],
)
def test_plain_prose_code_and_examples_pass(tmp_path: Path, text: str) -> None:
    assert not docstring(tmp_path, text)


def test_comments_are_read_as_blocks(tmp_path: Path) -> None:
    text = "x = 1  # whatever is read\ny = 2  # of x,\n# of y,\n# of z.\n# Of those of y.\nz = 3\n"
    assert found(tmp_path, text) == [
        (1, "name the subject, not 'whatever': whatever is read"),
        (3, "name the subject, not 'Of those': Of those of y."),
        (3, "name the thing, not 'those': Of those of y."),
    ]


@pytest.mark.parametrize(
    ("text", "hinge"),
    [
        ("Return the value, what it reads.", "what"),
        ("Return the size and those of y.", "those"),
        ("Return the size; that of y is read.", "that of"),
        ("Return x; others pass.", "others"),
        ("Store the rest.", "the rest"),
    ],
)
def test_hinges_are_refused_within_docstrings(tmp_path: Path, text: str, hinge: str) -> None:
    [message] = docstring(tmp_path, text)
    assert message.startswith(f"name the thing, not {hinge!r}: ")


@pytest.mark.parametrize(
    "text",
    [
        "Return x, so that of y nothing stays.",
        "Run it.\n\n    x: the value. what, others: names, for errors.\n    ",
        "Run it.\n\n    It reads:\n\n        what   the operation\n        others  its operands\n\n    ",
    ],
)
def test_hinges_in_names_tables_and_other_words_pass(tmp_path: Path, text: str) -> None:
    assert not [message for message in docstring(tmp_path, text) if message.startswith("name the thing")]


def test_a_sentence_has_at_most_twenty_words(tmp_path: Path) -> None:
    assert not docstring(tmp_path, f"Return {'word ' * 19}(and {'more ' * 9}) `{'code ' * 9}`; {'word ' * 19}here.")
    [message] = docstring(tmp_path, f"Return {'word ' * 20}.")
    assert message.startswith("21 words, at most 20: Return word word")


def test_the_first_line_of_a_docstring_stands_alone(tmp_path: Path) -> None:
    [message] = docstring(tmp_path, "Return the value\n    of x.\n    ")
    assert message == "the first line stands alone: Return the value"


def test_pages_are_read_without_code_tables_and_titles(tmp_path: Path) -> None:
    text = (
        "# What\n\n```\nWhat is code.\n```\n\n| What | whatever |\n\n**Title** (2026-11-23). What is read.\n\n"
        "- Fine.\n- Those are not.\n"
    )
    assert found(tmp_path, text, suffix=".md") == [
        (8, "name the subject, not 'What': What is read."),
        (12, "name the subject, not 'Those': Those are not."),
    ]


def test_a_glossary_without_lists_is_refused() -> None:
    with pytest.raises(ValueError, match="the glossary needs a table"):
        read_words("# Glossary\n")


def test_every_term_of_the_glossary_lives_where_it_says() -> None:
    rows = [row.strip("|").split("|") for row in GLOSSARY.read_text(encoding="utf-8").splitlines() if row[:2] == "| "]
    terms = [row[0].strip() for row in rows[1:]]
    assert len(terms) >= 40
    assert terms == sorted(terms, key=str.lower)
    missing = [row[2] for row in rows[1:] if not (ROOT / re.sub(r"[ `]", "", row[2])).exists()]
    assert not missing


def test_the_glossary_lists_names_openers_phrases_and_hinges() -> None:
    assert words().instead["surroundings"] == "environment"
    assert words().openers.match("The same")
    assert words().phrases.search("read whatever it is")
    assert words().hinges.search("read those")


def test_the_exit_status_says_whether_there_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text('"""Nouns of the IR."""\n')
    assert main([str(tmp_path)]) == 0
    (tmp_path / "b.md").write_text("What is it.\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.endswith(
        "b.md:1: name the subject, not 'What': What is it.\n1 findings in 2 files\n"
    )


def test_the_pages_follow_the_rule() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert [(page.name, *finding) for page in pages for finding in findings(page)] == []
