"""A photograph as a function: a small network maps places to colours, and its weights are the file, beside JPEG's.

Sines as activations (Sitzmann et al. 2020, arXiv:2006.09661), or random Fourier features before a plain network (Tancik
et al. 2020, arXiv:2006.10739). Weights are kept as float16 (Dupont et al. 2021, arXiv:2103.03123). The function has
values between pixels, and derivatives. `python -m tracer.examples.photograph` runs it.
"""

from __future__ import annotations

import argparse
import io
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import tracer.numpy as tnp
from tracer import grad, jit, lax, nn, optim, random, value_and_grad, vmap

BATCH, STEPS, RATE = 8192, 4000, 5e-3
WAVES, FREQUENCY = 30.0, 8.0  # of the first layer and of the features, in radians a half width of the picture
M = TypeVar("M", bound=nn.Module)


class Sines(nn.Module):
    """Linear layers with sines between them: places float32 [..., 2] to colours [..., 3]."""

    def __init__(self, width: int = 28, depth: int = 3, *, key: Any) -> None:
        keys = nn.Keys(key)
        bounds = [1 / 2, *[(6 / width) ** 0.5 / WAVES] * depth]  # so that each layer's values spread alike
        sizes = pairwise([2, *[width] * depth, 3])
        self.layers = [uniform_linear(n, m, bound, next(keys)) for (n, m), bound in zip(sizes, bounds, strict=True)]

    def __call__(self, places: Any) -> Any:
        x = places
        for layer in self.layers[:-1]:
            x = tnp.sin(WAVES * layer(x))
        return 0.5 + self.layers[-1](x)


class Features(nn.Module):
    """Sines and cosines of fixed random frequencies, and a plain network: places [..., 2] to colours [..., 3]."""

    def __init__(self, width: int = 28, count: int = 12, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.frequencies = nn.State(FREQUENCY * random.normal(next(keys), (2, count), "float32"))
        self.network = nn.MLP([2 * count, width, width, 3], key=next(keys))

    def __call__(self, places: Any) -> Any:
        angles = places @ self.frequencies
        return 0.5 + self.network(tnp.concatenate([tnp.cos(angles), tnp.sin(angles)], axis=-1))


def uniform_linear(n: int, m: int, bound: float, key: Any) -> nn.Linear:
    """Return a linear layer of n numbers to m with weights within `bound`."""
    of_weight, of_rest = random.split(key)
    layer = nn.Linear(n, m, key=of_rest)
    result: nn.Linear = layer.replace(weight=random.uniform(of_weight, (m, n), "float32", -bound, bound))
    return result


def photograph(name: str = "flower") -> NDArray[np.float32]:
    """Return a sample photograph of scikit-learn, "flower" or "china": float32 [427, 640, 3], from 0 to 1."""
    pixels: NDArray[np.float32] = import_module("sklearn.datasets").load_sample_image(f"{name}.jpg").astype(np.float32)
    return pixels / np.float32(255)


def grid(rows: int, columns: int) -> Any:
    """Return the places of pixels, row and column from the centre in half widths: float32 [rows, columns, 2]."""
    y, x = ((tnp.arange(n, dtype="float32") - (n - 1) / 2) * (2 / columns) for n in (rows, columns))
    return tnp.stack(tnp.meshgrid(y, x, indexing="ij"), axis=-1)


def loss(model: Any, places: Any, colours: Any) -> Any:
    """Return the mean squared error of colours."""
    return ((model(places) - colours) ** 2).mean()


@partial(jit, static_argnames="steps")
def fitted(model: M, picture: Any, key: Any, *, steps: int = STEPS) -> M:
    """Return the model after `steps` batches of 8,192 random pixels of a picture [rows, columns, 3]."""
    places, colours = grid(*picture.shape[:2]).reshape(-1, 2), picture.reshape(-1, 3)
    tx = optim.adam(optim.cosine_decay_schedule(RATE, steps))

    def step(run: tuple[M, Any], key: Any) -> tuple[tuple[M, Any], None]:
        model, opt = run
        pixels = random.randint(key, (BATCH,), 0, len(places))
        _, slopes = value_and_grad(loss)(model, places[pixels], colours[pixels])
        updates, opt = tx.update(slopes, opt, model)
        return (optim.apply_updates(model, updates), opt), None

    result: M = lax.scan(step, (model, tx.init(model)), random.split(key, steps))[0][0]
    return result


def stored(model: M) -> tuple[M, int]:
    """Return the model with its weights rounded to float16, and the bytes of these. Frequencies follow from a seed."""
    rounded: M = nn.cast(nn.cast(model, "float16"), "float32")
    return rounded, 2 * nn.count(model)


def psnr(picture: Any, truth: Any) -> float:
    """Return the peak signal-to-noise ratio of pictures from 0 to 1, in decibels."""
    return float(-10 * tnp.log10(((tnp.clip(picture, 0, 1) - truth) ** 2).mean()))


def jpeg(picture: NDArray[np.float32], size: int) -> tuple[NDArray[np.float32], int]:
    """Return a picture after the JPEG of the best quality that is no larger than `size` bytes, and its bytes.

    Raises ValueError if no quality is that small.
    """
    image: Any = import_module("PIL.Image")
    for quality in range(95, 0, -1):
        file = io.BytesIO()
        image.fromarray((255 * picture).round().astype("uint8")).save(file, "JPEG", quality=quality, optimize=True)
        if file.tell() <= size:
            shown = np.asarray(image.open(file)).astype(np.float32)
            return shown / np.float32(255), file.tell()
    raise ValueError(f"no JPEG of the picture has {size} bytes or less; the smallest has {file.tell()}")


def slopes(model: Any, places: Any) -> Any:
    """Return the gradient of the brightness at places [n, 2], by row and column: float32 [n, 2]."""
    return vmap(grad(lambda place: model(place).mean()))(places)


def main(*, steps: int = STEPS, seed: int = 0) -> dict[str, float]:
    """Fit both networks to a photograph.

    Print and return the decibels of each and of JPEG at the first network's bytes.
    """
    of_model, of_pixels = random.split(random.key(seed))
    picture, reached = photograph(), {}
    for kind in (Sines, Features):
        model, size = stored(fitted(kind(key=of_model), picture, of_pixels, steps=steps))
        reached[kind.__name__] = psnr(model(grid(*picture.shape[:2])), picture)
        print(f"{kind.__name__:<9} {size:>6,} bytes {reached[kind.__name__]:>7.2f} dB")
    shown, size = jpeg(picture, 2 * nn.count(Sines(key=of_model)))
    reached["JPEG"] = psnr(shown, picture)
    print(f"{'JPEG':<9} {size:>6,} bytes {reached['JPEG']:>7.2f} dB")
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, help="batches of 8,192 pixels")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
