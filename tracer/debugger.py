"""The debugger of `debug.breakpoint`: frames of the user's code, with the values at run time."""

from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
from collections.abc import Sequence
from typing import IO, Any, NamedTuple


class Frame(NamedTuple):
    """A frame of the user's code, with its names and values."""

    file: str
    line: int
    function: str
    locals: dict[str, Any]
    globals: dict[str, Any]

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}({self.line}){self.function}()" + (f"\n-> {text}" if text else "")


class Debugger(cmd.Cmd):
    """Interpreter of pdb's commands: p, pp, locals, where, up, down, list, continue, quit; else an expression.

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
        """The frame in which expressions are evaluated."""
        return self.frames[self.at]

    def run(self) -> None:
        """Read commands until one continues the program."""
        self._write(f"> {self.frame}")
        self.cmdloop()

    def _write(self, text: str) -> None:
        print(text, file=self.stdout)  # evaluation is the debugger's purpose

    def _value(self, expression: str) -> Any:
        return eval(expression, self.frame.globals, self.frame.locals)

    def _show(self, expression: str, form: Any) -> None:
        try:
            self._write(form(self._value(expression)))
        except Exception as error:  # any error of the expression is the user's to see
            self._write(f"*** {type(error).__name__}: {error}")

    def do_p(self, expression: str) -> None:
        """Print the value of an expression: p expression."""
        self._show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """Pretty-print the value of an expression: pp expression."""
        self._show(expression, pprint.pformat)

    def default(self, line: str) -> None:
        """Evaluate any other command as an expression."""
        self._show(line, repr)

    def emptyline(self) -> bool:
        """Do nothing on an empty line."""
        return False

    def do_locals(self, _: str) -> None:
        """Print every name of the frame with its value: locals."""
        for name, value in self.frame.locals.items():
            self._write(f"{name} = {value!r}")

    def do_where(self, _: str) -> None:
        """Print all frames, the outermost first; > marks the current one: where."""
        for number, frame in reversed(list(enumerate(self.frames))):
            self._write(f"{'>' if number == self.at else ' '} {frame}")

    do_w = do_bt = do_where

    def do_list(self, _: str) -> None:
        """Print the lines around the current one: list."""
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
        """Go to the caller's frame: up."""
        self._move(1, "Oldest")

    def do_down(self, _: str) -> None:
        """Go to the callee's frame: down."""
        self._move(-1, "Newest")

    do_u, do_d = do_up, do_down

    def do_continue(self, _: str) -> bool:
        """Let the program continue: continue."""
        return True

    do_c = do_cont = do_continue

    def do_EOF(self, _: str) -> bool:  # noqa: N802  # the end of the input, by cmd's name
        """Let the program continue."""
        return True

    def do_quit(self, _: str) -> bool:
        """Stop the program: quit."""
        raise bdb.BdbQuit

    do_q = do_exit = do_quit
