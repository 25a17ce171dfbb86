"""Initializers of parameters: functions of a key, a shape and a dtype, with JAX's names and samples.

>>> weights = tracer.nn.initializers.he_normal()(tracer.random.key(0), (784, 256), "float32")
>>> weights.shape, weights.dtype
((784, 256), dtype('float32'))
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tracer import random
from tracer.absent import absent
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy import full, moveaxis, pad, sqrt
from tracer.numpy import ones as ones_
from tracer.numpy import zeros as zeros_
from tracer.numpy.core.conversion import array_of, dtype_of_argument, sizes_argument
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.elementwise.complex import complex as from_parts
from tracer.primitives.elementwise.exponential import log1p
from tracer.primitives.elementwise.trigonometric import cos, sin
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.source import here
from tracer.trace.tracebacks import boundary, set_boundaries

Axes = int | Sequence[int]


class Initializer(Protocol):
    """An initializer: called with a key, a shape and a dtype, it returns an array.

    >>> begin: tracer.nn.initializers.Initializer = tracer.nn.initializers.constant(2.0)
    >>> begin(tracer.random.key(0), (2,))
    Array([2., 2.], f64)
    """

    def __call__(self, key: Any, shape: Any, dtype: Any = None) -> Array:
        """Return an array of the shape and dtype."""
        ...


def zeros(key: Any, shape: Any, dtype: Any = None) -> Array:
    """Return zeros. key: ignored.

    >>> tracer.nn.initializers.zeros(tracer.random.key(0), (2,), "float32")
    Array([0., 0.], f32)
    """
    del key
    return zeros_(shape, dtype)


def ones(key: Any, shape: Any, dtype: Any = None) -> Array:
    """Return ones. key: ignored.

    >>> tracer.nn.initializers.ones(tracer.random.key(0), (2,), "float32")
    Array([1., 1.], f32)
    """
    del key
    return ones_(shape, dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Return an initializer of constant arrays. value: a number, or an array that broadcasts to the shapes.

    >>> tracer.nn.initializers.constant(-7.0)(tracer.random.key(0), (2,))
    Array([-7., -7.], f64)
    """
    return _initializer(lambda key, shape, chosen: full(shape, value, chosen), dtype)


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer of samples from the uniform distribution on [0, scale). scale: a number.

    >>> tracer.nn.initializers.uniform(10.0)(tracer.random.key(0), (2,))
    Array([4.18457112, 2.16295455], f64)
    """
    return _initializer(lambda key, shape, chosen: random.uniform(key, shape, chosen) * _of(scale, chosen), dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer of samples from the normal distribution of mean 0.

    stddev: its standard deviation, a number.

    >>> tracer.nn.initializers.normal(5.0)(tracer.random.key(0), (2,))
    Array([-1.0292107 , -3.92382888], f64)
    """
    return _initializer(lambda key, shape, chosen: random.normal(key, shape, chosen) * _of(stddev, chosen), dtype)


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Return an initializer of samples from the standard normal distribution within (lower, upper), times `stddev`.

    stddev, lower, upper: numbers. Truncation reduces the standard deviation; the samples are not rescaled.

    >>> tracer.nn.initializers.truncated_normal(5.0)(tracer.random.key(0), (2,))
    Array([-0.98175996, -3.70735283], f64)
    """
    return _initializer(
        lambda key, shape, chosen: random.truncated_normal(key, lower, upper, shape, chosen) * _of(stddev, chosen),
        dtype,
    )


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:  # fmt: skip
    """Return an initializer of samples of mean 0 and variance scale / n.

    scale: a positive number. mode: the choice of n: "fan_in", the size of `in_axis` times the receptive field (all
    unnamed axes); "fan_out", the size of `out_axis` times the receptive field; "fan_avg" and "fan_geo_avg", their
    arithmetic and geometric means. distribution: "truncated_normal" (truncated at two standard deviations, and
    rescaled), "normal" or "uniform"; for complex dtypes, on the disk. Raises ArgumentError for any other name,
    ShapeError for shapes of fewer than two axes where `in_axis` is left out. He et al. 2015, arXiv:1502.01852.

    >>> tracer.nn.initializers.variance_scaling(1.0, "fan_in", "normal")(tracer.random.key(0), (4, 1)).shape
    (4, 1)
    """
    if mode not in _FANS:
        raise ArgumentError(
            message(f"variance_scaling{here()}: no such mode", f"got {mode!r}", help=f"one of {', '.join(_FANS)}")
        )
    if distribution not in _DISTRIBUTIONS:
        raise ArgumentError(
            message(
                f"variance_scaling{here()}: no such distribution",
                f"got {distribution!r}",
                help=f"one of {', '.join(_DISTRIBUTIONS)}",
            )
        )

    def draw(key: Any, shape: tuple[int, ...], chosen: dtypes.DType) -> Array:
        terms = _FANS[mode](*_fans(shape, in_axis, out_axis, batch_axis)) or 1.0  # 0 of arrays without elements
        variance = _of(scale / terms, chosen)
        return _DISTRIBUTIONS[distribution](key, shape, chosen, variance)

    return _initializer(draw, dtype)


def glorot_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of uniform samples of variance 2 / (fan in + fan out).

    Also xavier_uniform: Glorot & Bengio 2010.

    >>> tracer.nn.initializers.glorot_uniform()(tracer.random.key(0), (1, 2))
    Array([[-0.23063812, -0.80243763]], f64)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of truncated normal samples of variance 2 / (fan in + fan out). Also xavier_normal.

    >>> tracer.nn.initializers.glorot_normal()(tracer.random.key(0), (1, 2))
    Array([[-0.18226018, -0.68825662]], f64)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of uniform samples of variance 1 / fan in: Klambauer et al. 2017, arXiv:1706.02515.

    >>> tracer.nn.initializers.lecun_uniform()(tracer.random.key(0), (1, 2))
    Array([[-0.28247285, -0.98278137]], f64)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of truncated normal samples of variance 1 / fan in: arXiv:1706.02515.

    >>> tracer.nn.initializers.lecun_normal()(tracer.random.key(0), (1, 2))
    Array([[-0.22322222, -0.84293876]], f64)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of uniform samples of variance 2 / fan in: arXiv:1502.01852. Also kaiming_uniform.

    >>> tracer.nn.initializers.he_uniform()(tracer.random.key(0), (1, 2))
    Array([[-0.39947694, -1.38986275]], f64)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """Return an initializer of truncated normal samples of variance 2 / fan in: arXiv:1502.01852. Also kaiming_normal.

    >>> tracer.nn.initializers.he_normal()(tracer.random.key(0), (1, 2))
    Array([[-0.31568389, -1.19209543]], f64)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer of orthogonal matrices, drawn uniformly, times `scale`.

    column_axis: the axis of the columns; all other axes together make the rows. Columns are orthonormal, or rows where
    they are fewer. Raises ShapeError for shapes of fewer than two axes. Saxe, McClelland & Ganguli 2014,
    arXiv:1312.6120.

    >>> w = tracer.nn.initializers.orthogonal()(tracer.random.key(0), (4, 2))
    >>> tnp.linalg.svdvals(w).round(8)
    Array([1., 1.], f64)
    """

    def draw(key: Any, shape: tuple[int, ...], chosen: dtypes.DType) -> Array:
        if len(shape) < 2:
            raise ShapeError(
                message(f"initializers.orthogonal{here()} takes shapes of two axes or more", f"got {shape}")
            )
        axis = axis_of("initializers.orthogonal", column_axis, len(shape))
        columns = shape[axis]
        rows = math.prod(shape[:axis] + shape[axis + 1 :])
        drawn = random.orthogonal(key, rows, (), chosen, columns).reshape(*shape[:axis], *shape[axis + 1 :], columns)
        return moveaxis(drawn, -1, axis) * _of(scale, chosen)

    return _initializer(draw, dtype)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer of convolution kernels that are zero but for an orthogonal matrix in the middle.

    scale, column_axis: as in `orthogonal`, of the matrix in the last two axes. Raises ShapeError unless shapes have
    three to five axes, and the last is not shorter than the one before. Xiao et al. 2018, arXiv:1806.05393.

    >>> tracer.nn.initializers.delta_orthogonal()(tracer.random.key(0), (3, 1, 1))[:, 0, 0] ** 2
    Array([0., 1., 0.], f64)
    """

    def draw(key: Any, shape: tuple[int, ...], chosen: dtypes.DType) -> Array:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ShapeError(
                message(
                    f"initializers.delta_orthogonal{here()} takes shapes [..., n, m] of three to five axes, n <= m",
                    f"got {shape}",
                )
            )
        matrix = orthogonal(scale, column_axis, chosen)(key, shape[-2:])
        middle = [((size - 1) // 2, size - 1 - (size - 1) // 2) for size in shape[:-2]]
        return pad(matrix.reshape(*[1] * len(middle), *shape[-2:]), [*middle, (0, 0), (0, 0)])

    return _initializer(draw, dtype)


def _initializer(draw: Callable[[Any, tuple[int, ...], dtypes.DType], Array], default: Any) -> Initializer:
    def initializer(key: Any, shape: Any, dtype: Any = default) -> Array:
        chosen = config.default_float if dtype is None else dtype_of_argument("initializer", dtype)
        return draw(key, sizes_argument("initializer", shape), chosen)

    return boundary(initializer)


def _of(value: Any, dtype: dtypes.DType) -> Array:
    return array_of("initializer", value).astype(dtype)


_FANS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _several(axes: Axes) -> Sequence[int]:
    return axes if isinstance(axes, Sequence) else [axes]


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """Return the fan in and the fan out: elements per output and per input."""
    if len(shape) <= 1 and in_axis == -2:
        raise ShapeError(
            message(
                f"variance_scaling{here()}: weights have an input axis and an output axis at least",
                f"got the shape {shape}",
                help="name in_axis and out_axis, or take initializers.normal or zeros for vectors",
            )
        )
    into, out, batch = (
        math.prod(shape[axis_of("initializers", axis, len(shape))] for axis in _several(axes))
        for axes in (in_axis, out_axis, batch_axis)
    )
    field = math.prod(shape) / into / out / batch if into * out * batch else 0.0
    return into * field, out * field


_CUT = 0.87962566103423978  # the standard deviation of the standard normal distribution truncated to (-2, 2)
_CUT_DISK = 0.95311164380491208  # and of the complex one, truncated to the disk of radius 2


def _truncated(key: Any, shape: tuple[int, ...], dtype: dtypes.DType, variance: Array) -> Array:
    if dtypes.is_complex(dtype):
        return _on_disk(key, shape, dtype, _cut_radius) * (sqrt(variance) / _of(_CUT_DISK, dtype))
    return random.truncated_normal(key, -2, 2, shape, dtype) * (sqrt(variance) / _of(_CUT, dtype))


def _normal(key: Any, shape: tuple[int, ...], dtype: dtypes.DType, variance: Array) -> Array:
    return random.normal(key, shape, dtype) * sqrt(variance)


def _uniform(key: Any, shape: tuple[int, ...], dtype: dtypes.DType, variance: Array) -> Array:
    if dtypes.is_complex(dtype):
        return _on_disk(key, shape, dtype, lambda u: sqrt(2 * u)) * sqrt(variance)
    return random.uniform(key, shape, dtype, -1) * sqrt(3 * variance)


def _cut_radius(u: Array) -> Array:
    """Return the radius of complex normal samples of variance 1 truncated to the disk of radius 2."""
    return sqrt(-log1p(-(1 - math.exp(-4)) * u))


def _on_disk(key: Any, shape: tuple[int, ...], dtype: dtypes.DType, radius: Callable[[Array], Array]) -> Array:
    """Return complex samples of uniform angle, whose radius is a function of a uniform sample."""
    real = dtypes.real_dtype(dtype)
    first, second = random.split(key)
    distance = radius(random.uniform(first, shape, real))
    angle = 2 * math.pi * random.uniform(second, shape, real)
    return from_parts(distance * cos(angle), distance * sin(angle))


_DISTRIBUTIONS = {"truncated_normal": _truncated, "normal": _normal, "uniform": _uniform}

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


_FUNCTIONS = [name for name in __all__ if name != "Initializer"]
set_boundaries(globals(), _FUNCTIONS)
say(
    [globals()[name] for name in _FUNCTIONS],
    {
        "shape": "of the array: a size, or several.",
        "in_axis": "where what goes in lies, one axis or several.",
        "out_axis": "where what comes out lies, one axis or several.",
        "batch_axis": "axes of separate weights, which count for neither.",
        "dtype": "of the array, by default `config.default_float`. Initializers are called as init(key, shape, dtype).",
    },
)
