"""Where JAX users look for `io_callback`."""

from tracer.runtime.callbacks import io_callback

__all__ = ["io_callback"]
