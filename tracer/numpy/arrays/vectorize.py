"""`vectorize` and `apply_along_axis`: functions of scalars or subarrays, applied to whole arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from tracer.errors import ArgumentError, ShapeError, TracedValueError, message
from tracer.ir import shape
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, broadcast, dtype_of_argument
from tracer.numpy.core.dtypes import astype
from tracer.numpy.shapes.joining import stack
from tracer.numpy.shapes.manipulation import moveaxis, reshape
from tracer.primitives.base.broadcasting import axis_of
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.transforms.vectorize import vmap

Core = tuple[str, ...]
_GROUP = r"\(\s*((?:\w+\s*(?:,\s*\w+\s*)*)?)\)"


def _parsed(signature: str) -> tuple[list[Core], list[Core]]:
    """Return the core dimensions of arguments and results of a signature such as "(m,n),(n)->(m)"."""
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"(?:{_GROUP}(?:,{_GROUP})*)?->{_GROUP}(?:,{_GROUP})*", text):
        raise ArgumentError(
            message(f"vectorize{here()}: invalid signature {signature!r}", help='such as "(m,n),(n)->(m)"')
        )
    sides = [
        [tuple(filter(None, group.split(","))) for group in re.findall(r"\(([^()]*)\)", side)]
        for side in text.split("->")
    ]
    return sides[0], sides[1]


def vectorize(
    pyfunc: Callable[..., Any] | None = None, otypes: Any = None, doc: str | None = None, excluded: Any = frozenset(),
    cache: bool = False, signature: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that maps `pyfunc` over the leading axes of its arguments, which broadcast together.

    pyfunc: of scalars [], or of arrays with the core dimensions that `signature`, as "(m,n),(n)->(m)", names; without
    it, a decorator is returned. otypes: the results' dtypes, a list or a string of NumPy's codes, by default the dtypes
    that pyfunc returns. doc: the docstring of the new function. excluded: positions and names of arguments that are
    passed unchanged. cache: ignored. All calls are one batched computation. A function that needs concrete values, as
    in `if`, is called for one element after the other. Raises ShapeError for shapes that do not fit, ArgumentError if
    otypes has another number of results.

    >>> tnp.vectorize(lambda v, w: (v * w).sum(), signature="(n),(n)->()")(tnp.ones((2, 3)), tnp.arange(3.0))
    Array([3., 3.], f64)
    """
    if pyfunc is None:
        given = {"otypes": otypes, "doc": doc, "excluded": excluded, "cache": cache, "signature": signature}
        return partial(vectorize, **given)
    mapped = _mapped(pyfunc, frozenset(excluded or ()), signature, _dtypes_named(otypes))
    if doc is not None:
        mapped.__doc__ = doc
    return mapped


