"""The report on the installation, and its tests."""

from __future__ import annotations

import pytest

from tracer.__main__ import main
from tracer.commands import doctor


def test_the_report_has_every_section_and_all_tests_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for part in ("versions   tracer ", "numpy ", "processor ", "vectors of ", "caches ", "GPU ", "tests      ok "):
        assert part in said
    assert said.count("ok      ") == len(doctor._TESTS)


def test_a_failure_is_a_line_and_an_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> float:
        raise ImportError("no such library")

    monkeypatch.setattr(doctor, "_TESTS", {"an import": broken, "a number": lambda: 0.5})
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "FAILED  an import: ImportError: no such library" in said
    assert "FAILED  a number, 0.0 s, off by 5.0e-01" in said


def test_the_report_alone_compiles_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "_TESTS", {"never": lambda: 1.0})
    assert main(["doctor", "--no-test"]) == 0
    assert "tests" not in capsys.readouterr().out
