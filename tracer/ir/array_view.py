"""HTML of arrays in notebooks: type, statistics and a small picture of floats, then the elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tracer import markup
from tracer.ir import dtypes

_MIN: Final = 8  # elements; the text alone tells more of fewer
_MAX: Final = 1 << 20  # elements that are looked at, evenly spread over larger arrays
_POINTS, _BINS = 256, 40


def array_html(value: np.ndarray[Any, Any], text: str, type: str) -> str | None:
    """Return the view of an array of floats, None where its text says all: for few elements and other dtypes.

    text: as `repr` gives it. type: such as `f32[3]`.
    """
    if value.size < _MIN or not dtypes.is_float(value.dtype):
        return None
    step = -(-value.size // _MAX)
    seen = value.reshape(-1)[::step].astype(np.float64)
    finite = seen[np.isfinite(seen)]
    parts = [_counts(seen, finite)]
    if finite.size:
        parts.append(_picture(seen, finite, value.ndim == 1))
    note = f"{value.nbytes:,} B" + (f", statistics of every {step}th element" if step > 1 else "")
    return markup.view(type, *parts, f"<details><summary>elements</summary>{markup.code(text)}</details>", note=note)


def _counts(seen: np.ndarray[Any, Any], finite: np.ndarray[Any, Any]) -> str:
    """Return a table of one row: range, mean, spread, zeros, and counts of NaN and infinities."""
    names, values = ["min", "mean", "max", "std"], ["", "", "", ""]
    if finite.size:
        scale = float(np.abs(finite).max()) or 1.0  # so that sums and squares do not overflow
        scaled = finite / scale
        found = (finite.min(), scaled.mean() * scale, finite.max(), scaled.std() * scale)
        values = [_short(float(each)) for each in found]
    others = {"zeros": int(np.count_nonzero(finite == 0)), "NaN": int(np.count_nonzero(np.isnan(seen)))}
    others["infinite"] = seen.size - finite.size - others["NaN"]
    for name, count in others.items():
        if count:
            names.append(name)
            values.append(f"{count:,} ({count / seen.size:.0%})")
    return markup.table(names, [values], text=())


def _picture(seen: np.ndarray[Any, Any], finite: np.ndarray[Any, Any], is_sequence: bool) -> str:
    low, high = float(finite.min()), float(finite.max())
    if is_sequence and finite.size == seen.size and 2 <= seen.size <= _MAX:
        step = -(-seen.size // _POINTS)
        return markup.curve((seen[::step] / (max(abs(low), abs(high)) or 1.0)).tolist(), _short(low), _short(high))
    scale = max(abs(low), abs(high)) or 1.0
    counts, _ = np.histogram(finite / scale, bins=min(_BINS, max(finite.size // 2, 4)))
    return markup.histogram([int(count) for count in counts], _short(low), _short(high))


def _short(value: float) -> str:
    return f"{value:.4g}"
