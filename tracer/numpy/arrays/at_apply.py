"""`x.at[i].apply(f)`: an elementwise function applied once for each repetition of an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import TracedValueError
from tracer.lax.loops import while_loop
from tracer.numpy.core.conversion import array_of, broadcast, cast
from tracer.numpy.reduce.reductions import max
from tracer.numpy.shapes.creation import zeros
from tracer.numpy.shapes.where import where
from tracer.trace.array import Array


def applied(x: Array, index: Any, func: Callable[[Array], Any], mode: Any, unique: bool, wrap: bool) -> Array:
    """Return a copy of the array with a function applied to the elements at an index.

    The function is applied n times, one after the other, to an element whose index occurs n times. Without repeated
    indices there is no loop. For a traced index that is decided at run time, unless `unique` promises it.
    """
    selected = x.at[index]
    given = selected.get(mode=mode, wrap_negative_indices=wrap)
    values = _of(func, given)
    if unique or not _may_repeat(index):
        return selected.set(values, mode=mode, unique_indices=unique, wrap_negative_indices=wrap)
    times = _times(x, index, mode, wrap)
    if isinstance(times, Array) or (times > 1).any():
        counts = array_of("apply", times)
        most = max(counts, initial=1)

        def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
            done, found = state
            left = counts > done
            # Finished elements are recomputed from their input, where the function and its derivative are finite.
            return done + 1, where(left, _of(func, where(left, found, given)), found)

        values = while_loop(lambda state: state[0] < most, again, (array_of("apply", np.int32(1)), values))[1]
    return selected.set(values, mode=mode, wrap_negative_indices=wrap)


def _of(func: Callable[[Array], Any], x: Array) -> Array:
    return cast(broadcast(array_of("apply", func(x)), x.shape), x.dtype)


def _may_repeat(index: Any) -> bool:
    """Return whether the index has arrays of integers, which may repeat an index."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = (part for part in parts if isinstance(part, list | np.ndarray | Array))
    return any(array_of("apply", part).dtype.kind in "iu" and array_of("apply", part).ndim for part in arrays)


def _times(x: Array, index: Any, mode: Any, wrap: bool) -> Any:
    """Return how often the index names each element, in the shape of the index."""
    if mode is None and wrap:
        try:
            known = tuple(map(_known, index)) if isinstance(index, tuple) else _known(index)
            found = np.zeros(x.shape, np.int32)
            np.add.at(found, known, 1)
            return found[known]
        except (TracedValueError, IndexError):  # indices out of bounds are reported below
            pass
    ones = zeros(x.shape, np.int32).at[index].add(1, mode=mode, wrap_negative_indices=wrap)
    return ones.at[index].get(mode=mode, wrap_negative_indices=wrap)


def _known(part: Any) -> Any:
    return np.asarray(part) if isinstance(part, Array | list) else part
