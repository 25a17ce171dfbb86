"""Explorer: a function's stages from source to machine code in linked panes, in notebooks and as a file."""

from tracer.explorer.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]
