"""Screen: a line that is rewritten on a terminal or in a notebook, where somebody watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from tracer.settings import config

_EVERY: Final = 0.1  # seconds between two lines


class Screen:
    """One line of text that is rewritten. kernel: whether it is a notebook's output, else the standard error."""

    def __init__(self, kernel: bool) -> None:
        self._kernel = kernel
        self._display: Any = None

    def show(self, text: str) -> None:
        """Rewrite the line."""
        if not self._kernel:
            _write(f"\r\x1b[K{text}")
        elif self._display is None:
            display = sys.modules["IPython.display"].display
            self._display = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._display.update({"text/plain": text}, raw=True)

    def end(self, text: str = "") -> None:
        """Leave a last line; on a terminal, without a text, none."""
        if self._kernel:
            self.show(text)
        else:
            _write(f"\r\x1b[K{text}\n" if text else "\r\x1b[K")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def screen() -> Screen | None:
    """Return the screen that somebody watches: a notebook, or the standard error of a terminal; None elsewhere."""
    if not config.show_progress:
        return None
    if in_notebook():
        return Screen(kernel=True)
    return Screen(kernel=False) if sys.stderr is not None and sys.stderr.isatty() else None


def in_notebook() -> bool:
    """Whether the process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel") and "IPython.display" in sys.modules


class Ticker(threading.Thread):
    """Thread that calls a function ten times a second until `stop`, from a delay on. Python's exit does not wait."""

    def __init__(self, tick: Callable[[], None], delay: float = 0.0, every: float = _EVERY) -> None:
        super().__init__(daemon=True, name="tracer-progress")
        self._tick, self._delay, self._every = tick, delay, every
        self._over = threading.Event()

    def run(self) -> None:
        """Tick until the end."""
        wait = self._delay
        while not self._over.wait(wait):
            self._tick()
            wait = self._every

    def stop(self) -> None:
        """End the thread, after a tick that is under way."""
        self._over.set()
        self.join()
