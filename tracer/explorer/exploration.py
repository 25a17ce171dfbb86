"""The result of `explore`: stages of one function, or of two side by side, as text, HTML and a file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.explorer.collect import collected
from tracer.explorer.page import notebook_html, page_html
from tracer.explorer.records import Function, Stage
from tracer.ir.program import Source
from tracer.ir.text import source_text
from tracer.runtime.jit.jit import JitFunction, jit
from tracer.runtime.jit.lowered import Lowered
from tracer.trace.source import here


class Exploration:
    """Stages of a function from its source to machine code, each line with the lines that it comes from.

    Notebooks show it as linked panes, `save` writes these as a file, and `print` shows a summary.
    """

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self.functions = functions

    def stage(self, name: str) -> Stage:
        """Return a stage of the first function by name. Raises ArgumentError for an unknown one."""
        found = self.functions[0].stage(name)
        if found is None:
            names = ", ".join(stage.name for stage in self.functions[0].stages)
            raise ArgumentError(message(f"explore{here()}: no stage '{name}'", help=f"one of {names}"))
        return found

    def html(self) -> str:
        """Return one HTML page with the panes, which needs no network."""
        return page_html(self.functions)

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return its path. Raises ArgumentError where that is not possible.

        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tracer.explore(lambda x: x * x, 3.0).save(os.path.join(folder, "square.html"))
        ...     path.name, path.stat().st_size > 10_000
        ('square.html', True)
        """
        try:
            path = Path(file)
            path.write_text(self.html(), encoding="utf-8")
        except (OSError, TypeError, ValueError) as problem:
            text = f"explore.save{here()}: cannot write {file}"
            reason = getattr(problem, "strerror", None) or str(problem)
            raise ArgumentError(
                message(text, reason, help="name a file in a folder that exists and is yours")
            ) from None
        return path

    def _repr_html_(self) -> str:
        return notebook_html(self.functions)

    def __str__(self) -> str:
        return "\n".join(line for function in self.functions for line in _summary(function))

    __repr__ = __str__


def _summary(function: Function) -> Iterator[str]:
    yield f"{function.name} {function.signature}"
    yield "  " + ", ".join(f"{value} {name}" if value[:1].isdigit() else name for name, value in function.totals)
    for stage in function.stages:
        if stage.main:
            yield f"  {stage.name:<12}{len(stage.lines):>7,} lines  {stage.note}"
    costly = sorted(
        (line for line in function.stages[0].lines if line.figures is not None),
        key=lambda line: -line.figures.share,  # type: ignore[union-attr]  # filtered above
    )
    for line in costly[:3]:
        assert line.figures is not None
        file, number = line.keys[0]
        if line.figures.share > 0:
            place = source_text(Source(file, number, ""))
            yield f"  {line.figures.share:>5.0%} of the work at {place}  {line.text.strip()}"


def explore(function: Any, /, *args: Any, against: Any = None, cuda: str | None = None, **kwargs: Any) -> Exploration:
    """Return the stages of `function(*args, **kwargs)` as panes whose lines are linked.

    function: a function or jitted function, or the result of `lower`, which takes no arguments here. args, kwargs:
    arrays, or `ShapeDtypeStruct`. against: a second function of the same arguments, such as `grad(function)`, whose
    stages are compared with the first function's stages. It may also stand before the arguments:
    `explore(f, grad(f), x)`. cuda: an architecture such as "sm_90", for a pane of CUDA C++.

    Nothing is run, and the function is compiled once more to find the lines. Raises ArgumentError for an object that is
    no function, and the errors of tracing.

    >>> found = tracer.explore(lambda x: tnp.sum(tnp.sin(x)), np.ones(8))
    >>> [stage.name for stage in found.functions[0].stages if stage.main]
    ['source', 'program', 'optimized', 'loops', 'LLVM', 'assembly']
    """
    if against is None and args and callable(args[0]) and _misfit(function, args, kwargs):
        against, args = args[0], args[1:]
    found = [collected(_lowered(each, args, kwargs), cuda=cuda) for each in (function, against) if each is not None]
    if len(found) == 2 and found[0].name == found[1].name:
        found = [replace(each, name=f"{n} {each.name}") for n, each in enumerate(found, 1)]
    return Exploration(tuple(found))


def _lowered(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    if isinstance(function, Lowered):
        return function
    if not callable(function):
        text = f"explore{here()}: got {type(function).__name__}, which is no function"
        raise ArgumentError(message(text, help="explore(f, *args) with the function and its arguments"))
    if problem := _misfit(function, args, kwargs):
        text = f"explore{here()}: {getattr(function, '__name__', 'the function')} does not take these arguments"
        raise ArgumentError(message(text, problem, help="explore(f, *args) with f's own arguments"))
    jitted = function if isinstance(function, JitFunction) else jit(function)
    return jitted.lower(*args, **kwargs)


def _misfit(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return why a function does not take arguments; an empty text if it does, or has no signature."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as problem:
        return str(problem) if callable(function) else ""
    except ValueError:  # a function in C has no signature that Python can see
        pass
    return ""
