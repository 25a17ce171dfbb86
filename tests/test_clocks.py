"""No result and no preparation depends on a clock, on chance, on a tracing tool, or on how often something ran."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.runtime.native.object_cache import objects

HOUSE = Path(tracer.__file__).parent

CLOCKS = ("time", "timeit", "datetime", "random", "secrets", "resource")
READERS = {
    "logs.py": "shows progress, and writes the seconds of a run into its rows",
    "commands/doctor.py": "times one function for the reader",
    "examples/digits_demo.py": "shows the seconds of its epochs",
    "runtime/profile/nests.py": "scales the cycles of a profiled nest to seconds",
    "runtime/profile/roofline.py": "measures the machine for a picture",
    "runtime/profile/session.py": "records the seconds of calls while a profile is open",
    "runtime/system/spans.py": "tells of compilations above two seconds, and times them for a profile",
    "runtime/values/loop_progress.py": "shows a bar at most ten times a second",
    "runtime/system/fork_safety.py": "bounds the wait of a fork for calls of OpenBLAS",
    "runtime/__init__.py": "keeps the time of import: sources that changed later leave no kernel in the files",
}
TOOLS = ("monitoring", "settrace", "setprofile", "gettrace", "getprofile", "perf_counter", "monotonic", "process_time")
SEEN = re.compile(rf"\b(?:import|from)\b.*\b(?:{'|'.join(CLOCKS)})\b|\b(?:{'|'.join(TOOLS)})\b")  # a second, not four


def imported(tree: ast.AST) -> set[str]:
    """The top packages that a module imports anywhere."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@cache
def modules() -> dict[str, tuple[set[str], set[str]]]:
    """The packages that each module imports, and the names of attributes in it; of modules where a word is seen."""
    texts = {str(file.relative_to(HOUSE)): file.read_text(encoding="utf-8") for file in sorted(HOUSE.rglob("*.py"))}
    trees = {name: ast.parse(text) for name, text in texts.items() if SEEN.search(text)}
    return {name: (imported(tree), attributes(tree)) for name, tree in trees.items()}


def test_only_listed_modules_read_a_clock() -> None:
    assert {name for name, (packages, _) in modules().items() if packages.intersection(CLOCKS)} == set(READERS)


def test_no_module_asks_for_tools_that_follow_the_interpreter() -> None:
    found = {name for name, (_, names) in modules().items() if names.intersection(TOOLS)}
    assert found <= READERS.keys()


def smooth(x: Any) -> Any:
    return tnp.sum(tnp.sin(x) ** 2) + tnp.mean(tnp.exp(x) * x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": smooth,
    "grad": tracer.grad(smooth),
    "hessian": tracer.hessian(smooth),
    "vmap": tracer.vmap(lambda x: x * tnp.exp(x)),
    "jit": tracer.jit(smooth),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_hundredth_call_is_prepared_as_the_second_was(way: str) -> None:
    f, x = WAYS[way], tnp.linspace(0.1, 1.0, 8)
    first = np.asarray(f(x))
    compiled, modules = objects.compiled, set(sys.modules)
    results = [np.asarray(f(x)) for _ in range(99)]
    assert objects.compiled == compiled
    assert set(sys.modules) == modules
    assert {r.tobytes() for r in results} == {first.tobytes()}
