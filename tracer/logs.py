"""Progress and records of training: `progress` shows where a loop is, `Log` writes measured values.

>>> import tempfile
>>> from tracer import logs
>>> with tempfile.TemporaryDirectory() as folder:
...     log = logs.Log(folder)
...     for step in range(1, 5):
...         log.add(loss=1.0 * step)
...         if step % 2 == 0:
...             log.write(step)
...     [(row["step"], row["loss"]) for row in log.rows]
[(2, 1.5), (4, 3.5)]
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.trace.source import here

T = TypeVar("T")

_PAUSE: Final = 0.1  # seconds between two updates of a terminal's line
_PARTS: Final = 10  # lines of a whole run that is no terminal's
_running: list[_Progress] = []


def progress(iterable: Iterable[T], total: int | None = None, *, file: TextIO | None = None) -> Iterator[T]:
    """Iterate over `iterable`, and show how far it is, the speed, and the values that `Log.add` was given.

    total: the number of elements of the whole run; by default the iterable's length, of all epochs of a loader. A
    loader that goes on after `seek` counts from where it is, and shows its epoch and examples a second. On a terminal
    one line is rewritten, elsewhere ten lines are written in all, in notebooks the output is. file: where to, by
    default the standard error. Values are read ten times a second at most, so the loop does not wait for them.

    >>> import io, sys
    >>> from tracer import logs
    >>> sum(logs.progress([1, 2, 3], file=io.StringIO()))
    6
    """
    length = getattr(iterable, "__len__", None)
    epochs = getattr(iterable, "epochs", 1)
    if total is None and length is not None and isinstance(epochs, int):
        total = length() * epochs
    shown = _Progress(total, iterable, sys.stderr if file is None else file)
    _running.append(shown)
    try:
        for item in iterable:
            yield item
            shown.step()
    finally:
        _running.remove(shown)
        shown.end()


class _Progress:
    def __init__(self, total: int | None, iterable: Any, file: TextIO) -> None:
        self.total, self.file, self._iterable = total, file, iterable
        state, length = self._state(), getattr(iterable, "__len__", None)
        self.done = state["epoch"] * length() + state["batch"] if state and length is not None else 0
        self._size = getattr(iterable, "batch_size", None)
        self.values: dict[str, Any] = {}
        self._start, self._first, self._begun, self._shown = time.perf_counter(), 0.0, self.done, 0.0
        self._is_terminal, self._display = file.isatty(), _display()

    def _state(self) -> dict[str, int] | None:
        """Return a loader's position; None of other iterables."""
        state = getattr(self._iterable, "state", None)
        return state if isinstance(state, dict) and {"epoch", "batch"} <= set(state) else None

    def step(self) -> None:
        self.done += 1
        now = time.perf_counter()
        if self.done == self._begun + 1:
            self._first = now - self._start
        if self._is_terminal or self._display is not None:
            due = now - self._shown >= _PAUSE
        else:
            due = self.total is not None and self.done * _PARTS // self.total > (self.done - 1) * _PARTS // self.total
        if due:
            self._shown = now
            self._show(now)

    def _show(self, now: float) -> None:
        text = self.text(now - self._start)
        if self._display is not None:
            self._display.update({"text/plain": text}, raw=True)
        elif self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=self.file, flush=True)
        else:
            print(text, file=self.file, flush=True)

    def text(self, seconds: float) -> str:
        """Return the line: the place, epoch, values, speed, the time that is left, and the first step's time."""
        parts = [f"{self.done}/{self.total}" if self.total else str(self.done)]
        if state := self._state():
            parts.append(f"epoch {state['epoch'] - (state['batch'] == 0 < self.done)}")  # of the last batch
        parts += [f"{name} {_number(value)}" for name, value in self.values.items()]
        steps, later = self.done - self._begun - 1, seconds - self._first
        if steps > 0 and later > 0:
            parts.append(
                f"{_number(self._size * steps / later)} examples/s" if self._size else f"{steps / later:.3g} steps/s"
            )
            if self.total:
                left = int((self.total - self.done) * later / steps)
                parts.append(f"left {left // 60}:{left % 60:02}")
        parts.append(f"(first step {self._first:.2g} s)")
        return "  ".join(parts)

    def end(self) -> None:
        if self._is_terminal and self._shown:
            self._show(time.perf_counter())
            print(file=self.file)


def _display() -> Any:
    """Return a display of a notebook that can be rewritten; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return sys.modules["IPython.display"].display({"text/plain": ""}, raw=True, display_id=True)


def _number(value: Any) -> str:
    return f"{float(value):.4g}"


class Log:
    """Record of a run: lines of JSON in a file, one for each `write`.

    folder: holds the file `log.jsonl`, which is continued. A run that was restored to an earlier step cuts the lines
    from its first `write` on.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.path = Path(folder) / "log.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._added: dict[str, list[Any]] = {}
        self._is_cut = False
        self._start = time.time()

    def __repr__(self) -> str:
        return f"Log({str(self.path)!r}, {len(self.rows)} rows)"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the file. A last line that a killed process left unfinished is left out."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def add(self, **values: Any) -> None:
        """Note values of one step: `progress` shows the last, and `write` records their means."""
        for name, value in values.items():
            self._added.setdefault(name, []).append(value)
        if _running:
            _running[-1].values.update(values)

    def write(self, step: Any, **values: Any) -> None:
        """Append a row: the step, the means of values added since the last row, and `values`."""
        number = int(step)
        means = {name: float(np.mean([float(x) for x in added])) for name, added in self._added.items()}
        given = {name: float(value) for name, value in values.items()}
        row = {"step": number, **means, **given}
        self._added.clear()
        if not self._is_cut:
            self._cut(number)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "seconds": round(time.time() - self._start, 3)}) + "\n")
        if _running:
            _running[-1].values.update(given)  # numbers: arrays of a state are donated later

    def _cut(self, step: int) -> None:
        """Drop the rows from `step` on, and an unfinished last line."""
        self._is_cut = True
        if not self.path.exists():
            return
        kept = "".join(json.dumps(row) + "\n" for row in self.rows if row["step"] < step)
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(kept, encoding="utf-8")
        os.replace(temporary, self.path)

    def plot(self, *names: str, path: str | PathLike[str] | None = None) -> Path:
        """Draw values over the steps, one below the other, and return the picture's path: `run.svg` in the folder.

        Raises ArgumentError for values that no row has, and ImportError without matplotlib.
        """
        rows = self.rows
        for name in names:
            if not any(name in row for row in rows):
                known = sorted({key for row in rows for key in row} - {"step"})
                raise ArgumentError(message(f"plot{here()}: no row has {name!r}", f"there are {', '.join(known)}"))
        try:
            figures = import_module("matplotlib.figure")
        except ImportError:
            raise ImportError(message(f"plot{here()} draws by matplotlib", help="pip install matplotlib")) from None
        figure = figures.Figure(figsize=(6, 2.2 * len(names)), layout="constrained")
        axes = figure.subplots(len(names), sharex=True, squeeze=False)[:, 0]
        for axis, name in zip(axes, names, strict=True):
            points = [(row["step"], row[name]) for row in rows if name in row]
            axis.plot(*zip(*points, strict=True))
            axis.set_ylabel(name)
        axes[-1].set_xlabel("step")
        target = self.path.with_name("run.svg") if path is None else Path(path)
        figure.savefig(target)
        return target
