"""A step of the agent of `tracer.examples.cart_pole` in both libraries, on pushes that a fresh agent made."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from beside_torch.pair import Pair, loaded
from tracer import jit, lax, optim, random, tree, value_and_grad
from tracer import numpy as tnp
from tracer.examples import cart_pole
from tracer.examples.cart_pole import BONUS, CLIP, PARTS, PUSHES, WORLDS, Agent, Played, Worlds

RATE = 3e-3


class TorchAgent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = self.network(2), self.network(1)

    @staticmethod
    def network(results: int) -> torch.nn.Sequential:
        nn = torch.nn
        return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, results))

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.actor(state), self.critic(state)[..., 0]


def torch_loss(agent: TorchAgent, played: Played, advantage: torch.Tensor) -> torch.Tensor:
    logits, value = agent(played.state)
    log_p = functional.log_softmax(logits, dim=-1)
    ratio = torch.exp(log_p.gather(-1, played.action[..., None])[..., 0] - played.likelihood)
    gain = (advantage - advantage.mean()) / torch.sqrt(advantage.var(correction=0) + 1e-5)
    actor = -torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
    critic = ((value - (played.value + advantage)) ** 2).mean()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return actor + 0.5 * critic - BONUS * entropy


def batches(agent: Agent) -> list[tuple[Any, ...]]:
    """Pushes of a lesson's batches: the fields of `Played`, and the advantage."""
    key = random.key(0)
    start = Worlds(cart_pole.fresh(key, WORLDS), tnp.zeros(WORLDS, "int32"))
    worlds, played = lax.scan(lambda w, k: cart_pole.play(agent, w, k), start, random.split(key, PUSHES))
    whole = (*played, cart_pole.advantages(played, agent(worlds.state)[1]))
    parts = np.split(np.arange(WORLDS), PARTS)
    return [tuple(np.asarray(x)[:, part] for x in whole) for part in parts]


def pair() -> Pair:
    torch.manual_seed(0)
    torch_agent = TorchAgent()
    parts = {f"{name}.{2 * n}": f"{name}.layers.{n}" for name in ("actor", "critic") for n in range(3)}
    agent = loaded(Agent(key=random.key(0)), torch_agent, parts)
    tx = optim.chain(optim.clip_by_global_norm(0.5), optim.adam(RATE))

    @jit(donate_argnums=(0, 1))
    def update(agent: Agent, opt: Any, played: Played, advantage: Any) -> tuple[Agent, Any, Any]:
        value, slopes = value_and_grad(cart_pole.loss)(agent, played, advantage)
        updates, opt = tx.update(slopes, opt, agent)
        return optim.apply_updates(agent, updates), opt, value

    run = [tree.map(lambda x: tnp.asarray(x, copy=True), agent), tx.init(agent)]

    def ours(*batch: Any) -> float:
        run[0], run[1], value = update(*run, Played(*batch[:-1]), batch[-1])
        return float(value)

    adam = torch.optim.Adam(torch_agent.parameters(), RATE)

    def theirs(*batch: Any) -> float:
        *played, advantage = map(torch.from_numpy, batch)
        value = torch_loss(torch_agent, Played(*played), advantage)
        adam.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(torch_agent.parameters(), 0.5)
        adam.step()
        return value.item()

    return Pair(ours, theirs, batches(agent), ([Agent, cart_pole.loss, update, ours], [TorchAgent, torch_loss, theirs]))


PAIRS = {"cart-pole, PPO, 8,192 pushes": pair}
