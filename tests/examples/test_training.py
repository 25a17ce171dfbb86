"""The training example learns, and ends with the same bits where it was interrupted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracer import io, logs, tree
from tracer.examples import training

THOROUGH = os.environ.get("TRACER_HYPOTHESIS_PROFILE") == "thorough"


def digest(run: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in tree.leaves((run.model, run.opt))]


def test_an_interrupted_run_ends_with_the_bits_of_a_whole_one(tmp_path: Path, seed: int) -> None:
    whole, best = training.train(str(tmp_path / "whole"), epochs=3, seed=seed)
    assert best > 0.93
    training.train(str(tmp_path / "parts"), epochs=3, stop_at=30, seed=seed)
    assert io.Checkpoints(tmp_path / "parts").steps() == [22]
    again, _ = training.train(str(tmp_path / "parts"), epochs=3, seed=seed)
    assert int(again.step) == int(whole.step) == 66
    assert digest(again) == digest(whole)
    one, two = (logs.Log(tmp_path / name).rows for name in ("whole", "parts"))
    assert [{**row, "seconds": 0} for row in one] == [{**row, "seconds": 0} for row in two]


def test_the_perceptron_learns_and_depends_on_the_seed(tmp_path: Path) -> None:
    (one, best), (two, _) = (training.train(str(tmp_path / str(n)), model="mlp", epochs=4, seed=n) for n in range(2))
    assert best > 0.8
    assert digest(one) != digest(two)


KILLED = """
import hashlib, os, random, signal, sys
import numpy as np
from tracer import logs, tree
from tracer.examples import training

folder, model, epochs, seed, drawn = *sys.argv[1:3], *map(int, sys.argv[3:])
draw, last = random.Random(seed), 22 * epochs

def trained(name):
    run, best = training.train(f"{folder}/{name}", model=model, epochs=epochs, seed=seed)
    leaves = tree.leaves((run.model, run.opt, run.step))
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in leaves)).hexdigest(), best, int(run.step)

def killed_after(steps, name):
    if not (child := os.fork()):
        def progress(loader, total):
            for count, batch in enumerate(loader):
                if count == steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield batch
        logs.progress = progress
        training.train(f"{folder}/{name}", model=model, epochs=epochs, seed=seed)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

whole = trained("whole")
places = sorted({0, 22, last - 1, *draw.sample(range(1, last - 1), drawn)})  # an epoch has 22, and saves by a thread
for place in places:
    killed_after(place, place)
    if place % 2:  # killed again where it went on
        killed_after(draw.randrange(22), place)
    assert trained(place) == whole, place
print(*whole)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are of forked processes")
@pytest.mark.parametrize(("model", "epochs", "drawn"), [("mlp", 4, 20), ("cnn", 3, 9)] if THOROUGH else [("mlp", 4, 2)])
def test_a_run_that_is_killed_ends_with_the_bits_of_a_whole_one(
    model: str, epochs: int, drawn: int, tmp_path: Path, seed: int
) -> None:
    arguments = [str(tmp_path), model, str(epochs), str(seed), str(drawn)]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", KILLED, *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    digest_there, best, steps = ran.stdout.split()
    assert int(steps) == 22 * epochs
    assert float(best) > 0.7
    again, _ = training.train(str(tmp_path / "here"), model=model, epochs=epochs, seed=seed)  # in another process
    leaves = tree.leaves((again.model, again.opt, again.step))
    assert hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in leaves)).hexdigest() == digest_there


def test_a_run_that_has_stopped_stays_as_it_is(tmp_path: Path) -> None:
    whole, best = training.train(str(tmp_path), model="mlp", epochs=60, patience=1)
    assert int(whole.step) < 60 * 22
    again, same = training.train(str(tmp_path), model="mlp", epochs=60, patience=1)
    assert (digest(again), same) == (digest(whole), best)
