"""Orthogonal and spectral decompositions by LAPACK: matrices by columns in work memory, stacks shared by threads.

Eigenvalues and singular values of many small matrices are computed in lanes, by rotations.

Arrays here are row-major, so matrices are transposed before and after. A stack is cut into a few parts, each with
scratch memory of its own. Which matrices make a part follows from shapes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from tracer.ir import dtypes
from tracer.ir.loop import LoopKind
from tracer.ir.loop.build import constant
from tracer.ir.primitive import Library
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, array_type, size
from tracer.primitives.linalg.lapack_calls import ROUTINES, item_of, scratch_sizes
from tracer.schedule.algorithms.batched_small_matrices import Stack, Sweeps, write_lanes
from tracer.schedule.algorithms.factorizations import load_at, write_turned
from tracer.schedule.algorithms.jacobi import MAX_SWEEPS, Eigh
from tracer.schedule.algorithms.singular_values import Svd
from tracer.schedule.terms.affine import flatten, shifted
from tracer.schedule.terms.cost import matrix_cost
from tracer.schedule.terms.schedules import Schedule
from tracer.schedule.terms.value_locations import Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_IN_LANES: Final = {"eigh": (16, 12), "svd": (16, 8)}
"""Sizes up to which rotations in lanes pay, for single and double precision.

10,000 matrices on two busy cores, beside LAPACK: f64 eigh 9 times as fast at n = 4, 3.5 at 8, 2 at 12; svd 6 at 4, 2.4
at 8. f32: eigh 6 at 8, 3 at 16; svd 6 at 8, 2 at 16. At 16, f64 svd is no faster, and its values alone are slower.
"""
_BY_ROWS: Final = 56
"""Rows up to which a tridiagonal form is made row by row, for which syevd gets the least work memory.

