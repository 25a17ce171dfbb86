"""dot_general by a library routine, or by loops where matrices are small.

`passes.expand` has brought it to [batch, m, k] x [batch, k, n], with transposed operands at most.
"""

from __future__ import annotations

from math import prod
from typing import Final

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.dtypes import short_name
from tracer.ir.loop import Carry, LoopKind, Register
from tracer.ir.loop.build import constant
from tracer.ir.primitive import Library, Pointwise
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, array_type, size
from tracer.schedule.algorithms.factorizations import write_turned
from tracer.schedule.terms.affine import Affine, of_register, plus, scaled, shifted
from tracer.schedule.terms.cost import product_cost
from tracer.schedule.terms.schedules import Schedule, Values, always
from tracer.schedule.terms.value_locations import Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_ROWS = 8  # of the result that are summed at once: the chains that an FMA unit needs
_MIN_LANES = 8
_MAX = 48
_SMALL = 1 << 14
_LARGE = 1 << 13  # elements of a matrix that no loop multiplies
_TINY = 1 << 9  # m n k of products that are written so in any form: SciPy need not be imported for them


def write_dot(writer: BlockWriter, equation: Equation) -> None:
    """Write one call of a matrix product for all batches, or loops where matrices are small.

    The routine is `gemm_` and the operands' dtype, with the arguments (a, b, out, batch, m, n, k, transpose a,
    transpose b, stride of a, stride of b). `target.dots` says which dtype it sums in.
    """
    (variable,), (lhs, rhs) = equation.outputs, equation.inputs
    ((left,), (right,)), (left_batch, _) = _axes(equation)
    batch_rank = len(left_batch)
    a, b = _operand(writer, lhs), _operand(writer, rhs)
    target = writer.target_of(variable)
    transpose_a, transpose_b = left == batch_rank, right != batch_rank
    batch = prod(lhs.type.shape[:batch_rank])
    k = lhs.type.shape[left]
    m = prod(lhs.type.shape[batch_rank:]) // k if k else _other(lhs.type.shape, batch_rank, left)
    n = prod(rhs.type.shape[batch_rank:]) // k if k else _other(rhs.type.shape, batch_rank, right)
    dtype = variable.type.dtype if isinstance(variable.type, ArrayType) else None
    operands = lhs.type.dtype if isinstance(lhs.type, ArrayType) else None
    if dtype is None or operands is None or writer.module.target.dot(operands, dtype) is None:
        raise InternalError(f"no product of {lhs.type} in {variable.type} for {writer.module.target.name}")
    small, tiny = _is_small(m, n, k), 0 < m * n * k <= _TINY
    if operands == dtype and dtype in (dtypes.F32, dtypes.F64) and (small or tiny):
        turned = _turned(writer, b, batch, n, k) if transpose_b and not tiny else None
        _write_small(writer, (a, turned or b, target), batch, m, n, k, transpose_a, transpose_b and turned is None)
        return
    routine = f"gemm_{short_name(operands)}"
    writer.builder.library(
        routine, a.view, b.view, target.view, batch, m, n, k, int(transpose_a), int(transpose_b), m * k, k * n
    )


def _operand(writer: BlockWriter, atom: Atom) -> Memory:
    """Return an operand in memory, or the integers that its bits are: see `fusion`."""
    bits = writer.plan.inline.get(atom) if isinstance(atom, Var) else None
    return writer.memory_of(atom if bits is None else bits.inputs[0])


def _axes(equation: Equation) -> tuple[tuple[tuple[int], tuple[int]], tuple[tuple[int, ...], tuple[int, ...]]]:
    contracted, batch = equation.params["dimension_numbers"]
    return contracted, batch


def _other(shape: tuple[int, ...], batch_rank: int, contracted: int) -> int:
    return prod(n for axis, n in enumerate(shape) if axis >= batch_rank and axis != contracted)


def _turned(writer: BlockWriter, source: Memory, batch: int, n: int, k: int) -> Memory:
    """Return matrices [n, k] as [k, n]. 16 x 16 then takes half the time of the kernel that transposes panels."""
    assert isinstance(source.type, ArrayType)
    target = writer.allocate(array_type(source.type.dtype, (batch, k, n)))
    write_turned(writer, source, target, (batch, n, k))
    return target


