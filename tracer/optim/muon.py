"""Muon: momentum of matrices, made orthogonal by Newton-Schulz iterations; other arrays go by AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import optree

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.lax import rsqrt
from tracer.optim.adam_optimizers import adamw
from tracer.optim.adding import add_decayed_weights
from tracer.optim.combining import chained, partition
from tracer.optim.scalars import (
    Dtypes,
    at,
    average,
    correction,
    count,
    increment,
    moment_like,
    wide,
)
from tracer.optim.scaling import descent
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    init_leaves,
    map_leaves,
    no_state,
    transformation,
    update_leaves,
)
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here

STANDARD = (3.4445, -4.775, 2.0315)
PRESETS = {
    "standard": STANDARD,
    # of Dion's source: Ahn et al. 2025, arXiv:2504.05295
    "dion": (
        (4.0848, -6.8946, 2.927), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
}  # fmt: skip
KINDS = ("frobenius", "spectral", "aol", "schatten")


class MuonDimensionNumbers(NamedTuple):
    """Axes by which an array is a matrix for `muon`: input axes, which products sum over, and output axes.

    >>> tracer.optim.MuonDimensionNumbers(reduction_axis=(0, 1), output_axis=2)
    MuonDimensionNumbers(reduction_axis=(0, 1), output_axis=2)
    """

    reduction_axis: Sequence[int] | int = 0
    output_axis: Sequence[int] | int = 1


class MuonState(NamedTuple):
    """State of `scale_by_muon`: the count, int32, the momentum, and the coefficients of the iteration, float64.

    >>> tracer.optim.scale_by_muon().init(tnp.zeros((1, 2))).mu
    Array([[0., 0.]], f64)
    """

    count: Any
    mu: Any
    ns_coeffs: Any


def _is_numbers(x: Any) -> bool:
    return x is None or isinstance(x, MuonDimensionNumbers)


def _resolved(numbers: Any, updates: Any) -> Any:
    """Return the dimension numbers of each leaf, as a tuple of tuples of axes below the structure of updates."""
    found = numbers(updates) if callable(numbers) and not _is_numbers(numbers) else numbers
    found = MuonDimensionNumbers() if found is None else found
    return _spread(found, updates, lambda each: each)


def _spread(spec: Any, tree: Any, word: Callable[[Any], Any]) -> Any:
    """Return the tree with a word for its dimension numbers, or None, at each leaf."""
    found, structure = optree.tree_flatten(spec, _is_numbers, none_is_leaf=True, namespace=trees.NAMESPACE)
    branches = structure.flatten_up_to(tree)
    rows = [[word(each)] * len(trees.flatten(branch)[0]) for each, branch in zip(found, branches, strict=True)]
    return trees.unflatten(trees.flatten(tree)[1], [each for row in rows for each in row])


def _axes(numbers: MuonDimensionNumbers, x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    given = [(axes,) if isinstance(axes, int) else tuple(axes) for axes in numbers]
    rows, columns = (tuple(axis % x.ndim for axis in axes) for axes in given)
    if x.ndim < 2 or set(rows) & set(columns):
        raise ShapeError(
            message(
                f"muon{here()}: the array is no matrix by its dimension numbers",
                f"got {x.type} with {numbers}",
                help="reduction_axis and output_axis name different axes; adamw takes vectors",
            )
        )
    return rows, columns


def orthogonalized(
    x: Array, coefficients: Array, steps: int, kind: str, eps: Any, numbers: MuonDimensionNumbers
) -> Array:
    """Return nearly U V^T of the singular value decomposition of a matrix, or of each of a stack.

    numbers: the axes of the matrix; other axes stack. kind: the scaling before the iteration. Jordan et al. 2024.
    """
    rows, columns = _axes(numbers, x)
    order = (*(i for i in range(x.ndim) if i not in rows + columns), *rows, *columns)
    moved = tnp.transpose(x, order)
    sizes = [math.prod(x.shape[i] for i in axes) for axes in (rows, columns)]
    matrix = tnp.reshape(moved, (-1, *sizes)) if x.ndim > 2 else moved
    tall = sizes[0] > sizes[1]
    matrix = _conjugate(matrix, False) if tall else matrix
    if kind == "frobenius":
        matrix = matrix / (tnp.sqrt(tnp.sum(abs(matrix) ** 2, axis=(-2, -1), keepdims=True)) + at(eps, matrix))
    elif kind == "spectral":
        matrix = matrix / (tnp.linalg.norm(matrix, ord=2, axis=(-2, -1), keepdims=True) + at(eps, matrix))
    table = coefficients.astype(matrix.real.dtype)
    for step in range(steps if table.ndim == 1 else len(table)):
        a, b, c = (table[i] if table.ndim == 1 else table[step, i] for i in range(3))
        square = matrix @ _conjugate(matrix, kind != "schatten")
        if step == 0 and kind in ("aol", "schatten"):
            matrix, square = _rescaled(matrix, square, kind, eps)
        matrix = a * matrix + (b * square + (c * square) @ square) @ matrix
    matrix = _conjugate(matrix, False) if tall else matrix
    return tnp.transpose(tnp.reshape(matrix, moved.shape), tuple(order.index(i) for i in range(x.ndim)))


def _conjugate(matrix: Array, conjugated: bool) -> Array:
    turned = tnp.swapaxes(matrix, -1, -2)
    return tnp.conj(turned) if conjugated and matrix.dtype.kind == "c" else turned


def _rescaled(matrix: Array, square: Array, kind: str, eps: Any) -> tuple[Array, Array]:
    if kind == "aol":
        size = tnp.sum(abs(square), axis=-1, keepdims=True)
    else:
        size = tnp.sqrt(tnp.sum(abs(square) ** 2, axis=(-2, -1), keepdims=True))
    factor = rsqrt(tnp.maximum(size, at(eps, size)))
    return matrix * factor, square * factor * (_conjugate(factor, False) if kind == "aol" else factor)


def scale_by_muon(
    ns_coeffs: Any = STANDARD, ns_steps: int = 5, beta: Any = 0.95, eps: Any = 1e-8, mu_dtype: Any = None, *,
    nesterov: bool = True, adaptive: bool = False, preconditioning: str = "frobenius",
    weight_dimension_numbers: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of Muon: the corrected momentum of a matrix, made orthogonal.

    ns_coeffs: three coefficients of an odd polynomial, or three for each step. ns_steps: count of steps. beta: decay of
    the momentum. eps: added to the norm. mu_dtype: dtype of the momentum. nesterov: whether it looks one step ahead.
    adaptive: whether the result is scaled by its product with the momentum. preconditioning: the scaling before the
    steps, "frobenius", "spectral", "aol" or "schatten". weight_dimension_numbers: `MuonDimensionNumbers`, a tree of
    them, or a function from updates to one; by default the two axes of matrices. Jordan et al. 2024.

    >>> tx = tracer.optim.scale_by_muon()
    >>> tx.update(tnp.asarray([[2.0, 0.0], [0.0, 1.0]]), tx.init(tnp.zeros((2, 2))))[0].round(2)
    Array([[0.69, 0.  ],
           [0.  , 1.11]], f64)
    """
    table = _coefficients(ns_coeffs, ns_steps)
    if preconditioning not in KINDS:
        raise ArgumentError(message(f"muon{here()}: preconditioning is one of {KINDS}", f"got {preconditioning!r}"))

    def init(params: Any) -> MuonState:
        mu = init_leaves(lambda p: moment_like(p, mu_dtype), params)
        return MuonState(count(), mu, tnp.asarray(table, "float64"))

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        return number, correction(beta, number, among), correction(beta, increment(number), among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, now, ahead = scalars

        def rule(g: Any, m: Any, numbers: Any) -> Any:
            g, decay = wide(g), at(beta, g)
            mean = average(g, wide(m), decay)
            u = decay * (mean * ahead.of(g)) + (1 - decay) * (g * now.of(g)) if nesterov else mean * now.of(g)
            flat = orthogonalized(u, state.ns_coeffs, ns_steps, preconditioning, eps, numbers)
            return tnp.sum(tnp.conj(u) * flat) * flat if adaptive else flat, mean

        numbers = _resolved(weight_dimension_numbers, updates)
        found, mu = update_leaves(rule, updates, (state.mu,), numbers, loose=True)
        return found, MuonState(number, mu, state.ns_coeffs)

    return transformation("scale_by_muon", init, apply, scalars=scalars, kind=MuonState)


def _coefficients(given: Any, steps: int) -> Any:
    table = PRESETS.get(given) if isinstance(given, str) else given
    shape = tnp.shape(tnp.asarray(table)) if table is not None else ()
    if not shape or shape[-1] != 3 or len(shape) > 2 or (len(shape) == 2 and shape[0] > steps):
        raise ArgumentError(
            message(
                f"muon{here()}: ns_coeffs are three numbers, or three for each of at most ns_steps={steps} steps",
                f"got {given!r}",
                help=f"or one of {', '.join(map(repr, PRESETS))}",
            )
        )
    return tnp.asarray(table)[-steps:] if len(shape) == 2 else table


def scale_by_shape(
    weight_dimension_numbers: Any = None, consistent_rms: Any = None
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the scaling of orthogonal updates by their shapes: √max(1, outputs / inputs).

    weight_dimension_numbers: as of `scale_by_muon`. consistent_rms: a number c scales by c √max(inputs, outputs), which
    has the sizes of Adam's updates at 0.2. Bernstein 2025; Liu et al. 2025, arXiv:2502.16982.

    >>> tracer.optim.scale_by_shape().update(tnp.ones((1, 4)), tracer.optim.EmptyState())[0]
    Array([[2., 2., 2., 2.]], f64)
    """

    def rule(u: Any, numbers: Any) -> Any:
        inputs, outputs = (math.prod(u.shape[i] for i in axes) for axes in _axes(numbers, u))
        if consistent_rms is None:
            return math.sqrt(max(1, outputs / max(inputs, 1))) * u
        return math.sqrt(max(inputs, outputs)) * at(consistent_rms, u) * u

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        return map_leaves(rule, updates, _resolved(weight_dimension_numbers, updates), loose=True), state

    return transformation("scale_by_shape", no_state, apply)


def muon(
    learning_rate: Any, ns_coeffs: Any = STANDARD, ns_steps: int = 5, beta: Any = 0.95, eps: Any = 1e-8,
    weight_decay: Any = 0.0, weight_decay_mask: Any = None, mu_dtype: Any = None, *, nesterov: bool = True,
    adaptive: bool = False, preconditioning: str = "frobenius", adam_b1: Any = 0.9, adam_b2: Any = 0.999,
    adam_eps_root: Any = 0.0, adam_weight_decay: Any = 0.0, adam_learning_rate: Any = None,
    muon_weight_dimension_numbers: Any | Callable[[Any], Any] = None, consistent_rms: Any = None, mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Muon for matrices, and AdamW for other arrays.

    learning_rate: a number or schedule; adam_learning_rate: AdamW's, by default equal. weight_decay: of
    matrices; weight_decay_mask, mask: which of them, by either name. adam_b1, adam_b2, adam_eps_root,
    adam_weight_decay: of `adamw`. muon_weight_dimension_numbers: a tree of `MuonDimensionNumbers`, None where AdamW
    is meant. The other arguments are as in `scale_by_muon` and `scale_by_shape`. Jordan et al. 2024.

    >>> tx = tracer.optim.muon(0.1)
    >>> params = {"w": tnp.asarray([[2.0, 0.0], [0.0, 1.0]]), "b": tnp.asarray([3.0])}
    >>> tx.update(params, tx.init(params), params)[0]["b"].round(6)
    Array([-0.147368], f64)
    """
    numbers = muon_weight_dimension_numbers

    def labels(params: Any) -> Any:
        if numbers is None:
            return trees.tree_map(lambda x: "muon" if tnp.ndim(x) == 2 else "adam", params)
        found = numbers(params) if callable(numbers) and not _is_numbers(numbers) else numbers
        return _spread(found, params, lambda each: "adam" if each is None else "muon")

    rule = scale_by_muon(
        ns_coeffs, ns_steps, beta, eps, mu_dtype, nesterov=nesterov, adaptive=adaptive,
        preconditioning=preconditioning, weight_dimension_numbers=numbers,
    )  # fmt: skip
    matrices = chained(
        "muon",
        rule,
        scale_by_shape(numbers, consistent_rms),
        add_decayed_weights(weight_decay, weight_decay_mask, weight_decay_mask=mask),
        descent("muon", learning_rate),
    )
    others = adamw(
        learning_rate if adam_learning_rate is None else adam_learning_rate, adam_b1, adam_b2, eps, adam_eps_root,
        mu_dtype, adam_weight_decay, nesterov=nesterov,
    )  # fmt: skip
    return partition({"muon": matrices, "adam": others}, labels)
