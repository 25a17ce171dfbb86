"""The golden fixture itself: a comparison that cannot fail would let everything pass."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TEST = 'def test_text(golden):\n    golden("deep/sample", "one\\ntwo")\n'


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(TEST)
    return pytester


def test_golden_text_is_written_on_request_and_then_compared(project: pytest.Pytester) -> None:
    project.runpytest_subprocess("--update-golden").assert_outcomes(passed=1)
    written = project.path / "golden" / "deep" / "sample.txt"
    assert written.read_text(encoding="utf-8") == "one\ntwo\n"
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_other_text_than_the_golden_fails_with_a_diff(project: pytest.Pytester) -> None:
    project.runpytest_subprocess("--update-golden")
    (project.path / "golden" / "deep" / "sample.txt").write_text("one\nthree\n", encoding="utf-8")
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*differs from golden/deep/sample.txt*", "-three", "+two"])


def test_a_missing_golden_file_fails_and_says_how_to_write_it(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no golden file *", "*help: pytest --update-golden*"])
    assert not (project.path / "golden").exists()
