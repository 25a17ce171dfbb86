"""Saving and loading of trees and models: one safetensors file, written atomically and checked when it is read.

>>> import tempfile
>>> from tracer import io
>>> with tempfile.TemporaryDirectory() as folder:
...     io.save(f"{folder}/run.safetensors", {"w": tnp.ones(2), "step": 3})
...     io.load(f"{folder}/run.safetensors")
{'step': 3, 'w': Array([1., 1.], f64)}
"""

from tracer.absent import absent
from tracer.errors import CheckpointError
from tracer.io.checkpoints import Checkpoints
from tracer.io.saving import Header, header, load, save
from tracer.io.weights import load_weights
from tracer.trace.tracebacks import set_boundaries, set_method_boundaries

__all__ = ["CheckpointError", "Checkpoints", "Header", "header", "load", "load_weights", "save"]
set_boundaries(globals(), __all__)
set_method_boundaries(Checkpoints)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
