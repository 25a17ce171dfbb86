"""Kernel modules that programs share: each is compiled once in a process, when the first program calls it.

LLVM takes 30 ms for the thousand lines of a matrix product or transpose, and 10 for a radix sort. Programs call them by
name. Scalar modules that only dispatch are compiled at level 0, in a fifth of the time.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from tracer.codegen.llvm.emit.shared_reductions import KINDS as TOTALS
from tracer.codegen.llvm.emit.shared_reductions import total_text
from tracer.codegen.llvm.kernels.fft import butterflies, column_passes, columns, lines, numpy_fft, short_lines
from tracer.codegen.llvm.kernels.fft.plans import plan_symbols
from tracer.codegen.llvm.kernels.fft.shared_texts import C_NAMES
from tracer.codegen.llvm.kernels.gemm.amx import tried_out
from tracer.codegen.llvm.kernels.gemm.bf16_dot import short_products_text
from tracer.codegen.llvm.kernels.gemm.dispatch import SHORT_KIND, product_calls_text, product_split_text
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS
from tracer.codegen.llvm.kernels.gemm.microkernel import products_text
from tracer.codegen.llvm.kernels.gemm.skinny import COUNTS, FORMS, skinny_kind, skinny_text
from tracer.codegen.llvm.kernels.linalg.lu import NAME as LU
from tracer.codegen.llvm.kernels.linalg.lu import lu_text
from tracer.codegen.llvm.kernels.linalg.trsv import NAME as SYSTEM
from tracer.codegen.llvm.kernels.linalg.trsv import system_text
from tracer.codegen.llvm.kernels.routines import library_symbols
from tracer.codegen.llvm.kernels.sort.numpy_sort import (
    ARGSORT_ROWS,
    RADIX_ROWS,
    ROWS,
    SORT_ROWS,
    argsort_text,
    numpy_symbols,
    radix_rows_text,
    shared_rows,
    shared_rows_text,
    sort_text,
)
from tracer.codegen.llvm.kernels.sort.numpy_sort import KINDS as SORTED_KINDS
from tracer.codegen.llvm.kernels.sort.radix_argsort import SYMBOL as RADIX
from tracer.codegen.llvm.kernels.sort.radix_argsort import radix_text
from tracer.codegen.llvm.kernels.thread_pool import pool_symbols
from tracer.codegen.llvm.kernels.transpose import BLOCK, PAST, SYMBOL, past_text, transpose_text
from tracer.codegen.llvm.kernels.words import word_symbols
from tracer.codegen.llvm.toolchain.object_code import (
    Compile,
    LoadedModule,
    compile_object,
    load_object,
    process_symbols,
)
from tracer.codegen.llvm.toolchain.target import bits_in_force


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """One module. names: the functions that it defines. opt: LLVM's code generation level.

    holds: whether the loaded module works; if not, its text is generated again. symbols: addresses that it binds
    besides other modules and the pool.
    """

    names: tuple[str, ...]
    text: Callable[[], str]
    opt: int = 2
    holds: Callable[[LoadedModule], bool] = lambda loaded: True
    symbols: Callable[[], dict[str, int]] = dict


PRODUCT: Final = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 8, ctypes.c_void_p)
"""Type of a kernel: a, b and out; m, n, k and steps; the function that transposes tiles."""


def _holds(loaded: LoadedModule) -> bool:
    return tried_out(PRODUCT(loaded.address(f"tracer_product_{SHORT_KIND}")))


def _kernel(kind: str) -> _Shared:
    return _Shared((f"tracer_product_{kind}", f"tracer_product_add_{kind}"), partial(products_text, kind))


def _products(kind: str, kernel: _Shared) -> list[_Shared]:
    return [
        kernel,
        _Shared(
            (f"tracer_product_alone_{kind}", f"tracer_product_batch_{kind}"), partial(product_calls_text, kind), opt=0
        ),
        _Shared((f"tracer_product_shared_{kind}",), partial(product_split_text, kind), opt=0),
    ]


def _rows(kind: str) -> list[_Shared]:
    """Return the sorts of rows, mostly by NumPy's functions, on one thread and on several."""
    texts = {SORT_ROWS: sort_text, ARGSORT_ROWS: argsort_text, RADIX_ROWS: radix_rows_text}
    alone = [
        _Shared(
            (f"{rows}{kind}",), partial(texts[rows], kind), 0 if rows == RADIX_ROWS else 2,
            symbols=partial(numpy_symbols, rows, kind),
        )
        for rows in ROWS
    ]  # fmt: skip
    shared = [_Shared((f"{shared_rows(rows)}{kind}",), partial(shared_rows_text, rows, kind), 0) for rows in ROWS]
    return [*alone, *shared]


