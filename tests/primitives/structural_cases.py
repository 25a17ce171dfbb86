"""Calls of the shape, slicing, reduction, scan and sorting primitives, written once for `tracer` and for JAX.

Every call takes a namespace `lax`; `tools/structural_table.py` stores what JAX's gives, values and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[..., Any]
NAN = np.nan


@dataclass(frozen=True)
class Case:
    """A call on arrays. smooth: whether its derivatives can be compared with finite differences and JAX's."""

    label: str
    call: Call
    operands: tuple[Any, ...]
    smooth: bool = True

    @property
    def active(self) -> tuple[bool, ...]:
        return tuple(x.dtype.kind in "fc" for x in self.operands)


def _floats(*shape: int, seed: int = 0) -> Any:
    """Distinct values, some far from each other, so that no extreme is a tie."""
    rng = np.random.default_rng(seed + 17 * len(shape))
    return rng.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)) + 1)[1:]).reshape(shape) + 0.013


def _ints(*values: Any) -> Any:
    return np.asarray(values, np.int64)


X5, X34, X234 = _floats(5), _floats(3, 4), _floats(2, 3, 4)
ZEROS = np.where(_floats(4, 3) < 0.3, 0.0, _floats(4, 3))

SHAPES: list[Case] = [
    Case("broadcast_in_dim", lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)), (X34,)),
    Case("broadcast_in_dim from one", lambda lax, x: lax.broadcast_in_dim(x, (3, 5, 4), (0, 2)), (_floats(3, 1),)),
    Case("broadcast_in_dim scalar", lambda lax, x: lax.broadcast_in_dim(x, (2, 3), ()), (_floats(1)[0],)),
    Case("reshape", lambda lax, x: lax.reshape(x, (3, 2, 4)), (X234,)),
    Case("reshape dimensions", lambda lax, x: lax.reshape(x, (12,), (1, 0)), (X34,)),
    Case("reshape to a scalar", lambda lax, x: lax.reshape(x, ()), (_floats(1, 1),)),
    Case("transpose", lambda lax, x: lax.transpose(x, (2, 0, 1)), (X234,)),
    Case("rev", lambda lax, x: lax.rev(x, (0, 2)), (X234,)),
    Case("squeeze", lambda lax, x: lax.squeeze(x, (0, -1)), (_floats(1, 3, 1),)),
    Case("expand_dims", lambda lax, x: lax.expand_dims(x, (0, 2)), (X34,)),
    Case("slice", lambda lax, x: lax.slice(x, (0, 1), (3, 4), (2, 2)), (X34,)),
    Case("slice nothing", lambda lax, x: lax.slice(x, (2, 1), (2, 4)), (X34,)),
    Case("concatenate", lambda lax, x, y: lax.concatenate([x, y, x], 1), (X34, _floats(3, 2))),
    Case("pad", lambda lax, x, v: lax.pad(x, v, [(1, 2, 0), (0, -1, 2)]), (X34, _floats(1)[0])),
    Case("pad negative", lambda lax, x, v: lax.pad(x, v, [(-1, -1, 1), (-2, 3, 0)]), (X34, _floats(1)[0])),
    Case("pad a scalar", lambda lax, x, v: lax.pad(x, v, []), (_floats(1)[0], _floats(1)[0])),
    Case("pad nothing", lambda lax, x, v: lax.pad(x, v, [(2, 1, 1)]), (_floats(0), _floats(1)[0])),
    Case("split", lambda lax, x: lax.split(x, (1, 3), axis=1), (X34,)),
    Case("iota", lambda lax, x: lax.mul(x, lax.broadcasted_iota(np.dtype("float64"), (3, 4), 1)), (X34,)),
    Case("optimization_barrier", lambda lax, x, y: lax.optimization_barrier([x, y]), (X34, X5)),
]

