"""PyTorch's tensors as arrays of NumPy, without an import of PyTorch: tensors are there only where it is loaded."""

from __future__ import annotations

import sys
from typing import Any, Final

import ml_dtypes
import numpy as np

from tracer.errors import DTypeError, message
from tracer.trace.source import here

# NumPy has none of these dtypes by itself: their bits are handed over as integers of the same size
BITS: Final[dict[str, tuple[str, Any]]] = {
    "bfloat16": ("int16", np.dtype(ml_dtypes.bfloat16)),
    "float8_e4m3fn": ("uint8", np.dtype(ml_dtypes.float8_e4m3fn)),
    "float8_e4m3fnuz": ("uint8", np.dtype(ml_dtypes.float8_e4m3fnuz)),
    "float8_e5m2": ("uint8", np.dtype(ml_dtypes.float8_e5m2)),
    "float8_e5m2fnuz": ("uint8", np.dtype(ml_dtypes.float8_e5m2fnuz)),
}


def is_tensor(value: Any) -> bool:
    """Whether the value is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_numpy(value: Any) -> Any:
    """Return a tensor's values as an array of NumPy, which shares the memory of a tensor on the CPU.

    Other values are returned as they are. Raises DTypeError for tensors that are sparse or quantized.
    """
    if not is_tensor(value):
        return value
    torch = sys.modules["torch"]
    name = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.is_quantized:
        raise DTypeError(
            message(f"from_torch{here()} takes dense tensors", f"got {value.layout}, {name}",
                    help="tensor.to_dense(), tensor.dequantize()")
        )  # fmt: skip
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if name not in BITS:
        return tensor.numpy()
    bits, dtype = BITS[name]
    return tensor.contiguous().view(getattr(torch, bits)).numpy().view(dtype)
