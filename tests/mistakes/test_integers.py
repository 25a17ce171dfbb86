"""Mistakes with arguments that are whole numbers: floats, text and None are refused, not cut to an integer."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.mistakes.told import X, fails
from tracer import errors, lax, nn, ops, random
from tracer.scipy import linalg, signal, special

M = tnp.arange(12.0).reshape(3, 4)
STACK = tnp.arange(24.0).reshape(2, 3, 4)
PLACES = tnp.asarray([0, 1, 2])
SQUARE = tnp.eye(3) + 1
IMAGE, WEIGHTS = tnp.ones((2, 2, 5, 5)), tnp.ones((2, 2, 2, 2))
KEY = random.key(0)
I32 = np.dtype("int32")


def lanes(function: Callable[[Any], Any]) -> Any:
    return tracer.vmap(function, axis_name="i")(tnp.ones((3, 3)))


# A call with one such argument, for which 1 is right, the operation that a mistake is told of, and of which argument.
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "one_hot: num_classes": (lambda n: nn.one_hot(PLACES, n), "one_hot"),
    "dot_product_attention: local_window_size": (
        lambda n: nn.dot_product_attention(STACK, STACK, STACK, local_window_size=n), "dot_product_attention",
    ),
    "top_k: k": (lambda n: lax.top_k(X, n), "top_k"),
    "approx_max_k: k": (lambda n: lax.approx_max_k(X, n), "approx_max_k"),
    "broadcast: sizes": (lambda n: lax.broadcast(X, (n,)), "broadcast"),
    "broadcast_in_dim: a shape": (lambda n: lax.broadcast_in_dim(X, (n, 3), (1,)), "broadcast_in_dim"),
    "broadcast_in_dim: broadcast_dimensions": (lambda n: lax.broadcast_in_dim(X, (2, 3), (n,)), "broadcast_in_dim"),
    "broadcast_shapes: a shape": (lambda n: lax.broadcast_shapes((n, 2), (1, 2)), "broadcast_shapes"),
    "broadcast_to_rank: rank": (lambda n: lax.broadcast_to_rank(X, n), "broadcast_to_rank"),
    "collapse: start_dimension": (lambda n: lax.collapse(STACK, n, 3), "collapse"),
    "collapse: stop_dimension": (lambda n: lax.collapse(STACK, 0, n), "collapse"),
    "conv: window_strides": (lambda n: lax.conv(IMAGE, WEIGHTS, (n, 1), "SAME"), "conv"),
    "conv_general_dilated: padding": (
        lambda n: lax.conv_general_dilated(IMAGE, WEIGHTS, (1, 1), ((n, 0), (0, 0))), "conv_general_dilated",
    ),
    "conv_general_dilated: feature_group_count": (
        lambda n: lax.conv_general_dilated(IMAGE, WEIGHTS, (1, 1), "SAME", feature_group_count=n),
        "conv_general_dilated",
    ),
    "conv_general_dilated_patches: filter_shape": (
        lambda n: lax.conv_general_dilated_patches(IMAGE, (n, 1), (1, 1), "SAME"), "conv_general_dilated_patches",
    ),
    "conv_shape_tuple: strides": (
        lambda n: lax.conv_shape_tuple((1, 1, 4), (1, 1, 2), (n,), "SAME"), "conv_shape_tuple",
    ),
    "dynamic_slice: slice_sizes": (lambda n: lax.dynamic_slice(X, (0,), (n,)), "dynamic_slice"),
    "dynamic_slice_in_dim: slice_sizes": (lambda n: lax.dynamic_slice_in_dim(X, 0, n), "dynamic_slice_in_dim"),
    "empty: shape": (lambda n: lax.empty((n, 2), I32), "empty"),
    "full: a shape": (lambda n: lax.full((n, 2), 1.0), "full"),
    "integer_pow: the exponent": (lambda n: lax.integer_pow(X, n), "integer_pow"),
    "iota: a shape": (lambda n: lax.iota(I32, n), "iota"),
    "map: batch_size": (lambda n: lax.map(lambda x: x, X, batch_size=n), "map"),
    "pad: padding_config": (lambda n: lax.pad(X, 0.0, [(n, 1, 0)]), "pad"),
    "padtype_to_pads: window_shape": (lambda n: lax.padtype_to_pads((6,), (n,), (1,), "SAME"), "padtype_to_pads"),
    "pbroadcast: source": (lambda n: lanes(lambda x: lax.pbroadcast(x, "i", n)), "pbroadcast"),
    "ppermute: perm": (lambda n: lanes(lambda x: lax.ppermute(x, "i", [(0, n)])), "ppermute"),
    "pshuffle: perm": (lambda n: lanes(lambda x: lax.pshuffle(x, "i", [n, 0, 2])), "pshuffle"),
    "reduce_precision: exponent_bits": (lambda n: lax.reduce_precision(X, n, 3), "reduce_precision"),
    "reduce_window: window_dimensions": (
        lambda n: lax.reduce_window(X, 0.0, lax.add, (n,), (1,), "VALID"), "reduce_window",
    ),
    "reduce_window: window_strides": (
        lambda n: lax.reduce_window(X, 0.0, lax.add, (1,), (n,), "VALID"), "reduce_window",
    ),
    "reduce_window_shape_tuple: window_dimensions": (
        lambda n: lax.reduce_window_shape_tuple((6,), (n,), (1,), [(0, 0)]), "reduce_window_shape_tuple",
    ),
    "reshape: a shape": (lambda n: lax.reshape(X, (n, 3)), "reshape"),
    "scan: length": (lambda n: lax.scan(lambda c, x: (c, c), 0.0, None, length=n), "scan"),
    "shape_as_value: shape": (lambda n: lax.shape_as_value((n, 2)), "shape_as_value"),
    "slice: start_indices": (lambda n: lax.slice(X, (n,), (2,)), "slice"),
    "slice_in_dim: limit_index": (lambda n: lax.slice_in_dim(X, 0, n), "slice_in_dim"),
    "sort: num_keys": (lambda n: lax.sort([X, X], num_keys=n), "sort"),
    "split: sizes": (lambda n: lax.split(X, (n, 2)), "split"),
    "tile: reps": (lambda n: lax.tile(X, (n,)), "tile"),
    "transpose: permutation": (lambda n: lax.transpose(M, (n, 0)), "transpose"),
    "lu_pivots_to_permutation: permutation_size": (
        lambda n: lax.linalg.lu_pivots_to_permutation(tnp.asarray([0]), n), "lu_pivots_to_permutation",
    ),
    "segment_sum: num_segments": (lambda n: ops.segment_sum(X, PLACES, n), "segment_sum"),
    "segment_sum: bucket_size": (lambda n: ops.segment_sum(X, PLACES, 3, bucket_size=n), "segment_sum"),
    "random.ball: d": (lambda n: random.ball(KEY, n), "random.ball"),
    "ShapeDtypeStruct: a shape": (lambda n: tracer.ShapeDtypeStruct((n, 2), "float32"), "ShapeDtypeStruct"),
    "multigammaln: d": (lambda n: special.multigammaln(X + 9, n), "multigammaln"),
    "log_ndtr: series_order": (lambda n: special.log_ndtr(X, n), "log_ndtr"),
    "bernoulli: n": (special.bernoulli, "bernoulli"),
    "expm: max_squarings": (lambda n: linalg.expm(SQUARE, max_squarings=n), "expm"),
    "argpartition: kth": (lambda n: tnp.argpartition(M, n), "argpartition"),
    "array: ndmin": (lambda n: tnp.array(X, ndmin=n), "array"),
    "array_split: indices_or_sections": (lambda n: tnp.array_split(X, [n, 2]), "array_split"),
    "bincount: minlength": (lambda n: tnp.bincount(PLACES, minlength=n), "bincount"),
    "bincount: length": (lambda n: tnp.bincount(PLACES, length=n), "bincount"),
    "diag: k": (lambda n: tnp.diag(M, n), "diag"),
    "diag_indices: ndim": (lambda n: tnp.diag_indices(3, n), "diag_indices"),
    "diagonal: offset": (lambda n: tnp.diagonal(M, n), "diagonal"),
    "diff: n": (lambda n: tnp.diff(X, n), "diff"),
    "einsum: a list of axes": (lambda n: tnp.einsum(M, [n, 0], [0]), "einsum"),
    "eye: k": (lambda n: tnp.eye(3, 3, n), "eye"),
    "fftfreq: n": (tnp.fft.fftfreq, "fftfreq"),
    "flatnonzero: size": (lambda n: tnp.flatnonzero(X, size=n), "flatnonzero"),
    "frompyfunc: nin": (lambda n: tnp.frompyfunc(lambda x: x, n, 1), "frompyfunc"),
    "geomspace: num": (lambda n: tnp.geomspace(1.0, 2.0, n), "geomspace"),
    "matrix_power: n": (lambda n: tnp.linalg.matrix_power(SQUARE, n), "matrix_power"),
    "polyder: m": (lambda n: tnp.polyder(X, n), "polyder"),
    "polyfit: deg": (lambda n: tnp.polyfit(X, X, n), "polyfit"),
    "polyval: unroll": (lambda n: tnp.polyval(X, X, unroll=n), "polyval"),
    "repeat: total_repeat_length": (lambda n: tnp.repeat(X, PLACES, total_repeat_length=n), "repeat"),
    "roll: shift": (lambda n: tnp.roll(X, n), "roll"),
    "rollaxis: start": (lambda n: tnp.rollaxis(M, 1, n), "rollaxis"),
    "rot90: k": (lambda n: tnp.rot90(M, n), "rot90"),
    "round: decimals": (lambda n: tnp.round(X, n), "round"),
    "sliding_window_view: window_shape": (
        lambda n: tnp.lib.stride_tricks.sliding_window_view(X, n), "sliding_window_view",
    ),
    "tensordot: axes": (lambda n: tnp.tensordot(M, M.T, n), "tensordot"),
    "tensorinv: ind": (lambda n: tnp.linalg.tensorinv(tnp.ones((1, 1)), n), "tensorinv"),
    "tril: k": (lambda n: tnp.tril(M, n), "tril"),
    "triu_indices: k": (lambda n: tnp.triu_indices(3, n), "triu_indices"),
    "unique: size": (lambda n: tnp.unique(PLACES, size=n), "unique"),
    "unpackbits: count": (lambda n: tnp.unpackbits(PLACES.astype("uint8"), count=n), "unpackbits"),
    "vander: N": (lambda n: tnp.vander(X, n), "vander"),
}  # fmt: skip
OPTIONAL = ("bucket_size", "count", "limit_index", "local_window_size", "N", "num_segments", "size", "stop_dimension",
            "total_repeat_length", "batch_size", "length")  # fmt: skip
REMEDIES = {
    float: "round it to an integer: int(...), or // where it is divided",
    str: "give an integer, or an object with __index__",
}  # fmt: skip


class One:
    """An object of somebody else's that stands for an integer."""

    def __index__(self) -> int:
        return 1


