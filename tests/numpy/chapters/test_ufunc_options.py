"""NumPy's keywords beside operands: `out=`, `where=`, `dtype=` and `casting=` of ufuncs, orders, kinds, casts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, DTypeError, MutationError, ShapeError
from tracer.numpy.core.ufunc_keywords import place_of_out, taken

X = np.asarray([[0.5, -1.5, 0.0], [2.0, 3.5, -0.25]])
MASK = np.asarray([True, False, True])
UFUNCS = sorted(
    name for name in tnp.__all__ if isinstance(f := getattr(np, name, None), np.ufunc) and f.signature is None
)
INTEGERS = {
    "bitwise_count", "bitwise_invert", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "gcd",
    "lcm", "bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift",
}  # fmt: skip


def place_in_numpy(function: Any) -> int | None:
    """How many arguments come before `out`; None where it is taken by name alone."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return None
    found = [n for n, p in enumerate(parameters) if p.name == "out" and p.kind is p.POSITIONAL_OR_KEYWORD]
    return found[0] if found else None


def operands_of(name: str) -> list[Any]:
    theirs = getattr(np, name)
    x = np.asarray([[1, 2, 3], [4, 5, 6]]) if name in INTEGERS else np.abs(X) % 1 + 1 if name != "arctanh" else X / 4
    x = x / 4 if name in ("atanh", "arcsin", "asin", "arccos", "acos") else x
    second = np.asarray([1, 2, 1]) if name in INTEGERS | {"ldexp"} else np.asarray([0.5, 1.25, 2.0])
    return [x, second][: theirs.nin]


@each("name", UFUNCS)
def test_ufuncs_write_where_they_are_told(name: str) -> None:
    ours, theirs, operands = getattr(tnp, name), getattr(np, name), operands_of(name)
    results = theirs(*operands)
    results = results if isinstance(results, tuple) else (results,)
    filled = [np.full(r.shape, 7).astype(r.dtype) for r in results]
    theirs(*operands, out=tuple(f.copy() for f in filled), where=MASK)
    for make in (tnp.asarray, np.copy):
        held = tuple(make(f) for f in filled)
        expected = tuple(f.copy() for f in filled)
        theirs(*operands, out=expected, where=MASK)
        returned = ours(*map(tnp.asarray, operands), out=held if len(held) > 1 else held[0], where=MASK)
        for target, found, reference in zip(
            held, returned if isinstance(returned, tuple) else (returned,), expected, strict=True
        ):
            assert found is target
            np.testing.assert_allclose(np.asarray(target), reference, rtol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda p, x: p.add(x, 1, dtype="float32"),
        lambda p, x: p.multiply(x, 2.0, dtype=np.complex128),
        lambda p, x: p.equal(x, x, dtype=bool),
        lambda p, x: p.add(x, 1.0, dtype=int, casting="unsafe"),
        lambda p, x: p.add(1.0, 2.0, out=p.zeros(3)),
        lambda p, x: p.sin(x, order="F", subok=False),
        lambda p, x: p.add(x, 0.5, out=p.zeros((2, 3), int), casting="unsafe"),
        lambda p, x: p.sum(x, axis=0, out=p.zeros(3, "float32")),
        lambda p, x: x.cumsum(axis=1, out=p.zeros((2, 3))),
        lambda p, x: x.round(1, out=p.zeros((2, 3))),
        lambda p, x: p.round(x, out=p.zeros((2, 3))),
        lambda p, x: p.concatenate([x, x], out=p.zeros((4, 3))),
        lambda p, x: p.matmul(x, x.T, out=p.zeros((2, 2))),
        lambda p, x: p.nanmax(x, axis=1, initial=3.0, where=MASK),
        lambda p, x: p.nanmin(x, initial=-9.0),
        lambda p, x: p.concatenate([x, x], dtype="float32", casting="same_kind"),
        lambda p, x: p.zeros((2, 2), order="F") + p.full_like(x[:, :2], 2.0, order="A", subok=False),
        lambda p, x: p.copy(x, order="K") + x.copy(order="C"),
        lambda p, x: p.isin(x, [2.0, 3.5], kind="sort"),
        lambda p, x: p.partition(x, 1, kind="introselect")[:, 1],
        lambda p, x: p.stack(p.unravel_index(np.arange(6), (2, 3), order="F")),
        lambda p, x: p.cov(x, dtype="float32"),
        lambda p, x: p.corrcoef(x, dtype="float32"),
        lambda p, x: p.add(p.asarray([1, 2], dtype="uint8"), 300, dtype="uint16"),
        lambda p, x: p.add(x, x, p.zeros((2, 3))),
        lambda p, x: p.matmul(x, x.T, p.zeros((2, 2))),
        lambda p, x: p.modf(x, None, p.zeros((2, 3)))[1],
        lambda p, x: p.modf(x, p.zeros((2, 3)))[0],
        lambda p, x: p.sum(x, 0, None, p.zeros((1, 3)), True),
        lambda p, x: p.take(x, [3, 0], 1, p.zeros((2, 2)), "clip"),
        lambda p, x: p.concatenate([x, x], 0, p.zeros((4, 3))),
        lambda p, x: p.dot(x, x.T, p.zeros((2, 2))),
        lambda p, x: p.round(x, 1, None) + x.round(1, p.zeros((2, 3))),
        lambda p, x: x.clip(0, 1, p.zeros((2, 3))) + p.clip(x, 0, 1, p.zeros((2, 3))),
    ],
)
def test_keywords_have_numpys_meaning(call: Callable[[Any, Any], Any]) -> None:
    expected = call(np, X.copy())
    for run in (lambda f, x: f(x), lambda f, x: tracer.jit(f)(x)):
        found = run(lambda x: call(tnp, x), tnp.asarray(X))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6 if found.dtype == "float32" else 1e-14)


