"""The command that opens the documentation."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("is_checkout", [True, False])
def test_docs_that_are_not_built_say_how_to_build_them(
    is_checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = tmp_path / "build" / "docs"
    monkeypatch.setattr(docs, "BUILT", built)
    if is_checkout:
        (tmp_path / "docs").mkdir()
    assert main(["docs"]) == 1
    problem = (
        f"the documentation is not built in {built}" if is_checkout else "installed packages carry no documentation"
    )
    assert capsys.readouterr().err == (
        f"python -m tracer docs: {problem}\n"
        f'  help: {"" if is_checkout else "in a checkout: "}pip install -e ".[docs]" && scripts/docs\n'
    )


def test_sections_on_errors_are_printed_where_nothing_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "BUILT", tmp_path)
    assert main(["docs", "AxisError"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("AxisError\n\nAn axis out of range, or given twice.\n\n```pycon\n>>> tnp.sum(")
    assert "doctest: +" not in text
    assert text.endswith("  help: axes run from -2 to 1\n\n```\n")


@pytest.mark.parametrize("name", [name for name, value in vars(errors).items() if isinstance(value, type)])
def test_every_error_has_a_section_to_show(name: str) -> None:
    text = error_sections.section(name)
    assert text
    assert "\n## " not in text
