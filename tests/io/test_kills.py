"""Processes that die at any write, also halfway: the folder holds the old state or the new one, whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tracer import io

PROGRAM = '''
import builtins, os, sys
import numpy as np
from tracer import io
from tracer.io import safetensors

folder, keeps = sys.argv[1], sys.argv[2] == "checkpoints"

def tree(n):
    return {"a": np.full(3000, n), "b": np.full((2, 3), n, "int8"), "n": n}

class Deadly:
    """File that ends the process at the operation `left`, after half of a write."""
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *args):
        self.file.close()
    def write(self, data):
        die(lambda: (self.file.write(bytes(data)[: len(bytes(data)) // 2]), self.file.flush()))
        self.file.write(data)
    def __getattr__(self, name):
        return getattr(self.file, name)

def die(before=lambda: None):
    global left
    left -= 1
    if left < 0:
        before()
        os._exit(9)

def deadly(function):
    def run(*args):
        die()
        result = function(*args)
        die()
        return result
    return run

def child(n):
    global left
    left = n
    safetensors.open = lambda *args: Deadly(builtins.open(*args)) if "w" in args[1] else builtins.open(*args)
    os.fsync, os.replace, os.unlink = map(deadly, (os.fsync, os.replace, os.unlink))
    if keeps:
        saves = io.Checkpoints(folder, keep=1)
        saves._write(2, tree(2), {})
        os._exit(0 if saves._error is None else 1)
    io.save(folder + "/x", tree(2))
    os._exit(0)

if keeps:
    saves = io.Checkpoints(folder, keep=1)
    saves.save(1, tree(1))
    saves.wait()
else:
    io.save(folder + "/x", tree(1))
for n in range(1000):
    process = os.fork()
    if not process:
        child(n)
    status = os.waitpid(process, 0)[1]
    if keeps:
        found = io.Checkpoints(folder, keep=1).restore(tree(0))
    else:
        found = io.load(folder + "/x", tree(0))
    assert (found["a"] == found["n"]).all() and (found["b"] == found["n"]).all() and found["n"] in (1, 2)
    print(n, os.waitstatus_to_exitcode(status), found["n"], flush=True)
    if os.waitstatus_to_exitcode(status) == 0:
        break
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are of forked processes")
@pytest.mark.parametrize("kind", ["save", "checkpoints"])
def test_a_kill_at_every_write_leaves_the_old_state_or_the_new(kind: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path), kind], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert [line[1] for line in lines] == ["9"] * (len(lines) - 1) + ["0"]
    states = [line[2] for line in lines]
    assert states == sorted(states)  # the old state, and from the rename on the new one
    assert states.count("1") >= 7
    assert states.count("2") >= 3
    if kind == "checkpoints":
        assert io.Checkpoints(tmp_path).steps() == [2]
        np.testing.assert_array_equal(io.load(tmp_path / "step-000000002.safetensors")["a"], np.full(3000, 2))