TAKING_OUT = [
    name
    for name in tnp.__all__
    if callable(theirs := getattr(np, name, None)) and not isinstance(theirs, type | np.ufunc)
    and place_in_numpy(theirs) is not None
]  # fmt: skip


@each("name", TAKING_OUT)
def test_out_has_numpys_position(name: str) -> None:
    assert place_of_out(name) == place_in_numpy(getattr(np, name))


def test_out_by_position_stands_for_the_result_every_time() -> None:
    x, targets = tnp.asarray(X), (tnp.zeros((2, 3)), np.zeros((2, 3)))
    for n in range(2):
        for target in targets:
            assert tnp.add(x, n, target) is target
            np.testing.assert_array_equal(target, X + n)
            assert tnp.cumsum(x * n, 1, None, target) is target
            np.testing.assert_array_equal(target, (X * n).cumsum(1))


def test_divisions_by_zero_that_where_leaves_out_have_slope_zero() -> None:
    for p in (tnp, np):

        def f(x: Any, p: Any = p) -> Any:
            kept = p.divide(1.0, x, out=tnp.zeros_like(x), where=x != 0)
            return (kept + p.log(x, out=tnp.full_like(x, 5.0), where=x > 0)).sum()

        x = np.asarray([0.0, 2.0, -4.0])
        for gradient in (tracer.grad(f), tracer.jit(tracer.grad(f))):
            np.testing.assert_allclose(gradient(x), [0.0, 0.25, -0.0625])
    assert tracer.grad(lambda x: tnp.arccosh(x, where=x > 1, out=tnp.zeros_like(x)).sum())(np.ones(1)).tolist() == [0]


def test_traced_results_are_written_to_what_the_trace_made() -> None:
    def f(x: Any) -> Any:
        y = tnp.zeros_like(x)
        tnp.multiply(x, 2.0, out=y)
        tnp.sum(y, axis=0, keepdims=True, out=(total := tnp.zeros((1, 3))))
        return y + total

    np.testing.assert_array_equal(tracer.jit(f)(X), 2 * X + 2 * X.sum(0))
    with pytest.raises(MutationError, match="does not own this array"):
        tracer.jit(lambda x: tnp.add(x, 1.0, out=x))(X)
    with pytest.raises(MutationError, match=r"^add at .*: a traced value cannot be written into a NumPy array"):
        tracer.jit(lambda x: tnp.add(x, 1.0, out=np.zeros((2, 3))))(X)


