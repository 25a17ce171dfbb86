"""Native routines in `.ll` files: one function a file, a contract at its head, every name with a value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tracer
from tracer.codegen.llvm.toolchain.native_text import expanded, routines

FILES = sorted(Path(tracer.__file__).parent.rglob("*.ll"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_routine_begins_with_its_contract(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("; ")
    assert all(len(line) <= 120 for line in text.splitlines() if line.startswith(";"))
    if path.stem != "serial":  # the whole pool where there are no threads
        assert len(re.findall("^define ", text, re.MULTILINE)) == (path.stem != "declarations")


def test_comments_that_fill_a_line_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.ll").write_text("; Return.\n\ndefine void @a() {\n  ret void ; done\n}\n")
    (tmp_path / "b.ll").write_text("; State.\n\n@b = internal global i8 0\n")
    assert routines(tmp_path, ("b", "a")) == (
        "@b = internal global i8 0\n\ndefine void @a() {\n  ret void ; done\n}\n"
    )  # fmt: skip


def test_a_name_without_a_value_is_refused() -> None:
    with pytest.raises(KeyError, match=r"Pair\.third"):
        expanded("  set ptr null %p Pair.third", {"Pair.second": 8})
