"""Explorer: a function's stages from source to machine code in linked panes, in notebooks and as a file."""

from tracer.explorer.exploration import Exploration, explore
from tracer.explorer.magics import load_ipython_extension
from tracer.trace.tracebacks import set_boundaries, set_method_boundaries

__all__ = ["Exploration", "explore", "load_ipython_extension"]

set_boundaries(globals(), __all__)
set_method_boundaries(Exploration, ())
