"""How the arguments of every function of tracer.numpy are drawn, to compare with NumPy: one record for each name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.numpy.drawing import arrays, axis_for, pairs

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """How to draw a call. units: of the last place that values may be off; absolute: of what size errors are."""

    draw: st.SearchStrategy[Call]
    units: float = 16
    absolute: float = 0.0


def record(build: Callable[[Any], Call], **tolerance: float) -> Record:
    @st.composite
    def drawn(draw: Any) -> Call:
        return build(draw)

    return Record(drawn(), **tolerance)


def unary(kinds: str = "bifc", **tolerance: float) -> Record:
    return record(lambda draw: ((draw(arrays(kinds)),), {}), **tolerance)


def binary(kinds: str = "bifc", *, tame: bool = False, **tolerance: float) -> Record:
    return record(lambda draw: (draw(pairs(kinds, tame=tame)), {}), **tolerance)


def along(
    kinds: str = "bifc", *, none: bool = True, tame: bool = True, kind: str | None = None, **tolerance: float
) -> Record:
    """Of one array and axis=, and where it matters kind= of sorting."""

    def build(draw: Any) -> Call:
        x = draw(arrays(kinds, tame=tame))
        return (x,), {"axis": draw(axis_for(x, none=none))} | ({} if kind is None else {"kind": kind})

    return record(build, **tolerance)


def reducing(kinds: str = "bifc", *, tame: bool = True, **tolerance: float) -> Record:
    """Of one array, axis= and keepdims=."""

    def build(draw: Any) -> Call:
        x = draw(arrays(kinds, tame=tame))
        return (x,), {"axis": draw(axis_for(x)), "keepdims": draw(st.booleans())}

    return record(build, **tolerance)


def shaped(*arguments: Callable[[Any, Any], Any], kinds: str = "bifc", **tolerance: float) -> Record:
    """Of one array, and what is drawn to fit it."""

    def build(draw: Any) -> Call:
        x = draw(arrays(kinds))
        return (x, *(argument(draw, x) for argument in arguments)), {}

    return record(build, **tolerance)


def several(kinds: str = "bifc", *, count: int = 2, axis: bool = False) -> Record:
    """Of a list of arrays of one shape."""

    def build(draw: Any) -> Call:
        first = draw(arrays(kinds))
        rest = [draw(arrays(shape=first.shape, dtype=first.dtype.newbyteorder("="))) for _ in range(count - 1)]
        return ([first, *rest],), {"axis": draw(axis_for(first, none=False))} if axis else {}

    return record(build)


def vectors(kinds: str, count: int, **options: Any) -> Record:
    """Of vectors of small numbers."""
    length = st.integers(0, 5).map(lambda n: (n,))

    def build(draw: Any) -> Call:
        return tuple(draw(arrays(kinds, length, tame=True)) for _ in range(count)), options

    return record(build, absolute=1e3)


def within(draw: Any, x: Any) -> Any:
    return draw(axis_for(x, none=False))


def small(draw: Any, x: Any) -> Any:
    return draw(st.integers(-3, 3))


def indices(draw: Any, x: Any) -> Any:
    size = max(x.size, 1)
    return draw(arrays(shape=st.sampled_from([(), (2,), (0,), (2, 2)]), dtype="int64", tame=True)) % size


def permutation(draw: Any, x: Any) -> Any:
    return draw(st.permutations(range(x.ndim)))


def same_size(draw: Any, x: Any) -> Any:
    return draw(st.sampled_from([x.shape[::-1], (x.size,), (-1,), (1, x.size), (7,)]))


def matrices(draw: Any, x: Any) -> Any:
    return draw(arrays(shape=(*x.shape[:-2], *x.shape[-1:], 2), dtype=x.dtype.newbyteorder("="), tame=True))


def product(build: Callable[[Any, Any], Any], kinds: str = "bifc", **tolerance: float) -> Record:
    """Of a small array, and another that fits it."""

    def whole(draw: Any) -> Call:
        x = draw(arrays(kinds, tame=True))
        return (x, build(draw, x)), {}

    return record(whole, absolute=64, **tolerance)


def nonzero(draw: Any, x: Any) -> Any:
    divisor = alike(draw, x)
    return np.where(divisor == 0, 1, divisor).astype(x.dtype.newbyteorder("="))


def alike(draw: Any, x: Any) -> Any:
    return draw(arrays(shape=x.shape, dtype=x.dtype.newbyteorder("="), tame=True))


RECORDS: dict[str, Record] = {
    # Elementwise
    **dict.fromkeys(("abs", "absolute", "negative", "positive", "square"), unary("ifc")),
    "sign": unary("if"),
    **dict.fromkeys(
        ("ceil", "floor", "trunc", "rint", "fix", "fabs", "signbit", "spacing", "frexp", "modf"), unary("f")
    ),
    **dict.fromkeys(("isfinite", "isinf", "isnan", "iscomplex", "isreal", "real", "imag"), unary()),
    **dict.fromkeys(("conj", "conjugate"), unary("ifc")),
    **dict.fromkeys(("isneginf", "isposinf"), unary("bif")),
    **dict.fromkeys(("iscomplexobj", "isrealobj", "logical_not", "nan_to_num", "ndim", "shape", "size"), unary()),
    **dict.fromkeys(
        (
            "acos",
            "acosh",
            "arccos",
            "arccosh",
            "arcsin",
            "arcsinh",
            "arctan",
            "arctanh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "cbrt",
            "deg2rad",
            "degrees",
            "rad2deg",
            "radians",
        ),
        unary("f"),
    ),
    "angle": unary("fc"),
    "sinc": unary("f", absolute=4),
    "i0": record(lambda draw: ((draw(arrays("f", tame=True)),), {})),
    "round": shaped(lambda draw, x: draw(st.integers(0, 3)), kinds="f", absolute=4),
    "around": shaped(lambda draw, x: draw(st.integers(-2, 0)), kinds="i"),
    **dict.fromkeys(("bitwise_invert", "bitwise_not", "invert"), unary("bi")),
    "bitwise_count": unary("i"),
    **dict.fromkeys(("add", "multiply"), binary("bif")),
    "subtract": binary("ifc"),
    **dict.fromkeys(("divide", "true_divide", "copysign", "hypot", "nextafter"), binary("f")),
    **dict.fromkeys(("arctan2", "atan2", "heaviside"), binary("f")),
    **dict.fromkeys(("logaddexp", "logaddexp2"), binary("f", absolute=8)),
    **dict.fromkeys(("floor_divide", "remainder", "mod", "fmod", "divmod"), product(nonzero, "if")),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), binary("bif")),
    **dict.fromkeys(("equal", "not_equal"), binary()),
    **dict.fromkeys(("less", "less_equal"), binary("bif")),
    **dict.fromkeys(("greater", "greater_equal"), binary("bif")),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), binary()),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), binary("bi")),
    **dict.fromkeys(
        ("bitwise_left_shift", "left_shift", "bitwise_right_shift", "right_shift"),
        product(lambda draw, x: abs(alike(draw, x)), "i"),
    ),
    **dict.fromkeys(("pow", "power"), product(lambda draw, x: abs(alike(draw, x)), "if", units=64)),
    "float_power": product(lambda draw, x: abs(alike(draw, x)), "if", units=64),
    "gcd": binary("i", tame=True),
    "lcm": binary("i", tame=True),
    "ldexp": product(lambda draw, x: draw(arrays(shape=x.shape, dtype="int32", tame=True)), "f"),
    **dict.fromkeys(("isclose", "allclose", "array_equal", "array_equiv"), binary("bif")),
    "clip": record(lambda draw: (draw(pairs("if", 3)), {})),
    "where": record(
        lambda draw: (
            (
                draw(arrays("b", shape=(2, 1))),
                draw(arrays("f", shape=(2, 3), dtype="float64")),
                draw(arrays(shape=(3,), dtype="float64")),
            ),
            {},
        )
    ),
    # Reductions and scans
    **dict.fromkeys(("sum", "mean"), reducing(absolute=256)),
    "prod": reducing("bif", units=256),
    **dict.fromkeys(("all", "any", "count_nonzero"), reducing(tame=False)),
    **dict.fromkeys(("max", "min", "amax", "amin"), reducing("bif", tame=False)),
    "ptp": reducing("f"),
    **dict.fromkeys(("argmax", "argmin"), reducing("bif", tame=False)),
    **dict.fromkeys(("var", "std", "nanvar", "nanstd"), reducing("bifc", absolute=1024)),
    **dict.fromkeys(("nansum", "nanmean"), reducing("if", absolute=256)),
    "nanprod": reducing("if", units=256),
    **dict.fromkeys(("nanmax", "nanmin"), reducing("if", tame=False)),
    **dict.fromkeys(("nanargmax", "nanargmin"), along("if", tame=False)),
    **dict.fromkeys(("median", "nanmedian"), reducing("if", absolute=64)),
    **dict.fromkeys(("cumsum", "nancumsum"), along("f", absolute=256)),
    **dict.fromkeys(("cumprod", "nancumprod"), along("f", units=256)),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), along("if", none=False, units=256, absolute=256)),
    "average": record(
        lambda draw: ((draw(arrays("if", shape=(2, 3), tame=True)),), {"axis": draw(st.sampled_from([None, 0, 1, 5]))}),
        absolute=256,
    ),
    **dict.fromkeys(("quantile", "nanquantile"), product(lambda draw, x: draw(st.sampled_from([0.0, 0.3, 1.0])), "f")),
    **dict.fromkeys(
        ("percentile", "nanpercentile"), product(lambda draw, x: draw(st.sampled_from([0.0, 30.0, 100.0])), "f")
    ),
    # Shapes
    **dict.fromkeys(
        (
            "ravel",
            "transpose",
            "permute_dims",
            "copy",
            "asarray",
            "array",
            "asanyarray",
            "ascontiguousarray",
            "require",
        ),
        unary(),
    ),
    **dict.fromkeys(
        ("atleast_1d", "atleast_2d", "atleast_3d", "flip", "matrix_transpose", "argwhere", "flatnonzero"), unary()
    ),
    **dict.fromkeys(("fliplr", "flipud", "rot90", "nonzero", "diagflat"), unary()),
    "trim_zeros": vectors("f", 1),
    **dict.fromkeys(("zeros_like", "ones_like"), unary()),
    "full_like": shaped(lambda draw, x: 1),
    "empty_like": record(lambda draw: ((draw(arrays(shape=(0, 2))),), {})),
    "expand_dims": shaped(within),
    "moveaxis": shaped(within, within),
    "swapaxes": shaped(within, within),
    "rollaxis": shaped(within),
    "reshape": shaped(same_size),
    "resize": shaped(lambda draw, x: draw(st.sampled_from([(2, 2), (5,), (0,)]))),
    "squeeze": unary(),
    "roll": shaped(small),
    "repeat": shaped(lambda draw, x: draw(st.integers(0, 3))),
    "tile": shaped(lambda draw, x: draw(st.sampled_from([2, (2, 1), (0,), (1, 2, 1, 1)]))),
    "broadcast_to": shaped(lambda draw, x: draw(st.sampled_from([(2, *x.shape), (3, 3), x.shape]))),
    "broadcast_arrays": binary(),
    "unstack": along(none=False),
    "astype": shaped(lambda draw, x: "float64", kinds="bif"),
    **dict.fromkeys(("concatenate", "concat", "stack"), several(axis=True)),
    **dict.fromkeys(("vstack", "hstack", "dstack", "column_stack", "block"), several()),
    "append": record(lambda draw: ((draw(arrays("f")), draw(arrays("f"))), {})),
    **dict.fromkeys(("split", "array_split"), shaped(lambda draw, x: draw(st.integers(1, 3)))),
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), shaped(lambda draw, x: draw(st.integers(1, 2)))),
    "pad": shaped(lambda draw, x: draw(st.sampled_from([0, 1, (2, 1)]))),
    **dict.fromkeys(("diag", "diagonal", "tril", "triu", "trace"), shaped(small, kinds="bif", absolute=1e300)),
    "diff": shaped(lambda draw, x: draw(st.integers(0, 3)), kinds="if"),
    "ediff1d": unary("f"),
    "gradient": along("f", none=False, absolute=8),
    "meshgrid": vectors("if", 2),
    "ix_": vectors("i", 2),
    # Sorting, searching, sets
    "sort": along("bif", tame=False),
    "argsort": along("bif", tame=False, kind="stable"),
    "sort_complex": unary("bif"),
    "lexsort": record(lambda draw: ((draw(arrays("f", shape=(2, 4))),), {})),
    "searchsorted": vectors("f", 2),
    "digitize": record(lambda draw: ((draw(arrays("f")), np.array([-1.0, 0.5, 2.0])), {})),
    "isin": record(lambda draw: ((draw(arrays("if")), draw(arrays("i", tame=True))), {})),
    "unique": unary("bif"),
    **dict.fromkeys(("unique_all", "unique_counts", "unique_inverse"), unary("bi")),
    **dict.fromkeys(
        ("union1d", "intersect1d", "setdiff1d", "setxor1d"),
        record(
            lambda draw: (
                (draw(arrays("i", tame=True, dtype="int32")), draw(arrays("i", tame=True, dtype="int32"))),
                {},
            )
        ),
    ),
    "take": shaped(indices),
    "compress": record(lambda draw: ((draw(arrays("b", shape=(2,))), draw(arrays(shape=(2, 3)))), {"axis": 0})),
    "extract": record(lambda draw: ((draw(arrays("b", shape=(2, 3))), draw(arrays(shape=(2, 3)))), {})),
    "delete": shaped(lambda draw, x: 0),
    "insert": shaped(lambda draw, x: 0, lambda draw, x: 1),
    "take_along_axis": record(lambda draw: ((draw(arrays(shape=(2, 3))), np.array([[0, 2], [1, 1]])), {"axis": 1})),
    "choose": record(
        lambda draw: ((np.array([0, 1, 1]), [draw(arrays(shape=(3,), dtype="float64")) for _ in range(2)]), {})
    ),
    "select": record(lambda draw: (([draw(arrays("b", shape=(3,)))], [draw(arrays(shape=(3,), dtype="float64"))]), {})),
    **dict.fromkeys(
        ("bincount",), record(lambda draw: ((abs(draw(arrays(shape=(4,), dtype="int64", tame=True))),), {}))
    ),
    # Products
    **dict.fromkeys(("dot", "inner", "vdot"), vectors("f", 2)),
    "outer": vectors("f", 2),
    "kron": binary("if", tame=True, absolute=64),
    "matmul": product(matrices),
    "tensordot": record(
        lambda draw: ((draw(arrays("f", shape=(2, 3), tame=True)), draw(arrays("f", shape=(3, 0), tame=True)), 1), {})
    ),
    "vecdot": product(alike, "ifc"),
    "cross": record(lambda draw: (tuple(draw(arrays(shape=(2, 3), dtype="float64", tame=True)) for _ in range(2)), {})),
    "matvec": product(
        lambda draw, x: draw(arrays(shape=x.shape[-1:], dtype=x.dtype.newbyteorder("="), tame=True)), "f"
    ),
    "vecmat": product(matrices, "f"),
    "einsum": record(
        lambda draw: (
            ("...i,...i->...", draw(arrays("f", shape=(2, 3), tame=True)), draw(arrays("f", shape=(3,), tame=True))),
            {},
        ),
        absolute=64,
    ),
    # Samples and polynomials
    **dict.fromkeys(("convolve", "correlate"), vectors("if", 2)),
    "interp": record(
        lambda draw: ((draw(arrays("f", tame=True)), np.array([-2.0, 0.0, 1.0]), np.array([3.0, -1.0, 2.0])), {}),
        absolute=8,
    ),
    "trapezoid": along("f", none=False, absolute=64),
    "unwrap": along("f", none=False, absolute=64),
    **dict.fromkeys(("polyadd", "polysub", "polymul"), vectors("f", 2)),
    "polyval": vectors("f", 2),
    **dict.fromkeys(("polyder", "polyint"), vectors("f", 1)),
    "poly": vectors("f", 1),
    "vander": vectors("f", 1),
    "histogram": record(lambda draw: ((draw(arrays("f", tame=True)), 3), {}), absolute=16),
    "histogram_bin_edges": record(lambda draw: ((draw(arrays("f", tame=True)), 3), {}), absolute=16),
    "cov": record(lambda draw: ((draw(arrays("f", shape=(2, 4), tame=True)),), {}), absolute=1024),
    "packbits": unary("bi"),
    "unpackbits": record(lambda draw: ((draw(arrays(dtype="uint8")),), {})),
    "real_if_close": unary("f"),
    "isfortran": record(lambda draw: ((np.ones((2, 2)),), {})),
    "put_along_axis": record(lambda draw: ((np.ones((2, 2)), np.array([[0], [1]]), 3.0), {"axis": 1})),
    "copyto": record(lambda draw: ((np.ones((2, 2)), draw(arrays("f", shape=(2,)))), {})),
    "fill_diagonal": record(lambda draw: ((np.ones((2, 2)), 3.0), {})),
    "place": record(lambda draw: ((np.ones((2, 2)), draw(arrays("b", shape=(2, 2))), [3.0]), {})),
    "putmask": record(lambda draw: ((np.ones((2, 2)), draw(arrays("b", shape=(2, 2))), [3.0, 4.0]), {})),
    "put": record(lambda draw: ((np.ones((2, 2)), [0, 3], [3.0, 4.0]), {})),
    "min_scalar_type": record(lambda draw: ((draw(arrays("bif", shape=(2,), dtype="int32")),), {})),
    "result_type": unary(),
    "common_type": unary("f"),
    "corrcoef": record(
        lambda draw: ((np.array([[1.0, 2.0, 4.0], [0.0, 1.0, -1.0]]) + draw(st.integers(0, 3)),), {}), absolute=8
    ),
}

# Of linalg and fft, NumPy's own where values are known: layouts, dtypes and what is refused are ours to get right.


def transforms(several: bool) -> Record:
    """Of one array, and an axis or the lengths along all."""

    def build(draw: Any) -> Call:
        x = draw(arrays("fc" if several else "ifc", tame=True))
        if several:
            return (x,), {"s": draw(st.sampled_from([None, (3,) * x.ndim])), "axes": tuple(range(x.ndim))}
        return (x,), {"n": draw(st.sampled_from([None, 1, 4, 0])), "axis": draw(axis_for(x, none=False))}

    return record(build, absolute=1024)


MATRICES: list[tuple[int, ...]] = [(2, 2), (3, 1, 1), (2, 3, 3), (2, 3), (3,)]
MATRIX = st.sampled_from(MATRICES).flatmap(lambda shape: arrays("ifc", shape, tame=True))


def _hermitian(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The matrices and their adjoints added, where they are square: of others NumPy reads one triangle, we both.

    Ones stand for NaN, which we refuse; of some such matrices NumPy returns NaN.
    """
    finite = np.where(np.isnan(a), np.ones_like(a), a)
    return finite + np.conj(np.swapaxes(finite, -1, -2)) if a.ndim > 1 and a.shape[-1] == a.shape[-2] else finite


