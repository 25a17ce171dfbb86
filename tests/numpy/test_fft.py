"""Fourier transforms: NumPy's values and dtypes in every setting, derivatives of every order, batches, mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import covering, each
from tracer import grad, jit, vmap
from tracer.errors import ArgumentError, AxisError, DTypeError, ShapeError, TracerArrayError
from tracer.test_util import check_grads

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 4, 6))
Z = X + 1j * RNG.standard_normal(X.shape)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
NORMS = (None, "backward", "ortho", "forward")


def close(got: Any, expected: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == expected.dtype
    units = 64 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(got, expected, rtol=units, atol=units)


@pytest.mark.parametrize(("dtype", "name"), covering(["float32", "float64", "complex64", "complex128"], ONE, least=12))
def test_transforms_along_an_axis_are_numpy_s(name: str, dtype: str) -> None:
    if name in OF_REAL and dtype.startswith("complex"):
        return
    a = (Z if dtype.startswith("complex") else X).astype(dtype)
    for place, n in enumerate((None, 1, 2, 5, 9)):
        axis, norm = (-1, 0, 1)[place % 3], NORMS[place % 4]
        expected = getattr(np.fft, name)(a, n, axis, norm)

        def call(a: Any, n: Any = n, axis: int = axis, norm: Any = norm) -> Any:
            return getattr(tnp.fft, name)(a, n, axis, norm)

        close(call(a), expected)
        close(jit(call)(a), expected)


@pytest.mark.parametrize("name", SEVERAL)
def test_transforms_over_several_axes_are_numpy_s(name: str) -> None:
    a = X if name in OF_REAL else Z
    cases: list[tuple[Any, Any]] = [(None, (0, 1)), ((3, 5), (1, 2)), ((4, 2), (0, 2)), ((3, -1), (2, 0))]
    for place, (s, axes) in enumerate([*cases, *[(None, None), (None, (1,))] * name.endswith("n")]):
        norm = NORMS[place % 4]
        expected = getattr(np.fft, name)(a, s, axes, norm)
        close(getattr(tnp.fft, name)(a, s, axes, norm), expected)
        close(jit(lambda a, s=s, axes=axes, norm=norm: getattr(tnp.fft, name)(a, s, axes, norm))(a), expected)


def test_no_axes_make_a_copy() -> None:
    for a in (X, Z, np.float32(2)):
        close(tnp.fft.fftn(a, axes=()), np.fft.fftn(a, axes=()))


def test_lengths_without_axes_are_of_the_last_ones() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(tnp.fft.fftn(Z, (4, 3)), np.fft.fftn(Z, (4, 3)))


@pytest.mark.parametrize(("dtype", "expected"), [
    ("int8", "complex64"), ("int64", "complex128"), ("bool", "complex64"), ("float16", "complex64"),
])  # fmt: skip
def test_integers_and_short_floats_are_cast(dtype: str, expected: str) -> None:
    a = np.ones((2, 4), dtype)
    assert tnp.fft.fft(a).dtype == tnp.fft.rfft(a).dtype == tnp.fft.fftn(a).dtype == expected


@pytest.mark.parametrize("shape", [(0, 4), (4, 0, 2), (1,), (1, 1)])
def test_empty_batches_and_single_samples(shape: tuple[int, ...]) -> None:
    a = np.ones(shape)
    axis = 0 if shape[0] else 1
    for name in ("fft", "rfft"):
        expected = getattr(np.fft, name)(a, axis=axis)
        close(jit(lambda a, name=name: getattr(tnp.fft, name)(a, axis=axis))(a), expected)


def test_an_empty_axis_may_be_padded() -> None:
    close(tnp.fft.fft(np.ones((2, 0)), 3), np.fft.fft(np.ones((2, 0)), 3))


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_derivatives_of_transforms(name: str) -> None:
    a = (X if name in OF_REAL else Z)[0]
    check_grads(lambda a: getattr(tnp.fft, name)(a, norm="ortho"), (a,), order=2)
    if name in ONE:
        check_grads(jit(lambda a: getattr(tnp.fft, name)(a, 5, 0)), (a,), order=2)


def test_gradients_reach_real_signals_through_their_spectra() -> None:
    """Parseval: the energy of the spectrum is that of the signal, and its gradient 2x."""

    def energy(x: Any) -> Any:
        spectrum = tnp.fft.fft(x, norm="ortho")
        return tnp.sum(tnp.real(spectrum) ** 2 + tnp.imag(spectrum) ** 2)

    close(jit(grad(energy))(X[0, 0]), 2 * X[0, 0])
    close(jit(grad(lambda x: grad(energy)(x) @ x))(X[0, 0]), 4 * X[0, 0])


@each("name", ONE)
def test_batches_are_stacks(name: str) -> None:
    a = X if name in OF_REAL else Z
    for batched in range(3):
        each: Callable[[Any], Any] = lambda a: getattr(tnp.fft, name)(a, 5, 0)  # noqa: E731
        parts = [getattr(np.fft, name)(part, 5, 0) for part in np.moveaxis(a, batched, 0)]
        close(vmap(each, in_axes=batched)(a), np.stack(parts))


def test_results_go_to_out() -> None:
    out, ours = np.zeros(X.shape, complex), tnp.zeros(X.shape, complex)
    assert tnp.fft.fft(X, out=out) is out
    assert tnp.fft.fft(X, None, -1, None, ours) is ours
    close(out, np.fft.fft(X))
    close(ours, np.fft.fft(X))
    with pytest.raises(
        ShapeError, match=r"^fft at .*: out= is an array of the result's type\n  got .* for c128\[3,4,6\]"
    ):
        tnp.fft.fft(X, out=np.zeros(3))
    with pytest.raises(TracerArrayError):
        jit(lambda x: tnp.fft.fft(x, out=out))(X)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no axis": (lambda: tnp.fft.fft(1.0), AxisError, "fft at .*: axis -1 is out of range"),
    "length 0": (
        lambda: tnp.fft.ifft(X, 0), ArgumentError,
        r"ifft at .*: a transform has at least one sample\n  got length 0 for f64\[3,4,6\]",
    ),
    "length 0 by default": (lambda: tnp.fft.irfft(X[..., :1]), ArgumentError, "irfft at .*: a transform has"),
    "a negative length": (lambda: tnp.fft.fftn(X, (3, -2), (0, 1)), ArgumentError, "fftn at .*: a transform has at"),
    "half a length": (lambda: tnp.fft.fft(X, 2.5), ArgumentError, "fft at .*n"),
    "complex to rfft": (lambda: tnp.fft.rfftn(Z), DTypeError, r"rfftn at .* takes real numbers\n  got c128\["),
    "complex to ihfft": (lambda: tnp.fft.ihfft(Z), DTypeError, "ihfft at .* takes real numbers"),
    "a norm": (lambda: tnp.fft.hfft(X, norm="l2"), ArgumentError, "hfft at .*: norm is one of 'backward', 'ortho'"),
    "a norm of several": (lambda: tnp.fft.fftn(X, norm="l2"), ArgumentError, "fftn at .*: norm is one of"),
    "lengths and axes": (
        lambda: tnp.fft.fftn(X, (3,), (0, 1)), ShapeError, r"fftn at .*: s has a length for each axis\n  got s=\(3,\)",
    ),
    "a half of no axes": (lambda: tnp.fft.rfftn(X, axes=()), ArgumentError, "rfftn at .*: a half needs an axis"),
}  # fmt: skip


@each("name", MISTAKES)
def test_mistakes_have_one_message(name: str) -> None:
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=f"^{text}"):
        call()
