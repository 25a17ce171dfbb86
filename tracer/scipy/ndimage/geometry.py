"""Images moved, scaled, turned, and mapped by matrices, with interpolation between elements.

Beyond the ends modes are SciPy's. "constant" is the constant from the outermost elements on. "wrap" has a period of the
length less one. "grid-constant" and "grid-wrap" continue the grid of elements.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir.shape import axis_index
from tracer.numpy import arange, asarray, clip, cos, deg2rad, floor, full, moveaxis, sin, stack, where
from tracer.numpy.core.conversion import array_of, floating
from tracer.numpy.core.promotion import require_real
from tracer.scipy.ndimage.coordinates import in_dtype, interpolated
from tracer.scipy.ndimage.splines import DEGREES, check_order
from tracer.trace.array import Array, concrete_value
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here


def shift(
    input: Any, shift: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Array:  # fmt: skip
    """Move an array towards higher indices.

    shift: real numbers, one or one for each axis.

    >>> tracer.scipy.ndimage.shift(tnp.asarray([1.0, 2.0, 4.0]), 0.5, order=1)
    Array([0. , 1.5, 3. ], f64)
    """
    x = array_of("shift", input)
    shifts = _each("shift", shift, x.ndim)
    positions = [arange(float(n)) - shifts[k] for k, n in enumerate(x.shape)]
    return _read("shift", x, _along_axes(positions), order, mode, cval, prefilter)


def zoom(
    input: Any, zoom: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True, *,
    grid_mode: bool = False,
) -> Array:  # fmt: skip
    """Scale an array to other lengths of its axes: their products with `zoom`, rounded.

    zoom: concrete real numbers, one or one for each axis. grid_mode: whether lengths are between the outer edges of
    elements, not between the middles of the outermost ones.

    >>> tracer.scipy.ndimage.zoom(tnp.asarray([1.0, 2.0, 4.0]), 5 / 3, order=1)
    Array([1. , 1.5, 2. , 3. , 4. ], f64)
    """
    x = array_of("zoom", input)
    _numbers("zoom", zoom, x.ndim)
    known = concrete_value(array_of("zoom", asarray(zoom)))
    if known is None:
        text = f"zoom{here()}: the lengths of the result depend on traced values"
        raise ArgumentError(message(text, help="give concrete numbers, or take affine_transform with output_shape"))
    if not (known >= 0).all():
        raise ArgumentError(message(f"zoom{here()}: factors are not negative", f"got {known.tolist()}"))
    positions = []
    for n, factor in zip(x.shape, np.broadcast_to(known, x.ndim).tolist(), strict=True):
        count = round(n * factor)
        at = arange(float(count))
        if grid_mode:
            positions.append((at + 0.5) * (n / max(count, 1)) - 0.5)
        else:
            positions.append(clip(at * ((n - 1) / max(count - 1, 1)), 0, max(n - 1, 0)))
    return _read("zoom", x, _along_axes(positions), order, mode, cval, prefilter)


def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Sequence[int] | None = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """Read an array at the indices matrix @ index + offset.

    matrix: real numbers [n, n] for n axes, [n] for a diagonal, or [n, n + 1] or [n + 1, n + 1] with the offset in the
    last column; offset: real numbers, one or one for each axis; output_shape: n integers, by default input's shape.

    >>> tracer.scipy.ndimage.affine_transform(tnp.asarray([1.0, 2.0, 4.0]), [0.5], 1.0, order=1)
    Array([2., 3., 4.], f64)
    """
    x = array_of("affine_transform", input)
    n, m = x.ndim, floating(array_of("affine_transform", asarray(matrix)))
    require_real("affine_transform", m.dtype, m)
    if m.shape not in ((n,), (n, n), (n, n + 1), (n + 1, n + 1)):
        text = f"affine_transform{here()}: matrix is [{n}, {n}], or [{n}], or with the offset in one more column"
        raise ShapeError(message(text, f"got {m.type} for {x.type}"))
    if m.ndim > 1 and m.shape[-1] > n:
        m, offset = m[:n, :n], m[:n, n]
    given = x.shape if output_shape is None else output_shape
    shape = [integer("affine_transform", "output_shape", count) for count in given]
    if len(shape) != n:
        text = f"affine_transform{here()}: output_shape has a length for each axis"
        raise ShapeError(message(text, f"got {tuple(shape)} for {x.type}"))
    start = _each("affine_transform", offset, n)
    grid = [arange(float(count)) for count in shape]
    if m.ndim == 1:
        positions = _along_axes([m[k] * along + start[k] for k, along in enumerate(grid)])
    else:
        positions = _mapped(m, start, _along_axes(grid))
    return _read("affine_transform", x, positions, order, mode, cval, prefilter)


def rotate(
    input: Any, angle: Any, axes: Sequence[int] = (1, 0), reshape: bool = True, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Array:  # fmt: skip
    """Turn an array in the plane of two axes, from the first towards the second in images seen by rows.

    angle: degrees, a real number []; axes: two of them; reshape: whether the result has room for all elements, for
    which the angle must be concrete.

    >>> tracer.scipy.ndimage.rotate(tnp.asarray([[1.0, 2.0], [3.0, 4.0]]), 90, order=1)
    Array([[2., 4.],
           [1., 3.]], f64)
    """
    x, given = array_of("rotate", input), array_of("rotate", angle)
    turn = floating(given)
    plane = sorted(axis_index(axis, x.ndim, f"rotate{here()}") for axis in axes)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise ArgumentError(message(f"rotate{here()}: axes are two different axes", f"got {tuple(axes)}"))
    if turn.ndim:
        raise ShapeError(message(f"rotate{here()}: angle is one number", f"got {turn.type}"))
    c, s = _cos_sin(turn)
    matrix = stack([stack([c, s]), stack([-s, c])])
    flat = moveaxis(x, plane, (0, 1))
    sizes = np.asarray(flat.shape[:2])
    shape = sizes
    if reshape:
        degrees = concrete_value(given)
        if degrees is None:
            text = f"rotate{here()}: the shape of the result depends on a traced angle"
            raise ArgumentError(message(text, help="reshape=False keeps input's shape"))
        cosine, sine = _exact_cos_sin(float(degrees))
        corners = np.array([[cosine, sine], [-sine, cosine]]) @ [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]]
        shape = (np.ptp(corners, axis=1) + 0.5).astype(int)
    start = asarray((sizes - 1) / 2) - matrix @ asarray((shape - 1) / 2)
    positions = _mapped(matrix, start, _along_axes([arange(float(count)) for count in shape.tolist()]))
    return moveaxis(_read("rotate", flat, positions, order, mode, cval, prefilter), (0, 1), plane)


def _each(name: str, given: Any, count: int) -> Array:
    """Return real numbers, one for each axis."""
    found = _numbers(name, given, count)
    return found if found.ndim else full(count, found)


def _numbers(name: str, given: Any, count: int) -> Array:
    """Return real numbers, one or one for each axis."""
    found = floating(array_of(name, asarray(given)))
    require_real(name, found.dtype, found)
    if found.shape not in ((), (count,)):
        text = f"{name}{here()}: options are one number, or one for each of {count} axes"
        raise ShapeError(message(text, f"got {found.type}"))
    return found


def _along_axes(positions: list[Array]) -> list[Array]:
    """Return positions along each axis, such that they broadcast to the grid of all."""
    count = len(positions)
    return [along[(None,) * k + (slice(None),) + (None,) * (count - k - 1)] for k, along in enumerate(positions)]


def _mapped(matrix: Array, offset: Array, grid: list[Array]) -> list[Array]:
    found = []
    for i in range(len(grid)):
        position: Any = offset[i]
        for j, along in enumerate(grid):
            position = position + matrix[i, j] * along
        found.append(position)
    return found


def _cos_sin(angle: Array) -> tuple[Array, Array]:
    """Return the cosine and the sine of degrees, exact for multiples of 90."""
    quarter = floor(angle / 90 + 0.5)
    rest = deg2rad(angle - 90 * quarter)
    c, s, turns = cos(rest), sin(rest), quarter % 4
    odd = turns % 2 == 1
    first, second = where(odd, -s, c), where(odd, c, s)
    return where(turns >= 2, -first, first), where(turns >= 2, -second, second)


def _exact_cos_sin(degrees: float) -> tuple[float, float]:
    quarter = math.floor(degrees / 90 + 0.5)
    rest = math.radians(degrees - 90 * quarter)
    c, s = math.cos(rest), math.sin(rest)
    return [(c, s), (-s, c), (-c, -s), (s, -c)][quarter % 4]


def _read(
    name: str, x: Array, positions: list[Array], order: int, mode: str, cval: Any, prefilter: bool
) -> Array:  # fmt: skip
    """Return elements at positions along the first axes, in SciPy's modes."""
    sizes = x.shape[: len(positions)]
    check_order(name, order)
    if not x.size:
        shape = np.broadcast_shapes(*(along.shape for along in positions)) + x.shape[len(positions) :]
        return full(shape, cval, x.dtype)
    inside = None
    if mode == "constant":
        for along, n in zip(positions, sizes, strict=True):
            within = (along >= 0) & (along <= n - 1)
            inside = within if inside is None else inside & within
    elif mode == "wrap":
        positions = [_wrapped(along, n - 1) for along, n in zip(positions, sizes, strict=True)]
    if order == 0:
        positions = [floor(along + 0.5) for along in positions]
    inner = "mirror" if order in DEGREES else "nearest"
    within_mode = inner if mode in ("constant", "wrap") else mode
    found = interpolated(name, x, positions, order, within_mode, cval, prefilter)
    if inside is None:
        return found
    return where(inside[(..., *[None] * (x.ndim - len(positions)))], found, in_dtype(array_of(name, cval), x.dtype))


def _wrapped(position: Array, period: int) -> Array:
    if not period:
        return 0 * position
    below, above = period - (-position) % period, position % period
    return where(position < 0, below, where(position > period, above, position))


GEOMETRY = (affine_transform, rotate, shift, zoom)

say(
    GEOMETRY,
    {
        "input": "numbers [*s]. Returns its dtype; integers are rounded.",
        "order": "0 for the nearest element, 1 for linear interpolation, 2 to 5 for splines of these degrees.",
        "mode": 'values beyond the ends: "constant", "nearest", "wrap", "mirror", "reflect", "grid-constant" or '
        '"grid-wrap".',
        "cval": "the constant.",
        "prefilter": "False for an input that holds the splines' coefficients, as of `spline_filter`.",
    },
)
