"""What loops keep for their derivatives: no more bytes than a minimum cut needs, and the same gradients."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import lax
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.program import Program, Var
from tracer.ir.types import size
from tracer.primitives.control.reverse import rematerialization
from tracer.primitives.control.reverse.rematerialization import economical
from tracer.transforms.linearize import linearize_program

X = np.random.default_rng(1).standard_normal((4, 16))


def split_of(body: Callable[..., Any], *xs: Any) -> LinearizedProgram:
    """The body linearised in its first argument, its carry."""
    program = tracer.make_program(body)(*xs)
    return linearize_program(program, (True,) + (False,) * (len(xs) - 1), (True,), nested=True)


def kept_bytes(split: LinearizedProgram, free: tuple[bool, ...]) -> int:
    """What a step writes for its linear part."""
    total = 0
    for (kind, position), atom in zip(split.sources, split.residual_atoms(), strict=True):
        if kind == "input" and free[position]:
            continue
        total += size(atom.type) * atom.type.dtype.itemsize
    return total


@each(
    ("body", "wanted"),
    [
        (lambda x: x * tnp.roll(x, 1, 0) * 2, X.nbytes),  # x alone, not its rolled copy
        (tnp.sin, X.nbytes),  # a cosine
        (lambda x: (x * x + 1) * (x - 3) * (2 * x), X.nbytes),  # sums and products of x
        (lambda x: x * tnp.sum(x, 1, keepdims=True), X.nbytes + 8 * 4),  # the sum, not its broadcast
        (lambda x: tnp.where(x > 0, x, 0) * 3, X.size),  # one byte an element
        (lambda x: x[:1] * x, X.nbytes),
        (lambda x: tnp.exp(x) * x, 2 * X.nbytes),  # functions are not computed again
        (lambda x: tnp.tanh(x + 1) - x, X.nbytes),
    ],
)
def test_no_more_is_kept_than_must_be(body: Callable[..., Any], wanted: int) -> None:
    assert kept_bytes(economical(split_of(body, X), 1, (False,)), (False,)) == wanted


def test_what_comes_back_anyway_is_not_kept() -> None:
    """Constants, slices of xs and what is made of them cheaply."""
    split = economical(split_of(lambda x, a, b: x * (a + b) * tnp.roll(a, 1, 1), X, X, X), 1, (False, True, True))
    assert kept_bytes(split, (False, True, True)) == 0


def test_what_is_an_output_of_every_step_is_not_kept_in_parts() -> None:
    """The product of two of its rows is made again of the output itself."""

    def body(x: Any) -> Any:
        y = tnp.exp(lax.stop_gradient(x))
        return x * (y[:1] * y[1:2]), y

    split = economical(linearize_program(tracer.make_program(body)(X), (True,), (True, True), nested=True), 1, (False,))
    assert [kind for kind, _ in split.sources] == ["output"]


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x * tnp.roll(x, 1, 0) * 0.3,
        lambda x: (x * x + 1) * (x - 3) * 0.01,
        lambda x: x * tnp.sum(x, 1, keepdims=True) * 0.1,
        lambda x: tnp.where(x > 0, tnp.sin(x) * x, x * x),
        lambda x: tnp.pad(x[1:], ((1, 0), (0, 0))) * x.T.reshape(4, 16) + 0.1,
        lambda x: tnp.tanh(x @ tnp.ones((16, 16)) * 0.1) + x,
    ],
)
def test_gradients_of_loops_are_those_of_their_steps_written_out(step: Callable[..., Any]) -> None:
    def written_out(x: Any) -> Any:
        for _ in range(3):
            x = step(x)
        return tnp.sum(x**2)

    def counted(n: Any, x: Any) -> Any:
        return tnp.sum(lax.fori_loop(0, n, lambda i, u: step(u), x) ** 2)

    loops = [
        lambda x: tnp.sum(lax.scan(lambda u, _: (step(u), None), x, None, length=3)[0] ** 2),
        lambda x: counted(3, x),
        lambda x: tracer.jit(counted)(3, x),
        lambda x: tnp.sum(lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])), (0, x))[1] ** 2),
    ]
    wanted = np.asarray(tracer.grad(written_out)(X))
    turned = np.asarray(tracer.jvp(tracer.grad(written_out), (X,), (X,))[1])
    for loop in loops:
        for derive in (tracer.grad, lambda f: tracer.jit(tracer.grad(f))):
            np.testing.assert_allclose(np.asarray(derive(loop)(X)), wanted, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            np.asarray(tracer.jvp(tracer.grad(loop), (X,), (X,))[1]), turned, rtol=1e-9, atol=1e-9
        )


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_the_cut_is_a_minimum(seed: int) -> None:
    """Of all choices of values to keep, none costs less."""
    drawn = random.Random(seed)  # NumPy's numbers in a traced function warn

    def body(x: Any) -> Any:
        values = [x, x[0]]
        for _ in range(drawn.randrange(2, 6)):
            a, b = (values[drawn.randrange(len(values))] for _ in range(2))
            kind = drawn.randrange(5)
            values.append((a + b, a * b, tnp.sin(a), tnp.broadcast_to(a, (4, 16)), a * 2)[kind])
        return values[-1] * values[-2]

    split = split_of(body, X)
    forward: Program = split.forward
    wanted = {a for a in split.residual_atoms() if isinstance(a, Var)}
    costs = {e.outputs[0]: rematerialization._repeating_costs(e) for e in forward.equations}
    definition = {e.outputs[0]: e for e in forward.equations}

    def price(kept: set[Var]) -> float:
        total, needed, waiting = 0.0, set(wanted), list(wanted)
        while waiting:
            variable = waiting.pop()
            if variable in kept:
                continue
            again = costs.get(variable)
            if again is None:
                return float("inf")
            total += again
            for atom in definition[variable].inputs:
                if isinstance(atom, Var) and atom not in needed:
                    needed.add(atom)
                    waiting.append(atom)
        return total + sum(rematerialization._moved_bytes(v) for v in kept)

    near, waiting = set(wanted), list(wanted)
    while waiting:
        variable = waiting.pop()
        above = definition[variable].inputs if costs.get(variable) is not None else ()
        waiting += [a for a in above if isinstance(a, Var) and a not in near]
        near.update(waiting)
    assume(len(near) <= 12)
    choices = itertools.chain.from_iterable(itertools.combinations(near, n) for n in range(len(near) + 1))
    found = rematerialization._cheapest(forward, wanted, set())
    assert price(found) == min(price(set(choice)) for choice in choices)
