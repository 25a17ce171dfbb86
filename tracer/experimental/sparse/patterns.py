"""Sparse Jacobians and Hessians of dense functions: their patterns, and their values by coloured products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.experimental.sparse.bcoo import BCOO
from tracer.experimental.sparse.rearranging import bcoo_update_layout
from tracer.ir.shape import size as size_of
from tracer.ir.types import ArrayType, size
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.trace.tracebacks import wrapping
from tracer.transforms.functions import check_callable
from tracer.transforms.gradients import gradient_of
from tracer.transforms.sparsity.compressed import (
    Compressed,
    Pattern,
    Traced,
    hessian_products,
    jacobian_products,
    pattern_of,
    recorded,
    traced,
)
from tracer.tree_util import tree_flatten

Function = Callable[..., Any]
Argnums = int | Sequence[int]

_MODES = ("auto", "forward", "reverse")


def jacobian_sparsity(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """Return a function that finds where the Jacobian may be other than zero, for any values of the arguments.

    The result has the structure of `jacfwd`'s: each leaf is a BCOO of True, [*output, *input]. Nothing is computed but
    the pattern: arguments may be `ShapeDtypeStruct`s. Each element carries the set of inputs that it depends on through
    the derivative of `fun`, which is traced. Captured arrays count with their values: known indices are exact. So are
    steps, slices, sums and products with known matrices. An index or a branch that is not concrete may lead anywhere.

    fun, argnums, has_aux, holomorphic: as in `jacfwd`. Raises ArgumentError for a pattern of over 2**25 entries.

    >>> difference = lambda x: x[1:] - x[:-1]
    >>> tracer.jacobian_sparsity(difference)(tnp.zeros(3)).todense()
    Array([[ True,  True, False],
           [False,  True,  True]], bool)
    """
    check_callable(fun, "jacobian_sparsity")

    @wrapping(fun)
    def sparsity(*args: Any, **kwargs: Any) -> Any:
        args = trees.tree_map(_stand_in, args)
        t = traced(fun, "jacobian_sparsity", argnums, args, kwargs, has_aux=has_aux, holomorphic=holomorphic)
        return _blocks(t, pattern_of(t), None, isinstance(argnums, int))

    return sparsity


def sparse_jacobian(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False, *, pattern: Any = None,
    mode: str = "auto",
) -> Function:  # fmt: skip
    """Return the Jacobian as a sparse array: as `jacfwd`, with one product for each group of columns that are apart.

    The result has the structure of `jacfwd`'s. Each leaf is a BCOO [*output, *input], sorted and without duplicates,
    whose entries are the pattern's. A tridiagonal Jacobian takes three products, of any size. The pattern is found
    while tracing. Put the function under `jit`, or give `pattern`, if it is called more than once.

    pattern: a result of `jacobian_sparsity`, or boolean or SciPy's sparse arrays in its place; by default found from
    `fun`. Elements outside of it must be zero, and are not looked at. mode: "forward" groups columns and multiplies by
    tangents, "reverse" groups rows and multiplies by cotangents, "auto" takes the one with fewer products. fun,
    argnums, has_aux, holomorphic: as in `jacfwd`; `fun` is traced, as by `jit`. Raises ArgumentError for another mode,
    or a pattern of another structure or shape.

    Curtis, Powell & Reid 1974, IMA J. Appl. Math. 13(1); Gebremedhin, Manne & Pothen 2005, SIAM Review 47(4).

    >>> cube = lambda x: x ** 3 - tnp.roll(x, 1)
    >>> tracer.sparse_jacobian(cube)(tnp.asarray([1.0, 2.0, 3.0]))
    BCOO(f64[3, 3], nse=6)
    """
    check_callable(fun, "sparse_jacobian")
    if mode not in _MODES:
        text = f"sparse_jacobian{here()}: mode is one of {', '.join(map(repr, _MODES))}"
        raise ArgumentError(message(text, f"got {mode!r}"))

    @wrapping(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        t = traced(fun, "sparse_jacobian", argnums, args, kwargs, has_aux=has_aux, holomorphic=holomorphic)
        single = isinstance(argnums, int)
        found = pattern_of(t) if pattern is None else _given(t, pattern, single)
        run = recorded(t)
        result = _blocks(t, found, jacobian_products(run, found, mode), single)
        return (result, run.aux) if has_aux else result

    return jacobian


def hessian_sparsity(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Return a function that finds where the Hessian of a scalar function may be other than zero.

    As `jacobian_sparsity` of the gradient, made symmetric. The result has the structure of `hessian`'s. fun, argnums,
    has_aux: as in `hessian`.

    >>> tracer.hessian_sparsity(lambda x: (x[1:] * x[:-1]).sum())(tnp.zeros(3)).todense()
    Array([[False,  True, False],
           [ True, False,  True],
           [False,  True, False]], bool)
    """
    check_callable(fun, "hessian_sparsity")
    gradient = gradient_of("hessian_sparsity", fun, argnums, has_aux)

    @wrapping(fun)
    def sparsity(*args: Any, **kwargs: Any) -> Any:
        args = trees.tree_map(_stand_in, args)
        t = traced(gradient, "hessian_sparsity", argnums, args, kwargs, has_aux=has_aux, holomorphic=False, of=fun)
        return _blocks(t, pattern_of(t).across, None, isinstance(argnums, int))

    return sparsity


