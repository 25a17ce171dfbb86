"""Loops of unknown length differentiated in bounded memory: `config.loop_memory`, and `memory` at the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering
from tests.schedule.running import call, compiled
from tracer.codegen.llvm.toolchain import ctypes_executable
from tracer.errors import ArgumentError, SettingError
from tracer.ir.types import StackType, is_differentiable
from tracer.ir.visit import equations
from tracer.settings import config
from tracer.transforms.linearize import linearize_program

Function = Callable[[Any], Any]
SMALL = 2048  # bytes: chunks of some 10 steps, and 16 slots or fewer


def newton(a: Any) -> Any:
    """The square root, by as many steps as it takes."""
    return tracer.lax.while_loop(lambda s: abs(s * s - a) > 1e-12, lambda s: 0.5 * (s + a / s), a)


def pendulum(a: Any) -> Any:
    """As many steps as the argument says, its bounds traced."""
    steps = tnp.floor(a * 100).astype(int)

    def step(i: Any, c: Any) -> Any:
        return c[0] + 0.01 * c[1] * a, c[1] - 0.01 * tnp.sin(c[0])

    return tracer.lax.fori_loop(0, steps, step, (a, 1.0))[0]


def in_scan(a: Any) -> Any:
    return tracer.lax.scan(lambda c, x: (newton(c + 1.0) * x + tnp.sin(c), pendulum(c)), a, tnp.arange(4.0))[0]


def in_while(a: Any) -> Any:
    def body(c: Any) -> Any:
        return c[0] + 1, pendulum(c[1] / (1 + c[1] ** 2) + 0.5)

    return tracer.lax.while_loop(lambda c: c[0] < 5, body, (0, a))[1]


def in_cond(a: Any) -> Any:
    return tracer.lax.cond(a > 1.0, pendulum, newton, a)


def on_arrays(a: Any) -> Any:
    weights = tnp.linspace(0.1, 0.5, 12).reshape(4, 3) * a

    def body(c: Any) -> Any:
        return c[0] + 1, tnp.tanh(weights @ (weights.T @ c[1])) + a * c[1]

    return tracer.lax.while_loop(lambda c: c[0] < 40, body, (0, tnp.ones(4)))[1].sum()


def reads_rows(a: Any) -> Any:
    """Indices that are checked, in lanes that stop on their own."""
    table = tnp.linspace(0.5, 1.5, 60) * a
    steps = tnp.floor(a * 40).astype(int)
    return tracer.lax.fori_loop(0, steps, lambda i, s: tnp.sin(s) * table[i] + s, a)


PROGRAMS = [newton, pendulum, in_scan, in_while, in_cond, on_arrays]


def grad_of_jvp(function: Function) -> Function:
    return tracer.grad(lambda x: tracer.jvp(function, (x,), (1.0,))[1])


DERIVATIVES = {
    "grad": tracer.grad,
    "grad of grad": lambda f: tracer.grad(tracer.grad(f)),
    "jacfwd of grad": lambda f: tracer.jacfwd(tracer.grad(f)),
    "grad of jvp": grad_of_jvp,
}


def limited(function: Callable[[], Any], memory: int | None = SMALL) -> Any:
    with config.using(loop_memory=memory):
        return function()


@pytest.mark.parametrize(("function", "name"), covering(PROGRAMS, DERIVATIVES))
def test_a_limit_changes_no_derivative(function: Function, name: str) -> None:
    derivative = DERIVATIVES[name](function)
    lanes = tnp.asarray([1.3, 0.4, 1.2, 1.49])

    batch = tracer.jit(tracer.vmap(derivative))
    expected = np.asarray(limited(lambda: batch(lanes), None))
    np.testing.assert_allclose(np.asarray(limited(lambda: batch(lanes))), expected, rtol=1e-9, atol=1e-12)
    alone = limited(lambda: tracer.jit(derivative)(1.3))  # the first lane
    np.testing.assert_allclose(np.asarray(alone), expected[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [newton, pendulum, in_cond, reads_rows], ids=lambda f: f.__name__)
def test_the_gradient_of_a_batch_goes_through_lanes_that_stop_on_their_own(function: Function) -> None:
    lanes = tnp.asarray([1.3, 0.4, 1.2, 1.49])

    def gradient() -> Any:
        return tracer.grad(lambda x: tracer.vmap(function)(x).sum())(lanes)

    once = tracer.jit(tracer.grad(function))
    np.testing.assert_allclose(np.asarray(limited(gradient)), [float(once(x)) for x in lanes], rtol=1e-9)
    twice = limited(
        lambda: tracer.grad(lambda x: tracer.grad(lambda y: tracer.vmap(function)(y).sum())(x).sum())(lanes)
    )
    second = tracer.jit(tracer.grad(tracer.grad(function)))
    np.testing.assert_allclose(np.asarray(twice), [float(second(x)) for x in lanes], rtol=1e-9)


def test_faults_of_a_branch_that_no_lane_takes_stay_silent() -> None:
    def guarded(a: Any) -> Any:
        return tracer.lax.cond(a < 1.5, reads_rows, lambda x: x * x, a)

    lanes = tnp.asarray([0.4, 9.0, 1.2])
    found = limited(lambda: tracer.vmap(tracer.grad(guarded))(lanes))
    alone = [float(tracer.grad(guarded)(x)) for x in lanes]
    np.testing.assert_allclose(np.asarray(found), alone, rtol=1e-9)


def test_derivatives_of_rules_of_the_users_own_are_what_the_rules_say() -> None:
    """A rule that is no derivative has no symmetric Hessian: its transpose is a sweep of its own."""

    @tracer.custom_jvp
    def odd(x: Any, y: Any) -> Any:
        return x * y

    @odd.defjvp
    def odd_jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, _) = primals, tangents
        return x * y, dx * tnp.sin(y)

    def loop(v: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, odd(c[1], c[2]) + 0.1, c[2] * 1.1

        return tracer.lax.while_loop(lambda c: c[0] < 12, body, (0, v[0], v[1]))[1]

    v = tnp.asarray([1.3, 0.7])
    direction = tnp.asarray([0.4, 0.9])

    def bent(x: Any) -> Any:
        return tracer.grad(lambda x: (tracer.grad(loop)(x) * direction).sum())(x)

    derivatives: list[Function] = [
        bent,
        tracer.hessian(loop),
        lambda x: tracer.vmap(bent)(tnp.stack([x, 2.0 * x])),
        tracer.grad(lambda x: (bent(x) * direction).sum()),
        lambda x: tracer.vjp(lambda d: tracer.jvp(tracer.grad(loop), (x,), (d,))[1], direction)[1](direction)[0],
    ]
    others: list[Function] = [
        tracer.jit(bent),
        tracer.jacrev(tracer.jacfwd(loop)),
        tracer.jacrev(tracer.jacrev(loop)),
        tracer.jacrev(tracer.jacrev(tracer.jacrev(loop))),
        tracer.jacrev(tracer.jacfwd(tracer.jacrev(tracer.jacfwd(loop)))),
        lambda x: tracer.jvp(tracer.grad(loop), (x,), (direction,))[1],
        lambda x: tracer.linearize(tracer.grad(loop), x)[1](direction),
    ]
    for derivative in (*derivatives, *(others if THOROUGH else others[:2])):
        expected = np.asarray(limited(lambda derivative=derivative: derivative(v), None))
        np.testing.assert_allclose(
            np.asarray(limited(lambda derivative=derivative: derivative(v))), expected, rtol=1e-12
        )


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["outside jit", "jit"])
def test_rules_for_reverse_mode_only_are_enough_for_a_gradient(way: Any) -> None:
    @tracer.custom_vjp
    def tripled(x: Any) -> Any:
        return x * x

    tripled.defvjp(lambda x: (x * x, x), lambda x, ct: (3.0 * x * ct,))

    def loop(a: Any) -> Any:
        return tracer.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, tripled(c[1]) * a), (0, a))[1]

    assert float(limited(lambda: way(tracer.grad(loop))(0.9))) == pytest.approx(
        float(limited(lambda: way(tracer.grad(loop))(0.9), None)), rel=1e-14
    )


def test_mixed_derivatives_in_what_the_first_held_fixed() -> None:
    def loop(x: Any, w: Any) -> Any:
        steps = tnp.floor(w * 30).astype(int)
        return tracer.lax.fori_loop(0, steps, lambda i, s: tnp.sin(s * w) + 0.1 * s, x)

    mixed = tracer.grad(tracer.grad(loop, 0), 1)
    for order in (mixed, tracer.grad(tracer.grad(loop, 1), 0)):
        expected = float(limited(lambda order=order: order(0.7, 1.4), None))
        assert float(limited(lambda order=order: order(0.7, 1.4))) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("memory", [1, 200, 3000, 10**6])
def test_every_length_and_limit_give_the_closed_form(memory: int) -> None:
    """x -> x - h x^2 has dx_n/dx_0 as the product of 1 - 2 h x; one chunk, several, thinned and divided segments."""
    h = 1e-3

    def run(x: Any, steps: Any) -> Any:
        return tracer.lax.while_loop(lambda c: c[0] < steps, lambda c: (c[0] + 1, c[1] - h * c[1] ** 2), (0, x))[1]

    derivative = tracer.jit(tracer.value_and_grad(run))
    for steps in (0, 1, 2, 7, 33, 100, 1000, *([20_000] if memory >= 200 else [])):  # else quadratic time
        expected, x = 1.0, 1.5
        for _ in range(steps):
            expected, x = expected * (1 - 2 * h * x), x - h * x * x
        found = limited(lambda steps=steps: derivative(1.5, steps), memory)
        assert tuple(map(float, found)) == pytest.approx((x, expected), rel=1e-11), steps


def taken(function: Function, argument: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, int]:
    """The result, and the bytes of the growable stacks and temporaries of one call; stacks never shrink."""
    lowered = tracer.jit(function).lower(argument)
    program, captured = lowered.program(), [np.asarray(array) for array in lowered._traced.captured]
    scheduled, runnable = compiled(program)
    bytes_taken: list[int] = []
    free = ctypes_executable._free_stacks

    def watch(stacks: Any) -> None:
        bytes_taken.append(sum(stack.capacity for stack in stacks))
        free(stacks)

    monkeypatch.setattr(ctypes_executable, "_free_stacks", watch)
    (result,) = call(scheduled, runnable, program, [*captured, np.array(argument)])
    monkeypatch.undo()
    return float(result), bytes_taken[0] + scheduled.module.arena


@pytest.mark.parametrize("order", [1, 2])
def test_the_limit_holds(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """30,000 steps keep megabytes without a limit; with one, no more than it for each time that is differentiated."""
    memory = 2**17

    def decay(x: Any) -> Any:
        return tracer.lax.while_loop(lambda c: c[0] < 30_000, lambda c: (c[0] + 1, c[1] - 1e-4 * c[1] ** 2), (0, x))[1]

    derivative = tracer.grad(decay) if order == 1 else tracer.grad(tracer.grad(decay))
    expected, unlimited = limited(lambda: taken(derivative, 1.5, monkeypatch), None)
    found, bounded = limited(lambda: taken(derivative, 1.5, monkeypatch), memory)
    assert found == pytest.approx(expected, rel=1e-9)
    assert unlimited > 2 * memory
    assert bounded <= order * memory


@tracer.custom_jvp
def sine(x: Any) -> Any:
    return tnp.sin(x)


@tracer.custom_vjp
def square(x: Any) -> Any:
    return x * x


sine.defjvps(lambda dx, y, x: tnp.cos(x) * dx)
square.defvjp(lambda x: (x * x, x), lambda x, ct: (2.0 * x * ct,))


HIGHER: dict[str, Callable[[Function], Function]] = {
    "grad of grad": lambda f: tracer.grad(tracer.grad(f)),
    "hessian": tracer.hessian,
    "third": lambda f: tracer.grad(tracer.grad(tracer.grad(f))),
    "jacfwd of hessian": lambda f: tracer.jacfwd(tracer.jacfwd(tracer.jacrev(f))),
}


@pytest.mark.parametrize(("rule", "derivative"), covering([sine, square, tracer.nn.relu, tnp.tanh], HIGHER))
def test_the_limit_holds_for_higher_derivatives(
    rule: Function, derivative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flow(x: Any) -> Any:
        step = lambda c: (c[0] + 1, c[1] - 1e-4 * rule(c[1]) * c[1] * x)  # noqa: E731
        return tracer.lax.while_loop(lambda c: c[0] < 30_000, step, (0, x))[1]

    memory, function = 2**17, HIGHER[derivative](flow)
    expected, unlimited = limited(lambda: taken(function, 1.5, monkeypatch), None)
    found, bounded = limited(lambda: taken(function, 1.5, monkeypatch), memory)
    assert found == pytest.approx(expected, rel=1e-9)
    assert bounded <= 2 * memory < unlimited


MIXED: dict[str, Callable[[Function], Function]] = {
    "in what entered": lambda f: lambda x: tracer.grad(lambda w: tracer.grad(f)(x, w))(1.2),
    "in a constant": lambda f: lambda w: tracer.grad(lambda x: tracer.grad(f, 1)(x, w))(1.5),
    "twice": lambda f: lambda x: tracer.grad(lambda w: tracer.grad(tracer.grad(f))(x, w))(1.2),
    "forwards": lambda f: lambda x: tracer.jvp(lambda w: tracer.grad(f)(x, w), (1.2,), (1.0,))[1],
    "of what it moved": lambda f: tracer.grad(lambda x: tracer.grad(lambda w: tracer.grad(f)(x, w))(1.2)),
}


@pytest.mark.parametrize(("rule", "derivative"), covering([sine, square, tnp.sin], MIXED))
def test_the_limit_holds_for_mixed_derivatives(
    rule: Function, derivative: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Derivatives in what the first held fixed."""

    def flow(x: Any, w: Any) -> Any:
        step = lambda c: (c[0] + 1, c[1] - 1e-4 * rule(c[1]) * c[2], c[2] - 1e-5 * w)  # noqa: E731
        return tracer.lax.while_loop(lambda c: c[0] < 30_000, step, (0, x, tnp.cos(w)))[1]

    memory, function = 2**17, MIXED[derivative](flow)
    expected, unlimited = limited(lambda: taken(function, 1.3, monkeypatch), None)
    found, bounded = limited(lambda: taken(function, 1.3, monkeypatch), memory)
    assert found == pytest.approx(expected, rel=1e-9)
    assert bounded <= 2 * memory < unlimited