@each("case", CALLS)
def test_what_is_no_whole_number_is_refused_by_operation_and_parameter(case: str) -> None:
    call, operation = CALLS[case]
    parameter = case.partition(": ")[2]
    for wrong in (2.5, 1.0, np.float64(2.0), "a", None):
        if wrong is None and parameter in OPTIONAL:
            continue
        with pytest.raises(errors.ArgumentError) as caught:
            call(wrong)
        first, got, remedy = str(caught.value).splitlines()
        place, _, said = first.partition(": ")
        assert place.startswith(f"{operation} at test_integers.py:"), first
        assert said in (f"{parameter} takes an integer", "a shape is a tuple of integers") or "integer" in said, first
        if said == f"{parameter} takes an integer":
            assert got == ("  got None" if wrong is None else f"  got {type(wrong).__name__}: {wrong!r}")
            assert remedy == f"  help: {REMEDIES[float if isinstance(wrong, float) else str]}"


@each("case", CALLS)
def test_whatever_stands_for_an_integer_is_taken(case: str) -> None:
    call, _ = CALLS[case]
    expected = tracer.tree.leaves(call(1))
    for right in (np.int64(1), np.asarray(1), One()):
        for x, y in zip(tracer.tree.leaves(call(right)), expected, strict=True):
            if hasattr(y, "shape"):
                np.testing.assert_array_equal(x, y)


