"""Eigenvalues and singular values of small matrices by plane rotations, one matrix a lane, as `Sweeps`.

Sweeps run over all pairs of rows and columns. They go on until no element beside the diagonal is above an eighth of a
rounding of the largest one. Matrices are scaled by powers of two, so that squares neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import numpy as np

from tracer.ir import dtypes
from tracer.ir.loop import Operand
from tracer.ir.loop.build import Builder, constant
from tracer.ir.scalar import ScalarOp
from tracer.schedule.algorithms.batched_small_matrices import Cells, Lanes
from tracer.schedule.terms.affine import ZERO, Affine, shifted
from tracer.schedule.terms.value_locations import Element

MAX_SWEEPS: Final = 30  # some 6 to 9 are needed

Turn = Callable[[Element, Element], tuple[Element, Element]]
"""A rotation: the elements of one row in columns p and q before it, to those after it."""


class Matrix(Protocol):
    """Cells by rows and columns, or their adjoint."""

    @property
    def parts(self) -> int: ...
    def get(self, row: Affine, column: Affine = ...) -> Element: ...
    def put(self, element: Element, row: Affine, column: Affine = ...) -> None: ...


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The conjugate transpose of cells."""

    lanes: Lanes
    of: Cells

    @property
    def parts(self) -> int:
        return self.of.parts

    def get(self, row: Affine, column: Affine = ZERO) -> Element:
        return self.lanes.conjugate(self.of.get(column, row))

    def put(self, element: Element, row: Affine, column: Affine = ZERO) -> None:
        self.of.put(self.lanes.conjugate(element), column, row)


# -- steps that eigenvalues and singular values share ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scaling:
    """Cells of two powers of two that undo a matrix's scaling, and of the size of a negligible element.

    The exponent is split in two, as one power alone may overflow. The size is NaN where the matrix is not finite.
    """

    cells: Cells

    def measure(self, lanes: Lanes, a: Matrix, rows: int, columns: int, *, hermitian: bool = False) -> None:
        """Scale the elements so that the largest is about 1. hermitian: only the lower triangle has a size."""
        b, zero = lanes.b, constant(0, a.get(ZERO)[0].dtype)

        def larger(found: Element, x: Element) -> Element:
            (largest,) = found
            for part in x:
                largest = b.apply(ScalarOp.MAX, largest, b.apply(ScalarOp.ABS, part))
            return (largest,)

        def row(i: Affine, found: Element) -> Element:
            stop = i if hermitian else Affine(columns)
            found = lanes.fold(ZERO, stop, found, lambda j, found: larger(found, a.get(i, j)))
            return larger(found, a.get(i, i)[:1]) if hermitian else found

        def losses(i: Affine, found: Element) -> Element:
            return lanes.fold(ZERO, Affine(columns), found, lambda j, found: loss(found, a.get(i, j)))

        def loss(found: Element, x: Element) -> Element:
            (lost,) = found
            for part in x:
                lost = b.apply(ScalarOp.FMA, part, zero, lost)
            return (lost,)

        (largest,) = lanes.fold(ZERO, Affine(rows), (zero,), row)
        (lost,) = lanes.fold(ZERO, Affine(rows), (zero,), losses)
        whole = b.apply(ScalarOp.NEG, b.apply(ScalarOp.EXPONENT, largest))
        usable = b.apply(ScalarOp.AND, b.apply(ScalarOp.GT, largest, zero), b.apply(ScalarOp.EQ, lost, zero))
        power = b.select(usable, whole, zero)
        half = b.apply(ScalarOp.FLOOR, b.compute(ScalarOp.MUL, power, 0.5))
        rest = b.apply(ScalarOp.SUB, power, half)
        up, down = ([self._power(b, x, sign) for x in (half, rest)] for sign in (1, -1))

        lanes.all(rows, columns, lambda i, j: a.put(lanes.by(lanes.by(a.get(i, j), up[0]), up[1]), i, j))
        for place, value in enumerate(down):
            self.cells.put((value,), Affine(place))
        tiny = float(np.finfo(lost.dtype).eps) / 8
        self.cells.put((b.apply(ScalarOp.ADD, lost, constant(tiny, lost.dtype)),), Affine(2))

    @staticmethod
    def _power(b: Builder, exponent: Operand, sign: int) -> Operand:
        exponent = exponent if sign > 0 else b.apply(ScalarOp.NEG, exponent)
        return b.apply(ScalarOp.SCALE, constant(1, exponent.dtype), exponent)

    def negligible(self) -> Operand:
        return self.cells.get(Affine(2))[0]

    def undone(self, lanes: Lanes, value: Operand) -> Operand:
        """Return a value of the scaled matrix as one of the given matrix; NaN where that is not finite."""
        down = [self.cells.get(Affine(place))[0] for place in (0, 1)]
        scaled = lanes.by(lanes.by((value,), down[0]), down[1])[0]
        return lanes.b.apply(ScalarOp.ADD, scaled, lanes.b.compute(ScalarOp.MUL, self.negligible(), 0))

    def lost(self, lanes: Lanes, x: Element) -> Element:
        """Return an element, NaN where the matrix is not finite."""
        nothing = lanes.b.compute(ScalarOp.MUL, self.negligible(), 0)
        return tuple(lanes.b.apply(ScalarOp.ADD, part, nothing) for part in x)


