"""Extension of IPython, by `%load_ext tracer`: `%%lower`, `%explain`, `%tprofile`, documentation below errors."""

from __future__ import annotations

import ast
import sys
from typing import Any

import tracer
from tracer import markup
from tracer.errors import ArgumentError, TracerError, message
from tracer.explorer.exploration import Exploration, explore
from tracer.runtime.jit.explain import Text
from tracer.runtime.jit.jit import JitFunction


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with IPython's shell, which calls this for `%load_ext tracer`.

    `%lower f(x)` explores a call. `%%lower` runs its cell up to the last line, a call, which it explores. `%explain f`
    tells why a jitted function compiled. `%tprofile statement`, and `%%tprofile` for a cell, profile what they run.
    Below the traceback of an error of tracer's stands the section of the documentation on it.
    Raises ArgumentError where there is no shell.
    """
    if not hasattr(shell, "register_magic_function"):
        text = f"load_ipython_extension: got {type(shell).__name__}, which is no shell of IPython"
        raise ArgumentError(message(text, help="in IPython or a notebook: %load_ext tracer"))
    magics = _Magics(shell)
    for name, kind in (("lower", "line_cell"), ("explain", "line"), ("tprofile", "line_cell")):
        shell.register_magic_function(getattr(magics, name), magic_kind=kind, magic_name=name)
    shell.events.register("post_run_cell", _show_section)  # once, however often the extension is loaded


def _show_section(result: Any) -> None:
    """Show the documentation on the error of tracer's that ended a cell, below its traceback."""
    if isinstance(result.error_in_exec, TracerError):
        hint, html = result.error_in_exec.section()
        display = sys.modules["IPython.display"].display
        display({"text/plain": hint, "text/html": markup.view("", html)}, raw=True)


class _Magics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def lower(self, line: str, cell: str | None = None) -> Exploration | None:
        """Explore the call on the line, or the call that ends the cell once the lines before it have run."""
        before, call = _last_call(cell if cell is not None else line)
        if before and not self.shell.run_cell(before).success:
            return None
        function = self._value(call.func)
        args: list[Any] = []
        for each in call.args:
            if isinstance(each, ast.Starred):
                args += self._value(each.value)
            else:
                args.append(self._value(each))
        kwargs: dict[str, Any] = {}
        for keyword in call.keywords:
            value = self._value(keyword.value)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        return explore(function, *args, **kwargs)

    def explain(self, line: str) -> Text:
        """Return the text that explains the compilations of a jitted function."""
        function = self._value(_expression("%explain", line))
        if not isinstance(function, JitFunction):
            text = f"%explain: {line.strip()} is a {type(function).__name__}, not a jitted function"
            raise ArgumentError(message(text, help="%explain f, where f = tracer.jit(...)"))
        return function.explain()

    def tprofile(self, line: str, cell: str | None = None) -> Any:
        """Run the line, or the cell, under `tracer.profile()`. Returns the profile."""
        public: Any = tracer  # its names are found at their first use
        with public.profile() as profile:
            self.shell.run_cell(cell if cell is not None else line)
        return profile

    def _value(self, node: ast.expr) -> Any:
        code = compile(ast.Expression(node), "<magic>", "eval")
        return eval(code, self.shell.user_global_ns, self.shell.user_ns)


def _last_call(text: str) -> tuple[str, ast.Call]:
    """Return the text before the last statement, which must be a call, and the call."""
    help = "end with a call, as in: %lower f(x)"
    try:
        statements = ast.parse(text.strip("\n ")).body
    except SyntaxError as problem:
        raise ArgumentError(message(f"%lower: line {problem.lineno} does not parse", problem.msg, help=help)) from None
    last = statements[-1] if statements else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        got = "nothing" if last is None else ast.unparse(last).splitlines()[0]
        raise ArgumentError(message(f"%lower: got {got}, which is no call", help=help))
    before = text.strip("\n ").splitlines()[: last.lineno - 1]
    return "\n".join(before).strip(), last.value


def _expression(magic: str, text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        shown = repr(text.strip()) if text.strip() else "nothing"
        help = f"{magic} f, where f = tracer.jit(...)"
        raise ArgumentError(message(f"{magic}: got {shown}, which is no expression", help=help)) from None
