"""New names for characters that Unicode lacks: a recurrent network learns the names that exist.

Names are rows of tokens, padded to one length; padding costs nothing, and a name is drawn character by character until
it ends. `python -m tracer.examples.names` trains and writes some names.
"""

from __future__ import annotations

import argparse
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tracer import data, jit, lax, logs, nn, optim, random
from tracer.examples.characters import stepper

ALPHABET = "\n -0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # names stand between line ends, whose token is 0
LONGEST, PADDING = 48, -1  # characters of a name; token behind its end
HIDDEN, BATCH, RATE, STEPS = 256, 64, 4e-3, 1_500
NUMBERED = re.compile(r"-[0-9A-F]{4,}$|^HANGUL SYLLABLE ")  # names that a rule makes


def load() -> list[str]:
    """Return the names of all characters up to 48 letters long, without names that only number a character."""
    names = (unicodedata.name(chr(code), "") for code in range(0x110000))
    return [name for name in names if 0 < len(name) <= LONGEST and not NUMBERED.search(name)]


def split(names: Sequence[str], key: Any) -> tuple[list[str], list[str]]:
    """Return names to train on, and a tenth that is held out, by chance."""
    order = np.asarray(random.permutation(key, len(names)))
    held_out, train = np.split(order, [len(names) // 10])
    return [names[n] for n in train], [names[n] for n in held_out]


def encode(names: Sequence[str]) -> Any:
    """Return names as tokens between line ends, int8 [n, 50], padded.

    >>> encode(["AB"])[0, :5].tolist()
    [0, 13, 14, 0, -1]
    """
    rows = np.full((len(names), LONGEST + 2), PADDING, np.int8)
    for row, name in zip(rows, names, strict=True):
        row[: len(name) + 2] = [ALPHABET.index(character) for character in f"\n{name}\n"]
    return rows


class Namer(nn.Module):
    """A gated recurrent unit, from tokens [b, t] to logits of each next token, [b, t, 39], and state [1, b, 256]."""

    def __init__(self, hidden: int = HIDDEN, *, key: Any) -> None:
        keys, kinds = nn.Keys(key), len(ALPHABET)
        self.embed, self.gru = nn.Embedding(kinds, hidden, key=next(keys)), nn.GRU(hidden, hidden, key=next(keys))
        self.head = nn.Linear(hidden, kinds, key=next(keys))

    def __call__(self, tokens: Any, state: Any = None) -> tuple[Any, Any]:
        y, state = self.gru(self.embed(tokens), state)
        return self.head(y), state


def loss(model: Namer, rows: Any) -> Any:
    """Return the mean cross-entropy in nats of the characters and ends of padded names [b, 50]."""
    logits, _ = model(tnp.maximum(rows[:, :-1], 0))
    wanted = rows[:, 1:]
    return nn.cross_entropy(logits, wanted, ignore=PADDING).sum() / (wanted != PADDING).sum()


def train(names: Sequence[str], *, steps: int = STEPS, seed: int = 0, hidden: int = HIDDEN) -> Namer:
    """Return a network that was trained for a number of steps on names."""
    of_model, of_data = random.split(random.key(seed))
    loader = data.Loader(encode(names), BATCH, key=of_data)
    tx = optim.chain(
        optim.clip_by_global_norm(1.0),
        optim.adamw(optim.cosine_decay_schedule(RATE, steps), weight_decay=0.01, mask="matrices"),
    )
    step, model = stepper(loss, tx), Namer(hidden, key=of_model)
    opt = tx.init(model)
    for batch in logs.progress(islice(loader, steps), steps):
        model, opt, _ = step(model, opt, batch)
    return model


def bits(model: Namer, names: Sequence[str]) -> float:
    """Return bits a character, ends included."""
    return float(jit(loss)(model, encode(names))) / math.log(2)


@jit(static_argnames="count")
def draw(model: Namer, key: Any, prompt: Any, *, count: int, temperature: float = 0.8) -> Any:
    """Return tokens [count, 48] that the model draws after a prompt [t]; a name ends at the first 0."""
    logits, state = model(tnp.broadcast_to(prompt, (count, len(prompt))))

    def one(carry: Any, key: Any) -> Any:
        last, state = carry
        token = random.categorical(key, last / temperature)
        logits, state = model(token[:, None], state)
        return (logits[:, -1], state), token

    return lax.scan(one, (logits[:, -1], state), random.split(key, LONGEST))[1].T


def invent(model: Namer, key: Any, *, beginning: str = "", count: int = 10) -> list[str]:
    """Return names that begin in a given way."""
    prompt = np.array([ALPHABET.index(character) for character in f"\n{beginning}"], np.int8)
    rows = np.asarray(draw(model, key, prompt, count=count)).tolist()
    return [beginning + "".join(ALPHABET[token] for token in row).partition("\n")[0] for row in rows]


def counting_bits(train: Iterable[str], held_out: Iterable[str], order: int = 5) -> float:
    """Return bits a character of a model that counts the characters after the last `order` - 1 characters.

    Shorter contexts fill in where longer ones are rare, as Witten & Bell 1991, IEEE Trans. Inf. Theory 37(4).
    """
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in train:
        for n, character in enumerate(text := f"{name}\n"):
            for length in range(min(order - 1, n) + 1):
                seen[text[n - length : n]][character] += 1
    nats, count = 0.0, 0
    for name in held_out:
        for n, character in enumerate(text := f"{name}\n"):
            share = 1 / len(ALPHABET)
            for length in range(min(order - 1, n) + 1):
                if found := seen.get(text[n - length : n]):
                    share = (found[character] + len(found) * share) / (found.total() + len(found))
            nats, count = nats - math.log(share), count + 1
    return nats / count / math.log(2)


def main(*, steps: int = STEPS, seed: int = 0) -> float:
    """Train, print invented names, and return bits a character on names that are held out."""
    names, held_out = split(load(), random.key(seed))
    model = train(names, steps=steps, seed=seed)
    known = set(load())
    print(*(f"  {name}" for name in invent(model, random.key(seed), count=12) if name not in known), sep="\n")
    reached = bits(model, held_out)
    print(f"{reached:.3f} bits a character; counting five characters gives {counting_bits(names, held_out):.3f}")
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
