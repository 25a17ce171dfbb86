"""Derivatives of whole programs by finite differences, in float64, and the laws of jvp and transpose against them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.laws.tolerances import ADJOINT, DIFFERENCE
from tests.laws.values import Array, direction
from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.types import Type, is_differentiable, storage_type
from tracer.primitives.base.reference import run_reference
from tracer.trace.array import concrete
from tracer.trace.evaluate import evaluate
from tracer.trace.trace import Operand
from tracer.transforms.jacobian_products import jvp
from tracer.transforms.jvp import jvp_program
from tracer.transforms.linearize import linearize_program
from tracer.transforms.transpose import transpose_program

STEP = 1e-4


def actives(program: Program) -> tuple[bool, ...]:
    """All inputs that can have a tangent."""
    return tuple(is_differentiable(type) for type in program.input_types)


def directions(rng: np.random.Generator, types: Sequence[Type], active: Sequence[bool]) -> list[Array | None]:
    return [direction(rng, type) if on else None for type, on in zip(types, active, strict=True)]


def difference(
    function: Callable[[Sequence[Array]], Sequence[Array]],
    xs: Sequence[Array],
    dxs: Sequence[Array | None],
    step: float = STEP,
) -> list[tuple[Array, Array]]:
    """For each output the derivative along dxs, and where it may be trusted: where both sides agree with the middle.

    Central differences of fourth order, and of third order to either side; a kink or a jump on the way gives itself
    away, and so does one that begins at xs. Where the derivative is small they must agree for what it is, beyond what
    rounding explains: waves shorter than the steps, of whatever height, have slopes that differences do not see.
    """

    def at(multiple: float) -> list[Any]:
        moved = [x if dx is None else _moved(x, multiple * step * dx) for x, dx in zip(xs, dxs, strict=True)]
        return [_wide(y) for y in function(moved)]

    found = []
    with np.errstate(all="ignore"):
        for c3, c2, c1, y, a1, a2, a3 in zip(*map(at, range(-3, 4)), strict=True):
            central = (8 * (a1 - c1) - (a2 - c2)) / (12 * step)
            ahead = (-11 * y + 18 * a1 - 9 * a2 + 2 * a3) / (6 * step)
            behind = (11 * y - 18 * c1 + 9 * c2 - 2 * c3) / (6 * step)
            rounding = 1e-9 * np.max(np.abs([c3, c2, c1, y, a1, a2, a3]), axis=0)
            allowed = np.minimum(1e-6 * (1 + np.abs(central)), 1e-2 * np.abs(central) + rounding)
            found.append((central, (np.abs(ahead - central) <= allowed) & (np.abs(behind - central) <= allowed)))
    return found


def is_linear(
    program: Program, xs: Sequence[Array], dxs: Sequence[Array | None], rng: np.random.Generator, tries: int = 4
) -> list[Array]:
    """For each output, where derivatives along two directions add up to the derivative along their sum.

    The middle one of three equal numbers has a derivative along every direction, but no gradient.
    """

    def along(ways: Sequence[Array | None]) -> list[tuple[Array, Array]]:
        return difference(lambda moved: run_reference(program, moved), xs, ways)

    whole = along(dxs)
    linear = [np.full(d.shape, True) for d, _ in whole]
    for _ in range(tries):
        first = directions(rng, program.input_types, [dx is not None for dx in dxs])
        rest = [None if a is None or b is None else np.asarray(a - b, a.dtype) for a, b in zip(dxs, first, strict=True)]
        for i, ((d, ok), (e, fine), (both, _)) in enumerate(zip(along(first), along(rest), whole, strict=True)):
            adds = np.abs(d + e - both) <= DIFFERENCE * (1 + np.abs(d) + np.abs(e))
            linear[i] = linear[i] & (adds | ~ok | ~fine)
    return linear


def _moved(x: Array, by: Array) -> Array:
    return np.asarray(x + by, x.dtype)


def _wide(y: Array) -> Array:
    if dtypes.is_complex(y.dtype):
        return y.astype(np.complex128)
    return np.asarray(y).astype(np.float64)


def check_jvp(
    program: Program, xs: Sequence[Array], rng: np.random.Generator, what: str, *, alone: bool = True
) -> float:  # fmt: skip
    """Tangents by the transform are differences. Returns the share that was compared.

    alone: whether each input is moved alone, too, after all of them together.
    """
    compared = total = 0
    for active in _subsets(actives(program))[: None if alone else 1]:
        dxs = directions(rng, program.input_types, active)
        derived = jvp_program(program, active)
        given = [dx for dx in dxs if dx is not None]
        results = run_reference(derived.program, [*xs, *given])
        count = len(program.outputs)
        moving = iter(results[count:])
        primal = run_reference(program, xs)
        expected = difference(lambda moved: run_reference(program, moved), xs, dxs)
        for i, (on, type) in enumerate(zip(derived.active_outputs, program.output_types, strict=True)):
            np.testing.assert_array_equal(results[i], primal[i], err_msg=f"{what}: jvp changes output {i}")
            tangent = next(moving) if on else None
            if not is_differentiable(type):
                assert tangent is None, f"{what}: a tangent for {type}"
                continue
            want, trusted = expected[i]
            got = np.zeros_like(want) if tangent is None else tangent
            if not _agree(got, want)[trusted].all():  # digits lost on the way to a small result are lost in all of it
                longer = difference(lambda moved: run_reference(program, moved), xs, dxs, 10 * STEP)[i][0]
                trusted = trusted & (np.abs(longer - want) <= DIFFERENCE / 4 * (1 + np.abs(want)))
            if not _agree(got, want)[trusted].all():
                trusted = trusted & is_linear(program, xs, dxs, rng)[i]
            _check_difference(got, want, trusted, f"{what}: tangent {i}, active {active}")
            compared, total = compared + int(trusted.sum()), total + trusted.size
    return compared / total if total else 1.0


def check_eager_jvp(program: Program, xs: Sequence[Array], rng: np.random.Generator, what: str) -> None:
    """`jvp` of a Python function that runs the program's equations one by one gives what the transform gives."""
    active = actives(program)
    if not any(active) or any(type(t).__name__ != "ArrayType" for t in program.input_types):
        return
    dxs = [direction(rng, t) for t, on in zip(program.input_types, active, strict=True) if on]
    derived = jvp_program(program, active, True)
    count = len(program.outputs)
    expected = run_reference(derived.program, [*xs, *dxs])

    def function(*moving: Operand) -> list[Any]:
        given = iter(moving)
        operands = [next(given) if on else concrete(np.array(x)) for x, on in zip(xs, active, strict=True)]
        return evaluate(program, operands)

    primals = [concrete(np.array(x)) for x, on in zip(xs, active, strict=True) if on]
    ys, dys = jvp(function, tuple(primals), tuple(concrete(np.array(dx)) for dx in dxs))
    smooth = [is_differentiable(t) for t in program.output_types]
    got = [np.asarray(y) for y in ys] + [np.asarray(dy) for dy, on in zip(dys, smooth, strict=True) if on]
    assert len(got) == len(expected), what
    for position, (a, b) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=f"{what}: eager result {position} of {count}")


