"""Extension of IPython, by `%load_ext tracer`: `%%lower`, `%explain`, `%tprofile`, documentation below errors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from tracer import markup
from tracer.errors import ArgumentError, TracerError, message
from tracer.explorer.exploration import Exploration, explore
from tracer.runtime.jit.explain import Text
from tracer.runtime.jit.jit import JitFunction
from tracer.runtime.profile.session import profile
from tracer.trace.tracebacks import set_method_boundaries


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with IPython's shell, which calls this for `%load_ext tracer`.

    `%lower f(x)` explores a call. `%%lower` runs its cell up to the last line, a call, which it explores. `%explain f`
    tells why a jitted function compiled. `%tprofile statement`, and `%%tprofile` for a cell, profile the code that they
    run. Below the traceback of an error of tracer's stands the section of the documentation on it.
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
    """Show the documentation on the error of tracer's that ended a cell, below its traceback, which names the command.

    Terminals show nothing here.
    """
    if isinstance(result.error_in_exec, TracerError):
        display = sys.modules["IPython.display"].display
        display({"text/html": markup.view("", result.error_in_exec.section())}, raw=True)


class _Magics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    def lower(self, line: str, cell: str | None = None) -> Exploration | None:
        """Explore the call on the line, or the call that ends the cell once the lines before it have run."""
        text = _text("%%lower", line, cell)
        _check_last_call(self.shell.transform_cell(text))
        self.shell.user_ns[_EXPLORE] = explore
        try:
            self._run(text, _exploring_last)
        finally:
            del self.shell.user_ns[_EXPLORE]
        found: Exploration | None = self.shell.user_ns.pop(_FOUND, None)
        return found

    def explain(self, line: str) -> Text:
        """Return the text that explains the compilations of a jitted function."""
        function = eval(_expression("%explain", line), self.shell.user_global_ns, self.shell.user_ns)
        if not isinstance(function, JitFunction):
            text = f"%explain: {line.strip()} is a {type(function).__name__}, not a jitted function"
            raise ArgumentError(message(text, help="%explain f, where f = tracer.jit(...)"))
        return function.explain()

    def tprofile(self, line: str, cell: str | None = None) -> Any:
        """Run the line, or the cell, under `tracer.profile()`. Returns the profile."""
        with profile() as found:
            self._run(_text("%%tprofile", line, cell))
        return found

    def _run(self, text: str, rewrite: Callable[[ast.Module], ast.Module] = lambda module: module) -> None:
        """Run text, rewritten, as a cell. Its lines are called by the number of the magic's cell.

        IPython names the code by the count of executions and then visits its tree, where the count becomes its own.
        """
        shell, count = self.shell, self.shell.execution_count

        class Rewriting:
            def visit(self, module: ast.Module) -> ast.Module:
                shell.execution_count = count
                return rewrite(module)

        rewriting = Rewriting()
        shell.ast_transformers.append(rewriting)
        shell.execution_count = len(shell.history_manager.input_hist_parsed) - 1
        try:
            shell.run_cell(text)
        finally:
            shell.execution_count = count
            shell.ast_transformers.remove(rewriting)


set_method_boundaries(_Magics)
_EXPLORE, _FOUND = "__tracer_explore__", "__tracer_found__"


def _exploring_last(module: ast.Module) -> ast.Module:
    """Rewrite the call f(x) that ends a cell to one of explore(f, x), whose line is the cell's own."""
    last = module.body[-1]
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Call)
    call = ast.Call(ast.Name(_EXPLORE, ast.Load()), [last.value.func, *last.value.args], last.value.keywords)
    module.body[-1] = ast.copy_location(ast.Assign([ast.Name(_FOUND, ast.Store())], call), last)
    return ast.fix_missing_locations(module)


def _text(magic: str, line: str, cell: str | None) -> str:
    """Return the text to run, whose lines have the numbers that they have below the magic."""
    return line if cell is None else f"# {magic}\n{cell}"


def _check_last_call(text: str) -> None:
    """Raise ArgumentError unless the text ends with a call."""
    help = "end with a call, as in: %lower f(x)"
    try:
        statements = ast.parse(text).body
    except SyntaxError as problem:
        raise ArgumentError(message(f"%lower: line {problem.lineno} does not parse", problem.msg, help=help)) from None
    last = statements[-1] if statements else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        got = "nothing" if last is None else ast.unparse(last).splitlines()[0]
        raise ArgumentError(message(f"%lower: got {got}, which is no call", help=help))


def _expression(magic: str, text: str) -> CodeType:
    try:
        return compile(text.strip(), "<magic>", "eval")
    except SyntaxError:
        shown = repr(text.strip()) if text.strip() else "nothing"
        help = f"{magic} f, where f = tracer.jit(...)"
        raise ArgumentError(message(f"{magic}: got {shown}, which is no expression", help=help)) from None
