"""Tables of sixteen constants: a permutation of registers with AVX-512, elsewhere loads from memory."""

from __future__ import annotations

import hashlib
from typing import Final

from tracer.codegen.llvm.registers import in_registers
from tracer.codegen.llvm.types import ELEMENT, splat, suffix, vector
from tracer.codegen.llvm.writer import Writer
from tracer.ir.dtypes import F32, DType

_ENTRIES: Final = 16


def lookup(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    """The value, of sixteen literals, that the lowest four bits of the index count."""
    if w.splits_floats and lanes * dtype.itemsize >= (32 if dtype == F32 else 64):
        return _permuted(w, dtype, lanes, index, values)
    return _loaded(w, dtype, lanes, index, values)


def _permuted(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    """One instruction a register: all of a table is in one or in two."""
    element, word = ELEMENT[dtype], f"i{8 * dtype.itemsize}"
    count = min(lanes, 64 // dtype.itemsize)
    floats, words = vector(element, count), vector(word, count)
    tables = ["<" + ", ".join(f"{element} {v}" for v in values[i : i + count]) + ">" for i in range(0, _ENTRIES, count)]
    kind = "ps" if dtype == F32 else "pd"
    name = "permvar.sf.512" if len(tables) == 1 else f"vpermi2var.{kind}.{8 * count * dtype.itemsize}"
    full = f"@llvm.x86.avx512.{name}"
    w.declarations[full] = f"declare {floats} {full}({', '.join([floats, words, floats][: len(tables) + 1])})"

    def write(held: list[str]) -> str:
        given = [f"{floats} {tables[0]}", f"{words} {held[0]}", *[f"{floats} {t}" for t in tables[1:]]]
        return w.let(f"call {floats} {full}({', '.join(given)})")

    return in_registers(w, lanes, count, element, [(word, index)], write)


def _loaded(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    element, word = ELEMENT[dtype], f"i{8 * dtype.itemsize}"
    kind = vector(element, lanes)
    entries = ", ".join(f"{element} {v}" for v in values)
    table = f"@table.{hashlib.sha256(entries.encode()).hexdigest()[:16]}"
    w.declarations[table] = f"{table} = private unnamed_addr constant [{_ENTRIES} x {element}] [{entries}], align 64"
    low = w.let(f"and {vector(word, lanes)} {index}, {splat(word, str(_ENTRIES - 1), lanes)}")
    place = w.let(f"getelementptr {element}, ptr {table}, {vector(word, lanes)} {low}")
    if not lanes:
        return w.let(f"load {element}, ptr {place}, align {dtype.itemsize}")
    pointers, mask = vector("ptr", lanes), vector("i1", lanes)
    name = f"@llvm.masked.gather{suffix(element, lanes)}.v{lanes}p0"
    w.declarations[name] = f"declare {kind} {name}({pointers}, i32, {mask}, {kind})"
    where = f"{pointers} {place}, i32 {dtype.itemsize}, {mask} splat (i1 true)"
    return w.let(f"call {kind} {name}({where}, {kind} poison)")
