"""Batches of data for training: `Loader`, its sources, and `ahead`, which prepares the next batch while one is in use.

A position in the data is two integers: batches follow from (key, epoch, batch) alone.

>>> from tracer import data
>>> loader = data.Loader((np.arange(6), np.arange(6) ** 2), 2, epochs=1)
>>> [x.tolist() for x, y in loader]
[[0, 1], [2, 3], [4, 5]]
"""

from tracer.absent import absent
from tracer.data.loader import Loader
from tracer.data.prefetch import ahead
from tracer.data.sources import Rows, Windows, load_npy, load_safetensors, split
from tracer.trace.tracebacks import set_boundaries, set_method_boundaries

__all__ = ["Loader", "Rows", "Windows", "ahead", "load_npy", "load_safetensors", "split"]
set_boundaries(globals(), __all__)
for _source in (Loader, Rows, Windows):
    set_method_boundaries(_source, ("__init__", "__iter__", "__getitem__"))


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