def identity(lanes: Lanes, a: Matrix, n: int, like: Operand) -> None:
    """Write the identity matrix."""
    zero, one = (tuple(constant(x, like.dtype) for x in (v, 0.0)[: a.parts]) for v in (0.0, 1.0))
    lanes.all(n, n, lambda i, j: a.put(zero, i, j))
    lanes.each(ZERO, Affine(n), lambda i: a.put(one, i, i))


def rotated(lanes: Lanes, x: Element, y: Element, c: Operand, s: Operand) -> tuple[Element, Element]:
    """Return c x - s y and s x + c y."""
    b, minus = lanes.b, lanes.b.apply(ScalarOp.NEG, s)
    fma, mul = ScalarOp.FMA, ScalarOp.MUL
    first = tuple(b.apply(fma, minus, q, b.apply(mul, c, p)) for p, q in zip(x, y, strict=True))
    second = tuple(b.apply(fma, s, p, b.apply(mul, c, q)) for p, q in zip(x, y, strict=True))
    return first, second


def angle(lanes: Lanes, difference: Operand, beside: Operand) -> tuple[Operand, Operand, Operand]:
    """Return tangent, cosine and sine of the smaller angle with t^2 + t difference / beside = 1; beside is not 0."""
    b, one = lanes.b, constant(1, beside.dtype)
    theta = b.apply(ScalarOp.DIV, b.compute(ScalarOp.MUL, difference, 0.5), beside)
    root = b.apply(ScalarOp.SQRT, b.apply(ScalarOp.FMA, theta, theta, one))
    size = b.apply(ScalarOp.ADD, b.apply(ScalarOp.ABS, theta), root)
    tangent = b.apply(ScalarOp.COPYSIGN, b.apply(ScalarOp.DIV, one, size), theta)
    cosine = b.apply(ScalarOp.DIV, one, b.apply(ScalarOp.SQRT, b.apply(ScalarOp.FMA, tangent, tangent, one)))
    return tangent, cosine, b.apply(ScalarOp.MUL, tangent, cosine)


def modulus(lanes: Lanes, x: Element) -> Operand:
    """Return |x|, of elements whose squares neither overflow nor vanish."""
    if len(x) == 1:
        return lanes.b.apply(ScalarOp.ABS, x[0])
    square = lanes.b.apply(ScalarOp.FMA, x[0], x[0], lanes.b.apply(ScalarOp.MUL, x[1], x[1]))
    return lanes.b.apply(ScalarOp.SQRT, square)


def sort(
    lanes: Lanes, n: int, precedes: ScalarOp, values: Cells, exchange: Callable[[Affine, Affine, Operand], None]
) -> None:
    """Sort the values by exchanges.

    exchange(i, j, swap): exchanges the columns or rows that belong to two values, in lanes where `swap`.
    """

    def pair(i: Affine, j: Affine) -> None:
        x, y = values.get(i), values.get(j)
        swap = lanes.b.apply(precedes, y[0], x[0])
        values.put(lanes.choose(swap, y, x), i)
        values.put(lanes.choose(swap, x, y), j)
        exchange(i, j, swap)

    lanes.pairs(n, pair)


def swap_columns(lanes: Lanes, a: Matrix, rows: int, i: Affine, j: Affine, swap: Operand) -> None:
    """Exchange columns i and j of an array in lanes where `swap`."""
    turn_columns(lanes, a, rows, i, j, lambda x, y: (lanes.choose(swap, y, x), lanes.choose(swap, x, y)))


def turn_columns(lanes: Lanes, a: Matrix, rows: int, p: Affine, q: Affine, turn: Turn) -> None:
    """Replace columns p and q by the two that `turn` makes of their elements."""

    def row(k: Affine) -> None:
        x, y = turn(a.get(k, p), a.get(k, q))
        a.put(x, k, p)
        a.put(y, k, q)

    lanes.each(ZERO, Affine(rows), row)


