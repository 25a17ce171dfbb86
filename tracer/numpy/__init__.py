"""`tracer.numpy`: NumPy's functions on arrays that are traced, differentiated, batched and compiled.

Names, arguments and meaning are NumPy's and the array API's; dtypes are promoted as in JAX with 64 bits on. Every
function takes arrays, scalars, NumPy arrays and nested lists. Arrays are handles on immutable values: `x[i] = v` and
`out=x` rebind the handle x. Functions have `out=` where NumPy's have it, and elementwise functions take NumPy's
`where=`, `dtype=` and `casting=` as well.

>>> x = tnp.linspace(0.0, 1.0, 3)
>>> tnp.sum(x**2)
Array(1.25, f64)

A chapter is a module of this package; it is imported when one of its names is first read.
"""

# ruff: noqa: F401, F403  # imports only for type checkers

from functools import partial as _partial
from importlib import import_module as _import_module
from threading import RLock as _RLock
from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING
from typing import Any as _Any

from tracer.numpy.arrays.ufunc_methods import attach as _attach
from tracer.numpy.core.docstrings import complete as _complete
from tracer.numpy.core.ufunc_keywords import place_of_out as _place_of_out
from tracer.numpy.core.ufunc_keywords import taken as _taken
from tracer.runtime.eager.call_cache import cached as _cached
from tracer.trace.array import Array as ndarray  # noqa: N813  # the name that users know
from tracer.trace.tracebacks import Options as _Options
from tracer.trace.tracebacks import boundary as _boundary
from tracer.trace.tracebacks import set_boundaries as _set_boundaries
from tracer.version import VERSION as _VERSION

if TYPE_CHECKING:
    from tracer.numpy import fft as fft
    from tracer.numpy import lib as lib
    from tracer.numpy import linalg as linalg
    from tracer.numpy.arrays.inspection import *
    from tracer.numpy.arrays.inspection import namespace_info as __array_namespace_info__
    from tracer.numpy.arrays.io import *
    from tracer.numpy.arrays.numpy_compatibility import *
    from tracer.numpy.arrays.ufuncs import *
    from tracer.numpy.arrays.vectorize import *
    from tracer.numpy.chapters.divisors import *
    from tracer.numpy.chapters.editing import *
    from tracer.numpy.chapters.exponents import *
    from tracer.numpy.chapters.fitting import *
    from tracer.numpy.chapters.index_tricks import *
    from tracer.numpy.chapters.packbits import *
    from tracer.numpy.chapters.padding import *
    from tracer.numpy.chapters.polynomials import *
    from tracer.numpy.chapters.put import *
    from tracer.numpy.chapters.signals import *
    from tracer.numpy.chapters.window_functions import *
    from tracer.numpy.core.constants import *
    from tracer.numpy.core.dlpack import *
    from tracer.numpy.core.dtypes import *
    from tracer.numpy.core.dtypes import bool_ as bool
    from tracer.numpy.core.float_errors import *
    from tracer.numpy.core.printing import *
    from tracer.numpy.elementwise.arithmetic import *
    from tracer.numpy.elementwise.bitwise import *
    from tracer.numpy.elementwise.logic import *
    from tracer.numpy.elementwise.powers import *
    from tracer.numpy.elementwise.rounding import *
    from tracer.numpy.elementwise.transcendental import *
    from tracer.numpy.reduce.covariance import *
    from tracer.numpy.reduce.cumulative import *
    from tracer.numpy.reduce.einsum import *
    from tracer.numpy.reduce.histograms import *
    from tracer.numpy.reduce.matmul import *
    from tracer.numpy.reduce.quantiles import *
    from tracer.numpy.reduce.reductions import *
    from tracer.numpy.reduce.sets import *
    from tracer.numpy.reduce.sorting import *
    from tracer.numpy.reduce.statistics import *
    from tracer.numpy.reduce.unique import *
    from tracer.numpy.shapes.creation import *
    from tracer.numpy.shapes.joining import *
    from tracer.numpy.shapes.manipulation import *
    from tracer.numpy.shapes.matrices import *
    from tracer.numpy.shapes.ranges import *
    from tracer.numpy.shapes.repeating import *
    from tracer.numpy.shapes.take import *
    from tracer.numpy.shapes.where import *

__array_api_version__ = "2025.12"
__version__ = _VERSION