Of 50 rows in f64 it takes 45 µs, in blocks 59, of 105 for all eigenvalues.
"""
_MAX_PARTS: Final = 16  # of a stack; each has scratch of its own
_PART_WORK: Final = 1 << 15  # cubes of sizes that are worth a thread: some 50 µs


class _Call:
    """One call of a routine on a stack: its arrays in memory, by their names."""

    def __init__(self, writer: BlockWriter, key: str, x: Atom) -> None:
        assert isinstance(x.type, ArrayType)
        self.writer, self.key, self.dtype = writer, key, x.type.dtype
        self.count = prod(x.type.shape[:-2])
        self.arrays: dict[str, tuple[Memory, int]] = {}

    def new(self, name: str, elements: int) -> Memory:
        """Return new memory of so many elements for each matrix."""
        dtype = item_of(dict(ROUTINES[self.key].arrays)[name], self.dtype)
        return self.has(name, self.writer.allocate(array_type(dtype, (self.count, max(elements, 1)))), elements)

    def has(self, name: str, memory: Memory, elements: int) -> Memory:
        """Let an array be this memory."""
        self.arrays[name] = (memory, elements)
        return memory

    def turned(self, name: str, x: Atom, rows: int, columns: int) -> Memory:
        """Return new memory with the matrices of `x` by columns."""
        work = self.new(name, rows * columns)
        write_turned(self.writer, self.writer.memory_of(x), work, (self.count, rows, columns))
        return work

    def result(self, variable: Var, memory: Memory, rows: int, columns: int) -> None:
        """Write a result from matrices by columns."""
        write_turned(self.writer, memory, self.writer.target_of(variable), (self.count, columns, rows))

    def run(self, sizes: dict[str, int], letters: str = "") -> None:
        """Write the call. letters: one for each of the routine's."""
        routine, n = ROUTINES[self.key], max(of for name, of in sizes.items() if name != "lwork")
        parts = min(self.count, _MAX_PARTS, max(self.count * n**3 // _PART_WORK, 1))
        width = -(-self.count // parts)
        scratch = scratch_sizes(self.key, self.dtype, sizes)
        for name, item in routine.arrays:
            if name not in self.arrays:
                held = scratch.get(name, 1)
                of = -(-self.count // width) if name in routine.scratch else self.count
                memory = self.writer.allocate(array_type(item_of(item, self.dtype), (of, held)))
                self.arrays[name] = (memory, held)
        lengths = {f"l{name}": scratch[name] for name in scratch}
        arrays = [self.arrays[name] for name, _ in routine.arrays]
        numbers = [self.count, width, *(stride for _, stride in arrays)]
        numbers += [{**lengths, "one": 1, **sizes}[name] for name in routine.sizes]
        name = f"{self.key}_{dtypes.short_name(self.dtype)}"
        self.writer.builder.library(
            name, *(memory.view for memory, _ in arrays), *numbers, *map(ord, letters)
        )  # fmt: skip


def _columns(x: Atom) -> tuple[int, int]:
    *_, m, n = x.type.shape
    return m, n


def _lanes_pay(name: str, x: Atom) -> bool:
    """Return whether matrices are small, and so many that lanes are not idle. A single one goes to LAPACK."""
    assert isinstance(x.type, ArrayType)
    n, is_single = max(_columns(x)), dtypes.real_dtype(x.type.dtype) == dtypes.F32
    return n <= _IN_LANES[name][0 if is_single else 1] and 2 * prod(x.type.shape[:-2]) > max(n, 2)


# -- orthogonal factors ------------------------------------------------------------------------------------------


def write_geqrf(writer: BlockWriter, equation: Equation) -> None:
    """Write R above and reflectors below the diagonal, and the reflectors' factors."""
    (x,), (packed, taus) = equation.inputs, equation.outputs
    m, n = _columns(x)
    call = _Call(writer, "geqrf", x)
    a = call.turned("a", x, m, n)
    call.has("tau", writer.target_of(taus), min(m, n))
    call.run({"m": m, "n": n})
    call.result(packed, a, m, n)


def write_geqp3(writer: BlockWriter, equation: Equation) -> None:
    """Write the factors as `write_geqrf`, and the order of columns that makes the diagonal of R descend."""
    (x,), (packed, taus, order) = equation.inputs, equation.outputs
    m, n = _columns(x)
    call = _Call(writer, "geqp3", x)
    a = call.turned("a", x, m, n)
    call.has("tau", writer.target_of(taus), min(m, n))
    pivots = call.new("jpvt", n)
    _fill(writer, pivots)
    call.run({"m": m, "n": n})
    call.result(packed, a, m, n)
    f = FunctionWriter(writer)
    counted, target = f.memory(pivots), f.memory(writer.target_of(order), written=True)
    with f.loops((size(order.type),), LoopKind.PARALLEL) as (at,):
        (column,) = load_at(f, counted, at)
        f.store_at(target, at, (f.builder.compute(ScalarOp.SUB, column, 1),))
    f.invoke()


def _fill(writer: BlockWriter, memory: Memory) -> None:
    """Fill integers with zeros."""
    f = FunctionWriter(writer)
    target = f.memory(memory, written=True)
    with f.loops((size(memory.type),), LoopKind.PARALLEL) as (at,):
        f.store_at(target, at, (constant(0, dtypes.I32),))
    f.invoke()


def write_householder_product(writer: BlockWriter, equation: Equation) -> None:
    """Write the first columns of the product of reflectors."""
    (x, taus), (q,) = equation.inputs, equation.outputs
    m, n = _columns(x)
    k = taus.type.shape[-1]
    call = _Call(writer, "orgqr", x)
    a = call.turned("a", x, m, n)
    factors = call.new("tau", k)
    if k:
        writer.copy(factors, writer.memory_of(taus))
    call.run({"m": m, "n": n, "k": k})
    call.result(q, a, m, n)


# -- eigenvalues and singular values -----------------------------------------------------------------------------


def write_eigh(writer: BlockWriter, equation: Equation) -> None:
    """Write the eigenvalues of Hermitian matrices from their lower triangles, and the eigenvectors where wanted."""
    (x,), (values, *vectors) = equation.inputs, equation.outputs
    n, _ = _columns(x)
    if _lanes_pay("eigh", x):
        _write_lanes(writer, x, values, vectors, Eigh(n))
        return
    call = _Call(writer, "syevd", x)
    a = call.turned("a", x, n, n)
    call.has("w", writer.target_of(values), n)
    if n <= _BY_ROWS and not vectors:
        call.run({"n": n, "lwork": 2 * n + 1}, "NL")
        return
    call.run({"n": n}, "VL" if vectors else "NL")
    for variable in vectors:
        call.result(variable, a, n, n)


def write_svd(writer: BlockWriter, equation: Equation) -> None:
    """Write singular values, and the vectors where wanted."""
    (x,), (values, *vectors) = equation.inputs, equation.outputs
    m, n = _columns(x)
    if _lanes_pay("svd", x):
        _write_lanes(writer, x, values, vectors, Svd(m, n))
        return
    call = _Call(writer, "gesdd", x)
    call.has("s", writer.target_of(values), min(m, n))
    letter = "N" if not vectors else "A" if equation.params["full_matrices"] else "S"
    if m <= n:
        _write_svd_of_transpose(writer, call, x, vectors, letter)
        return
    call.turned("a", x, m, n)
    sizes = {"m": m, "n": n, "ldvt": n}
    if not vectors:
        call.run(sizes, letter)
        return
    left, right = vectors
    columns = _columns(left)[1]
    u, vt = call.new("u", m * columns), call.new("vt", n * n)
    call.run(sizes, letter)
    call.result(left, u, m, columns)
    call.result(right, vt, n, n)


def _write_svd_of_transpose(writer: BlockWriter, call: _Call, x: Atom, vectors: Sequence[Var], letter: str) -> None:
    """Write the decomposition of matrices that are not tall by decomposing their transposes.

    A by rows is A^T by columns, conj(V) S U^T. Its factors by columns are V^H and U by rows, so nothing is transposed.
    LAPACK is faster on tall matrices: 20 by 400 in f64 take 0.8 of the time.
    """
    m, n = _columns(x)
    writer.copy(call.new("a", m * n), writer.memory_of(x))
    for name, variable in zip(("vt", "u"), vectors, strict=False):
        call.has(name, writer.target_of(variable), prod(_columns(variable)))
    call.run({"m": n, "n": m, "ldvt": m}, letter)


def _write_lanes(writer: BlockWriter, x: Atom, values: Var, bases: Sequence[Var], steps: Eigh | Svd) -> None:
    """Write values, and bases where wanted, by rotations of matrices in lanes."""
    assert isinstance(x.type, ArrayType)
    *stack, m, n = x.type.shape
    stacks = [
        Stack(writer.memory_of(x), None, m, n), Stack(None, writer.target_of(values), min(m, n), 1),
        Stack(None, None, 3, 1, dtypes.real_dtype(x.type.dtype)),
        *(Stack(None, writer.target_of(v), *_columns(v)) for v in bases),
    ]  # fmt: skip
    if any(size(v.type) < prod(stack) * k * k for v, k in zip(bases, (m, n), strict=False)):
        stacks.append(Stack(None, None, max(m, n), max(m, n), x.type.dtype))
    write_lanes(writer, stacks, prod(stack), max(m, n), Sweeps(steps.start, steps.sweep, steps.finish, MAX_SWEEPS))


def write_geev(writer: BlockWriter, equation: Equation) -> None:
    """Write the eigenvalues of matrices, and the left and right eigenvectors where wanted, as LAPACK packs them."""
    (x,), params = equation.inputs, equation.params
    n, _ = _columns(x)
    call = _Call(writer, "geev", x)
    call.turned("a", x, n, n)
    outputs = list(equation.outputs)
    for name in ("wr",) if dtypes.is_complex(call.dtype) else ("wr", "wi"):
        call.has(name, writer.target_of(outputs.pop(0)), n)
    sides = [name for name, wanted in (("vl", params["left"]), ("vr", params["right"])) if wanted]
    found = [call.new(name, n * n) for name in sides]
    call.run({"n": n}, "NV"[params["left"]] + "NV"[params["right"]])
    for variable, memory in zip(outputs, found, strict=True):
        call.result(variable, memory, n, n)


def write_schur(writer: BlockWriter, equation: Equation) -> None:
    """Write the Schur form, and the Schur vectors where wanted."""
    (x,), (_, *vectors) = equation.inputs, equation.outputs
    n, _ = _columns(x)
    call = _Call(writer, "gees", x)
    a = call.turned("a", x, n, n)
    found = [call.new("vs", n * n) for _ in vectors]
    call.run({"n": n}, "VN" if vectors else "NN")
    for variable, memory in zip(equation.outputs, (a, *found), strict=True):
        call.result(variable, memory, n, n)


# -- similar matrices of fewer elements --------------------------------------------------------------------------


def write_hessenberg(writer: BlockWriter, equation: Equation) -> None:
    """Write the Hessenberg form over the reflectors that lead to it, and their factors."""
    (x,), (packed, taus) = equation.inputs, equation.outputs
    n, _ = _columns(x)
    call = _Call(writer, "gehrd", x)
    a = call.turned("a", x, n, n)
    if n > 1:
        call.has("tau", writer.target_of(taus), n - 1)
    call.run({"n": n})
    call.result(packed, a, n, n)


def write_tridiagonal(writer: BlockWriter, equation: Equation) -> None:
    """Write the tridiagonal form over the reflectors that lead to it, its diagonals, and the reflectors' factors."""
    (x,), (packed, diagonal, beside, taus) = equation.inputs, equation.outputs
    n, _ = _columns(x)
    call = _Call(writer, "sytrd", x)
    a = call.turned("a", x, n, n)
    call.has("d", writer.target_of(diagonal), n)
    if n > 1:
        call.has("e", writer.target_of(beside), n - 1)
        call.has("tau", writer.target_of(taus), n - 1)
    call.run({"n": n}, "L" if equation.params["lower"] else "U")
    call.result(packed, a, n, n)


def write_tridiagonal_solve(writer: BlockWriter, equation: Equation) -> None:
    """Write the solutions of tridiagonal systems."""
    (*diagonals, b), (x,) = equation.inputs, equation.outputs
    n, others = _columns(b)
    call = _Call(writer, "gtsv", b)
    for name, atom in zip(("dl", "d", "du"), diagonals, strict=True):
        first, length = int(name == "dl"), n - (name != "d")
        work, source = call.new(name, length), writer.memory_of(atom)
        f = FunctionWriter(writer)
        read, written = f.memory(source), f.memory(work, written=True)
        with f.loops((call.count, length), LoopKind.PARALLEL) as (matrix, i):
            element = load_at(f, read, flatten((matrix, shifted(i, first)), (call.count, n)))
            f.store_at(written, flatten((matrix, i), (call.count, length)), element)
        if length:
            f.invoke()
    work = call.turned("b", b, n, others)
    call.run({"n": n, "nrhs": others})
    call.result(x, work, n, others)


def _schedule(kind: str, write: Callable[[BlockWriter, Equation], None]) -> Schedule:
    """Return a schedule whose results all have memory, and which writes nothing where none has elements."""

    def written(writer: BlockWriter, equation: Equation) -> None:
        for variable in equation.outputs:
            writer.target_of(variable)
        if any(size(variable.type) for variable in equation.outputs):
            write(writer, equation)

    return Schedule(Library, kind, matrix_cost, written)


GEQRF: Final = _schedule("geqrf", write_geqrf)
GEQP3: Final = _schedule("geqp3", write_geqp3)
HOUSEHOLDER_PRODUCT: Final = _schedule("householder_product", write_householder_product)
EIGH: Final = _schedule("eigh", write_eigh)
SVD: Final = _schedule("svd", write_svd)
GEEV: Final = _schedule("geev", write_geev)
SCHUR: Final = _schedule("schur", write_schur)
HESSENBERG: Final = _schedule("hessenberg", write_hessenberg)
TRIDIAGONAL: Final = _schedule("tridiagonal", write_tridiagonal)
TRIDIAGONAL_SOLVE: Final = _schedule("tridiagonal_solve", write_tridiagonal_solve)
DECOMPOSITIONS: Final = (
    GEQRF, GEQP3, HOUSEHOLDER_PRODUCT, EIGH, SVD, GEEV, SCHUR, HESSENBERG, TRIDIAGONAL, TRIDIAGONAL_SOLVE,
)  # fmt: skip
