"""Library routines: how each is called from LLVM text, and where its symbols come from.

A routine is one record. `texts` are internal functions that adapt loop IR's arguments to the library's C interface.
`spell` writes the calls of one statement. `symbols` are the external names that it binds. Each is resolved lazily, by
name, so that object code can be kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tracer.codegen.llvm.kernels.fft import columns, lines, numpy_fft, short_lines
from tracer.codegen.llvm.kernels.fft.plans import plan_name, table_name
from tracer.codegen.llvm.kernels.gemm.blas import BLAS_KINDS, BLAS_LETTER, blas_threads, gemm_definition, gemm_split
from tracer.codegen.llvm.kernels.gemm.dispatch import SHORT_KIND, gemm_calls, product_declarations
from tracer.codegen.llvm.kernels.gemm.kernel_shapes import KINDS as OWN_KINDS
from tracer.codegen.llvm.kernels.gemm.skinny import COUNTS, FORMS, skinny_kind
from tracer.codegen.llvm.kernels.linalg import lapack
from tracer.codegen.llvm.kernels.linalg.blocked_cholesky import blocked_text
from tracer.codegen.llvm.kernels.linalg.blocked_trsm import systems_call, systems_text
from tracer.codegen.llvm.kernels.linalg.lapack_stacks import stack_definition, stack_external
from tracer.codegen.llvm.kernels.linalg.lu import lu_definition
from tracer.codegen.llvm.kernels.linalg.trsv import system_call, system_definition
from tracer.codegen.llvm.kernels.nontemporal import NAME, stream_definition
from tracer.codegen.llvm.kernels.scipy_symbols import blas_thread_symbols
from tracer.codegen.llvm.kernels.sort.numpy_sort import (
    ARGSORT_ROWS,
    KINDS,
    RADIX_ROWS,
    SORT_ROWS,
    rows_declaration,
    shared_rows,
)
from tracer.codegen.llvm.kernels.sort.top_k import split_top_k, top_k_definition
from tracer.codegen.llvm.kernels.words import NAMES as WORDS
from tracer.codegen.llvm.kernels.words import word_texts
from tracer.errors import InternalError
from tracer.ir import loop
from tracer.ir.loop.walk import blocks_of
from tracer.primitives.linalg.lapack_calls import ROUTINES, capsule_address

Spell = Callable[["Routine", loop.Library, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Routine:
    """One key of `LIBRARY`.

    texts: the definitions that a call of a function needs, by the function's name. blas: whether it needs to know about
    BLAS's threads. hears: whether it takes the address of the stop word after its arguments, and ends early if set.
    """

    name: str
    texts: dict[str, tuple[str, ...]]
    spell: Spell
    symbols: tuple[tuple[str, str, str], ...]  # (bound name, a module with __pyx_capi__, name there)
    blas: bool = False
    hears: bool = False


def _size(argument: loop.View | loop.Operand, routine: str) -> int:
    """Return a dimension: a constant that fits C's int. Raises InternalError for any other."""
    if not isinstance(argument, loop.Constant):
        raise InternalError(f"llvm: {routine} takes constant dimensions")
    value = int(argument.value)
    if not 0 <= value < 1 << 31:
        raise InternalError(f"llvm: {routine} with a dimension of {value}: BLAS takes 32-bit sizes")
    return value


# -- matrix products ---------------------------------------------------------------------------------------------


