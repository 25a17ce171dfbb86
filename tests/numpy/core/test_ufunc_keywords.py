"""Keywords, operands and integers that are seldom given, beside NumPy's, found by trying all of every function."""

from __future__ import annotations

import io
import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError

V = np.asarray([3.0, 1.0, 2.0, 2.0, -1.0])
B = np.arange(24).reshape(2, 3, 4) % 7
SMALL = np.asarray([1, -2, 127], "int8")
BYTES = np.asarray([0, 1, 255], "uint8")

CALLS: list[Callable[[Any], Any]] = [
    *(
        lambda p, mode=mode, width=width: p.pad(p.asarray(V), width, mode=mode, reflect_type="odd")
        for mode in ("reflect", "symmetric")
        for width in (2, (1, 13), (7, 0))
    ),
    lambda p: p.pad(p.asarray(B), ((1, 2), (0, 1), (5, 9)), mode="reflect", reflect_type="odd"),
    lambda p: p.pad(p.asarray(B), ((1, 2), (0, 1), (2, 0)), mode="mean"),
    lambda p: p.pad(p.asarray(B), ((1, 2), (0, 1), (2, 0)), mode="median"),
    lambda p: p.pad(p.asarray([np.inf, 1.0, 2.0]), 1, mode="reflect", reflect_type="odd"),
    lambda p: p.logspace(0, 2, 4, base=[2.0, 3.0]),
    lambda p: p.logspace([0, 1], [2.0, 3.0], 4, base=[2.0, 3.0], axis=-1),
    lambda p: p.einsum("ij,j->i", p.asarray(B[0]), p.asarray(B[0, 0]), dtype=float, order="C"),
    lambda p: p.polyint([1, 2, 3], k=[1, 2]),
    lambda p: p.polyint([1, 2, 3], m=0),
    lambda p: p.ravel(p.asarray(B), order="K") + p.asarray(B).flatten(order="A"),
    lambda p: p.asarray(B).copy("C") + p.copy(p.asarray(B), "K"),
    lambda p: p.asarray(V).view(),
    lambda p: p.choose([0, 5, -1], [[1, 2, 3], [4, 5, 6]], mode="clip"),
    lambda p: p.choose([0, 5, -1], [[1, 2, 3], [4, 5, 6]], mode="wrap"),
    lambda p: p.var(p.asarray(V), ddof=7),
    lambda p: p.cov(p.asarray(V[:2]), ddof=3),
    lambda p: p.cov(p.asarray(V), fweights=[1, 0, 0, 0, 0]),
    lambda p: p.percentile(p.zeros((3, 0)), [30, 50], axis=0),
    lambda p: p.histogramdd(p.asarray(3.0), bins=2)[0],
    lambda p: p.asarray(range(3)) + p.sum(range(4)),
    lambda p: p.asarray(B)[:, range(2)],
    lambda p: p.arange(3) * range(3) + p.concatenate([range(2), range(1)]),
    lambda p: p.asarray(array("d", [1.0, 2.0])),
    lambda p: p.asarray(memoryview(b"ab")),
    lambda p: p.asarray([range(3), range(3)]),
    *(
        lambda p, op=op, x=x, n=n: op(p, p.asarray(x), n)
        for op in (
            lambda p, x, n: x == n, lambda p, x, n: n != x, lambda p, x, n: x < n, lambda p, x, n: n < x,
            lambda p, x, n: p.less_equal(x, n), lambda p, x, n: p.greater_equal(n, x), lambda p, x, n: x > n,
        )
        for x, n in ((SMALL, 300), (SMALL, -300), (BYTES, -1), (BYTES, 256), (B, 2**70), (B, -(2**70)))
    ),
    lambda p: p.clip(p.asarray(SMALL), -300, 300),
    lambda p: p.clip(p.asarray(BYTES), -1, 3),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=map(str, range(len(CALLS))))
def test_results_are_numpys(call: Callable[[Any], Any]) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = call(np)
    for found in (call(tnp), tracer.jit(lambda: call(tnp))()):
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-13, atol=1e-13)


