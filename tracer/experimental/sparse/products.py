"""Products of a `BCOO` with dense and sparse arrays."""

from __future__ import annotations

from typing import Any

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.base import dense_operand, index_array, is_sparse
from tracer.experimental.sparse.coordinates import Coordinates, flat
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array
from tracer.trace.source import here


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: Any = None
) -> Any:
    """Return a general product of two arrays, one or both sparse; `lax.dot_general` says which axes are summed.

    dimension_numbers: ((lhs contracted, rhs contracted), (lhs batch, rhs batch)). The result is dense, but for two
    sparse arrays. Then every pair of entries has one, which is padding unless they meet. Cost: for a sparse and a dense
    array, nse times the elements of the dense one's other axes. precision: accepted for JAX.

    >>> from tracer.experimental import sparse
    >>> m = sparse.eye(2)
    >>> sparse.bcoo_dot_general(m, tnp.asarray([1.0, 2.0]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 2.], f64)
    """
    (left, right), (left_batch, right_batch) = ((tuple(a), tuple(b)) for a, b in dimension_numbers)
    a, b = (x if isinstance(x, Coordinates) else array_of("bcoo_dot_general", x) for x in (lhs, rhs))
    pairs = [*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)]
    if any(a.shape[i] != b.shape[j] for i, j in pairs):
        raise ShapeError(
            message(
                f"bcoo_dot_general{here()}: contracted and batch axes have equal sizes",
                f"got shapes {tuple(a.shape)} and {tuple(b.shape)} with dimension_numbers={dimension_numbers}",
            )
        )
    contracted, batch = (left, right), (left_batch, right_batch)
    if isinstance(a, Coordinates) and isinstance(b, Coordinates):
        result: Any = a._of(entries.dot_sparse(flat(a), flat(b), contracted, batch))
    elif isinstance(a, Coordinates):
        result = entries.dot_dense(flat(a), b, contracted, batch)
    elif isinstance(b, Coordinates):
        found = entries.dot_dense(flat(b), a, contracted[::-1], batch[::-1])
        shared, mine = len(left_batch), b.ndim - len(right) - len(right_batch)
        others = range(shared + mine, found.ndim)
        result = tnp.transpose(found, (*range(shared), *others, *range(shared, shared + mine)))
    else:
        raise ArgumentError(message(f"bcoo_dot_general{here()}: an operand is a BCOO", help="lax.dot_general"))
    return result if preferred_element_type is None else result.astype(preferred_element_type)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """Return the elements of a product of dense arrays at index vectors [nse, n] into its result, as [nse].

    Only these elements are computed. It is the derivative of `bcoo_dot_general` in the values.
    """
    (left, right), (left_batch, right_batch) = ((tuple(a), tuple(b)) for a, b in dimension_numbers)
    a, b = array_of("bcoo_dot_general_sampled", A), array_of("bcoo_dot_general_sampled", B)
    places = index_array("bcoo_dot_general_sampled: indices", indices)
    a_free = [k for k in range(a.ndim) if k not in left and k not in left_batch]
    b_free = [k for k in range(b.ndim) if k not in right and k not in right_batch]
    shared, middle = len(left_batch), len(left_batch) + len(a_free)
    columns = [places[:, k] for k in range(places.shape[1])]
    x = entries.taken_at(tnp.transpose(a, (*left_batch, *a_free, *left)), columns[:middle])
    y = entries.taken_at(tnp.transpose(b, (*right_batch, *b_free, *right)), columns[:shared] + columns[middle:])
    product = tnp.broadcast_to(x, (places.shape[0], *x.shape[1:])) * y
    return product.sum(axis=tuple(range(1, product.ndim)))


def matmul(lhs: Any, rhs: Any) -> Any:
    """Return `lhs @ rhs`, with NumPy's meaning of one axis, two, and stacks."""
    a, b = (x if is_sparse(x) else dense_operand(x) for x in (lhs, rhs))
    if a is None or b is None or not all(isinstance(x, Coordinates | Array) for x in (a, b)):
        return NotImplemented
    if not a.ndim or not b.ndim:
        raise ShapeError(message(f"BCOO @{here()}: operands have axes", help="multiply by a number with *"))
    inner = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[inner]:
        raise ShapeError(
            message(
                f"BCOO @{here()}: the last axis of the first operand meets the last but one of the second",
                f"got shapes {tuple(a.shape)} and {tuple(b.shape)}",
            )
        )
    stacks = min(max(a.ndim - 2, 0), max(b.ndim - 2, 0))
    if a.ndim > 2 and b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
        text = f"BCOO @{here()}: stacks of matrices have equal shapes"
        raise ShapeError(message(text, f"got {tuple(a.shape)} and {tuple(b.shape)}", help="bcoo_dot_general"))
    lanes = tuple(range(stacks))
    found = bcoo_dot_general(a, b, dimension_numbers=(((a.ndim - 1,), (inner,)), (lanes, lanes)))
    if stacks or b.ndim <= 2 or a.ndim > 2:
        return found
    # [rows, *stack, columns] or [*stack, columns] for one matrix and a stack: the stack comes first
    order = (*range(a.ndim - 1, found.ndim - 1), *range(a.ndim - 1), found.ndim - 1)
    return found.transpose(order)