def test_the_whole_message_names_the_operation_the_parameter_and_what_came() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.top_k(X, 1.5),  # type: ignore[arg-type]  # here
        "top_k at @here: k takes an integer\n  got float: 1.5\n"
        "  help: round it to an integer: int(...), or // where it is divided",
    )


def test_a_traced_integer_is_refused_by_operation_and_parameter() -> None:
    fails(
        errors.TracerIntegerError,
        lambda: tracer.jit(lambda k: lax.top_k(X, k))(2),  # here
        "top_k at @here: k must be known while tracing\n  got Array(traced, i64*[])\n"
        "  help: mark the argument static: jit(f, static_argnums=...)",
    )
    for call, said in (
        (lambda n: tnp.linspace(0.0, 1.0, n), "linspace at .*: num"),
        (lambda n: lax.tile(X, (n,)), "tile at .*: reps"),
        (lambda n: random.normal(KEY, (n,)), "random.normal at .*: a shape"),
    ):
        with pytest.raises(errors.TracerIntegerError, match=f"^{said} must be known while tracing\n"):
            tracer.jit(call)(2)


def test_one_number_for_several_is_refused() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.tile(X, 2),  # type: ignore[arg-type]  # here
        "tile at @here: reps takes a sequence of integers\n  got int: 2\n  help: give a tuple of them",
    )