def _gemm_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write out[m, n] = op(a)[m, k] @ op(b)[k, n], `batch` times, all row-major.

    Arguments: views a, b, out; constants batch, m, n, k, transpose_a, transpose_b (0 or 1; then a is stored [k, m], b
    is stored [n, k]), stride_a, stride_b (elements of the routine's dtype from one product's operand to the next).
    """
    sizes = [_size(x, routine.name) for x in s.arguments[3:7]]
    return gemm_calls(routine.name.removeprefix("gemm_"), s.kernel, sizes, spelled)


def _gemm(kind: str) -> Routine:
    blas, letter = "scipy.linalg.cython_blas", BLAS_LETTER[kind]
    symbols = tuple((f"tracer_blas_{letter}{r}", blas, f"{letter}{r}") for r in ("gemm", "gemv"))
    alone = (blas_threads(), gemm_definition(kind))
    texts = {f"library.alone.gemm_{kind}": alone, f"library.split.gemm_{kind}": (*alone, gemm_split(kind))}
    if kind in OWN_KINDS:
        skinny = (skinny_kind(form, count, kind) for form in FORMS for count in COUNTS)
        for name in (kind, *skinny):
            texts |= {f"tracer_product_{way}_{name}": (product_declarations(name),) for way in ("alone", "shared")}
    return Routine(f"gemm_{kind}", texts, _gemm_spell, symbols, blas=True, hears=True)


def _short_gemm() -> Routine:
    """Return the product of operands of bf16 with a result of f32, only by our kernels; transpose_a is 0."""
    declarations = (product_declarations(SHORT_KIND),)
    texts: dict[str, tuple[str, ...]] = {
        f"tracer_product_{way}_{SHORT_KIND}": declarations for way in ("alone", "shared")
    }
    return Routine(f"gemm_{SHORT_KIND}", texts, _gemm_spell, (), hears=True)


# -- factorisations ----------------------------------------------------------------------------------------------


def _lapack_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write one call for all matrices; the arguments are listed in `lapack`."""
    batch, *_ = [_size(x, routine.name) for x in s.arguments if not isinstance(x, loop.View)]
    return [f"call void @library.{s.kernel.name or 'alone'}.{routine.name}({', '.join(spelled)})"] if batch else []


def _systems_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write one call for all systems."""
    batch, n, others = (_size(x, routine.name) for x in s.arguments[2:5])
    if not (batch and others):
        return []
    kind, split = routine.name.removeprefix("trsm_"), s.kernel.split
    if split is None:
        return [f"call void @library.alone.{routine.name}({', '.join(spelled)})"]
    if s.kernel.name == "blocked":
        return [systems_call(kind, spelled, batch, split)]
    left, lower, form, unit = (_size(x, routine.name) for x in s.arguments[5:])
    turned = bool(form) == bool(left)  # a system from the right is its transpose from the left
    a, x = spelled[:2]
    return [system_call(kind, a, x, (batch, n), (bool(lower), turned, bool(unit)), split.at_once)]


def _lapack(routine: str, kind: str) -> Routine:
    name, symbols = f"{routine}_{kind}", [lapack.external(routine, kind)]
    texts = {f"library.alone.{name}": lapack.definition(routine, kind)}
    if kind in OWN_KINDS and routine == "potrf":
        texts[f"library.blocked.{name}"] = blocked_text(kind)
        symbols.append(lapack.external("trsm", kind))
    if kind in OWN_KINDS and routine == "trsm":
        texts[f"library.blocked.{name}"] = systems_text(kind)
        texts[f"library.system_{kind}"] = (system_definition(kind),)
    elif routine == "trsm":
        symbols.append(lapack.external("trsv", kind))
    spell = _systems_spell if routine == "trsm" else _lapack_spell
    return Routine(name, texts, spell, tuple(symbols), blas=True, hears=True)


def _lu_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write one call for all matrices.

    Arguments: views a, pivots and work, as in `linalg.lu`, stacks of the first two; constants batch, m, n.
    """
    return [f"call void @library.{routine.name}({', '.join(spelled)})"]


def _lu(kind: str) -> Routine:
    return Routine(f"lu_{kind}", {f"library.lu_{kind}": (lu_definition(kind),)}, _lu_spell, (), hears=True)


