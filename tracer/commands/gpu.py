"""Whether programs can run on a GPU here, and if not, why."""

from __future__ import annotations

import importlib
import importlib.util


def why_no_cuda() -> str:
    """Return the reasons that keep programs off a GPU, with remedies, as indented lines; "" where there is a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return '  CuPy is not installed\n  help: pip install -e ".[cuda]" (CUDA 13), or ".[cuda12]", in the checkout'
    cupy = importlib.import_module("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"  CuPy {cupy.__version__} finds no usable CUDA driver: {error}\n  help: nvidia-smi should list a GPU"
    if count == 0:
        return "  the CUDA driver lists no GPU\n  help: see CUDA_VISIBLE_DEVICES and nvidia-smi"
    return ""
