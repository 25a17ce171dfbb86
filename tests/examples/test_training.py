"""The training example learns, and ends with the same bits where it was interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracer import io, logs, tree
from tracer.examples import training


def digest(run: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in tree.leaves((run.model, run.opt))]


def test_an_interrupted_run_ends_with_the_bits_of_a_whole_one(tmp_path: Path) -> None:
    whole, best = training.train(str(tmp_path / "whole"), epochs=3)
    assert best > 0.93
    training.train(str(tmp_path / "parts"), epochs=3, stop_at=30)
    assert io.Checkpoints(tmp_path / "parts").steps() == [22]
    again, _ = training.train(str(tmp_path / "parts"), epochs=3)
    assert int(again.step) == int(whole.step) == 66
    assert digest(again) == digest(whole)
    one, two = (logs.Log(tmp_path / name).rows for name in ("whole", "parts"))
    assert [{**row, "seconds": 0} for row in one] == [{**row, "seconds": 0} for row in two]


def test_the_perceptron_learns_and_depends_on_the_seed(tmp_path: Path) -> None:
    (one, best), (two, _) = (training.train(str(tmp_path / str(n)), model="mlp", epochs=4, seed=n) for n in range(2))
    assert best > 0.8
    assert digest(one) != digest(two)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the run is killed by a signal")
@pytest.mark.parametrize("delay", [0.0, 0.021])
def test_a_run_that_is_killed_ends_with_the_bits_of_a_whole_one(delay: float, tmp_path: Path) -> None:
    whole, _ = training.train(str(tmp_path / "whole"), model="mlp", epochs=30)
    code = "import sys; from tracer.examples import training; training.train(sys.argv[1], model='mlp', epochs=30)"
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob("*.safetensors")):
        time.sleep(0.002)
    time.sleep(delay)  # between one step of some 0.1 ms and another, or while it saves
    process.kill()
    process.wait()
    again, _ = training.train(str(folder), model="mlp", epochs=30)
    assert digest(again) == digest(whole)


def test_a_run_that_has_stopped_stays_as_it_is(tmp_path: Path) -> None:
    whole, best = training.train(str(tmp_path), model="mlp", epochs=60, patience=1)
    assert int(whole.step) < 60 * 22
    again, same = training.train(str(tmp_path), model="mlp", epochs=60, patience=1)
    assert (digest(again), same) == (digest(whole), best)
