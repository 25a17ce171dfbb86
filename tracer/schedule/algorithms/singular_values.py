"""Singular values of small matrices by rotations from both sides, one matrix a lane: Kogbetliantz's method.

A matrix of more columns than rows is taken as its adjoint. Rotations of rows make it triangular, on which the method
converges as Jacobi's: Forsythe & Henrici 1960, Trans. Amer. Math. Soc. 94(1). A rotation of columns makes columns p and
q orthogonal in the plane of rows and columns p and q. A rotation of rows takes the longer one to its axis. Both bases
are products of rotations, so they are unitary also where singular values are equal or zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracer.ir import dtypes
from tracer.ir.loop import Operand
from tracer.ir.loop.build import constant
from tracer.ir.scalar import ScalarOp
from tracer.schedule.algorithms.batched_small_matrices import Cells, Lanes
from tracer.schedule.algorithms.jacobi import (
    Adjoint,
    Matrix,
    Scaling,
    Turn,
    angle,
    identity,
    largest_of_pairs,
    modulus,
    rotated,
    sort,
    swap_columns,
    turn_columns,
)
from tracer.schedule.terms.affine import ZERO, Affine, shifted
from tracer.schedule.terms.value_locations import Element


@dataclass(frozen=True, slots=True)
class Svd:
    """Singular values, and both bases where wanted, of matrices [m, n].

    Cells of the matrix, the values and the scaling. With bases, also U [m, *], V^H [*, n], and, where the longer one is
    thin, scratch for all of its columns.
    """

    m: int
    n: int

    @property
    def sizes(self) -> tuple[int, int]:
        """The rows and columns of the matrix or its adjoint, whichever is not wide."""
        return max(self.m, self.n), min(self.m, self.n)

    def _views(self, lanes: Lanes, a: Cells, bases: tuple[Cells, ...]) -> tuple[Matrix, list[Matrix]]:
        """Return the matrix that is not wide, and its left and right basis as columns."""
        wide = self.m < self.n
        matrix: Matrix = Adjoint(lanes, a) if wide else a
        if not bases:
            return matrix, []
        left, right = bases[0], Adjoint(lanes, bases[1])
        views: list[Matrix] = [right, left] if wide else [left, right]
        return matrix, [*bases[2:], views[1]] if len(bases) > 2 else views

    def start(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *bases: Cells) -> None:
        """Scale the matrix, and make it triangular by rotations of rows."""
        (rows, columns), (x, sides) = self.sizes, self._views(lanes, a, bases)
        scaling = Scaling(known)
        scaling.measure(lanes, x, rows, columns)
        for side, n in zip(sides, self.sizes, strict=False):
            identity(lanes, side, n, scaling.negligible())

        def step(j: Affine) -> None:
            lanes.each(shifted(j, 1), Affine(rows), lambda i: eliminate(i, j))

        def eliminate(i: Affine, j: Affine) -> None:
            of_rows, of_columns = self._to_axis(lanes, known, x.get(j, j), x.get(i, j))
            lanes.each(j, Affine(columns), lambda k: _turn_row(x, j, i, k, of_rows))
            x.put(_zero(x.get(i, j)), i, j)
            if sides:
                turn_columns(lanes, sides[0], rows, j, i, of_columns)

        lanes.each(ZERO, Affine(columns), step)

    def _to_axis(self, lanes: Lanes, known: Cells, x: Element, y: Element) -> tuple[Turn, Turn]:
        """Return the unitary rotation that takes (x, y) to (r, 0), as it acts on rows and on columns.

        Rows become (conj(x) a + conj(y) b) / r and (x b - y a) / r. Where r is 0 they stay.
        """
        b, tiny = lanes.b, Scaling(known).negligible()
        one, zero = constant(1, tiny.dtype), constant(0, tiny.dtype)
        length = b.apply(ScalarOp.SQRT, b.apply(ScalarOp.ADD, _square(lanes, x), _square(lanes, y)))
        present = b.apply(ScalarOp.GT, length, b.apply(ScalarOp.MUL, tiny, tiny))
        inverse = b.apply(ScalarOp.DIV, one, b.select(present, length, one))
        x = lanes.choose(present, lanes.by(x, inverse), (one, zero)[: len(x)])
        y = lanes.choose(present, lanes.by(y, inverse), _zero(y))

        def combined(c: Element, s: Element, p: Element, q: Element) -> Element:
            return lanes.less_product(lanes.product(c, p), tuple(b.apply(ScalarOp.NEG, part) for part in s), q)

        def of_rows(p: Element, q: Element) -> tuple[Element, Element]:
            lower = lanes.less_product(lanes.product(x, q), y, p)
            return combined(lanes.conjugate(x), lanes.conjugate(y), p, q), lower

        def of_columns(p: Element, q: Element) -> tuple[Element, Element]:
            return combined(x, y, p, q), lanes.less_product(lanes.product(lanes.conjugate(x), q), lanes.conjugate(y), p)

        return of_rows, of_columns

    def sweep(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *bases: Cells) -> Operand:
        """Rotate in the plane of every pair. Return whether an element beside the diagonal is left."""
        x, sides = self._views(lanes, a, bases)
        n, tiny = self.sizes[1], Scaling(known).negligible()
        lanes.pairs(n, lambda p, q: self._rotate(lanes, x, known, p, q, sides))
        left = lanes.b.apply(ScalarOp.GT, largest_of_pairs(lanes, x, n, both=True), tiny)
        return lanes.b.select(left, constant(1, dtypes.I64), 0)

    def _rotate(self, lanes: Lanes, x: Matrix, known: Cells, p: Affine, q: Affine, sides: list[Matrix]) -> None:
        b, (m, n), tiny = lanes.b, self.sizes, Scaling(known).negligible()
        beside = [x.get(p, q), x.get(q, p)]
        present = b.apply(ScalarOp.GT, b.apply(ScalarOp.MAX, *(modulus(lanes, y) for y in beside)), tiny)
        of_columns = self._orthogonal(lanes, tiny, present, [x.get(i, j) for i in (p, q) for j in (p, q)])
        turn_columns(lanes, x, n, p, q, of_columns)
        pp, pq, qp, qq = (x.get(i, j) for i in (p, q) for j in (p, q))
        lengths = [b.apply(ScalarOp.ADD, _square(lanes, v), _square(lanes, w)) for v, w in ((pp, qp), (pq, qq))]
        first = b.apply(ScalarOp.GE, *lengths)
        minus = tuple(b.apply(ScalarOp.NEG, part) for part in lanes.conjugate(pq))
        one = tuple(constant(v, tiny.dtype) for v in (1.0, 0.0))[: x.parts]
        head = lanes.choose(present, lanes.choose(first, pp, lanes.conjugate(qq)), one)
        tail = lanes.choose(present, lanes.choose(first, qp, minus), _zero(pp))
        of_rows, of_left = self._to_axis(lanes, known, head, tail)
        lanes.each(ZERO, Affine(n), lambda k: _turn_row(x, p, q, k, of_rows))
        for at, given in zip(((p, q), (q, p)), beside, strict=True):
            x.put(lanes.choose(present, _zero(pp), given), *at)
        if sides:
            turn_columns(lanes, sides[0], m, p, q, of_left)
            turn_columns(lanes, sides[1], n, p, q, of_columns)

    def _orthogonal(self, lanes: Lanes, tiny: Operand, present: Operand, block: list[Element]) -> Turn:
        """Return the rotation of columns that makes the two of a block orthogonal, where it is `present`."""
        b, (pp, pq, qp, qq) = lanes.b, block
        one, zero = constant(1, tiny.dtype), constant(0, tiny.dtype)
        minus = tuple(b.apply(ScalarOp.NEG, part) for part in lanes.conjugate(qp))
        inner = lanes.less_product(lanes.product(lanes.conjugate(pp), pq), minus, qq)
        first, last = (b.apply(ScalarOp.ADD, _square(lanes, v), _square(lanes, w)) for v, w in ((pp, qp), (pq, qq)))
        size = modulus(lanes, inner)
        turns = b.apply(ScalarOp.AND, present, b.apply(ScalarOp.GT, size, b.apply(ScalarOp.MUL, tiny, tiny)))
        size = b.select(turns, size, one)
        _, cosine, sine = angle(lanes, b.apply(ScalarOp.SUB, last, first), size)
        cosine, sine = b.select(turns, cosine, one), b.select(turns, sine, zero)
        unit = lanes.by(lanes.conjugate(inner), b.apply(ScalarOp.DIV, one, size))
        phase = lanes.choose(turns, unit, (one, zero)[: len(unit)])
        return lambda v, w: rotated(lanes, v, lanes.product(phase, w), cosine, sine)

    def finish(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *bases: Cells) -> None:
        """Make values positive, sort them and the bases, and undo the scaling."""
        b, scaling, (m, n) = lanes.b, Scaling(known), self.sizes
        x, sides = self._views(lanes, a, bases)
        zero = constant(0, scaling.negligible().dtype)

        def settle(i: Affine) -> None:
            size = modulus(lanes, x.get(i, i))
            values.put((size,), i)
            if sides:
                is_zero = b.apply(ScalarOp.EQ, size, zero)
                one = (constant(1, size.dtype), zero)[: x.parts]
                unit = lanes.by(x.get(i, i), b.apply(ScalarOp.DIV, one[0], b.select(is_zero, one[0], size)))
                phase = lanes.choose(is_zero, one, unit)
                left = sides[0]
                lanes.each(ZERO, Affine(m), lambda k: left.put(lanes.product(left.get(k, i), phase), k, i))

        def exchange(i: Affine, j: Affine, swap: Operand) -> None:
            for side, rows in zip(sides, self.sizes, strict=False):
                swap_columns(lanes, side, rows, i, j, swap)

        lanes.each(ZERO, Affine(n), settle)
        sort(lanes, n, ScalarOp.GT, values, exchange)
        lanes.each(ZERO, Affine(n), lambda i: values.put((scaling.undone(lanes, values.get(i)[0]),), i))
        if not sides:
            return
        thin, whole = len(bases) > 2, sides[0]
        target = whole if not thin else (Adjoint(lanes, bases[1]) if self.m < self.n else bases[0])
        lanes.all(m, n if thin else m, lambda i, j: target.put(scaling.lost(lanes, whole.get(i, j)), i, j))
        lanes.all(n, n, lambda i, j: sides[1].put(scaling.lost(lanes, sides[1].get(i, j)), i, j))


def _turn_row(x: Matrix, p: Affine, q: Affine, column: Affine, turn: Turn) -> None:
    first, second = turn(x.get(p, column), x.get(q, column))
    x.put(first, p, column)
    x.put(second, q, column)


def _square(lanes: Lanes, x: Element) -> Operand:
    """Return |x|^2."""
    total = lanes.b.apply(ScalarOp.MUL, x[0], x[0])
    return total if len(x) == 1 else lanes.b.apply(ScalarOp.FMA, x[1], x[1], total)


def _zero(like: Element) -> Element:
    return tuple(constant(0, part.dtype) for part in like)
