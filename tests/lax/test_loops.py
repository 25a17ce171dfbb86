"""Loops against Python's, their carries' types, and what users see when they get them wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import lax
from tracer.errors import ArgumentError, CarryTypeError, ShapeError, TracerIntegerError


def test_while_loop_runs_until_its_condition_fails() -> None:
    assert float(lax.while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, 3.0)) == 192.0
    assert float(tracer.jit(lambda x: lax.while_loop(lambda v: v < 100.0, lambda v: 2.0 * v, x))(3.0)) == 192.0
    assert float(lax.while_loop(lambda x: x < 0.0, lambda x: 2.0 * x, 3.0)) == 3.0


def test_while_loop_carries_trees_and_captures_arrays() -> None:
    step = tnp.asarray([1.0, 2.0])

    def body(state: dict[str, Any]) -> dict[str, Any]:
        return {"count": state["count"] + 1, "total": state["total"] + step}

    final = lax.while_loop(lambda s: s["count"] < 5, body, {"count": 0, "total": tnp.zeros(2)})
    assert int(final["count"]) == 5
    assert final["total"].tolist() == [5.0, 10.0]


@pytest.mark.parametrize("bounds", [(0, 5), (3, 3), (4, 2), (-2, 3)])
def test_fori_loop_counts_as_range_with_known_and_with_traced_bounds(bounds: tuple[int, int]) -> None:
    expected = sum(range(*bounds))
    assert int(lax.fori_loop(*bounds, lambda i, total: total + i, 0)) == expected
    traced = tracer.jit(lambda a, b: lax.fori_loop(a, b, lambda i, total: total + i, 0))
    assert int(traced(*bounds)) == expected


@pytest.mark.parametrize("dtype", [float, np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("lower", "upper", "known", "traced"), [
    (0.0, 3.0, 3.0, 3.0), (0.0, 3.5, 3.0, 6.0), (0.5, 3.0, 3.0, 4.5), (-0.5, 2.5, 1.0, 1.5), (2.0, 2.0, 0.0, 0.0),
    (0.0, -np.inf, 0.0, 0.0),
])  # fmt: skip
def test_fori_loop_with_bounds_that_are_floats_counts_as_in_jax(
    lower: float, upper: float, known: float, traced: float, dtype: type
) -> None:
    low, high = dtype(lower), dtype(upper)
    add_index = lambda i, total: total + i  # noqa: E731
    assert float(lax.fori_loop(low, high, add_index, 0.0)) == known
    assert float(tracer.jit(lambda a, b: lax.fori_loop(a, b, add_index, 0.0))(low, high)) == traced
    both = tracer.vmap(lambda b: lax.fori_loop(low, b, add_index, 0.0))(tnp.stack([high, low]))
    assert both.tolist() == [traced, 0.0]


def test_fori_loop_with_bounds_that_are_floats_is_differentiated() -> None:
    def power(x: Any, n: Any) -> Any:
        return lax.fori_loop(0.0, n, lambda _, y: y * x, 1.0, memory=8)

    assert float(tracer.grad(power)(2.0, 3.0)) == 12.0
    assert [float(g) for g in tracer.jit(tracer.grad(power, argnums=(0, 1)))(2.0, 3.0)] == [12.0, 0.0]
    assert float(tracer.jvp(lambda x: power(x, 3.0), (2.0,), (1.0,))[1]) == 12.0


def index_type(lower: Any, upper: Any, traced: str) -> tuple[str, bool]:
    """The dtype of the index, and whether it is weak, with bounds of which those named are traced."""
    seen = []

    def body(i: Any, total: Any) -> Any:
        seen.append((i.dtype.name, i.weak_type))
        return total

    known = {"lower": lower, "upper": upper}
    given = {name: known.pop(name) for name in traced.split()}
    tracer.jit(lambda given: lax.fori_loop(init_val=0.0, body_fun=body, **known, **given))(given)
    return seen[-1]


@each(
    ("lower", "upper", "traced", "expected"),
    [
        (0, 3, "", ("int64", True)),
        (np.int32(0), np.int32(3), "", ("int64", True)),
        (0, np.int16(3), "", ("int64", True)),
        (np.asarray(0, "uint8"), np.asarray(3, "uint8"), "", ("int64", True)),
        (0, 3, "lower upper", ("int64", True)),
        (0, np.int32(3), "upper", ("int32", False)),
        (np.int32(0), np.int32(3), "upper", ("int32", False)),
        (np.int32(0), 3, "lower", ("int32", False)),
        (0, np.int64(3), "upper", ("int64", True)),
        (np.int64(0), 3, "lower", ("int64", False)),
        (0.0, 3.0, "", ("int64", True)),
        (np.float32(0), np.float32(3), "", ("int64", True)),
        (0.0, 3.0, "upper", ("float64", True)),
        (np.float32(0), np.float32(3), "upper", ("float32", False)),
    ],
)
def test_the_index_of_fori_loop_has_jax_s_dtype(lower: Any, upper: Any, traced: str, expected: Any) -> None:
    assert index_type(lower, upper, traced) == expected  # what JAX 0.10.2 with 64 bits shows


def test_fori_loop_to_numpy_s_bounds_adds_its_index_to_carries_of_any_dtype() -> None:
    total = lax.fori_loop(np.int32(0), np.int64(3), lambda i, x: x + i, tnp.zeros((), "int8"))
    assert total.dtype == np.int8
    assert int(total) == 3


def test_fori_loop_with_known_bounds_is_differentiated_in_reverse() -> None:
    assert float(tracer.grad(lambda x: lax.fori_loop(0, 3, lambda _, y: y * x, 1.0))(2.0)) == 12.0


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_along_and_stacks(reverse: bool) -> None:
    xs = np.arange(5.0)
    last, ys = lax.scan(lambda c, x: (c + x, c * x), 0.0, xs, reverse=reverse)
    carry, expected = 0.0, np.zeros(5)
    for i in reversed(range(5)) if reverse else range(5):
        expected[i], carry = carry * xs[i], carry + xs[i]
    assert float(last) == carry
    assert ys.tolist() == expected.tolist()


def test_scan_takes_and_gives_trees_and_nothing() -> None:
    last, ys = lax.scan(
        lambda c, x: (c, {"a": x["u"] + x["v"], "b": None}), None, {"u": np.ones(3), "v": np.arange(3.0)}
    )
    assert last is None
    assert ys["a"].tolist() == [1.0, 2.0, 3.0]
    last, ys = lax.scan(lambda c, _: (2.0 * c, c), 1.0, None, length=3)
    assert (float(last), ys.tolist()) == (8.0, [1.0, 2.0, 4.0])
    last, ys = lax.scan(lambda c, x: (c + x, x), 1.0, np.zeros(0))
    assert (float(last), ys.shape) == (1.0, (0,))


def test_map_is_a_loop_over_slices_in_batches_or_one_by_one() -> None:
    xs = np.arange(7.0)
    for size in (None, 1, 3, 7, 10):
        assert lax.map(lambda x: x * x, xs, batch_size=size).tolist() == (xs * xs).tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_gives_all_prefixes(n: int, reverse: bool) -> None:
    xs = np.arange(1.0, n + 1)
    products = np.cumprod(xs[::-1])[::-1] if reverse else np.cumprod(xs)
    np.testing.assert_allclose(np.asarray(lax.associative_scan(tnp.multiply, xs, reverse=reverse)), products)
    tree = lax.associative_scan(lambda a, b: (a[0] + b[0], tnp.maximum(a[1], b[1])), (xs, -xs), axis=0)
    np.testing.assert_allclose(np.asarray(tree[0]), np.cumsum(xs))


@pytest.mark.parametrize(
    ("init", "dtype"), [(0.0, "float32"), (0, "float32"), (np.float32(0), "float32")], ids=["float", "int", "f32"]
)
def test_numbers_as_carries_take_the_dtype_that_the_body_returns(init: Any, dtype: str) -> None:
    one = tnp.ones((), "float32")
    assert lax.fori_loop(0, 3, lambda _, x: x + one, init).dtype == dtype
    assert lax.while_loop(lambda x: x < 3, lambda x: x + one, init).dtype == dtype
    assert lax.scan(lambda c, x: (c + x, c), init, tnp.ones(3, "float32"))[0].dtype == dtype
    assert not lax.fori_loop(0, 3, lambda _, x: x + one, init).weak_type


def test_the_loop_index_is_weak() -> None:
    assert lax.fori_loop(0, 3, lambda i, x: x + i, tnp.zeros((), "int8")).dtype == np.int8


MISTAKES = [
    (
        lambda: lax.while_loop(lambda u: u.sum() < 3, lambda u: u.astype("float64") * 2, tnp.ones(64, "float32")),
        CarryTypeError,
        (
            "while_loop at test_loops.py\n"
            "  carry 'u' enters as f32[64] but the body returns f64[64]\n"
            '  help: cast the result, u.astype("float32"), or start from a float64 carry'
        ),
    ),
    (
        lambda: lax.scan(lambda state, x: ((state[0], state[1].astype(int)), x), (1.0, tnp.ones(3)), tnp.ones(3)),
        CarryTypeError,
        (
            "scan at test_loops.py\n"
            "  carry 'state[1]' enters as f64[3] but the body returns i64[3]\n"
            '  help: cast the result, state[1].astype("float64"), or start from an int64 carry'
        ),
    ),
    (
        lambda: lax.while_loop(
            lambda c: c["n"] < 3, lambda c: {"n": c["n"] + 1, "v": c["v"][:2]}, {"n": 0, "v": tnp.ones(3)}
        ),
        CarryTypeError,
        (
            "while_loop at test_loops.py\n"
            "  carry 'c['v']' enters as f64[3] but the body returns f64[2]\n"
            "  help: keep the type, or start from a carry f64[2]"
        ),
    ),
    (
        lambda: lax.fori_loop(0, 3, lambda i, acc: (acc,), 0.0),
        CarryTypeError,
        (
            "fori_loop at test_loops.py\n"
            "  carry 'acc' enters as * but the body returns (*,)\n"
            "  help: return the structure that the body takes"
        ),
    ),
    (
        lambda: lax.scan(lambda c, x: c, 1.0, tnp.ones(3)),
        CarryTypeError,
        "scan at test_loops.py\n  got *\n  help: return (carry, None) where there is nothing to stack",
    ),
    (
        lambda: lax.while_loop(lambda u: u, lambda u: u, tnp.ones(())),
        CarryTypeError,
        "while_loop at test_loops.py\n  got f64[]\n  help: compare, or reduce with .any() or .all()",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 1.0, (tnp.ones(3), tnp.ones(4))),
        ShapeError,
        ("scan at test_loops.py\n  xs[0] has length 3\n  xs[1] has length 4\n  help: slice or pad them along axis 0"),
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 1.0),
        ArgumentError,
        "scan at test_loops.py\n  got neither xs nor length\n  help: give length=n",
    ),
    (
        lambda: lax.fori_loop(0, 3.5, lambda i, x: x, 0.0),
        ArgumentError,
        (
            "fori_loop at test_loops.py\n  got i64*[] and f64*[]\n"
            "  help: cast them, int(n) or n.astype(int); while_loop takes other conditions"
        ),
    ),
    (
        lambda: lax.while_loop(3, lambda u: u, 1.0),
        ArgumentError,
        ("while_loop at test_loops.py\n  got int\n  help: pass the function itself, not the result of a call"),
    ),
]


@each(("call", "error", "text"), MISTAKES)
def test_mistakes_say_what_is_wrong_and_what_to_do(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    first, *rest = str(caught.value).splitlines()
    assert "\n".join([first[: first.index(".py:") + 3], *rest]) == text


@pytest.mark.parametrize(
    ("body", "start", "says"),
    [
        (lambda c: (c + 1).astype(int), 0.7, "enters as f64\\*\\[\\] but the body returns i64"),
        (lambda c: c.real, 0.1 + 1j, "enters as c128\\*\\[\\] but the body returns f64"),
        (lambda c: c > 1, 0.7, "enters as f64\\*\\[\\] but the body returns bool"),
    ],
)
def test_a_number_is_not_cut_to_what_the_body_returns(body: Any, start: Any, says: str) -> None:
    for loop in (
        lambda: lax.scan(lambda c, _: (body(c), None), start, None, length=2),
        lambda: lax.fori_loop(0, 2, lambda i, c: body(c), start),
        lambda: lax.while_loop(lambda c: abs(c) < 3, body, start),
    ):
        with pytest.raises(CarryTypeError, match=says):
            loop()


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_what_a_loop_hands_on_is_shared_by_the_lanes(way: Any) -> None:
    x, w = tnp.arange(3.0), tnp.ones(2)

    def repeated(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < c[1].sum() + 3, lambda c: (c[0] + c[1][0], c[1], c[2] + 1), (x, w, w))

    y, same, own = way(tracer.vmap(repeated, out_axes=(0, None, 0)))(x)
    assert (y.tolist(), same.tolist(), own[:, 0].tolist()) == ([5.0] * 3, [1.0, 1.0], [6.0, 5.0, 4.0])
    twice = tracer.vmap(tracer.vmap(repeated, out_axes=(0, None, 0)), out_axes=(0, None, 0))
    assert way(twice)(tnp.stack([x, x + 1]))[1].tolist() == [1.0, 1.0]
    counted = tracer.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: (c[0] + 1, c[1]), (0.0, w)), out_axes=(0, None))
    assert way(counted)(tnp.arange(3))[1].tolist() == [1.0, 1.0]
    scanned = tracer.vmap(
        lambda x: lax.scan(lambda c, y: ((c[0] + y, c[1]), (c[1], y)), (x, w), w), out_axes=((0, None), None)
    )
    (_, same), (rows, ys) = way(scanned)(x)
    assert (same.tolist(), rows.tolist(), ys.tolist()) == ([1.0, 1.0], [[1.0, 1.0]] * 2, [1.0, 1.0])
    slope = way(tracer.grad(lambda w: tracer.vmap(lambda x: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * c[2], c[2]), (x, 1.0, w))[1])(x).sum()))  # fmt: skip
    assert float(slope(2.0)) == pytest.approx(5 * 2.0**4 + 4 * 2.0**3 + 3 * 2.0**2)


@pytest.mark.parametrize("unroll", [0, True, 7])
def test_a_scan_that_unrolls_all_its_steps_has_no_loop(unroll: Any) -> None:
    def total(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=unroll)

    xs = tnp.arange(4.0)
    assert float(tracer.jit(total)(xs)[0]) == 6.0
    assert "for " not in str(tracer.jit(total).lower(xs).loops())
    assert total(xs[:0])[1].shape == (0,)
    with pytest.raises(ArgumentError, match="unroll is a number of steps, or 0 or True for all\n  got -1"):
        lax.scan(lambda c, x: (c + x, c), 0.0, xs, unroll=-1)


def test_an_array_of_steps_must_be_concrete() -> None:
    def total(n: Any) -> Any:
        return lax.scan(lambda c, x: (c + x, None), 0.0, tnp.arange(4.0), unroll=n)[0]

    assert float(total(tnp.asarray(2))) == 6.0
    with pytest.raises(TracerIntegerError, match="unroll must be known while tracing"):
        tracer.jit(total)(2)