# Every name by its chapter; "there:here" where the chapter has another name for it.
_CHAPTERS = {
    "elementwise.arithmetic": (
        "abs absolute add clip divide divmod fabs floor_divide fmax fmin fmod heaviside maximum minimum mod multiply "
        "negative positive remainder sign subtract true_divide"
    ),
    "elementwise.bitwise": (
        "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
        "bitwise_xor invert left_shift right_shift"
    ),
    "shapes.where": "apply_where argwhere flatnonzero nonzero select where",
    "core.constants": "e euler_gamma inf nan newaxis pi",
    "reduce.einsum": "einsum einsum_path",
    "shapes.creation": "array asarray copy empty empty_like full full_like ones ones_like zeros zeros_like",
    "shapes.ranges": "arange geomspace linspace logspace",
    "reduce.unique": "unique unique_all unique_counts unique_inverse unique_values",
    "chapters.divisors": "gcd lcm",
    "core.dlpack": "from_dlpack",
    "core.dtypes": (
        "astype bfloat16 bool_:bool bool_ byte can_cast cdouble character complex128 complex64 complex_ "
        "complexfloating ComplexWarning csingle double dtype finfo flexible float16 float32 float4_e2m1fn "
        "float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
        "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic half iinfo inexact int1 int16 int2 int32 "
        "int4 int64 int8 int_ intc integer intp isdtype "
        "issubdtype long longlong number object_ promote_types result_type short signedinteger single ubyte uint "
        "uint1 uint16 uint2 uint32 uint4 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort"
    ),
    "chapters.editing": "apply_over_axes delete fromfunction insert piecewise resize sort_complex",
    "chapters.exponents": "frexp ldexp spacing",
    "chapters.fitting": "polyfit roots",
    "core.float_errors": "errstate geterr seterr",
    "chapters.index_tricks": (
        "c_ index_exp ix_ mask_indices mgrid ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from "
        "triu_indices triu_indices_from unravel_index"
    ),
    "arrays.numpy_compatibility": (
        "asanyarray asarray_chkfinite ascontiguousarray common_type False_ genfromtxt isfortran loadtxt "
        "may_share_memory min_scalar_type ndenumerate ndindex real_if_close require savetxt savez_compressed "
        "shares_memory True_"
    ),
    "reduce.histograms": "digitize histogram histogram2d histogram_bin_edges histogramdd",
    "arrays.inspection": "namespace_info:__array_namespace_info__",
    "shapes.joining": (
        "append array_split block column_stack concat concatenate dsplit dstack hsplit hstack split stack unstack "
        "vsplit vstack"
    ),
    "shapes.repeating": "repeat roll tile",
    "elementwise.logic": (
        "allclose array_equal array_equiv equal greater greater_equal isclose iscomplex iscomplexobj isfinite isinf "
        "isnan isneginf isposinf isreal isrealobj isscalar less less_equal logical_and logical_not logical_or "
        "logical_xor not_equal"
    ),
    "shapes.manipulation": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr "
        "flipud matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis rot90 shape size squeeze swapaxes "
        "transpose"
    ),
    "shapes.matrices": (
        "diag diag_indices diag_indices_from diagflat diagonal eye identity indices meshgrid trace tri tril triu"
    ),
    "reduce.covariance": "corrcoef cov nanprod nanstd nanvar",
    "chapters.packbits": "packbits unpackbits",
    "chapters.padding": "pad",
    "chapters.polynomials": "poly polyadd polyder polydiv polyint polymul polysub polyval trim_zeros vander",
    "elementwise.powers": "cbrt float_power hypot pow power reciprocal sqrt square",
    "core.printing": (
        "array2string base_repr binary_repr format_float_positional format_float_scientific get_printoptions "
        "printoptions set_printoptions"
    ),
    "reduce.matmul": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
    "reduce.quantiles": "nanmedian nanpercentile nanquantile percentile quantile",
    "reduce.reductions": "all amax amin any argmax argmin count_nonzero max min prod ptp sum",
    "elementwise.rounding": (
        "around ceil conj conjugate copysign fix floor imag modf nextafter real rint round signbit trunc"
    ),
    "reduce.cumulative": "cumprod cumsum cumulative_prod cumulative_sum diff nancumprod nancumsum",
    "reduce.sets": "intersect1d setdiff1d setxor1d union1d",
    "chapters.signals": "convolve correlate ediff1d gradient interp trapezoid unwrap",
    "reduce.sorting": "argpartition argsort isin lexsort partition searchsorted sort",
    "reduce.statistics": "average bincount mean median nanargmax nanargmin nanmax nanmean nanmin nansum std var",
    "arrays.io": "array_repr array_str frombuffer fromfile fromiter fromstring iterable load save savez",
    "shapes.take": "choose compress extract take take_along_axis",
    "elementwise.transcendental": (
        "acos acosh angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh cos cosh "
        "deg2rad degrees exp exp2 expm1 log log10 log1p log2 logaddexp logaddexp2 rad2deg radians sin sinc sinh tan "
        "tanh"
    ),
    "arrays.ufuncs": "frompyfunc ufunc",
    "arrays.vectorize": "apply_along_axis vectorize",
    "chapters.window_functions": "bartlett blackman hamming hanning i0 kaiser",
    "chapters.put": "copyto fill_diagonal nan_to_num place put put_along_axis putmask",
}

