"""`tracer.lax`: the primitives as functions, and control flow, with JAX's names.

The primitives do not promote and do not broadcast. Python scalars take the dtype of the arrays beside them, unless they
are of a wider type. Arrays without axes take the shape.
"""

from importlib import import_module as _import_module
from types import FunctionType as _FunctionType

from tracer.absent import absent
from tracer.lax import linalg as linalg
from tracer.lax.arranging import (
    approx_max_k,
    approx_min_k,
    broadcast_like,
    broadcast_to_rank,
    collapse,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_shape_tuple,
    conv_shape_tuple,
    dtype,
    empty,
    index_take,
    optimization_barrier,
    platform_dependent,
    scatter_sub,
    shape_as_value,
    stack,
    tile,
    unstack,
)
from tracer.lax.branching import cond, switch
from tracer.lax.collectives import (
    all_gather,
    all_to_all,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from tracer.lax.face import public, strict
from tracer.lax.fourier import FftType, fft
from tracer.lax.high_products import mulhi
from tracer.lax.implicit import custom_root
from tracer.lax.in_dim import (
    broadcast,
    broadcast_shapes,
    dynamic_index_in_dim,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice_in_dim,
    index_in_dim,
    sort_key_val,
)
from tracer.lax.incomplete_gamma import igamma, igamma_grad_a, igammac, random_gamma_grad
from tracer.lax.lanes import axis_index, axis_size
from tracer.lax.linear_solves import custom_linear_solve
from tracer.lax.loops import fori_loop, scan, while_loop
from tracer.lax.mapping import map
from tracer.lax.polygammas import polygamma
from tracer.lax.prefix_sums import associative_scan
from tracer.lax.reducing import reduce, reduce_window, reduce_window_shape_tuple
from tracer.lax.selecting import select_and_scatter
from tracer.primitives.arrays import dynamic_slice as _slicing
from tracer.primitives.arrays import slice_pad_concatenate as _joining
from tracer.primitives.arrays import sorting as _sorting
from tracer.primitives.arrays.reductions import reductions as _reductions
from tracer.primitives.base import broadcasting as _broadcasting
from tracer.primitives.base import shapes as _shapes
from tracer.primitives.control import cumulative as _scans
from tracer.primitives.control import scatter_mul as _scatter_mul
from tracer.primitives.elementwise import arithmetic as _arithmetic
from tracer.primitives.elementwise import bits as _bits
from tracer.primitives.elementwise import comparison as _comparison
from tracer.primitives.elementwise import complex as _complex
from tracer.primitives.elementwise import conversion as _conversion
from tracer.primitives.elementwise import exponential as _exponential
from tracer.primitives.elementwise import fma as _fused
from tracer.primitives.elementwise import hyperbolic as _hyperbolic
from tracer.primitives.elementwise import powers as _powers
from tracer.primitives.elementwise import precision as _precision
from tracer.primitives.elementwise import rounding as _rounding
from tracer.primitives.elementwise import special as _special
from tracer.primitives.elementwise import trigonometric as _trigonometric
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.primitives.linalg import convolution_layouts as _convolution_layouts
from tracer.primitives.linalg import dot_general as _contractions
from tracer.runtime.eager.call_cache import cached, static
from tracer.runtime.system.shardings import with_sharding_constraint
from tracer.trace.docstrings import say
from tracer.trace.tracebacks import set_boundaries

Precision = _contractions.Precision
ConvDimensionNumbers = _convolution_layouts.ConvDimensionNumbers
RoundingMethod = _rounding.RoundingMethod
GatherDimensionNumbers = _slicing.GatherDimensionNumbers
GatherScatterMode = _slicing.GatherScatterMode
ScatterDimensionNumbers = _slicing.ScatterDimensionNumbers
for _numbers in (ConvDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers, GatherScatterMode):
    static(_numbers)

add = strict(_arithmetic.add)
sub = strict(_arithmetic.sub)
mul = strict(_arithmetic.mul)
neg = public(_arithmetic.neg)
div = strict(_arithmetic.div, divisor=True)
max = strict(_arithmetic.max)
min = strict(_arithmetic.min)
clamp = strict(_arithmetic.clamp)
reciprocal = public(_arithmetic.reciprocal)
bitwise_and = strict(_bits.and_)
bitwise_or = strict(_bits.or_)
bitwise_xor = strict(_bits.xor)
bitwise_not = public(_bits.not_)
shift_left = strict(_bits.shift_left)
shift_right_logical = strict(_bits.shift_right_logical)
shift_right_arithmetic = strict(_bits.shift_right_arithmetic)
population_count = public(_bits.population_count)
clz = public(_bits.clz)
broadcast_in_dim = public(_broadcasting.broadcast_in_dim)
full = public(_broadcasting.full)
full_like = public(_broadcasting.full_like)
expand_dims = public(_broadcasting.expand_dims)
reduce_sum = public(_broadcasting.reduce_sum)
eq = strict(_comparison.eq)
ne = strict(_comparison.ne)
lt = strict(_comparison.lt)
le = strict(_comparison.le)
gt = strict(_comparison.gt)
ge = strict(_comparison.ge)
is_finite = public(_comparison.is_finite)
select = strict(_comparison.select, selector="pred")
select_n = strict(_comparison.select_n, selector="which")
real = public(_complex.real)
imag = public(_complex.imag)
complex = strict(_complex.complex)
conj = public(_complex.conj)
abs = public(_complex.abs)
sign = public(_complex.sign)
dot_general = public(_contractions.dot_general)
dot = public(_contractions.dot)
batch_matmul = public(_contractions.batch_matmul)
convert_element_type = public(_conversion.convert_element_type)
bitcast_convert_type = public(_conversion.bitcast_convert_type)
conv = public(_convolution_layouts.conv)
conv_dimension_numbers = public(_convolution_layouts.conv_dimension_numbers)
conv_general_dilated = public(_convolution_layouts.conv_general_dilated)
conv_transpose = public(_convolution_layouts.conv_transpose)
conv_with_general_padding = public(_convolution_layouts.conv_with_general_padding)
padtype_to_pads = public(_convolution_layouts.padtype_to_pads)
exp = public(_exponential.exp)
exp2 = public(_exponential.exp2)
expm1 = public(_exponential.expm1)
log = public(_exponential.log)
log1p = public(_exponential.log1p)
logistic = public(_exponential.logistic)
sinh = public(_hyperbolic.sinh)
cosh = public(_hyperbolic.cosh)
tanh = public(_hyperbolic.tanh)
asinh = public(_hyperbolic.asinh)
acosh = public(_hyperbolic.acosh)
atanh = public(_hyperbolic.atanh)
slice = public(_joining.slice)
slice_in_dim = public(_joining.slice_in_dim)
pad = public(_joining.pad)
concatenate = public(_joining.concatenate)
split = public(_joining.split)
square = public(_powers.square)
integer_pow = public(_powers.integer_pow)
pow = strict(_powers.pow)
sqrt = public(_powers.sqrt)
rsqrt = public(_powers.rsqrt)
cbrt = public(_powers.cbrt)
reduce_precision = public(_precision.reduce_precision)
reduce_prod = public(_reductions.reduce_prod)
reduce_max = public(_reductions.reduce_max)
reduce_min = public(_reductions.reduce_min)
reduce_and = public(_reductions.reduce_and)
reduce_or = public(_reductions.reduce_or)
reduce_xor = public(_reductions.reduce_xor)
argmax = public(_reductions.argmax)
argmin = public(_reductions.argmin)
floor = public(_rounding.floor)
ceil = public(_rounding.ceil)
round = public(_rounding.round)
rem = strict(_rounding.rem, divisor=True)
nextafter = strict(_rounding.nextafter)
cumsum = public(_scans.cumsum)
cumprod = public(_scans.cumprod)
cummax = public(_scans.cummax)
cummin = public(_scans.cummin)
cumlogsumexp = public(_scans.cumlogsumexp)
iota = public(_shapes.iota)
broadcasted_iota = public(_shapes.broadcasted_iota)
reshape = public(_shapes.reshape)
transpose = public(_shapes.transpose)
rev = public(_shapes.rev)
squeeze = public(_shapes.squeeze)
dynamic_slice = public(_slicing.dynamic_slice)
dynamic_update_slice = public(_slicing.dynamic_update_slice)
gather = public(_slicing.gather)
scatter = public(_slicing.scatter)
scatter_add = public(_slicing.scatter_add)
scatter_mul = public(_scatter_mul.scatter_mul)
scatter_min = public(_slicing.scatter_min)
scatter_max = public(_slicing.scatter_max)
sort = public(_sorting.sort)
top_k = public(_sorting.top_k)
erf = public(_special.erf)
erfc = public(_special.erfc)
erf_inv = public(_special.erf_inv)
lgamma = public(_special.lgamma)
digamma = public(_special.digamma)
sin = public(_trigonometric.sin)
cos = public(_trigonometric.cos)
tan = public(_trigonometric.tan)
asin = public(_trigonometric.asin)
acos = public(_trigonometric.acos)
atan = public(_trigonometric.atan)
atan2 = strict(_trigonometric.atan2)
fma = strict(_fused.fma)

__all__ = [
    "ConvDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode", "Precision", "RoundingMethod",
    "ScatterDimensionNumbers", "abs", "acos", "acosh", "add", "all_gather", "all_to_all", "approx_max_k",
    "approx_min_k", "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh", "axis_index",
    "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc", "bitcast_convert_type", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse", "complex", "concatenate",
    "cond", "conj", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_with_general_padding", "convert_element_type", "cos", "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "custom_linear_solve", "custom_root", "digamma", "div", "dot", "dot_general", "dtype",
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "empty", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "fft", "floor", "fma", "fori_loop", "full", "full_like", "gather", "ge", "gt", "igamma",
    "igamma_grad_a", "igammac", "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le",
    "lgamma", "log", "log1p", "logistic", "lt", "map", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "optimization_barrier", "pad", "padtype_to_pads", "pbroadcast", "platform_dependent", "pmax", "pmean", "pmin",
    "polygamma", "population_count", "pow", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
    "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window", "reduce_window_shape_tuple", "reduce_xor", "rem",
    "reshape", "rev", "round", "rsqrt", "scan", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_sub", "select", "select_and_scatter", "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val", "split", "sqrt",
    "square", "squeeze", "stack", "stop_gradient", "sub", "switch", "tan", "tanh", "tile", "top_k", "transpose",
    "unstack", "while_loop", "with_sharding_constraint", "zeta",
]  # fmt: skip

# Functions composed of functions that read no values; the functions above are cached already.
_CACHED = frozenset((
    "approx_max_k", "approx_min_k", "broadcast", "broadcast_like", "broadcast_to_rank", "collapse",
    "conv_general_dilated_local", "conv_general_dilated_patches", "dynamic_index_in_dim", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice_in_dim", "empty", "fft", "igamma", "igamma_grad_a", "igammac",
    "index_in_dim", "index_take", "mulhi", "random_gamma_grad", "scatter_sub", "sort_key_val", "stack", "tile",
    "unstack",
))  # fmt: skip
set_boundaries(globals(), _CACHED, cached)
# Functions composed of functions of tracer.numpy and tracer.scipy, which import this room: made at their first use.
_COMPOSED = ("bessel_i0e", "bessel_i1e", "betainc", "zeta")
_HERE = [name for name in __all__ if name not in _COMPOSED]
set_boundaries(globals(), [name for name in _HERE if name not in _CACHED])

say(
    [face for name in _HERE if type(face := globals()[name]) is _FunctionType],
    {
        "axis_index_groups": "lists of lanes, which are equally many; every group is a batch of its own.",
        "indices_are_sorted": "a hint without effect.",
        "precision": "a `Precision` or its name, as of `dot_general`.",
        "predicate": "bool, [] or one for each index vector; nothing is done where it is false.",
        "preferred_element_type": "the dtype of the result, by default the operands'.",
        "reverse": "from the last element to the first.",
        "unique_indices": "a promise that no two windows meet.",
    },
)


def __getattr__(name: str) -> object:
    if name in _COMPOSED:
        return getattr(_import_module("tracer.scipy.special_functions.strict"), name)
    raise absent(__name__, name)