def _check_difference(got: Array, want: Array, trusted: Array, what: str) -> None:
    wrong = ~_agree(got, want)[trusted]
    g, w = _wide(got)[trusted], want[trusted]
    assert not wrong.any(), f"{what}\n  got {g[wrong][:5]}\n  differences say {w[wrong][:5]}"


def _agree(got: Array, want: Array) -> Array:
    return np.asarray(np.abs(_wide(got) - want) <= DIFFERENCE * (1 + np.abs(want)))


def _subsets(flags: Sequence[bool]) -> list[tuple[bool, ...]]:
    """All active operands together, and each alone."""
    places = [i for i, on in enumerate(flags) if on]
    alone = [tuple(i == place for i in range(len(flags))) for place in places] if len(places) > 1 else []
    return [tuple(flags), *alone] if places else []


def check_adjoint(program: Program, xs: Sequence[Array], rng: np.random.Generator, what: str) -> None:
    """<Jv, w> = <v, J^T w>, J v by linearize and by jvp, J^T w by the transpose of the linear program."""
    for active in _subsets(actives(program)):
        split = linearize_program(program, active)
        if not any(split.active_outputs):
            continue
        results = run_reference(split.forward, xs)
        residuals = split.residuals(list(xs), results)
        vs = [dx for dx in directions(rng, program.input_types, active) if dx is not None]
        pushed = run_reference(split.linear, [*residuals, *vs])
        derived = jvp_program(program, active)
        tangents = run_reference(derived.program, [*xs, *vs])[len(program.outputs) :]
        assert derived.active_outputs == split.active_outputs, what
        for a, b in zip(pushed, tangents, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=f"{what}: linearize against jvp")
        check_transpose(
            split.linear, (False,) * len(residuals) + (True,) * len(vs), residuals, vs, rng, f"{what}, active {active}"
        )


