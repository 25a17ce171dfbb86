"""NumPy's ufunc keywords that functions accept without listing: see `tracer.numpy.chapters.ufunc_options`."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracer.trace.tracebacks import NOWHERE

OF_UFUNCS: Final = frozenset(("casting", "dtype", "order", "out", "subok"))
OUT: Final = frozenset(("out",))
LAYOUT: Final = frozenset(("order", "subok"))

# Functions whose memory order and subclass can be chosen in NumPy. Here there is one of each.
LAID_OUT: Final = frozenset((
    "broadcast_arrays", "broadcast_to", "copy", "einsum", "empty", "empty_like", "eye", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
))  # fmt: skip
# Functions whose algorithm can be chosen in NumPy. Here there is one, which is stable.
WITH_KINDS: Final = frozenset(("argpartition", "isin", "partition"))
JOINING: Final = frozenset(("concat", "concatenate", "hstack", "stack", "vstack"))

# Position of `out` in NumPy's functions that are not ufuncs.
_PLACES: Final = {
    name: place
    for place, names in {
        1: "fix isneginf isposinf",
        2: (
            "all amax amin any argmax argmin around choose concat concatenate dot max median min nanargmax nanargmin "
            "nanmax nanmedian nanmin outer ptp round stack"
        ),
        3: (
            "clip compress cumprod cumsum mean nancumprod nancumsum nanmean nanpercentile nanprod nanquantile nanstd "
            "nansum nanvar percentile prod quantile std sum take var"
        ),
        5: "trace",
    }.items()
    for name in names.split()
}


def place_of_out(name: str) -> int:
    """Return how many arguments precede `out` in a function's signature; `NOWHERE` if `out` is keyword-only."""
    theirs = getattr(np, name, None)
    return theirs.nin if isinstance(theirs, np.ufunc) else _PLACES.get(name, NOWHERE)


def taken(name: str) -> frozenset[str]:
    """Return the unlisted keywords that a function accepts, by its name."""
    theirs = getattr(np, name, None)
    if isinstance(theirs, np.ufunc):
        return OF_UFUNCS if theirs.signature else OF_UFUNCS | {"where"}
    if name in LAID_OUT:
        return OUT | LAYOUT
    if name in WITH_KINDS:
        return OUT | {"kind"}
    return OUT | {"casting"} if name in JOINING else OUT