RECORDS |= {
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft"), transforms(several=False)
    ),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn"), transforms(several=True)),
    **dict.fromkeys(
        ("linalg.svdvals", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm", "linalg.matrix_transpose"),
        record(lambda draw: ((draw(arrays("ifc", tame=True)),), {}), absolute=1024),
    ),
    "linalg.pinv": record(lambda draw: ((draw(MATRIX),), {}), absolute=2**20),
    "linalg.eigvalsh": record(lambda draw: ((_hermitian(draw(MATRIX)),), {}), absolute=2**20),
}

# Functions that take no array, or that stand for something else than a value; where they are tested.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "creation by sizes": (
        "arange", "empty", "eye", "full", "geomspace", "identity", "indices", "linspace", "logspace", "ones", "tri",
        "zeros", "fromfunction", "bartlett", "blackman", "hamming", "hanning", "kaiser",
    ),
    "functions of functions": (
        "apply_along_axis", "apply_over_axes", "frompyfunc", "piecewise", "vectorize", "ufunc",
    ),
    "places and indices": (
        "diag_indices", "diag_indices_from", "mask_indices", "ravel_multi_index", "tril_indices", "tril_indices_from",
        "triu_indices", "triu_indices_from", "unravel_index", "ndenumerate", "ndindex",
    ),
    "dtypes": ("can_cast", "finfo", "iinfo", "isdtype", "issubdtype", "promote_types", "isscalar", "iterable"),
    "shapes, paths and the namespace": ("broadcast_shapes", "einsum_path", "__array_namespace_info__"),
    "what becomes of floating-point errors": ("errstate", "geterr", "seterr"),
    "files, text and memory": (
        "array2string", "array_repr", "array_str", "asarray_chkfinite", "base_repr", "binary_repr",
        "format_float_positional", "format_float_scientific", "from_dlpack", "frombuffer", "fromfile", "fromiter",
        "fromstring", "genfromtxt", "get_printoptions", "load", "loadtxt", "may_share_memory", "printoptions", "save",
        "savetxt", "savez", "savez_compressed", "set_printoptions", "shares_memory",
    ),
    "ours alone": ("apply_where",),
    "order or size left open": ("argpartition", "partition", "polydiv", "roots", "unique_values"),
    "many arguments": ("histogram2d", "histogramdd", "polyfit"),
}  # fmt: skip
