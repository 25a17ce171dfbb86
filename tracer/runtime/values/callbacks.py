"""Calls from traced code into Python: `pure_callback`, `io_callback`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.types import ArrayType, Type, array_type
from tracer.primitives.control.effects import HostFunction, callback
from tracer.trace import trees
from tracer.trace.source import here
from tracer.transforms.functions import argument_names, check_callable, flatten_arguments, name_of


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: object = None,
    vmap_method: str | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call a Python function of NumPy arrays from traced code. It may run any number of times: it must have no effects.

    callback: takes NumPy arrays in the structure of args and kwargs. result_shape_dtypes: the tree of results, with
    objects that have `shape` and `dtype` as leaves. vmap_method: "sequential" (one call a lane, the default),
    "expand_dims" or "broadcast_all" (one call, the function takes batches). sharding: accepted as in JAX. The call has
    no derivative; see custom_jvp. Raises ShapeError, DTypeError or ArgumentError for results without the promised
    shapes, kinds of dtype or structure.

    >>> square = tracer.jit(lambda x: tracer.pure_callback(np.square, tracer.ShapeDtypeStruct((2,), "float64"), x))
    >>> square(tnp.asarray([2.0, 3.0]))
    Array([4., 9.], f64)
    """
    del sharding
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, False, vmap_method or "sequential")


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: object = None,
    ordered: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call a Python function with effects from traced code, in order, once each time the code runs.

    callback, result_shape_dtypes, args, kwargs, sharding: see `pure_callback`, whose errors it raises. A
    result_shape_dtypes of None promises no result. ordered: has no effect, since all calls are in order. Returns arrays
    of the promised shapes and dtypes.

    >>> seen = []
    >>> tracer.jit(lambda x: tracer.io_callback(lambda v: seen.append(float(v)), None, x))(2.0)
    >>> seen
    [2.0]
    """
    del sharding, ordered  # effects always keep their order
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, True, "sequential")


def _call(
    caller: str, function: Callable[..., Any], results: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
    ordered: bool, vmap_method: str,
) -> Any:  # fmt: skip
    check_callable(function, caller)
    if vmap_method not in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all"):
        raise ArgumentError(message(f"{caller}{here()}: no vmap_method {vmap_method!r}"))
    leaves, structure = flatten_arguments((args, kwargs), caller, lambda: argument_names(args, kwargs))
    promised, out_structure = trees.flatten(results)
    types = [_promised_type(caller, leaf) for leaf in promised]

    called = f"{caller} of {name_of(function)}{here()}"

    def host(*arrays: Any) -> Sequence[Any]:
        positional, keywords = trees.unflatten(structure, arrays)
        return _leaves(called, function(*positional, **keywords), out_structure)

    method = "sequential" if vmap_method == "sequential_unrolled" else vmap_method
    function_of_arrays = HostFunction(host, name_of(function), called, trees.leaf_names(results, "result"))
    outputs = callback(function_of_arrays, leaves, types, ordered=ordered, vmap_method=method)
    return trees.unflatten(out_structure, outputs)


def _leaves(called: str, result: Any, structure: trees.Structure) -> Sequence[Any]:
    leaves, found = trees.flatten(result)
    if found != structure:
        path, wanted, got = trees.parting(structure, found, "result")
        raise ArgumentError(
            message(
                f"{called}: {path} has the wrong structure",
                f"expected {trees.structure_text(wanted)}, got {trees.structure_text(got)}",
                help="result_shape_dtypes must say what the function returns",
            )
        )
    return leaves


def _promised_type(caller: str, leaf: Any) -> Type:
    type = getattr(leaf, "type", None)
    if isinstance(type, ArrayType):
        return type
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise ArgumentError(
            message(
                f"{caller}{here()}: result_shape_dtypes must hold values with a shape and a dtype",
                f"got {leaf!r}",
                help='as in tracer.ShapeDtypeStruct((3,), "float32")',
            )
        )
    return array_type(np.dtype(leaf.dtype), tuple(leaf.shape))
