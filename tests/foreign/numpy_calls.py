"""A call of every function of NumPy's that hands itself to its arguments, and what comes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.foreign.outcomes import NUMPY, OURS, PLAIN, REFUSED, Case

_rng = np.random.default_rng(11)
X = _rng.uniform(0.1, 0.9, (3, 4))
Y = _rng.uniform(0.1, 0.9, (3, 4))
Z = X + 1j * Y
S = X[:, :3] + np.eye(3)  # a matrix with an inverse
V = _rng.uniform(0.1, 0.9, 5)
I = _rng.integers(0, 9, (3, 4))  # noqa: E741
J = _rng.integers(1, 7, (3, 4))
T = _rng.uniform(0.1, 0.9, (2, 3, 4))


def _each(names: str, *operands: Any, **outcomes: Any) -> list[Case]:
    outcomes = {"grad": None, **outcomes}
    return [Case(name, lambda *xs, name=name: _function(name)(*xs), operands, **outcomes) for name in names.split()]


def _function(name: str) -> Any:
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _one(name: str, call: Any, *operands: Any, **outcomes: Any) -> Case:
    return Case(name, call, operands, **{"grad": None, **outcomes})


CASES: list[Case] = [
    *_each(
        "abs absolute acos arccos arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt cos cosh deg2rad degrees "
        "exp exp2 expm1 fabs log log10 log1p log2 negative positive rad2deg radians reciprocal sin sinh sqrt square "
        "tan tanh sinc angle real nan_to_num",
        X, grad=OURS,
    ),
    *_each("acosh arccosh", X + 1.0, grad=OURS),
    *_each(
        "ceil conj conjugate fix floor isfinite isinf isnan isneginf isposinf logical_not rint sign signbit trunc "
        "frexp modf spacing i0 imag iscomplex isreal around round",
        X,
    ),
    *_each("iscomplexobj isrealobj ndim shape size", X, eager=PLAIN, jit=PLAIN),
    *_each("bitwise_count bitwise_invert bitwise_not invert", I),
    *_each(
        "add arctan2 atan2 copysign divide float_power fmax fmin heaviside hypot logaddexp logaddexp2 maximum minimum "
        "multiply nextafter pow power remainder mod fmod floor_divide divmod subtract true_divide",
        X, Y + 1.0,
    ),
    *_each("equal greater greater_equal less less_equal not_equal logical_and logical_or logical_xor isclose", X, Y),
    *_each("bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor", I, J),
    *_each("gcd lcm left_shift right_shift", I, J),
    _one("ldexp", np.ldexp, X, I),
    *_each("matmul matvec vecmat vecdot", S, S, grad=OURS),
    *_each(
        "amax amin max min mean prod ptp std sum var median nanmax nanmean nanmedian nanmin nanprod nanstd nansum "
        "nanvar average",
        X, grad=OURS,
    ),
    *_each("all any argmax argmin nanargmax nanargmin count_nonzero", X),
    *_each("cumprod cumsum nancumprod nancumsum diff gradient ediff1d trapezoid unwrap", V, grad=OURS),
    *_each("cumulative_prod cumulative_sum", V, grad=OURS),
    *_each("percentile nanpercentile", X, 30.0, grad=None),
    *_each("quantile nanquantile", X, 0.3, grad=None),
    *_each(
        "copy corrcoef cov diag diagflat diagonal flip fliplr flipud matrix_transpose ravel sort squeeze trace "
        "transpose tril triu rot90 permute_dims",
        X, grad=OURS,
    ),
    *_each("atleast_1d atleast_2d atleast_3d", X, eager=NUMPY, grad=OURS),
    *_each("ones_like zeros_like", X), _one("empty_like", lambda x: 0.0 * np.empty_like(x), X),
    *_each("argsort sort_complex", X), *_each("argwhere flatnonzero nonzero", X, jit=REFUSED),
    *_each("inner outer vdot cross convolve correlate kron dot", V[:3], V[2:], grad=OURS),
    _one("tensordot", lambda x, y: np.tensordot(x, y, 2), X, Y, grad=OURS),
    _one("einsum", lambda x, y: np.einsum("ij,kj->ik", x, y), X, Y, grad=OURS),
    _one("einsum_path", lambda x, y: np.einsum_path("ij,kj->ik", x, y)[0][-1], X, Y, eager=PLAIN, jit=PLAIN),
    *_each("allclose array_equal array_equiv", X, Y),
    _one("append", np.append, X, Y, grad=OURS),
    _one("apply_along_axis", lambda x: np.apply_along_axis(np.sum, 0, x), X, grad=OURS),
    _one("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, [0, 1]), X, grad=OURS),
    _one("argpartition", lambda x: np.sort(np.argpartition(x, 2)[:2]), V),
    _one("partition", lambda x: np.partition(x, 2)[2], V, grad=OURS),
    _one("array_split", lambda x: np.array_split(x, 3), V, grad=OURS),
    _one("array2string", np.array2string, X, eager=PLAIN, jit=REFUSED),
    _one("array_repr", np.array_repr, X, eager=PLAIN, jit=PLAIN),
    _one("array_str", np.array_str, X, eager=PLAIN, jit=REFUSED),
    _one("astype", lambda x: np.astype(x, np.float32), X, tolerance=1e-6),
    _one("bincount", lambda x: np.bincount(x, minlength=9)[:9], I[0], jit=REFUSED),
    _one("block", lambda x, y: np.block([[x, y], [y, x]]), X, Y, grad=OURS),
    _one("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y[0]), X, Y, grad=OURS),
    _one("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)), X, grad=OURS),
    _one("can_cast", lambda x: np.can_cast(x, np.complex128), X, eager=PLAIN, jit=PLAIN),
    _one("choose", lambda x, y: np.choose([[0], [1], [0]], [x, y]), X, Y, grad=OURS),
    _one("clip", lambda x: np.clip(x, 0.3, 0.6), X, grad=OURS),
    _one("column_stack", lambda x, y: np.column_stack([x, y]), X, Y, grad=OURS),
    _one("compress", lambda x: np.compress([True, False, True], x, axis=0), X, grad=OURS),
    *[_one(name, lambda x, y, name=name: getattr(np, name)([x, y]), X, Y, grad=OURS)
      for name in ("concat", "concatenate", "dstack", "hstack", "stack", "vstack")],
    _one("copyto", lambda x: _after(np.copyto, x.copy(), 0.5), X),
    _one("fill_diagonal", lambda x: _after(np.fill_diagonal, x.copy(), 0.5), X),
    _one("place", lambda x: _after(np.place, x.copy(), x > 0.5, [0.5]), X),
    _one("put", lambda x: _after(np.put, x.copy(), [0, 3], 0.5), X),
    _one("put_along_axis", lambda x: _after(np.put_along_axis, x.copy(), np.array([[0], [1], [2]]), 0.5, 1), X),
    _one("putmask", lambda x: _after(np.putmask, x.copy(), x > 0.5, 0.5), X),
    _one("delete", lambda x: np.delete(x, 1, axis=0), X, grad=OURS),
    _one("insert", lambda x: np.insert(x, 1, 0.5, axis=0), X, grad=OURS),
    _one("diag_indices_from", np.diag_indices_from, S),
    _one("tril_indices_from", np.tril_indices_from, S),
    _one("triu_indices_from", np.triu_indices_from, S),
    _one("digitize", lambda x: np.digitize(x, np.array([0.2, 0.5])), X),
    _one("searchsorted", lambda x: np.searchsorted(np.array([0.2, 0.5]), x), X),
    _one("dsplit", lambda x: np.dsplit(x, 2), T, grad=OURS),
    _one("hsplit", lambda x: np.hsplit(x, 2), X, grad=OURS),
    _one("vsplit", lambda x: np.vsplit(x, 3), X, grad=OURS),
    _one("split", lambda x: np.split(x, 2, axis=1), X, grad=OURS),
    _one("unstack", np.unstack, X, grad=OURS),
    _one("expand_dims", lambda x: np.expand_dims(x, 1), X, grad=OURS),
    _one("extract", lambda x: np.extract(x > 0.5, x), X, jit=REFUSED, grad=OURS),
    _one("full_like", lambda x: np.full_like(x, 2.0), X),
    *[_one(name, lambda x, y, name=name: getattr(np, name)(x, y, 3), X, Y, tolerance=1e-12)
      for name in ("linspace", "logspace", "geomspace")],
    _one("histogram", lambda x: np.histogram(x, 4), X),
    _one("histogram_bin_edges", lambda x: np.histogram_bin_edges(x, 4), X),
    _one("histogram2d", lambda x, y: np.histogram2d(x, y, 3), V, V[::-1].copy()),
    _one("histogramdd", lambda x: np.histogramdd(x, 3)[0], X),
    _one("interp", lambda x, f: np.interp(x, np.linspace(0, 1, 5), f), X, V, grad=OURS),
    *_each("intersect1d setdiff1d setxor1d union1d", I[0], J[0], jit=REFUSED),
    *_each("unique unique_all unique_counts unique_inverse", I, jit=REFUSED),
    _one("unique_values", lambda x: np.sort(np.unique_values(x)), I, jit=REFUSED),
    _one("isin", lambda x: np.isin(x, [1, 2]), I),
    _one("ix_", lambda i: np.ix_(i, i), I[0]),
    _one("lexsort", lambda x, y: np.lexsort((x, y)), I[0], J[0]),
    _one("meshgrid", lambda x: np.meshgrid(x, x), V, grad=OURS),
    _one("moveaxis", lambda x: np.moveaxis(x, 0, 2), T, grad=OURS),
    _one("rollaxis", lambda x: np.rollaxis(x, 2), T, grad=OURS),
    _one("swapaxes", lambda x: np.swapaxes(x, 0, 2), T, grad=OURS),
    _one("pad", lambda x: np.pad(x, 1), X, grad=OURS),
    _one("piecewise", lambda x: np.piecewise(x, [x < 0.5, x >= 0.5], [lambda v: v * v, np.sin]), X, grad=OURS),
    _one("poly", np.poly, V, grad=OURS),
    *_each("polyadd polysub polymul", V, V[:3], grad=OURS),
    _one("polydiv", lambda p, q: np.polydiv(p, q)[0], V, V[:3]),
    *_each("polyder polyint", V, grad=OURS),
    _one("polyval", np.polyval, V, X, grad=OURS),
    _one("polyfit", lambda x, y: np.polyfit(x, y, 1), V, V**2),
    _one("roots", np.roots, np.array([1.0, -3.0, 2.0]), jit=REFUSED),
    _one("ravel_multi_index", lambda i: np.ravel_multi_index((i, i), (9, 9)), I),
    _one("unravel_index", lambda i: np.unravel_index(i, (3, 3)), I),
    _one("real_if_close", np.real_if_close, Z, jit=REFUSED),
    _one("repeat", lambda x: np.repeat(x, 2), X, grad=OURS),
    _one("reshape", lambda x: np.reshape(x, (4, 3)), X, grad=OURS),
    _one("resize", lambda x: np.resize(x, (2, 3)), X, grad=OURS),
    _one("roll", lambda x: np.roll(x, 1), X, grad=OURS),
    _one("select", lambda x: np.select([x < 0.5], [x * x], 1.0), X, grad=OURS),
    _one("take", lambda x: np.take(x, [0, 2], axis=0), X, grad=OURS),
    _one("take_along_axis", lambda x: np.take_along_axis(x, np.array([[0], [1], [2]]), 1), X, grad=OURS),
    _one("tile", lambda x: np.tile(x, 2), X, grad=OURS),
    _one("trim_zeros", np.trim_zeros, V, jit=REFUSED),
    _one("vander", np.vander, V, grad=OURS),
    _one("where", lambda x: np.where(x > 0.5, x, 0.0), X, grad=OURS),
    _one("result_type", lambda x: str(np.result_type(x, np.float32)), X, eager=PLAIN, jit=PLAIN),
    _one("common_type", lambda x: str(np.dtype(np.common_type(x))), X, eager=PLAIN, jit=PLAIN),
    _one("min_scalar_type", lambda x: str(np.min_scalar_type(x)), X, eager=PLAIN, jit=PLAIN),
    _one("packbits", lambda x: np.packbits(x > 0.5), X),
    _one("unpackbits", lambda i: np.unpackbits(i.astype(np.uint8)), I),
    *_each("shares_memory may_share_memory", X, Y, eager=PLAIN, jit=PLAIN),
    *_each("linalg.det linalg.inv", S @ S.T, grad=OURS),
    _one("linalg.cholesky", lambda x: np.linalg.cholesky(x @ x.T), S, grad=OURS),
    *_each("linalg.slogdet", S @ S.T),
    *_each("linalg.cond linalg.pinv linalg.svdvals", S @ S.T, grad=OURS),
    _one("linalg.eigvalsh", lambda x: np.linalg.eigvalsh(x + x.T), S, grad=OURS),
    *_each("linalg.eigvals linalg.matrix_rank linalg.eig linalg.eigh linalg.qr linalg.svd", S @ S.T),
    _one("linalg.lstsq", lambda a, b: np.linalg.lstsq(a, b)[0], S, S[0], grad=OURS),
    _one("linalg.solve", np.linalg.solve, S, S[0], grad=OURS),
    _one("linalg.tensorinv", lambda a: np.linalg.tensorinv(a, ind=1), S, grad=OURS),
    _one("linalg.tensorsolve", np.linalg.tensorsolve, S, S[0], grad=OURS),
    *_each("linalg.cross linalg.matmul linalg.tensordot linalg.vecdot", S, S, grad=OURS),
    _one("linalg.outer", np.linalg.outer, V, V, grad=OURS),
    *_each("linalg.diagonal linalg.matrix_norm linalg.matrix_transpose", S, grad=OURS),
    *_each("linalg.norm linalg.trace linalg.vector_norm", S, grad=OURS),
    _one("linalg.matrix_power", lambda x: np.linalg.matrix_power(x, 3), S, grad=OURS),
    _one("linalg.multi_dot", lambda x: np.linalg.multi_dot([x, x, x]), S, grad=OURS),
    *_each(
        "fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn "
        "fft.rfft fft.rfft2 fft.rfftn",
        X,
    ),
    *_each("fft.fftshift fft.ifftshift", X, grad=OURS),
    # methods of ufuncs, and what is no function
    _one("add.reduce", lambda x: np.add.reduce(x, axis=1), X, grad=OURS),
    _one("add.accumulate", lambda x: np.add.accumulate(x, axis=1), X, grad=OURS),
    _one("multiply.outer", np.multiply.outer, V, V, grad=OURS),
    _one("maximum.reduce", lambda x: np.maximum.reduce(x, axis=0), X, grad=OURS),
    _one("add.reduceat", lambda x: np.add.reduceat(x, [0, 2]), V, grad=OURS),
    _one("add.at", lambda x: _after(np.add.at, x.copy(), [0, 0, 2], 1.0), V, grad=OURS),
    _one("hypot.reduce", np.hypot.reduce, X, grad=OURS),
    _one("hypot.accumulate", np.hypot.accumulate, X, grad=OURS),
    _one("asarray", np.asarray, X, eager=NUMPY, jit=REFUSED, grad=REFUSED),
    _one("array", np.array, X, eager=NUMPY, jit=REFUSED, grad=REFUSED),
    _one("ascontiguousarray", np.ascontiguousarray, X, eager=NUMPY, jit=REFUSED, grad=REFUSED),
    _one("from_dlpack", np.from_dlpack, X, eager=NUMPY, jit=REFUSED, grad=REFUSED),
    _one("vectorize", np.vectorize(lambda v: v + 1), X, eager=NUMPY, jit=REFUSED, grad=REFUSED),
    _one("ndarray + x", lambda x: np.ones((3, 4)) + x, X, grad=OURS),
    _one("ndarray @ x", lambda x: np.ones((2, 3)) @ x, X, grad=OURS),
    _one("ndarray < x", lambda x: np.ones((3, 4)) < x, X),
]  # fmt: skip

NOT_CALLED = {
    "busday_count": "dates", "busday_offset": "dates", "is_busday": "dates", "datetime_as_string": "dates",
    "isnat": "dates", "save": "writes a file", "savetxt": "writes a file", "savez": "writes a file",
    "savez_compressed": "writes a file",
}  # fmt: skip


def _after(write: Any, x: Any, *args: Any) -> Any:
    """The array, written to."""
    write(x, *args)
    return x
