"""Products with the Jacobian of a function, from either side: `jvp`, `linearize`, `vjp`, `linear_transpose`.

Forward mode multiplies it by tangents of the arguments, reverse mode by cotangents of the results. `gradients` and
`jacobians` are built from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir.types import ArrayType, is_differentiable
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.transforms.functions import argument_names, check_callable, flatten_arguments, name_of
from tracer.transforms.gradient_arguments import refuse_reduce_axes
from tracer.transforms.linear_functions import Known, Pullback, Pushforward
from tracer.transforms.recording import Flattened, record
from tracer.transforms.run import run_forward
from tracer.transforms.tangents import match_tangents, tangent_array


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[object] = ()) -> Any:
    """Run a function. Return its outputs, and the function from cotangents of the outputs to cotangents of the inputs.

    fun: takes and returns trees of floating or complex arrays of any shapes; primals: its arguments; reduce_axes:
    empty, as in JAX. A cotangent has the shape and dtype of the value that it belongs to, float0 for integers.

    Returns (outputs, pullback), or (outputs, pullback, aux) if `has_aux`. pullback(cotangents) takes a tree like the
    outputs. It returns a tuple with one entry for each of `primals`. It may be called any number of times. It is a tree
    of the arrays that it keeps, so jit, vmap and scan take it and return it.

    >>> import tracer, tracer.numpy as tnp
    >>> y, pullback = tracer.vjp(tnp.sin, 0.0)
    >>> pullback(2.0)
    (Array(2., f64*),)
    """
    check_callable(fun, "vjp")
    refuse_reduce_axes("vjp", reduce_axes)
    name = name_of(fun)
    leaves, structure = flatten_arguments(primals, f"vjp of {name}", lambda: argument_names(primals, of=fun))
    recorded = record(fun, leaves, structure, has_aux, name, "vjp")

    pullback = Pullback(recorded, structure, recorded.structure, "vjp", name)
    outputs = trees.unflatten(recorded.structure, recorded.outputs)
    return (outputs, pullback, recorded.aux) if has_aux else (outputs, pullback)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Run a function. Return its outputs, and its derivative at this point, a function from tangents to tangents.

    fun: takes and returns trees of floating or complex arrays of any shapes; primals: its arguments. A tangent has the
    shape and dtype of the value that it belongs to.

    Returns (outputs, pushforward), or (outputs, pushforward, aux) if `has_aux`. The pushforward is a tree of the arrays
    that it keeps, like a pullback: see `vjp`.

    >>> import tracer, tracer.numpy as tnp
    >>> y, pushforward = tracer.linearize(tnp.sin, 0.0)
    >>> pushforward(2.0)
    Array(2., f64*)
    """
    check_callable(fun, "linearize")
    name = name_of(fun)

    def names() -> list[str]:
        return argument_names(primals, of=fun)

    leaves, structure = flatten_arguments(primals, f"linearize of {name}", names)
    recorded = record(fun, leaves, structure, has_aux, name, "linearize")

    pushforward = Pushforward(recorded, structure, recorded.structure, "linearize", name, names)
    outputs = trees.unflatten(recorded.structure, recorded.outputs)
    return (outputs, pushforward, recorded.aux) if has_aux else (outputs, pushforward)


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Return the outputs of a function and their tangents, computed side by side.

    fun: takes and returns trees of arrays; primals, tangents: sequences, one entry an argument, of equal structures,
    shapes and dtypes (float0 for integers). Returns (outputs, tangents), or (outputs, tangents, aux) if `has_aux`.
    Raises ArgumentError where structures differ, ShapeError or DTypeError where types do.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.jvp(tnp.sin, (0.0,), (2.0,))
    (Array(0., f64*), Array(2., f64*))
    """
    check_callable(fun, "jvp")
    check_sequences("jvp", primals, tangents)
    return push("jvp", fun, primals, tangents, has_aux)


def check_sequences(caller: str, primals: Any, tangents: Any) -> None:
    """Raise ArgumentError unless the arguments and their tangents come as tuples or lists."""
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(
            message(
                f"{caller}{here()} takes tuples of primals and tangents",
                f"got {type(primals).__name__} and {type(tangents).__name__}",
                help=f"{caller}(f, (x,), (dx,)) for a function of one argument",
            )
        )


def push(caller: str, fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> Any:
    """Run a function and its tangents, as `jvp`. caller: the transform that errors name."""
    name = name_of(fun)
    primals, tangents = tuple(primals), tuple(tangents)

    def names() -> list[str]:
        return argument_names(primals, of=fun)

    leaves, structure = flatten_arguments(primals, f"{caller} of {name}", names)
    given = match_tangents(tangents, leaves, structure, f"{caller} of {name}", "tangents", names)
    holder = Flattened(has_aux, f"{caller} of {name}")
    outputs, moved = run_forward(holder.flat(fun, structure), leaves, given, name)
    count = holder.count
    ys = trees.unflatten(holder.structure, outputs[:count])
    dys = trees.unflatten(
        holder.structure, [tangent_array(t, y.type) for t, y in zip(moved[:count], outputs[:count], strict=True)]
    )
    return (ys, dys, holder.aux_value(outputs[count:])) if has_aux else (ys, dys)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[object] = ()) -> Callable[..., Any]:
    """Return the transpose of a linear function: from cotangents of its outputs to cotangents of its arguments.

    primals: floating or complex arrays, or anything with `shape` and `dtype`; their values are not used. Raises
    DTypeError where arguments or outputs are neither, NoRuleError where the function is not linear. A constant term is
    ignored, as in JAX: `x + 1` and `x` have one transpose. fun: takes and returns trees of arrays of any shapes;
    reduce_axes: empty, as in JAX.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., f64*),)
    """
    check_callable(fun, "linear_transpose")
    refuse_reduce_axes("linear_transpose", reduce_axes)
    name = name_of(fun)
    shapes, structure = trees.flatten(primals)
    names = argument_names(primals, of=fun)
    caller = f"linear_transpose of {name}"
    types = [abstract_type(leaf, f"{caller}: {called}") for leaf, called in zip(shapes, names, strict=True)]
    holder = Flattened(False, caller)
    staged = stage(holder.flat(fun, structure), types, name=name, protected=True)
    results = trees.unflatten(holder.structure, [0] * holder.structure.num_leaves)
    called = [*names, *(f"its {path}" for path in trees.leaf_names(results, "result"))]
    for each, type in zip(called, (*types, *staged.program.output_types), strict=True):
        if not is_differentiable(type):
            raise DTypeError(
                message(
                    f"{caller}{here()}: {each} is neither floating nor complex",
                    f"expected a floating or complex dtype, got {type}",
                    help="linear functions take and return floating or complex values: cast with .astype(float)",
                )
            )

    known = Known(staged.program, staged.constants, types, staged.program.output_types, caller)
    return Pullback(known, structure, holder.structure, "linear_transpose", name)


def abstract_type(leaf: Any, caller: str = "an argument") -> Any:
    """Return the IR type of an array, a scalar, or a ShapeDtypeStruct."""
    if isinstance(leaf, Array):
        return leaf.type
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        return ArrayType(np.dtype(dtype), tuple(shape), bool(getattr(leaf, "weak_type", False)))
    return as_array(leaf, caller).type
