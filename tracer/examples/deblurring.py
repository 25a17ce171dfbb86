"""A blurred and noisy photograph restored: by Wiener's filter, and by a prior that edges are sharp and few.

The blur is a convolution on a torus, a product of Fourier transforms. Total variation (Rudin, Osher & Fatemi 1992,
Physica D 60) is minimised by accelerated gradient steps (Nesterov 1983), whose gradient goes through the transforms.
"""

from __future__ import annotations

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap

SMOOTHING = 1e-3  # of the absolute value in the total variation, in the unit of brightness


def motion_blur(shape: tuple[int, int], *, length: int, slope: float) -> tracer.Array:
    """Return the transfer function of a camera that moves by `length` pixels in x, `slope` times as many in y.

    Complex, [rows, columns // 2 + 1]: the Fourier transform of the line's weights.
    """
    times = tnp.linspace(0.0, length, 8 * length)
    rows = tnp.round(slope * times).astype(int) % shape[0]
    columns = tnp.round(times).astype(int) % shape[1]
    weights = tnp.zeros(shape).at[rows, columns].add(1.0 / len(times))
    return tnp.fft.rfft2(weights)


def blurred(image: tracer.Array, transfer: tracer.Array) -> tracer.Array:
    """Return one channel of an image, float [rows, columns], after the blur."""
    return tnp.fft.irfft2(transfer * tnp.fft.rfft2(image), image.shape)


@jit
def wiener(seen: tracer.Array, transfer: tracer.Array, noise: float) -> tracer.Array:
    """Return the linear estimate of least squared error for [rows, columns], if the image's spectrum falls as 1/f².

    noise: standard deviation of the noise, in the unit of brightness. Wiener 1949.
    """
    rows, columns = seen.shape
    f2 = tnp.fft.fftfreq(rows)[:, None] ** 2 + tnp.fft.rfftfreq(columns) ** 2
    spectrum = tnp.var(seen) / (1e-6 + f2) / tnp.mean(1 / (1e-6 + f2))
    gain = tnp.conj(transfer) * spectrum / (tnp.abs(transfer) ** 2 * spectrum + noise**2)
    return tnp.fft.irfft2(gain * tnp.fft.rfft2(seen), seen.shape)


def objective(image: tracer.Array, seen: tracer.Array, transfer: tracer.Array, weight: float) -> tracer.Array:
    """Return half the squared misfit plus `weight` times the smoothed total variation, float []."""
    down = tnp.roll(image, -1, axis=0) - image
    right = tnp.roll(image, -1, axis=1) - image
    variation = tnp.sum(tnp.sqrt(down**2 + right**2 + SMOOTHING**2))
    return 0.5 * tnp.sum((blurred(image, transfer) - seen) ** 2) + weight * variation


@jit(static_argnames="steps")
def sharpened(seen: tracer.Array, transfer: tracer.Array, *, weight: float = 5e-4, steps: int = 300) -> tracer.Array:
    """Return the image, [channels, rows, columns], that minimises the objective in every channel."""
    rate = 1.0 / (1.0 + 8.0 * weight / SMOOTHING)  # the inverse of the gradient's Lipschitz constant

    def one(channel: tracer.Array) -> tracer.Array:
        def step(i: tracer.Array, state: tuple[tracer.Array, tracer.Array]) -> tuple[tracer.Array, tracer.Array]:
            image, ahead = state
            lower = ahead - rate * grad(objective)(ahead, channel, transfer, weight)
            return lower, lower + i / (i + 3.0) * (lower - image)

        result: tracer.Array = lax.fori_loop(0, steps, step, (channel, channel))[0]
        return result

    restored: tracer.Array = vmap(one)(seen)
    return restored


def psnr(image: tracer.Array, truth: tracer.Array) -> float:
    """Return the peak signal-to-noise ratio of an image with brightness 0 to 1, in decibels."""
    return float(-10.0 * tnp.log10(tnp.mean((image - truth) ** 2)))
