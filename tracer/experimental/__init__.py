"""JAX's experimental names: `io_callback`, `enable_x64`, `ode` and `sparse`."""

from tracer.absent import absent
from tracer.experimental import ode, sparse
from tracer.runtime.values.callbacks import io_callback
from tracer.settings import enable_x64

__all__ = ["enable_x64", "io_callback", "ode", "sparse"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
