"""The debugger that `debug.breakpoint` opens: the frames of the user's code, with the values that ran through them."""

from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
from collections.abc import Sequence
from typing import IO, Any, NamedTuple


class Frame(NamedTuple):
    """A place in the user's code, with its names."""

    file: str
    line: int
    function: str
    locals: dict[str, Any]
    globals: dict[str, Any]

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}({self.line}){self.function}()" + (f"\n-> {text}" if text else "")


class Debugger(cmd.Cmd):
    """Reads commands, by pdb's names: p, pp, locals, where, up, down, list, continue, quit; else an expression.

    frames: the innermost first. Ends by `continue` or the end of the input; `quit` raises `bdb.BdbQuit`.
    """

    prompt = "(tracer) "

    def __init__(self, frames: Sequence[Frame], stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.at = 0

    @property
    def frame(self) -> Frame:
        """The frame whose names expressions mean."""
        return self.frames[self.at]

    def run(self) -> None:
        """Read commands until one goes on."""
        self._write(f"> {self.frame}")
        self.cmdloop()

    def _write(self, text: str) -> None:
        print(text, file=self.stdout)  # it is what it is for

    def _value(self, expression: str) -> Any:
        return eval(expression, self.frame.globals, self.frame.locals)

    def _show(self, expression: str, form: Any) -> None:
        try:
            self._write(form(self._value(expression)))
        except Exception as error:  # whatever the expression raises is the user's to see
            self._write(f"*** {type(error).__name__}: {error}")

    def do_p(self, expression: str) -> None:
        """p expression: its value."""
        self._show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp expression: its value, on several lines where it is long."""
        self._show(expression, pprint.pformat)

    def default(self, line: str) -> None:
        """Anything else is an expression."""
        self._show(line, repr)

    def emptyline(self) -> bool:
        """Nothing is nothing."""
        return False

    def do_locals(self, _: str) -> None:
        """locals: every name of the frame with its value."""
        for name, value in self.frame.locals.items():
            self._write(f"{name} = {value!r}")

    def do_where(self, _: str) -> None:
        """where: all frames, the outermost first; > marks the current one."""
        for number, frame in reversed(list(enumerate(self.frames))):
            self._write(f"{'>' if number == self.at else ' '} {frame}")

    do_w = do_bt = do_where

    def do_list(self, _: str) -> None:
        """list: the lines around the current one."""
        for number in range(max(1, self.frame.line - 5), self.frame.line + 6):
            text = linecache.getline(self.frame.file, number)
            if text:
                self._write(f"{number:4d} {'->' if number == self.frame.line else '  '} {text.rstrip()}")

    do_l = do_list

    def _move(self, step: int, end: str) -> None:
        if not 0 <= self.at + step < len(self.frames):
            self._write(f"*** {end} frame")
            return
        self.at += step
        self._write(f"> {self.frame}")

    def do_up(self, _: str) -> None:
        """up: to the frame that called this one."""
        self._move(1, "Oldest")

    def do_down(self, _: str) -> None:
        """down: to the frame that this one called."""
        self._move(-1, "Newest")

    do_u, do_d = do_up, do_down

    def do_continue(self, _: str) -> bool:
        """continue: let the program run on."""
        return True

    do_c = do_cont = do_continue

    def do_EOF(self, _: str) -> bool:  # noqa: N802  # the end of the input, by cmd's name
        """Let the program run on."""
        return True

    def do_quit(self, _: str) -> bool:
        """quit: stop the program."""
        raise bdb.BdbQuit

    do_q = do_exit = do_quit