@each(
    ("call", "kind", "text"),
    [
        (lambda x: tnp.add(x, 1.0, out=tnp.zeros(2)), ShapeError, r"add at .*: out= must have the result's shape"),
        (
            lambda x: tnp.add(x, 1.0, out=tnp.zeros((2, 3), int)),
            DTypeError,
            "add at .*: the result cannot be cast to out=",
        ),
        (lambda x: tnp.add(x, 1.0, out=3), DTypeError, r"add at .*: out= must be an array"),
        (lambda x: tnp.add(x, 1.0, dtype=int), DTypeError, r"add at .*: the cast to int64 is not same_kind"),
        (lambda x: tnp.sum(x, out=tnp.zeros(3)), ShapeError, r"sum at .*: out= must have the result's shape"),
        (lambda x: tnp.zeros(3, order="Q"), ArgumentError, r"zeros at .*: order= is one of None, 'C', 'F', 'A', 'K'"),
        (lambda x: tnp.sin(x, order=3), ArgumentError, r"sin at .*: order= is one of"),
        (lambda x: tnp.isin(x, x, kind="fast"), ArgumentError, r"isin at .*: kind= is one of"),
        (
            lambda x: tnp.stack([x, x], dtype="float32", casting="safe"),
            DTypeError,
            r"stack at .*: the cast to float32 is not safe",
        ),
        (lambda x: tnp.unravel_index(1, (2, 2), order="K"), ArgumentError, r"unravel_index at .*: order is 'C' or 'F'"),
        (lambda x: tnp.tensordot(x, x, out=x), TypeError, r"tensordot at .* takes no out="),
        (lambda x: tnp.matmul(x, x.T, where=True), TypeError, r"matmul at .* takes no where="),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=rf"^{text}"):
        call(tnp.asarray(X))


def test_keywords_are_numpys() -> None:
    assert taken("add") == {"casting", "dtype", "order", "out", "subok", "where"}
    assert "where" not in taken("matmul")
    assert taken("tensordot") == {"out"}


def test_nan_to_num_writes_where_it_is_told() -> None:
    for _ in range(2):
        for x in (tnp.asarray([1.0, np.nan]), np.asarray([1.0, np.nan])):
            assert tnp.nan_to_num(x)[1] == 0
            assert np.isnan(x[1])
            tnp.nan_to_num(x, copy=False, nan=3.0)
            assert x.tolist() == [1.0, 3.0]
    assert tracer.jit(lambda x: tnp.nan_to_num(x / x, copy=False))(np.zeros(2)).tolist() == [0, 0]
    with pytest.raises(MutationError, match="does not own this array"):
        tracer.jit(lambda x: tnp.nan_to_num(x, copy=False))(X)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
def test_what_stands_for_nan_and_infinities_may_be_arrays(way: Any) -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    found = way(lambda q: tnp.nan_to_num(x, nan=q, posinf=2 * q, neginf=tnp.arange(4.0)))(5.0)
    np.testing.assert_array_equal(found, [1.0, 5.0, 10.0, 3.0])
    wide = way(lambda q: tnp.nan_to_num(tnp.asarray(np.nan, "float32"), nan=q))(np.arange(2.0))
    assert (str(wide.dtype), wide.tolist()) == ("float32", [0.0, 1.0])
    slope = way(tracer.grad(lambda q: tnp.nan_to_num(x, nan=q, posinf=q * q)[:3].sum()))(2.0)
    assert float(slope) == 5.0
    by_lane = way(tracer.vmap(lambda v, q: tnp.nan_to_num(v, nan=q)))(x[:2], np.array([7.0, 8.0]))
    np.testing.assert_array_equal(by_lane, [1.0, 8.0])


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
def test_tolerances_may_be_arrays(way: Any) -> None:
    a, b = np.array([1.0, 2.0, 3.0, 100.0]), np.array([1.1, 2.0, 3.5, 101.0])
    for relative, absolute in ((0.0, 0.2), (0.2, 0.0), (0.05, 0.05), (0.0, np.array([0.2, 0.2, 0.2, 2.0]))):
        found = way(lambda r, t: tnp.isclose(a, b, rtol=r, atol=t))(relative, absolute)
        np.testing.assert_array_equal(found, np.isclose(a, b, rtol=relative, atol=absolute))
        whole = way(lambda r, t: tnp.allclose(a, b, rtol=r, atol=t))(relative, absolute)
        assert bool(whole) == np.allclose(a, b, rtol=relative, atol=absolute)
    assert way(lambda t: tnp.isclose(1.0, 1.1, atol=t))(np.array([0.2, 0.01])).tolist() == [True, False]
    assert way(lambda t: tnp.isclose(np.arange(2), np.arange(2) + 1, atol=t))(1).tolist() == [True, True]
