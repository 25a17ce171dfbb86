"""What foreign functions make of our arrays: cases, the runs of a case, and the table that runs leave for the docs."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer.errors import TracerError

OURS = "ours"  # the result is an Array, traced where the argument was
NUMPY = "NumPy"  # the result is an ndarray or NumPy's scalar
PLAIN = "Python"  # a number, a text, a shape, an object of the library's
REFUSED = "refused"  # an error
WRONG = "wrong"  # other values than NumPy's arrays give

MODES = ("eager", "jit", "grad")


@dataclass(frozen=True)
class Case:
    """A call of a library's function, and what comes of it eagerly, under `jit` and under `grad` (None: not asked)."""

    function: str
    call: Callable[..., Any]
    operands: tuple[Any, ...]
    eager: str = OURS
    jit: str | None = OURS
    grad: str | None = OURS
    tolerance: float = 1e-9

    def expected(self, mode: str) -> str | None:
        return {"eager": self.eager, "jit": self.jit, "grad": self.grad}[mode]


@dataclass
class Row:
    cells: dict[str, set[str]] = field(default_factory=dict)


TABLE: dict[str, dict[str, Row]] = {}
"""By library and function: what came of it, in each mode."""


def record(library: str, function: str, mode: str, outcome: str) -> None:
    TABLE.setdefault(library, {}).setdefault(function, Row()).cells.setdefault(mode, set()).add(outcome)


def leaves_of(result: Any) -> list[Any]:
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in leaves_of(value)]
    if isinstance(result, list | tuple):
        return [leaf for value in result for leaf in leaves_of(value)]
    return [result]


def kind_of(result: Any) -> str:
    leaves = leaves_of(result)
    if any(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves):
        return NUMPY
    return OURS if any(isinstance(leaf, tracer.Array) for leaf in leaves) else PLAIN


def arrays_of(result: Any) -> list[Any]:
    return [leaf for leaf in leaves_of(result) if isinstance(leaf, tracer.Array | np.ndarray | np.generic)]


def check(library: str, case: Case, mode: str) -> None:
    """Run a case in a mode, compare with what NumPy's arrays give, record what came of it, and hold it expected."""
    expected = case.expected(mode)
    outcome, detail = _RUNS[mode](case)
    record(library, case.function, mode, f"{outcome}{detail}")
    assert outcome == expected, detail


def _eager(case: Case) -> tuple[str, str]:
    reference = case.call(*case.operands)
    try:
        result = case.call(*(tnp.asarray(x) if isinstance(x, np.ndarray) else x for x in case.operands))
    except Exception as error:
        return REFUSED, f" ({type(error).__name__})"
    return (kind_of(result) if _agree(result, reference, case.tolerance) else WRONG), ""


def _jit(case: Case) -> tuple[str, str]:
    kinds: list[str] = []
    places: list[int] = []
    others: list[Any] = []

    def function(*xs: Any) -> Any:
        result = case.call(*xs)
        kinds.append(kind_of(result))
        leaves = leaves_of(result)
        places[:] = [n for n, leaf in enumerate(leaves) if isinstance(leaf, tracer.Array | np.ndarray | np.generic)]
        others[:] = [leaf for n, leaf in enumerate(leaves) if n not in places]
        return [leaves[n] for n in places]

    try:
        result = tracer.jit(function)(*case.operands)
    except TracerError as error:
        return REFUSED, f" ({type(error).__name__})"
    reference = leaves_of(case.call(*case.operands))
    arrays, rest = [reference[n] for n in places], [leaf for n, leaf in enumerate(reference) if n not in places]
    agree = _agree(result, arrays, case.tolerance) and _agree(others, rest, case.tolerance)
    return (kinds[0] if agree else WRONG), ""


