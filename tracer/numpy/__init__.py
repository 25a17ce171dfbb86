"""`tracer.numpy`: NumPy's functions on arrays that are traced, differentiated, batched and compiled.

Names, arguments and meaning are NumPy's and the array API's; dtypes are promoted as in JAX with 64 bits on. Every
function takes arrays, numbers, NumPy arrays and nested lists. Arrays are immutable values: `x[i] = v` makes the name
x stand for another one.

>>> x = tnp.linspace(0.0, 1.0, 3)
>>> tnp.sum(x**2)
Array(1.25, f64)
"""

from importlib import import_module as _import_module

from tracer.numpy import fft as fft
from tracer.numpy import linalg as linalg
from tracer.numpy.arithmetic import (
    abs,
    absolute,
    add,
    clip,
    divide,
    divmod,
    fabs,
    floor_divide,
    fmax,
    fmin,
    fmod,
    heaviside,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    positive,
    remainder,
    sign,
    subtract,
    true_divide,
)
from tracer.numpy.bits import (
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)
from tracer.numpy.choosing import (
    apply_where,
    argwhere,
    flatnonzero,
    nonzero,
    select,
    where,
)
from tracer.numpy.constants import (
    e,
    euler_gamma,
    inf,
    nan,
    newaxis,
    pi,
)
from tracer.numpy.contraction import (
    einsum,
    einsum_path,
)
from tracer.numpy.creation import (
    arange,
    array,
    asarray,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from tracer.numpy.distinct import (
    unique,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from tracer.numpy.dlpack import from_dlpack
from tracer.numpy.dtypes import (
    astype,
    bfloat16,
    bool_,
    can_cast,
    cdouble,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    iinfo,
    inexact,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    isdtype,
    issubdtype,
    number,
    promote_types,
    result_type,
    signedinteger,
    single,
    uint,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from tracer.numpy.dtypes import bool_ as bool
from tracer.numpy.editing import (
    apply_over_axes,
    fromfunction,
    geomspace,
    insert,
    piecewise,
    resize,
    sort_complex,
)
from tracer.numpy.grids import (
    c_,
    index_exp,
    ix_,
    mask_indices,
    mgrid,
    ogrid,
    r_,
    ravel_multi_index,
    s_,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
    unravel_index,
)
from tracer.numpy.histograms import (
    digitize,
    histogram,
    histogram2d,
    histogram_bin_edges,
    histogramdd,
)
from tracer.numpy.inspection import namespace_info as __array_namespace_info__
from tracer.numpy.joining import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    repeat,
    roll,
    split,
    stack,
    tile,
    unstack,
    vsplit,
    vstack,
)
from tracer.numpy.logic import (
    allclose,
    array_equal,
    array_equiv,
    equal,
    greater,
    greater_equal,
    isclose,
    iscomplex,
    iscomplexobj,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    isrealobj,
    isscalar,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from tracer.numpy.manipulation import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    rollaxis,
    rot90,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from tracer.numpy.matrices import (
    diag,
    diag_indices,
    diag_indices_from,
    diagflat,
    diagonal,
    eye,
    identity,
    indices,
    meshgrid,
    trace,
    tri,
    tril,
    triu,
)
from tracer.numpy.moments import (
    corrcoef,
    cov,
    nanprod,
    nanstd,
    nanvar,
)
from tracer.numpy.padding import (
    pad,
)
from tracer.numpy.polynomials import (
    poly,
    polyadd,
    polyder,
    polydiv,
    polyint,
    polymul,
    polysub,
    polyval,
    trim_zeros,
    vander,
)
from tracer.numpy.powers import (
    cbrt,
    float_power,
    hypot,
    pow,
    power,
    reciprocal,
    sqrt,
    square,
)
from tracer.numpy.products import (
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    vdot,
    vecdot,
    vecmat,
)
from tracer.numpy.quantiles import (
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
)
from tracer.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)
from tracer.numpy.rounding import (
    around,
    ceil,
    conj,
    conjugate,
    copysign,
    fix,
    floor,
    imag,
    modf,
    nan_to_num,
    nextafter,
    real,
    rint,
    round,
    signbit,
    trunc,
)
from tracer.numpy.scans import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    nancumprod,
    nancumsum,
)
from tracer.numpy.sets import (
    intersect1d,
    setdiff1d,
    setxor1d,
    union1d,
)
from tracer.numpy.signals import (
    bartlett,
    blackman,
    convolve,
    correlate,
    ediff1d,
    gradient,
    hamming,
    hanning,
    interp,
    trapezoid,
    unwrap,
)
from tracer.numpy.sorting import (
    argpartition,
    argsort,
    isin,
    lexsort,
    partition,
    searchsorted,
    sort,
)
from tracer.numpy.statistics import (
    average,
    bincount,
    mean,
    median,
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nansum,
    std,
    var,
)
from tracer.numpy.storing import (
    array_repr,
    array_str,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    iterable,
    load,
    save,
    savez,
)
from tracer.numpy.taking import (
    apply_along_axis,
    choose,
    compress,
    delete,
    extract,
    take,
    take_along_axis,
)
from tracer.numpy.transcendental import (
    acos,
    acosh,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    rad2deg,
    radians,
    sin,
    sinc,
    sinh,
    tan,
    tanh,
)
from tracer.numpy.vectorizing import (
    vectorize,
)
from tracer.numpy.writing import (
    copyto,
    fill_diagonal,
    place,
    put,
    put_along_axis,
    putmask,
)
from tracer.runtime.replay import replayed
from tracer.trace.array import Array as ndarray  # noqa: N813  # the name that users know
from tracer.trace.tracebacks import set_boundaries

__array_api_version__ = "2025.12"

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "absolute", "acos", "acosh", "add", "all", "allclose",
    "amax", "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes", "apply_where", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort",
    "argwhere", "around", "array", "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asarray",
    "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bartlett", "bfloat16", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "c_", "can_cast", "cbrt", "cdouble", "ceil", "choose",
    "clip", "column_stack", "complex64", "complex128", "complex_", "complexfloating", "compress", "concat",
    "concatenate", "conj", "conjugate", "convolve", "copy", "copysign", "copyto", "corrcoef", "correlate", "cos",
    "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum",
    "deg2rad", "degrees", "delete", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff",
    "digitize", "divide", "divmod", "dot", "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum",
    "einsum_path", "empty", "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract",
    "eye", "fabs", "fft", "fill_diagonal", "finfo", "fix", "flatnonzero", "flip", "fliplr", "flipud", "float8_e4m3fn",
    "float8_e5m2", "float16", "float32", "float64", "float_", "float_power", "floating", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full",
    "full_like", "generic", "geomspace", "gradient", "greater", "greater_equal", "hamming", "hanning", "heaviside",
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "identity", "iinfo",
    "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert", "int8", "int16", "int32", "int64", "int_",
    "integer", "interp", "intersect1d", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin",
    "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_",
    "kron", "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid", "mgrid",
    "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile",
    "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis", "nextafter", "nonzero", "not_equal",
    "number", "ogrid", "ones", "ones_like", "outer", "pad", "partition", "percentile", "permute_dims", "pi",
    "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval",
    "positive", "pow", "power", "prod", "promote_types", "ptp", "put", "put_along_axis", "putmask", "quantile", "r_",
    "rad2deg", "radians", "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape",
    "resize", "result_type", "right_shift", "rint", "roll", "rollaxis", "rot90", "round", "s_", "save", "savez",
    "searchsorted", "select", "setdiff1d", "setxor1d", "shape", "sign", "signbit", "signedinteger", "sin", "sinc",
    "single", "sinh", "size", "sort", "sort_complex", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid",
    "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "uint", "uint8", "uint16", "uint32", "uint64", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unravel_index", "unsignedinteger", "unstack", "unwrap",
    "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where", "zeros", "zeros_like",
]  # fmt: skip

