"""Rematerialisation in reverse mode: `checkpoint`, names for the values it may keep, and policies that choose them."""

from types import SimpleNamespace

from tracer.absent import absent
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms import checkpoint as _checkpoint
from tracer.transforms.checkpoint import checkpoint, checkpoint_name, remat
from tracer.transforms.residual_report import print_saved_residuals, saved_residuals

checkpoint_policies = SimpleNamespace(**{name: getattr(_checkpoint, name) for name in _checkpoint.POLICIES})
"""The policies by name, as `checkpoint_policies.dots_saveable`."""

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat", "saved_residuals"]

set_boundaries(globals(), __all__)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
