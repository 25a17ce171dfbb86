"""CONTRIBUTING shows a real diff: every line that it adds is in the file it names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def added_lines() -> dict[str, list[str]]:
    """The lines that the diff adds, by file."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    diff = text.partition("```diff\n")[2].partition("\n```")[0]
    found: dict[str, list[str]] = {}
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            lines = found.setdefault(line.removeprefix("+++ b/"), [])
        elif line.startswith("+"):
            lines.append(line[1:])
    return found


def test_the_diff_in_contributing_is_in_the_code() -> None:
    added = added_lines()
    assert len(added) == 2
    for name, lines in added.items():
        present = (ROOT / name).read_text().splitlines()
        missing = [line for line in lines if line not in present]
        assert lines
        assert not missing, f"{name} has changed: update the diff in CONTRIBUTING.md"