# Functions with prepared calls, whose operations depend on no elements: see `tracer.runtime.eager.call_cache`.
_CACHED = {
    "all", "allclose", "amax", "amin", "angle", "any", "append", "arange", "argmax", "argmin", "argpartition",
    "argsort", "around", "array_equal", "array_equiv", "array_split", "astype", "atleast_1d", "atleast_2d",
    "atleast_3d", "average", "bartlett", "bitwise_count", "blackman", "block", "broadcast_arrays", "broadcast_to",
    "clip", "column_stack", "concat", "concatenate", "conj", "conjugate", "corrcoef", "correlate",
    "count_nonzero", "cov", "cross", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "delete", "diag",
    "diagflat", "diagonal", "diff", "divmod", "dot", "dsplit", "dstack", "ediff1d", "einsum", "empty",
    "empty_like", "expand_dims", "eye", "flip", "fliplr", "flipud", "fmax", "fmin", "frexp", "full", "full_like", "gcd",
    "geomspace", "gradient", "hamming", "hanning", "hsplit", "hstack", "i0", "identity", "imag", "indices", "inner",
    "insert", "interp", "isclose", "iscomplex", "isin", "isneginf", "isposinf", "isreal", "kaiser", "kron", "lcm",
    "ldexp", "lexsort", "linspace", "logaddexp2", "logical_and", "logical_or", "logical_xor", "logspace", "matmul",
    "matrix_transpose", "matvec", "max", "mean", "median", "meshgrid", "min", "modf", "moveaxis",
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar", "ones", "ones_like", "outer", "packbits", "pad", "partition", "permute_dims", "poly",
    "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "prod", "ptp", "ravel",
    "real", "repeat", "reshape", "resize", "roll", "rollaxis", "rot90", "round", "searchsorted", "select", "sinc",
    "sort", "sort_complex", "spacing", "split", "squeeze", "stack", "std", "sum", "swapaxes", "take", "take_along_axis",
    "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "unpackbits", "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat",
    "vsplit", "vstack", "zeros", "zeros_like",
}  # fmt: skip

_MODULES = {
    "fft": "tracer.numpy.fft",
    "lib": "tracer.numpy.lib",
    "linalg": "tracer.numpy.linalg",
    "special": "tracer.scipy.special",  # where SciPy looks for an array's special functions (data-apis/array-api#725)
}

_CHAPTER_OF = {name.rpartition(":")[2]: chapter for chapter, names in _CHAPTERS.items() for name in names.split()}

__all__ = sorted((*_CHAPTER_OF, "__array_api_version__", "fft", "lib", "linalg", "ndarray"))  # noqa: PLE0605

_loading = _RLock()


def _with_options(make: _Any, function: _Any) -> _Any:
    """Return `make(function)`, with the keywords that NumPy's function has beside the parameters."""
    name = function.__name__
    return make(function, named=True, options=_Options(_taken(name), _partial(_optioned, name), _place_of_out(name)))


def _optioned(*call: _Any) -> _Any:
    return _import_module("tracer.numpy.chapters.ufunc_options").called(*call)


def __getattr__(name: str) -> object:
    """Return a name at its first read, after importing its chapter with all names in it. Raises AttributeError."""
    if name in _MODULES:
        return _import_module(_MODULES[name])
    if name not in _CHAPTER_OF:
        table = _import_module("tracer.numpy.arrays.absent").ABSENT
        reason = table.get(name) or _import_module("tracer.torch_names").NAMES["tracer.numpy"].get(name)
        raise AttributeError(f"module 'tracer.numpy' has no attribute {name!r}{f' ({reason})' if reason else ''}")
    chapter = _CHAPTER_OF[name]
    module = _import_module(f"tracer.numpy.{chapter}")
    with _loading:
        if name not in globals():
            pairs = [pair.partition(":") for pair in _CHAPTERS[chapter].split()]
            faces = {here or there: getattr(module, there) for there, _, here in pairs}
            namespace = {"__name__": __name__, **faces}
            _set_boundaries(namespace, faces.keys() & _CACHED, _partial(_with_options, _cached))
            _set_boundaries(namespace, faces.keys() - _CACHED, _partial(_with_options, _boundary))
            for face in faces:
                globals()[face] = namespace[face]
                _attach(face, namespace[face])
            for function in {face for face in namespace.values() if type(face) is _FunctionType}:
                _complete(function)
    return globals()[name]


def __dir__() -> list[str]:
    return list(__all__)
