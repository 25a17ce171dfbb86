"""The pages name files that exist and link to pages that exist; the design pages stay short and dated."""

from __future__ import annotations

import re
from pathlib import Path

from tests.grids import each
from tests.numpy.test_names import MODULES
from tools import api_pages
from tracer import errors

ROOT = Path(__file__).parents[1]
DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@each("page", PAGES, ids=name)
def test_a_page_links_to_files_that_exist(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:|api/)([^)#\s]+)", prose)  # scripts/docs makes the pages of api/
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each("page", PAGES, ids=name)
def test_a_page_links_to_sections_that_exist(page: Path) -> None:
    links = re.findall(r"\]\(([\w./]*\.md)?#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    contents = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("index.md", "gallery/index.md"))
    listed = set(re.findall(r"^[\w/-]+$", contents, re.MULTILINE))
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in PAGES if (ROOT / "docs") in page.parents}
    pages -= {"index"} | {page for page in pages if page.startswith("design/")}
    listed |= {f"gallery/{page}" for page in listed}
    assert [page for page in sorted(pages - listed) if not re.match(r"[dep][^/]*$", page)] == []  # globs have these


def test_every_error_has_a_section_with_its_name() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
    assert sections == named


def test_every_public_name_is_in_the_reference() -> None:
    pages = {page.file: api_pages.text(page) for page in api_pages.PAGES}
    entries = set()
    for text in pages.values():
        found = re.findall(r"^\.\. py:(?!module)\w+:: (\w+).*\n   :module: (.*)$", text, re.MULTILINE)
        entries |= {f"{module}.{name}" for name, module in found}
    public = {
        f"tracer.{module}.{name}".replace("..", ".")
        for module in (*MODULES, "numpy", "optim", "data", "io", "interop")
        for name in api_pages.public(module)
    }
    assert len(public) > 1500
    assert sorted(public - entries) == []
    assert "``axis``" in pages["numpy_reduce"]


@each("page", PAGES, ids=name)
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
