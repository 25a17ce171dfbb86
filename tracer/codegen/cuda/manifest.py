"""Manifest of a program's CUDA source: JSON with all that a host needs to run it, without tracer.

Steps are records of `ir.loop`, with "do" for their class. Buffers and registers go by name; addresses and counts are
in elements, offsets, alignments and sizes of memory in bytes. The slab is aligned to 64 bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np

from tracer.codegen.cuda.source import FAULT_SHIFT, CudaSource
from tracer.ir import loop
from tracer.ir.dtypes import short_name

Json = dict[str, Any]
Values = np.ndarray[Any, Any]


def manifest(
    source: CudaSource, *, name: str, arch: str, captured: Sequence[Values], constants: Sequence[Values],
    sites: Sequence[str],
) -> Json:  # fmt: skip
    """Return the manifest of a source. sites: texts of the faults.

    captured, constants: the data of the first INPUT parameters, and of the CONSTANT ones.

    The result consists of JSON's values. Equal sources give equal manifests.
    """
    entry = _Entry(source.entry)
    steps = entry.steps(source.entry.body)
    data, outside = iter(constants), iter(captured)
    parameters: list[Json] = []
    for p in source.parameters:
        aligned = max(p.alignment, int(p.dtype.itemsize))
        record: Json = {"name": p.name, "kind": p.space.value, "alignment": aligned, **_memory(p)}
        values = {loop.Space.CONSTANT: data, loop.Space.INPUT: outside}.get(p.space)
        held = None if values is None else next(values, None)
        if held is not None:
            record["base64"] = base64.b64encode(np.ascontiguousarray(held).tobytes()).decode()
        parameters.append(record)
    kernels = {
        kernel.name: {
            "grid": kernel.grid, "block": kernel.block, "shared": kernel.shared, "fault_record": kernel.faults,
            "parameters": [_parameter(p) for p in kernel.parameters],
        }
        for kernel in source.kernels
    }  # fmt: skip
    faults = {"initial": "ff" * 8, "shift": FAULT_SHIFT, "sites": list(sites)}
    return {
        "name": name, "arch": arch, "complete": not source.left, "left": list(source.left), "parameters": parameters,
        "slab": source.arena, "slots": entry.slots, "stacks": source.stacks, "kernels": kernels, "faults": faults,
        "steps": steps,
    }  # fmt: skip


def _memory(buffer: loop.Buffer) -> Json:
    return {
        "dtype": short_name(buffer.dtype), "size": buffer.size, "bytes": buffer.size * int(buffer.dtype.itemsize),
    }  # fmt: skip


def _parameter(parameter: loop.Buffer | loop.Register) -> Json:
    is_buffer = isinstance(parameter, loop.Buffer)
    record: Json = {"dtype": short_name(parameter.dtype), "pointer": is_buffer}
    return {**record, "written": parameter.written} if isinstance(parameter, loop.Buffer) else record


class _Entry:
    """Encoder of the entry's statements, which names its registers and collects the slots of the slab."""

    def __init__(self, function: loop.Function) -> None:
        self.slots: dict[str, Json] = {}
        self._registers: dict[loop.Register, str] = {}
        self._buffers: dict[loop.Buffer, str] = {p: p.name for p in function.parameters if isinstance(p, loop.Buffer)}

    def steps(self, block: loop.Block) -> list[Json]:
        return [self._of(statement) for statement in block.statements]

    def _of(self, x: Any) -> Any:
        match x:
            case None | bool() | int() | str():
                return x
            case Enum():
                return x.value
            case tuple():
                return [self._of(item) for item in x]
            case loop.Buffer():
                return self._buffer(x)
            case loop.Register():
                return self._registers.setdefault(x, f"r{len(self._registers)}")
            case loop.Constant():
                return {"constant": x.bits.hex(), "dtype": short_name(x.dtype)}
            case loop.View():
                return {"buffer": self._of(x.buffer), "start": self._of(x.start)}
            case loop.Address():
                return {"constant": x.constant, "terms": [[self._of(r), factor] for r, factor in x.terms]}
            case loop.Block():
                return {"steps": self.steps(x), "yields": self._of(x.yields)}
            case np.dtype():
                return short_name(x)
            case _:
                return {"do": type(x).__name__.lower(), **{f.name: self._of(getattr(x, f.name)) for f in fields(x)}}

    def _buffer(self, buffer: loop.Buffer) -> str:
        if buffer not in self._buffers:
            name = self._buffers[buffer] = f"{buffer.name}.{len(self.slots)}"
            self.slots[name] = {**_memory(buffer), "offset": buffer.offset}
        return self._buffers[buffer]
