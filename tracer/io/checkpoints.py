"""`Checkpoints`: a folder of saved states of a run, written by a thread."""

from __future__ import annotations

import atexit
import re
import threading
import weakref
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tracer import random
from tracer.errors import ArgumentError, CheckpointError, message
from tracer.io.saving import header, load, save
from tracer.ir.types import ArrayType
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.source import here, warn

_FILE = re.compile(r"step-(\d+)\.safetensors")


class Checkpoints:
    """States of a run in a folder, one file a step.

    keep: how many of the last are kept. every: steps that are multiples of it are kept, too. best: the name of a metric
    whose best step is kept, too: the largest, or with a minus before the name the smallest.

    `save` copies the arrays and returns; a thread writes. An error of it is raised by the next call, and the thread
    ends before the process does.

    >>> import tempfile
    >>> from tracer import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saves = io.Checkpoints(folder, keep=2)
    ...     for step in range(4):
    ...         saves.save(step, {"w": tnp.full(2, step)}, loss=1.0 / (1 + step))
    ...     saves.steps(), saves.restore({"w": tnp.zeros(2, int)})
    ([2, 3], {'w': Array([3, 3], i64*)})
    """

    def __init__(
        self, folder: str | PathLike[str], *, keep: int = 3, every: int | None = None, best: str | None = None
    ) -> None:
        if keep < 1 or (every is not None and every < 1):
            raise ArgumentError(
                message(f"Checkpoints{here()} keeps at least one step", f"got keep={keep!r}, every={every!r}")
            )
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(message(f"Checkpoints{here()} cannot make {folder}", str(error))) from None
        self._keep, self._every, self._best = keep, every, best
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        waiting = weakref.WeakMethod(self.wait)
        atexit.register(lambda: (wait := waiting()) and wait())

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}, steps={self.steps()})"

    def steps(self) -> list[int]:
        """Return the steps that are there, in order."""
        self._join()
        return self._found()

    def latest(self) -> int | None:
        """Return the last step that is there, or None."""
        return max(self.steps(), default=None)

    def save(self, step: int, tree: Any, **metrics: Any) -> None:
        """Save a tree as the state after `step`. metrics: numbers, for `best` and for `io.header`."""
        self.wait()
        if self._best is not None and self._best.lstrip("-") not in metrics:
            raise ArgumentError(
                message(
                    f"save{here()}: the best step is found by {self._best.lstrip('-')!r}",
                    f"got {', '.join(metrics) or 'no metrics'}",
                    help=f"save(step, tree, {self._best.lstrip('-')}=value)",
                )
            )
        copy = trees.tree_map(_copied, tree)  # the arrays may be donated while the thread writes
        numbers = {name: float(value) for name, value in metrics.items()}
        self._thread = threading.Thread(target=self._write, args=(int(step), copy, numbers), name="tracer.io")
        self._thread.start()

    def wait(self) -> None:
        """Wait until everything is written. Raises the writing thread's error."""
        self._join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def restore(self, like: Any, step: int | None = None) -> Any:
        """Return the last saved tree, or a given step's; None where there is none.

        like: see `io.load`. A damaged file is passed over, with a warning, unless its step was asked for.
        """
        self.wait()
        if step is not None:
            return load(self._file(step), like)
        for number in reversed(self._found()):
            try:
                return load(self._file(number), like)
            except CheckpointError as error:
                if "is damaged" not in str(error):
                    raise
                warn(f"{error}\n  the step before it is restored")
        return None

    def _file(self, step: int) -> Path:
        return self.folder / f"step-{step:09d}.safetensors"

    def _found(self) -> list[int]:
        matches = (_FILE.fullmatch(file.name) for file in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(self, step: int, tree: Any, metrics: dict[str, float]) -> None:
        try:
            save(self._file(step), tree, meta={"step": step, "metrics": metrics})
            for old in self._superfluous():
                self._file(old).unlink(missing_ok=True)
        except BaseException as error:
            self._error = error

    def _superfluous(self) -> list[int]:
        steps = self._found()
        kept = set(steps[-self._keep :])
        if self._every is not None:
            kept |= {step for step in steps if step % self._every == 0}
        if self._best is not None and steps:
            kept.add(max(steps, key=self._score))
        return [step for step in steps if step not in kept]

    def _score(self, step: int) -> float:
        assert self._best is not None
        try:
            value = header(self._file(step)).meta["metrics"][self._best.lstrip("-")]
        except (CheckpointError, KeyError):
            return float("-inf")
        score = -value if self._best.startswith("-") else value
        return float("-inf") if np.isnan(score) else score


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    if not isinstance(leaf, Array):
        return leaf
    if not isinstance(leaf.type, ArrayType):
        return random.wrap_key_data(np.array(random.key_data(leaf)))
    return concrete(np.array(leaf), leaf.weak_type)
