"""The pages name files that exist and link to pages that exist; the design pages stay short and dated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
PAGES = [*DESIGN, *sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_links_to_files_that_exist(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_names_modules_that_exist(page: Path) -> None:
    named = set(re.findall(r"`([\w/]+/[\w/]+\.py)`", page.read_text(encoding="utf-8")))
    assert [each for each in named if not any((root / each).exists() for root in (ROOT, ROOT / "tracer"))] == []


def test_every_page_of_the_design_is_in_its_table_of_contents() -> None:
    contents = (ROOT / "docs" / "design" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([a-z-]+)$", contents.partition("```{toctree}")[2].partition("```")[0], re.MULTILINE)
    assert sorted([*listed, "index"]) == [page.stem for page in DESIGN]


def test_the_design_is_at_most_700_lines() -> None:
    lines = [(page.name, line) for page in DESIGN for line in page.read_text(encoding="utf-8").splitlines()]
    assert len(lines) <= 700
    assert [(page, line) for page, line in lines if len(line) > 120] == []


def test_every_decision_is_dated() -> None:
    pages = [page for page in DESIGN if page.stem not in ("index", "walkthrough")]
    paragraphs = [part for page in pages for part in page.read_text(encoding="utf-8").split("\n\n")]
    decisions = [" ".join(part.split()) for part in paragraphs if part.startswith("**")]
    assert len(decisions) >= 60
    assert [each for each in decisions if not re.match(r"\*\*[^*]+\*\* \(2026-\d\d-\d\d\)\. ", each)] == []
