"""A pole balanced on a cart by proximal policy optimisation: 1,024 worlds, the agent and its training in one program.

The cart is pushed left or right fifty times a second. An episode ends when the pole tilts by 12 degrees, when the cart
is 2.4 m away, or after 500 pushes. Barto, Sutton & Anderson 1983, IEEE Trans. SMC 13; Schulman et al. 2017,
arXiv:1707.06347. `python -m tracer.examples.cart_pole` runs it.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, nn, optim, random, tree, value_and_grad, vmap

GRAVITY, CART, POLE, HALF, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02  # m/s², kg, kg, m (half the pole), N, s
FAR, TILT, LONGEST = 2.4, 0.2094, 500  # m, rad, pushes
WORLDS, PUSHES = 1024, 32  # that are played between two lessons
EPOCHS, PARTS = 4, 4  # a lesson: how often the pushes are learnt from, in how many batches
DISCOUNT, TRACE, CLIP, BONUS = 0.99, 0.95, 0.2, 0.01  # γ and λ of the advantages, ε of the ratio, weight of the entropy


class Agent(nn.Module):
    """The logits of both pushes, and the value of a state: float32 [..., 4] to [..., 2] and [...]."""

    def __init__(self, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.actor = nn.MLP([4, 64, 64, 2], activation=nn.tanh, key=next(keys))
        self.critic = nn.MLP([4, 64, 64, 1], activation=nn.tanh, key=next(keys))

    def __call__(self, state: Any) -> tuple[Any, Any]:
        return self.actor(state), self.critic(state)[..., 0]


class Worlds(NamedTuple):
    """state: place, speed, angle and spin, float32 [n, 4]; age: pushes since the start, int32 [n]."""

    state: Any
    age: Any


class Played(NamedTuple):
    """Pushes [t, n] with the states before them, float32 [t, n, 4], their likelihoods and values, and their results."""

    state: Any
    action: Any  # 0 for left, 1 for right
    likelihood: Any  # logarithm of the action's probability
    value: Any  # of the state, as the critic saw it
    reward: Any
    down: Any  # whether the pole fell
    late: Any  # whether the episode was cut off


def fresh(key: Any, count: int) -> Any:
    """Return states near the upright one, float32 [count, 4]."""
    return random.uniform(key, (count, 4), "float32", -0.05, 0.05)


def pushed(state: Any, action: Any) -> Any:
    """Return the states [..., 4] one push later, by Euler's method. action: 0 for left, 1 for right, [...]."""
    x, v, angle, spin = tnp.moveaxis(state, -1, 0)
    force, mass = tnp.where(action == 1, FORCE, -FORCE), CART + POLE
    cos, sin = tnp.cos(angle), tnp.sin(angle)
    thrust = (force + POLE * HALF * spin**2 * sin) / mass
    turn = (GRAVITY * sin - cos * thrust) / (HALF * (4.0 / 3.0 - POLE * cos**2 / mass))
    pull = thrust - POLE * HALF * turn * cos / mass
    return tnp.stack([x + DT * v, v + DT * pull, angle + DT * spin, spin + DT * turn], axis=-1)


def fallen(state: Any) -> Any:
    """Return whether the cart is too far away or the pole too low, bool [...]."""
    return (tnp.abs(state[..., 0]) > FAR) | (tnp.abs(state[..., 2]) > TILT)


def play(agent: Agent, worlds: Worlds, key: Any) -> tuple[Worlds, Played]:
    """Push every cart once, as the agent draws; worlds that are over start again."""
    of_action, of_start = random.split(key)
    logits, value = agent(worlds.state)
    action = random.categorical(of_action, logits)
    likelihood = -nn.cross_entropy(logits, action)
    state, age = pushed(worlds.state, action), worlds.age + 1
    down, late = fallen(state), age == LONGEST
    # An episode cut off for its length would have gone on: the critic says for how long.
    reward = 1.0 + DISCOUNT * tnp.where(late & ~down, agent(state)[1], 0.0)
    over = down | late
    after = Worlds(tnp.where(over[:, None], fresh(of_start, len(state)), state), tnp.where(over, 0, age))
    return after, Played(worlds.state, action, likelihood, value, reward, down, late)