# Those that come often when small arrays are explored, and look at no elements: see `tracer.runtime.replay`.
_REPLAYED = {
    "all", "amax", "amin", "any", "arange", "argmax", "argmin", "argsort", "astype", "atleast_1d", "atleast_2d",
    "broadcast_to", "column_stack", "concat", "concatenate", "count_nonzero", "cross", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "diag", "diagonal", "diff", "dot", "dstack", "einsum", "expand_dims", "eye",
    "flip", "fliplr", "flipud", "full", "full_like", "hstack", "identity", "inner", "kron", "linspace", "matmul",
    "matrix_transpose", "max", "mean", "median", "min", "moveaxis", "nanmax", "nanmean", "nanmin", "nansum", "ones",
    "ones_like", "outer", "pad", "permute_dims", "prod", "ptp", "ravel", "reshape", "roll", "rot90", "sort", "split",
    "squeeze", "stack", "std", "sum", "swapaxes", "take_along_axis", "tensordot", "tile", "trace", "transpose", "tril",
    "triu", "unstack", "var", "vdot", "vecdot", "vstack", "zeros", "zeros_like",
}  # fmt: skip

set_boundaries(globals(), _REPLAYED, replayed)
set_boundaries(globals(), set(__all__) - _REPLAYED)


def __getattr__(name: str) -> object:
    """`special`, where SciPy looks for the special functions of an array's namespace (data-apis/array-api#725)."""
    if name == "special":
        return _import_module("tracer.scipy.special")
    raise AttributeError(f"module 'tracer.numpy' has no attribute {name!r}")
