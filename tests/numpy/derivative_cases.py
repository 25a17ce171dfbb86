"""Calls of tracer.numpy's differentiable functions that the other tables have only at kinks, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.value_cases import UNIT, Case, M, P, T, V, X, Y

MASK = X > 0
SQUARE = 2 * np.eye(4)[[2, 0, 3, 1]] + np.sin(np.arange(32.0)).reshape(2, 4, 4) / 2


def _each(names: str, *operands: Any) -> list[Case]:
    return [Case(name, lambda xp, *xs, name=name: getattr(xp, name)(*xs), operands) for name in names.split()]


DERIVATIVE_CASES: list[Case] = [
    *_each("sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 square cbrt sinc deg2rad rad2deg i0", X),
    *_each("negative positive abs fabs conj real nan_to_num sign imag angle real_if_close", X),
    *_each("asarray array asanyarray ascontiguousarray copy require atleast_1d atleast_2d", X),
    *_each("flipud diagflat cumulative_sum sort_complex trim_zeros", V * 1.0),
    *_each("nansum nanmean nanmax nanmin nanmedian nanprod nanstd nanvar nancumsum nancumprod", X),
    *_each("logaddexp2 vdot broadcast_arrays", X, Y), Case("vecdot", lambda xp, x, y: xp.vecdot(x, y), (X, Y)),
    Case("matrix_transpose", lambda xp, x: xp.matrix_transpose(x), (T,)),
    *[Case(name, lambda xp, x, name=name: getattr(xp.linalg, name)(x), (SQUARE,)) for name in ("det", "inv")],
    Case("det 3", lambda xp, x: xp.linalg.det(x), (SQUARE[0, :3, :3],)),
    Case("slogdet", lambda xp, x: xp.linalg.slogdet(x), (SQUARE,)),
    Case("solve", lambda xp, x, y: xp.linalg.solve(x, y), (SQUARE, SQUARE[0])),
    Case("solve one", lambda xp, x, y: xp.linalg.solve(x, y), (SQUARE[0], SQUARE)),
    Case("solve vector", lambda xp, x, y: xp.linalg.solve(x, y), (SQUARE, SQUARE[0, 0])),
    Case("cholesky", lambda xp, x: xp.linalg.cholesky(x @ x.mT + xp.eye(4)), (SQUARE,)),
    Case("cholesky upper", lambda xp, x: xp.linalg.cholesky(x @ x.mT + xp.eye(4), upper=True), (SQUARE[0],)),
    Case("matrix_power", lambda xp, x: xp.linalg.matrix_power(x, -2), (SQUARE,)),
    Case("tensorinv", lambda xp, x: xp.linalg.tensorinv(x.reshape(4, 2, 2), ind=1), (SQUARE[0],)),
    Case("tensorsolve", lambda xp, x, y: xp.linalg.tensorsolve(x.reshape(4, 2, 2), y), (SQUARE[0], SQUARE[1, 0])),
    Case("arccosh", lambda xp, x: xp.arccosh(x), (1.5 + P,)), Case("angle", lambda xp, x: xp.angle(x + 1j), (X,)),
    Case("conj", lambda xp, x: xp.imag(xp.conj(xp.sin(x + 1j))), (X,)),
    Case("abs", lambda xp, x: xp.abs(xp.exp(x * 1j) + x), (X,)),
    Case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True), (X,)),
    Case("astype", lambda xp, x: xp.astype(x, xp.float64) * x, (X,)),
    Case("delete", lambda xp, x: xp.delete(x, 1, axis=1), (X,)),
    Case("unstack", lambda xp, x: xp.unstack(x, axis=1), (X,)), Case("vsplit", lambda xp, x: xp.vsplit(x, 3), (X,)),
    Case("hsplit", lambda xp, x: xp.hsplit(x, 2), (X,)), Case("dsplit", lambda xp, x: xp.dsplit(x, 2), (T,)),
    Case("extract", lambda xp, x: xp.extract(MASK, x), (X,)), Case("modf", lambda xp, x: xp.modf(x)[0], (X,)),
    Case("ldexp", lambda xp, x: xp.ldexp(x, np.array([1, -2, 0, 3])), (X,)),
    Case("frexp", lambda xp, x: xp.frexp(x)[0], (X,)), Case("kaiser", lambda xp, b: xp.kaiser(5, b), (np.array(2.5),)),
    Case("float_power", lambda xp, x, y: xp.float_power(x, y), (P, Y)),
    Case("full_like", lambda xp, v: xp.full_like(np.ones((3, 5)), v), (V,)),
    Case("logspace", lambda xp, v: xp.logspace(v, 2 * v, 3), (UNIT[0],)),
    Case("fromfunction", lambda xp, v: xp.fromfunction(lambda i: v * i, (5,)), (V,)),
    Case("identity", lambda xp, x: xp.identity(3) @ x, (X,)),
    Case("take", lambda xp, x: xp.take(x, [2, 0, 2], 0), (X,)),
    Case("take_along_axis", lambda xp, x: xp.take_along_axis(x, np.array([[0, 3, 3]] * 3), axis=1), (X,)),
    Case("where", lambda xp, x, y: xp.where(MASK, x * x, y), (X, Y)),
    Case("nanquantile", lambda xp, x: xp.nanquantile(x, 0.3, axis=1), (X,)),
    Case("nanpercentile", lambda xp, x: xp.nanpercentile(x, 30, axis=0), (X,)),
    Case("partition", lambda xp, x: xp.sort(xp.partition(x, 2, axis=1), axis=1), (X,)),
    Case("polyfit", lambda xp, x, y: xp.polyfit(x, y, 2), (V, V**3)),
    Case("roots", lambda xp, x: xp.sort(xp.roots(x).real), (np.array([1.0, -6.0, 11.0, -6.0]),)),
    Case("vecmat", lambda xp, x, y: xp.vecmat(x, y), (X, np.concatenate([M, M], axis=1)[None, :, :3])),
    Case("histogram_bin_edges", lambda xp, x: xp.histogram_bin_edges(x, 4), (X,)),
    Case("bincount", lambda xp, w: xp.bincount(np.array([0, 2, 2, 1]), weights=w, length=3)
         if xp.__name__ == "tracer.numpy" else xp.bincount(np.array([0, 2, 2, 1]), weights=w), (X[0],)),
]  # fmt: skip

# Functions without a derivative of their own, and why.
WITHOUT: dict[str, tuple[str, ...]] = {
    "constant between jumps": (
        "ceil", "fix", "floor", "heaviside", "rint", "round", "trunc", "signbit",
    ),
    "bools, integers or places": (
        "all", "allclose", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "array_equal",
        "array_equiv", "bitwise_and", "bitwise_count", "bitwise_not", "bitwise_or", "bitwise_xor", "count_nonzero",
        "digitize", "equal", "flatnonzero", "gcd", "greater", "greater_equal", "histogram", "histogram2d",
        "histogramdd", "intersect1d", "isclose", "iscomplex", "iscomplexobj", "isfinite", "isfortran", "isin",
        "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "lcm", "left_shift", "less", "less_equal",
        "lexsort", "logical_and", "logical_not", "logical_or", "logical_xor", "nanargmax", "nanargmin", "nonzero",
        "not_equal", "packbits", "right_shift", "searchsorted", "setdiff1d", "setxor1d", "union1d", "unpackbits",
        "ravel_multi_index", "unravel_index", "ndim", "shape", "size",
    ),
    "neighbours of floats": (
        "nextafter", "spacing",
    ),
    "places of jumps decide the shape": (
        "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    ),
    "no operand": (
        "arange", "bartlett", "blackman", "broadcast_shapes", "diag_indices", "diag_indices_from", "empty",
        "empty_like", "eye", "hamming", "hanning", "indices", "mask_indices", "ones", "ones_like", "tri",
        "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "zeros", "zeros_like", "ndindex",
        "ix_",
    ),
    "dtypes": (
        "can_cast", "common_type", "finfo", "iinfo", "isdtype", "issubdtype", "min_scalar_type", "promote_types",
        "result_type", "isscalar", "iterable", "__array_namespace_info__", "einsum_path",
    ),
    "what becomes of floating-point errors": ("errstate", "geterr", "seterr"),
    "files, text and memory": (
        "array2string", "array_repr", "array_str", "asarray_chkfinite", "base_repr", "binary_repr",
        "format_float_positional", "format_float_scientific", "from_dlpack", "frombuffer", "fromfile", "fromiter",
        "fromstring", "genfromtxt", "get_printoptions", "load", "loadtxt", "may_share_memory", "ndenumerate",
        "printoptions", "save", "savetxt", "savez", "savez_compressed", "set_printoptions", "shares_memory",
    ),
    "written as by x.at, whose tests differentiate it": (
        "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask",
    ),
    "of functions, tested with their own": (
        "apply_where", "frompyfunc",
    ),
}  # fmt: skip