def _grad(case: Case) -> tuple[str, str]:
    kinds: list[str] = []

    def total(*xs: Any) -> Any:
        result = case.call(*xs)
        kinds.append(kind_of(result))
        return _weighted(result)

    try:
        gradients = tracer.grad(total, argnums=tuple(range(len(case.operands))))(*case.operands)
    except TracerError as error:
        return REFUSED, f" ({type(error).__name__})"
    rng, step = np.random.default_rng(0), 1e-6
    directions = [rng.normal(size=np.shape(x)) for x in case.operands]
    up, down = (
        float(_weighted(case.call(*(x + sign * step * d for x, d in zip(case.operands, directions, strict=True)))))
        for sign in (1, -1)
    )
    slope = sum(float(np.sum(np.asarray(g) * d)) for g, d in zip(gradients, directions, strict=True))
    difference = (up - down) / (2 * step)
    close = abs(slope - difference) <= 1e-5 * max(1.0, abs(difference))
    return (kinds[0] if close else WRONG), " (NaN)" if np.isnan(slope) else ""


_RUNS: dict[str, Callable[[Case], tuple[str, str]]] = {"eager": _eager, "jit": _jit, "grad": _grad}


def _weighted(result: Any) -> Any:
    """One number from all floats, with weights that tell them apart."""
    floats = [x for x in arrays_of(result) if x.dtype.kind in "fc"]
    parts = [y for x in floats for y in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]
    return sum((x * np.cos(np.arange(x.size)).reshape(x.shape)).sum() for x in parts)


def _agree(result: Any, reference: Any, tolerance: float) -> bool:
    ours, theirs = leaves_of(result), leaves_of(reference)
    assert len(ours) == len(theirs)
    return all(_close(x, y, tolerance) for x, y in zip(ours, theirs, strict=True))


def _close(x: Any, y: Any, tolerance: float) -> bool:
    if not isinstance(y, np.ndarray | np.generic | int | float | complex):
        return type(x) is type(y)
    a, b = np.asarray(x), np.asarray(y)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


# The page of the docs

INTRODUCTION = """# Outside libraries on our arrays

{written}

Unmodified libraries are called with a concrete `Array` (eager), with one traced by `jit`, and with one differentiated
by `grad`, whose result is compared with finite differences.

| cell | the result |
|---|---|
| ours | is an `Array` with the function's values for NumPy arrays |
| NumPy | is an ndarray or a NumPy scalar |
| Python | is a Python number, a string, a shape or an object of the library |
| refused | is the named error: the library reads a traced array's value, passes it to C code, or writes to a view |
| wrong | has other values: the library writes through a view, where slices here are copies, or compares objects |
| – | was not tested: there is nothing to differentiate |

SciPy and scikit-learn compute on arrays of other libraries where the environment says `SCIPY_ARRAY_API=1` before SciPy
is imported, and scikit-learn under `sklearn.config_context(array_api_dispatch=True)`, as in this run.
"""

LIBRARIES = {
    "NumPy": "numpy", "SciPy, numerical methods": "scipy", "SciPy, array functions": "scipy",
    "scikit-learn": "scikit-learn", "xarray": "xarray", "dask": "dask", "einops": "einops", "opt_einsum": "opt_einsum",
    "PyTorch": "torch", "pandas": "pandas", "Matplotlib": "matplotlib",
}  # fmt: skip


def page() -> str:
    """The table of this run, as Markdown."""
    used = dict.fromkeys(LIBRARIES[library] for library in LIBRARIES if library in TABLE)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in used)
    date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    run = f"on {date} from a run of the tests in `tests/foreign`, with Python {platform.python_version()}, {versions}."
    parts = [INTRODUCTION.format(written=textwrap.fill(f"Written by `scripts/foreign` {run}", 120))]
    for library in LIBRARIES:
        if library in TABLE:
            parts.append(f"\n## {library}\n\n| function | eager | jit | grad |\n|---|---|---|---|\n")
            parts += [_line(function, row) for function, row in sorted(TABLE[library].items())]
    return "".join(parts)


def _line(function: str, row: Row) -> str:
    cells = ("; ".join(sorted(row.cells.get(mode, {"–"}))) for mode in MODES)
    return f"| `{function}` | {' | '.join(cells)} |\n"
