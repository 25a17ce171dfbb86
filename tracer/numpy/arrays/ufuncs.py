"""Elementwise functions made from Python functions of scalars: `frompyfunc` and its result `ufunc`."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import shape
from tracer.lax.loops import fori_loop, scan
from tracer.numpy.arrays.vectorize import vectorize
from tracer.numpy.chapters.put import written
from tracer.numpy.core.conversion import array_of, broadcast
from tracer.numpy.elementwise.logic import truth
from tracer.numpy.reduce.reductions import Axis, axes_argument
from tracer.numpy.shapes.joining import concatenate, stack
from tracer.numpy.shapes.manipulation import broadcast_shapes, expand_dims, moveaxis, ravel, reshape
from tracer.numpy.shapes.where import where as where_
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_method_boundaries


class _Kind(type):
    """Metaclass of `ufunc`: elementwise functions, as `tracer.numpy.add`, count as instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (
            isinstance(instance, FunctionType) and hasattr(instance, "ntypes")
        )


class ufunc(metaclass=_Kind):  # noqa: N801  # NumPy's name
    """Elementwise function that broadcasts, and folds along axes, made from a function of scalars by `frompyfunc`.

    The functions of `tracer.numpy` that are ufuncs in NumPy count as instances.

    func: of `nin` scalars [], returns `nout` scalars; identity: the start value of a fold, if there is one. Shapes
    broadcast; func's results give the dtypes.

    >>> longer = tnp.frompyfunc(lambda x, y: tnp.sqrt(x * x + y * y), nin=2, nout=1, identity=0.0)
    >>> longer(3.0, tnp.asarray([4.0, 0.0]))
    Array([5., 3.], f64)
    >>> longer.reduce(tnp.asarray([2.0, 3.0, 6.0]))
    Array(7., f64)
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> None:
        self._mapped, self._fold = vectorize(func), self.reduce
        self.__name__ = getattr(func, "__name__", "ufunc")
        self.__doc__ = func.__doc__ or type(self).__doc__
        self.nin, self.nout = integer("frompyfunc", "nin", nin), integer("frompyfunc", "nout", nout)
        self.nargs, self.identity = self.nin + self.nout, identity

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __call__(self, *args: Any) -> Any:
        """Apply the function to every element of the arguments, which broadcast together."""
        if len(args) != self.nin:
            raise ArgumentError(message(f"{self!r}{here()} takes {self.nin} arguments", f"got {len(args)}"))
        return self._mapped(*args)

    def reduce(
        self, a: Any, axis: Axis = 0, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Array:  # fmt: skip
        """Fold the elements along axes from the first to the last; all of them, if axis is None.

        initial: the start value, by default the identity, or else the first element. where: the elements to include.
        """
        x = self._operand("reduce", a, dtype)
        axes = axes_argument("reduce", x, axis)
        kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        mask = None if where is None or where is True else _in_front(broadcast(truth("reduce", where), x.shape), axes)
        rows = _in_front(x, axes)
        start = self.identity if initial is None else initial
        if start is None:
            if not rows.shape[0] or mask is not None:
                raise ArgumentError(message(f"{self!r}.reduce{here()} has no start value", help="give initial="))
            start, rows = rows[0], rows[1:]
        total = broadcast(array_of("reduce", start), rows.shape[1:])
        if rows.shape[0]:
            total = total.astype(trees.flatten(self(total, rows[0]))[0][0].dtype)

        def step(found: Array, row: Any) -> tuple[Array, None]:
            value, counts = row
            return (self(found, value) if counts is None else where_(counts, self(found, value), found)), None

        result: Array = scan(step, total, (rows, mask))[0]
        return reshape(result, kept) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None) -> Array:
        """Return the fold of every leading part of an axis, from one element to all, in the operand's shape."""
        x = moveaxis(self._operand("accumulate", a, dtype), axis, 0)
        if not x.shape[0]:
            return moveaxis(x, 0, axis)
        first = x[0].astype(self(x[0], x[0]).dtype)

        def step(found: Array, row: Array) -> tuple[Array, Array]:
            return (new := self(found, row)), new

        rest: Array = scan(step, first, x[1:])[1]
        return moveaxis(concatenate([first[None], rest]), 0, axis)

    def outer(self, a: Any, b: Any, /) -> Any:
        """Apply the function to every element of one array with every element of another: shape [*a, *b]."""
        self._operand("outer", a, None)
        x, y = array_of("outer", a), array_of("outer", b)
        return self(expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), y)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """Update x[i] = f(x[i]), or f(x[i], b[i]), at one index after the other; repeated indices count again.

        inplace: whether the array is rebound to the new values, as by x[i] = v. Returns them.
        """
        x = array_of("at", a)
        index = tuple(array_of("at", i) for i in (indices if isinstance(indices, tuple) else (indices,)))
        sizes = broadcast_shapes(*(i.shape for i in index))
        flat_index = [ravel(broadcast(i, sizes)) for i in index]
        operands = () if b is None else (broadcast(array_of("at", b), x[index].shape),)
        rows = [reshape(y, (flat_index[0].shape[0], *y.shape[len(sizes) :])) for y in operands]

        def step(k: Array, found: Array) -> Array:
            where = tuple(place[k] for place in flat_index)
            return found.at[where].set(self(found[where], *(row[k] for row in rows)))

        return written("at", a, fori_loop(0, flat_index[0].shape[0], step, x), inplace)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Array:
        """Fold the segments of an axis that begin at concrete indices and end where the next begins.

        If the next index is not larger, the result is the element at the index, as in NumPy.
        """
        x = moveaxis(self._operand("reduceat", a, dtype), axis, 0)
        starts = [int(i) for i in np.asarray(indices)]
        ends = [*starts[1:], x.shape[0]]
        alone = self(x[:1], x[:1]).dtype if x.shape[0] else x.dtype
        folds = [self._fold(x[i:j]) if i + 1 < j else x[i].astype(alone) for i, j in zip(starts, ends, strict=True)]
        return moveaxis(stack(folds), 0, axis)

    def _operand(self, method: str, a: Any, dtype: Any) -> Array:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(message(f"{self!r}.{method}{here()} is for functions of two arguments and one result"))
        x = array_of(method, a)
        return x if dtype is None else x.astype(dtype)


