"""Why programs cannot run on a GPU here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tracer.commands import gpu


class _CUDARuntimeError(RuntimeError):
    """In the place of CuPy's error of that name."""


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (
            _CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected"),
            (
                "  CuPy 14.2.0 finds no usable CUDA driver: cudaErrorNoDevice: no CUDA-capable device is detected\n"
                "  help: nvidia-smi should list a GPU"
            ),
        ),
        (0, "  the CUDA driver lists no GPU\n  help: see CUDA_VISIBLE_DEVICES and nvidia-smi"),
        (1, ""),
    ],
)
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, count: int | Exception, expected: str) -> None:
    def device_count() -> int:
        if isinstance(count, Exception):
            raise count
        return count

    runtime = SimpleNamespace(getDeviceCount=device_count, CUDARuntimeError=_CUDARuntimeError)
    cupy = SimpleNamespace(__version__="14.2.0", cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(gpu.importlib, "import_module", lambda name: cupy)
    assert gpu.why_no_cuda() == expected
