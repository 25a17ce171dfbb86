"""Generative models of digits: codes beat linear components, and noise is taken away towards the wanted digit."""

from __future__ import annotations

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import jit, random
from tracer.examples import components, digits, generation


@pytest.fixture(scope="module")
def parts() -> digits.Split:
    return digits.split()


def test_eight_numbers_of_the_autoencoder_say_more_than_eight_components(parts: digits.Split, seed: int) -> None:
    start = generation.Autoencoder(key=random.key(seed))
    model, losses = generation.train(start, *parts.train, random.key(seed + 1), steps=800)
    assert losses[-50:].mean() < 0.2 * losses[0]
    error = float(((model.decoded(model.encoded(parts.held_out.images)[0]) - parts.held_out.images) ** 2).mean())
    linear = components.principal_components(parts.train.images, count=generation.CODE)
    of_components = ((linear.restore(linear.project(parts.held_out.images)) - parts.held_out.images) ** 2).mean()
    assert error < 0.85 * float(of_components)


def test_drawn_digits_are_the_wanted_ones(parts: digits.Split, seed: int) -> None:
    """The judge of this short run is the nearest of all images."""
    start = generation.Diffusion(key=random.key(seed))
    model, losses = generation.train(start, *parts.train, random.key(seed + 1), steps=300)
    assert losses[-50:].mean() < 0.4 < losses[0]
    wanted = tnp.arange(100) % 10
    drawn = np.asarray(jit(generation.Diffusion.drawn)(model, wanted, random.key(seed + 2)))
    whole = digits.load()
    nearest = ((drawn[:, None] - whole.images) ** 2).sum(axis=-1).argmin(axis=1)
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert (whole.labels[nearest] == np.asarray(wanted)).mean() > 0.6