def _in_front(x: Array, axes: tuple[int, ...]) -> Array:
    """Move the elements along some axes, in row-major order, to one first axis."""
    x = moveaxis(x, axes, tuple(range(len(axes))))
    return reshape(x, (shape.size(x.shape[: len(axes)]), *x.shape[len(axes) :]))


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make an elementwise function of arrays from a function of scalars.

    func: of nin scalars, returns nout scalars; identity: the start value of `reduce`. The result has the methods
    `reduce`, `accumulate`, `outer`, `at`, `reduceat`. Shapes broadcast; func's results give the dtypes.

    >>> tnp.frompyfunc(lambda x, y: x * y % 10, nin=2, nout=1).accumulate(tnp.asarray([3, 4, 5, 7]))
    Array([3, 2, 0, 0], i64)
    """
    return ufunc(func, nin, nout, identity=identity)


def of_numpys(function: Callable[..., Any], name: str) -> ufunc:
    """Make a ufunc from a function of two arrays, with the identity of NumPy's ufunc of that name."""
    found = ufunc(function, 2, 1, identity=getattr(np, name).identity)
    found._mapped, found.__name__, found._fold = function, name, function.reduce  # type: ignore[attr-defined]
    return found


def update(method: str, a: Any, indices: Any, b: Any, *, inplace: bool = True) -> Array:
    """Apply `at` of a function that is a method of `x.at[i]`."""
    return written("at", a, getattr(array_of("at", a).at[indices], method)(b), inplace)


set_method_boundaries(ufunc)
