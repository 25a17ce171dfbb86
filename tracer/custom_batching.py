"""Functions with batching rules of the user's own: `custom_vmap`."""

from tracer.transforms.custom_batching import custom_vmap

__all__ = ["custom_vmap"]
