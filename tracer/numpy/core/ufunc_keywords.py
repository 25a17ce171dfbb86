"""NumPy's ufunc keywords that our functions accept without listing: see `tracer.numpy.chapters.ufunc_options`."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracer.trace.tracebacks import NOWHERE

OF_UFUNCS: Final = frozenset(("casting", "dtype", "order", "out", "subok"))
OUT: Final = frozenset(("out",))
LAYOUT: Final = frozenset(("order", "subok"))

# Where NumPy is asked for an order of elements in memory, or for a subclass: there is one of each here.
LAID_OUT: Final = frozenset((
    "broadcast_arrays", "broadcast_to", "copy", "einsum", "empty", "empty_like", "eye", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
))  # fmt: skip
# Where NumPy may choose among algorithms: there is one here, which is stable.
WITH_KINDS: Final = frozenset(("argpartition", "isin", "partition"))
JOINING: Final = frozenset(("concat", "concatenate", "hstack", "stack", "vstack"))

# Where NumPy's functions that are no ufuncs take `out` by position.
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
    """How many arguments of a function come before its `out` or outs; `NOWHERE` if that has no position."""
    theirs = getattr(np, name, None)
    return theirs.nin if isinstance(theirs, np.ufunc) else _PLACES.get(name, NOWHERE)


def taken(name: str) -> frozenset[str]:
    """The keywords of a function, by its name."""
    theirs = getattr(np, name, None)
    if isinstance(theirs, np.ufunc):
        return OF_UFUNCS if theirs.signature else OF_UFUNCS | {"where"}
    if name in LAID_OUT:
        return OUT | LAYOUT
    if name in WITH_KINDS:
        return OUT | {"kind"}
    return OUT | {"casting"} if name in JOINING else OUT