REDUCTIONS: list[Case] = [
    *(
        Case(f"{name} {axes}", lambda lax, x, name=name, axes=axes: getattr(lax, name)(x, axes), (x,))
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
        for x, axes in ((X5, (0,)), (X34, (1,)), (X234, (0, 2)))
    ),
    Case("reduce_prod zeros", lambda lax, x: lax.reduce_prod(x, (0,)), (ZEROS,)),
    Case("reduce_prod one zero", lambda lax, x: lax.reduce_prod(x, (0,)), (np.array([2.0, 0.0, 3.0, -1.5, 7.0]),)),
    Case("reduce_sum of nothing", lambda lax, x: lax.reduce_sum(x, (0,)), (_floats(0, 3),)),
    Case("reduce_prod of nothing", lambda lax, x: lax.reduce_prod(x, (0,)), (_floats(0, 3),)),
    Case("reduce_max ties", lambda lax, x: lax.reduce_max(x, (0,)), (np.array([1.0, 3.0, 3.0, 2.0, 3.0]),), False),
    Case("reduce_max nan", lambda lax, x: lax.reduce_max(x, (1,)), (np.array([[1.0, NAN], [2.0, 1.0]]),), False),
    *(
        Case(f"{name} {x.dtype}", lambda lax, x, name=name: getattr(lax, name)(x, (1,)), (x,))
        for name in ("reduce_and", "reduce_or", "reduce_xor")
        for x in (np.array([[True, False], [True, True]]), _ints([5, 3], [-1, 12]), np.zeros((2, 0), np.uint8))
    ),
    *(
        Case(f"{name} {axis}", lambda lax, x, name=name, axis=axis: getattr(lax, name)(x, axis, np.int32), (X234,))
        for name in ("argmax", "argmin")
        for axis in (0, 2)
    ),
    *(
        Case(f"{name} nan", lambda lax, x, name=name: getattr(lax, name)(x, 0, np.int64), (x,))
        for name in ("argmax", "argmin")
        for x in (np.array([1.0, NAN, 7.0, NAN, -9.0]),)
    ),
]

SCANS: list[Case] = [
    *(
        Case(
            f"{name} {axis} {reverse}",
            lambda lax, x, name=name, axis=axis, reverse=reverse: getattr(lax, name)(x, axis=axis, reverse=reverse),
            (x,),
        )
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for x, axis, reverse in ((X5, 0, False), (X5, 0, True), (X234, 1, False), (X234, 2, True))
    ),
    Case("cumprod zeros", lambda lax, x: lax.cumprod(x, axis=0), (ZEROS,)),
    Case("cumprod zeros reversed", lambda lax, x: lax.cumprod(x, axis=1, reverse=True), (ZEROS,)),
    Case("cumsum of nothing", lambda lax, x: lax.cumsum(x, axis=0), (_floats(0, 3),)),
    Case("cumsum integers", lambda lax, x: lax.cumsum(x, axis=0), (np.array([100, 100, 100], np.int8),)),
    Case("cummax nan", lambda lax, x: lax.cummax(x, axis=0), (np.array([1.0, NAN, 3.0]),), False),
    Case(
        "cumlogsumexp infinite", lambda lax, x: lax.cumlogsumexp(x, axis=0),
        (np.array([-np.inf, -np.inf, 1000.0, 1.0, 999.0]),), False,
    ),
]  # fmt: skip

UNSORTED = np.array([[2.0, NAN, -0.0, 0.0, -1.0, NAN, -np.inf], [0.0, -0.0, 3.0, NAN, 1.0, 3.0, np.inf]])

SORTING: list[Case] = [
    Case("sort", lambda lax, x: lax.sort(x, dimension=1), (X234,)),
    Case("sort special", lambda lax, x: lax.sort(x, dimension=1), (UNSORTED,), False),
    Case("sort order", lambda lax, x: lax.sort((x, lax.broadcasted_iota(np.int32, (2, 7), 1)), dimension=1),
         (UNSORTED,), False),
    Case("sort payload", lambda lax, k, v: lax.sort((k, v), dimension=0, num_keys=1), (_ints(3, 1, 2, 1, 3), X5)),
    Case("sort two keys", lambda lax, j, k, v: lax.sort((j, k, v), dimension=-1, num_keys=2),
         (_ints(3, 1, 3, 1, 1), X5, X5[::-1].copy())),
    Case("sort complex", lambda lax, x: lax.sort(x),
         (np.array([1 + 2j, 1 - 2j, complex(1, NAN), complex(NAN, 1), 0j, complex(NAN, 0)]),), False),
    Case("top_k", lambda lax, x: lax.top_k(x, 2), (X34,)),
    Case("top_k special", lambda lax, x: lax.top_k(x, 4), (np.where(UNSORTED == 0, 0.5, UNSORTED),), False),
    Case("top_k ties", lambda lax, x: lax.top_k(x, 3), (_ints(2, 5, 5, 1, 5),)),
]  # fmt: skip


