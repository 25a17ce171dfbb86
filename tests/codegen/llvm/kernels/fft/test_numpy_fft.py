"""NumPy's loops of Fourier transforms: found by their addresses, and replaced where they are not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import jit
from tracer.codegen.llvm.kernels.fft import numpy_fft
from tracer.codegen.llvm.kernels.fft.numpy_fft import LOOPS, in_numpy, loop_of, works

NAMES = [(name, kind) for name in LOOPS for kind in numpy_fft.KINDS]


@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_numpy_s_loops_are_found(name: str, kind: str) -> None:
    address, data = in_numpy(name, kind)
    assert address
    assert works(name, kind, address, data)


@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_a_callback_replaces_a_loop_that_numpy_has_not(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def absent(name: str, kind: str) -> Any:
        raise AttributeError(name)

    monkeypatch.setattr(numpy_fft, "in_numpy", absent)
    address, data = loop_of.__wrapped__(name, kind)
    assert works(name, kind, address, data)


def test_a_loop_of_another_structure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_fft, "import_module", lambda name: np)
    with pytest.raises((AttributeError, ValueError)):
        in_numpy("fft", "f64")


@pytest.mark.parametrize("shape", [(7,), (3, 7), (40, 7), (7, 40), (5, 7, 3), (2, 7, 33), (3000, 7), (7, 3000)])
def test_lines_of_every_layout_are_transformed(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    axis = shape.index(7)
    np.testing.assert_allclose(jit(lambda x: tnp.fft.rfft(x, axis=axis))(x), np.fft.rfft(x, axis=axis), atol=1e-13)
    np.testing.assert_allclose(jit(lambda x: tnp.fft.ifft(x, axis=axis))(x), np.fft.ifft(x, axis=axis), atol=1e-14)
