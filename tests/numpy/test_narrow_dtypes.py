"""The narrow dtypes: conversions as JAX's stored table has them, movement, and operations in a wider dtype."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.numpy.narrow_cases import FLOATS, INTEGERS, NAMES, samples, values
from tracer import lax
from tracer.errors import DTypeError
from tracer.ir import dtypes

TABLE: dict[str, Any] = json.loads((Path(__file__).parent / "narrow_conversions.json").read_text(encoding="utf-8"))
STORED = [name for name in NAMES if TABLE[name] is not None]
WITHOUT_ZERO = "float8_e8m0fnu"


def bits(x: Any) -> Any:
    """The bytes of the elements, all NaNs alike."""
    x = np.asarray(x)
    wide = x.astype(np.float32)
    return np.where(np.isnan(wide), 999, x.view(np.uint8).astype(int))


def some(name: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    """Values of the dtype in an order of no meaning, NaN not among them."""
    every = values(np.dtype(name))
    every = every[np.isfinite(every.astype(np.float32))]
    return np.random.default_rng(len(name)).choice(every, shape)


# Conversions


@pytest.mark.parametrize("name", STORED)
def test_conversions_are_jaxs_eagerly_and_compiled(name: str) -> None:
    dtype = np.dtype(name)
    wide = np.frombuffer(bytes.fromhex(TABLE[name]["to f32"]), np.float32)
    back = np.frombuffer(bytes.fromhex(TABLE[name]["of f32"]), np.uint8).view(dtype)
    for run in (lambda f, x: f(x), lambda f, x: tracer.jit(f)(x)):
        np.testing.assert_array_equal(run(lambda x: x.astype("float32"), tnp.asarray(values(dtype))), wide)
        found = run(lambda x: x.astype(dtype), tnp.asarray(samples(dtype)))
        np.testing.assert_array_equal(bits(found), bits(back))


def test_what_jax_does_not_compile_is_ml_dtypes() -> None:
    assert set(NAMES) - set(STORED) == {"float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"}
    for name in ("float6_e2m3fn", "float6_e3m2fn"):
        given = samples(np.dtype(name))
        found = tracer.jit(lambda x, name=name: x.astype(name))(given)
        given = np.where(np.isnan(given), np.float32(np.nan), given)
        np.testing.assert_array_equal(bits(found), bits(given.astype(name)))
    assert tnp.asarray([0, 1, 2, 3]).astype("int1").tolist() == [0, -1, 0, -1]
    assert tnp.asarray([0.0, 0.9, 1.0, 7.0, -3.0, np.nan]).astype("int1").tolist() == [0, 0, 0, 0, -1, 0]
    assert tnp.asarray([0.0, 0.9, 1.0, 7.0, -3.0, np.nan]).astype("uint1").tolist() == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_every_value_goes_to_every_dtype_compiled_as_eagerly(name: str) -> None:
    x = tnp.asarray(values(np.dtype(name)))
    compiled = tracer.jit(lambda x: [x.astype(dtype) for dtype in dtypes.ALL])(x)
    for dtype, found in zip(dtypes.ALL, compiled, strict=True):
        expected = x.astype(dtype)
        assert found.dtype == expected.dtype == dtype
        if dtypes.is_narrow(dtype):
            np.testing.assert_array_equal(bits(found), bits(expected))
        else:
            pair = (np.asarray(y).astype(complex) for y in (found, expected))  # bfloat16 has its own NaN
            np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize(
    "source", [d for d in dtypes.ALL if not dtypes.is_narrow(d) and not dtypes.is_complex(d)], ids=str
)
def test_every_dtype_goes_to_the_narrow_ones_compiled_as_eagerly(source: Any) -> None:
    random = np.random.default_rng(0)
    given = random.standard_normal(999) * 10.0 ** random.integers(-6, 6, 999)
    if not dtypes.is_float(source):
        low, high = (0, 1) if dtypes.is_bool(source) else (dtypes.iinfo(source).min, dtypes.iinfo(source).max)
        given = np.clip(given, float(low), float(high) * 0.99)
    with np.errstate(all="ignore"):
        x = tnp.asarray(given.astype(source))
    compiled = tracer.jit(lambda x: [x.astype(name) for name in NAMES])(x)
    for name, found in zip(NAMES, compiled, strict=True):
        np.testing.assert_array_equal(bits(found), bits(x.astype(name)), err_msg=name)


def test_doubles_are_rounded_once() -> None:
    above = 1 + 2.0**-4 + 2.0**-40  # f32 would drop the last bit, and round the tie to even
    for x in (tnp.asarray([above]), tnp.asarray([17 * 2**40 + 1])):
        assert np.asarray(x.astype("float8_e4m3fn")).view(np.uint8) in (0x39, 0x7F)
        assert np.asarray(tracer.jit(lambda x: x.astype("float8_e4m3fn"))(x)).view(np.uint8) in (0x39, 0x7F)
    assert float(tnp.asarray(above).astype("float8_e4m3fn")) == 1.125


# Movement

MOVES = {
    "index": (lambda p, x: x[1], lambda x: x[1]),
    "slice": (lambda p, x: x[:, ::-1], lambda x: x[:, ::-1]),
    "take": (lambda p, x: x[:, np.array([2, 0, 2])], lambda x: x[:, [2, 0, 2]]),
    "transpose": (lambda p, x: x.T, lambda x: x.T),
    "reshape": (lambda p, x: p.reshape(x, (3, 2)), lambda x: x.reshape(3, 2)),
    "concatenate": (lambda p, x: p.concatenate([x, x]), lambda x: np.concatenate([x, x])),
    "where": (lambda p, x: p.where(np.eye(2, 3) > 0, x, x[::-1]), lambda x: np.where(np.eye(2, 3) > 0, x, x[::-1])),
    "repeat": (lambda p, x: p.repeat(x, 2, 0), lambda x: np.repeat(x, 2, 0)),
    "roll": (lambda p, x: p.roll(x, 1), lambda x: np.roll(x, 1)),
    "broadcast": (lambda p, x: p.broadcast_to(x, (2, 2, 3)), lambda x: np.broadcast_to(x, (2, 2, 3))),
    "pad": (lambda p, x: p.pad(x, 1, mode="edge"), lambda x: np.pad(x, 1, mode="edge")),
    "set": (lambda p, x: x.at[0, np.array([1, 2])].set(x[1, :2]), lambda x: np.stack([[x[0, 0], *x[1, :2]], x[1]])),
    "dynamic slice": (lambda p, x: lax.dynamic_slice(x, (1, 1), (1, 2)), lambda x: x[1:, 1:]),
    "cond": (lambda p, x: lax.cond(x.shape[0] == 2, lambda x: x, lambda x: x[::-1], x), lambda x: x),
    "scan": (lambda p, x: lax.scan(lambda c, row: (row, c), x[1], x)[1], lambda x: x[::-1]),
    "sort": (lambda p, x: p.sort(x, 1), lambda x: np.sort(x.astype(np.float32))),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_elements_are_moved_eagerly_compiled_and_in_batches(name: str) -> None:
    x = some(name)
    batch = np.stack([x, x[::-1]])
    compiled = tracer.jit(lambda x: [move(tnp, x) for move, _ in MOVES.values()])(x)
    mapped = tracer.vmap(lambda x: [move(tnp, x) for move, _ in MOVES.values()])(batch)
    for (label, (move, expected)), fast, lanes in zip(MOVES.items(), compiled, mapped, strict=True):
        wanted = expected(x).astype(x.dtype)
        for found in (move(tnp, tnp.asarray(x)), fast, lanes[0]):
            assert found.dtype == x.dtype, label
            np.testing.assert_array_equal(bits(found), bits(wanted), err_msg=label)


@each("name", NAMES)
def test_arrays_are_made_shown_pickled_and_read(name: str) -> None:
    x = tnp.ones((2,), name) if name != "int1" else -tnp.ones((2,), "int8").astype(name)
    assert x.dtype == getattr(tnp, name) == np.dtype(name)
    short = dtypes.short_name(x.dtype)
    assert repr(x) == f"Array([{x.tolist()[0]:g}, {x.tolist()[0]:g}], {short})"
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype == x.dtype
    assert again.tolist() == x.tolist()
    assert np.asarray(x).dtype == x.dtype
    assert x.nbytes == 2
    one = tnp.full((), float(x[0]), name)
    assert one.dtype == x.dtype
    assert float(one) == float(x[0])
    program = str(tracer.jit(lambda x: x.astype("float32") + 1).lower(x).program())
    assert f"{short}[2]" in program


def test_limits() -> None:
    assert (tnp.iinfo("int4").min, tnp.iinfo("int4").max, tnp.iinfo("uint2").max) == (-8, 7, 3)
    assert (tnp.finfo("float8_e4m3b11fnuz").max, tnp.finfo("float4_e2m1fn").max) == (30.0, 6.0)
    assert tnp.finfo("float4_e2m1fn").bits == 4
    assert tnp.issubdtype(tnp.int4, tnp.signedinteger)
    assert not tnp.issubdtype(tnp.uint4, tnp.signedinteger)
    assert tnp.issubdtype(tnp.float8_e8m0fnu, tnp.floating)
    assert tnp.isdtype(tnp.int2, "signed integer")


# Operations


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_after_every_operation(name: str) -> None:
    x, y = some(name, (50,)), some(name, (50,))[::-1]
    wide = dtypes.wide_dtype(x.dtype)
    a, b = x.astype(wide), y.astype(wide)
    calls = [
        lambda p, x, y: x + y, lambda p, x, y: x - y, lambda p, x, y: x * y, lambda p, x, y: -x,
        lambda p, x, y: p.maximum(x, y), lambda p, x, y: x & y, lambda p, x, y: ~x, lambda p, x, y: p.cumsum(x),
        lambda p, x, y: p.square(x) * y, lambda p, x, y: x ^ y,
    ]  # fmt: skip
    compiled = tracer.jit(lambda x, y: [call(tnp, x, y) for call in calls])(x, y)
    for call, fast in zip(calls, compiled, strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(call(np, a, b)).astype(wide).astype(x.dtype)
        eager = call(tnp, tnp.asarray(x), tnp.asarray(y))
        assert eager.dtype == fast.dtype == x.dtype
        np.testing.assert_array_equal(bits(eager), bits(expected))
        np.testing.assert_array_equal(bits(fast), bits(expected))
    np.testing.assert_array_equal(np.asarray(tnp.asarray(x) < tnp.asarray(y)), a < b)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_compute_in_f32_and_round_after_every_operation(name: str) -> None:
    x, y = some(name, (50,)), some(name, (50,))[::-1]
    a, b = x.astype(np.float32), y.astype(np.float32)
    calls = [
        lambda p, x, y: x + y, lambda p, x, y: x * y, lambda p, x, y: x / y, lambda p, x, y: p.maximum(x, y),
        lambda p, x, y: p.sqrt(p.abs(x)), lambda p, x, y: p.sum(x), lambda p, x, y: p.max(x), lambda p, x, y: x @ y,
        lambda p, x, y: x * 2.0,
    ]  # fmt: skip
    compiled = tracer.jit(lambda x, y: [call(tnp, x, y) for call in calls])(x, y)
    for i, (call, fast) in enumerate(zip(calls, compiled, strict=True)):
        with np.errstate(all="ignore"):
            exact = np.asarray(call(np, a, b), np.float32)
            if i == 4:
                exact = np.sqrt(np.abs(a).astype(name).astype(np.float32))
            exact = np.where(np.isnan(exact), np.float32(np.nan), exact)
        eager = call(tnp, tnp.asarray(x), tnp.asarray(y))
        assert eager.dtype == fast.dtype == x.dtype
        np.testing.assert_array_equal(bits(eager), bits(fast))
        if i not in (5, 7):  # whose sums are in another order
            np.testing.assert_array_equal(bits(eager), bits(exact.astype(name)), err_msg=str(i))


@pytest.mark.parametrize("name", [name for name in FLOATS if name != WITHOUT_ZERO])
def test_derivatives_pass_through(name: str) -> None:
    w, x = tnp.asarray([1.0, 2.0, -1.5], "float32"), tnp.asarray([0.5, 1.0, 1.5], name)

    def loss(w: Any) -> Any:
        return tnp.sum((w.astype(name) * x).astype("float32"))

    for gradient in (tracer.grad(loss), tracer.jit(tracer.grad(loss))):
        found = gradient(w)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(found), [0.5, 1.0, 1.5])
    squares = tracer.grad(lambda x: tnp.sum(x * x))(x)
    assert squares.dtype == np.dtype(name)
    np.testing.assert_array_equal(np.asarray(squares.astype("float32")), [1, 2, 3])
    total = tracer.grad(lambda x: lax.scan(lambda c, y: (c + y * y, y), x[0], x)[0].astype("float32"))(x)
    np.testing.assert_array_equal(np.asarray(total.astype("float32")), [2, 2, 3])


def test_operations_that_need_another_dtype_say_so() -> None:
    x = tnp.asarray([1, 2], "int4")
    with pytest.raises(DTypeError, match="the operands have no common dtype\n  got i4 and i8"):
        x + tnp.ones(2, "int8")
    with pytest.raises(DTypeError, match=r"operands must have equal dtypes\n  got i4\[2\] and i8\[2\]"):
        lax.mul(x, tnp.ones(2, "int8"))
    with pytest.raises(DTypeError, match=r"bitwise_count at .* does not compute on i4, which is for storage"):
        tnp.bitwise_count(x)
    with pytest.raises(DTypeError, match="dtypes must be integers or floats of whole bytes"):
        x.view("uint8")
    with pytest.raises(DTypeError, match=r"shift_left at .* takes integers\n  got f8e5m2\[2\]"):
        tnp.ones(2, "float8_e5m2") << 1
    with pytest.raises(DTypeError, match="the integer 9 does not fit in i4"):
        x + 9


def test_products_accumulate_in_the_dtype_that_is_asked_for() -> None:
    x = tnp.full((64, 64), 3.0, "float8_e4m3fn")
    y = lax.dot(x, x, preferred_element_type=np.dtype("float32"))
    assert y.dtype == np.float32
    assert float(y[0, 0]) == 576.0
    assert np.isnan(float((x @ x)[0, 0]))  # which does not fit
