"""Functions with custom derivatives, and the arguments of their rules under `symbolic_zeros`."""

from tracer.absent import absent
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.closures import closure_convert
from tracer.transforms.custom.derivatives import custom_jvp, custom_vjp
from tracer.transforms.custom.gradient import custom_gradient
from tracer.transforms.custom.symbolic_zeros import CustomVJPPrimal, SymbolicZero, zero_from_primal

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    "zero_from_primal",
]  # fmt: skip

set_boundaries(globals(), __all__)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