def _stack_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write one call for all matrices; the arguments are listed in `lapack_stacks`."""
    known = ROUTINES[routine.name.partition("_")[0]]
    for argument in s.arguments[len(s.arguments) - len(known.sizes) - len(known.letters) :]:
        _size(argument, routine.name)
    return [f"call void @library.{routine.name}({', '.join(spelled)})"]


def _stack(key: str, kind: str) -> Routine:
    name = f"{key}_{kind}"
    texts = {f"library.{name}": stack_definition(key, kind)}
    return Routine(name, texts, _stack_spell, (stack_external(key, kind),), blas=True)


# -- sorting -----------------------------------------------------------------------------------------------------


_ROWS: Final = {"sort": SORT_ROWS, "argsort": ARGSORT_ROWS, "radix": RADIX_ROWS}


def _sort_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write target = each row of source sorted, or the stable order of its elements as positions (i64).

    Arguments: views source and target, which do not overlap, and for a radix sort one more, as large as the target;
    constants rows, n.
    """
    if not all(int(x.value) for x in s.arguments if isinstance(x, loop.Constant)):
        return []
    operation, _, kind = routine.name.partition("_")
    if s.kernel.split is not None:
        return [f"call void @{shared_rows(_ROWS[operation])}{kind}({', '.join(spelled)}, i64 {s.kernel.split.at_once})"]
    return [f"call void @{_ROWS[operation]}{kind}({', '.join(spelled)})"]


def _sorting(operation: str, kind: str) -> Routine:
    rows = _ROWS[operation]
    texts: dict[str, tuple[str, ...]] = {
        f"{rows}{kind}": (rows_declaration(rows, kind),),
        f"{shared_rows(rows)}{kind}": (rows_declaration(rows, kind, shared=True),),
    }
    return Routine(f"{operation}_{kind}", texts, _sort_spell, ())


def _top_k_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write values, places = the k largest elements of each row of source in descending order, and their indices (i32).

    Arguments: views source, values, places; constants rows, n and k, 1 <= k <= n.
    """
    if s.kernel.split is not None:
        return [f"call void @library.split.{routine.name}({', '.join(spelled)}, i64 {s.kernel.split.at_once})"]
    return [f"call void @library.{routine.name}({', '.join(spelled)})"]


def _top_k(kind: str) -> Routine:
    text, name = top_k_definition(kind), f"topk_{kind}"
    texts: dict[str, tuple[str, ...]] = {
        f"library.{name}": (text,), f"library.split.{name}": (text, split_top_k(kind)),
    }  # fmt: skip
    return Routine(name, texts, _top_k_spell, ())


# -- Fourier transforms ------------------------------------------------------------------------------------------


def _fft_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write target[o, :, i] = the transform of source[o, :, i].

    Arguments: views source and target, which do not overlap, and further memory if threads share a line; constants
    kind (0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT), outer, length, inner, n1 of two steps or 0, the longer length of a
    convolution or 0; the scale, f64.
    """
    views = [text for text, x in zip(spelled, s.arguments, strict=True) if isinstance(x, loop.View)]
    sizes = [int(x.value) for x in s.arguments[len(views) : -1] if isinstance(x, loop.Constant)]
    kind = routine.name.removeprefix("fft_")
    grain = s.kernel.split.at_once if s.kernel.split is not None else 1 << 62
    if s.kernel.name == "short":
        return [_short_fft(kind, views, sizes, f"{spelled[-1]}, i64 {grain}")]
    given = ", ".join([*views[:2], *(f"i64 {size}" for size in sizes[:4]), spelled[-1], f"i64 {grain}"])
    if s.kernel.name == "columns":
        return [f"call void @{columns.NAME}{kind}({given}, ptr @{table_name(kind, 'columns', sizes[2], 0)})"]
    if s.kernel.name != "lines":
        return [f"call void @{numpy_fft.NAME}{kind}({given})"]
    plan = plan_name(kind, sizes[2], sizes[4], sizes[5], real=sizes[0] >= 2)
    work = views[2] if len(views) > 2 else "ptr null"
    return [f"call void @{lines.NAME}{kind}({given}, ptr @{plan}, {work})"]


