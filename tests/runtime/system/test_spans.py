"""Spans: traces and compilations are logged on request, and long ones say so where somebody watches."""

from __future__ import annotations

import logging
import sys
import time
from io import StringIO
from typing import Any

import pytest

import tracer.numpy as tnp
from tracer import config, jit
from tracer.runtime.system import spans
from tracer.runtime.system.screen import screen


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_compilations_are_logged_by_jaxs_name(caplog: pytest.LogCaptureFixture) -> None:
    def scaled(x: Any) -> Any:
        return tnp.sin(x) * 3.25

    with config.using(log_compiles=True), caplog.at_level(logging.WARNING, "tracer"):
        jit(scaled)(1.0)
    traced, compiled = [record.getMessage() for record in caplog.records]
    assert traced.startswith("traced scaled at test_spans.py:")
    assert compiled.startswith("compiled scaled at test_spans.py:")
    assert "machine code" in compiled
    jit(scaled)(2.0)
    assert len(caplog.records) == 2


def test_work_that_takes_long_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with spans.working("compile", "f", None, patience=0.05) as work:
        work.at("loops")
        time.sleep(0.5)
    assert "\r\x1b[Ktracer: compiling f: loops, 0 s" in terminal.getvalue()
    assert terminal.getvalue().endswith("ms\n")
    before = terminal.getvalue()
    with spans.working("compile", "f", None):
        pass
    assert terminal.getvalue() == before


def test_nobody_is_told_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", StringIO())
    assert screen() is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert screen() is not None
    with config.using(show_progress=False):
        assert screen() is None
