"""Random programs of array primitives, well-formed by construction and made to stay near 1 in size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir.dtypes import F64, I32, I64
from tracer.ir.program import Program, literal
from tracer.ir.types import Type, array_type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, pad, slice
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.shapes import broadcast_in_dim, broadcasted_iota, reshape, rev, transpose
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, max, mul, neg, sub
from tracer.primitives.elementwise.comparison import gt, lt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.trigonometric import sin
from tracer.trace.stage import stage

_SHAPES = ((), (3,), (4,), (3, 4), (2, 3), (4, 1), (2, 3, 2), (0, 3), (20,), (3, 17))


class Maker:
    """Grows a pool of f64 values; `choose(n)` picks a number below n."""

    def __init__(self, choose: Callable[[int], int], values: Sequence[Any], depth: int) -> None:
        self.choose = choose
        self.pool = list(values)
        self.depth = depth

    def pick(self, shape: tuple[int, ...] | None = None) -> Any:
        """A value of the pool, the latest ones often; of a shape: made if there is none."""
        fitting = [x for x in self.pool if shape is None or x.type.shape == shape]
        if not fitting:
            return broadcast_in_dim(sin(self.scalar()), shape, ())
        return fitting[-1 - self.choose(min(len(fitting), 4))]

    def scalar(self) -> Any:
        scalars = [x for x in self.pool if not x.type.shape]
        if scalars and self.choose(2):
            return scalars[-1]
        x = self.pick()
        return sin(reduce_sum(x, tuple(range(len(x.type.shape)))))

    def axis(self, x: Any) -> int:
        return self.choose(len(x.type.shape))

    def step(self) -> None:
        """Add a value or several."""
        names = ["unary", "binary", "binary", "select", "literal", "broadcast"]
        x = self.pick()
        if x.type.shape:
            names += ["transpose", "reshape", "rev", "reduce", "slice", "concatenate", "pad", "cumsum", "sort",
                      "window", "update", "iota"]  # fmt: skip
        if self.depth:
            names += ["loop", "loop", "scan", "branch"]
        made = getattr(self, "_" + names[self.choose(len(names))])(x)
        self.pool.extend(made if isinstance(made, list) else [made])

    def _unary(self, x: Any) -> Any:
        return [sin, neg, lambda v: mul(v, 0.5)][self.choose(3)](x)

    def _binary(self, x: Any) -> Any:
        return [lambda a, b: mul(add(a, b), 0.5), sub, max][self.choose(3)](x, self.pick(x.type.shape))

    def _select(self, x: Any) -> Any:
        other = self.pick(x.type.shape)
        return select(gt(x, other), x, mul(other, 0.25))

    def _literal(self, x: Any) -> Any:
        return add(x, 0.125 * self.choose(5))

    def _iota(self, x: Any) -> Any:
        return add(mul(convert_element_type(broadcasted_iota(I64, x.type.shape, self.axis(x)), F64), 0.1), x)

    def _broadcast(self, x: Any) -> Any:
        shape = x.type.shape
        if self.choose(2):
            return broadcast_in_dim(x, (2, *shape), tuple(range(1, len(shape) + 1)))
        return broadcast_in_dim(x, (*shape, 3), tuple(range(len(shape))))

    def _transpose(self, x: Any) -> Any:
        order = list(range(len(x.type.shape)))
        turn = self.choose(len(order))
        return transpose(x, (*order[turn:], *order[:turn]))

    def _reshape(self, x: Any) -> Any:
        size = int(np.prod(x.type.shape))
        fitting = [(size,), (1, size), *(s for s in _SHAPES if int(np.prod(s)) == size)]
        return reshape(x, fitting[self.choose(len(fitting))])

    def _rev(self, x: Any) -> Any:
        return rev(x, (self.axis(x),))

    def _reduce(self, x: Any) -> Any:
        rank = len(x.type.shape)
        axes = tuple(a for a in range(rank) if self.choose(2)) or (self.axis(x),)
        if self.choose(3) or not all(x.type.shape[a] for a in axes):
            return mul(reduce_sum(x, axes), 0.1)
        return reduce_max(x, axes)

    def _slice(self, x: Any) -> Any:
        starts = [self.choose(n) if n else 0 for n in x.type.shape]
        return slice(x, starts, x.type.shape, [1 + self.choose(2) for _ in starts])

    def _concatenate(self, x: Any) -> Any:
        return concatenate([x, self.pick(x.type.shape)], self.axis(x))

    def _pad(self, x: Any) -> Any:
        return pad(x, 0.5, [(self.choose(3) - 1, self.choose(2), self.choose(2)) if n else (0, 0, 0)
                            for n in x.type.shape])  # fmt: skip

    def _cumsum(self, x: Any) -> Any:
        return mul(cumsum(x, self.axis(x), bool(self.choose(2))), 0.2)

    def _sort(self, x: Any) -> Any:
        return sort(x, self.axis(x))

    def _starts(self, x: Any) -> list[Any]:
        place = convert_element_type(mul(self.scalar(), 3.0), I64)
        return [place if k % 2 else literal(1, I64) for k in range(len(x.type.shape))]

    def _window(self, x: Any) -> Any:
        return dynamic_slice(x, self._starts(x), tuple(n - (n > 1) for n in x.type.shape))

    def _update(self, x: Any) -> Any:
        window = slice(sin(x), [0] * len(x.type.shape), tuple(n - (n > 1) for n in x.type.shape))
        return dynamic_update_slice(x, window, self._starts(x))

    # nested programs

    def _nested(self, types: Sequence[Type], results: Sequence[Type], count: int) -> Program:
        """A program of random steps with results of the given types."""

        def body(xs: Sequence[Any]) -> Sequence[Any]:
            maker = Maker(self.choose, [x for x in xs if x.type.dtype == F64], self.depth - 1)
            for _ in range(count):
                maker.step()
            return [maker.pick(t.shape) for t in results]

        return stage(body, types).program

    def _loop(self, x: Any) -> list[Any]:
        consts, start = [self.pick()], [x, self.pick(x.type.shape), self.pick()]
        types, kept = [v.type for v in start], [v.type for v in consts]
        counter, trips = array_type(I64, ()), self.choose(4)
        step = self._nested([*kept, *types], types, 1 + self.choose(5))

        def advance(xs: Sequence[Any]) -> Sequence[Any]:
            from tracer.trace.evaluate import evaluate

            return [*evaluate(step, xs[:-1]), add(xs[-1], 1)]

        cond = stage(lambda xs: [lt(xs[-1], trips)], [*types, counter]).program
        body = stage(advance, [*kept, *types, counter]).program
        return while_program(cond, body, [], consts, [*start, literal(0, I64)])[:-1]

    def _scan(self, x: Any) -> list[Any]:
        length = x.type.shape[0] if x.type.shape else 2
        xs = [x] if x.type.shape else []
        start = [self.pick(), self.pick()]
        row = [array_type(F64, v.type.shape[1:]) for v in xs]
        types = [v.type for v in start]
        extra = self.pick().type
        body = self._nested([*types, *row], [*types, extra], 1 + self.choose(4))
        return scan_program(body, [], start, xs, length=length, reverse=bool(self.choose(2)))

    def _branch(self, x: Any) -> list[Any]:
        operands = [x, self.pick(), self.pick()]
        results = [v.type for v in operands[:2]]
        types = [v.type for v in operands]
        branches = tuple(self._nested(types, results, 1 + self.choose(3)) for _ in range(2 + self.choose(2)))
        index = convert_element_type(mul(self.scalar(), 2.9), I32)
        return cond_branches(index, branches, *operands)


def random_program(choose: Callable[[int], int], steps: int, depth: int = 2) -> Program:
    """A program of a few inputs, `steps` random steps, and a few of the values as outputs."""
    types = [array_type(F64, _SHAPES[choose(len(_SHAPES))]) for _ in range(1 + choose(3))]

    def body(xs: Sequence[Any]) -> Sequence[Any]:
        maker = Maker(choose, xs, depth)
        for _ in range(steps):
            maker.step()
        return [maker.pick() for _ in range(1 + choose(3))]

    return stage(body, types).program
