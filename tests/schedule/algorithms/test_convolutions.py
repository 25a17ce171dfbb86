"""Convolutions by loops of their own: every form against the reference, at every width, out of order, and races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.running import agree, agree_program, call, interpreted, shared, staged
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.shapes import transpose
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.linalg.convolution import conv
from tracer.schedule.pipeline import schedule
from tracer.transforms.gradients import grad

RNG = np.random.default_rng(11)
FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "same": ((2, 3, 20, 20), (7, 3, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "a rest of features and positions": ((1, 2, 9, 37), (19, 2, 3, 3), {}),
    "strides": ((2, 3, 21, 33), (5, 3, 3, 3), {"strides": (2, 2), "padding": ((1, 1), (0, 2))}),
    "strides, dilations, negative padding": (
        (2, 3, 21, 33), (5, 3, 3, 4), {"strides": (2, 3), "padding": ((1, 2), (-1, 5)), "rhs_dilation": (2, 2)}
    ),
    "spread lhs": ((3, 8, 7, 9), (16, 8, 3, 3), {"padding": ((1, 2), (2, 2)), "lhs_dilation": (2, 2)}),
    "feature groups": ((2, 6, 11, 33), (8, 3, 3, 4), {"feature_groups": 2}),
    "batch groups": ((4, 6, 11, 33), (8, 6, 3, 4), {"batch_groups": 2, "padding": ((1, 0), (0, 1))}),
    "each feature by itself": ((1, 8, 24, 24), (8, 1, 3, 3), {"feature_groups": 8, "padding": ((1, 1), (1, 1))}),
    "one axis": ((2, 3, 100), (5, 3, 7), {"padding": ((3, 3),)}),
    "three axes": ((2, 3, 6, 8, 20), (5, 3, 3, 2, 3), {"strides": (1, 2, 1), "padding": ((1, 1),) * 3}),
    "bands of one row": ((1, 300, 3, 24), (2, 300, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "along the window": ((3, 4, 22, 22), (5, 4, 20, 20), {}),
    "along the window, by strides": ((3, 4, 24, 27), (5, 4, 20, 20), {"strides": (1, 2), "padding": ((0, 0), (1, 1))}),
    "along a dilated window": ((3, 4, 32, 37), (16, 4, 15, 15), {"rhs_dilation": (2, 2), "padding": ((0, 0), (1, 1))}),
    "along the window, in groups": ((4, 8, 16, 17), (16, 4, 15, 15), {"feature_groups": 2}),
    "along the window, in bands, for parts of the features": ((16, 2, 60, 59), (16, 2, 58, 57), {}),
    "along the window, several images at once": ((3, 8, 12, 14), (9, 8, 10, 12), {}),
    "along a window of one axis": ((3, 4, 102), (10, 4, 100), {}),
    "along the window, in groups of the batch": ((4, 4, 16, 17), (16, 4, 15, 15), {"batch_groups": 2}),
    "narrow rows": ((2, 3, 12, 9), (19, 3, 3, 3), {"padding": ((1, 1), (2, 0))}),
    "narrow rows, in bands": ((1, 5, 12, 12), (3, 5, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "narrow rows, by strides and dilations": (
        (4, 4, 13, 19), (6, 2, 2, 3), {"strides": (1, 2), "rhs_dilation": (2, 3), "padding": ((1, 2), (3, -1)),
                                       "feature_groups": 2}
    ),
    "narrow rows of three axes": ((2, 3, 4, 5, 9), (5, 3, 2, 3, 3), {"padding": ((1, 0), (1, 1), (1, 1))}),
    "very narrow rows": ((16, 16, 4, 4), (8, 16, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "narrow rows that have no room to adjoin": ((2, 200, 4, 12), (4, 200, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "along a narrow window": ((6, 20, 10, 11), (7, 20, 8, 9), {}),
    "along a narrow window, by strides": (
        (6, 20, 14, 15), (7, 20, 5, 9), {"strides": (2, 1), "rhs_dilation": (1, 2), "padding": ((1, 0), (0, 5))}
    ),
    "along a narrow window, in bands": ((4, 3, 302, 12), (9, 3, 300, 10), {}),
    "along a narrow window of three axes": ((4, 6, 5, 7, 8), (5, 6, 4, 5, 6), {}),
}  # fmt: skip


def convolution(name: str, dtype: str = "float64") -> tuple[Any, Any, Any]:
    """The convolution of a form, and its operands."""
    left, right, given = FORMS[name]
    rank = len(left) - 2
    params = {
        "strides": (1,) * rank, "padding": ((0, 0),) * rank, "lhs_dilation": (1,) * rank, "rhs_dilation": (1,) * rank,
        "preferred_element_type": np.dtype(dtype), **given,
    }  # fmt: skip
    x, y = (RNG.standard_normal(shape).astype(dtype) for shape in (left, right))
    return lambda a, b: conv(a, b, **params), x, y


def is_kept(function: Any, *arrays: Any) -> bool:
    """Whether a convolution is left after all passes."""
    return any(e.primitive.name == "conv" for e in optimize(staged(function, arrays)).equations)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_one_nest_and_agrees_with_the_reference(name: str) -> None:
    function, x, y = convolution(name)
    assert is_kept(function, x, y)
    agree(function, x, y)


@pytest.mark.parametrize("name", ["same", "strides", "along the window", "narrow rows", "along a narrow window"])
def test_bits_depend_on_neither_the_width_of_vectors_nor_who_computes_which_part(name: str) -> None:
    function, x, y = convolution(name, "float32")
    p = staged(function, [x, y])
    scheduled = schedule(optimize(p))
    first, *others = (call(scheduled, executable(scheduled.module, vector_bits=w), p, [x, y])[0] for w in WIDTHS)
    for other in others:
        np.testing.assert_array_equal(first.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize("name", ["feature groups", "along the window, in groups"])
def test_parts_may_come_in_any_order_and_do_not_meet(name: str) -> None:
    function, x, y = convolution(name)
    p = staged(function, [x[:1], y])
    agree_program(p, [x[:1], y], shared)
    agree_program(p, [x[:1], y], interpreted)


def test_operands_are_read_in_the_order_of_axes_in_which_they_lie() -> None:
    function, x, y = convolution("same")
    turned = lambda a, b: function(transpose(add(a, 1.0), (0, 3, 1, 2)), transpose(b, (3, 2, 0, 1)))  # noqa: E731
    given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(y.transpose(2, 3, 1, 0))
    agree(turned, *given)
    assert schedule(optimize(staged(turned, given))).module.arena == 0


def test_what_is_not_finite_stays_where_it_was() -> None:
    function, x, y = convolution("along the window")
    x[0, 1, 21, 21] = np.inf
    x[1, 0, 0, 0] = np.nan
    agree(function, x, y)


def test_narrow_rows_that_are_read_in_another_order_are_stored_first() -> None:
    function, x, y = convolution("along a narrow window")
    agree(lambda a, b: function(a, transpose(b, (3, 2, 0, 1))), x, np.ascontiguousarray(y.transpose(2, 3, 1, 0)))
    agree(lambda a, b: function(a, transpose(b, (1, 0, 2, 3))), x, np.ascontiguousarray(y.transpose(1, 0, 2, 3)))


@pytest.mark.parametrize("name", ["same", "strides", "each feature by itself", "narrow rows", "very narrow rows"])
def test_both_gradients_are_convolutions_too(name: str) -> None:
    function, x, y = convolution(name)
    loss = lambda a, b: reduce_sum(function(a, b) * function(a, b), (0, 1, 2, 3))  # noqa: E731
    both = grad(loss, argnums=(0, 1))
    agree(both, x, y)


def test_small_and_narrow_ones_and_other_dtypes_are_products_with_windows() -> None:
    function, x, y = convolution("same")
    assert not is_kept(function, x[:, :, :3, :5], y)
    assert not is_kept(function, np.ones((1, 520, 4, 4)), np.ones((4, 520, 3, 3)))
    assert not is_kept(function, x[:1, :, :4, :12], y)
    function, x, y = convolution("along the window")
    assert not is_kept(function, x[..., :20, :20], y)  # at one position every term is read for one sum
    function, *_ = convolution("along the window", "float32")
    x = np.ones((32, 16, 9, 9), "float32")
    assert is_kept(function, x, np.ones((32, 16, 7, 7), "float32"))
    assert not is_kept(function, x, np.ones((64, 16, 7, 7), "float32"))  # the gradient by many features
    function, x, y = convolution("same", "complex64")
    assert not is_kept(function, x, y)


SPREAD: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 9), (4, 3, 4, 4), {"lhs_dilation": (2, 2), "padding": ((2, 2), (1, 3))}),
    ((2, 3, 7, 9), (4, 3, 3, 5), {"lhs_dilation": (3, 2), "padding": ((6, 0), (-2, -3))}),
    ((2, 3, 7, 9), (4, 3, 2, 1), {"lhs_dilation": (3, 4), "padding": ((1, 5), (0, 7))}),
    ((1, 2, 5, 11), (6, 2, 3, 3), {"lhs_dilation": (1, 2), "strides": (2, 1), "rhs_dilation": (2, 1),
                                   "padding": ((2, 1), (1, 2))}),
    ((2, 6, 8, 8), (4, 3, 3, 3), {"lhs_dilation": (2, 2), "padding": ((-5, 1), (1, -4)), "feature_groups": 2}),
    ((2, 3, 20), (4, 3, 7), {"lhs_dilation": (5,), "padding": ((3, 3),)}),
    ((1, 2, 3, 4, 5), (3, 2, 2, 3, 2), {"lhs_dilation": (2, 1, 3), "padding": ((1, 1), (1, 1), (0, 2))}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SPREAD)))
def test_no_zero_between_spread_elements_is_multiplied(number: int) -> None:
    left, right, given = SPREAD[number]
    rank = len(left) - 2
    params = {
        "strides": (1,) * rank, "rhs_dilation": (1,) * rank, "preferred_element_type": np.dtype("float64"), **given,
    }  # fmt: skip
    x, y = RNG.standard_normal(left), RNG.standard_normal(right)
    agree(lambda a, b: conv(a, b, **params), x, y)
    equations = optimize(staged(lambda a, b: conv(a, b, **params), [x, y])).equations
    assert all(set(e.params["lhs_dilation"]) == {1} for e in equations if e.primitive.name == "conv")
    assert not any(steps for e in equations if e.primitive.name == "pad" for *_, steps in e.params["padding_config"])
