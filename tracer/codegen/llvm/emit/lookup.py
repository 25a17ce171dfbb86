"""Tables of sixteen constants: permutations of registers with AVX-512, of f32 with AVX2, loads on other machines."""

from __future__ import annotations

import hashlib
from typing import Final

from tracer.codegen.llvm.emit.register_splitting import in_registers
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, splat, vector
from tracer.ir.dtypes import F32, DType

_ENTRIES: Final = 16


def lookup(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    """Return the value at the lowest four bits of the index in a table of sixteen literals."""
    size = lanes * dtype.itemsize
    if w.splits_floats and size >= (32 if dtype == F32 else 64):
        return _permuted(w, dtype, lanes, index, values)
    if w.permutes_singles and dtype == F32 and size >= 32:
        return _by_halves(w, lanes, index, values)
    return _loaded(w, dtype, lanes, index, values)


def _permuted(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    """Write one instruction a register: a whole table is in one register or in two."""
    element, word = ELEMENT[dtype], f"i{8 * dtype.itemsize}"
    count = min(lanes, 64 // dtype.itemsize)
    floats, words = vector(element, count), vector(word, count)
    tables = _tables(element, count, values)
    kind = "ps" if dtype == F32 else "pd"
    name = "permvar.sf.512" if len(tables) == 1 else f"vpermi2var.{kind}.{8 * count * dtype.itemsize}"
    full = f"@llvm.x86.avx512.{name}"
    w.declarations[full] = f"declare {floats} {full}({', '.join([floats, words, floats][: len(tables) + 1])})"

    def write(held: list[str]) -> str:
        given = [f"{floats} {tables[0]}", f"{words} {held[0]}", *[f"{floats} {t}" for t in tables[1:]]]
        return w.let(f"call {floats} {full}({', '.join(given)})")

    return in_registers(w, lanes, count, element, [(word, index)], write)


def _by_halves(w: Writer, lanes: int, index: str, values: list[str]) -> str:
    """Write two permutations of eight entries with AVX2, and select."""
    floats, words = vector("float", 8), vector("i32", 8)
    low, high = _tables("float", 8, values)
    name = "@llvm.x86.avx2.permps"
    w.declarations[name] = f"declare {floats} {name}({floats}, {words})"

    def write(held: list[str]) -> str:
        first, second = (w.let(f"call {floats} {name}({floats} {half}, {words} {held[0]})") for half in (low, high))
        bit = w.let(f"and {words} {held[0]}, {splat('i32', '8', 8)}")
        upper = w.let(f"icmp ne {words} {bit}, zeroinitializer")
        return w.let(f"select {vector('i1', 8)} {upper}, {floats} {second}, {floats} {first}")

    return in_registers(w, lanes, 8, "float", [("i32", index)], write)


def _tables(element: str, count: int, values: list[str]) -> list[str]:
    """Return the values as constant vectors of `count` elements."""
    return ["<" + ", ".join(f"{element} {v}" for v in values[i : i + count]) + ">" for i in range(0, _ENTRIES, count)]


def _loaded(w: Writer, dtype: DType, lanes: int, index: str, values: list[str]) -> str:
    """Write a load for each lane, in half the time of AVX2's gathers."""
    element, word = ELEMENT[dtype], f"i{8 * dtype.itemsize}"
    entries = ", ".join(f"{element} {v}" for v in values)
    table = f"@table.{hashlib.sha256(entries.encode()).hexdigest()[:16]}"
    w.declarations[table] = f"{table} = private unnamed_addr constant [{_ENTRIES} x {element}] [{entries}], align 64"
    low = w.let(f"and {vector(word, lanes)} {index}, {splat(word, str(_ENTRIES - 1), lanes)}")

    def entry(place: str) -> str:
        return w.let(f"load {element}, ptr {w.let(f'getelementptr {element}, ptr {table}, {word} {place}')}")

    if not lanes:
        return entry(low)
    result = "poison"
    for lane in range(lanes):
        value = entry(w.let(f"extractelement {vector(word, lanes)} {low}, i64 {lane}"))
        result = w.let(f"insertelement {vector(element, lanes)} {result}, {element} {value}, i64 {lane}")
    return result