def _gather(offset: Any, collapsed: Any, mapped: Any, sizes: Any, mode: str, *batching: Any, **options: Any) -> Call:
    def call(lax: Any, x: Any, i: Any) -> Any:
        return lax.gather(x, i, lax.GatherDimensionNumbers(offset, collapsed, mapped, *batching), sizes, mode=mode,
                          **options)  # fmt: skip

    return call


def _scatter(name: str, window: Any, inserted: Any, mapped: Any, mode: str, *batching: Any, **options: Any) -> Call:
    def call(lax: Any, x: Any, i: Any, u: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers(window, inserted, mapped, *batching)
        return getattr(lax, name)(x, i, u, numbers, mode=mode, **options)

    return call


ROWS, WILD = _ints([2], [0], [2]), _ints([2], [-1], [7], [0])
MODES = ("clip", "fill")

SLICING: list[Case] = [
    Case("dynamic_slice", lambda lax, x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), (X34, _ints(1)[0], _ints(9)[0])),
    Case("dynamic_slice negative", lambda lax, x, i: lax.dynamic_slice(x, (i,), (2,)), (X5, _ints(-2)[0])),
    Case("dynamic_slice far below", lambda lax, x, i: lax.dynamic_slice(x, (i,), (2,)), (X5, _ints(-20)[0])),
    Case(
        "dynamic_update_slice", lambda lax, x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
        (X34, _floats(2, 2), _ints(7)[0], _ints(1)[0]),
    ),
    Case("gather rows", _gather((1,), (0,), (0,), (1, 4), "clip"), (X34, ROWS)),
    Case("gather columns", _gather((0,), (1,), (1,), (3, 1), "clip"), (X34, ROWS)),
    Case("gather points", _gather((), (0, 1), (1, 0), (1, 1), "clip"), (X34, _ints([3, 0], [1, 2]))),
    Case("gather windows", _gather((1, 2), (), (0, 1), (2, 3), "clip"), (X34, _ints([0, 0], [1, 1], [2, 2]))),
    Case("gather split offsets", _gather((0, 2), (1,), (1,), (2, 1, 4), "clip"), (X234, ROWS)),
    Case("gather batching", _gather((1,), (1,), (1,), (1, 1, 4), "clip", (0,), (0,)), (X234, _ints([1], [2]))),
    Case("gather batching second", _gather((2,), (0,), (0,), (1, 1, 4), "clip", (1,), (1,)),
         (X234, _ints([[1], [0], [1]], [[0], [0], [1]]))),
    *(Case(f"gather {mode}", _gather((1,), (0,), (0,), (1, 4), mode), (X34, WILD), mode == "clip") for mode in MODES),
    Case("gather fill 7", _gather((1,), (0,), (0,), (1, 4), "fill", fill_value=7.0), (X34, WILD)),
    Case("gather fill windows", _gather((1,), (), (0,), (2,), "fill", fill_value=7.0), (X5, _ints([3], [4], [-1]))),
    *(Case(f"gather fill {d}", _gather((), (0,), (0,), (1,), "fill"), (np.arange(3).astype(d), WILD))
      for d in ("int32", "uint8", "bool")),
    Case("gather one", _gather((), (0, 1), (0, 1), (1, 1), "clip"), (X34, _ints(2, 1))),
    Case("scatter_add one", _scatter("scatter_add", (), (0, 1), (0, 1), "clip"), (X34, _ints(2, 1), X5[0])),
    Case("gather nothing", _gather((1,), (0,), (0,), (1, 4), "clip"), (X34, np.zeros((0, 1), np.int64))),
    *(
        Case(f"{name} {mode}", _scatter(name, (1,), (0,), (0,), mode), (X34, WILD, _floats(4, 4, seed=3)))
        for name in ("scatter_add", "scatter_min", "scatter_max")
        for mode in (MODES if name == "scatter_add" else ("fill",))  # JAX's gradient of a clipped extreme is infinite
    ),
    *(
        Case(f"{name} windows", _scatter(name, (1,), (), (0,), "fill"),
             (X5, _ints([3], [1], [0]), _floats(3, 2, seed=4)))
        for name in ("scatter_add", "scatter_min", "scatter_max")
    ),
    *(
        Case(f"{name} unique", _scatter(name, (1,), (0,), (0,), "fill", unique_indices=True),
             (X34, _ints([2], [9], [0]), _floats(3, 4, seed=5)))
        for name in ("scatter", "scatter_mul")
    ),
    Case("scatter points", _scatter("scatter", (), (0, 1), (1, 0), "clip", unique_indices=True),
         (X34, _ints([3, 0], [1, 2]), _floats(2, seed=6))),
    Case("scatter_add batching", _scatter("scatter_add", (1,), (1,), (1,), "clip", (0,), (0,)),
         (X234, _ints([1], [2]), _floats(2, 4, seed=7))),
    Case("scatter_add columns", _scatter("scatter_add", (0,), (1,), (1,), "fill"),
         (X34, _ints([3], [3], [8]), _floats(3, 3, seed=8))),
    Case("scatter_add integers", _scatter("scatter_add", (), (0,), (0,), "fill"),
         (np.array([100, 2, 3], np.int8), WILD, np.array([1, 2, 3, 100], np.int8))),
]  # fmt: skip


