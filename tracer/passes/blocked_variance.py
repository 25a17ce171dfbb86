"""Variances in blocks: sums of squares about a mean read memory once.

The mean of a large array is known once all of it has been read. The squares would read it again, from memory. Here the
array is cut into blocks that stay in a cache. Each block gives its own mean c_b, and the sums of differences from c_b
and of their squares. The distances of the blocks' means from the whole mean c correct the total. This follows Chan,
Golub & LeVeque 1983, Algorithms for computing the sample variance, The American Statistician 37(3):

    sum (x - c)² = sum over blocks of [ sum (x - c_b)² + (c_b - c) (2 sum (x - c_b) + n_b (c_b - c)) ]

This holds for any c and c_b, rounded means too. So it is as exact as two passes, and c need only come from the sum over
the same axes. That sum becomes the sum of the blocks' sums for all its readers. So do sums of differences from c, which
gradients of variances hold. Blocks follow from the shape and the dtype, and row fusion puts both passes over a block
into one loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, Final, NamedTuple

from tracer.ir import dtypes
from tracer.ir.layout import byte_size
from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.target import CPU, Target, VarianceBlocks
from tracer.ir.types import ArrayType
from tracer.passes.base.rewrite import nested_first
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.dce import dce
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.broadcasting import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    full_like,
    reduce_sum,
    reduce_sum_p,
)
from tracer.primitives.base.shapes import reshape
from tracer.primitives.elementwise.arithmetic import add, div, mul, mul_p, neg_p, sub, sub_p
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.complex import complex_p, imag, imag_p, real, real_p
from tracer.trace.stage import stage

_COLUMNS: Final = 4  # times as large are blocks of columns, of which each has a mean
_MIN_JOINED: Final = 8  # elements of a block for one of its means: these are stored and read again
_MAX_STEPS: Final = 64  # from a mean back to the sum that it is made of
_DTYPES: Final = (dtypes.F32, dtypes.F64, dtypes.C64, dtypes.C128)


def block_variances(program: Program, target: Target = CPU) -> Program:
    """Return the program with large sums of squares about means in blocks; the same object where there are none."""
    sizes = target.blocks.variance
    if sizes is None:
        return program

    def run(program: Program) -> Program:
        spreads = list(_spreads(program, sizes))
        totals = {spread.total for spread in spreads}
        found = {spread.result: spread for spread in spreads if spread.result not in totals}
        return dce(Rewriter(_Blocking(found).rule).run(program)) if found else program

    return nested_first(run)(program)


class _Cut(NamedTuple):
    """An axis in blocks. parts: where each begins, how many blocks it has, and how long they are.

    inside: elements of a block that go into one of its means, for each of its length.
    """

    axis: int
    inside: int
    parts: Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class _Spread:
    """Sum of the squares of x less `centre`, which is broadcast along all axes but `dims`.

    steps: None for squares. Otherwise the differences themselves are summed after these operations. Each multiplies by
    its one scalar, or negates if it has no scalar. total: the sum of x.
    """

    result: Var
    steps: Sequence[Sequence[Atom]] | None
    total: Var
    centre: Atom
    dims: Sequence[int]
    axes: tuple[int, ...]
    cut: _Cut


class _Blocking:
    """Rewrite of sums and of sums of squares. blocks: by sum, the results of `_means`."""

    def __init__(self, found: Mapping[Var, _Spread]) -> None:
        self.found = found
        self.totals = {spread.total: spread for spread in found.values()}
        self.blocks: dict[Var, Sequence[Atom]] = {}

    def rule(self, equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
        result = equation.outputs[0] if equation.outputs else None
        if result is None:
            return None
        if result in self.totals:
            spread = self.totals[result]
            program = stage(lambda given: _means(given[0], spread), [equation.inputs[0].type], name="blocks").program
            total, *self.blocks[result] = at.inline(program, equation.inputs, at_one_line=True)
            return [at.fit(total, result.type)]
        if result in self.found:
            spread = self.found[result]
            given = [at.read(spread.centre), *self.blocks[spread.total]]
            program = stage(lambda given: [_together(given, spread)], [a.type for a in given], name="blocks").program
            (together,) = at.inline(program, given, at_one_line=True)
            for step in spread.steps or ():
                factors = [a if isinstance(a, Literal) else at.spread(at.read(a), result.type.shape, ()) for a in step]
                together = at.emit(mul_p, together, *factors) if factors else at.emit(neg_p, together)
            return [at.fit(together, result.type)]
        return None


def _means(x: Any, spread: _Spread) -> list[Any]:
    """Return the sum of x, then of each part the blocks' means, sums of squares about these and of differences."""
    axis, inside, parts = spread.cut
    inner = (axis + 1, *(a + 1 for a in spread.axes if a > axis))
    outer = tuple(a for a in spread.axes if a <= axis)
    sums, found = [], []
    for start, count, length in parts:
        part = x if count * length == x.shape[axis] else slice_in_dim(x, start, start + count * length, axis=axis)
        blocks = reshape(part, (*x.shape[:axis], count, length, *x.shape[axis + 1 :]))
        sums.append(total := reduce_sum(blocks, inner))
        kept = [n if a not in inner else 1 for a, n in enumerate(blocks.shape)]
        along = broadcast_in_dim(total, kept, [a for a in range(blocks.ndim) if a not in inner])
        centre = _divided(along, length * inside)
        distance = sub(blocks, broadcast_in_dim(centre, blocks.shape, range(blocks.ndim)))
        found += [centre, reduce_sum(_square(distance), inner), reduce_sum(distance, inner)]
    return [reduce(add, [reduce_sum(total, outer) for total in sums]), *found]


