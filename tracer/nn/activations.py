"""Elementwise activation functions. Integers are cast to float; float16 and bfloat16 keep their dtype."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.errors import ShapeError, message
from tracer.numpy import abs as absolute
from tracer.numpy import clip, exp, expm1, log, log1p, logaddexp, maximum, minimum, split, sqrt, square, tanh, where
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact, promoted_real, require_real
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.elementwise import exponential, special
from tracer.primitives.elementwise.arithmetic import max as larger
from tracer.primitives.elementwise.comparison import gt, select
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp


def _float(name: str, x: Any) -> Array:
    (value,) = promoted_inexact(name, x)
    return value


def _real(name: str, x: Any) -> Array:
    (value,) = promoted_real(name, x)
    return value


def _require_real(name: str, *values: Any) -> None:
    for value in values:
        require_real(name, array_of(name, value).dtype, value)


def _ordered(name: str, x: Any) -> Array:
    """Return an array of real numbers in its own dtype. Raises DTypeError for complex numbers."""
    value = array_of(name, x)
    require_real(name, value.dtype, value)
    return value


@custom_jvp
def _relu(x: Array) -> Array:
    return larger(x, 0)


_relu.defjvps(lambda tangent, output, x: select(gt(x, 0), tangent, 0))  # 0 at 0, where `max` gives 1/2


def relu(x: Any) -> Array:
    """Return max(x, 0), in x's dtype; the derivative at 0 is 0.

    x: real numbers [*s]. Returns [*s].

    >>> tracer.nn.relu(tnp.asarray([-1.0, 2.0]))
    Array([0., 2.], f64)
    """
    return _relu(_ordered("relu", x))


def relu6(x: Any) -> Array:
    """Return min(max(x, 0), 6); the derivative is 0 at both ends.

    x: real numbers [*s]. Returns [*s], of x's dtype.

    >>> tracer.nn.relu6(tnp.asarray([-1.0, 2.0, 9.0]))
    Array([0., 2., 6.], f64)
    """
    value = _ordered("relu6", x)
    return where((value > 0) & (value < 6), value, clip(stop_gradient(value), 0, 6))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """Return x where it is positive, negative_slope x elsewhere.

    >>> tracer.nn.leaky_relu(tnp.asarray([-1.0, 2.0]))
    Array([-0.01,  2.  ], f64)
    """
    value = _real("leaky_relu", x)
    _require_real("leaky_relu", negative_slope)
    return where(value >= 0, value, negative_slope * value)


def sigmoid(x: Any) -> Array:
    """Return the logistic function 1 / (1 + exp(-x)), without overflow.

    >>> tracer.nn.sigmoid(tnp.asarray([0.0, 1000.0]))
    Array([0.5, 1. ], f64)
    """
    return exponential.logistic(_float("sigmoid", x))


def log_sigmoid(x: Any) -> Array:
    """Return log(sigmoid(x)), without overflow.

    >>> tracer.nn.log_sigmoid(tnp.asarray([-1000.0, 1000.0]))
    Array([-1000.,    -0.], f64)
    """
    return -softplus(-_real("log_sigmoid", x))


def softplus(x: Any) -> Array:
    """Return log(1 + exp(x)), without overflow.

    >>> tracer.nn.softplus(tnp.asarray([-1000.0, 1000.0]))
    Array([   0., 1000.], f64)
    """
    return logaddexp(_real("softplus", x), 0.0)


def sparse_plus(x: Any) -> Array:
    """Return 0 below -1, x above 1, and (x + 1)² / 4 between.

    >>> tracer.nn.sparse_plus(tnp.asarray([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], f64)
    """
    value = _real("sparse_plus", x)
    return where(value <= -1, 0.0, where(value >= 1, value, square(value + 1) / 4))


def sparse_sigmoid(x: Any) -> Array:
    """Return 0 below -1, 1 above 1, and (x + 1) / 2 between: the derivative of `sparse_plus`.

    >>> tracer.nn.sparse_sigmoid(tnp.asarray([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], f64)
    """
    return 0.5 * clip(_real("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


def identity(x: Any) -> Array:
    """Return x as an array.

    x: numbers or bools [*s]. Returns [*s], of x's dtype.

    >>> tracer.nn.identity(tnp.asarray([1, 2]))
    Array([1, 2], i64)
    """
    return array_of("identity", x)


def squareplus(x: Any, b: Any = 4) -> Array:
    """Return (x + sqrt(x² + b)) / 2: Barron 2021, arXiv:2112.11687.

    >>> tracer.nn.squareplus(tnp.asarray([0.0]))
    Array([1.], f64)
    """
    value = _real("squareplus", x)
    _require_real("squareplus", b)
    return (value + sqrt(square(value) + b)) / 2


def soft_sign(x: Any) -> Array:
    """Return x / (1 + |x|).

    >>> tracer.nn.soft_sign(tnp.asarray([-1.0, 3.0]))
    Array([-0.5 ,  0.75], f64)
    """
    value = _real("soft_sign", x)
    return value / (1 + absolute(value))


def silu(x: Any) -> Array:
    """Return x sigmoid(x), also called swish: Elfwing, Uchibe & Doya 2017, arXiv:1702.03118.

    >>> tracer.nn.silu(tnp.asarray([0.0, 1000.0]))
    Array([   0., 1000.], f64)
    """
    value = _float("silu", x)
    return value * sigmoid(value)


swish = silu


def mish(x: Any) -> Array:
    """Return x tanh(softplus(x)): Misra 2019, arXiv:1908.08681.

    >>> tracer.nn.mish(tnp.asarray([0.0, 1000.0]))
    Array([   0., 1000.], f64)
    """
    value = _real("mish", x)
    return value * tanh(softplus(value))


def gelu(x: Any, approximate: bool = True) -> Array:
    """Return x Φ(x), with the normal distribution function Φ: Hendrycks & Gimpel 2016, arXiv:1606.08415.

    approximate: whether to compute x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³))); otherwise Φ is computed by erf.

    >>> tracer.nn.gelu(tnp.asarray([-1.0, 0.0, 1.0]), approximate=False)
    Array([-0.15865525,  0.        ,  0.84134475], f64)
    """
    value = _real("gelu", x)
    if approximate:
        return value * 0.5 * (1.0 + tanh(math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)))
    return value * 0.5 * special.erfc(-value * math.sqrt(0.5))


def log1mexp(x: Any) -> Array:
    """Return log(1 - exp(-x)), exact for x > 0 of any size: Mächler 2012. NaN below 0.

    >>> tracer.nn.log1mexp(tnp.asarray([1e-20, 1.0, 50.0]))
    Array([-4.60517019e+01, -4.58675145e-01, -1.92874985e-22], f64)
    """
    value = _real("log1mexp", x)
    near = value < math.log(2)
    return where(near, log(-expm1(where(near, -value, -1.0))), log1p(-exp(where(near, -1.0, -value))))


def glu(x: Any, axis: int = -1) -> Array:
    """Multiply the first half of an axis by the sigmoid of the second.

    x: real [..., 2 n, ...]; axis: by default the last. Returns floats [..., n, ...]; integers are cast. Raises
    ShapeError for an axis of odd size. Dauphin et al. 2017, arXiv:1612.08083.

    >>> tracer.nn.glu(tnp.asarray([2.0, 0.0]))
    Array([1.], f64)
    """
    value = _real("glu", x)
    if value.shape[axis_of("glu", axis, value.ndim)] % 2:
        raise ShapeError(message(f"glu{here()}: the axis must have an even size", f"got {value.type}, axis={axis}"))
    first, second = split(value, 2, axis)
    return first * sigmoid(second)


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """Return x where it is positive, alpha (exp(x) - 1) elsewhere.

    Clevert, Unterthiner & Hochreiter 2015, arXiv:1511.07289.

    >>> tracer.nn.elu(tnp.asarray([0.0, 2.0]))
    Array([0., 2.], f64)
    """
    value = _real("elu", x)
    _require_real("elu", alpha)
    return where(value > 0, value, alpha * expm1(where(value > 0, 0.0, value)))


def celu(x: Any, alpha: Any = 1.0) -> Array:
    """Return x where it is positive, alpha (exp(x / alpha) - 1) elsewhere: Barron 2017, arXiv:1704.07483.

    >>> tracer.nn.celu(tnp.asarray([0.0, 2.0]))
    Array([0., 2.], f64)
    """
    value = _real("celu", x)
    _require_real("celu", alpha)
    return maximum(value, 0.0) + alpha * expm1(minimum(value, 0.0) / alpha)


def selu(x: Any) -> Array:
    """Return `elu` scaled so that layers keep mean 0 and variance 1: Klambauer et al. 2017, arXiv:1706.02515.

    >>> tracer.nn.selu(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.05070099], f64)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def hard_tanh(x: Any) -> Array:
    """Clamp x to -1 to 1; the derivative is 1 at both ends.

    x: real numbers [*s]. Returns [*s], of x's dtype.

    >>> tracer.nn.hard_tanh(tnp.asarray([-3.0, 0.5]))
    Array([-1. ,  0.5], f64)
    """
    value = _ordered("hard_tanh", x)
    return where((value >= -1) & (value <= 1), value, clip(stop_gradient(value), -1, 1))


def hard_sigmoid(x: Any) -> Array:
    """Return relu6(x + 3) / 6.

    >>> tracer.nn.hard_sigmoid(tnp.asarray([0.0]))
    Array([0.5], f64)
    """
    return relu6(_real("hard_sigmoid", x) + 3.0) / 6.0


def hard_silu(x: Any) -> Array:
    """Return x hard_sigmoid(x), also called hard_swish.

    >>> tracer.nn.hard_silu(tnp.asarray([3.0]))
    Array([3.], f64)
    """
    value = _real("hard_silu", x)
    return value * hard_sigmoid(value)


hard_swish = hard_silu
