"""Other libraries: `as_jax` stands in for JAX, `to_torch` and `from_torch` exchange arrays and weights with PyTorch.

einops and the like find tracer's arrays by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.absent import absent
from tracer.interop.jax_modules import as_jax
from tracer.lazy import LazyModule

if TYPE_CHECKING:
    from tracer.interop import torch_models
    from tracer.interop.torch_models import from_torch, to_torch
else:
    torch_models = LazyModule("tracer.interop.torch_models")  # needs the layers, which `as_jax` does not

__all__ = ["as_jax", "from_torch", "to_torch"]


def __getattr__(name: str) -> object:
    if name in ("from_torch", "to_torch"):
        return getattr(torch_models, name)
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