def sparse_hessian(fun: Function, argnums: Argnums = 0, has_aux: bool = False, *, pattern: Any = None) -> Function:
    """Return the Hessian of a scalar function as a sparse array: as `hessian`, with few products.

    Each product with the Hessian is an `hvp`, one for each colour of a star colouring. It reads each entry from one
    side of the diagonal or the other. A band takes few products, an arrow with a dense row two. The Hessian must be
    symmetric, which rules of `custom_jvp` and `stop_gradient` may break.

    pattern: a result of `hessian_sparsity`, or boolean or SciPy's sparse arrays in its place. fun, argnums, has_aux:
    as in `hessian`; `fun` is traced, as by `jit`. Raises as `sparse_jacobian`.

    Gebremedhin, Tarafdar, Pothen & Walther 2009, INFORMS J. Computing 21(2).

    >>> tracer.sparse_hessian(lambda x: (x ** 3).sum())(tnp.asarray([1.0, 2.0])).todense()
    Array([[ 6.,  0.],
           [ 0., 12.]], f64)
    """
    check_callable(fun, "sparse_hessian")
    gradient = gradient_of("sparse_hessian", fun, argnums, has_aux)

    @wrapping(fun)
    def hessian(*args: Any, **kwargs: Any) -> Any:
        t = traced(gradient, "sparse_hessian", argnums, args, kwargs, has_aux=has_aux, holomorphic=False, of=fun)
        single = isinstance(argnums, int)
        found = (pattern_of(t) if pattern is None else _given(t, pattern, single)).across
        run = recorded(t)
        result = _blocks(t, found, hessian_products(run, found), single)
        return (result, run.aux) if has_aux else result

    return hessian


def _stand_in(leaf: Any) -> Any:
    """Return zeros for a shape and dtype; other leaves as they are."""
    return tnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, ShapeDtypeStruct) else leaf


def _blocks(t: Traced, pattern: Pattern, compressed: Compressed | None, single: bool) -> Any:
    """Return the tree of blocks, of True without products."""
    edges = np.cumsum([0, *map(size, t.inputs)])
    start, rows = 0, []
    for output in t.outputs:
        stop = start + size(output)
        first, last = np.searchsorted(pattern.rows, [start, stop])
        owners = np.searchsorted(edges, pattern.columns[first:last], side="right") - 1
        leaves = []
        for number, type in enumerate(t.inputs):
            chosen = first + np.flatnonzero(owners == number)
            place = pattern.rows[chosen] - start, pattern.columns[chosen] - edges[number]
            data = np.ones(len(chosen), bool) if compressed is None else _values(compressed, chosen, output)
            leaves.append(_block(data, place, (output.shape, type.shape)))
        entry = trees.unflatten(t.chosen.structure, leaves)
        rows.append(entry[0] if single else entry)
        start = stop
    return trees.unflatten(t.holder.structure, rows)