def _guarded_gather(lax: Any, x: Any, i: Any, p: Any) -> Any:
    return lax.gather(x, i, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), predicate=p)


def _guarded_scatter(lax: Any, x: Any, i: Any, u: Any, p: Any) -> Any:
    return lax.scatter_add(x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), predicate=p)


# JAX leaves these open, refuses them or has no such operand; here their meaning is fixed.
REPEATED, U44, MASK = _ints([2], [2], [9], [0]), _floats(4, 4, seed=3), np.array([True, False, True])
PAIRS = _ints([1], [1], [1], [2], [2])

OURS: list[Case] = [
    Case("scatter_add to a scalar", _scatter("scatter_add", (), (), (), "clip"),
         (X34[0, 0], np.zeros((2, 0), np.int64), X5[:2])),
    Case("gather of a scalar", _gather((), (), (), (), "clip"), (X34[0, 0], np.zeros((2, 0), np.int64))),
    Case("scatter_max clip", _scatter("scatter_max", (1,), (0,), (0,), "clip"), (X34, WILD, U44)),
    Case("scatter repeated", _scatter("scatter", (1,), (0,), (0,), "fill"), (X34, REPEATED, U44)),
    Case("scatter overlapping", _scatter("scatter", (1,), (), (0,), "clip"), (X5, _ints([3], [2], [0]), U44[:3, :2])),
    Case("scatter_mul repeated", _scatter("scatter_mul", (1,), (0,), (0,), "fill"), (X34, REPEATED, U44)),
    Case("scatter_mul one zero", _scatter("scatter_mul", (), (0,), (0,), "clip"),
         (X5, PAIRS, np.array([2.0, 0.0, 3.0, 4.0, 0.5]))),
    Case("scatter_mul two zeros", _scatter("scatter_mul", (), (0,), (0,), "clip"),
         (X5, PAIRS, np.array([0.0, 0.0, 3.0, 0.0, 0.5]))),
    Case("gather predicate", _guarded_gather, (X34, _ints([2], [9], [0]), MASK)),
    Case("gather scalar predicate", _guarded_gather, (X34, _ints([2], [9], [0]), np.array(False))),
    Case("scatter_add predicate", _guarded_scatter, (X34, _ints([2], [9], [2]), _floats(3, 4), MASK)),
]  # fmt: skip

CASES = [*SHAPES, *REDUCTIONS, *SCANS, *SORTING, *SLICING]


def outputs_of(result: Any) -> list[Any]:
    """One output or several, as a list."""
    return list(result) if isinstance(result, list | tuple) else [result]


def weights(value: Any) -> Any:
    """Cotangents for the stored gradients: distinct, of every sign."""
    return np.cos(1.0 + np.arange(value.size)).reshape(value.shape)
