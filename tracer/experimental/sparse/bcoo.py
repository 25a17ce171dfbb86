"""`BCOO`: sparse arrays as values and index vectors, with batch axes before and dense axes after the sparse ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.base import dense_operand, index_array
from tracer.experimental.sparse.coordinates import Coordinates, check, mapped
from tracer.experimental.sparse.elementwise import added, by_element, multiplied
from tracer.experimental.sparse.entries import stack_columns
from tracer.experimental.sparse.parts import bcoo_reduce_sum, indexed
from tracer.experimental.sparse.products import matmul
from tracer.experimental.sparse.rearranging import (
    bcoo_reshape,
    bcoo_sort_indices,
    bcoo_transpose,
    bcoo_update_layout,
    merged,
)
from tracer.lazy import LazyModule
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap
from tracer.tree_nodes import register_pytree_node_class

scipy_sparse: Any = LazyModule("scipy.sparse")


@register_pytree_node_class
class BCOO(Coordinates):
    """Sparse array of values at index vectors, `BCOO((data, indices), shape=shape)`.

    data: [*batch, nse, *dense]; indices: integers [*batch, nse, n_sparse]. The shape is [*batch, *sparse, *dense], and
    batch axes of length 1 are repeated. An index out of bounds is padding, and values at equal indices add up.
    indices_sorted, unique_indices: promises, kept as attributes.

    >>> from tracer.experimental import sparse
    >>> m = sparse.BCOO((tnp.asarray([2.0, 3.0]), tnp.asarray([[0, 1], [1, 0]])), shape=(2, 2))
    >>> m @ tnp.asarray([1.0, 10.0])
    Array([20.,  3.], f64)
    """

    def __init__(
        self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ) -> None:
        data, indices = args
        self.data, self.indices = array_of("BCOO: data", data), index_array("BCOO: indices", indices)
        self.shape = tuple(integer("BCOO", "shape", n) for n in shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        check(self)

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return the entries of a dense array that are not 0; as `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """Return SciPy's sparse array or matrix, of any format. index_dtype: by default int32."""
        if n_dense or n_batch:
            text = f"from_scipy_sparse{here()}: SciPy's arrays have sparse axes alone"
            raise ArgumentError(message(text, f"got n_dense={n_dense}, n_batch={n_batch}"))
        found = mat.tocoo()
        indices = np.stack([np.asarray(c) for c in found.coords], axis=1).astype(index_dtype or np.int32)
        return cls((np.asarray(found.data), indices), shape=found.shape)

    def to_scipy(self) -> Any:
        """Return SciPy's `coo_array` of a concrete array without dense or batch axes. Padding is left out."""
        flat = bcoo_update_layout(self, n_batch=0, n_dense=0)
        data, indices = np.asarray(flat.data), np.asarray(flat.indices)
        good = ((indices >= 0) & (indices < np.asarray(self.shape, np.int64))).all(1)
        return scipy_sparse.coo_array((data[good], tuple(indices[good].T)), shape=self.shape)

    def todense(self) -> Any:
        """Return the dense array."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Permute the axes; as `bcoo_transpose`, reversed by default."""
        return bcoo_transpose(self, permutation=tuple(range(self.ndim))[::-1] if axes is None else axes)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return sorted entries with distinct indices: values at equal indices are added up.

        nse: the number of entries, required under jit. remove_zeros: whether values of 0 become padding.
        """
        return merged(self, nse, remove_zeros)

    def sort_indices(self) -> BCOO:
        """Return the entries in row-major order, padding last."""
        return bcoo_sort_indices(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: Any = None
    ) -> BCOO:
        """Return the array with other numbers of batch and dense axes; as `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def astype(self, dtype: Any) -> BCOO:
        """Cast the values."""
        return self._like(self.data.astype(dtype))

    def reshape(self, *args: Any) -> BCOO:
        """Return the array in another shape; as `bcoo_reshape`. One size may be -1."""
        sizes = args[0] if len(args) == 1 and isinstance(args[0], Sequence) else args
        return bcoo_reshape(self, new_sizes=_sizes(sizes, self.size))

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """Return the sum along axes, as `bcoo_reduce_sum`; the sum along all of them, the default, is dense."""
        axes = tuple(range(self.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        found = bcoo_reduce_sum(self, axes=axes)
        return found if found.ndim else found.todense()

    def __getitem__(self, index: Any) -> BCOO:
        return indexed(self, index)

    def __neg__(self) -> BCOO:
        return self._like(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        return self._distinct()._changed(abs)

    def __pow__(self, other: Any) -> Any:
        if not isinstance(other, int | float) or other <= 0:
            return NotImplemented  # zeros would not stay zeros
        return self._distinct()._changed(lambda x: x**other)

    def _changed(self, function: Callable[[Any], Any]) -> BCOO:
        return self._like(function(self.data))

    def _distinct(self) -> BCOO:
        return self if self.unique_indices else merged(self, self.nse, False)

    def __add__(self, other: Any) -> Any:
        return added(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return added(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return added(-self, other)

    def __mul__(self, other: Any) -> Any:
        return multiplied(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        x = dense_operand(other)
        return NotImplemented if x is None else by_element(self, x, lambda a, b: a / b, 1)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)


def _sizes(sizes: Any, total: int) -> tuple[int, ...]:
    found = [int(n) for n in sizes]
    if found.count(-1) == 1:
        found[found.index(-1)] = total // max(math.prod(n for n in found if n != -1), 1)
    return tuple(found)


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """Return the entries of a dense array that are not 0, in row-major order.

    nse: the number of entries kept for each batch, required under jit; missing entries are padding. n_batch, n_dense:
    the number of batch and dense axes. Raises ArgumentError where nse is None and the array is traced.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_fromdense(tnp.asarray([[0.0, 2.0], [3.0, 0.0]])).indices
    Array([[0, 1],
           [1, 0]], i32)
    """
    x = array_of("bcoo_fromdense", mat)
    n_sparse = x.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        text = f"bcoo_fromdense{here()}: n_batch and n_dense are axes of the array"
        raise ShapeError(message(text, f"got n_batch={n_batch}, n_dense={n_dense} for {x.type}"))
    kept = (x != 0).any(axis=tuple(range(x.ndim - n_dense, x.ndim))) if n_dense else x != 0
    if nse is None:
        known = concrete_value(kept)
        if known is None:
            raise ArgumentError(
                message(
                    f"bcoo_fromdense{here()}: the number of entries depends on traced values",
                    help="give nse, the number of entries to keep",
                )
            )
        nse = int(known.sum(axis=tuple(range(n_batch, known.ndim))).max(initial=0)) if known.ndim else int(known)
    sizes = x.shape[n_batch : n_batch + n_sparse]

    def one(example: Any, mask: Any) -> tuple[Any, Any]:
        if not n_sparse:
            return tnp.broadcast_to(example, (nse, *example.shape)), tnp.zeros((nse, 0), index_dtype)
        columns = tnp.nonzero(mask, size=nse, fill_value=sizes)
        return entries.taken_at(example, columns), stack_columns(columns, nse, index_dtype)

    for _ in range(n_batch):
        one = vmap(one)
    data, indices = one(x, kept)
    return BCOO((data, indices), shape=x.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Any:
    """Return the dense array.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], f64)
    """
    return mapped(entries.dense, mat)