def _together(given: Sequence[Any], spread: _Spread) -> Any:
    """Return the sum of differences from the centre, or of their squares. given: the centre, then results of `_means`.

    The mean of a block that overflowed is infinite, and so are the sums about it: nothing is added to these.
    """
    (centre, *found), (axis, inside, parts) = given, spread.cut
    dims = [a if a <= axis else a + 1 for a in spread.dims]
    sums = []
    for (_, _, length), own, squares, left in zip(parts, found[::3], found[1::3], found[2::3], strict=True):
        away = reshape(sub(own, broadcast_in_dim(centre, own.shape, dims)), left.shape)
        more = mul(away, float(length * inside))
        if spread.steps is None:
            more = _product(away, add(add(left, left), more))
        none = reshape(sub(own, own), left.shape)
        more = select(eq(none, none), more, full_like(more, 0))
        within = squares if spread.steps is None else left
        sums.append(reduce_sum(add(within, more), [a for a in spread.axes if a <= axis]))
    return reduce(add, sums)


def _divided(x: Any, n: int) -> Any:
    """Return x / n. A product is inlined in its readers, where a quotient would be stored."""
    return div(x, float(n)) if n & (n - 1) else mul(x, 1.0 / n)


def _square(x: Any) -> Any:
    return _product(x, x)


def _product(x: Any, y: Any) -> Any:
    """Return x y, or the sum of the products of parts of complex numbers."""
    if dtypes.is_complex(x.dtype):
        return add(mul(real(x), real(y)), mul(imag(x), imag(y)))
    return mul(x, y)


# -- finding sums of squares --------------------------------------------------------------------------------------


def _spreads(program: Program, sizes: VarianceBlocks) -> Iterator[_Spread]:
    """Yield the sums of squares and of differences that are worth cutting."""
    definitions = {v: e for e in program.equations for v in e.outputs}
    sums = {(e.inputs[0], e.params["axes"]): e.outputs[0] for e in program.equations if e.primitive is reduce_sum_p}
    for equation in program.equations:
        if equation.primitive is not reduce_sum_p or byte_size(equation.inputs[0].type) < sizes.least:
            continue
        distance, steps = _squared(equation.inputs[0], definitions), None
        if distance is None:
            distance, steps = _multiplied(equation.inputs[0], definitions)
        if distance is None:
            continue
        (result,), axes = equation.outputs, equation.params["axes"]
        for x, c in (distance.inputs, distance.inputs[::-1]) if steps is None else (distance.inputs,):
            total, spread = sums.get((x, axes)), _definition(c, definitions)
            if total is None or spread is None or spread.primitive is not broadcast_in_dim_p:
                continue
            (centre,), dims = spread.inputs, spread.params["broadcast_dimensions"]
            same = all(n == 1 for n, a in zip(centre.type.shape, dims, strict=True) if a in axes)
            cut = _cut(x.type, axes, sizes) if same and _comes_from(total, centre, definitions) else None
            if cut is not None:
                yield _Spread(result, steps, total, centre, dims, axes, cut)
                break


def _definition(atom: Atom, definitions: Mapping[Var, Equation]) -> Equation | None:
    return definitions.get(atom) if isinstance(atom, Var) else None


def _squared(atom: Atom, definitions: Mapping[Var, Equation]) -> Equation | None:
    """Return the difference that is squared, or whose absolute value is, for complex numbers."""
    square = _definition(atom, definitions)
    is_real = square is not None and square.primitive is real_p
    square = _definition(square.inputs[0], definitions) if square is not None and is_real else square
    if square is None or square.primitive is not mul_p:
        return None
    z, other = square.inputs
    if not _is_conjugate(z, other, definitions) if is_real else z is not other:
        return None
    distance = _definition(z, definitions)
    is_known = distance is not None and distance.primitive is sub_p and _is_exact(z.type)
    return distance if is_known and _is_exact(atom.type) else None


