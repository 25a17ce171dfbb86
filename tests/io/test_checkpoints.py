"""Folders of checkpoints: what is kept, what is restored, errors of the thread, and processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer.io.checkpoints as module
import tracer.numpy as tnp
from tracer import errors, io, jit, random

LIKE = {"w": tnp.zeros(4), "step": 0}


def state(step: int) -> Any:
    return {"w": tnp.arange(4.0) + step, "step": step}


def test_the_last_the_rounds_and_the_best_are_kept(tmp_path: Path) -> None:
    saves = io.Checkpoints(tmp_path, keep=2, every=10, best="-loss")
    for step in range(1, 26):
        saves.save(step, state(step), loss=abs(step - 13) if step != 14 else float("nan"))
    assert saves.steps() == [10, 13, 20, 24, 25]
    assert saves.latest() == 25
    assert saves.restore(LIKE)["step"] == 25
    assert saves.restore(LIKE, step=13)["w"].tolist() == [13, 14, 15, 16]
    assert io.header(tmp_path / "step-000000013.safetensors").meta == {"step": 13, "metrics": {"loss": 0.0}}
    assert repr(saves) == f"Checkpoints({str(tmp_path)!r}, steps=[10, 13, 20, 24, 25])"
    assert io.Checkpoints(tmp_path / "new").restore(LIKE) is None


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.CheckpointError, match=r"^Checkpoints at .*py:\d+ cannot make .*/file/runs\n  \[Errno"):
        io.Checkpoints(tmp_path / "file" / "runs")


def test_what_is_donated_after_save_is_saved_as_it_was(tmp_path: Path) -> None:
    saves, values = io.Checkpoints(tmp_path, keep=9), {"w": tnp.arange(4.0), "key": random.key(1)}
    step = jit(lambda s: {"w": s["w"] * 2 + 1, "key": random.fold_in(s["key"], 1)}, donate_argnums=0)
    expected = []
    for number in range(5):
        expected.append(np.array(values["w"]))
        saves.save(number, values)
        values = step(values)
    for number in range(5):
        np.testing.assert_array_equal(
            saves.restore({"w": LIKE["w"], "key": random.key(0)}, number)["w"], expected[number]
        )


def test_damaged_files_are_passed_over(tmp_path: Path) -> None:
    saves = io.Checkpoints(tmp_path)
    for step in (1, 2):
        saves.save(step, state(step))
    saves.wait()
    file = tmp_path / "step-000000002.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="the step before it is restored"):
        assert saves.restore(LIKE)["step"] == 1
    with pytest.raises(errors.CheckpointError, match="is damaged"):
        saves.restore(LIKE, step=2)


def test_errors_of_the_thread_are_raised_by_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saves = io.Checkpoints(tmp_path)
    monkeypatch.setattr(module, "save", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    saves.save(1, state(1))
    with pytest.raises(OSError, match="disk full"):
        saves.wait()
    saves.wait()
    monkeypatch.undo()
    saves.save(2, state(2))
    assert saves.steps() == [2]


def test_arguments_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match="keeps at least one step"):
        io.Checkpoints(tmp_path, keep=0)
    with pytest.raises(errors.ArgumentError, match="the best step is found by 'loss'"):
        io.Checkpoints(tmp_path, best="loss").save(1, state(1))


PROGRAM = """
import sys, numpy as np, tracer.numpy as tnp
from tracer import io
saves = io.Checkpoints(sys.argv[1], keep=3)
for step in range(1000):
    saves.save(step, {"w": tnp.full(50_000, step), "step": step})
    print(step, flush=True)
"""


@pytest.mark.parametrize("after", [1, 4])
def test_a_killed_process_leaves_whole_files(after: int, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == after:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    process.wait()
    found = io.Checkpoints(tmp_path).restore({"w": tnp.full(50_000, 0), "step": 0})
    assert found["step"] >= after - 1
    np.testing.assert_array_equal(found["w"], np.full(50_000, found["step"]))


def test_a_process_that_ends_waits_for_its_thread(tmp_path: Path) -> None:
    program = PROGRAM.replace("range(1000)", "range(2)")
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)
    assert io.Checkpoints(tmp_path).steps() == [0, 1]
    assert not [thread for thread in threading.enumerate() if thread.name == "tracer.io"]
