"""The API reference: pages of reStructuredText made from the signatures and docstrings of public names.

`scripts/docs` writes the pages beside the others before Sphinx runs, and compares the inventory afterwards:

    python -m tools.api_pages build/docs-source/api
    python -m tools.api_pages --check build/docs/objects.inv
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import tracer
from tools.api_text import restructured, signature
from tracer.scipy import stats

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = tuple(name for name in stats.__all__ if inspect.ismodule(getattr(stats, name)))


@dataclass(frozen=True)
class Page:
    """A page of the reference. modules: below `tracer`. rooms: of tracer.numpy, all by default; see `_room`."""

    file: str
    title: str
    modules: tuple[str, ...]
    rooms: tuple[str, ...] = ()


PAGES = (
    Page("tracer", "Transforms and arrays", ("",)),
    Page("array", "Array", ()),
    Page("numpy_elementwise", "NumPy: elements", ("numpy",), ("elementwise",)),
    Page("numpy_shapes", "NumPy: making and moving arrays", ("numpy",), ("shapes",)),
    Page("numpy_reduce", "NumPy: reductions, sorting, products", ("numpy",), ("reduce",)),
    Page("numpy_chapters", "NumPy: signals, polynomials, indices", ("numpy",), ("chapters",)),
    Page("numpy_core", "NumPy: dtypes, constants, text and files", ("numpy",), ("core", "arrays", "")),
    Page("numpy_linalg", "NumPy: linear algebra", ("numpy.linalg", "numpy.lib.stride_tricks")),
    Page("numpy_fft", "NumPy: Fourier transforms", ("numpy.fft",)),
    Page("lax", "lax: loops, branches, primitives", ("lax", "lax.linalg")),
    Page("random", "Random numbers", ("random",)),
    Page("nn", "Models", ("nn", "nn.initializers")),
    Page("optim", "Optimizers", ("optim",)),
    Page("data", "Data, files, logs", ("data", "io", "logs", "interop")),
    Page("scipy_special", "SciPy: special functions", ("scipy.special",)),
    Page("scipy_linalg", "SciPy: linear algebra", ("scipy.linalg", "scipy.sparse.linalg")),
    Page("scipy_optimize", "SciPy: optimization, integrals, interpolation",
         ("scipy.optimize", "scipy.integrate", "scipy.interpolate", "scipy.cluster.vq")),
    Page("scipy_signal", "SciPy: signals and images", ("scipy.signal", "scipy.ndimage", "scipy.fft")),
    Page("scipy_stats", "SciPy: distributions", ("scipy.stats", *(f"scipy.stats.{name}" for name in DISTRIBUTIONS))),
    Page("tree", "Trees", ("tree", "tree_util", "flatten_util")),
    Page("debug", "Debugging and testing", ("debug", "test_util")),
    Page("errors", "Errors", ("errors",)),
    Page("custom", "Rules of your own, memory for time",
         ("custom_derivatives", "custom_batching", "ad_checkpoint")),
    Page("sparse", "Sparse arrays", ("experimental", "experimental.sparse")),
    Page("others", "Dtypes, types, devices, segments", ("dtypes", "typing", "sharding", "ops")),
)  # fmt: skip

# Members of `logs` and `errors` that are not theirs: modules without `__all__`
_FOREIGN = ("annotations", "message", "np", "absent")


def namespace(module: str) -> ModuleType:
    """Return the module of a name below `tracer`."""
    return importlib.import_module(f"tracer.{module}".rstrip("."))


def public(module: str) -> list[str]:
    """Return the public names of a module that are no modules, sorted."""
    there = namespace(module)
    own = there.__name__
    names = [name for name in getattr(there, "__all__", dir(there)) if not name.startswith("_")]
    if not hasattr(there, "__all__"):
        names = [
            name for name in names if name not in _FOREIGN and getattr(getattr(there, name), "__module__", own) == own
        ]
    return sorted(name for name in names if not isinstance(getattr(there, name), ModuleType | TypeVar))


@cache
def everything() -> frozenset[str]:
    """Return the full names of all objects of the reference."""
    return frozenset(f"tracer.{module}.{name}".replace("..", ".") for page in PAGES for module in page.modules
                     for name in public(module))  # fmt: skip


def named(full: str) -> Any:
    """Return the object of a full name, such as `tracer.nn.Linear.at`. None where there is none."""
    for path in (full.split(".")[:n] for n in range(full.count("."), 0, -1)):
        try:
            value: Any = importlib.import_module(".".join(path))
        except ImportError:
            continue
        for name in full.split(".")[len(path) :]:
            value = getattr(value, name, None)
        return value
    return None


def source(value: Any) -> tuple[str, int] | None:
    """Return the file that defines an object, below the repository, and its line. None where no file of ours does."""
    value = getattr(value, "fget", value)
    value = inspect.unwrap(value) if callable(value) else value
    code = getattr(value, "__code__", None)
    if code is not None:
        return _ours(code.co_filename, code.co_firstlineno)
    if not isinstance(value, type):
        return None
    members = (getattr(inspect.unwrap(each), "__code__", None) for each in vars(value).values() if callable(each))
    files = [code.co_filename for code in members if code is not None]
    for file in (getattr(sys.modules.get(value.__module__), "__file__", None), *files):
        if file is not None and (line := _class_line(file, value.__name__)):
            return _ours(file, line)
    return None


@cache
def _class_line(file: str, name: str) -> int:
    """Return the line of a class in a file, 0 where it is not there."""
    lines = Path(file).read_text(encoding="utf-8").splitlines() if Path(file).suffix == ".py" else []
    return next((n for n, line in enumerate(lines, 1) if re.match(rf"class {name}\b", line)), 0)


def _ours(file: str, line: int) -> tuple[str, int] | None:
    path = Path(file)
    return (str(path.relative_to(ROOT)), line) if path.is_relative_to(ROOT / "tracer") else None


def _room(value: Any) -> str:
    """Return the folder of tracer.numpy that defines a value, such as `shapes`; "" for any other."""
    found = source(value)
    match Path(found[0]).parts if found else ():
        case ["tracer", "numpy", room, _]:
            return room
    return ""


def _entry(full: str, value: Any) -> Iterator[str]:
    """Yield the lines of one object: its directive, its docstring, and the methods of a class."""
    module, _, name = full.rpartition(".")
    ours = str(getattr(value, "__module__", "")).startswith("tracer") and not isinstance(value, str | float | int)
    kind = _kind(value)
    taken = signature(value) if ours and kind in ("class", "function") else ""
    yield from [f".. py:{kind}:: {name}{taken}", f"   :module: {module}", ""]
    yield from _indented(inspect.getdoc(value) or "", module, taken, "   ") if ours else (f"   {_told(value)}", "")
    if ours and kind == "class" and full != "tracer.Array":  # which has a page
        for member, method in vars(value).items():
            if not member.startswith("_") and inspect.isfunction(method):
                yield from [f"   .. py:method:: {member}{_bound(method)}", ""]
                yield from _indented(inspect.getdoc(method) or "", module, _bound(method), "      ")


def _kind(value: Any) -> str:
    """Return the directive of a value."""
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"


def _told(value: Any) -> str:
    """Return what is said of a value that has no docstring of ours."""
    if isinstance(value, type):
        return f"NumPy's ``{value.__name__}``."
    if isinstance(value, bool | int | float | str | None):
        return f"The value ``{value!r}``."
    return f"An object of type ``{type(value).__name__}``."


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _section(module: str, rooms: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of one module: its docstring, an index of its names, and every name."""
    there = namespace(module)
    names = [name for name in public(module) if not rooms or _room(getattr(there, name)) in rooms]
    yield from [f".. py:module:: {there.__name__}", "   :no-index:" if rooms and "core" not in rooms else "", ""]
    if not rooms:
        yield from restructured(there.__doc__ or "", there.__name__, "", everything())
        yield ""
    yield " · ".join(f":py:obj:`{name} <{there.__name__}.{name}>`" for name in names)
    yield ""
    for name in names:
        yield from _entry(f"{there.__name__}.{name}", getattr(there, name))


