"""Two models of text, character by character: an LSTM and a GPT learn the documentation that Python ships.

Both take tokens and a state of the text before, and return logits of the next token at every place. So one loss, one
measure and one sampler serve both. `python -m tracer.examples.characters` trains and writes some text.
"""

from __future__ import annotations

import argparse
import math
import pydoc_data.topics
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tracer import data, jit, lax, logs, nn, optim, random, value_and_grad

BATCH, LENGTH = 16, 64  # windows of a batch, and characters that each predicts
STEPS = {"lstm": 1_500, "gpt": 3_000}
RATES = {"lstm": 4e-3, "gpt": 2e-3}


class Text(NamedTuple):
    """Text as tokens, uint8 [n], places in the alphabet; the last tenth is held out."""

    train: Any
    held_out: Any
    alphabet: str

    def decode(self, tokens: Any) -> str:
        """Return the text of tokens [n]."""
        return "".join(self.alphabet[token] for token in np.asarray(tokens).tolist())

    def encode(self, text: str) -> Any:
        """Return the tokens of a text, uint8 [n]. Raises ValueError for characters that do not occur."""
        return np.array([self.alphabet.index(character) for character in text], np.uint8)


def load() -> Text:
    """Return the topics of Python's help(): half a million characters of some hundred kinds.

    >>> text = load()
    >>> text.decode(text.encode("The with statement"))
    'The with statement'
    """
    text = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    codes, tokens = np.unique(np.frombuffer(text.encode("utf-32-le"), np.uint32), return_inverse=True)
    train, held_out = np.split(tokens.astype(np.uint8), [len(tokens) * 9 // 10])
    return Text(train, held_out, "".join(map(chr, codes.tolist())))


class LSTM(nn.Module):
    """Long short-term memory: tokens [b, t] to logits [b, t, kinds], and a state of 2 × 256 numbers."""

    def __init__(self, kinds: int, dim: int = 256, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.embed, self.lstm = nn.Embedding(kinds, dim, key=next(keys)), nn.LSTM(dim, dim, key=next(keys))
        self.head = nn.Linear(dim, kinds, key=next(keys))

    def __call__(self, tokens: Any, before: Any = None) -> tuple[Any, Any]:
        y, state = self.lstm(self.embed(tokens), before)
        return self.head(y), state

    def start(self, batch: int, most: int) -> Any:
        return self.lstm.init(batch)


class GPT(nn.Module):
    """Transformer: tokens [b, t] to logits [b, t, kinds], and the keys and values of each block."""

    def __init__(self, kinds: int, dim: int = 128, heads: int = 4, depth: int = 4, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.embed = nn.Embedding(kinds, dim, scale=0.02, key=next(keys))
        seen = LENGTH - 1  # before a character, also in text that is longer than the windows it learns from
        self.blocks = [nn.TransformerBlock(dim, heads, rope=1e4, window=seen, key=next(keys)) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim)

    def __call__(self, tokens: Any, before: Any = None) -> tuple[Any, Any]:
        x, caches = self.embed(tokens), []
        for n, block in enumerate(self.blocks):
            if before is None:
                x = block(x, causal=True)
            else:
                x, cache = block(x, causal=True, cache=before[n])
                caches.append(cache)
        return self.embed.attend(self.norm(x)), caches

    def start(self, batch: int, most: int) -> Any:
        return [block.attention.cache(batch, most) for block in self.blocks]


MODELS: dict[str, Callable[..., Any]] = {"lstm": LSTM, "gpt": GPT}


def loss(model: Any, windows: Any) -> Any:
    """Return the mean cross-entropy in nats of all characters but the first of each window [b, t + 1]."""
    logits, _ = model(windows[:, :-1])
    return nn.cross_entropy(logits, windows[:, 1:]).mean()


def optimiser(name: str, steps: int) -> optim.GradientTransformation:
    """Return AdamW, its rate warmed up and then falling to 0, with gradients clipped to norm 1."""
    rate = optim.warmup_cosine_decay_schedule(0.0, RATES[name], max(steps // 20, 1), max(steps, 2))
    return optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=0.01, mask="matrices"))


def stepper(loss: Callable[..., Any], tx: optim.GradientTransformation) -> Callable[..., Any]:
    """Return a compiled step of training by loss(model, batch) with the optimiser `tx`."""

    @jit(donate_argnums=(0, 1))
    def step(model: Any, opt: Any, batch: Any) -> tuple[Any, Any, Any]:
        value, slopes = value_and_grad(loss)(model, batch)
        updates, opt = tx.update(slopes, opt, model)
        return optim.apply_updates(model, updates), opt, value

    return step


def train(name: str, text: Text, *, steps: int, seed: int = 0, **sizes: int) -> Any:
    """Return a model, "lstm" or "gpt", that was trained for a number of steps on windows of the text.

    sizes: of the model, such as dim.
    """
    of_model, of_data = random.split(random.key(seed))
    windows = data.Loader(data.Windows(text.train, LENGTH + 1), BATCH, key=of_data)
    tx, model = optimiser(name, steps), MODELS[name](len(text.alphabet), **sizes, key=of_model)
    step, opt = stepper(loss, tx), tx.init(model)
    for batch in logs.progress(islice(windows, steps), steps):
        model, opt, _ = step(model, opt, batch)
    return model


def bits(model: Any, tokens: Any) -> float:
    """Return bits a character of tokens [n], predicted from earlier tokens in windows of 64."""
    windows = data.Windows(tokens, LENGTH + 1, stride=LENGTH)
    return float(jit(loss)(model, windows[np.arange(len(windows))])) / math.log(2)


@jit(static_argnames="count")
def generate(model: Any, prompt: Any, key: Any, *, count: int, temperature: float = 0.7) -> Any:
    """Return `count` tokens that the model draws after each prompt [b, t], [b, count]: one program, token by token."""
    logits, before = model(prompt, model.start(len(prompt), prompt.shape[1] + count))

    def one(carry: Any, key: Any) -> Any:
        last, before = carry
        token = random.categorical(key, last / temperature).astype(prompt.dtype)
        logits, before = model(token[:, None], before)
        return (logits[:, -1], before), token

    return lax.scan(one, (logits[:, -1], before), random.split(key, count))[1].T


def main(*, model: str = "gpt", steps: int | None = None, seed: int = 0) -> float:
    """Train a model, print a text that it writes, and return its bits a character on the part held out."""
    text = load()
    found = train(model, text, steps=STEPS[model] if steps is None else steps, seed=seed)
    written = generate(found, text.encode("The with statement")[None], random.key(seed), count=400)
    print("The with statement", text.decode(written[0]), sep="")
    reached = bits(found, text.held_out)
    print(f"{model}: {reached:.3f} bits a character")
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="gpt")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
