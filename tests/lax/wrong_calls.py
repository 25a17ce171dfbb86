"""A wrong call for every error that a docstring of tracer.lax names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import lax

X, INTS, BOOLS, COMPLEX = np.ones((2, 3)), np.ones((2, 3), int), np.ones((2, 3), bool), np.ones((2, 3), complex)
SHORT, KEYS = np.ones((2, 3), np.float32), tracer.random.split(tracer.random.key(0), 3)
ROWS, INTO = lax.GatherDimensionNumbers((1,), (0,), (0,)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
NAMED: Any = "no such axis"

Calls = dict[str, Callable[[], Any]]


def _of_axis(function: Callable[..., Any]) -> Calls:
    return {"AxisError": lambda: function(X, 2)}


def _of_axes(function: Callable[..., Any], **more: Callable[[], Any]) -> Calls:
    return {"AxisError": lambda: function(X, (2,)), **more}


def _scatter(function: Callable[..., Any]) -> Calls:
    place = np.array([[0]])
    return {
        "OutOfBoundsError": lambda: function(X, np.array([[5]]), X[:1], INTO),
        "ShapeError": lambda: function(X, place, X[:1, :2][:, :, None], INTO),
        "DTypeError": lambda: function(X, place, SHORT[:1], INTO),
    }


def _product(function: Callable[..., Any], *settings: Any) -> Calls:
    x, w = np.ones((1, 2, 5)), np.ones((3, 2, 2))
    return {
        "DTypeError": lambda: function(x, w.astype(np.float32), *settings),
        "ShapeError": lambda: function(x, np.ones((3, 4, 2)), *settings),
        "ArgumentError": lambda: function(x, w, (1, 1), *settings[1:]),
    }


def _of_lanes(function: Callable[..., Any], *settings: Any) -> Calls:
    return {"ArgumentError": lambda: function(X, NAMED, *settings)}


def _cumulative(function: Callable[..., Any]) -> Calls:
    return _of_axis(function) | {"DTypeError": lambda: function(BOOLS)}


def _reduction(function: Callable[..., Any], refused: Any) -> Calls:
    return _of_axes(function, DTypeError=lambda: function(refused, (0,)))


def _extreme(function: Callable[..., Any]) -> Calls:
    return _of_axes(function, ShapeError=lambda: function(X[:0], (0,)))


def _place(function: Callable[..., Any]) -> Calls:
    more: Calls = {"ShapeError": lambda: function(X[:0], 0), "DTypeError": lambda: function(X, 0, np.dtype(float))}
    return _of_axis(function) | more


def _of_pairs(function: Callable[..., Any], refused: Any, x: Any = X) -> Calls:
    return {"DTypeError": lambda: function(refused, refused), "ShapeError": lambda: function(x, x[0])}


WRONG: dict[str, Calls] = {
    **{name: _of_axis(getattr(lax, name)) for name in ("cummax", "cummin", "unstack")},
    **{name: _cumulative(getattr(lax, name)) for name in ("cumsum", "cumprod", "cumlogsumexp")},
    **{name: _reduction(getattr(lax, name), BOOLS) for name in ("reduce_sum", "reduce_prod")},
    **{name: _reduction(getattr(lax, name), X) for name in ("reduce_and", "reduce_or", "reduce_xor")},
    "reduce_max": _extreme(lax.reduce_max), "reduce_min": _extreme(lax.reduce_min),
    "zeta": {
        "DTypeError": lambda: lax.zeta(X, X.astype(np.float16)), "ShapeError": lambda: lax.zeta(X, X[:1]),
    },
    "betainc": {
        "DTypeError": lambda: lax.betainc(X, X, X.astype(np.float16)), "ShapeError": lambda: lax.betainc(X, X, X[:1]),
    },
    "argmax": _place(lax.argmax), "argmin": _place(lax.argmin),
    **{name: _scatter(getattr(lax, name)) for name in ("scatter", "scatter_add", "scatter_mul", "scatter_min",
                                                      "scatter_max", "scatter_sub")},
    **{name: _of_pairs(getattr(lax, name), INTS) for name in ("igamma", "igammac", "igamma_grad_a",
                                                             "random_gamma_grad")},
    "mulhi": _of_pairs(lax.mulhi, X, INTS),
    "associative_scan": {"ShapeError": lambda: lax.associative_scan(lambda a, b: a, (X, X[0])),
                         "CarryTypeError": lambda: lax.associative_scan(lambda a, b: (a, b), X),
                         "AxisError": lambda: lax.associative_scan(lambda a, b: a, X, axis=2)},
    "batch_matmul": {"ShapeError": lambda: lax.batch_matmul(X[None], X[None]),
                     "DTypeError": lambda: lax.batch_matmul(X[None], KEYS[None, :, None])},
    "bitcast_convert_type": {"DTypeError": lambda: lax.bitcast_convert_type(COMPLEX, np.int32),
                             "ShapeError": lambda: lax.bitcast_convert_type(SHORT, np.float64)},
    "broadcast": {"ShapeError": lambda: lax.broadcast(X, (-1,))},
    "broadcast_in_dim": {"ShapeError": lambda: lax.broadcast_in_dim(X, (2, 4), (0, 1))},
    "broadcast_like": {"ShapeError": lambda: lax.broadcast_like(X, X[:, :2])},
    "broadcast_shapes": {"ShapeError": lambda: lax.broadcast_shapes((2, 3), (2,))},
    "broadcast_to_rank": {"ShapeError": lambda: lax.broadcast_to_rank(X, 1)},
    "broadcasted_iota": {"ShapeError": lambda: lax.broadcasted_iota(np.dtype(int), (-1,), 0),
                         "AxisError": lambda: lax.broadcasted_iota(np.dtype(int), (2,), 1),
                         "DTypeError": lambda: lax.broadcasted_iota(np.dtype(bool), (2,), 0)},
    "fma": {"DTypeError": lambda: lax.fma(INTS, INTS, INTS), "ShapeError": lambda: lax.fma(X, X, X[:1])},
    "clamp": {"DTypeError": lambda: lax.clamp(np.float32(0), X, 1.0), "ShapeError": lambda: lax.clamp(X[0], X, X[0])},
    "collapse": {"ShapeError": lambda: lax.collapse(X, 1, 1)},
    "concatenate": {"ShapeError": lambda: lax.concatenate([X, X[:, :2]], 0),
                    "DTypeError": lambda: lax.concatenate([X, SHORT], 0),
                    "ArgumentError": lambda: lax.concatenate([], 0)},
    "cond": {"CarryTypeError": lambda: lax.cond(True, lambda: 1.0, lambda: X)},
    "conv": _product(lax.conv, (1,), "VALID"),
    "conv_general_dilated": _product(lax.conv_general_dilated, (1,), "VALID"),
    "conv_general_dilated_local": {"ShapeError": lambda: lax.conv_general_dilated_local(
        np.ones((1, 2, 5)), np.ones((3, 4, 9)), (1,), "VALID", (2,))},
    "conv_general_dilated_patches": {"ShapeError": lambda: lax.conv_general_dilated_patches(
        np.ones((1, 2, 5)), (2,), (1, 1), "VALID")},
    "conv_transpose": {"ShapeError": lambda: lax.conv_transpose(np.ones((1, 5, 2)), np.ones((2, 4, 3)), (1,), "VALID"),
                       "DTypeError": lambda: lax.conv_transpose(
                           np.ones((1, 5, 2)), np.ones((2, 2, 3), int), (1,), "VALID"),
                       "ArgumentError": lambda: lax.conv_transpose(
                           np.ones((1, 5, 2)), np.ones((2, 2, 3)), (1, 1), "VALID")},
    "conv_dimension_numbers": {
        "ArgumentError": lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCH", "OIH", "NCW")),
        "ShapeError": lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2), None)},
    "conv_with_general_padding": _product(lax.conv_with_general_padding, (1,), "VALID", (1,), (1,)),
    "convert_element_type": {"DTypeError": lambda: lax.convert_element_type(KEYS, float)},
    "custom_linear_solve": {"ArgumentError": lambda: lax.custom_linear_solve(lambda x: x[0], X, lambda f, b: b)},
    "custom_root": {"ArgumentError": lambda: lax.custom_root(1.0, X, lambda f, x: x, lambda g, y: y)},  # type: ignore[arg-type]
    "dot": {"ShapeError": lambda: lax.dot(X, X), "DTypeError": lambda: lax.dot(X, KEYS)},
    "dot_general": {"ShapeError": lambda: lax.dot_general(X, X, (((1,), (0,)), ((), ()))),
                    "DTypeError": lambda: lax.dot_general(X, KEYS, (((), ()), ((), ())))},
    "dtype": {"ArgumentError": lambda: lax.dtype("no dtype")},
    "dynamic_index_in_dim": {"AxisError": lambda: lax.dynamic_index_in_dim(X, 0, 2),
                             "DTypeError": lambda: lax.dynamic_index_in_dim(X, 0.5)},
    "dynamic_slice": {"ShapeError": lambda: lax.dynamic_slice(X, (0, 0), (3, 3)),
                      "DTypeError": lambda: lax.dynamic_slice(X, (0.5, 0), (1, 1))},
    "dynamic_slice_in_dim": {"ShapeError": lambda: lax.dynamic_slice_in_dim(X, 0, 4),
                             "DTypeError": lambda: lax.dynamic_slice_in_dim(X, 0.5, 1),
                             "AxisError": lambda: lax.dynamic_slice_in_dim(X, 0, 1, 2)},
    "dynamic_update_index_in_dim": {"ShapeError": lambda: lax.dynamic_update_index_in_dim(X, np.ones(5), 0, 0),
                                    "DTypeError": lambda: lax.dynamic_update_index_in_dim(X, SHORT[0], 0, 0),
                                    "AxisError": lambda: lax.dynamic_update_index_in_dim(X, X[0], 0, 2)},
    "dynamic_update_slice": {"ShapeError": lambda: lax.dynamic_update_slice(X, np.ones((3, 3)), (0, 0)),
                             "DTypeError": lambda: lax.dynamic_update_slice(X, SHORT, (0, 0))},
    "dynamic_update_slice_in_dim": {"ShapeError": lambda: lax.dynamic_update_slice_in_dim(X, np.ones((3, 3)), 0, 0),
                                    "DTypeError": lambda: lax.dynamic_update_slice_in_dim(X, SHORT, 0, 0),
                                    "AxisError": lambda: lax.dynamic_update_slice_in_dim(X, X, 0, 2)},
    "empty": {"ShapeError": lambda: lax.empty((-1,), float)},
    "expand_dims": {"AxisError": lambda: lax.expand_dims(X, (3,))},
    "fori_loop": {"CarryTypeError": lambda: lax.fori_loop(0, 2, lambda i, c: (c, c), X),
                  "ArgumentError": lambda: lax.fori_loop(0.5, 2, lambda i, c: c, X)},
    "full": {"ShapeError": lambda: lax.full((-1,), 0.0), "DTypeError": lambda: lax.full((2,), 300, np.dtype("uint8"))},
    "full_like": {"ShapeError": lambda: lax.full_like(X, 0.0, shape=(-1,)),
                  "DTypeError": lambda: lax.full_like(INTS, 0.5)},
    "fft": {
        "ArgumentError": lambda: lax.fft(X, "DCT", (3,)), "DTypeError": lambda: lax.fft(COMPLEX, "RFFT", (3,)),
        "ShapeError": lambda: lax.fft(X, "FFT", (4,)),
    },
    "gather": {"OutOfBoundsError": lambda: lax.gather(X, np.array([[5]]), ROWS, (1, 3)),
               "ShapeError": lambda: lax.gather(X, np.array([[0]]), ROWS, (1, 4)),
               "DTypeError": lambda: lax.gather(X, np.array([[0.5]]), ROWS, (1, 3))},
    "index_in_dim": {"AxisError": lambda: lax.index_in_dim(X, 5)},
    "iota": {"ShapeError": lambda: lax.iota(np.dtype(int), -1), "DTypeError": lambda: lax.iota(np.dtype(bool), 2)},
    "map": {"ArgumentError": lambda: lax.map(tnp.sin, X, batch_size=0)},
    "optimization_barrier": {"ArgumentError": lambda: lax.optimization_barrier("text")},
    "pad": {"ShapeError": lambda: lax.pad(X, 0.0, [(-3, 0, 0), (0, 0, 0)]),
            "DTypeError": lambda: lax.pad(X, tnp.float32(0), [(1, 0, 0), (0, 0, 0)])},
    "padtype_to_pads": {"ArgumentError": lambda: lax.padtype_to_pads((3,), (2,), (1,), "ALL")},
    "platform_dependent": {"ArgumentError": lambda: lax.platform_dependent(X, tpu=tnp.sin)},
    "polygamma": {"ArgumentError": lambda: lax.polygamma(-1, X), "DTypeError": lambda: lax.polygamma(1, INTS)},
    "pow": {"DTypeError": lambda: lax.pow(INTS, INTS), "ShapeError": lambda: lax.pow(X, X[0])},
    "reduce": {"ShapeError": lambda: lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,)),
               "CarryTypeError": lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,))},
    "reduce_window": {"ArgumentError": lambda: lax.reduce_window(X, 0.0, lax.add, (1,)),
                      "ShapeError": lambda: lax.reduce_window((X, X[0]), (0.0, 0.0), lambda a, b: a, (1, 1)),
                      "CarryTypeError": lambda: lax.reduce_window(X, 0.0, lambda a, b: a > b, (1, 1))},
    "reshape": {"ShapeError": lambda: lax.reshape(X, (5,))},
    "rev": _of_axes(lax.rev),
    "scan": {"CarryTypeError": lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, X),
             "ShapeError": lambda: lax.scan(lambda c, x: (c, x), 0.0, (X, X[:1]))},
    "select": {"DTypeError": lambda: lax.select(X, X, X), "ShapeError": lambda: lax.select(BOOLS, X, X[0])},
    "select_and_scatter": {
        "ShapeError": lambda: lax.select_and_scatter(X, lax.ge, (1, 1), (1, 1), "VALID", X[0], 0.0, lax.add),
        "ArgumentError": lambda: lax.select_and_scatter(X, lax.sub, (1, 1), (1, 1), "VALID", X, 0.0, lax.add)},
    "select_n": {"DTypeError": lambda: lax.select_n(BOOLS, X, SHORT),
                 "ShapeError": lambda: lax.select_n(BOOLS, X, X[0]),
                 "ArgumentError": lambda: lax.select_n(BOOLS)},
    "slice": {"ShapeError": lambda: lax.slice(X, (0, 0), (3, 3))},
    "slice_in_dim": {"ShapeError": lambda: lax.slice_in_dim(X, 0, 5),
                     "AxisError": lambda: lax.slice_in_dim(X, 0, 1, 1, 2)},
    "sort": _of_axis(lax.sort) | {"ShapeError": lambda: lax.sort((X, X[0])),
                                  "ArgumentError": lambda: lax.sort(X, num_keys=2)},
    "sort_key_val": {"ShapeError": lambda: lax.sort_key_val(X, X[0]), "AxisError": lambda: lax.sort_key_val(X, X, 2)},
    "split": {"ShapeError": lambda: lax.split(X, (1, 2)), "AxisError": lambda: lax.split(X, (1, 1), 2)},
    "squeeze": _of_axes(lax.squeeze, ShapeError=lambda: lax.squeeze(X, (0,))),
    "stack": {"ShapeError": lambda: lax.stack([X, X[0]]), "DTypeError": lambda: lax.stack([X, SHORT])},
    "stop_gradient": {"ArgumentError": lambda: lax.stop_gradient("text")},
    "switch": {"CarryTypeError": lambda: lax.switch(0, [lambda: 1.0, lambda: X])},
    "tile": {"ShapeError": lambda: lax.tile(X, (2,))},
    "top_k": {"ShapeError": lambda: lax.top_k(X, 4), "DTypeError": lambda: lax.top_k(COMPLEX, 1),
              "AxisError": lambda: lax.top_k(X, 1, axis=2)},
    "approx_max_k": {"ShapeError": lambda: lax.approx_max_k(X, 4)},
    "approx_min_k": {"ShapeError": lambda: lax.approx_min_k(X, 4)},
    "transpose": {"ShapeError": lambda: lax.transpose(X, (0,))},
    "while_loop": {"CarryTypeError": lambda: lax.while_loop(lambda c: True, lambda c: (c, c), X)},
    "psum": _of_lanes(lax.psum), "pmax": _of_lanes(lax.pmax), "pmin": _of_lanes(lax.pmin),
    "pmean": _of_lanes(lax.pmean),
    "all_gather": _of_lanes(lax.all_gather), "all_to_all": _of_lanes(lax.all_to_all, 0, 0),
    "pbroadcast": _of_lanes(lax.pbroadcast, 0), "pshuffle": _of_lanes(lax.pshuffle, [0]),
    "psum_scatter": _of_lanes(lax.psum_scatter), "pswapaxes": _of_lanes(lax.pswapaxes, 0),
    "ppermute": {
        "ArgumentError": lambda: tracer.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 0)]), axis_name="i")(X)},
    "axis_index": {"ArgumentError": lambda: lax.axis_index(NAMED)},
    "axis_size": {"ArgumentError": lambda: lax.axis_size(NAMED)},
}  # fmt: skip
