"""Linear filters along an axis, forward and backward, by a scan of the transposed direct form II.

Oppenheim & Schafer 2010, Discrete-Time Signal Processing, third edition, section 6.3.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir.shape import axis_index
from tracer.lax import scan
from tracer.numpy import broadcast_to, concatenate, eye, flip, linalg, moveaxis, pad, stack, zeros
from tracer.numpy.core.conversion import unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.scipy.signal.spectra import extended
from tracer.trace.array import Array, concrete_value
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here

_UNROLLED = 12  # longer filters have an array as their state, one number for each step of delay


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter a signal: a[0] y[n] = sum of b[i] x[n - i] - sum of a[i] y[n - i] for i from 1 on.

    zi: numbers, the state before the first sample, max(len(a), len(b)) - 1 along the axis. Returns numbers [*s], or
    with zi a pair of these and the last state.

    >>> tracer.scipy.signal.lfilter([1.0], [1.0, -0.5], tnp.asarray([1.0, 0.0, 0.0]))
    Array([1.  , 0.5 , 0.25], f64)
    """
    top, bottom, signal, *state = _operands("lfilter", b, a, x, *([] if zi is None else [zi]))
    along = axis_index(axis, signal.ndim, f"lfilter{here()}")
    signal = moveaxis(signal, along, 0)
    start = None if zi is None else moveaxis(_state("lfilter", state[0], signal.ndim), along, 0)
    found, end = _filtered("lfilter", top, bottom, signal, start)
    found = moveaxis(found, 0, along)
    return found if zi is None else (found, moveaxis(end, 0, along))


