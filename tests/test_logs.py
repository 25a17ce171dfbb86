"""Progress lines and logs of runs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import data, errors, logs


def test_elsewhere_than_on_terminals_ten_lines_are_written() -> None:
    out = io.StringIO()
    log_values = []
    for x in logs.progress(range(40), file=out):
        log_values.append(x)
    lines = out.getvalue().splitlines()
    assert log_values == list(range(40))
    assert [line.split()[0] for line in lines] == [f"{n}/40" for n in range(4, 41, 4)]
    assert "steps/s  left 0:0" in lines[0]
    assert "(first step" in lines[0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminals_have_one_line_that_shows_what_was_added(tmp_path: Path) -> None:
    out, log = Terminal(), logs.Log(tmp_path)
    loader = data.Loader(np.arange(8), 2, epochs=3).seek({"epoch": 1, "batch": 2})
    for batch in logs.progress(loader, 12, file=out):
        log.add(loss=tnp.asarray(batch).sum())
    assert out.getvalue().startswith("\r\x1b[K7/12  epoch 1  loss 9  ")
    last = out.getvalue().splitlines()[-1].split("\x1b[K")[-1]
    assert last.startswith("12/12  epoch 2  loss 13  ")
    assert " examples/s  left 0:00  (first step " in last
    assert out.getvalue().endswith("\n")


def test_the_length_of_a_loader_is_that_of_all_epochs() -> None:
    out = io.StringIO()
    assert len(list(logs.progress(data.Loader(np.arange(8), 2, epochs=3, prefetch=0), file=out))) == 12
    starts = [line.split("  ")[:2] for line in out.getvalue().splitlines()]
    assert [starts[0], starts[-1]] == [["2/12", "epoch 0"], ["12/12", "epoch 2"]]
    endless = logs.progress(data.Loader(np.arange(8), 2, prefetch=0), file=out)
    assert [len(next(endless)) for _ in range(9)] == [2] * 9


def test_loops_that_are_left_end_their_line() -> None:
    out = Terminal()
    iterator = logs.progress(range(5), file=out)
    next(iterator)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert out.getvalue().endswith("\n")
    assert logs._running == []


def test_rows_hold_means_and_resumed_runs_cut_what_is_later(tmp_path: Path) -> None:
    log = logs.Log(tmp_path)
    for step in range(1, 7):
        log.add(loss=tnp.asarray(float(step)))
        if step % 2 == 0:
            log.write(step, accuracy=step / 10)
    assert [(row["step"], row["loss"], row["accuracy"]) for row in log.rows] == [
        (2, 1.5, 0.2), (4, 3.5, 0.4), (6, 5.5, 0.6),
    ]  # fmt: skip
    with log.path.open("a") as file:
        file.write('{"step": 8, "lo')
    again = logs.Log(tmp_path)
    assert len(again.rows) == 3
    again.write(tnp.asarray(4), accuracy=1.0)
    again.write(6)
    assert [(row["step"], row.get("accuracy")) for row in again.rows] == [(2, 0.2), (4, 1.0), (6, None)]
    assert repr(again) == f"Log({str(tmp_path / 'log.jsonl')!r}, 3 rows)"


def test_plots_show_values_over_steps(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    log = logs.Log(tmp_path)
    for step in range(3):
        log.write(step, loss=step**2, accuracy=0.5)
    picture = log.plot("loss", "accuracy")
    assert picture == tmp_path / "run.svg"
    assert "<svg" in picture.read_text()
    with pytest.raises(errors.ArgumentError, match="no row has 'lost'\n  there are accuracy, loss, seconds"):
        log.plot("lost")
