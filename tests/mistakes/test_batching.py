"""Mistakes with `vmap`."""

from __future__ import annotations

import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, vmap


def test_vmap_over_different_sizes() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda p: p["w"] * p["b"])({"w": X, "b": tnp.ones(4)}),  # here
        "vmap of lambda at @here: the mapped axes have different sizes\n"
        "  argument 0, p['b'] has size 4\n  argument 0, p['w'] has size 3\n"
        "  help: sizes must agree; an argument that is the same for every example takes in_axes=None",
    )


def test_in_axes_of_the_wrong_length() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes=(0,))(X, X),  # here
        "vmap of lambda at @here: in_axes has one entry an argument\n  got 1 for 2 positional arguments\n"
        "  help: give one entry for each positional argument, or a single one for all",
    )


def test_in_axes_out_of_range() -> None:
    fails(
        errors.AxisError,
        lambda: vmap(lambda a, b: a * b)(X, 2.0),  # here
        "vmap of lambda at @here: in_axes names an axis that does not exist\n  axis 0 of argument 1, f64*[]\n"
        "  help: an argument that is the same for every example takes in_axes=None",
    )


def test_in_axes_of_another_structure() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes={"a": 0})(X, X),  # here
        "in_axes of vmap of lambda at @here must be a prefix of the tree that it describes\n"
        "  got {'a': 0} for (*, *)\n"
        "  help: give one integer or None for the whole tree, or a tree of them with the same outer structure",
    )


def test_in_axes_that_are_no_integers() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes="01")(X, X),  # here
        "vmap of lambda at @here: in_axes takes integers and None\n  got '01' for argument 0\n"
        "  help: the axis to map over, counted from 0; None for an argument that is the same for every example",
    )


def test_out_axes_out_of_range() -> None:
    fails(
        errors.AxisError,
        lambda: vmap(lambda a: a, out_axes=3)(X),  # here
        "vmap of lambda at @here: out_axes names an axis that does not exist\n  axis 3 of the result, f64[3]\n"
        "  help: out_axes runs from -1 to 0 here",
    )


def test_out_axes_out_of_range_inside_a_tree() -> None:
    fails(
        errors.AxisError,
        lambda: vmap(lambda a: {"u": a, "v": (a, a)}, out_axes={"u": 0, "v": (0, 2)})(X),  # here
        "vmap of lambda at @here: out_axes names an axis that does not exist\n"
        "  axis 2 of the result at ['v'][1], f64[3]\n"
        "  help: out_axes runs from -1 to 0 here",
    )


def test_out_axes_that_are_no_integers() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a: a, out_axes="0")(X),  # here
        "vmap of lambda at @here: out_axes takes integers and None\n  got '0' for the result\n"
        "  help: where the results are stacked, from 0",
    )


def test_vmap_of_nothing() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda *_: 1.0)(*()),  # here
        "vmap of lambda at @here: nothing to map over\n  no argument has an axis in in_axes\n"
        "  help: map one argument at least, or give axis_size",
    )


def test_in_axes_that_part_from_the_arguments_inside_a_tree() -> None:
    remedy = "  help: give one integer or None for the whole tree, or a tree of them with the same outer structure"
    params = {"w": [X, X], "b": X}
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda p, x: x, in_axes=({"w": [0, None, 0], "b": 0}, 0))(params, X),  # here
        "in_axes of vmap of lambda at @here must be a prefix of the tree that it describes\n"
        f"  got [0, None, 0] for [*, *] at in_axes[0]['w']\n{remedy}",
    )


def test_out_axes_that_part_from_the_results_inside_a_tree() -> None:
    remedy = "  help: give one integer or None for the whole tree, or a tree of them with the same outer structure"
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda x: {"u": (x, x), "v": x}, out_axes={"u": {"a": 0}, "v": 0})(X),  # here
        "out_axes of vmap of lambda at @here must be a prefix of the tree that it describes\n"
        f"  got {{'a': 0}} for (*, *) at out_axes['u']\n{remedy}",
    )