def lfilter_zi(b: Any, a: Any) -> Array:
    """Return the state of `lfilter` for a constant signal of ones [max(len(a), len(b)) - 1], of float dtype.

    >>> tracer.scipy.signal.lfilter_zi([1.0], [1.0, -0.5])
    Array([1.], f64)
    """
    top, bottom = _coefficients("lfilter_zi", *_operands("lfilter_zi", b, a))
    n = top.size - 1
    # the state repeats: z_i = z_(i + 1) + b_(i + 1) - a_(i + 1) (b_0 + z_0)
    matrix = eye(n, dtype=top.dtype) - eye(n, k=1, dtype=top.dtype)
    matrix = matrix.at[:, 0].add(bottom[1:]) if n else matrix
    return linalg.solve(matrix, top[1:] - bottom[1:] * top[0]) if n else top[1:]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filter a signal by sections of order 2, one after another.

    sos: numbers [k, 6], each row b[0], b[1], b[2], a[0], a[1], a[2]; zi: numbers, the states before the first sample,
    [k, *s] with 2 along the axis. Returns numbers [*s], or with zi a pair of these and the last states.

    >>> tracer.scipy.signal.sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], tnp.asarray([1.0, 0.0, 0.0]))
    Array([1.  , 0.5 , 0.25], f64)
    """
    sections, signal, *state = _operands("sosfilt", sos, x, *([] if zi is None else [zi]))
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ShapeError(message(f"sosfilt{here()}: sections are rows of 6 numbers", f"got {sections.type}"))
    along = axis_index(axis, signal.ndim, f"sosfilt{here()}")
    found, ends = moveaxis(signal, along, 0), []
    for k in range(sections.shape[0]):
        start = None if zi is None else moveaxis(state[0][k], along, 0)
        found, end = _filtered("sosfilt", sections[k, :3], sections[k, 3:], found, start)
        ends.append(moveaxis(end, 0, along))
    found = moveaxis(found, 0, along)
    return found if zi is None else (found, stack(ends) if ends else state[0])


def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None,
    method: str = "pad",
) -> Array:  # fmt: skip
    """Filter a signal forward, then backward: without a shift of phase.

    padtype: how the signal continues at both ends: "odd", "even", "constant", or None; padlen: by how many samples, by
    default 3 max(len(a), len(b)); method: "pad"; SciPy's "gust" raises ArgumentError. Returns numbers [*s]. Both runs
    start from the state of a constant signal.

    >>> tracer.scipy.signal.filtfilt([0.5, 0.5], [1.0], tnp.asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).round(6)
    Array([0., 1., 2., 3., 4., 5., 6.], f64)
    """
    if method != "pad":
        raise ArgumentError(message(f'filtfilt{here()}: method is "pad"', f"got {method!r}"))
    top, bottom, signal = _operands("filtfilt", b, a, x)
    along = axis_index(axis, signal.ndim, f"filtfilt{here()}")
    signal = moveaxis(signal, along, -1)
    count = 3 * max(top.size, bottom.size) if padlen is None else integer("filtfilt", "padlen", padlen)
    count = 0 if padtype is None else count
    if count >= signal.shape[-1]:
        raise ArgumentError(
            message(
                f"filtfilt{here()}: the signal is longer than padlen",
                f"got {signal.shape[-1]} samples, padlen={count}", help="give a smaller padlen",
            )
        )  # fmt: skip
    longer = extended("filtfilt", signal, count, padtype) if count and padtype is not None else signal
    state = lfilter_zi(top, bottom)
    forward = lfilter(top, bottom, longer, -1, state * longer[..., :1])[0]
    backward = flip(forward, -1)
    found = flip(lfilter(top, bottom, backward, -1, state * backward[..., :1])[0], -1)
    return moveaxis(found[..., count : found.shape[-1] - count], -1, along)


def _operands(name: str, *values: Any) -> list[Array]:
    return unified(name, [promoted_inexact(name, v)[0] for v in values])


def _state(name: str, state: Array, ndim: int) -> Array:
    if state.ndim != ndim:
        text = f"{name}{here()}: zi has as many axes as the signal"
        raise ShapeError(message(text, f"got {state.type}", help="zi[:, None] for a signal of two axes"))
    return state


def _coefficients(name: str, top: Array, bottom: Array) -> tuple[Array, Array]:
    """Return both polynomials in one length, with a[0] = 1."""
    if top.ndim != 1 or bottom.ndim != 1 or not top.size or not bottom.size:
        text = f"{name}{here()}: coefficients are vectors of one number at least"
        raise ShapeError(message(text, f"got {top.type} and {bottom.type}"))
    known = concrete_value(bottom)
    if known is not None and known[0] == 0:
        raise ArgumentError(message(f"{name}{here()}: the coefficient a[0] is not 0", f"got a={known.tolist()}"))
    size = max(top.size, bottom.size)
    top, bottom = (pad(v / bottom[0], (0, size - v.size)) for v in (top, bottom))
    return top, bottom


def _filtered(name: str, top: Array, bottom: Array, signal: Array, start: Array | None) -> tuple[Array, Array]:
    """Return the filtered signal along the first axis, and the last state."""
    top, bottom = _coefficients(name, top, bottom)
    n, rest = top.size - 1, signal.shape[1:]
    if start is None:
        start = zeros((n, *rest), signal.dtype)
    if start.shape[0] != n:
        text = f"{name}{here()}: zi has max(len(a), len(b)) - 1 numbers along the axis"
        raise ShapeError(message(text, f"got {start.shape[0]}, not {n}"))
    start = broadcast_to(start, (n, *rest))
    if n > _UNROLLED:
        wide = (slice(None), *(None,) * len(rest))
        ahead, back = top[1:][wide], bottom[1:][wide]

        def step(state: Array, x: Array) -> tuple[Array, Array]:
            y = top[0] * x + state[0]
            shifted = concatenate([state[1:], zeros((1, *rest), state.dtype)])
            return shifted + ahead * x - back * y, y

        end, found = scan(step, start, signal)
        return found, end

    def unrolled(state: tuple[Array, ...], x: Array) -> tuple[tuple[Array, ...], Array]:
        y = top[0] * x + state[0] if n else top[0] * x
        # y comes last: values that do not depend on it are computed before
        moved = [top[k + 1] * x + state[k + 1] if k + 1 < n else top[k + 1] * x for k in range(n)]
        return tuple(part - bottom[k + 1] * y for k, part in enumerate(moved)), y

    ends, found = scan(unrolled, tuple(start[k] for k in range(n)), signal)
    return found, stack(ends) if n else start


say(
    [lfilter, lfilter_zi, filtfilt, sosfilt],
    {
        "b": "numbers [p], the coefficients of the signal.",
        "a": "numbers [q], the coefficients of earlier results; a[0] is not 0.",
        "x": "numbers [*s]; integers become floats.",
        "axis": "the axis of time.",
    },
)