def _values(compressed: Compressed, chosen: Any, output: ArrayType) -> Any:
    """Return the entries that are chosen, in the output's dtype."""
    if compressed.products is None or not len(chosen):
        return tnp.zeros(len(chosen), output.dtype)
    width = compressed.products.shape[1]
    at = compressed.lanes[chosen] * width + compressed.places[chosen]
    at = at.astype(np.int32) if compressed.products.size < 2**31 else at
    flat = compressed.products.reshape(-1)
    return flat.at[at].get(mode="promise_in_bounds").astype(output.dtype)


def _block(data: Any, place: tuple[Any, Any], shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> BCOO:
    columns = [*_unravelled(place[0], shapes[0]), *_unravelled(place[1], shapes[1])]
    shape = (*shapes[0], *shapes[1])
    kind = np.int32 if max(shape, default=0) < 2**31 else np.int64
    indices = np.stack(columns, axis=1).astype(kind) if columns else np.zeros((len(data), 0), kind)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def _unravelled(flat: Any, shape: tuple[int, ...]) -> Sequence[Any]:
    return np.unravel_index(flat, shape) if size_of(shape) and shape else [flat] * len(shape)


# Patterns that are given


def _given(t: Traced, pattern: Any, single: bool) -> Pattern:
    """Return the pattern that a tree of blocks says."""
    leaves, structure = tree_flatten(pattern, is_leaf=_is_block)
    inner = trees.unflatten(t.chosen.structure, [0] * len(t.inputs))
    wanted = tree_flatten(trees.unflatten(t.holder.structure, [inner[0] if single else inner] * len(t.outputs)))[1]
    if structure != wanted:
        name = "hessian_sparsity" if "hessian" in t.caller else "jacobian_sparsity"
        raise ArgumentError(
            message(
                f"{t.caller} of {t.chosen.name}{here()}: the pattern has another structure than the result",
                f"got {trees.structure_text(structure)}, expected {trees.structure_text(wanted)}",
                help=f"pass the result of tracer.{name}(f)(...)",
            )
        )
    blocks = iter(leaves)
    width, start = sum(map(size, t.inputs)), 0
    keys = [np.zeros(0, np.int64)]
    for output in t.outputs:
        left = 0
        for type in t.inputs:
            rows, columns = np.divmod(_places(t, next(blocks), (*output.shape, *type.shape)), max(size(type), 1))
            keys.append((rows + start) * width + columns + left)
            left += size(type)
        start += size(output)
    rows, columns = np.divmod(np.unique(np.concatenate(keys)), max(width, 1))
    return Pattern(rows, columns, (start, width))


def _is_block(x: Any) -> bool:
    return isinstance(x, BCOO | Array | np.ndarray) or hasattr(x, "tocoo")


def _places(t: Traced, block: Any, shape: tuple[int, ...]) -> Any:
    """Return the places of a block's entries, in row-major order of its shape."""
    where = f"{t.caller} of {t.chosen.name}{here()}"
    if not _is_block(block) or tuple(block.shape) != shape:
        shown = getattr(block, "shape", type(block).__name__)
        raise ShapeError(message(f"{where}: a block of the pattern is [*output, *input]", f"got {shown} for {shape}"))
    if isinstance(block, BCOO):
        known = concrete_value(bcoo_update_layout(block, n_batch=0, n_dense=0).indices)
        if known is None:
            text = f"{where}: the pattern is known while tracing"
            raise ArgumentError(message(text, "got a traced one", help="let the function capture it"))
        inside = ((known >= 0) & (known < np.asarray(shape, np.int64))).all(1)
        columns, count = tuple(known[inside].T.astype(np.int64)), int(inside.sum())
    elif hasattr(block, "tocoo"):
        found = block.tocoo()
        columns, count = tuple(np.asarray(c).astype(np.int64) for c in found.coords), found.nnz
    else:
        known = concrete_value(block) if isinstance(block, Array) else block
        if known is None:
            text = f"{where}: the pattern is known while tracing"
            raise ArgumentError(message(text, "got a traced one", help="let the function capture it"))
        columns, count = np.nonzero(np.atleast_1d(known))[: len(shape)], int(np.count_nonzero(known))
    if not shape:
        return np.zeros(count, np.int64)
    return np.ravel_multi_index(columns, shape) if size_of(shape) else np.zeros(0, np.int64)
