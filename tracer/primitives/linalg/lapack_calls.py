"""LAPACK's routines for decompositions as data: their arguments, one by one, and calls from Python.

The schedule, the LLVM text and the interpreter read the same records. Matrices are column-major. A routine's arguments
are words: the name of a letter, a size or an array, `info`, or `null`. Arrays hold elements of the matrix's dtype (x),
its real dtype (r) or int32 (i). Scratch belongs to a part of a stack, other arrays to one matrix.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Data
from tracer.ir.types import Shape
from tracer.primitives.linalg.matrix_stacks import LETTERS


class Routine(Data):
    """One routine of LAPACK. See the module docstring for the words.

    real, complex: the names without the letter of the dtype. words: arguments in order, + before arguments of complex
    dtypes alone, - before arguments of real ones. letters, sizes: names of the arguments that are characters and
    integers. arrays: names of the views, each with its item. scratch: the arrays among them of which a part needs one.
    inputs: the arrays that are read. iterates: whether steps repeat until they converge, so that the first array must
    be finite. Where it is not, or `info` is not 0, floats of other arrays than scratch become NaN.
    """

    real: str
    complex: str
    words: str
    letters: tuple[str, ...]
    sizes: tuple[str, ...]
    arrays: tuple[tuple[str, str], ...]
    scratch: tuple[str, ...]
    inputs: tuple[str, ...]
    iterates: bool = False

    def arguments(self, dtype: DType) -> list[str]:
        """Return the words of the routine for a dtype."""
        other = "-" if dtypes.is_complex(dtype) else "+"
        return [word.lstrip("+-") for word in self.words.split() if not word.startswith(other)]

    def function(self, dtype: DType) -> str:
        """Return the routine's name with the letter of a dtype."""
        return LETTERS[dtype] + (self.complex if dtypes.is_complex(dtype) else self.real)


def _routine(
    names: str, words: str, *, letters: str = "", sizes: str, arrays: str, scratch: str = "", inputs: str = "a",
    iterates: bool = False,
) -> Routine:  # fmt: skip
    real, _, other = names.partition(" ")
    pairs = tuple((word[:-2], word[-1]) for word in arrays.split())
    return Routine(
        real, other or real, words, tuple(letters.split()), tuple(sizes.split()), pairs, tuple(scratch.split()),
        tuple(inputs.split()), iterates,
    )  # fmt: skip


ROUTINES: Final[dict[str, Routine]] = {
    "geqrf": _routine(
        "geqrf", "m n a m tau work lwork info", sizes="m n lwork", arrays="a:x tau:x work:x", scratch="work",
    ),
    "geqp3": _routine(
        "geqp3", "m n a m jpvt tau work lwork +rwork info", sizes="m n lwork",
        arrays="a:x jpvt:i tau:x work:x rwork:r", scratch="work rwork", inputs="a jpvt",
    ),
    "orgqr": _routine(
        "orgqr ungqr", "m n k a m tau work lwork info", sizes="m n k lwork", arrays="a:x tau:x work:x", scratch="work",
        inputs="a tau",
    ),
    "syevd": _routine(
        "syevd heevd", "jobz uplo n a n w work lwork +rwork +lrwork iwork liwork info", letters="jobz uplo",
        sizes="n lwork lrwork liwork", arrays="a:x w:r work:x rwork:r iwork:i", scratch="work rwork iwork",
        iterates=True,
    ),
    "gesdd": _routine(
        "gesdd", "jobz m n a m s u m vt ldvt work lwork +rwork iwork info", letters="jobz", sizes="m n ldvt lwork",
        arrays="a:x s:r u:x vt:x work:x rwork:r iwork:i", scratch="work rwork iwork", iterates=True,
    ),
    "geev": _routine(
        "geev", "jobvl jobvr n a n wr -wi vl n vr n work lwork +rwork info", letters="jobvl jobvr", sizes="n lwork",
        arrays="a:x wr:x wi:x vl:x vr:x work:x rwork:r", scratch="work rwork", iterates=True,
    ),
    "gees": _routine(
        "gees", "jobvs sort null n a n sdim wr -wi vs n work lwork +rwork null info", letters="jobvs sort",
        sizes="n lwork", arrays="a:x vs:x wr:x wi:x work:x rwork:r sdim:i", scratch="wr wi work rwork sdim",
        iterates=True,
    ),
    "gehrd": _routine(
        "gehrd", "n one n a n tau work lwork info", sizes="n one lwork", arrays="a:x tau:x work:x", scratch="work",
    ),
    "sytrd": _routine(
        "sytrd hetrd", "uplo n a n d e tau work lwork info", letters="uplo", sizes="n lwork",
        arrays="a:x d:r e:r tau:x work:x", scratch="work",
    ),
    "gtsv": _routine(
        "gtsv", "n nrhs dl d du b n info", sizes="n nrhs", arrays="dl:x d:x du:x b:x", inputs="dl d du b",
    ),
}  # fmt: skip


_BLOCK: Final = 32
"""Columns that LAPACK's blocked routines treat at once, as its tuning table has them."""
_VECTORS: Final = 64
"""Eigenvectors of a triangle that LAPACK computes at once."""