def advantages(played: Played, last: Any) -> Any:
    """Return by how much the pushes [t, n] went better than the critic thought: Schulman et al. 2016, arXiv:1506.02438.

    last: values of the states after the last push, [n].
    """
    after = tnp.concatenate([played.value[1:], last[None]])
    goes_on = 1.0 - (played.down | played.late)
    surprise = played.reward + DISCOUNT * after * goes_on - played.value

    def back(later: Any, now: tuple[Any, Any]) -> tuple[Any, Any]:
        advantage = now[0] + DISCOUNT * TRACE * now[1] * later
        return advantage, advantage

    return lax.scan(back, tnp.zeros_like(last), (surprise, goes_on), reverse=True)[1]


def loss(agent: Agent, played: Played, advantage: Any) -> Any:
    """Return the clipped objective of the actor, the critic's squared error, and a bonus for doubt, as one number."""
    logits, value = agent(played.state)
    ratio = tnp.exp(-nn.cross_entropy(logits, played.action) - played.likelihood)
    gain = nn.standardize(advantage, axis=None)
    actor = -tnp.minimum(ratio * gain, tnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
    critic = ((value - (played.value + advantage)) ** 2).mean()
    entropy = nn.cross_entropy(logits, nn.softmax(logits)).mean()
    return actor + 0.5 * critic - BONUS * entropy


@jit(static_argnames=("steps", "worlds"))
def train(key: Any, *, steps: int = 60, worlds: int = WORLDS, rate: float = 5e-3) -> tuple[Agent, Any]:
    """Return the agent after `steps` lessons, and the falls in a thousand pushes before each, float [steps]."""
    of_agent, of_start, of_lessons = random.split(key, 3)
    falling = optim.linear_schedule(rate, 0.0, steps * EPOCHS * PARTS)
    tx = optim.chain(optim.clip_by_global_norm(0.5), optim.adam(falling))
    agent = Agent(key=of_agent)

    def update(learner: tuple[Agent, Any], batch: tuple[Played, Any]) -> tuple[tuple[Agent, Any], Any]:
        agent, opt = learner
        value, slopes = value_and_grad(loss)(agent, *batch)
        updates, opt = tx.update(slopes, opt, agent)
        return (optim.apply_updates(agent, updates), opt), value

    def lesson(run: tuple[Agent, Any, Worlds], key: Any) -> tuple[tuple[Agent, Any, Worlds], Any]:
        agent, opt, here = run
        of_play, of_order = random.split(key)
        here, played = lax.scan(lambda w, k: play(agent, w, k), here, random.split(of_play, PUSHES))
        advantage = advantages(played, agent(here.state)[1])
        orders = vmap(lambda k: random.permutation(k, worlds))(random.split(of_order, EPOCHS))

        def learn(learner: tuple[Agent, Any], which: Any) -> tuple[tuple[Agent, Any], Any]:
            return update(learner, tree.map(lambda x: x[:, which], (played, advantage)))

        (agent, opt), _ = lax.scan(learn, (agent, opt), orders.reshape(EPOCHS * PARTS, worlds // PARTS))
        return (agent, opt, here), 1000 * played.down.mean()

    start = Worlds(fresh(of_start, worlds), tnp.zeros(worlds, "int32"))
    (agent, _, _), falls = lax.scan(lesson, (agent, tx.init(agent), start), random.split(of_lessons, steps))
    return agent, falls


@jit(static_argnames="worlds")
def score(agent: Agent, key: Any, *, worlds: int = WORLDS) -> tracer.Array:
    """Return how many pushes of 500 the likelier ones keep the pole up, on average over new worlds: float []."""

    def push(run: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], Any]:
        state, up = run
        state = pushed(state, agent(state)[0].argmax(axis=-1))
        up = up & ~fallen(state)
        return (state, up), up.mean()

    start = fresh(key, worlds), tnp.ones(worlds, bool)
    shares: tracer.Array = lax.scan(push, start, None, length=LONGEST)[1]
    return shares.sum()


def main(*, steps: int = 60, seed: int = 0) -> None:
    """Train an agent, and print how long it keeps the pole up. steps: lessons of 32,768 pushes."""
    agent, falls = train(random.key(seed), steps=steps)
    for lesson in range(0, steps, max(steps // 10, 1)):
        print(f"lesson {lesson:3}: {float(falls[lesson]):5.2f} falls in a thousand pushes")
    print(f"new worlds: up for {float(score(agent, random.key(seed + 1))):.1f} of {LONGEST} pushes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Balance a pole on a cart by proximal policy optimisation.")
    parser.add_argument("--steps", type=int, default=60, help="lessons of 32,768 pushes")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