_SHARED: Final = (
    *(_Shared((f"{SYMBOL}{size}",), partial(transpose_text, size)) for size in BLOCK),
    *(_Shared((f"{SYMBOL}{size}_past",), partial(past_text, size)) for size in PAST),
    *(module for kind in KINDS for module in _products(kind, _kernel(kind))),
    *_products(SHORT_KIND, _Shared((f"tracer_product_{SHORT_KIND}",), short_products_text, holds=_holds)),
    *(_Shared((f"{RADIX}{kind}",), partial(radix_text, kind)) for kind in SORTED_KINDS),
    *(module for kind in SORTED_KINDS for module in _rows(kind)),
    *(_Shared((name,), partial(total_text, name)) for name in TOTALS),
    *(_Shared((f"{LU}{kind}",), partial(lu_text, kind)) for kind in KINDS),
    *(_Shared((f"{SYSTEM}{kind}",), partial(system_text, kind)) for kind in KINDS),
    *(
        _Shared(
            (f"{numpy_fft.NAME}{kind}",), partial(numpy_fft.numpy_text, kind), 0,
            symbols=partial(numpy_fft.numpy_symbols, kind),
        )
        for kind in KINDS
    ),
    *(
        _Shared((short_lines.short_name(*which, kind),), partial(short_lines.short_text, *which, kind))
        for fft_type in short_lines.KINDS
        for which in ((fft_type, *steps) for steps in short_lines.STEPS.values())
        for kind in KINDS
    ),
    *(
        _Shared((f"{name}{kind}",), partial(text, kind), symbols=partial(process_symbols, C_NAMES))
        for name, text in ((lines.NAME, lines.lines_text), (columns.NAME, columns.columns_text))
        for kind in KINDS
    ),
    *(
        _Shared((f"{column_passes.PASS}{part}{radix}_{kind}",), partial(text, radix, kind))
        for part, text in column_passes.TEXTS.items()
        for radix in column_passes.COLUMN_RADICES
        for kind in KINDS
    ),
    *(
        _Shared((f"{butterflies.NAME}{radix}_{kind}",), partial(butterflies.pass_text, radix, kind))
        for radix in butterflies.RADICES
        for kind in KINDS
    ),
)  # fmt: skip


def _skinny(form: str, count: int, kind: str) -> list[_Shared]:
    name = skinny_kind(form, count, kind)
    return _products(name, _Shared((f"tracer_product_{name}",), partial(skinny_text, form, count, kind)))


_SKINNY: Final = [
    module for form in FORMS for count in COUNTS for kind in KINDS for module in _skinny(form, count, kind)
]
_BY_NAME: Final = {name: module for module in (*_SHARED, *_SKINNY) for name in module.names}
_NAMED: Final = re.compile(r"@(tracer_\w+)[,(]")
_RESULTS: Final = ("void", "i1", "i32", "i64", "float", "double")
_WAYS: Final = (
    "ptr ",
    "} ",
    *(f"call {result} " for result in _RESULTS),
)  # passed as a pointer, or called


def _wanted_by(text: str) -> list[_Shared]:
    """Return the modules that define the functions that a text calls or passes."""
    named = {m[1] for m in _NAMED.finditer(text) if text.endswith(_WAYS, 0, m.start())}
    return list(dict.fromkeys(_BY_NAME[name] for name in sorted(named) if name in _BY_NAME))


class _Modules:
    """Modules made so far in this process."""

    def __init__(self) -> None:
        self.made: dict[tuple[_Shared, int], LoadedModule] = {}  # key: the module and the bits of a vector
        self.common: dict[str, _Shared] = {}  # by the module's text
        self.forked()

    def forked(self) -> None:
        self.lock = threading.RLock()  # one module may need another

    def get(self, shared: _Shared, compile: Compile) -> LoadedModule:
        key = shared, bits_in_force()
        with self.lock:
            if key not in self.made:
                loaded = self._made(shared, compile)
                self.made[key] = loaded if shared.holds(loaded) else self._made(shared, compile)
            return self.made[key]

    def _made(self, shared: _Shared, compile: Compile) -> LoadedModule:
        text = shared.text()
        code = compile(text, opt=shared.opt)
        symbols = {**shared.symbols(), **shared_symbols(text, compile, but=shared)}
        return load_object(code, symbols, export=shared.names[0])


_MODULES = _Modules()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_MODULES.forked)


def shared_symbols(text: str, compile: Compile = compile_object, *, but: _Shared | None = None) -> dict[str, int]:
    """Return the addresses that a module's text binds in shared modules and in the pool, and make these if needed.

    compile: turns text into object code. but: the module that the text is of.
    """
    found = {
        **pool_symbols(text, compile),
        **plan_symbols(text, lambda name: _MODULES.get(_BY_NAME[name], compile).address(name)),
    }
    for shared in _wanted_by(text):
        if shared is not but:
            module = _MODULES.get(shared, compile)
            found |= {name: module.address(name) for name in shared.names}
    return found


def common_symbols(modules: Mapping[str, str], compile: Compile = compile_object) -> dict[str, int]:
    """Return the addresses of the functions that `outlined_functions.apart` took out of a program's text."""
    found = {}
    for name, text in modules.items():
        shared = _MODULES.common.setdefault(text, _Shared((name,), partial(str, text)))
        found[name] = _MODULES.get(shared, compile).address(name)
    return found


def outside_symbols(text: str, names: Iterable[str], compile: Compile = compile_object) -> dict[str, int]:
    """Return every address that a module's text binds: of the named routines, our kernels, and the thread pool.

    Our kernels are made on first use by `compile`, which turns text into object code.
    """
    return {**library_symbols(names, text), **shared_symbols(text, compile), **word_symbols(text)}