def scratch_sizes(key: str, dtype: DType, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the elements of each scratch array: the routine's own bounds, with room for blocks."""
    n, moduli = sizes["n"], dtypes.is_complex(dtype)
    blocks = _BLOCK * n
    match key:
        case "geqrf" | "orgqr" | "sytrd":
            return {"work": max(blocks, 1)}
        case "geqp3":
            return {"work": 2 * n + _BLOCK * (n + 1), "rwork": 2 * n}
        case "gehrd":
            return {"work": blocks + (_BLOCK + 1) * 2 * _BLOCK}
        case "syevd":
            squares = 1 + 6 * n + 2 * n * n
            return {
                "work": max(n * n + 2 * n if moduli else squares, blocks + 2 * n), "rwork": squares,
                "iwork": 3 + 5 * n,
            }  # fmt: skip
        case "gesdd":
            m, k = sizes["m"], min(sizes["m"], n)
            most = max(m, n)
            work = (2 if moduli else 4) * k * k + 7 * k + most + _BLOCK * (m + n)
            return {"work": work, "rwork": 2 * k * (most + 3 * k) + 5 * k, "iwork": 8 * k}
        case "geev":
            return {"work": (2 * _VECTORS + 5) * n + blocks, "rwork": 2 * n}
        case "gees":
            return {"work": 14 * n + blocks, "rwork": n, "wr": n, "wi": n, "sdim": 1}
        case _:
            return {}


def item_of(item: str, dtype: DType) -> DType:
    """Return the dtype of an array's elements, given the matrix's dtype."""
    return {"x": dtype, "r": dtypes.real_dtype(dtype), "i": dtypes.I32}[item]


def call_stack(key: str, dtype: DType, arrays: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Call a routine on each matrix of a stack.

    arrays: name -> contiguous NumPy array of a row for each matrix, changed in place; where a matrix has no result,
    floats become NaN. given: the sizes without lengths of scratch, which come from `scratch_sizes`, and the letters.
    """
    routine, first = ROUTINES[key], ROUTINES[key].arrays[0][0]
    sizes = {name: given[name] for name in routine.sizes if name in given}
    held = scratch_sizes(key, dtype, sizes)
    others = {name: np.zeros(held.get(name, 1), item_of(item, dtype)) for name, item in routine.arrays}
    words = {"one": 1, **{f"l{name}": length for name, length in held.items()}, **others, **given}
    for i in range(len(arrays[first])):
        rows = {name: array[i] for name, array in arrays.items()}
        refused = routine.iterates and not np.isfinite(rows[first]).all()
        if refused or _call(key, dtype, {**words, **rows}):
            for row in rows.values():
                if row.dtype.kind in "fc":
                    row[...] = complex(np.nan, np.nan) if row.dtype.kind == "c" else np.nan


def _call(key: str, dtype: DType, given: Mapping[str, Any]) -> int:
    """Call a routine on one matrix, and return its `info`."""
    routine, info = ROUTINES[key], ctypes.c_int(0)
    held: list[Any] = []
    for word in routine.arguments(dtype):
        value = given.get(word)
        if isinstance(value, np.ndarray):
            held.append(ctypes.c_void_p(value.ctypes.data))
        elif isinstance(value, str):
            held.append(ctypes.byref(ctypes.c_char(value.encode())))
        elif isinstance(value, int):
            held.append(ctypes.byref(ctypes.c_int(value)))
        else:
            held.append(ctypes.byref(info) if word == "info" else None)
    _function(routine.function(dtype))(*held)
    return info.value


def by_columns(x: Any) -> Any:
    """Return a stack of matrices as one row for each, column after column, in new memory."""
    turned = np.swapaxes(x, -1, -2)
    return np.array(turned.reshape(shapes.size(x.shape[:-2]), shapes.size(x.shape[-2:])), order="C")


def by_rows(columns: Any, shape: Shape) -> Any:
    """Return the matrices of a shape from rows as `by_columns` makes them."""
    *stack, m, n = shape
    return np.ascontiguousarray(np.swapaxes(columns.reshape((*stack, n, m)), -1, -2))


@cache
def _function(name: str) -> Any:
    return ctypes.CFUNCTYPE(None)(capsule_address("scipy.linalg.cython_lapack", name))


def capsule_address(module: str, name: str) -> int:
    """Return the address of a C function that a Cython module exports."""
    capsule = _exporting(module).__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


@cache
def _exporting(name: str) -> Any:
    """Return a Cython module, without importing its package.

    Importing SciPy's package takes five times as long. A later import of the package gets the same module.
    """
    package, _, last = name.rpartition(".")
    root = None if package in sys.modules else find_spec(name.partition(".")[0])
    if root is None or not root.submodule_search_locations:
        return import_module(name)
    folder = Path(root.submodule_search_locations[0], *package.split(".")[1:])
    found = PathFinder.find_spec(last, [str(folder)])
    spec = spec_from_file_location(name, found.origin) if found is not None else None
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return import_module(name)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return import_module(name)
    sys.modules.pop(name, None)  # it is not an attribute of its package yet
    return module