@pytest.mark.parametrize("order", [1, 2])
def test_the_limit_holds_for_counted_loops_of_known_length(order: int) -> None:
    """Bounds that are Python integers, or known since the loop runs outside jit, change nothing of that."""

    def flow(x: Any, steps: Any) -> Any:
        return tracer.lax.fori_loop(0, steps, lambda i, y: y - 1e-3 * y * y, x, memory=4096)

    derivative: Any = flow
    for _ in range(order):
        derivative = tracer.grad(derivative)
    for known in (lambda x: derivative(x, 1000), tracer.jit(lambda x: derivative(x, 1000))):
        assert float(known(1.5)) == pytest.approx(float(tracer.jit(derivative)(1.5, 1000)), rel=1e-12)
    program = tracer.make_program(lambda x: derivative(x, 1000))(1.5)
    assert all(v.type.shape == () for e in equations(program) for v in e.outputs)


def test_a_limited_loop_hands_no_stack_to_its_derivative() -> None:
    """Its residuals are what entered it, so that loops, branches and calls may hold it."""

    def stacks(memory: int | None) -> int:
        program = limited(lambda: tracer.jit(pendulum).lower(1.3).program(), memory)
        split = linearize_program(program, tuple(map(is_differentiable, program.input_types)))
        return sum(isinstance(type, StackType) for type in split.forward.output_types)

    assert stacks(SMALL) == 0 < stacks(None)


def test_the_limit_is_a_number_of_bytes() -> None:
    with config.using(loop_memory="64 MiB"):
        assert config.loop_memory == 2**26
    with pytest.raises(SettingError, match=r"^config.loop_memory does not take '3 apples'\n"):
        config.update("loop_memory", "3 apples")
    with pytest.raises(ArgumentError) as caught:
        tracer.lax.while_loop(lambda x: x < 1.0, lambda x: x + 1.0, 0.0, memory=-1)
    assert "memory does not take -1" in str(caught.value)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["outside jit", "jit"])
def test_loops_that_call_out_do_not_run_again_to_save_memory(way: Any) -> None:
    seen: list[int] = []

    def f(x: Any, n: Any) -> Any:
        def step(state: Any) -> Any:
            tracer.debug.callback(lambda i: seen.append(int(i)), state[0])
            return state[0] + 1, tnp.sin(state[1]) + x

        return tracer.lax.while_loop(lambda state: state[0] < n, step, (0, x))[1]

    with tracer.config.using(loop_memory=256):
        way(tracer.grad(f))(0.5, 100)
    assert seen == list(range(100))
