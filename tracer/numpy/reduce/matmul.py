"""Products of vectors, matrices and tensors. float16 and bfloat16 accumulate in float32."""

from __future__ import annotations

from typing import Any

from tracer.errors import ShapeError, message
from tracer.ir import shape
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, broadcast, cast, dtype_of_argument, no_out, unified
from tracer.numpy.elementwise.arithmetic import multiply, subtract
from tracer.numpy.elementwise.rounding import conjugate
from tracer.numpy.shapes.joining import stack
from tracer.numpy.shapes.manipulation import moveaxis, ravel
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.shapes import expand_dims, reshape
from tracer.primitives.linalg.dot_general import dot_general
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def _operands(name: str, *values: Any) -> list[Array]:
    return unified(name, [array_of(name, x) for x in values])


def _preferred(name: str, dtype: Any) -> DType | None:
    return None if dtype is None else dtype_of_argument(name, dtype)


def _mismatch(name: str, x: Array, y: Array, which: str) -> ShapeError:
    return ShapeError(
        message(
            f"{name}{here()}: {which} must have equal sizes",
            f"got {x.type} and {y.type}",
            help="transpose one of them, or see tensordot and einsum for other axes",
        )
    )


def matmul(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Return the matrix product `a @ b`: [..., m, k] with [..., k, n] gives [..., m, n]; leading axes broadcast.

    A vector is a row on the left and a column on the right. Raises ShapeError for scalars.

    >>> tnp.matmul(tnp.ones((2, 3)), tnp.ones(3))
    Array([3., 3.], f64)
    """
    x, y = _operands("matmul", a, b)
    if not x.ndim or not y.ndim:
        raise ShapeError(message(f"matmul{here()} takes no scalars", f"got {x.type} and {y.type}", help="use *"))
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise _mismatch("matmul", x, y, "the last axis of the first and the second last of the second")
    options = {"precision": precision, "preferred_element_type": _preferred("matmul", preferred_element_type)}
    if y.ndim <= 2 or x.ndim == 1:  # the free axes are already in order
        contracted = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
        return dot_general(x, y, (contracted, ((), ())), **options)
    lead = shape.broadcast(x.shape[:-2], y.shape[:-2], operation=f"matmul{here()}")
    if x.ndim == 2 or all(n == 1 for n in x.shape[:-2]):
        if x.ndim > 2 and lead != y.shape[:-2]:
            y = broadcast(y, (*lead, *y.shape[-2:]))
        product = dot_general(reshape(x, x.shape[-2:]), y, (((1,), (y.ndim - 2,)), ((), ())), **options)
        return moveaxis(product, 0, -2)
    x, y = broadcast(x, (*lead, *x.shape[-2:])), broadcast(y, (*lead, *y.shape[-2:]))
    batch, last = tuple(range(len(lead))), len(lead)
    return dot_general(x, y, (((last + 1,), (last,)), (batch, batch)), **options)


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Multiply the last axis of `a` with the second last (or only) axis of `b`; scalars multiply elementwise.

    a: [*s, k]; b: [*t, k, n] or [k]. Returns [*s, *t, n] or [*s], in the promoted dtype. Raises ShapeError where the
    paired axes differ in size.

    >>> tnp.dot(tnp.asarray([1.0, 2.0]), tnp.asarray([3.0, 4.0]))
    Array(11., f64)
    """
    x, y = _operands("dot", a, b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise _mismatch("dot", x, y, "the last axis of the first and the second last of the second")
    contracted = ((x.ndim - 1,), (max(y.ndim - 2, 0),))
    return dot_general(x, y, (contracted, ((), ())), precision, _preferred("dot", preferred_element_type))


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Return the sum of conj(a) * b over all elements of both, flattened.

    a, b: any shapes, equally many elements. Returns [], in the promoted dtype. Raises ShapeError for unequal sizes.

    >>> tnp.vdot(tnp.asarray([1j, 2.0]), tnp.asarray([1j, 3.0]))
    Array(7.+0.j, c128)
    """
    x, y = ravel(conjugate(a)), ravel(b)
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Return the sum of conj(x1) * x2 along an axis; the other axes broadcast.

    x1: [*s, n]; x2: [*t, n]; axis: the axis of size n, by default the last. Returns the shape to which *s and *t
    broadcast, in the promoted dtype. Raises ShapeError where the axes differ in size.

    >>> tnp.vecdot(tnp.ones((2, 3)), tnp.asarray([1.0, 2.0, 3.0]))
    Array([6., 6.], f64)
    """
    x, y = _operands("vecdot", conjugate(x1), x2)
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise _mismatch("vecdot", x, y, "the axes")
    lead = shape.broadcast(x.shape[:-1], y.shape[:-1], operation=f"vecdot{here()}")
    x, y = (broadcast(v, (*lead, v.shape[-1])) for v in (x, y))
    batch = tuple(range(len(lead)))
    numbers = (((len(lead),), (len(lead),)), (batch, batch))
    return dot_general(x, y, numbers, precision, _preferred("vecdot", preferred_element_type))


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum the products over the last axes of both; scalars multiply elementwise.

    a: [*s, k]; b: [*t, k]. Returns [*s, *t], in the promoted dtype. Raises ShapeError where the last axes differ.

    >>> tnp.inner(tnp.ones((2, 3)), tnp.asarray([1.0, 2.0, 3.0]))
    Array([6., 6.], f64)
    """
    x, y = _operands("inner", a, b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise _mismatch("inner", x, y, "the last axes")
    numbers = (((x.ndim - 1,), (y.ndim - 1,)), ((), ()))
    return dot_general(x, y, numbers, precision, _preferred("inner", preferred_element_type))


def outer(a: Any, b: Any, out: None = None) -> Array:
    """Return the products of each element of `a` with each of `b`, both flattened: [size of a, size of b].

    a, b: any shapes. Returns the promoted dtype.

    >>> tnp.outer(tnp.asarray([1, 2]), tnp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], i64)
    """
    no_out("outer", out)
    x, y = ravel(a), ravel(b)
    return multiply(expand_dims(x, (1,)), expand_dims(y, (0,)))


def tensordot(a: Any, b: Any, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum products over pairs of axes: the last axes of `a` with the first of `b`, or given pairs.

    a: [*s, *k]; b: [*k, *t]; axes: the number of axes *k, or a pair of lists: the axes of `a` and of `b`. Returns [*s,
    *t], in the promoted dtype. Raises ShapeError where paired axes differ in size.

    >>> tnp.tensordot(tnp.ones((2, 3)), tnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    x, y = _operands("tensordot", a, b)
    if isinstance(axes, list | tuple):
        left, right = (tuple(s) if isinstance(s, list | tuple) else (s,) for s in axes)
    else:
        count = integer("tensordot", "axes", axes)
        if count > min(x.ndim, y.ndim):
            raise ShapeError(message(f"tensordot{here()}: {count} axes of {x.type} and {y.type}", "there are fewer"))
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    left = tuple(axis_of("tensordot", d, x.ndim) for d in left)
    right = tuple(axis_of("tensordot", d, y.ndim) for d in right)
    if [x.shape[d] for d in left] != [y.shape[d] for d in right]:
        raise _mismatch("tensordot", x, y, f"axes {left} of the first and axes {right} of the second")
    options = {"precision": precision, "preferred_element_type": _preferred("tensordot", preferred_element_type)}
    return dot_general(x, y, ((left, right), ((), ())), **options)


def kron(a: Any, b: Any) -> Array:
    """Return the Kronecker product: every element of `a` times all of `b`, in blocks.

    a: [m, n]; b: [p, q]; or of any rank, where axes of size 1 are prepended. Returns [m p, n q], in the promoted dtype.

    >>> tnp.kron(tnp.asarray([1, 10]), tnp.asarray([1, 2]))
    Array([ 1,  2, 10, 20], i64)
    """
    x, y = _operands("kron", a, b)
    rank = max(x.ndim, y.ndim)
    x = reshape(x, (1,) * (rank - x.ndim) + x.shape)
    y = reshape(y, (1,) * (rank - y.ndim) + y.shape)
    product = multiply(expand_dims(x, range(1, 2 * rank, 2)), expand_dims(y, range(0, 2 * rank, 2)))
    return reshape(product, [m * n for m, n in zip(x.shape, y.shape, strict=True)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """Return the vector product of vectors of three components; of two, its third component.

    a: [*s, n], vectors along axisa; b: [*t, m], vectors along axisb; axisa, axisb, axisc: by default the last; axis:
    all three at once. Returns vectors along axisc in the shape to which *s and *t broadcast, in the promoted dtype.
    That axis is absent if both have two components. Raises ShapeError for vectors of other sizes.

    >>> tnp.cross(tnp.asarray([1, 0, 0]), tnp.asarray([0, 1, 0]))
    Array([0, 0, 1], i64)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _operands("cross", a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ShapeError(message(f"cross{here()} takes vectors of 2 or 3 components", f"got {x.type} and {y.type}"))
    (x0, x1, x2), (y0, y1, y2) = _components(x), _components(y)
    third = subtract(multiply(x0, y1), multiply(x1, y0))
    if x.shape[-1] == 2 and y.shape[-1] == 2:
        return third
    first = subtract(multiply(x1, y2), multiply(x2, y1))
    second = subtract(multiply(x2, y0), multiply(x0, y2))
    lead = third.shape
    return moveaxis(stack([broadcast(c, lead) for c in (first, second, third)], -1), -1, axisc)


def _components(v: Array) -> list[Array]:
    """Return the three components along the last axis; a missing third one is 0."""
    found = [v[..., i] for i in range(v.shape[-1])]
    return found if len(found) == 3 else [*found, cast(array_of("cross", 0), v.dtype)]


def matvec(x1: Any, x2: Any, /) -> Array:
    """Return the products of matrices with vectors: [..., m, n] with [..., n] gives [..., m]; leading axes broadcast.

    >>> tnp.matvec(tnp.ones((2, 3)), tnp.arange(3.0))
    Array([3., 3.], f64)
    """
    matrices, vectors = _operands("matvec", x1, x2)
    if matrices.ndim < 2 or not vectors.ndim:
        raise ShapeError(message(f"matvec{here()} takes matrices and vectors", f"got {matrices.type}, {vectors.type}"))
    return matmul(matrices, expand_dims(vectors, (vectors.ndim,)))[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Array:
    """Return the products of conjugated vectors with matrices: [..., m] with [..., m, n] gives [..., n].

    >>> tnp.vecmat(tnp.arange(2.0), tnp.ones((2, 3)))
    Array([1., 1., 1.], f64)
    """
    vectors, matrices = _operands("vecmat", x1, x2)
    if matrices.ndim < 2 or not vectors.ndim:
        raise ShapeError(message(f"vecmat{here()} takes vectors and matrices", f"got {vectors.type}, {matrices.type}"))
    return matmul(expand_dims(conjugate(vectors), (vectors.ndim - 1,)), matrices)[..., 0, :]
