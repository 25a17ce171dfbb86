"""Elementwise kernels in files: object code, with the types and the work that its entry point needs.

A file is named by everything that decides its code: primitive, parameters, types, settings, machine, and the compiler's
sources. So a process that finds one imports no compiler, and an edited checkout compiles anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.codegen.llvm.toolchain.object_code import load_object
from tracer.codegen.llvm.toolchain.target import machine_key
from tracer.ir.digest import encode
from tracer.ir.dtypes import BY_SHORT_NAME
from tracer.ir.primitive import Composite, Pointwise, Primitive
from tracer.ir.types import Type, array_type, with_shape
from tracer.runtime.native.compiler_files import sources, sources_now
from tracer.runtime.native.disk_cache import Folder, kernel_folder
from tracer.runtime.native.entry_point import EntryPoint
from tracer.settings import config
from tracer.version import VERSION

_SIMPLE: Final = (bool, int, float, str, np.dtype, Enum, type(None))


class Place(NamedTuple):
    """File of one kernel."""

    folder: Folder
    key: str

    def read(self, types: Sequence[Type]) -> EntryPoint | None:
        """Return the entry point of the kept kernel; None if there is none. types: of the operands' elements."""
        contents = self.folder.read(self.key)
        if contents is None:
            return None
        header, _, code = contents.partition(b"\n")
        work, *results = header.decode().split()
        outputs = [array_type(BY_SHORT_NAME[name.rstrip("*")], (1,), name.endswith("*")) for name in results]
        count = np.zeros(1, np.int64)
        return EntryPoint(load_object(code, {}), tuple(types), tuple(outputs), float(work), (count,))

    def write(self, code: bytes, point: EntryPoint) -> None:
        """Keep a kernel. code: binds functions of C alone. point: with the types and the work of one element."""
        results = [str(with_shape(type, ())).removesuffix("[]") for type in point.output_types]
        if sources_now() == sources():  # this process may have imported files that were changed since
            self.folder.write(self.key, " ".join((repr(point.work), *results)).encode() + b"\n" + code)


def place(
    primitive: Primitive, params: Mapping[str, Any], types: Sequence[Type], scalars: Sequence[bool]
) -> Place | None:
    """Return the file of a kernel, which need not exist; None where kernels like it are not kept.

    types: of the operands. scalars: the operands that are scalars.
    """
    folder, meaning = kernel_folder(), _meaning(primitive)
    if folder is None or meaning is None or not all(isinstance(value, _SIMPLE) for value in params.values()):
        return None
    found = sources()
    if found is None:
        return None
    operands = [f"{type}{'s' * scalar}" for type, scalar in zip(types, scalars, strict=True)]
    parts = (primitive.name, meaning, encode(dict(params)), *operands, repr(config.key()), machine_key(), VERSION)
    return Place(folder, hashlib.blake2b("\0".join((*parts, found)).encode(), digest_size=20).hexdigest())


def _meaning(primitive: Primitive) -> str | None:
    """Return the text of the formula that an elementwise primitive of this package computes."""
    match primitive.lower:
        case Pointwise(op):
            return str(op)
        case Composite(expand) if expand.__module__.startswith("tracer."):
            return f"{expand.__module__}.{expand.__qualname__}"
        case _:
            return None