# -- small matrices ----------------------------------------------------------------------------------------------


def _is_small(m: int, n: int, k: int) -> bool:
    """Whether a call of BLAS takes longer than the product itself (0.23 µs for 16 x 16 x 16 in f32, 0.05 by loops)."""
    return min(m, k) > 0 and n >= _MIN_LANES and max(m, n, k) <= _MAX and m * n * k <= _SMALL


def _write_small(
    writer: BlockWriter,
    memories: tuple[Memory, Memory, Memory],
    batch: int,
    m: int,
    n: int,
    k: int,
    transpose_a: bool,
    transpose_b: bool,
) -> None:
    """Compute a block of rows of the result at a time, a vector for each.

    A row of b is multiplied by one element of each row of a.
    """
    f = FunctionWriter(writer)
    a, b, out = (f.memory(memory, written=memory is memories[2]) for memory in memories)
    full, rest = divmod(m, _ROWS)
    turned = transpose_a, transpose_b
    with f.loops((batch,), LoopKind.PARALLEL) as (product,):
        if full:
            with f.loops((full,), LoopKind.PARALLEL) as (block,):
                _rows(f, (a, b, out), (m, n, k), product, scaled(block, _ROWS), _ROWS, turned)
        if rest:
            _rows(f, (a, b, out), (m, n, k), product, Affine(full * _ROWS), rest, turned)
    f.invoke()


def _rows(
    f: FunctionWriter,
    memories: tuple[Memory, Memory, Memory],
    sizes: tuple[int, int, int],
    product: Affine,
    first: Affine,
    rows: int,
    turned: tuple[bool, bool],
) -> None:
    (a, b, out), (m, n, k) = memories, sizes
    dtype = out.buffer.dtype
    with f.builder.for_("j", 0, n, kind=LoopKind.PARALLEL) as across:
        j = of_register(across.index)
        carries = [Carry(Register(dtype, f"sum{r}"), constant(0, dtype)) for r in range(rows)]
        loop = f.builder.for_("k", 0, k, carries=carries)
        with loop:
            at = of_register(loop.index)
            column = plus(scaled(j, k), at) if turned[1] else plus(scaled(at, n), j)
            right = f.builder.load(b.buffer, plus(b.start, scaled(product, k * n), column))
            sums = []
            for r, total in enumerate(loop.carries):
                row = shifted(first, r)
                place = plus(scaled(at, m), row) if turned[0] else plus(scaled(row, k), at)
                left = f.builder.load(a.buffer, plus(a.start, scaled(product, m * k), place))
                sums.append(f.builder.compute(ScalarOp.FMA, left, right, total))
            loop.yields(*sums)
        for r, total in enumerate(loop.results):
            place = plus(out.start, scaled(product, m * n), scaled(shifted(first, r), n), j)
            f.builder.store(out.buffer, place, total)


# -- record ------------------------------------------------------------------------------------------------------


def _operands_in_memory(equation: Equation, values: Values) -> list[Atom]:
    return [_bits(atom, values) for atom in equation.inputs]


def _bits(atom: Atom, values: Values) -> Atom:
    """Return the integers that a large bf16 operand is bitcast from, as NumPy's users hold it, else the operand.

    Small products are loops, which read the operand itself.
    """
    made = values.definitions.get(atom) if isinstance(atom, Var) else None
    if made is None or made.primitive.lower != Pointwise(ScalarOp.BITCAST) or size(made.outputs[0].type) < _LARGE:
        return atom
    (bits,) = made.inputs
    held = [x.type.dtype if isinstance(x.type, ArrayType) else None for x in (bits, atom)]
    is_bits = isinstance(bits, Var) and held[1] == dtypes.BF16 and held[0] in (dtypes.I16, dtypes.U16)
    return bits if is_bits else atom


DOT: Final = Schedule(Library, "dot", product_cost, write_dot, _operands_in_memory, always)
