"""Photographs as functions: the first layers have the papers' spread, derivatives are true, and pixels are learnt."""

from __future__ import annotations

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import nn, random
from tracer.examples import photograph


def test_values_of_all_layers_of_sines_spread_alike() -> None:
    """Sitzmann et al. 2020, theorem 1.8: arguments of the later sines have variance 1 before biases."""
    model = photograph.Sines(width=256, depth=3, key=random.key(0))
    x = photograph.grid(40, 40).reshape(-1, 2)
    for n, layer in enumerate(model.layers[:-1]):
        if n:
            assert 0.9 < float((photograph.WAVES * x @ layer.weight.T).std()) < 1.1
        x = tnp.sin(photograph.WAVES * layer(x))


def test_slopes_are_those_of_differences() -> None:
    model = nn.cast(photograph.Sines(key=random.key(0)), "float64")
    places = photograph.grid(3, 4).reshape(-1, 2).astype("float64")
    found = photograph.slopes(model, places)
    for axis, step in enumerate(1e-5 * np.eye(2)):
        change = (model(places + step) - model(places - step)).mean(axis=-1) / 2e-5
        np.testing.assert_allclose(found[:, axis], change, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "bound"), [(photograph.Sines, 22.0), (photograph.Features, 17.0)])
def test_networks_learn_a_photograph(kind: type, bound: float, seed: int) -> None:
    picture = photograph.photograph()[::4, ::4]
    plain = photograph.psnr(picture.mean(axis=(0, 1)), picture)
    fitted = photograph.fitted(kind(key=random.key(seed)), picture, random.key(seed + 1), steps=150)
    model, size = photograph.stored(fitted)
    assert size < 4000
    assert photograph.psnr(model(photograph.grid(*picture.shape[:2])), picture) > bound > plain + 4


def test_jpegs_keep_within_the_size() -> None:
    picture = photograph.photograph()
    shown, size = photograph.jpeg(picture, 5000)
    assert 4000 < size <= 5000
    assert 25 < photograph.psnr(shown, picture) < 30
    with pytest.raises(ValueError, match="no JPEG of the picture has 100 bytes or less"):
        photograph.jpeg(picture, 100)