def _array() -> Iterator[str]:
    """Yield the lines of the class Array and its members."""
    defined = tracer.Array
    yield from [".. py:currentmodule:: tracer", ""]
    yield from restructured(inspect.getdoc(defined) or "", "tracer", "", everything())
    yield from ["", "See :py:obj:`tracer.Array` for the class itself. Its methods and attributes:", ""]
    for name in (name for name in dir(tracer.numpy.zeros(1)) if not name.startswith("_")):
        value = inspect.getattr_static(defined, name)
        kind, taken = ("method", _bound(value)) if callable(value) else ("attribute", "")
        yield from [f".. py:{kind}:: Array.{name}{taken}", "   :module: tracer", ""]
        yield from _indented(inspect.getdoc(value) or "", "tracer.numpy", taken, "   ")


def _bound(method: Any) -> str:
    """Return the signature of a method without `self`."""
    return re.sub(r"\(self(, )?(/, )?", "(", signature(method))


def _indented(text: str, module: str, taken: str, margin: str) -> Iterator[str]:
    yield from (f"{margin}{line}".rstrip() for line in restructured(text, module, taken, everything()))
    yield ""


def text(page: Page) -> str:
    """Return the text of a page."""
    lines = _heading(page.title, "=")
    if page.file == "array":
        return "\n".join([*lines, *_array()]) + "\n"
    for module in page.modules:
        if len(page.modules) > 1:
            lines += _heading(f"tracer.{module}", "-")
        lines += _section(module, page.rooms)
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write all pages to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / f"{page.file}.rst").write_text(text(page), encoding="utf-8")


def missing(inventory: Path) -> list[str]:
    """Return the public names that an objects.inv lacks."""
    from sphinx.util.inventory import InventoryFile  # noqa: PLC0415  # an optional package

    found = InventoryFile.load(inventory.open("rb"), "", lambda base, uri: uri)
    there = {name for domain in found for name in found[domain]}
    return sorted(everything() - there)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        lacking = missing(Path(sys.argv[2]))
        sys.exit(f"not in the API reference: {', '.join(lacking)}" if lacking else 0)
    write(Path(sys.argv[1]))