def check_gradient(program: Program, xs: Sequence[Array], rng: np.random.Generator, what: str) -> float:
    """<J^T w, v> = <w, Jv>, J v being differences: reverse mode alone. Returns the share that was compared."""
    active = actives(program)
    split = linearize_program(program, active)
    results = run_reference(split.forward, xs)
    residuals = split.residuals(list(xs), results)
    if not any(split.active_outputs):
        return 1.0
    linear = (False,) * len(residuals) + (True,) * sum(active)
    dxs = directions(rng, program.input_types, active)
    moved = difference(lambda values: run_reference(program, values), xs, dxs)
    reached = zip(moved, split.active_outputs, program.output_types, strict=True)
    pushed = [(d, trusted, type) for (d, trusted), on, type in reached if on]
    ws = [np.asarray(np.where(ok, direction(rng, type), 0), storage_type(type).dtype) for _, ok, type in pushed]
    derived = transpose_program(split.linear, linear)
    vs = [dx for dx in dxs if dx is not None]
    forward = [np.where(ok, d, 0) for d, ok, _ in pushed]

    def products(ws: list[Array]) -> tuple[float, float, bool]:
        """<w, Jv>, <J^T w, v>, and whether they agree."""
        pulled = run_reference(derived.program, [*residuals, *ws])
        left, right = _inner(forward, ws), _inner(vs, pulled)
        pairs = [*zip(forward, ws, strict=True), *zip(vs, pulled, strict=True)]
        scale = 1 + sum(float(np.sum(np.abs(a * b))) for a, b in pairs)
        return left, right, abs(left - right) <= DIFFERENCE * scale

    left, right, agree = products(ws)
    if not agree:
        smooth = [ok for ok, on in zip(is_linear(program, xs, dxs, rng), split.active_outputs, strict=True) if on]
        ws = [np.asarray(np.where(ok, w, 0), w.dtype) for w, ok in zip(ws, smooth, strict=True)]
        left, right, agree = products(ws)
    assert agree, f"{what}: <w, Jv> = {left} by differences, <J'w, v> = {right}"
    total = sum(ok.size for _, ok, _ in pushed)
    return sum(int(ok.sum()) for _, ok, _ in pushed) / total if total else 1.0


def check_transpose(
    program: Program, linear: tuple[bool, ...], known: Sequence[Array], vs: Sequence[Array], rng: np.random.Generator,
    what: str,
) -> None:  # fmt: skip
    """<A v, w> = <v, A^T w> for a program A that is linear in the flagged inputs, but for what the others add.

    The products are without conjugation, and only their real parts must agree.
    """
    whole = run_reference(program, _merge(linear, known, vs))
    origin = run_reference(program, _merge(linear, known, [np.zeros_like(v) for v in vs]))
    pushed = [np.asarray(a - b) for a, b in zip(whole, origin, strict=True)]
    ws = [direction(rng, type) for type in program.output_types]
    derived = transpose_program(program, linear)
    pulled = run_reference(derived.program, [*known, *ws])
    for cotangent, v in zip(pulled, vs, strict=True):
        assert (cotangent.dtype, cotangent.shape) == (v.dtype, v.shape), what
    left, right = (_inner(a, b) for a, b in ((pushed, ws), (vs, pulled)))
    scale = 1 + sum(
        float(np.sum(np.abs(a * b))) for a, b in [*zip(pushed, ws, strict=True), *zip(vs, pulled, strict=True)]
    )
    assert abs(left - right) <= ADJOINT * scale, f"{what}: <Av, w> = {left}, <v, A'w> = {right}"


def _merge(linear: Sequence[bool], known: Sequence[Array], vs: Sequence[Array]) -> list[Array]:
    rest, moving = iter(known), iter(vs)
    return [next(moving) if on else next(rest) for on in linear]


def _inner(a: Sequence[Array], b: Sequence[Array]) -> float:
    return sum(float(np.real(np.sum(x * y))) for x, y in zip(a, b, strict=True))
