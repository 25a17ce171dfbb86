"""Digits that nobody wrote: an autoencoder of eight numbers and a diffusion model, with a classifier as the judge.

The autoencoder is variational (Kingma & Welling 2014, arXiv:1312.6114). The diffusion model is told which digit is
wanted, and takes noise away in steps (Ho et al. 2020, arXiv:2006.11239). The judge is the network of
`tracer.examples.training`. `python -m tracer.examples.generation` runs it.
"""

from __future__ import annotations

import argparse
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import tracer.numpy as tnp
from tracer import jit, lax, nn, optim, random, value_and_grad
from tracer.examples import components, digits, training

BATCH, STEPS, RATE = 128, 3000, 2e-3
CODE, LEVELS = 8, 100  # numbers of a code; levels of noise
SHARPNESS = 25.0  # of the autoencoder's pixels: 1 / (2 variance)
SURE = 0.9  # of the judge
SIGNAL = tnp.cos(0.5 * tnp.pi * tnp.linspace(0.02, 0.98, LEVELS)).astype("float32")
"""Weight of the image at each level; that of the noise is the sine. Nichol & Dhariwal 2021, arXiv:2102.09672."""


class Autoencoder(nn.Module):
    """Images float32 [b, 64] to normal distributions of codes [b, 8], and codes to images."""

    def __init__(self, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.encoder = nn.MLP([64, 256, 128, 2 * CODE], activation=nn.silu, key=next(keys))
        self.decoder = nn.MLP([CODE, 128, 256, 64], activation=nn.silu, key=next(keys))

    def encoded(self, x: Any) -> tuple[Any, Any]:
        """Return the mean and the logarithm of the standard deviation of the codes, [b, 8] each."""
        mean, spread = tnp.split(self.encoder(x), 2, axis=-1)
        return mean, spread

    def decoded(self, code: Any) -> Any:
        """Return the images [b, 64] of codes."""
        return nn.sigmoid(self.decoder(code))

    def loss(self, x: Any, _: Any, key: Any) -> Any:
        """Return how much the code of an image says, and how much of the image it does not, in nats."""
        mean, spread = self.encoded(x)
        code = mean + tnp.exp(spread) * random.normal(key, mean.shape, x.dtype)
        divergence = 0.5 * (mean**2 + tnp.exp(2 * spread) - 1) - spread  # from the normal distribution
        error = SHARPNESS * (self.decoded(code) - x) ** 2
        return (error.sum(-1) + divergence.sum(-1)).mean()

    def drawn(self, labels: Any, key: Any) -> Any:
        """Return images of normal codes; which digits they are is left to chance."""
        return self.decoded(random.normal(key, (len(labels), CODE), "float32"))


class Diffusion(nn.Module):
    """Noise in noisy images [b, 64], whose label and level of noise are known: float32 [b, 64]."""

    def __init__(self, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.label, self.level = (nn.Embedding(n, 64, key=next(keys)) for n in (10, LEVELS))
        self.inward = nn.Linear(64 + 64 + 64, 256, key=next(keys))
        self.middle = [nn.Residual(nn.LayerNorm(256), nn.MLP([256, 512, 256], key=next(keys))) for _ in range(2)]
        self.outward = nn.Linear(256, 64, key=next(keys))

    def __call__(self, x: Any, labels: Any, level: Any) -> Any:
        h = self.inward(tnp.concatenate([x, self.label(labels), self.level(level)], axis=-1))
        for layer in self.middle:
            h = layer(h)
        return self.outward(h)

    def loss(self, x: Any, labels: Any, key: Any) -> Any:
        """Return the error for noise of random levels."""
        of_level, of_noise = random.split(key)
        level = random.randint(of_level, labels.shape, 0, LEVELS)
        return self.error(x, labels, level, random.normal(of_noise, x.shape, x.dtype))

    def error(self, x: Any, labels: Any, level: Any, noise: Any) -> Any:
        """Return the mean squared error of the noise that is found in images with some of it."""
        signal = SIGNAL[level][:, None]
        noisy = signal * (2 * x - 1) + tnp.sqrt(1 - signal**2) * noise
        return ((self(noisy, labels, level) - noise) ** 2).mean()

    def drawn(self, labels: Any, key: Any) -> Any:
        """Return images of the digits `labels`, from noise alone in 100 steps: Song et al. 2021, arXiv:2010.02502."""

        def cleaner(x: Any, item: tuple[Any, Any, Any]) -> tuple[Any, None]:
            level, signal, next_signal = item
            noise = self(x, labels, tnp.full(labels.shape, level))
            image = tnp.clip((x - tnp.sqrt(1 - signal**2) * noise) / signal, -1, 1)
            noise = (x - signal * image) / tnp.sqrt(1 - signal**2)  # that which leads to the clipped image
            return next_signal * image + tnp.sqrt(1 - next_signal**2) * noise, None

        start = random.normal(key, (len(labels), 64), "float32")
        after = tnp.concatenate([tnp.ones(1, "float32"), SIGNAL[:-1]])
        return (lax.scan(cleaner, start, (tnp.arange(LEVELS), SIGNAL, after), reverse=True)[0] + 1) / 2


M = TypeVar("M", Autoencoder, Diffusion)


@partial(jit, static_argnames="steps")
def train(model: M, images: Any, labels: Any, key: Any, *, steps: int = STEPS) -> tuple[M, Any]:
    """Return the model after `steps` batches of 128 images [n, 64], and the loss of each, float32 [steps]."""
    tx = optim.adam(optim.cosine_decay_schedule(RATE, steps))

    def step(run: tuple[M, Any], key: Any) -> tuple[tuple[M, Any], Any]:
        model, opt = run
        of_batch, of_loss = random.split(key)
        rows = random.randint(of_batch, (BATCH,), 0, len(images))
        value, slopes = value_and_grad(lambda model: model.loss(images[rows], labels[rows], of_loss))(model)
        updates, opt = tx.update(slopes, opt, model)
        return (optim.apply_updates(model, updates), opt), value

    (model, _), losses = lax.scan(step, (model, tx.init(model)), random.split(key, steps))
    return model, losses


@jit
def judged(judge: training.Network, images: Any) -> tuple[Any, Any]:
    """Return the digits that the judge sees in images [n, 64], and its certainty of each, from 0 to 1."""
    chances = nn.softmax(judge(images.reshape(-1, 1, 8, 8)))
    return chances.argmax(-1), chances.max(-1)


def main(*, steps: int = STEPS, seed: int = 0) -> dict[str, float]:
    """Train both models and the judge; print and return errors of held-out images, and a judgement of 1,000 drawn ones.

    sure: shares of images that the judge is sure of, by nine to one; obeyed: share that shows the digit wanted.
    """
    learnt, held_out = digits.split()
    of_model, of_codes, of_noise, of_draws = random.split(random.key(seed), 4)
    with TemporaryDirectory() as folder:
        judge = training.train(folder, epochs=6)[0].model
    coder = train(Autoencoder(key=of_model), *learnt, of_codes, steps=steps)[0]
    cleaner = train(Diffusion(key=of_model), *learnt, of_noise, steps=steps)[0]
    linear = components.principal_components(learnt.images, count=CODE)
    wanted = tnp.arange(1000) % 10
    drawn = jit(Diffusion.drawn)(cleaner, wanted, of_draws)
    reached = {
        "error, autoencoder": ((coder.decoded(coder.encoded(held_out.images)[0]) - held_out.images) ** 2).mean(),
        "error, 8 components": ((linear.restore(linear.project(held_out.images)) - held_out.images) ** 2).mean(),
        "sure, held out": (judged(judge, held_out.images)[1] > SURE).mean(),
        "sure, autoencoder": (judged(judge, coder.drawn(wanted, of_draws))[1] > SURE).mean(),
        "sure, diffusion": (judged(judge, drawn)[1] > SURE).mean(),
        "obeyed, diffusion": (judged(judge, drawn)[0] == wanted).mean(),
    }
    for name, value in reached.items():
        print(f"{name:<20} {float(value):.4f}")
    return {name: float(value) for name, value in reached.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="batches of 128 images, for each model")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
