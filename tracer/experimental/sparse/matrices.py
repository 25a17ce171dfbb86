"""Sparse matrices by rows and columns: `COO`, and with compressed rows or columns `CSR` and `CSC`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, AxisError, ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.base import (
    JAXSparse,
    check_inner,
    dense_operand,
    index_array,
    matrix_shape,
)
from tracer.experimental.sparse.bcoo import bcoo_fromdense
from tracer.experimental.sparse.entries import Entries, stack_columns
from tracer.ir import dtypes
from tracer.lazy import LazyModule
from tracer.numpy.core.conversion import array_of
from tracer.primitives.linalg.row_products import row_products
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.tree_nodes import register_pytree_node_class

scipy_sparse: Any = LazyModule("scipy.sparse")


class _Matrix(JAXSparse):
    """Sparse matrix whose entries have a row and a column each."""

    def _entries(self) -> Entries:
        raise NotImplementedError

    def _dot(self, x: Any, axis: int) -> Any:
        """Return the product with a dense array, summed over an axis of the matrix."""
        return entries.dot_dense(self._entries(), x, ((axis,), (0,)), ((), ()))

    def _like(self, data: Any) -> Any:
        (_, *others), aux = self.tree_flatten()
        return type(self).tree_unflatten(aux, (data, *others))

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        raise NotImplementedError

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        raise NotImplementedError

    @property
    def nse(self) -> int:
        """Number of specified elements, padding included."""
        return int(self.data.shape[0])

    def todense(self) -> Any:
        """Return the dense matrix."""
        return entries.dense(self._entries())

    def astype(self, dtype: Any) -> Any:
        """Cast the values."""
        return self._like(self.data.astype(dtype))

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum along an axis, or of all elements, as a dense array."""
        if axis not in (None, 0, 1, -1, -2):
            text = f"sum of {type(self).__name__}{here()}: a matrix has the axes 0 and 1"
            raise AxisError(message(text, f"got {axis}"))
        e = self._entries()
        if axis is None:
            return entries.where_rows(entries.inside(e), e.data).sum()
        kept = 1 - axis % 2
        values = entries.where_rows(entries.inside(e), e.data)
        return entries.summed_at((e.shape[kept],), [e.columns[kept]], values.astype(e.data.dtype))

    def __neg__(self) -> Any:
        return self._like(-self.data)

    def __pos__(self) -> Any:
        return self

    def __mul__(self, other: Any) -> Any:
        x = dense_operand(other)
        if x is None:
            return NotImplemented
        if x.ndim:
            e = self._entries()
            return self._like(self.data * entries.taken_at(tnp.broadcast_to(x, self.shape), e.columns))
        return self._like(self.data * x)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        x = dense_operand(other)
        if x is None or x.ndim:
            return NotImplemented
        return self._like(self.data / x)

    def __matmul__(self, other: Any) -> Any:
        x = dense_operand(other)
        return NotImplemented if x is None else _product(f"{type(self).__name__} @", self, x, transpose=False)

    def __rmatmul__(self, other: Any) -> Any:
        x = dense_operand(other)
        if x is None:
            return NotImplemented
        found = _product(f"@ {type(self).__name__}", self, x.T, transpose=True)
        return found.T


def _product(caller: str, mat: _Matrix, x: Any, *, transpose: bool) -> Any:
    check_inner(caller, mat.shape, x, 0 if transpose else 1)
    return mat._dot(x, 0 if transpose else 1)


def _same_length(caller: str, **arrays: Array) -> None:
    if any(x.ndim != 1 for x in arrays.values()) or len({x.shape for x in arrays.values()}) > 1:
        shown = ", ".join(f"{name} {x.type}" for name, x in arrays.items())
        raise ShapeError(message(f"{caller}{here()}: one element of each array for each entry", f"got {shown}"))