def test_comparisons_beyond_the_dtype_are_compiled() -> None:
    assert tracer.jit(lambda x: (x == 300, x < 300, x < -300))(tnp.asarray(SMALL))[1].tolist() == [True] * 3
    assert tracer.vmap(lambda x: x != 2**80)(tnp.arange(3)).tolist() == [True] * 3


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: tnp.partition(x, 5), OutOfBoundsError, "partition at .*: kth=5 is out of range for 5 elements"),
    (lambda x: tnp.argpartition(x, [0, -6]), OutOfBoundsError, "argpartition at .*: kth=-6 is out of range"),
    (lambda x: tnp.max(x[:0], initial=1, where=[True, False]), ShapeError, "max at .*: shapes"),
    (lambda x: tnp.bincount(tnp.arange(3), weights=x), ShapeError, "bincount at .* takes one weight for each value"),
    (lambda x: tnp.histogramdd(x.reshape(5, 1, 1)), ShapeError, "histogramdd at .* takes points as rows of a matrix"),
    (lambda x: tnp.quantile(x[:0], 0.5), ArgumentError, "quant"),
    (lambda x: tnp.digitize(x, [0.0, 2.0, 1.0]), ArgumentError, "digitize at .*: the bins neither ascend nor descend"),
    (lambda x: tnp.geomspace(0, 1), ArgumentError, "geomspace at .*: no ratio leads from or to zero"),
    (lambda x: tnp.pad(x, 1, mode="edge", constant_values=1), ArgumentError, "pad at .*: mode 'edge' takes no const"),
    (lambda x: tnp.pad(x, 1, mode="reflect", reflect_type="x"), ArgumentError, 'pad at .*: reflect_type is "even" or'),
    (lambda x: tnp.pad(x[:0], 1, mode="mean"), ShapeError, "pad at .*: an axis without elements has nothing"),
    (lambda x: x.astype(int, casting="safe"), DTypeError, "astype at .*: the cast to int64 is not safe"),
    (lambda x: tnp.einsum("i->i", x, dtype="f4"), DTypeError, "einsum at .*: the cast to float32 is not safe"),
    (lambda x: tnp.ediff1d(tnp.arange(3), to_begin=1.5), DTypeError, "ediff1d at .*: float64 cannot be cast"),
    (lambda x: tnp.unravel_index(5.5, (3, 4)), DTypeError, "unravel_index at .* takes integers"),
    (
        lambda x: tnp.polyint(x, 3, k=[1, 2]),
        ShapeError,
        "polyint at .* takes one constant, or one for each integration",
    ),
    (lambda x: tnp.asarray([2**64]), DTypeError, "asarray at .*: an integer of the list does not fit in 64 bits"),
    (lambda x: tnp.asarray(SMALL).at[0].set(300), DTypeError, r"x.at\[i\].set at .*: the integer 300 does not fit"),
    (lambda x: tnp.sum(np.ma.array([1, 2], mask=[0, 1])), ArgumentError, "sum at .*: an argument is a masked array"),
    (
        lambda x: tnp.save(io.BytesIO(), x.astype("bfloat16")),
        DTypeError,
        "save at .*: NumPy's files do not support bf",
    ),
    (
        lambda x: tnp.save(io.BytesIO(), x.astype("float8_e5m2")),
        DTypeError,
        r'save at .*: NumPy\'s files do not support float8_e5m2\n  help: save np.asarray\(x\).view\("uint8"\)',
    ),
]


@each(("call", "kind", "text"), REFUSED, ids=[text.split()[0] for _, _, text in REFUSED])
def test_what_numpy_refuses_is_refused(call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=f"^{text}"):
        call(tnp.asarray(V))


def test_masks_that_hide_nothing_are_ignored() -> None:
    assert tnp.sum(np.ma.array([1, 2])) == 3


def test_numbers_of_results_that_size_says() -> None:
    x, mask = tnp.asarray(V), tnp.asarray([True, False, True, True, False])
    jitted = tracer.jit(lambda m, x: tnp.compress(m, x, size=4, fill_value=-7.0))(mask, x)
    assert jitted.tolist() == [3.0, 2.0, 2.0, -7.0]
    assert tracer.jit(lambda m, x: tnp.extract(m, x, size=2))(mask, x).tolist() == [3.0, 2.0]
    assert tracer.jit(lambda x: tnp.unique_values(x, size=5, fill_value=9.0))(x).tolist() == [-1.0, 1.0, 2.0, 3.0, 9.0]
    assert tracer.jit(lambda x: tnp.unique_counts(x, size=4).counts)(x).tolist() == [1, 1, 2, 1]
    assert tracer.jit(lambda x: tnp.unique_inverse(x, size=4).inverse_indices)(x).tolist() == [3, 1, 2, 2, 0]
    assert tracer.jit(lambda x: tnp.unique_all(x, size=4).indices)(x).tolist() == [4, 1, 2, 0]
    assert tracer.jit(lambda: tnp.mask_indices(2, tnp.triu, size=2))()[1].tolist() == [0, 1]
    with pytest.raises(tracer.errors.TracerArrayError, match=r"^extract at .*: the number of results depends"):
        tracer.jit(tnp.extract)(mask, x)
