"""Mistakes with indices, shapes and axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, jit


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_an_index_out_of_bounds(run: Any) -> None:
    fails(
        errors.OutOfBoundsError,
        lambda: run(lambda x, i: x[i])(X, 10),  # here
        "index 10 is out of bounds for axis 0 with size 3, at @here\n"
        '  help: index within bounds, or say what to do beyond them: x.at[i].get(mode="clip"), '
        'x.at[i].set(v, mode="drop")',
    )


def test_indices_that_are_none() -> None:
    fails(
        errors.IndexingError,
        lambda: X[1.0],  # here
        "indexing at @here: an index is an integer, a slice, an array of integers or bools, None or ...\n"
        "  got float: 1.0\n  help: cast it with int(...)",
    )


def test_too_many_indices() -> None:
    fails(
        errors.OutOfBoundsError,
        lambda: X[0, 1],  # here
        "indexing at @here: too many indices\n  got 2 for an array of shape [3]\n"
        "  help: one index an axis; None and ... do not count",
    )


def test_matrices_that_do_not_fit() -> None:
    w = tnp.ones((4, 2))
    fails(
        errors.ShapeError,
        lambda: X @ w,  # here
        "matmul at @here: the last axis of the first and the second last of the second must have equal sizes\n"
        "  got f64[3] and f64[4,2]\n  help: transpose one of them, or see tensordot and einsum for other axes",
    )


@pytest.mark.parametrize("kind", [TypeError, ValueError])
@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_an_error_of_shapes_is_caught_by_numpy_s_kind_and_by_jax_s(run: Any, kind: type[Exception]) -> None:
    for wrong in (lambda x: x + tnp.ones(4), lambda x: tnp.sum(x, axis=2), lambda x: np.reshape(x, (2, 2))):
        with pytest.raises(kind) as caught:
            run(wrong)(X)
        assert isinstance(caught.value, errors.ShapeError)


def test_shapes_that_do_not_broadcast() -> None:
    fails(
        errors.ShapeError,
        lambda: X + np.ones(4),  # here
        "add at @here: shapes [3], [4] do not broadcast together\n  axis -1 has sizes 3 and 4\n"
        "  help: sizes must be equal, or one of them 1; reshape or slice the operands",
    )


def test_concatenating_different_shapes() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.concatenate([X, tnp.ones((2, 2))]),  # here
        "concatenate at @here: shapes must agree except along axis 0\n  got f64[3], f64[2,2]\n"
        "  help: reshape, pad or slice the operands",
    )


def test_concatenating_without_a_list() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.concatenate(X, X),  # here
        "concatenate at @here: an array without axes cannot be joined\n  got f64[], f64[], f64[]\n"
        "  help: the arrays go together in a list, concatenate([a, b]); stack joins along a new axis",
    )


def test_reshaping_to_another_size() -> None:
    fails(
        errors.ShapeError,
        lambda: X.reshape(2, 2),  # here
        "reshape at @here: a reshape keeps the number of elements\n  got f64[3], 3 elements, to [2,2], 4\n"
        "  help: pad or slice the operand, or correct the sizes",
    )


def test_an_axis_that_is_not_there() -> None:
    fails(
        errors.AxisError,
        lambda: X.sum(axis=1),  # here
        "sum at @here: axis 1 is out of range for 1 axes\n  help: axes run from -1 to 0",
    )


def test_an_axis_that_is_no_integer() -> None:
    fails(
        errors.ArgumentError,
        lambda: X.sum(axis=0.0),  # here
        "sum at @here: an axis is an integer\n  got 0.0\n  help: axes run from -1 to 0",
    )


def test_sizes_that_are_not_in_a_tuple() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(2, 3),  # here
        "zeros at @here: expected a dtype\n  got 3\n  help: several sizes or elements go together, as in zeros((2, 3))",
    )