def largest_of_pairs(lanes: Lanes, a: Matrix, n: int, *, both: bool) -> Operand:
    """Return the largest size beside the diagonal: of the lower triangle, or of both."""
    b = lanes.b

    def row(i: Affine, found: Element) -> Element:
        return lanes.fold(ZERO, i, found, lambda j, found: element(i, j, found))

    def element(i: Affine, j: Affine, found: Element) -> Element:
        largest = b.apply(ScalarOp.MAX, found[0], modulus(lanes, a.get(i, j)))
        return (b.apply(ScalarOp.MAX, largest, modulus(lanes, a.get(j, i))) if both else largest,)

    start = constant(0, a.get(ZERO)[0].dtype)
    return lanes.fold(Affine(1), Affine(n), (start,), row)[0]


# -- Hermitian matrices ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eigh:
    """Eigenvalues, and vectors where wanted, of n rows. Cells: the matrix, the values, the scaling, the vectors."""

    n: int

    def start(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *vectors: Cells) -> None:
        """Scale the matrix, and start from the identity as vectors."""
        Scaling(known).measure(lanes, a, self.n, self.n, hermitian=True)
        for v in vectors:
            identity(lanes, v, self.n, a.get(ZERO)[0])

    def sweep(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *vectors: Cells) -> Operand:
        """Rotate in the plane of every pair. Return whether an element beside the diagonal is left."""
        tiny = Scaling(known).negligible()
        lanes.pairs(self.n, lambda p, q: self._rotate(lanes, a, tiny, p, q, vectors))
        left = lanes.b.apply(ScalarOp.GT, largest_of_pairs(lanes, a, self.n, both=False), tiny)
        return lanes.b.select(left, constant(1, dtypes.I64), 0)

    def _rotate(self, lanes: Lanes, a: Cells, tiny: Operand, p: Affine, q: Affine, vectors: tuple[Cells, ...]) -> None:
        b, below = lanes.b, a.get(q, p)
        zero = constant(0, tiny.dtype)
        size = modulus(lanes, below)
        present = b.apply(ScalarOp.GT, size, tiny)
        if a.parts == 1:
            phase, beside = None, b.select(present, below[0], constant(1, tiny.dtype))
        else:
            beside = b.select(present, size, constant(1, tiny.dtype))
            inverse = b.apply(ScalarOp.DIV, constant(1, tiny.dtype), beside)
            phase = lanes.choose(present, lanes.by(below, inverse), (constant(1, tiny.dtype), zero))
        first, last = a.get(p, p)[0], a.get(q, q)[0]
        tangent, cosine, sine = angle(lanes, b.apply(ScalarOp.SUB, last, first), beside)
        cosine = b.select(present, cosine, constant(1, tiny.dtype))
        sine = b.select(present, sine, zero)
        change = b.select(present, b.apply(ScalarOp.MUL, tangent, beside), zero)
        rest = (zero,) * (a.parts - 1)

        def turn(x: Element, y: Element) -> tuple[Element, Element]:
            return rotated(lanes, x, y if phase is None else lanes.product(phase, y), cosine, sine)

        def others(start: Affine, stop: Affine, by_p: bool, by_q: bool) -> None:
            """Rotate elements of rows k, held as (k, p) or as the conjugates of (p, k); the same for q."""

            def row(k: Affine) -> None:
                held = [(k, p) if by_p else (p, k), (k, q) if by_q else (q, k)]
                x, y = (
                    a.get(*at) if plain else lanes.conjugate(a.get(*at))
                    for at, plain in zip(held, (by_p, by_q), strict=True)
                )  # fmt: skip
                for at, plain, new in zip(held, (by_p, by_q), turn(x, y), strict=True):
                    a.put(new if plain else lanes.conjugate(new), *at)

            lanes.each(start, stop, row)

        others(ZERO, p, False, False)
        others(shifted(p, 1), q, True, False)
        others(shifted(q, 1), Affine(self.n), True, True)
        a.put((b.apply(ScalarOp.SUB, first, change), *rest), p, p)
        a.put((b.apply(ScalarOp.ADD, last, change), *rest), q, q)
        a.put(lanes.choose(present, (zero,) * a.parts, below), q, p)
        for v in vectors:
            turn_columns(lanes, v, self.n, p, q, turn)

    def finish(self, lanes: Lanes, a: Cells, values: Cells, known: Cells, *vectors: Cells) -> None:
        """Sort values and vectors, and undo the scaling."""

        def settle(v: Cells, i: Affine, j: Affine) -> None:
            v.put(scaling.lost(lanes, v.get(i, j)), i, j)

        scaling, every = Scaling(known), Affine(self.n)
        lanes.each(ZERO, every, lambda i: values.put(a.get(i, i)[:1], i))

        def exchange(i: Affine, j: Affine, swap: Operand) -> None:
            for v in vectors:
                swap_columns(lanes, v, self.n, i, j, swap)

        sort(lanes, self.n, ScalarOp.LT, values, exchange)
        lanes.each(ZERO, every, lambda i: values.put((scaling.undone(lanes, values.get(i)[0]),), i))
        for v in vectors:
            lanes.all(self.n, self.n, partial(settle, v))
