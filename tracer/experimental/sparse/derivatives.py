"""Derivatives by the values of sparse arrays: `grad`, `value_and_grad`, `jacfwd`, `jacrev`.

A derivative by a sparse argument is a sparse array with its indices. Derivatives by elements outside of these are not
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.experimental.sparse.base import JAXSparse, is_sparse
from tracer.experimental.sparse.bcoo import BCOO
from tracer.experimental.sparse.matrices import COO
from tracer.ir.dtypes import is_inexact
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import wrapping
from tracer.transforms import gradients, jacobians
from tracer.transforms.functions import check_callable
from tracer.transforms.gradient_arguments import argument_numbers, argument_position
from tracer.tree_util import tree_flatten, tree_map, tree_unflatten

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """Return the gradient, as `tracer.grad`: by a sparse argument, a sparse array with the argument's indices.

    >>> from tracer.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.grad(lambda m: (m @ tnp.asarray([3.0, 4.0])).sum())(m).data
    Array([3., 4.], f64)
    """
    return _by_values("grad", gradients.grad, fun, argnums, has_aux, kwargs)


def value_and_grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """Return the value and the gradient, as `tracer.value_and_grad` and `sparse.grad`."""
    return _by_values("value_and_grad", gradients.value_and_grad, fun, argnums, has_aux, kwargs)


def jacfwd(fun: Function, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """Return the Jacobian by forward mode, as `tracer.jacfwd`: by a BCOO, one with a batch axis for each output axis.

    >>> from tracer.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.jacfwd(lambda m: m @ tnp.asarray([3.0, 4.0]))(m).todense()[0]
    Array([[3., 0.],
           [0., 0.]], f64)
    """
    return _by_values("jacfwd", jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Function, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """Return the Jacobian by reverse mode, as `tracer.jacrev` and `sparse.jacfwd`."""
    return _by_values("jacrev", jacobians.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev


def _by_values(
    caller: str, transform: Any, fun: Function, argnums: Argnums, has_aux: bool, options: dict[str, Any]
) -> Function:
    """Return the derivative of `fun` by the values of its sparse arguments, and by dense arguments."""
    check_callable(fun, caller)
    single = isinstance(argnums, int)
    numbers = argument_numbers(argnums, caller)

    @wrapping(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        positions = [argument_position(number, len(args), caller) for number in numbers]
        leaves, structure = tree_flatten([args[k] for k in positions], is_leaf=is_sparse)
        values = tree_unflatten(structure, [x.data if is_sparse(x) else x for x in leaves])

        def of_values(*chosen: Any) -> Any:
            parts = tree_flatten(list(chosen))[0]
            full = list(args)
            whole = tree_unflatten(structure, [_with(x, data) for x, data in zip(leaves, parts, strict=True)])
            for position, value in zip(positions, whole, strict=True):
                full[position] = value
            return fun(*full, **kwargs)

        of_values.__name__ = getattr(fun, "__name__", "f")
        found = transform(of_values, tuple(range(len(positions))), has_aux, **options)(*values)
        valued = caller == "value_and_grad"
        result = found[1] if valued else found[0] if has_aux else found
        sparse_at = [k for k, x in enumerate(leaves) if is_sparse(x)]

        def dressed(entry: Any) -> Any:
            parts = tree_flatten(list(entry))[0]
            for k in sparse_at:
                parts[k] = _derivative(caller, leaves[k], parts[k])
            whole = tree_unflatten(structure, parts)
            return whole[0] if single else tuple(whole)

        result = tree_map(dressed, result, is_leaf=_entries_of(structure))
        if valued:
            return found[0], result
        return (result, found[1]) if has_aux else result

    return derivative


def _entries_of(structure: Any) -> Callable[[Any], bool]:
    """Return the test for the tuple of derivatives by all arguments, at each result of a Jacobian."""
    count = structure.num_leaves

    def is_entry(x: Any) -> bool:
        if not isinstance(x, tuple):
            return False
        leaves, found = tree_flatten(list(x))
        return len(leaves) == count and found == structure and all(isinstance(leaf, Array) for leaf in leaves)

    return is_entry


def _with(x: Any, data: Any) -> Any:
    """Return a sparse array with other values, or for a dense one `data` itself."""
    if not is_sparse(x):
        return data
    (_, *others), aux = x.tree_flatten()
    return type(x).tree_unflatten(aux, (data, *others))


def _derivative(caller: str, x: JAXSparse, data: Any) -> Any:
    """Return the derivative by a sparse array from the one by its values, [*output, *values]."""
    extra = data.ndim - x.data.ndim
    if not extra or not is_inexact(data.dtype):
        return _with(x, data)
    if not isinstance(x, BCOO):
        kind = type(x).__name__
        text = f"{caller}{here()}: the Jacobian by a {kind} has more than two axes"
        remedy = "take a BCOO" + (", BCOO.from_scipy_sparse(m.to_scipy())" if isinstance(x, COO) else "")
        raise ArgumentError(message(text, help=remedy))
    indices = x.indices.reshape((1,) * extra + x.indices.shape)
    return BCOO(
        (data, indices), shape=(*data.shape[:extra], *x.shape), indices_sorted=x.indices_sorted,
        unique_indices=x.unique_indices,
    )  # fmt: skip