def _multiplied(
    atom: Atom, definitions: Mapping[Var, Equation]
) -> tuple[Equation, Sequence[Sequence[Atom]]] | tuple[None, None]:
    """Return the difference that is multiplied by scalars only, and these: see `_Spread`."""
    steps: list[Sequence[Atom]] = []
    while (made := _definition(atom, definitions)) is not None and _is_exact(atom.type):
        if made.primitive is sub_p:
            return made, steps[::-1]
        if made.primitive is neg_p:
            steps.append(())
            (atom,) = made.inputs
            continue
        numbers = [_number(a, definitions) for a in made.inputs]
        if made.primitive is not mul_p or numbers.count(None) != 1:
            break
        atom = made.inputs[numbers.index(None)]
        steps.append([a for a in numbers if a is not None])
    return None, None


def _number(atom: Atom, definitions: Mapping[Var, Equation]) -> Atom | None:
    """Return the scalar that fills an array, or None where it is unknown."""
    spread = _operands(atom, broadcast_in_dim_p, definitions)
    number = atom if spread is None else spread[0]
    return number if isinstance(atom, Literal) or (spread is not None and not number.type.shape) else None


def _is_exact(type: Any) -> bool:
    """Whether sums are kept in the precision that they are made in."""
    return isinstance(type, ArrayType) and type.dtype in _DTYPES


def _is_conjugate(z: Atom, other: Atom, definitions: Mapping[Var, Equation]) -> bool:
    made = _operands(other, complex_p, definitions)
    if made is None:
        return False
    re, im = _operands(made[0], real_p, definitions), _operands(made[1], neg_p, definitions)
    im = None if im is None else _operands(im[0], imag_p, definitions)
    return re is not None and im is not None and re[0] is z and im[0] is z


def _operands(atom: Atom, primitive: Primitive, definitions: Mapping[Var, Equation]) -> Sequence[Atom] | None:
    made = _definition(atom, definitions)
    return made.inputs if made is not None and made.primitive is primitive else None


def _comes_from(total: Var, centre: Atom, definitions: Mapping[Var, Equation]) -> bool:
    """Whether a centre is computed from the sum, by operations on values of at most its size."""
    waiting, seen = [centre], set[Var]()
    while waiting and len(seen) < _MAX_STEPS:
        atom = waiting.pop()
        if atom is total:
            return True
        if isinstance(atom, Var) and atom not in seen and prod(atom.type.shape) <= prod(total.type.shape):
            seen.add(atom)
            waiting += definitions[atom].inputs if atom in definitions else ()
    return False


def _cut(type: Any, axes: Sequence[int], sizes: VarianceBlocks) -> _Cut | None:
    """Return the cut of an array: along the outermost reduced axis whose slabs fit into a block.

    Return None where rows are blocks anyway, or no cut leaves enough elements for a mean.
    """
    shape, itemsize = type.shape, type.dtype.itemsize
    rows = prod(shape[: axes[0]]) if axes else 0
    if not axes or (rows >= sizes.count and byte_size(type) <= sizes.row * rows):
        return None
    for number, axis in enumerate(axes):
        slab = prod(shape[axis + 1 :]) * itemsize
        inside = prod(shape[a] for a in axes[number + 1 :])
        least = -(-_MIN_JOINED // inside)
        if slab > sizes.block and slab * least > sizes.most:
            continue
        between = any(a not in axes for a in range(axis, len(shape)))
        length = max((_COLUMNS if between else 1) * sizes.block // slab, least)
        if length >= shape[axis]:
            parts: Sequence[tuple[int, int, int]] = [(0, 1, shape[axis])]
        else:
            parts = _parts(shape[axis], 1 << (length.bit_length() - 1) if between else length, exactly=between)
        is_cut = number > 0 or len(parts) > 1 or parts[0][1] > 1
        return _Cut(axis, inside, parts) if is_cut and prod(shape[:axis]) * parts[0][1] >= sizes.count else None
    return None


def _parts(size: int, length: int, *, exactly: bool) -> Sequence[tuple[int, int, int]]:
    """Return blocks of about `length`: of a divisor of the axis near it, else with a shorter block last."""
    near = [n for n in range(max(length // 2, 1), 2 * length + 1) if size % n == 0 and not exactly]
    length = min(near, key=lambda n: abs(n - length), default=length)
    count, rest = divmod(size, length)
    return [(0, count, length)] + [(count * length, 1, rest)] * (rest > 0)
