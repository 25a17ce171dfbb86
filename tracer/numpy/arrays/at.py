"""`x.at[i]`, whose methods return copies of the array with the elements at an index updated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tracer.errors import MutationError, message
from tracer.lazy import LazyModule
from tracer.numpy.elementwise import arithmetic
from tracer.numpy.elementwise.powers import power
from tracer.numpy.shapes.indexing import get
from tracer.numpy.shapes.updates import ADD, MAX, MIN, MULTIPLY, SET, SUBTRACT, Update, updated, value_for
from tracer.primitives.base.broadcasting import full_like
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.source import here

if TYPE_CHECKING:
    from tracer.numpy.arrays import at_apply
else:
    at_apply = LazyModule("tracer.numpy.arrays.at_apply")

_taken = cached(get, named=False)
_new = object.__new__


class At:
    """Indexable view `x.at`: index it, then call an update. The array itself is unchanged.

    >>> tnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], f64)
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> AtIndex:
        found = _new(AtIndex)  # faster than `AtIndex(...)`
        found._array, found._index = self._array, index
        return found

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise MutationError(
            message(
                f"x.at[i] = v{here()}: arrays are values, and x.at makes updated copies",
                help="x = x.at[i].set(v), or x[i] = v",
            )
        )

    def __repr__(self) -> str:
        return f"At({self._array!r})"


class AtIndex:
    """Update of `x` at an index, as `x.at[i]`; its methods return a copy of x with changed elements at i.

    mode: for indices out of bounds: an error (None), "clip", "wrap", "fill" or "drop" (writes nothing),
    "promise_in_bounds". unique_indices: a promise that no index repeats. indices_are_sorted: ignored.
    wrap_negative_indices: whether negative indices count from the end; False puts them out of bounds.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array, self._index = array, index

    def __repr__(self) -> str:
        return f"AtIndex({self._array!r}, {self._index!r})"

    def _refuse(self, operator: str, method: str) -> NoReturn:
        raise MutationError(
            message(
                f"x.at[i] {operator} v{here()}: arrays are values, and x.at makes updated copies",
                help=f"x = x.at[i].{method}(v), or x[i] {operator} v",
            )
        )

    def __iadd__(self, value: Any) -> NoReturn:
        self._refuse("+=", "add")

    def __isub__(self, value: Any) -> NoReturn:
        self._refuse("-=", "subtract")

    def __imul__(self, value: Any) -> NoReturn:
        self._refuse("*=", "multiply")

    def __itruediv__(self, value: Any) -> NoReturn:
        self._refuse("/=", "divide")

    def __ipow__(self, value: Any) -> NoReturn:
        self._refuse("**=", "power")

    def _updated(self, values: Any, how: Update, mode: Any, unique_indices: bool, wrap: bool) -> Array:
        if mode is None and not unique_indices and wrap:
            return updated(self._array, self._index, values, how)
        return updated(self._array, self._index, values, how, mode=mode, unique_indices=unique_indices, wrap=wrap)

    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return x[i], with `mode`; `fill_value` replaces elements out of bounds in mode "fill", by default NaN.

        >>> tnp.arange(3).at[5].get(mode="fill", fill_value=-1)
        Array(-1, i64)
        """
        del indices_are_sorted
        return _taken(
            self._array, self._index, mode=mode, fill_value=fill_value, unique_indices=unique_indices,
            wrap=wrap_negative_indices,
        )  # fmt: skip

    def set(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with values written at i; the last value is kept at a repeated index.

        >>> tnp.zeros(3).at[1].set(7.0)
        Array([0., 7., 0.], f64)
        """
        del indices_are_sorted
        return self._updated(values, SET, mode, unique_indices, wrap_negative_indices)

    def add(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with values added at i, all of them at a repeated index.

        >>> tnp.zeros(3).at[tnp.asarray([1, 1])].add(1.0)
        Array([0., 2., 0.], f64)
        """
        del indices_are_sorted
        return self._updated(values, ADD, mode, unique_indices, wrap_negative_indices)

    def subtract(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with values subtracted at i, all of them at a repeated index.

        >>> tnp.ones(3).at[1:].subtract(1.0)
        Array([1., 0., 0.], f64)
        """
        del indices_are_sorted
        negated = arithmetic.negative(value_for(self._array, values, SUBTRACT))
        return updated(
            self._array, self._index, negated, SUBTRACT, mode=mode, unique_indices=unique_indices,
            wrap=wrap_negative_indices,
        )  # fmt: skip

    def multiply(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with the elements at i multiplied by values.

        >>> tnp.ones(3).at[:2].multiply(4.0)
        Array([4., 4., 1.], f64)
        """
        del indices_are_sorted
        return self._updated(values, MULTIPLY, mode, unique_indices, wrap_negative_indices)

    mul = multiply

    def divide(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with the elements at i divided by values; integers become floats.

        >>> tnp.ones(3).at[0].divide(4.0)
        Array([0.25, 1.  , 1.  ], f64)
        """
        del indices_are_sorted
        factors = self._factors("x.at[i].divide", values, mode, unique_indices, wrap_negative_indices)
        return arithmetic.divide(self._array, factors)

    def power(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with the elements at i raised to powers.

        >>> tnp.arange(3).at[1:].power(2)
        Array([0, 1, 4], i64)
        """
        del indices_are_sorted
        powers = self._factors("x.at[i].power", values, mode, unique_indices, wrap_negative_indices)
        return power(self._array, powers)

    def _factors(self, name: str, values: Any, mode: Any, unique_indices: bool, wrap: bool) -> Array:
        """Return an array of ones, multiplied by the values at i."""
        ones, how = full_like(self._array, 1), MULTIPLY._replace(name=name)
        return updated(ones, self._index, values, how, mode=mode, unique_indices=unique_indices, wrap=wrap)

    def min(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with the minimum of elements and values at i.

        >>> tnp.arange(3).at[:].min(1)
        Array([0, 1, 1], i64)
        """
        del indices_are_sorted
        return self._updated(values, MIN, mode, unique_indices, wrap_negative_indices)

    def max(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with the maximum of elements and values at i.

        >>> tnp.arange(3).at[:].max(1)
        Array([1, 1, 2], i64)
        """
        del indices_are_sorted
        return self._updated(values, MAX, mode, unique_indices, wrap_negative_indices)

    def apply(
        self, func: Callable[[Array], Any], *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:  # fmt: skip
        """Return a copy with an elementwise function applied to the elements at i, once for every repeated index.

        func: of an array, element by element; its result is cast to the array's dtype.

        >>> tnp.arange(3).at[1:].apply(lambda v: 10 * v)
        Array([ 0, 10, 20], i64)
        >>> tnp.arange(3).at[tnp.asarray([1, 1])].apply(lambda v: 10 * v)
        Array([  0, 100,   2], i64)
        """
        del indices_are_sorted
        return at_apply.applied(self._array, self._index, func, mode, unique_indices, wrap_negative_indices)
