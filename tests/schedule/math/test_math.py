"""Math functions as scalar operations: within 2 ulps everywhere, with C99's special values, in lanes and in scalars.

`python -m tools.measure_math` sweeps far more arguments and writes docs/math-accuracy.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.grids import covering
from tests.schedule.math.math_reference import (
    ARRAY_REFERENCES,
    SCIPY_REFERENCES,
    evaluate,
    every_float32,
    kernel_module,
    precise_errors,
    samples,
    ulp_errors,
)
from tracer.ir.dtypes import BF16, F16, F32, F64, DType
from tracer.ir.loop import Block, Compute, For, If, Module, Register
from tracer.ir.loop.check import check_module
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.schedule.math import expand_math
from tracer.schedule.math.legalise import EXPANSIONS

LIMIT = 2.0  # ulps
INF, NAN = math.inf, math.nan
WITH_ROOTS = (ScalarOp.LGAMMA, ScalarOp.DIGAMMA)  # bounded absolutely beside their roots
names = [op.label for op in MATH_FUNCTIONS]


@pytest.mark.parametrize(
    ("op", "lanes", "dtype"), covering(MATH_FUNCTIONS, [0, 16], [F16, BF16, F32, F64], least=60), ids=str
)
def test_expansions_are_well_formed_and_leave_no_math_function(op: ScalarOp, lanes: int, dtype: DType) -> None:
    module = expand_math(kernel_module(op, dtype, 16, lanes=lanes))
    check_module(module)
    loop = module.functions[0].body.statements[0]
    assert isinstance(loop, For)
    assert not any(isinstance(s, Compute) and s.op in EXPANSIONS for s in loop.body.statements)


def test_every_math_function_has_an_expansion() -> None:
    assert set(EXPANSIONS) == set(MATH_FUNCTIONS)


def test_a_module_without_math_is_returned_as_it_is() -> None:
    module = kernel_module(ScalarOp.SQRT, F32, 16)
    assert expand_math(module) is module
    expanded = expand_math(kernel_module(ScalarOp.SIN, F64, 16))
    assert expand_math(expanded) is expanded


def test_equal_functions_of_one_value_are_computed_once() -> None:
    module = kernel_module(ScalarOp.SINH, F32, 16)
    loop = module.functions[0].body.statements[0]
    assert isinstance(loop, For)
    alone = len(_statements(expand_math(module)))
    x = next(s for s in loop.body.statements if isinstance(s, Compute)).operands[0]
    twice = expand_math(_with_compute(module, ScalarOp.SINH, x))
    check_module(twice)
    assert len(_statements(twice)) == alone + 1  # a copy
    shared = len(_statements(expand_math(_with_compute(module, ScalarOp.COSH, x))))
    assert shared < alone + len(_statements(expand_math(kernel_module(ScalarOp.COSH, F32, 16)))) - 15


@pytest.mark.parametrize("op", [*ARRAY_REFERENCES, *SCIPY_REFERENCES], ids=lambda op: op.label)
def test_f32_results_are_within_two_ulps(op: ScalarOp) -> None:
    arguments = samples(op, F32, 40_000)
    if len(arguments) == 1:
        arguments = (np.concatenate([arguments[0], every_float32(1 << 16)]),)
    reference = {**ARRAY_REFERENCES, **SCIPY_REFERENCES}[op]
    with np.errstate(all="ignore"):
        exact = reference(*(a.astype(np.float64) for a in arguments))
    if op is ScalarOp.DIGAMMA:  # SciPy has -inf at 0 and loses digits at large negative arguments
        exact = np.where(arguments[0] == 0, NAN, exact)
        arguments, exact = (arguments[0][arguments[0] > -1e4],), exact[arguments[0] > -1e4]
    errors = ulp_errors(evaluate(op, *arguments), exact)
    if op in WITH_ROOTS:  # the reference itself is only that good
        errors = np.where(np.abs(exact) < 1e-3, 0, errors)
    worst = int(np.argmax(errors))
    assert errors[worst] <= LIMIT, f"{op.label}{tuple(float(a[worst]) for a in arguments)}"


# in extended precision, where the platform has it; the others by mpmath below
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than f64")
@pytest.mark.parametrize("op", ARRAY_REFERENCES, ids=lambda op: op.label)
def test_f64_results_are_within_two_ulps(op: ScalarOp) -> None:
    arguments = samples(op, F64, 40_000)
    with np.errstate(all="ignore"):
        exact = ARRAY_REFERENCES[op](*(a.astype(np.longdouble) for a in arguments))
    errors = ulp_errors(evaluate(op, *arguments), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= LIMIT, f"{op.label}{tuple(float(a[worst]) for a in arguments)}"


@pytest.mark.parametrize("op", MATH_FUNCTIONS, ids=names)
def test_f64_results_are_within_two_ulps_of_mpmath(op: ScalarOp) -> None:
    arguments = samples(op, F64, 240, seed=1)
    size = np.abs(arguments[0])
    # mpmath takes its time far out
    within = {ScalarOp.ERFC: size < 30, ScalarOp.LOGISTIC: size < 1000, ScalarOp.LGAMMA: size < 1e6}.get(op, size > 0)
    if op in WITH_ROOTS:
        within &= (arguments[0] > 0) & (np.abs(arguments[0] - 1.4616321) > 1e-3)
        within &= (np.abs(arguments[0] - 1) > 1e-3) & (np.abs(arguments[0] - 2) > 1e-3)
    if op in (ScalarOp.EXP, ScalarOp.EXP2, ScalarOp.EXPM1, ScalarOp.SINH, ScalarOp.COSH, ScalarOp.TANH):
        within &= size < 2000
    arguments = tuple(a[within] for a in arguments)
    errors = precise_errors(op, evaluate(op, *arguments), *arguments)
    assert np.count_nonzero(np.isfinite(errors)) > 30
    worst = int(np.nanargmax(errors))
    assert errors[worst] <= LIMIT, f"{op.label}{tuple(float(a[worst]) for a in arguments)}"


@pytest.mark.parametrize("op", WITH_ROOTS, ids=lambda op: op.label)
def test_gamma_functions_beside_their_roots_have_an_absolute_bound(op: ScalarOp) -> None:
    rng = np.random.default_rng(0)
    roots = np.array([-2.4570247382208006, -0.5040830082644554, 1.4616321449683622])
    x = np.concatenate([rng.uniform(-12, 0, 300), roots])
    got = evaluate(op, x)
    for argument, y in zip(x, got, strict=True):
        with mpmath.workprec(160):
            a = mpmath.mpf(float(argument))
            if op is ScalarOp.LGAMMA:
                exact, scale = mpmath.re(mpmath.loggamma(a)), max(1, abs(mpmath.re(mpmath.loggamma(-a))))
            else:
                terms = abs(mpmath.digamma(1 - a)), abs(mpmath.pi * mpmath.cot(mpmath.pi * a))
                exact, scale = mpmath.digamma(a), max(1, *terms)
            assert abs(mpmath.mpf(float(y)) - exact) <= scale * 2.0**-50


SPECIAL_VALUES: dict[ScalarOp, tuple[tuple[float, ...], ...]] = {
    ScalarOp.EXP: ((0.0, 1.0), (-INF, 0.0), (INF, INF), (1e+30, INF)),
    ScalarOp.EXP2: ((-INF, 0.0), (10.0, 1024.0), (-3.0, 0.125)),
    ScalarOp.EXPM1: ((-0.0, -0.0), (-INF, -1.0), (INF, INF)),
    ScalarOp.LOG: ((0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)),
    ScalarOp.LOG2: ((0.0, -INF), (8.0, 3.0), (-2.0, NAN), (0.25, -2.0), (INF, INF)),
    ScalarOp.LOG1P: ((-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (INF, INF), (-INF, NAN)),
    ScalarOp.SIN: ((-0.0, -0.0), (0.0, 0.0), (INF, NAN), (-INF, NAN)),
    ScalarOp.COS: ((0.0, 1.0), (-0.0, 1.0), (INF, NAN)),
    ScalarOp.TAN: ((-0.0, -0.0), (0.0, 0.0), (-INF, NAN)),
    ScalarOp.ASIN: ((-0.0, -0.0), (1.5, NAN), (-INF, NAN)),
    ScalarOp.ACOS: ((1.0, 0.0), (-1.5, NAN), (INF, NAN)),
    ScalarOp.ATAN: ((-0.0, -0.0),),
    ScalarOp.ATAN2: (
        (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (1.0, INF, 0.0),
        (-1.0, INF, -0.0), (NAN, 1.0, NAN), (INF, NAN, NAN), (NAN, INF, NAN),
    ),
    ScalarOp.SINH: ((-0.0, -0.0), (-INF, -INF)),
    ScalarOp.COSH: ((-INF, INF), (0.0, 1.0)),
    ScalarOp.TANH: ((-0.0, -0.0), (-INF, -1.0), (50.0, 1.0)),
    ScalarOp.ASINH: ((-0.0, -0.0), (-INF, -INF)),
    ScalarOp.ACOSH: ((1.0, 0.0), (0.5, NAN), (-3.0, NAN), (INF, INF), (-INF, NAN)),
    ScalarOp.ATANH: ((-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (-INF, NAN)),
    ScalarOp.LOGISTIC: ((0.0, 0.5), (-INF, 0.0), (INF, 1.0), (1e+30, 1.0), (-1e+30, 0.0)),
    ScalarOp.CBRT: ((-0.0, -0.0), (-27.0, -3.0), (-INF, -INF)),
    ScalarOp.RSQRT: ((0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN)),
    ScalarOp.HYPOT: ((INF, NAN, INF), (NAN, -INF, INF), (-0.0, -0.0, 0.0), (3.0, -4.0, 5.0), (NAN, 1.0, NAN)),
    ScalarOp.ERF: ((-0.0, -0.0), (INF, 1.0), (-INF, -1.0)),
    ScalarOp.ERFC: ((INF, 0.0), (-INF, 2.0), (0.0, 1.0), (1e+30, 0.0)),
    ScalarOp.ERF_INV: ((-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)),
    ScalarOp.LGAMMA: (
        (0.0, INF), (-0.0, INF), (-3.0, INF), (1.0, 0.0), (2.0, 0.0), (INF, INF), (-INF, INF), (-1e+30, INF),
    ),
    ScalarOp.DIGAMMA: ((0.0, NAN), (-2.0, NAN), (INF, INF), (-INF, NAN)),
    # C99 F.9.4.4
    ScalarOp.POW: (
        (0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (-0.0, -2.5, INF), (-0.0, -INF, INF),
        (-0.0, 3.0, -0.0), (0.0, 3.0, 0.0), (-0.0, 2.0, 0.0), (-0.0, 2.5, 0.0), (0.0, 0.0, 1.0),
        (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0), (NAN, 1.0, NAN), (2.0, NAN, NAN), (-1.0, NAN, NAN), (-2.0, 0.5, NAN),
        (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (0.5, INF, 0.0), (0.5, -INF, INF), (-0.5, INF, 0.0),
        (2.0, INF, INF), (-2.0, -INF, 0.0), (-2.0, INF, INF), (INF, 2.0, INF), (INF, -2.0, 0.0),
        (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 0.5, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0),
        (-INF, -0.5, 0.0), (NAN, NAN, NAN), (2.0, -1.0, 0.5), (-3.0, 1e+30, INF), (0.0, NAN, NAN),
        (-0.0, INF, 0.0), (3.0, 2.0, 9.0),
    ),
}  # fmt: skip
"""Arguments, and the result that they must give."""


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("op", MATH_FUNCTIONS, ids=names)
def test_special_values(op: ScalarOp, dtype: DType) -> None:
    rows = (*SPECIAL_VALUES[op], (NAN,) * (op.signature.arity + 1))
    *arguments, expected = (np.array(column, dtype) for column in zip(*rows, strict=True))
    got = evaluate(op, *arguments)
    assert [_text(v) for v in got] == [_text(v) for v in expected], rows


ODD = (
    ScalarOp.EXPM1, ScalarOp.LOG1P, ScalarOp.SIN, ScalarOp.TAN, ScalarOp.ASIN, ScalarOp.ATAN, ScalarOp.SINH,
    ScalarOp.TANH, ScalarOp.ASINH, ScalarOp.ATANH,
)  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("op", ODD, ids=lambda op: op.label)
def test_functions_that_begin_as_x_keep_denormals(op: ScalarOp, dtype: DType) -> None:
    least, tiny = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny
    x = np.array([least, -least, 3 * least, tiny / 2, tiny, -tiny * 1.5], dtype)
    assert evaluate(op, x).tolist() == x.tolist()


def test_atan2_at_the_corners_of_the_plane() -> None:
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF]
    y, x = (a.ravel() for a in np.meshgrid(values, values))
    for dtype in (F32, F64):
        exact = np.arctan2(y, x)
        got = evaluate(ScalarOp.ATAN2, y.astype(dtype), x.astype(dtype))
        assert np.array_equal(got, exact.astype(dtype))
        assert np.array_equal(np.signbit(got), np.signbit(exact))


def test_trigonometry_of_huge_arguments() -> None:
    # the last is the f64 nearest to a multiple of pi/2 (Muller, Elementary Functions, chapter 11)
    x = np.array([1e9, 1e15, 2.0**40, 2.0**40 * 1.0000001, 1e22, 1e100, 1e300, 1.7e308, 6381956970095103.0 * 2.0**797])
    x = np.concatenate([x, -x])
    for op in (ScalarOp.SIN, ScalarOp.COS, ScalarOp.TAN):
        with mpmath.workprec(1200):
            function = {ScalarOp.SIN: mpmath.sin, ScalarOp.COS: mpmath.cos, ScalarOp.TAN: mpmath.tan}[op]
            exact = np.array([float(function(mpmath.mpf(float(v)))) for v in x])
        got = evaluate(op, x)
        assert np.max(np.abs(got - exact) / np.spacing(np.abs(exact))) <= LIMIT


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("op", [ScalarOp.SIN, ScalarOp.COS, ScalarOp.TAN], ids=lambda op: op.label)
def test_scalar_branches_give_the_bits_of_lanes(op: ScalarOp, dtype: DType) -> None:
    x = samples(op, dtype, 4000)[0]
    loop = expand_math(kernel_module(op, dtype, 16, lanes=0)).functions[0].body.statements[0]
    assert isinstance(loop, For)
    assert sum(isinstance(s, If) for s in loop.body.statements) == 1
    scalar, lanes = evaluate(op, x, lanes=0), evaluate(op, x, lanes=16)
    assert np.array_equal(scalar, lanes, equal_nan=True)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("op", [ScalarOp.TANH, ScalarOp.ERF, ScalarOp.ERFC, ScalarOp.RSQRT], ids=lambda op: op.label)
def test_vectors_of_every_width_and_scalars_give_the_same_bits(op: ScalarOp, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([samples(op, dtype, 2000)[0], rng.uniform(-28, 28, 2001), rng.uniform(-1, 1, 2000)])
    x = x.astype(dtype)
    widest = evaluate(op, x, vector_bits=512)
    for lanes, bits in ((16, 256), (16, 128), (4, 512), (0, None)):
        assert np.array_equal(evaluate(op, x, lanes=lanes, vector_bits=bits), widest, equal_nan=True)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_sin_and_cos_never_leave_the_unit_interval(dtype: DType) -> None:
    near = np.arange(-200, 200, dtype=np.float64) * 1e-9
    peaks = np.concatenate([(k * np.pi / 2) + near for k in range(-9, 10)] + [near]).astype(dtype)
    for op in (ScalarOp.SIN, ScalarOp.COS):
        assert np.max(np.abs(evaluate(op, peaks))) <= 1


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("op", [ScalarOp.EXP, ScalarOp.TANH, ScalarOp.LOG, ScalarOp.SIN], ids=lambda op: op.label)
def test_short_floats_are_evaluated_in_f32_and_rounded(op: ScalarOp, dtype: DType) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    got = evaluate(op, x)
    with np.errstate(all="ignore"):
        expected = evaluate(op, x.astype(np.float32)).astype(dtype)
    assert np.array_equal(got.astype(np.float32), expected.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_exp2_is_exact_at_integers_and_log2_at_powers_of_two(dtype: DType) -> None:
    least = int(np.log2(np.finfo(dtype).smallest_subnormal))
    n = np.arange(least, np.finfo(dtype).maxexp, dtype=np.float64)
    powers = (2.0**n).astype(dtype)
    assert evaluate(ScalarOp.EXP2, n.astype(dtype)).tolist() == powers.tolist()
    assert evaluate(ScalarOp.LOG2, powers).tolist() == n.tolist()


def _text(value: Any) -> str:
    return repr(float(value)) if value == value else "nan"


def _statements(module: Module) -> Any:
    loop = module.functions[0].body.statements[0]
    assert isinstance(loop, For)
    return loop.body.statements


def _with_compute(module: Module, op: ScalarOp, x: Any) -> Module:
    """The module with one more function of x in its loop, its result unused."""
    function = module.functions[0]
    loop = function.body.statements[0]
    assert isinstance(loop, For)
    body = loop.body.statements
    extended = Block((*body[:-1], Compute(Register(x.dtype), op, (x,)), body[-1]))
    return Module((replace(function, body=Block((replace(loop, body=extended),))),), "main")
