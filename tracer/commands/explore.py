"""`python -m tracer explore`: the stages of a function of the user's, as a page."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from tracer.errors import ArgumentError, TracerError, message
from tracer.explorer import explore
from tracer.ir.dtypes import BY_SHORT_NAME
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct

_ARRAY: Final = re.compile(r"(\w+)\[([\d, ]*)\]")
_PARTS: Final = re.compile(r"(?:[^,\[\](){}]|\[[^\]]*\]|\([^)]*\)|\{[^}]*\})+")


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        help="write a page of a function's stages, from source to machine code",
        description="Write a page with a function's source, programs, loops, LLVM and assembly, line by line.",
    )
    parser.add_argument("function", help="module:function, of a module in this folder or an installed one")
    parser.add_argument(
        "--args", default="", metavar="TYPES", help='types of arrays, and values of Python: "f32[128,64], f32[64], 3"'
    )
    parser.add_argument("--against", metavar="MODULE:FUNCTION", help="a second function, to compare with")
    parser.add_argument("--cuda", metavar="ARCH", help="add a pane of CUDA C++ for an architecture, such as sm_90")
    parser.add_argument("--out", metavar="FILE", help="the page to write, FUNCTION.html unless given")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the page and print a summary. Returns the exit status: 2 where the input is not right."""
    try:
        function = _found(options.function)
        against = None if options.against is None else _found(options.against)
        exploration = explore(function, *arguments(options.args), against=against, cuda=options.cuda)
        path = exploration.save(options.out or f"{options.function.rpartition(':')[2].replace('.', '_')}.html")
    except TracerError as problem:
        print(f"tracer explore: {problem}", file=sys.stderr)
        return 2
    print(exploration)
    print(f"written to {path}")
    return 0


def _found(name: str) -> Any:
    """Return the function that `module:function` names."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise ArgumentError(message(f"got '{name}'", help="name a function as module:function"))
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as problem:  # the module's own code runs
        text, reason = f"cannot import {module}", str(problem)
        if not isinstance(problem, ImportError):
            reason = f"{type(problem).__name__}: {reason}"
        raise ArgumentError(message(text, reason, help="run this where the module can be imported")) from None
    finally:
        sys.path.remove(os.getcwd())
    for each in path.split("."):
        if not hasattr(found, each):
            names = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n, None))][:8]
            text = f"{module} has no '{path}'"
            raise ArgumentError(message(text, help=f"one of {', '.join(names)}" if names else "name a function of it"))
        found = getattr(found, each)
    return found


def arguments(text: str) -> list[Any]:
    """Return the arguments that a text lists: types of arrays, and values of Python. Raises ArgumentError.

    >>> arguments("f32[2,3], 4")
    [ShapeDtypeStruct(f32[2,3]), 4]
    """
    return list(_arguments(text))


def _arguments(text: str) -> Iterator[Any]:
    for part in map(str.strip, _PARTS.findall(text)):
        array = _ARRAY.fullmatch(part)
        if array is not None and array[1] in BY_SHORT_NAME:
            yield ShapeDtypeStruct(tuple(int(n) for n in array[2].split(",") if n.strip()), BY_SHORT_NAME[array[1]])
            continue
        try:
            yield ast.literal_eval(part)
        except (ValueError, SyntaxError):
            known = ", ".join(sorted(BY_SHORT_NAME))
            text = f"--args: '{part}' is no type of an array and no value"
            raise ArgumentError(message(text, f"dtypes: {known}", help='such as "f32[128,64], f32[], 3"')) from None
