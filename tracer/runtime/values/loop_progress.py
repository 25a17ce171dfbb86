"""Progress of compiled loops: a bar drawn by a thread from the count that the loop leaves in a shared word."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
import warnings
from collections import OrderedDict
from importlib import import_module
from typing import Any, Final

from tracer.errors import ArgumentError, message
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.control.shared_words import Word, count_in
from tracer.runtime.system import run_time_errors
from tracer.runtime.system.screen import Screen, Ticker, screen
from tracer.trace.convert import as_array
from tracer.trace.source import here, user_source

_MAX: Final = 256  # bars that are kept for later calls
_WIDTH: Final = 24  # characters of a plain bar
_bars: OrderedDict[Any, Bar] = OrderedDict()


def bar_of(text: Any, caller: str) -> Bar:
    """Return the bar of the loop on the user's line: calls that come again have the same program.

    Raises ArgumentError unless the text is a string. caller: names the loop in errors.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            message(f"{caller}{here()}: progress is the text beside the bar", f"got {text!r}", help='progress="steps"')
        )
    key = (text, user_source())
    found = _bars.pop(key, None)
    _bars[key] = found = Bar(text) if found is None else found
    if len(_bars) > _MAX:
        _bars.popitem(last=False)
    return found


class Bar:
    """Bar of one loop. It is drawn ten times a second at most, by tqdm if that is installed, where somebody watches."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._word = Word()
        self._lock = threading.Lock()
        self._drawn: _Drawn | None = None
        self._begin = HostFunction(self._opened, "progress")
        self._end = HostFunction(self._closed, "progress")

    def begin(self, total: Any = None) -> None:
        """Record that the bar opens, before the loop. total: the number of iterations, an integer or array []."""
        operands = [] if total is None else [as_array(total)]
        callback(self._begin, operands, (), ordered=True, vmap_method="sequential")

    def count(self) -> None:
        """Record an iteration, in the loop's body."""
        count_in(self._word)

    def end(self) -> None:
        """Record that the bar closes, behind the loop."""
        callback(self._end, (), (), ordered=True, vmap_method="sequential")

    def _opened(self, total: Any = None) -> tuple[()]:
        limit = None if total is None else int(total)
        with self._lock:
            if self._drawn is not None and self._word.value == 0:  # lanes with lengths of their own
                self._drawn.limit(limit)
                return ()
            self._finish()
            self._word.clear()
            shown = screen()
            if shown is not None:
                self._drawn = _Drawn(self.text, limit, self._word, shown)
                run_time_errors.on_failure[self] = threading.get_ident()
        return ()

    def _closed(self) -> tuple[()]:
        with self._lock:
            self._finish()
        return ()

    def __call__(self) -> None:
        """End the bar of a call that failed."""
        self._closed()

    def _finish(self) -> None:
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            run_time_errors.on_failure.pop(self, None)
            drawn.end()


class _Drawn:
    """Bar on a screen, of a loop that runs."""

    def __init__(self, text: str, total: int | None, word: Word, shown: Screen) -> None:
        self.text, self.total, self._word, self._screen = text, total, word, shown
        self._start, self._at = time.perf_counter(), -1
        self._tqdm = _tqdm(text, total)
        self._ticker = Ticker(self._tick)
        self._ticker.start()

    def limit(self, total: int | None) -> None:
        """Take the largest of the lanes' lengths."""
        if total is not None and self.total is not None and total > self.total:
            self.total = total
            if self._tqdm is not None:
                self._tqdm.total = total

    def _tick(self) -> None:
        at = self._word.value
        if at == self._at:
            return
        if self._tqdm is not None:
            self._tqdm.update(at - max(self._at, 0))
        else:
            self._screen.show(self._line(at))
        self._at = at

    def _line(self, at: int) -> str:
        seconds = time.perf_counter() - self._start
        speed = f"{at / seconds:.3g}/s" if seconds > 0 else ""
        if not self.total:
            return f"{self.text}: {at} [{_clock(seconds)}, {speed}]"
        share = min(at / self.total, 1.0)
        filled = round(share * _WIDTH)
        left = _clock(seconds * (self.total - at) / at) if at else "?"
        bar = f"{'█' * filled}{' ' * (_WIDTH - filled)}"
        return f"{self.text}: {100 * share:3.0f}% |{bar}| {at}/{self.total} [{_clock(seconds)}<{left}, {speed}]"

    def end(self) -> None:
        """Draw the last count, and leave the line."""
        self._ticker.stop()
        self._tick()
        if self._tqdm is not None:
            self._tqdm.close()
        else:
            self._screen.end(self._line(self._word.value))


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def _tqdm(text: str, total: int | None) -> Any:
    """Return a bar of tqdm, in its notebook form in notebooks; None where it is not installed."""
    if "tqdm" not in sys.modules and importlib.util.find_spec("tqdm") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in notebooks without ipywidgets tqdm warns, and writes a bar of text
        auto = import_module("tqdm.auto")
    return auto.tqdm(total=total, desc=text, mininterval=0, file=sys.stderr)
