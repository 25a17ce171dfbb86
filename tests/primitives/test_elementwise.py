"""Elementwise primitives: types, references, derivatives, batching and expansions, all of them by one loop each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tests.primitives.elementwise_cases import CASES, DTYPES, NOT_IN_JAX, Case, operands, read_table
from tracer.ir.primitive import Compare, Composite, NoRule, Pointwise, Primitive
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, array_type
from tracer.primitives.base.reference import reference_outputs, run_reference
from tracer.primitives.catalogue import BY_NAME, ELEMENTWISE
from tracer.primitives.elementwise.comparison import select, select_n
from tracer.primitives.elementwise.special import polygamma
from tracer.trace.stage import stage
from tracer.trace.trace import bind_all
from tracer.transforms.batch import batch_forward
from tracer.transforms.jvp import jvp_program
from tracer.transforms.transpose import transpose_program

Array = np.ndarray[Any, Any]

JAX = read_table(Path(__file__).parent / "elementwise.npz")
AGREEMENT = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "f64": 1e-12, "c64": 1e-5, "c128": 1e-12}
SHORT = {dtype: short for short, dtype in DTYPES.items()}

# Where we mean something else than JAX gives: which values, and why.
DIFFERENCES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "integer_pow(-3) f16": (lambda x: np.abs(x) > 40, "JAX takes the reciprocal after x^3 overflowed in f16"),
    "exp2 bf16": (lambda x: x > 80, "JAX multiplies by log 2 in bf16"),
    "lgamma f16": (lambda x: np.abs(x - 1) < 0.01, "JAX errs by an absolute 5e-7 near the root"),
    "lgamma bf16": (lambda x: np.abs(x - 1) < 0.01, "as above"),
    "lgamma f32": (lambda x: np.abs(x - 1) < 0.01, "as above"),
    "lgamma f64": (lambda x: np.abs(x - 1) < 0.01, "as above"),
    "convert_element_type(bool,False) c64": (lambda x: x.real == 0, "1j is true here, as in NumPy"),
    "convert_element_type(bool,False) c128": (lambda x: x.real == 0, "1j is true here, as in NumPy"),
}

EVERY = [(case, short) for case in CASES for short in case.dtypes]
OF_JAX = [(case, short) for case, short in EVERY if case.name not in NOT_IN_JAX]


def name_of(value: object) -> str:
    return value.label if isinstance(value, Case) else str(value)


def reference(case: Case, xs: Sequence[Array]) -> Array:
    (value,) = reference_outputs(BY_NAME[case.name], xs, case.params)
    return np.asarray(value)


def program_of(function: Callable[..., Any], xs: Sequence[Array]) -> Program:
    staged = stage(lambda inputs: [function(*inputs)], [array_type(x.dtype, x.shape) for x in xs])
    assert not staged.constants
    return staged.program


def program_for(case: Case, xs: Sequence[Array]) -> Program:
    return program_of(lambda *inputs: bind_all(BY_NAME[case.name], inputs, case.params)[0], xs)


def same(got: Array, expected: Array) -> bool:
    """Equal bits, but for the payloads of NaN."""
    assert got.dtype == expected.dtype
    return np.array_equal(got, expected, equal_nan=got.dtype.kind in "fVc") and (
        got.dtype.kind not in "fV" or bool(np.all(np.signbit(got) == np.signbit(expected), where=got == got))
    )


# References


def test_every_elementwise_primitive_that_is_no_scalar_operation_has_a_case() -> None:
    elsewhere = {"select_n", "polygamma"}
    listed = {case.name for case in CASES} | elsewhere
    assert listed <= {p.name for p in ELEMENTWISE}
    assert all(isinstance(p.lower, Pointwise | Compare) for p in ELEMENTWISE if p.name not in listed)


@each("case", CASES, ids=name_of)
def test_a_reference_returns_the_inferred_type(case: Case) -> None:
    for short in case.dtypes:
        flat = operands(case, DTYPES[short])
        for shape in ((), (0,), (1,), (3,), (2, 3)):
            xs = [np.resize(x, shape).astype(x.dtype) for x in flat]
            inferred = BY_NAME[case.name].infer(*(array_type(x.dtype, x.shape) for x in xs), **case.params)
            got = reference(case, xs)
            assert isinstance(inferred, ArrayType)
            assert (got.dtype, got.shape) == (inferred.dtype, inferred.shape), (short, shape)


@each(("case", "short"), OF_JAX, ids=name_of)
def test_a_reference_agrees_with_jax(case: Case, short: str) -> None:
    xs = operands(case, DTYPES[short])
    got, expected = reference(case, xs), JAX[f"{case.label} {short}"]
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    label = f"{case.label} {short}"
    if label in DIFFERENCES:
        kept = ~DIFFERENCES[label][0](xs[0].astype(np.float64) if xs[0].dtype.kind != "c" else xs[0])
        assert not kept.all()
        got, expected = got[kept], expected[kept]
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    tolerance = AGREEMENT[SHORT[got.dtype]]
    if got.dtype.kind == "c":
        np.testing.assert_allclose(got, expected, rtol=tolerance)
        return
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=tolerance)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


@each("case", [c for c in CASES if {"f16", "bf16", "f32"} <= {*c.dtypes}], ids=name_of)
def test_short_floats_compute_in_f32_and_round_once(case: Case) -> None:
    if case.name in ("nextafter", "reduce_precision", "convert_element_type"):
        return
    for short in ("f16", "bf16"):
        xs = operands(case, DTYPES[short])
        wide = reference(case, [x.astype(np.float32) if x.dtype == DTYPES[short] else x for x in xs])
        got = reference(case, xs)
        with np.errstate(all="ignore"):
            assert same(got, wide.astype(got.dtype)), short


# Expansions


def has_expansion(case: Case) -> bool:
    return isinstance(BY_NAME[case.name].lower, Composite)


@each(("case", "short"), [(c, s) for c, s in EVERY if has_expansion(c)], ids=name_of)
def test_an_expansion_computes_what_the_reference_does(case: Case, short: str) -> None:
    lower = BY_NAME[case.name].lower
    assert isinstance(lower, Composite)
    xs = operands(case, DTYPES[short])
    program = program_of(lambda *inputs: lower.expand(*inputs, **case.params), xs)
    assert case.name not in {equation.primitive.name for equation in program.equations}
    (got,) = run_reference(program, xs)
    expected = reference(case, xs)
    if got.dtype.kind == "c":
        np.testing.assert_array_equal(got, expected)
    else:
        assert same(got, expected)


# Derivatives


def smooth_operands(case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> list[Array]:
    """Points inside the domain, away from jumps and kinks."""
    low, high = {"acosh": (1.2, 4), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
                 "erf_inv": (-0.9, 0.9), "tan": (-1.2, 1.2), "lgamma": (0.3, 5), "digamma": (0.3, 5)}.get(
        case.name, (0.2, 3)
    )  # fmt: skip
    points = [np.linspace(low, high, 7)[rng.permutation(7)] + 0.0137 * (i + 1) for i in range(case.arity)]
    if dtype.kind == "c":
        points = [x + 1j * rng.uniform(0.2, 0.8, 7) for x in points]
    xs = [x.astype(dtype) for x in points]
    if case.bools:
        xs[0] = np.array([True, False, True, True, False, False, True])
    return xs


def differentiable(case: Case) -> bool:
    p = BY_NAME[case.name]
    rounds = case.params.get("new_dtype") in [DTYPES[s] for s in ("f16", "bf16", "f32", "c64")]
    return not isinstance(p.jvp, NoRule) and "jvp" not in p.laws and not rounds


@each(
    ("case", "short"),
    [(c, s) for c, s in EVERY if s in ("f64", "c128") and differentiable(c)],
    ids=name_of,
)
def test_a_jvp_is_the_finite_difference(case: Case, short: str, rng: np.random.Generator) -> None:
    xs = smooth_operands(case, DTYPES[short], rng)
    program = program_for(case, xs)
    active = tuple(x.dtype.kind in "fc" for x in xs)
    derived = jvp_program(program, active)
    dxs = [draw(rng, x) for x in xs if x.dtype.kind in "fc"]
    outputs = run_reference(derived.program, [*xs, *dxs])
    assert same(outputs[0], reference(case, xs))
    step, moving = 1e-6, iter(dxs)
    moves = [step * next(moving) if on else None for on in active]
    ahead, behind = (
        reference(case, [x if m is None else x + sign * m for x, m in zip(xs, moves, strict=True)]) for sign in (1, -1)
    )
    if outputs[0].dtype.kind not in "fc":
        assert derived.active_outputs == (False,)
        return
    difference = (ahead.astype(np.complex128) - behind) / (2 * step)
    if not derived.active_outputs[0]:
        np.testing.assert_array_equal(difference, 0)
        return
    assert outputs[1].dtype == outputs[0].dtype
    np.testing.assert_allclose(outputs[1], difference, rtol=1e-7, atol=1e-7)


def draw(rng: np.random.Generator, like: Array) -> Array:
    if like.dtype.kind == "c":
        return (rng.normal(size=like.shape) + 1j * rng.normal(size=like.shape)).astype(like.dtype)
    return rng.normal(size=like.shape).astype(like.dtype)


LINEAR: list[tuple[str, tuple[str, ...], dict[str, Any], tuple[bool, ...]]] = [
    ("add", ("f64", "f64"), {}, (True, True)),
    ("add", ("c128", "c128"), {}, (False, True)),
    ("sub", ("f64", "f64"), {}, (True, True)),
    ("neg", ("c128",), {}, (True,)),
    ("mul", ("c128", "c128"), {}, (True, False)),
    ("mul", ("f64", "f64"), {}, (False, True)),
    ("div", ("c128", "c128"), {}, (True, False)),
    ("convert_element_type", ("f64",), {"new_dtype": DTYPES["c128"], "weak": False}, (True,)),
    ("convert_element_type", ("c128",), {"new_dtype": DTYPES["f64"], "weak": False}, (True,)),
    ("real", ("c128",), {}, (True,)),
    ("imag", ("c128",), {}, (True,)),
    ("conj", ("c128",), {}, (True,)),
    ("complex", ("f64", "f64"), {}, (True, True)),
    ("complex", ("f64", "f64"), {}, (False, True)),
    ("select", ("bool", "f64", "f64"), {}, (False, True, True)),
    ("select", ("bool", "c128", "c128"), {}, (False, False, True)),
    ("select_n", ("i32", "f64", "f64", "f64"), {}, (False, True, True, True)),
]


@each(("name", "shorts", "params", "linear"), LINEAR)
def test_a_transpose_is_the_adjoint(
    name: str, shorts: tuple[str, ...], params: dict[str, Any], linear: tuple[bool, ...], rng: np.random.Generator
) -> None:
    """Re(w J v) = Re(v J^T w): the transpose is complex-linear, without conjugation."""
    xs = [np.array([1, 0, 2, -1, 9]).astype(DTYPES[s]) if s in ("bool", "i32") else draw(rng, np.empty(5, DTYPES[s]))
          for s in shorts]  # fmt: skip
    program = program_of(lambda *inputs: bind_all(BY_NAME[name], inputs, params)[0], xs)
    known = [x for x, on in zip(xs, linear, strict=True) if not on]
    vs = [x for x, on in zip(xs, linear, strict=True) if on]
    zeros = [np.zeros_like(x) if on else x for x, on in zip(xs, linear, strict=True)]
    pushed = run_reference(program, xs)[0] - run_reference(program, zeros)[0]  # the known operands may add something
    w = draw(rng, pushed)
    pulled = run_reference(transpose_program(program, linear).program, [*known, w])
    left = np.sum(w * pushed)
    right = sum(np.sum(v * p) for v, p in zip(vs, pulled, strict=True))
    assert [p.dtype for p in pulled] == [v.dtype for v in vs]
    np.testing.assert_allclose(np.real(left), np.real(right), rtol=1e-12)


# Batching


@each("case", CASES, ids=name_of)
def test_batching_is_a_stack_of_calls(case: Case, rng: np.random.Generator) -> None:
    short = case.dtypes[-1]
    flat = operands(case, DTYPES[short])
    sizes = (2, 4) if case.name == "bitcast_regroup" else (3,)
    check_batches(BY_NAME[case.name], [np.resize(rng.permutation(x), (5, *sizes)) for x in flat], case.params)


def check_batches(primitive: Primitive, stacks: Sequence[Array], params: Any) -> None:
    """Every choice of batched operands, with the batch axis first or last."""
    for mask in range(1, 1 << len(stacks)):
        batched = [bool(mask >> i & 1) for i in range(len(stacks))]
        for place in (0, -1):
            xs = [np.moveaxis(x, 0, place) if on else x[0] for x, on in zip(stacks, batched, strict=True)]
            examples = [[x[i] if on else x[0] for x, on in zip(stacks, batched, strict=True)] for i in range(5)]
            program = program_of(lambda *inputs: bind_all(primitive, inputs, params)[0], examples[0])
            axes = tuple((place % x.ndim if on else None) for x, on in zip(xs, batched, strict=True))
            got = run_batched(program, axes, xs)
            expected = np.stack([np.asarray(reference_outputs(primitive, e, params)[0]) for e in examples])
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def run_batched(program: Program, axes: tuple[int | None, ...], xs: Sequence[Array]) -> Array:
    types = [array_type(x.dtype, x.shape) for x in xs]

    def run(inputs: list[Any]) -> list[Any]:
        outputs, out_axes = batch_forward(program, inputs, axes, 5, None)
        places.extend(out_axes)
        return list(outputs)

    places: list[int | None] = []
    staged = stage(run, types)
    (output,) = run_reference(staged.program, xs)
    assert places[0] is not None
    return np.moveaxis(output, places[0], 0)


@pytest.mark.parametrize("primitive", [BY_NAME["select"], BY_NAME["select_n"]], ids=str)
def test_a_selector_without_axes_chooses_whole_examples_in_a_batch(primitive: Primitive) -> None:
    which = np.array([0, 1, 1, 0, 1]).astype(bool if primitive.name == "select" else np.int32)
    cases = [np.arange(15.0).reshape(5, 3) + 100 * i for i in range(2)]
    check_batches(primitive, [which, *cases], {})


def test_a_selector_without_axes_and_a_literal_case_batch() -> None:
    which, x = np.array([True, False, True, False, True]), np.arange(5.0)
    program = program_of(lambda p, a: select(p, a, 0.0), [which[0], x[0]])
    np.testing.assert_array_equal(run_batched(program, (0, None), [which, x[1]]), np.where(which, 1.0, 0.0))
    np.testing.assert_array_equal(run_batched(program, (None, 0), [which[0], x]), x)
    rows = np.arange(15.0).reshape(5, 3)
    program = program_of(lambda p, a: select_n(p, 0.0, a, a), [np.int64(1), rows[0]])
    np.testing.assert_array_equal(run_batched(program, (None, 0), [np.asarray(1), rows]), rows)


def test_batching_polygamma_is_a_stack_of_calls() -> None:
    x = np.linspace(0.3, 4, 5)
    program = program_of(lambda a: polygamma(2, a), [x[0]])
    np.testing.assert_array_equal(
        run_batched(program, (0,), [x]), reference_outputs(BY_NAME["polygamma"], [x], {"order": 2})[0]
    )
