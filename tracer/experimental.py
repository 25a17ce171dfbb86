"""JAX's experimental names: `io_callback` and `enable_x64`."""

from tracer.absent import absent
from tracer.runtime.values.callbacks import io_callback
from tracer.settings import enable_x64

__all__ = ["enable_x64", "io_callback"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