@register_pytree_node_class
class COO(_Matrix):
    """Sparse matrix `COO((data, row, col), shape=shape)`: values [nse] at rows and columns, integers [nse].

    An index out of bounds is padding, and values at equal indices add up. rows_sorted, cols_sorted: promises, kept as
    attributes.

    >>> from tracer.experimental import sparse
    >>> m = sparse.COO((tnp.asarray([2.0, 3.0]), tnp.asarray([0, 1]), tnp.asarray([1, 0])), shape=(2, 2))
    >>> m @ tnp.asarray([1.0, 10.0])
    Array([20.,  3.], f64)
    """

    def __init__(
        self, args: Any, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        data, row, col = args
        self.data = array_of("COO: data", data)
        self.row, self.col = index_array("COO: row", row), index_array("COO: col", col)
        self.shape = matrix_shape("COO", shape)
        self._sorted = (bool(rows_sorted), bool(cols_sorted))
        _same_length("COO", data=self.data, row=self.row, col=self.col)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        return (self.data, self.row, self.col), (self.shape, self._sorted)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> COO:
        made = object.__new__(cls)
        made.data, made.row, made.col = children
        made.shape, made._sorted = aux
        return made

    def _entries(self) -> Entries:
        return Entries(self.data, stack_columns([self.row, self.col], self.nse, self.row.dtype), self.shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """Return the entries of a dense matrix that are not 0; as `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> COO:
        """Return SciPy's sparse matrix, of any format. index_dtype: by default int32."""
        found = mat.tocoo()
        row, col = (np.asarray(c).astype(index_dtype or np.int32) for c in (found.row, found.col))
        return cls((np.asarray(found.data), row, col), shape=found.shape)

    def to_scipy(self) -> Any:
        """Return SciPy's `coo_array` of a concrete matrix. Padding is left out."""
        data, row, col = np.asarray(self.data), np.asarray(self.row), np.asarray(self.col)
        good = (row >= 0) & (row < self.shape[0]) & (col >= 0) & (col < self.shape[1])
        return scipy_sparse.coo_array((data[good], (row[good], col[good])), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Return the transpose."""
        _check_axes("COO", axes)
        rows_sorted, cols_sorted = self._sorted
        return COO.tree_unflatten((self.shape[::-1], (cols_sorted, rows_sorted)), (self.data, self.col, self.row))


def _check_axes(caller: str, axes: Sequence[int] | None) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        text = f"transpose of {caller}{here()}: a matrix has one transpose"
        raise AxisError(message(text, f"got axes {tuple(axes)}", help="m.T"))


class _Compressed(_Matrix):
    """Sparse matrix whose entries are ordered by one axis: line i has entries indptr[i] to indptr[i + 1] - 1."""

    def __init__(self, args: Any, *, shape: Sequence[int]) -> None:
        data, indices, indptr = args
        name = type(self).__name__
        self.data, self.shape = array_of(f"{name}: data", data), matrix_shape(name, shape)
        self.indices = index_array(f"{name}: indices", indices)
        self.indptr = index_array(f"{name}: indptr", indptr)
        _same_length(name, data=self.data, indices=self.indices)
        lines = self.shape[self._axis]
        if self.indptr.shape != (lines + 1,):
            text = f"{name}{here()}: indptr is [{lines + 1}], for a matrix of shape {self.shape}"
            raise ShapeError(message(text, f"got {self.indptr.type}"))

    _axis = 0

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape = aux
        return made

    def _dot(self, x: Any, axis: int) -> Any:
        dtype = tnp.result_type(self.data, x)
        if axis == self._axis or dtypes.is_bool(dtype):
            e = self._entries()  # of which padding may be infinite or NaN
            return entries.dot_dense(
                e._replace(data=entries.where_rows(entries.inside(e), e.data)), x, ((axis,), (0,)), ((), ())
            )
        return row_products(self.data.astype(dtype), self.indices, self.indptr, x.astype(dtype))

    def _lines(self) -> Any:
        """Return the line of each entry; the number of lines for padding, which is past the last."""
        count = self.nse
        starts = entries.summed_at((count + 1,), [self.indptr[1:]], tnp.ones(self.indptr.shape[0] - 1, "int32"))
        return tnp.cumsum(starts[:count], dtype=self.indices.dtype)

    def _entries(self) -> Entries:
        lines = self._lines()
        order = [lines, self.indices] if self._axis == 0 else [self.indices, lines]
        return Entries(self.data, stack_columns(order, self.nse, self.indices.dtype), self.shape)

    def _to_scipy(self, kind: Any) -> Any:
        used = int(np.asarray(self.indptr)[-1])
        parts = (np.asarray(self.data)[:used], np.asarray(self.indices)[:used], np.asarray(self.indptr))
        return kind(parts, shape=self.shape)


@register_pytree_node_class
class CSR(_Compressed):
    """Sparse matrix by rows, `CSR((data, indices, indptr), shape=shape)`.

    data: [nse]; indices: the columns, integers [nse]; indptr: integers [rows + 1], ascending from 0. Entries from
    indptr[-1] on, and columns out of bounds, are padding.

    >>> from tracer.experimental import sparse
    >>> m = sparse.CSR.fromdense(tnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    >>> m @ tnp.asarray([1.0, 10.0])
    Array([20.,  3.], f64)
    """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """Return the entries of a dense matrix that are not 0; as `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> CSR:
        """Return SciPy's sparse matrix, of any format. index_dtype: by default int32."""
        found, dtype = mat.tocsr(), index_dtype or np.int32
        return cls((np.asarray(found.data), found.indices.astype(dtype), found.indptr.astype(dtype)), shape=found.shape)

    def to_scipy(self) -> Any:
        """Return SciPy's `csr_array` of a concrete matrix."""
        return self._to_scipy(scipy_sparse.csr_array)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Return the transpose, by columns, which shares the arrays."""
        _check_axes("CSR", axes)
        made: CSC = CSC.tree_unflatten(self.shape[::-1], (self.data, self.indices, self.indptr))
        return made


@register_pytree_node_class
class CSC(_Compressed):
    """Sparse matrix by columns, `CSC((data, indices, indptr), shape=shape)`.

    As `CSR`, with rows for columns.

    >>> from tracer.experimental import sparse
    >>> sparse.CSC.fromdense(tnp.asarray([[0.0, 2.0], [3.0, 0.0]])).indices
    Array([1, 0], i32)
    """

    _axis = 1

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """Return the entries of a dense matrix that are not 0, by columns."""
        return csr_fromdense(array_of("CSC.fromdense", mat).T, nse=nse, index_dtype=index_dtype).transpose()

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> CSC:
        """Return SciPy's sparse matrix, of any format. index_dtype: by default int32."""
        found, dtype = mat.tocsc(), index_dtype or np.int32
        return cls((np.asarray(found.data), found.indices.astype(dtype), found.indptr.astype(dtype)), shape=found.shape)

    def to_scipy(self) -> Any:
        """Return SciPy's `csc_array` of a concrete matrix."""
        return self._to_scipy(scipy_sparse.csc_array)

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Return the transpose, by rows, which shares the arrays."""
        _check_axes("CSC", axes)
        made: CSR = CSR.tree_unflatten(self.shape[::-1], (self.data, self.indices, self.indptr))
        return made


# Functions


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """Return the entries of a dense matrix that are not 0, in row-major order. nse: as of `bcoo_fromdense`.

    >>> from tracer.experimental import sparse
    >>> sparse.coo_fromdense(tnp.asarray([[0.0, 2.0], [3.0, 0.0]])).col
    Array([1, 0], i32)
    """
    x = array_of("coo_fromdense", mat)
    shape = matrix_shape("coo_fromdense", x.shape)
    m = bcoo_fromdense(x, nse=nse, index_dtype=index_dtype)
    return COO((m.data, m.indices[:, 0], m.indices[:, 1]), shape=shape, rows_sorted=True)


def coo_todense(mat: COO) -> Any:
    """Return the dense matrix.

    >>> from tracer.experimental import sparse
    >>> sparse.coo_todense(sparse.eye(2, sparse_format="coo"))
    Array([[1., 0.],
           [0., 1.]], f64)
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """Return the product with a vector. transpose: of the transposed matrix.

    >>> from tracer.experimental import sparse
    >>> sparse.coo_matvec(sparse.eye(2, sparse_format="coo"), tnp.asarray([1.0, 2.0]))
    Array([1., 2.], f64)
    """
    return _product("coo_matvec", mat, _with_axes("coo_matvec", v, 1), transpose=transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """Return the product with a dense matrix. transpose: of the transposed sparse matrix."""
    return _product("coo_matmat", mat, _with_axes("coo_matmat", B, 2), transpose=transpose)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """Return the entries of a dense matrix that are not 0, by rows. nse: as of `bcoo_fromdense`.

    >>> from tracer.experimental import sparse
    >>> sparse.csr_fromdense(tnp.asarray([[0.0, 2.0], [3.0, 0.0]])).indptr
    Array([0, 1, 2], i32)
    """
    m = coo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    counts = entries.summed_at((m.shape[0],), [m.row], tnp.ones(m.nse, index_dtype))
    indptr = tnp.concatenate([tnp.zeros(1, index_dtype), tnp.cumsum(counts, dtype=index_dtype)])
    return CSR((m.data, m.col, indptr), shape=m.shape)


def csr_todense(mat: CSR) -> Any:
    """Return the dense matrix."""
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """Return the product with a vector. transpose: of the transposed matrix.

    >>> from tracer.experimental import sparse
    >>> sparse.csr_matvec(sparse.eye(2, sparse_format="csr"), tnp.asarray([1.0, 2.0]))
    Array([1., 2.], f64)
    """
    return _product("csr_matvec", mat, _with_axes("csr_matvec", v, 1), transpose=transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """Return the product with a dense matrix. transpose: of the transposed sparse matrix."""
    return _product("csr_matmat", mat, _with_axes("csr_matmat", B, 2), transpose=transpose)


def _with_axes(caller: str, x: Any, count: int) -> Any:
    found = array_of(caller, x)
    if found.ndim != count:
        wanted = "a vector" if count == 1 else "a matrix"
        raise ArgumentError(message(f"{caller}{here()} takes {wanted}", f"got {found.type}"))
    return found
