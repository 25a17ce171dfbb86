"""The cart-pole obeys its equations of motion, advantages are discounted sums, and the agent learns to balance."""

from __future__ import annotations

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import random
from tracer.examples import cart_pole


def test_a_push_accelerates_as_the_mass_matrix_says(rng: np.random.Generator) -> None:
    states = rng.uniform(-1, 1, (50, 4))
    actions = rng.integers(0, 2, 50)
    after = np.asarray(cart_pole.pushed(tnp.asarray(states), actions))
    m, length = cart_pole.POLE, cart_pole.HALF
    for (x, v, angle, spin), action, found in zip(states, actions, after, strict=True):
        coupling = m * length * np.cos(angle)
        masses = [[cart_pole.CART + m, coupling], [coupling, 4 / 3 * m * length**2]]
        force = cart_pole.FORCE * (2 * action - 1) + m * length * spin**2 * np.sin(angle)
        pull, turn = np.linalg.solve(masses, [force, m * length * cart_pole.GRAVITY * np.sin(angle)])
        np.testing.assert_allclose((found - [x, v, angle, spin]) / cart_pole.DT, [v, pull, spin, turn], rtol=1e-9)


def test_advantages_are_sums_of_discounted_surprises_up_to_the_end(rng: np.random.Generator) -> None:
    value, reward = rng.standard_normal((2, 6, 3))
    down, late = rng.random((2, 6, 3)) < 0.2
    last = rng.standard_normal(3)
    found = cart_pole.advantages(cart_pole.Played(None, None, None, value, reward, down, late), last)
    after = np.concatenate([value[1:], last[None]])
    for world in range(3):
        for start in range(6):
            wanted, weight = 0.0, 1.0
            for t in range(start, 6):
                goes_on = not (down[t, world] or late[t, world])
                wanted += weight * (reward[t, world] + 0.99 * after[t, world] * goes_on - value[t, world])
                weight *= 0.99 * 0.95 * goes_on
            assert float(found[start, world]) == pytest.approx(wanted)


def test_the_agent_learns_to_balance(seed: int) -> None:
    agent, falls = cart_pole.train(random.key(seed), steps=40, worlds=256)
    assert falls[0] > 25 > 3 > falls[-1]
    assert cart_pole.score(agent, random.key(seed + 1), worlds=256) > 400
