"""Functions that programs have in common: written into the text of each, compiled once on a machine.

    ; begin tracer_rare_3f
    define void @tracer_rare_3f(ptr %in0, ...) noinline #0 { ... }
    ; end

A program's text is complete, and can be compiled by itself. `apart` takes such functions out, each as a module of its
own, which is named by its text.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

_BEGIN: Final = "; begin "
_END: Final = "; end\n"
_FUNCTION: Final = re.compile(rf"^{_BEGIN}(\w+)\n(.*?)^{_END}", re.MULTILINE | re.DOTALL)
_NAMES: Final = re.compile(r"@[\w.]+")
_QUALITIES: Final = " noinline #0 {\n"
WEIGHTS: Final = '!0 = !{!"branch_weights", i32 1, i32 2000}'


def definition(prefix: str, result: str, parameters: str, lines: list[str]) -> tuple[str, str]:
    """Return a function's name, which its text decides, and its text. parameters, lines: as in the text."""
    body = "\n".join([f"({parameters}){_QUALITIES[:-1]}", "entry:", *lines, "}", ""])
    name = prefix + hashlib.blake2b(f"{result}{body}".encode(), digest_size=8).hexdigest()
    return name, f"define {result} @{name}{body}"


def marked(name: str, text: str) -> str:
    """Return a definition as it stands in a program's text."""
    return f"{_BEGIN}{name}\n{text}{_END}"


def apart(text: str) -> tuple[str, dict[str, str]]:
    """Return a program's text without its outlined functions, and a module for each of them, by name."""
    if _BEGIN not in text:
        return text, {}
    header = [line for line in text.splitlines() if line.startswith(("declare ", "@"))]
    declared = {name: line for line in header for name in _NAMES.findall(line)[:1]}
    attributes = next(line for line in text.splitlines() if line.startswith("attributes #0 "))
    modules = {}
    for name, function in _FUNCTION.findall(text):
        wanted = [declared[found] for found in sorted(set(_NAMES.findall(function))) if found in declared]
        modules[name] = "\n".join([*wanted, function, attributes, WEIGHTS, ""])
    return _FUNCTION.sub(lambda m: _declaration(m[2]), text), modules


def _declaration(function: str) -> str:
    first = function[: function.index("\n") + 1]
    return first.removesuffix(_QUALITIES).replace("define ", "declare ", 1) + "\n"
