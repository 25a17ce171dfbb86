"""The training example learns, and ends with the same bits where it was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
