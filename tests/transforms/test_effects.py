"""What programs do outside themselves: once, in order, and for live lanes alone, in every construct and transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import lax
from tracer.errors import CheckError, NoRuleError

POINTS = np.asarray([0.5, 1.5, 2.5])
Function = Callable[[Any], Any]


# Effects: what doubles a number, and does something besides.


def io(seen: list[float]) -> Function:
    def double(x: Any) -> Any:
        tracer.io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
        return 2.0 * x

    return double


def answered(seen: list[float]) -> Function:
    """A callback whose result is used."""

    def answer(v: Any) -> Any:
        seen.append(float(v))
        return np.asarray(2.0)

    def double(x: Any) -> Any:
        return tracer.io_callback(answer, tracer.ShapeDtypeStruct((), tnp.float64), lax.stop_gradient(x)) * x

    return double


def printed(seen: list[float]) -> Function:
    def double(x: Any) -> Any:
        tracer.debug.callback(lambda v: seen.append(float(v)), x)
        return 2.0 * x

    return double


EFFECTS = (io, answered, printed)


# Constructs: control flow around such a function, and what it sees at each of the points.


def plain(f: Function, x: Any) -> Any:
    return f(x)


def in_cond(f: Function, x: Any) -> Any:
    return lax.cond(x > 1.0, f, lambda y: y + 0.0, x)


def in_nested_cond(f: Function, x: Any) -> Any:
    return lax.cond(x > 1.0, lambda y: lax.cond(y > 2.0, f, lambda z: z, y), lambda y: y, x)


def in_switch(f: Function, x: Any) -> Any:
    return lax.switch(tnp.asarray(x, int), [lambda y: y + 0.0, f, lambda y: f(f(y))], x)


def in_scan(f: Function, x: Any) -> Any:
    return lax.scan(lambda c, t: (f(c) + t, None), x, tnp.arange(3.0))[0]


def in_counted_loop(f: Function, x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: f(c), x)


def in_loop_counted_by_values(f: Function, x: Any) -> Any:
    return lax.fori_loop(0, tnp.asarray(x, int) + 1, lambda i, c: f(c), x)


def in_while(f: Function, x: Any) -> Any:
    return lax.while_loop(lambda c: c < 4.0, f, x)


def in_cond_in_while(f: Function, x: Any) -> Any:
    def step(state: Any) -> Any:
        n, y = state
        return n + 1, lax.cond(y > 1.0, f, lambda z: 3.0 * z, y)

    return lax.while_loop(lambda state: state[0] < 3, step, (0, x))[1]


def in_while_in_scan(f: Function, x: Any) -> Any:
    return lax.scan(lambda c, t: (in_while(f, c), c), x, tnp.arange(2.0))[0]


def in_while_in_while(f: Function, x: Any) -> Any:
    def step(state: Any) -> Any:
        n, y = state
        return n + 1, in_while(f, y / 4.0)

    return lax.while_loop(lambda state: state[0] < 2, step, (0, x))[1]


def in_map(f: Function, x: Any) -> Any:
    return lax.map(f, tnp.stack([x, x + 10.0])).sum()


def in_jit(f: Function, x: Any) -> Any:
    return tracer.jit(f)(x)


def in_checkpoint(f: Function, x: Any) -> Any:
    return tracer.checkpoint(lambda y: tnp.sin(f(y)))(x)


def in_custom_jvp(f: Function, x: Any) -> Any:
    double = tracer.custom_jvp(f)
    double.defjvp(lambda primals, tangents: (f(primals[0]), 2.0 * tangents[0]))
    return double(x)


def in_custom_vjp(f: Function, x: Any) -> Any:
    double = tracer.custom_vjp(f)
    double.defvjp(lambda y: (f(y), None), lambda _, g: (2.0 * g,))
    return double(x)


SEEN: dict[Callable[[Function, Any], Any], list[list[float]]] = {
    plain: [[0.5], [1.5], [2.5]],
    in_cond: [[], [1.5], [2.5]],
    in_nested_cond: [[], [], [2.5]],
    in_switch: [[], [1.5], [2.5, 5.0]],
    in_scan: [[0.5, 1.0, 3.0], [1.5, 3.0, 7.0], [2.5, 5.0, 11.0]],
    in_counted_loop: [[0.5, 1.0, 2.0], [1.5, 3.0, 6.0], [2.5, 5.0, 10.0]],
    in_loop_counted_by_values: [[0.5], [1.5, 3.0], [2.5, 5.0, 10.0]],
    in_while: [[0.5, 1.0, 2.0], [1.5, 3.0], [2.5]],
    in_cond_in_while: [[1.5, 3.0], [1.5, 3.0, 6.0], [2.5, 5.0, 10.0]],
    in_while_in_scan: [[0.5, 1.0, 2.0], [1.5, 3.0], [2.5]],
    in_while_in_while: [
        [0.125, 0.25, 0.5, 1.0, 2.0, 1.0, 2.0],
        [0.375, 0.75, 1.5, 3.0, 1.5, 3.0],
        [0.625, 1.25, 2.5, 1.25, 2.5],
    ],
    in_map: [[0.5, 10.5], [1.5, 11.5], [2.5, 12.5]],
    in_jit: [[0.5], [1.5], [2.5]],
    in_checkpoint: [[0.5], [1.5], [2.5]],
    in_custom_jvp: [[0.5], [1.5], [2.5]],
    in_custom_vjp: [[0.5], [1.5], [2.5]],
}

ONE_BY_ONE: dict[str, Callable[[Function], Any]] = {
    "eager": lambda f: [f(x) for x in POINTS],
    "jit": lambda f: list(map(tracer.jit(f), POINTS)),
    "jvp": lambda f: [tracer.jvp(f, (x,), (1.0,)) for x in POINTS],
    "linearize": lambda f: [tracer.linearize(f, x)[1](1.0) for x in POINTS],
    "vjp": lambda f: [tracer.vjp(f, x)[1](1.0) for x in POINTS],
    "grad": lambda f: list(map(tracer.grad(f), POINTS)),
    "jit grad": lambda f: list(map(tracer.jit(tracer.grad(f)), POINTS)),
    "grad jit": lambda f: list(map(tracer.grad(tracer.jit(f)), POINTS)),
    "grad grad": lambda f: list(map(tracer.grad(tracer.grad(f)), POINTS)),
    "jit grad grad": lambda f: list(map(tracer.jit(tracer.grad(tracer.grad(f))), POINTS)),
    "grad checkpoint": lambda f: list(map(tracer.grad(tracer.checkpoint(f)), POINTS)),
    "jit grad checkpoint": lambda f: list(map(tracer.jit(tracer.grad(tracer.checkpoint(f))), POINTS)),
}
BATCHED: dict[str, Callable[[Function], Any]] = {
    "vmap": lambda f: tracer.vmap(f)(POINTS),
    "jit vmap": lambda f: tracer.jit(tracer.vmap(f))(POINTS),
    "vmap jit": lambda f: tracer.vmap(tracer.jit(f))(POINTS),
    "vmap grad": lambda f: tracer.vmap(tracer.grad(f))(POINTS),
    "jit vmap grad": lambda f: tracer.jit(tracer.vmap(tracer.grad(f)))(POINTS),
    "grad vmap": lambda f: tracer.grad(lambda xs: tracer.vmap(f)(xs).sum())(POINTS),
    "jit grad vmap": lambda f: tracer.jit(tracer.grad(lambda xs: tracer.vmap(f)(xs).sum()))(POINTS),
    "vmap vmap": lambda f: tracer.vmap(tracer.vmap(f))(POINTS[None]),
}
# Compiled, an inner loop of unknown length is run again for its derivative, and nobody is asked twice.
REPEATED = (in_while_in_scan, in_while_in_while)
REPEATING = (
    "jit grad", "jit grad grad", "jit grad checkpoint", "vmap grad", "jit vmap grad", "jit grad vmap",
)  # fmt: skip
REVERSE_ONLY = ("jvp", "linearize", "grad grad", "jit grad grad")


def is_refused(effect: Any, construct: Any, name: str) -> bool:
    return effect is answered and construct in REPEATED and name in REPEATING


def cases(transforms: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    for construct in SEEN:
        for name in transforms:
            if construct is not in_custom_vjp or name not in REVERSE_ONLY:
                yield construct, name


def label(part: Any) -> str:
    return part if isinstance(part, str) else " ".join(map(label, part)) if isinstance(part, tuple) else part.__name__


@pytest.mark.parametrize(("case", "effect"), covering(cases(ONE_BY_ONE), EFFECTS), ids=label)
def test_effects_come_once_and_in_order(case: tuple[Any, str], effect: Any) -> None:
    construct, name = case
    seen: list[float] = []
    double = effect(seen)
    if is_refused(effect, construct, name):
        with pytest.raises(NoRuleError, match="its results are not kept"):
            ONE_BY_ONE[name](lambda x: construct(double, x))
        return
    ONE_BY_ONE[name](lambda x: construct(double, x))
    assert seen == [v for values in SEEN[construct] for v in values]


@pytest.mark.parametrize(("case", "effect"), covering(cases(BATCHED), EFFECTS), ids=label)
def test_effects_come_once_for_each_live_lane(case: tuple[Any, str], effect: Any) -> None:
    construct, name = case
    seen: list[float] = []
    double = effect(seen)
    if is_refused(effect, construct, name):
        with pytest.raises(NoRuleError, match="its results are not kept"):
            BATCHED[name](lambda x: construct(double, x))
        return
    BATCHED[name](lambda x: construct(double, x))
    assert sorted(seen) == sorted(v for values in SEEN[construct] for v in values)


# Faults: only what runs may fail, and what runs does.


def checked(x: Any) -> Any:
    tracer.check(x < 2.0, "too large")
    return x + x**3


def told(x: Any) -> Any:
    tracer.check(x < 2.0, "{} is too large", x)
    return x + x**3


def indexed(x: Any) -> Any:
    return tnp.asarray([2.0, 2.0])[tnp.asarray(x, int)] * (x + x**3)


def called(x: Any) -> Any:
    def host(v: Any) -> Any:
        if v >= 2.0:
            raise LookupError("too large")
        return np.asarray(2.0)

    return tracer.pure_callback(host, tracer.ShapeDtypeStruct((), tnp.float64), lax.stop_gradient(x)) * (x + x**3)


FAULTS: dict[Function, type[Exception]] = {
    checked: CheckError,
    told: CheckError,
    indexed: IndexError,
    called: LookupError,
}
GUARDED: dict[str, Callable[[Function, Any], Any]] = {
    "cond": lambda f, x: lax.cond(x < 2.0, f, lambda y: 3.0 * y, x),
    "cond in cond": lambda f, x: lax.cond(
        x < 3.0, lambda y: lax.cond(y < 2.0, f, lambda z: z, y), lambda y: y, x
    ),
    "switch": lambda f, x: lax.switch(tnp.asarray(x, int), [f, f, lambda y: y], x),
    "while": lambda f, x: lax.while_loop(lambda c: c < 2.0, f, x),
    "while in scan": lambda f, x: lax.scan(
        lambda c, t: (lax.while_loop(lambda d: d < 2.0, f, c), None), x, None, length=2
    )[0],
    "cond in scan": lambda f, x: lax.scan(
        lambda c, t: (lax.cond(c < 2.0, f, lambda y: y, c), None), x, None, length=4
    )[0],
}  # fmt: skip
EVERY = {**ONE_BY_ONE, **BATCHED}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", EVERY)
def test_what_fails_raises(fault: Function, name: str) -> None:
    with pytest.raises(FAULTS[fault]):
        EVERY[name](fault)


@pytest.mark.parametrize(("fault", "construct", "name"), covering(FAULTS, GUARDED, EVERY, least=60), ids=label)
def test_what_does_not_run_does_not_fail(fault: Function, construct: str, name: str) -> None:
    EVERY[name](lambda x: GUARDED[construct](fault, x))


def test_batches_are_called_for_as_long_as_one_lane_lives() -> None:
    sizes: list[int] = []

    def host(xs: Any) -> Any:
        sizes.append(len(xs))
        return 2.0 * xs

    def f(x: Any) -> Any:
        shape = tracer.ShapeDtypeStruct((), tnp.float64)
        return tracer.pure_callback(host, shape, x, vmap_method="broadcast_all")

    ends = tracer.vmap(lambda x: lax.while_loop(lambda c: c < 4.0, f, x))(POINTS)
    np.testing.assert_allclose(ends, [4.0, 6.0, 5.0])
    assert sizes == [3, 3, 3]


def test_effects_beside_known_carries_outlive_transposition() -> None:
    """What a loop's known part does outside happens, though nobody reads the known carry."""
    seen: list[float] = []

    def scanned(v: Any) -> Any:
        def step(carry: Any, u: Any) -> Any:
            tracer.debug.callback(lambda w: seen.append(float(w)), u)
            tracer.check(u < 2, "too large")
            return (carry[0] * u, carry[1] + 1), None

        return lambda us: lax.scan(step, (v, 0), us)[0][0]

    def transposed(us: Any) -> Any:
        return tracer.linear_transpose(lambda v: scanned(v)(us), 1.0)(1.0)[0]

    for run in (transposed, tracer.jit(transposed)):
        assert float(run(tnp.asarray([0.5, 1.5]))) == 0.75
        tracer.effects_barrier()
        assert seen == [0.5, 1.5]
        seen.clear()
        with pytest.raises(CheckError, match="too large"):
            run(tnp.asarray([0.5, 2.5]))
        seen.clear()
