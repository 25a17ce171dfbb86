"""Gradients of functions with one scalar result: `grad`, `value_and_grad`.

Complex derivatives follow JAX: `grad` of a real function of complex z gives the conjugate of the ascent direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.trace import trees
from tracer.trace.array import concrete
from tracer.trace.device_trace import beside
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import Operand, as_literal
from tracer.trace.tracebacks import wrapping
from tracer.transforms.functions import check_callable
from tracer.transforms.gradient_arguments import argument_numbers, chosen_arguments, refuse_reduce_axes
from tracer.transforms.recording import Recorded, record


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that computes the gradient of a scalar function.

    fun: returns a real scalar [] (a complex one if `holomorphic`), or (scalar, aux) if `has_aux`. argnums: the
    arguments to differentiate; the gradient has their tree structure, shapes and dtypes. allow_int: integer arguments
    get float0 gradients in place of an error. reduce_axes: must be empty, as in JAX. The function returned raises
    DTypeError for integer arguments or results, and ShapeError for results with axes.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.grad(tnp.sin)(0.0)
    Array(1., f64*)
    """
    refuse_reduce_axes("grad", reduce_axes)
    return gradient_of("grad", fun, argnums, has_aux, holomorphic, allow_int)


def gradient_of(
    caller: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Return the function of `grad`. caller: names the transform in errors."""
    derivative = _derivative(caller, fun, argnums, has_aux, holomorphic, allow_int)

    @wrapping(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        recorded, result = derivative(args, kwargs)
        return (result, recorded.aux) if has_aux else result

    return gradient


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that computes (value, gradient), or ((value, aux), gradient) if `has_aux`.

    fun, argnums, has_aux, holomorphic, allow_int, reduce_axes: see `grad`, whose errors it raises. The value has the
    shape [] and fun's dtype.

    >>> import tracer
    >>> tracer.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., f64*), Array(6., f64*))
    """
    refuse_reduce_axes("value_and_grad", reduce_axes)
    derivative = _derivative("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)

    @wrapping(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        recorded, result = derivative(args, kwargs)
        value = trees.unflatten(recorded.structure, recorded.outputs)
        return ((value, recorded.aux) if has_aux else value), result

    return value_and_gradient


def _derivative(
    caller: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Recorded, Any]]:
    """Return the function from arguments to the recorded run of `fun` and its gradient."""
    check_callable(fun, caller)
    single = isinstance(argnums, int)
    numbers = argument_numbers(argnums, caller)

    def derivative(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recorded, Any]:
        chosen = chosen_arguments(fun, caller, numbers, args, kwargs, holomorphic=holomorphic, allow_int=allow_int)
        recorded = record(chosen.call, chosen.leaves, chosen.structure, has_aux, chosen.name, caller)
        output = _scalar_output(recorded, caller, chosen.name, holomorphic)
        result = trees.unflatten(chosen.structure, recorded.pull([_ones(output)]))
        return recorded, result[0] if single else result

    return derivative


def _scalar_output(recorded: Recorded, caller: str, name: str, holomorphic: bool) -> Any:
    where = f"{caller} of {name}"
    if len(recorded.outputs) != 1:
        raise ArgumentError(
            message(
                f"{where}{here()}: the function must return one scalar",
                f"got {trees.structure_text(recorded.structure)}",
                help="return the loss alone; has_aux=True takes (loss, aux), and jacrev takes trees"
                if recorded.outputs
                else "return the loss: is there a `return`?",
            )
        )
    (output,) = recorded.outputs
    type = output.type
    if not isinstance(type, ArrayType) or type.shape != ():
        raise ShapeError(
            message(
                f"{where}{here()}: the function must return a scalar",
                f"got {type}",
                help="reduce it, as with .sum() or .mean(); jacrev and jacfwd differentiate arrays",
            )
        )
    good = dtypes.is_complex(type.dtype) if holomorphic else dtypes.is_float(type.dtype)
    if not good:
        raise DTypeError(
            message(
                f"{where}{here()}: the function must return a {'complex' if holomorphic else 'real float'}",
                f"got {type}",
                help="holomorphic=True differentiates complex functions"
                if dtypes.is_complex(type.dtype)
                else "cast it with .astype(float)",
            )
        )
    return output


def _ones(output: Operand) -> Any:
    type = output.type
    assert isinstance(type, ArrayType)
    if state.innermost is None:
        return beside(output, concrete(np.asarray(type.dtype.type(1))))
    return broadcast_in_dim(as_literal(type.dtype.type(1), type.dtype), (), ())
