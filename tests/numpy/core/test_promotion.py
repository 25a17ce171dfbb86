"""Promotion of all pairs of dtypes and Python numbers, eagerly and compiled, against the table made from JAX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import DTypeError
from tracer.ir import dtypes

TABLE: dict[str, dict[str, str | None]] = json.loads(
    (Path(__file__).parents[2] / "ir" / "promotion_table.json").read_text(encoding="utf-8")
)
STRONG = [name for name in TABLE if not name.endswith("*")]
NUMBERS: dict[str, Any] = {"bool": True, "i64*": 1, "f64*": 1.0, "c128*": 1j}

WRAPPING = (dtypes.I1, dtypes.I2, dtypes.U1)  # 1 + 1 is -2 or 0


def described(x: Any) -> str:
    return dtypes.short_name(x.dtype) + "*" * (x.weak_type and x.dtype != bool)


def array(name: str) -> Any:
    return (tnp.zeros if name == "i1" else tnp.ones)(2, dtypes.BY_SHORT_NAME[name])


def operands(name: str) -> list[tuple[Any, str]]:
    """What a dtype meets: arrays of every dtype, and Python's numbers; with the results that JAX has for them."""
    row = TABLE[name]
    arrays = [(array(other), row[other]) for other in STRONG]
    numbers = NUMBERS | {"i64*": 0} if name == "i1" else NUMBERS  # which has no 1
    return [*arrays, *((number, row[other]) for other, number in numbers.items())]


@pytest.mark.parametrize("name", STRONG)
def test_sums_have_jaxs_dtypes_eagerly_and_compiled(name: str) -> None:
    x = array(name)
    for y, expected in operands(name):
        if expected is None:
            with pytest.raises(DTypeError, match="no common dtype"):
                x + y
            with pytest.raises(DTypeError, match="no common dtype"):
                tracer.jit(lambda x, y: x + y)(x, y)
    known = [(y, expected) for y, expected in operands(name) if expected is not None]

    def sums(x: Any, ys: Any) -> Any:
        return [x + y for y in ys], [y + x for y in ys]

    numbers = [y for y, _ in known if not isinstance(y, tracer.Array)]
    arrays = [y for y, _ in known if isinstance(y, tracer.Array)]
    expected = [e for _, e in known]
    for found in (
        sums(x, [*arrays, *numbers]),
        tracer.jit(lambda x, ys: sums(x, [*ys, *numbers]))(x, arrays),
    ):
        for side in found:
            assert [described(y) for y in side] == expected
            assert all((np.asarray(y).astype(complex).real >= 1).all() for y in side if y.dtype not in WRAPPING)


@each("name", STRONG)
def test_common_dtypes_of_pairs_are_those_of_sums(name: str) -> None:
    for other in STRONG:
        expected = TABLE[name][other]
        pair = dtypes.BY_SHORT_NAME[name], dtypes.BY_SHORT_NAME[other]
        if expected is None:
            with pytest.raises(DTypeError, match="no common dtype"):
                tnp.promote_types(*pair)
        else:
            assert tnp.promote_types(*pair) == dtypes.BY_SHORT_NAME[expected.rstrip("*")]
            assert tnp.result_type(*pair) == tnp.result_type(array(name), array(other))


@pytest.mark.parametrize("source", STRONG)
def test_casts_are_numpys_eagerly_and_compiled(source: str) -> None:
    values = np.array([0.0, 1.0, -1.5, 3.0, 200.0, np.nan, np.inf])
    dtype = dtypes.BY_SHORT_NAME[source]
    with np.errstate(all="ignore"):
        given = (values[:4] if dtypes.is_integer(dtype) or dtypes.is_bool(dtype) else values).astype(dtype)
        given = np.abs(given) if dtypes.is_unsigned(dtype) else given
    narrow = [dtypes.short_name(d) for d in dtypes.ALL if dtypes.is_narrow(d)]  # see test_narrow_dtypes
    targets = [
        t
        for t in STRONG
        if t not in narrow and not (dtypes.is_complex(dtype) and not dtypes.is_complex(dtypes.BY_SHORT_NAME[t]))
    ]
    compiled = tracer.jit(lambda x: [x.astype(dtypes.BY_SHORT_NAME[t]) for t in targets])(tnp.asarray(given))
    for target, fast in zip(targets, compiled, strict=True):
        wanted = dtypes.BY_SHORT_NAME[target]
        eager = np.asarray(tnp.asarray(given).astype(wanted))
        np.testing.assert_array_equal(eager.astype(complex), np.asarray(fast).astype(complex))
        if dtypes.is_integer(wanted) and dtypes.is_inexact(dtype):
            continue  # saturating, which the laws of the primitive hold
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(eager.astype(complex), given.astype(wanted).astype(complex), err_msg=target)


def test_weak_arrays_that_do_not_fit_are_refused_or_widened_at_every_call() -> None:
    x, fitting, large = tnp.asarray([44], dtype="int8"), tnp.asarray(44), tnp.asarray(300)
    for _ in range(2):
        assert tnp.isin(x, fitting).tolist() == [True]
        assert tnp.isin(x, large).tolist() == [False]
        assert tnp.concatenate((x, fitting[None])).tolist() == [44, 44]
        with pytest.raises(DTypeError, match=r"^concatenate at .*: the integer 300 does not fit in i8"):
            tnp.concatenate((x, large[None]))