def test_places_axes_and_numbers_of_arguments_are_whole_as_well() -> None:
    for call, said in (
        (lambda: nn.glu(M, axis=0.5), r"^glu at .*: an axis is an integer\n  got 0.5\n  help: axes run from -2 to 1\n"),  # type: ignore[arg-type]
        (
            lambda: nn.initializers.glorot_normal(in_axis=0.5)(KEY, (3, 4)),  # type: ignore[arg-type]
            r"^initializers at .*: an axis is an integer\n  got 0.5\n  help: axes run from -2 to 1\n",
        ),
        (lambda: tnp.ravel_multi_index((1.5, 1), (4, 4)), r"^ravel_multi_index at .* takes integers\n  got f64"),
        (lambda: signal.detrend(X, bp=1.5), r"^detrend at .*: bp takes an integer\n  got float: 1.5"),
        (lambda: tnp.pad(X, True), r"^pad at .*: pad_width holds integers\n  got True"),
        (lambda: tnp.var(X, ddof=None), r"^var at .*: ddof is a number\n  got None"),  # type: ignore[arg-type]
        (lambda: tnp.var(X, ddof="1"), r"^var at .*: ddof is a number\n  got '1'"),  # type: ignore[arg-type]
        (lambda: tnp.nanvar(X, correction="1"), r"^nanvar at .*: correction is a number\n  got '1'"),  # type: ignore[arg-type]
        (lambda: tnp.cov(M, ddof=[1]), r"^cov at .*: ddof is a number\n  got \[1\]"),  # type: ignore[arg-type]
        (lambda: tnp.bincount(PLACES, minlength=-1), r"^bincount at .*: minlength must not be negative\n  got -1"),
        (lambda: tnp.bincount(PLACES, minlength=-1, length=2), r"^bincount at .*: minlength must not be negative"),
        (lambda: tracer.jit(operator.add, static_argnums=0.5), r": static_argnums takes integers\n  got 0.5"),  # type: ignore[call-overload]
        (lambda: tracer.checkpoint(operator.add, static_argnums=True), r": static_argnums takes integers\n  got True"),
        (
            lambda: tracer.custom_jvp(operator.add, nondiff_argnums=(0.5,)),  # type: ignore[arg-type]
            r": nondiff_argnums takes integers\n  got 0.5",
        ),
    ):
        with pytest.raises(errors.TracerError, match=said):
            call()
    for given in (np.int64(1), One(), (np.int64(1),)):
        assert tracer.jit(lambda x, n: x * n, static_argnums=given)(2.0, 3) == 6.0  # type: ignore[call-overload]