def _mapped(
    pyfunc: Callable[..., Any], left_out: frozenset[Any], signature: str | None, otypes: list[DType] | None
) -> Callable[..., Any]:
    cores = None if signature is None else _parsed(signature)

    @wraps(pyfunc)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        named = {k: v for k, v in kwargs.items() if k not in left_out}
        if named and cores is not None:
            raise ArgumentError(message(f"vectorize{here()}: arguments with a signature are positional"))
        positions = [i for i in range(len(args)) if i not in left_out]
        arrays = [array_of("vectorize", args[i]) for i in positions]
        arrays += [array_of("vectorize", v) for v in named.values()]
        wanted = [()] * len(arrays) if cores is None else cores[0]
        if len(wanted) != len(arrays):
            raise ArgumentError(
                message(f"vectorize{here()}: {signature} takes {len(wanted)} arguments", f"got {len(arrays)}")
            )
        _check_sizes(arrays, wanted)

        def call(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(positions, values, strict=False):
                full[i] = value
            rest = dict(zip(named, values[len(positions) :], strict=True))
            return pyfunc(*full, **{**kwargs, **rest})

        lead = [x.shape[: x.ndim - len(core)] for x, core in zip(arrays, wanted, strict=True)]
        sizes = shape.broadcast(*lead, operation=f"vectorize{here()}")
        if not sizes:
            return _of_dtypes(call(*arrays), otypes)
        flat = shape.size(sizes)
        rows = [
            reshape(broadcast(x, (*sizes, *x.shape[len(own) :])), (flat, *x.shape[len(own) :]))
            for x, own in zip(arrays, lead, strict=True)
        ]
        found = trees.tree_map(lambda y: reshape(y, (*sizes, *y.shape[1:])), on_rows(call, rows))
        return _of_dtypes(found, otypes)

    return mapped


def _dtypes_named(otypes: Any) -> list[DType] | None:
    if otypes is None:
        return None
    if not isinstance(otypes, str | list | tuple):
        raise ArgumentError(
            message(
                f"vectorize{here()}: otypes must be a list of dtypes, or a string of NumPy's codes",
                f"got {otypes!r}",
                help=f"otypes=[{getattr(otypes, '__name__', otypes)}]",
            )
        )
    return [dtype_of_argument("vectorize", dtype) for dtype in otypes]


def _of_dtypes(results: Any, wanted: list[DType] | None) -> Any:
    if wanted is None:
        return results
    leaves, tree = trees.flatten(results)
    if len(leaves) != len(wanted):
        raise ArgumentError(
            message(
                f"vectorize{here()}: otypes must have one dtype for each result", f"got {len(wanted)} for {len(leaves)}"
            )
        )
    return trees.unflatten(tree, [astype(x, dtype) for x, dtype in zip(leaves, wanted, strict=True)])


def on_rows(function: Callable[..., Any], rows: list[Array]) -> Any:
    """Apply a function to every row of arrays: batched, or row by row if it needs concrete values."""
    try:
        return vmap(function)(*rows)
    except TracedValueError:
        if state.staging is not None or not rows[0].shape[0]:
            raise
    found = [trees.flatten(function(*(x[i] for x in rows))) for i in range(rows[0].shape[0])]
    columns = zip(*(leaves for leaves, _ in found), strict=True)
    return trees.unflatten(found[0][1], [stack(list(column)) for column in columns])


def _check_sizes(arrays: list[Array], cores: Any) -> None:
    """Raise ShapeError unless core dimensions of one name have one size."""
    found: dict[str, int] = {}
    for x, core in zip(arrays, cores, strict=True):
        if x.ndim < len(core):
            raise ShapeError(
                message(f"vectorize{here()}: the signature has {len(core)} core dimensions", f"got {x.type}")
            )
        for name, n in zip(core, x.shape[x.ndim - len(core) :], strict=True):
            if found.setdefault(name, n) != n:
                raise ShapeError(message(f"vectorize{here()}: dimension {name} has sizes {found[name]} and {n}"))


def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    """Apply a function of vectors to every vector along an axis.

    func1d: of a vector [n], and of args and kwargs; axis: of the vectors; arr: [*s]. Returns
    [..., *shape of a result, ...] in place of the axis, in func1d's dtype. The function is traced once, and run on all
    vectors together.

    >>> tnp.apply_along_axis(lambda v: v[::-1], 0, tnp.asarray([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], i64)
    """
    x = array_of("apply_along_axis", arr)
    along = axis_of("apply_along_axis", axis, x.ndim)
    rows = moveaxis(x, along, -1)
    lead = rows.shape[:-1]
    if not lead:
        return func1d(rows, *args, **kwargs)
    flat = rows.reshape(shape.size(lead), rows.shape[-1])
    results = on_rows(lambda v: func1d(v, *args, **kwargs), [flat])
    shaped = results.reshape(*lead, *results.shape[1:])
    return moveaxis(shaped, tuple(range(len(lead), shaped.ndim)), tuple(range(along, along + shaped.ndim - len(lead))))
