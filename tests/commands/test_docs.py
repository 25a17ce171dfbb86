"""The command that opens the documentation."""

from __future__ import annotations

import pickle
import traceback
import webbrowser
from pathlib import Path

import pytest

from tests.grids import each
from tracer import error_sections, errors
from tracer.__main__ import main
from tracer.commands import docs


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for page in ("index", "errors", "guide/jit"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / f"{page}.html").touch()
    addresses: list[str] = []
    monkeypatch.setattr(docs, "BUILT", tmp_path)
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ((), "/index.html"),
        (("ShapeError",), "/errors.html#shapeerror"),
        (("tracer.errors.CarryTypeError",), "/errors.html#carrytypeerror"),
        (("guide/jit",), "/guide/jit.html"),
        (("jit",), "/guide/jit.html"),
    ],
)
def test_docs_opens_the_page_of_a_name(name: tuple[str, ...], end: str, opened: list[str]) -> None:
    assert main(["docs", *name]) == 0
    assert len(opened) == 1
    assert opened[0].startswith("file://")
    assert opened[0].endswith(end)


def test_docs_refuses_a_name_without_a_page(opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "ValueError"]) == 1
    assert opened == []
    assert capsys.readouterr().err == (
        "python -m tracer docs: no error and no page 'ValueError'\n"
        "  help: name an error, as CarryTypeError, or a page, as guide/jit\n"
    )


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "BUILT", tmp_path / "build" / "docs")


@pytest.mark.usefixtures("unbuilt")
def test_pages_that_are_not_built_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Pages of the documentation. python -m tracer docs NAME shows one."
    assert lines[2:4] == [
        "  guide/batching           Batching",
        "  guide/devices            Devices",
    ]
    assert "  errors                   Errors, one by one" in lines
    assert lines[-1] == 'In a checkout, pip install -e ".[docs]" && scripts/docs builds them for the browser.'


@pytest.mark.usefixtures("unbuilt")
@pytest.mark.parametrize("name", ["guide/quickstart", "quickstart", "guide/quickstart.md"])
def test_a_page_that_is_not_built_is_shown_as_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", name]) == 0
    assert capsys.readouterr().out.startswith("# Ten minutes with tracer\n\nYou write a function")


@pytest.mark.usefixtures("unbuilt")
@pytest.mark.parametrize("page", ["gallery/posterior", "guide/jit", "gallery/index"])
def test_a_page_shown_as_text_has_no_directives(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", page]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# ")
    assert not [each for each in ("```{", ":tags:", "doctest: +") if each in text]


@pytest.mark.usefixtures("unbuilt")
def test_sections_on_errors_are_printed_where_nothing_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "AxisError"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("AxisError\n\nAn axis out of range, or given twice.\n\n```pycon\n>>> tnp.sum(")
    assert "doctest: +" not in text
    assert text.endswith("  help: axes run from -2 to 1\n  more: python -m tracer docs AxisError\n\n```\n")


def test_a_traceback_ends_with_the_command_that_shows_the_documentation() -> None:
    class OfTheUser(errors.ShapeError):
        pass

    for kind in (errors.ShapeError, OfTheUser):
        error = kind("f at demo.py:3: no")
        lines = traceback.format_exception_only(error)
        assert lines[1:] == ["  more: python -m tracer docs ShapeError\n"]
        assert str(pickle.loads(pickle.dumps(errors.AxisError("text")))) == "text"
        error_without_slots = errors.AxisError.__new__(errors.AxisError, "text")
        assert (str(error_without_slots), error_without_slots.axis) == ("text", None)
        error.add_note("mine")
        assert error.__notes__[1:] == ["mine"]
        assert errors.ShapeError("another").__notes__ == ["  more: python -m tracer docs ShapeError"]


@each(
    "name", [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
)
def test_every_error_has_a_section_to_show(name: str) -> None:
    text = error_sections.section(name)
    assert text
    assert "\n## " not in text
