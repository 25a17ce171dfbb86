"""The folders of compiled code: shown and cleared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import config, jit
from tracer.__main__ import main


def test_programs_are_counted_and_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs, kernels = tmp_path / "programs", tmp_path / "kernels"
    with config.using(cache_dir=programs, kernel_dir=kernels):
        jit(lambda x: tnp.sin(x) * 3)(np.arange(5.0))
        (programs / "notes.txt").write_text("kept", encoding="utf-8")
        assert main(["cache"]) == 0
        assert f"cache_dir   {programs}: 1 files, " in capsys.readouterr().out
        assert main(["cache", "--clear"]) == 0
        assert "1 files removed" in capsys.readouterr().out
        assert [path.name for path in programs.iterdir()] == ["notes.txt"]
        assert not list(kernels.glob("*.object"))
        main(["cache"])
        assert f"cache_dir   {programs}: 0 files, 0.0 MB" in capsys.readouterr().out


def test_a_file_that_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with config.using(cache_dir=tmp_path, kernel_dir=tmp_path):
        jit(lambda x: tnp.cos(x) * 3)(np.arange(5.0))

        def refuse(self: Path, missing_ok: bool = False) -> None:
            raise PermissionError(str(self))

        monkeypatch.setattr(Path, "unlink", refuse)
        assert main(["cache", "--clear"]) == 1
        assert "could not be" in capsys.readouterr().out
