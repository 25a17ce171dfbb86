"""Jitted programs of this tree beside those of another: texts that are equal, and times in alternating rounds.

    git worktree add ../before COMMIT
    python benchmarks/two_trees.py ../before                          all rows
    python benchmarks/two_trees.py ../before --rows softmax sort --rounds 5

Each row of `compare.py` runs in one process a tree, by turns. A ratio is the other tree's time by this one's, the
median of the rounds: above 1, this tree is faster. `equal text` marks rows whose LLVM text is the same to the letter,
so that a ratio other than 1 is the machine's noise, or the call's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers.catalogue import ROWS
from peers.statistic import geometric_mean

HERE = Path(__file__).resolve().parent
SECONDS = 0.12  # of one measurement
_TEXTS = """
import hashlib, json, sys
from importlib import import_module
from importlib.util import find_spec
from peers.catalogue import ROWS
from peers.worker import make_call, wake, world
found = [name for name in sys.argv[1].split() if find_spec(name.rpartition(".")[0]) and find_spec(name)]
objects = import_module(found[0])
seen, get = [], objects.ObjectCache.get
objects.ObjectCache.get = lambda self, text, opt=2, **more: seen.append((opt, text)) or get(self, text, opt, **more)
tracer = world("tracer")
wake(tracer)
for row in ROWS:
    if row.name in json.loads(sys.argv[2]):
        seen.clear()
        make_call(tracer, row, row.arguments())()
        print(json.dumps([row.name, hashlib.sha256(repr(seen).encode()).hexdigest()]), flush=True)
"""
_CACHES = "tracer.runtime.native.object_cache tracer.runtime.objects"  # where trees have the cache of object code


class Tree:
    """Tree, and the process that measures it."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(map(str, (folder / "benchmarks", folder)))
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": path, "TRACER_CACHE_DIR": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "peers.worker", "tracer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=self.environment, cwd=folder,
        )  # fmt: skip

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request to the process, and return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def texts(self, rows: list[str]) -> dict[str, str]:
        """Return the digest of each row's LLVM text."""
        command = [sys.executable, "-c", _TEXTS, _CACHES, json.dumps(rows)]
        found = subprocess.run(
            command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True
        )
        return dict(json.loads(line) for line in found.stdout.splitlines() if line.startswith("["))


def ratio(name: str, trees: tuple[Tree, Tree], rounds: int, answer: str) -> tuple[float, float] | str:
    """Return the other tree's time by this one's, and this one's time in seconds; or why there is none."""
    for tree in trees:
        reply = tree.ask(do="prepare", row=name, answer=answer)
        if "error" in reply:
            return f"{tree.folder.name}: {reply['error']}"
    taken: dict[Tree, list[float]] = {tree: [] for tree in trees}
    for number in range(rounds):
        for tree in trees if number % 2 else reversed(trees):
            taken[tree].append(tree.ask(do="time", seconds=SECONDS)["seconds"])
    other, this = trees
    return statistics.median(a / b for a, b in zip(taken[other], taken[this], strict=True)), min(taken[this])


def main() -> None:
    """Print a line for each row, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the other tree")
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of the rows' names")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    trees = Tree(asked.other.resolve()), Tree(HERE.parent)
    names = [row.name for row in ROWS if row.name.startswith(tuple(asked.rows))]
    before, now = (tree.texts(names) for tree in trees)
    found = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            measured = ratio(name, trees, asked.rounds, os.path.join(folder, "answer.npz"))
        if isinstance(measured, str):
            print(f"{name:45} {measured}")
            continue
        found.append(measured[0])
        note = "equal text" if before.get(name) == now.get(name) is not None else ""
        print(f"{name:45} {measured[0]:6.3f} {1e6 * measured[1]:14.2f} us  {note}", flush=True)
    equal = sum(before.get(name) == now.get(name) is not None for name in names)
    print(f"{len(found)} rows, {equal} of equal text; geometric mean {geometric_mean(found):.3f}")


if __name__ == "__main__":
    main()