def _short_fft(kind: str, views: Sequence[str], sizes: Sequence[int], scale_and_grain: str) -> str:
    """Return the call of a kernel of short lines."""
    fft_type, real = short_lines.KINDS[sizes[0]], sizes[0] >= 2
    h = sizes[2] // 2 if real else sizes[2]
    n1, n2 = short_lines.STEPS[h]
    halves = f"@{table_name(kind, 'halves', h, 0)}" if real else "null"
    given = f"{', '.join(views[:2])}, i64 {sizes[1]}, {scale_and_grain}"
    name = short_lines.short_name(fft_type, n1, n2, kind)
    return f"call void @{name}({given}, ptr @{table_name(kind, 'between', h, n1)}, ptr {halves})"


def _fft(kind: str) -> Routine:
    parameters = {f"{module.NAME}{kind}": module.PARAMETERS for module in (numpy_fft, lines, columns)}
    for fft_type in short_lines.KINDS:
        for n1, n2 in short_lines.STEPS.values():
            parameters[short_lines.short_name(fft_type, n1, n2, kind)] = short_lines.PARAMETERS
    texts: dict[str, tuple[str, ...]] = {
        name: (f"declare void @{name}({given})",) for name, given in parameters.items()
    }
    return Routine(f"fft_{kind}", texts, _fft_spell, ())


def _stream_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write to[: count] = from[: count]: views to and from, the count, and the bytes of an element."""
    return [f"call void @{NAME}({', '.join(spelled)})"]


def _word_spell(routine: Routine, s: loop.Library, spelled: Sequence[str]) -> list[str]:
    """Write to a shared word. Arguments: its number, and for `mark` the amount; both i64."""
    return [f"call void @library.{routine.name}({', '.join(spelled)})"]


LIBRARY: Final[dict[str, Routine]] = {
    routine.name: routine
    for routine in (
        *map(_gemm, BLAS_KINDS),
        _short_gemm(),
        *(_lapack(routine, kind) for routine in ("potrf", "trsm") for kind in BLAS_KINDS),
        *(_lapack("getrf", kind) for kind in BLAS_KINDS if kind not in OWN_KINDS),
        *map(_lu, OWN_KINDS),
        *(_stack(key, kind) for key in ROUTINES for kind in BLAS_KINDS),
        *(_sorting(operation, kind) for kind in KINDS for operation in _ROWS),
        *map(_top_k, KINDS),
        *map(_fft, OWN_KINDS),
        Routine("stream", {NAME: (stream_definition(),)}, _stream_spell, ()),
        *(Routine(name, {f"library.{name}": word_texts(name)}, _word_spell, ()) for name in WORDS),
    )
}  # fmt: skip


def library_names(module: loop.Module) -> list[str]:
    """Return the routines that a module calls, in order of their names."""
    names, blocks = set(), [function.body for function in module.functions]
    while blocks:
        for statement in blocks.pop().statements:
            if isinstance(statement, loop.Library):
                names.add(statement.name)
            blocks.extend(blocks_of(statement))
    return sorted(names)


def called(call: str) -> str:
    """Return the name of the function in the text of a call."""
    return call[call.index("@") + 1 : call.index("(")]


def library_texts(helpers: Container[str]) -> list[str]:
    """Return the definitions that calls of the functions among `helpers` need, each once."""
    functions = [texts for routine in LIBRARY.values() for name, texts in routine.texts.items() if name in helpers]
    return list(dict.fromkeys(text for texts in functions for text in texts))


def calls_scipy(names: Iterable[str], text: str) -> bool:
    """Whether a module's text names BLAS or LAPACK among the symbols of the named routines."""
    return any(f"@{symbol[0]}(" in text for name in names for symbol in LIBRARY[name].symbols)


def library_symbols(names: Iterable[str], text: str | None = None) -> dict[str, int]:
    """Return the addresses that the named routines bind, or only the ones in a module's text.

    SciPy is imported only when there are any.

    >>> library_symbols([])
    {}
    """
    addresses = {}
    for name in names:
        bound = [s for s in LIBRARY[name].symbols if text is None or f"@{s[0]}(" in text]
        for symbol, module, function in bound:
            addresses[symbol] = capsule_address(module, function)
        if LIBRARY[name].blas and bound:
            addresses.update(blas_thread_symbols())
    return addresses
