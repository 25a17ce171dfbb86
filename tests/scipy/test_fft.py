"""Cosine transforms beside SciPy's: every type and norm, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import errors
from tracer.scipy import fft


@pytest.mark.parametrize(
    ("type", "norm", "n"), covering((1, 2, 3, 4), (None, "ortho", "forward", "backward"), (None, 5, 9), least=16)
)
def test_values_are_scipy_s(type: int, norm: str | None, n: int | None, rng: np.random.Generator) -> None:
    for x in (rng.normal(size=(3, 7)), rng.normal(size=(3, 8)) + 1j * rng.normal(size=(3, 8))):
        for name in ("dct", "idct"):
            for axis in (-1, 0):
                expected = getattr(scipy.fft, name)(x, type, n, axis, norm)
                np.testing.assert_allclose(getattr(fft, name)(x, type, n, axis, norm), expected, rtol=1e-10, atol=1e-12)
        for name in ("dctn", "idctn"):
            for options in ({}, {"s": (4, 5)}, {"axes": (1,)}):
                expected = getattr(scipy.fft, name)(x, type, norm=norm, **options)
                found = getattr(fft, name)(x, type, norm=norm, **options)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_inverses_gradients_batches_and_single_precision(rng: np.random.Generator) -> None:
    x = tnp.asarray(rng.normal(size=(2, 6)))
    for type in (1, 2, 3, 4):
        np.testing.assert_allclose(tracer.jit(lambda x, t=type: fft.idct(fft.dct(x, t), t))(x), x, atol=1e-12)
        tracer.test_util.check_grads(lambda x, t=type: (fft.dct(x, t) ** 2).sum(), (x,), 2)
    np.testing.assert_allclose(tracer.vmap(fft.dct)(x), fft.dct(x), rtol=1e-12)
    assert fft.dct(np.ones(4, "float32")).dtype == np.float32
    assert fft.dct(np.arange(4)).dtype == np.float64


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^dct at test_fft.py:.*: type is 1, 2, 3 or 4"):
        fft.dct(np.ones(3), 5)
    with pytest.raises(errors.ShapeError, match="of type 1 takes two samples at least"):
        fft.dct(np.ones(1), 1)
    with pytest.raises(errors.ShapeError, match="s has one length for each axis"):
        fft.dctn(np.ones((2, 2)), s=(2,), axes=(0, 1))
