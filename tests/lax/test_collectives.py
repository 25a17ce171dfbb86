"""Operations across the lanes of a named axis, and stop_gradient."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import ArgumentError, NoRuleError

X = np.array([1.0, 2.0, 5.0])


def across(function: object) -> list[object]:
    return tracer.vmap(function, axis_name="i")(X).tolist()  # type: ignore[arg-type, no-any-return]


def test_reductions_see_all_lanes() -> None:
    assert across(lambda x: lax.psum(x, "i")) == [8.0] * 3
    assert across(lambda x: lax.pmean(x, "i")) == [8.0 / 3] * 3
    assert across(lambda x: lax.pmax(x, "i")) == [5.0] * 3
    assert across(lambda x: lax.pmin(x, "i")) == [1.0] * 3
    assert across(lambda x: lax.all_gather(x, "i")) == [X.tolist()] * 3
    assert across(lambda x: x * lax.axis_index("i")) == [0.0, 2.0, 10.0]


def test_what_is_the_same_in_all_lanes_is_multiplied_or_kept() -> None:
    assert across(lambda x: x + lax.psum(tnp.asarray(2.0), "i")) == [7.0, 8.0, 11.0]
    assert across(lambda x: x + lax.psum(1, "i")) == [4.0, 5.0, 8.0]
    assert across(lambda x: x + lax.pmax(tnp.asarray(2.0), "i")) == [3.0, 4.0, 7.0]


def test_trees_and_several_axes() -> None:
    def inner(x: tracer.Array, y: tracer.Array) -> tracer.Array:
        return lax.psum({"p": x * y}, ("i", "j"))["p"]

    rows = tracer.vmap(lambda x: tracer.vmap(lambda y: inner(x, y), axis_name="j")(tnp.arange(3.0)), axis_name="i")(X)
    assert rows.tolist() == [[24.0] * 3] * 3


def test_means_of_integers_are_floats_and_sums_of_booleans_count() -> None:
    mean = tracer.vmap(lambda n: lax.pmean(n, "i"), axis_name="i")(tnp.arange(4))
    assert (mean.dtype, mean.tolist()) == ("float64", [1.5] * 4)
    count = tracer.vmap(lambda x: lax.psum(x > 1.5, "i"), axis_name="i")(X)
    assert (count.dtype, count.tolist()) == ("int32", [2] * 3)


def nested(function: object) -> np.ndarray:
    """Of lanes (i, j) with the values 0 to 5: what each gets."""
    inner = tracer.vmap(function, axis_name="j")  # type: ignore[arg-type]
    return np.asarray(tracer.vmap(inner, axis_name="i")(tnp.arange(6.0).reshape(2, 3)))


def test_several_names_make_one_axis_whose_last_name_counts_fastest() -> None:
    both, turned = ("i", "j"), ("j", "i")
    assert nested(lambda x: lax.axis_index(both)).ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert nested(lambda x: lax.axis_index(turned)).ravel().tolist() == [0, 2, 4, 1, 3, 5]
    assert nested(lambda x: lax.all_gather(x, both))[1, 2].tolist() == [0, 1, 2, 3, 4, 5]
    assert nested(lambda x: lax.all_gather(x, turned))[0, 1].tolist() == [0, 3, 1, 4, 2, 5]
    assert nested(lambda x: lax.pmean(x, both)).tolist() == [[2.5] * 3] * 2
    assert nested(lambda x: lax.ppermute(x, both, [(0, 5), (5, 1)])).ravel().tolist() == [0, 5, 0, 0, 0, 0]
    assert nested(lambda x: lax.pbroadcast(x, both, 4)).tolist() == [[4.0] * 3] * 2
    sums = nested(lambda x: lax.psum_scatter(x * tnp.arange(6.0), both))
    assert sums.ravel().tolist() == [0.0, 15.0, 30.0, 45.0, 60.0, 75.0]
    table = nested(lambda x: lax.all_to_all(10 * x + tnp.arange(6.0), both, 0, 0))
    np.testing.assert_array_equal(table.reshape(6, 6), 10 * np.arange(6.0) + np.arange(6.0)[:, None])


@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_an_exchange_within_a_batch_of_another_name(split: int, concat: int) -> None:
    """Lanes of the outer axis exchange what the inner batch holds beside it."""
    x = tnp.asarray(np.random.default_rng(0).standard_normal((3, 5, 3, 3)))
    swap = lambda v: lax.all_to_all(v, "i", split, concat)  # noqa: E731
    expected = tnp.stack([tracer.vmap(swap, axis_name="i")(x[:, n]) for n in range(5)], axis=1)
    for inner in (tracer.vmap(swap), tracer.vmap(swap, axis_name="j")):
        np.testing.assert_array_equal(tracer.vmap(inner, axis_name="i")(x), expected)


def in_groups(function: object) -> list[object]:
    return tracer.vmap(function, axis_name="i")(tnp.arange(8.0).reshape(4, 2)).tolist()  # type: ignore[arg-type]


def test_groups_of_lanes_keep_to_themselves() -> None:
    groups = [[0, 3], [2, 1]]
    assert in_groups(lambda x: lax.psum(x[0], "i", axis_index_groups=groups)) == [6, 6, 6, 6]
    assert in_groups(lambda x: lax.psum(1, "i", axis_index_groups=groups)) == [2] * 4
    assert in_groups(lambda x: lax.pmean(x[0], "i", axis_index_groups=groups)) == [3] * 4
    assert in_groups(lambda x: lax.pmax(x[1], "i", axis_index_groups=groups)) == [7, 5, 5, 7]
    assert in_groups(lambda x: lax.pmin(x[1], "i", axis_index_groups=groups)) == [1, 3, 3, 1]
    assert in_groups(lambda x: lax.all_gather(x[0], "i", axis_index_groups=groups)) == [[0, 6], [4, 2], [4, 2], [0, 6]]
    exchanged = in_groups(lambda x: lax.all_to_all(x, "i", 0, 0, axis_index_groups=groups))
    assert exchanged == [[0, 6], [5, 3], [4, 2], [1, 7]]
    assert exchanged == in_groups(lambda x: lax.pswapaxes(x, "i", 0, axis_index_groups=groups))
    assert in_groups(lambda x: lax.psum_scatter(x, "i", axis_index_groups=groups)) == [6, 8, 6, 8]


def test_gradients_stay_within_groups() -> None:
    def lane(x: tracer.Array) -> tracer.Array:
        return lax.psum(x[0] ** 2, "i", axis_index_groups=[[0, 2], [1, 3]]) * x[0]

    inside = tracer.vmap(tracer.grad(lane), axis_name="i")(tnp.arange(8.0).reshape(4, 2))
    total = tracer.grad(lambda m: tracer.vmap(lane, axis_name="i")(m).sum())
    np.testing.assert_array_equal(inside, tracer.jit(total)(tnp.arange(8.0).reshape(4, 2)))


def test_groups_part_the_lanes() -> None:
    with pytest.raises(ArgumentError) as caught:
        across(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]))
    lines = str(caught.value).splitlines()
    assert lines[0].endswith(": axis_index_groups partition the 3 lanes into groups of one size")
    assert lines[1:] == ["  got [[0, 1], [2]]", "  help: name every lane once, counted from 0"]


def test_collectives_inside_loops_and_branches() -> None:
    def body(x: tracer.Array) -> tracer.Array:
        return lax.fori_loop(0, 2, lambda _, y: y + lax.psum(y, "i"), x)

    assert across(body) == [1 + 8 + 32.0, 2 + 8 + 32.0, 5 + 8 + 32.0]


def test_gradients_cross_lanes() -> None:
    assert across(tracer.grad(lambda x: x * lax.psum(x, "i"))) == [16.0] * 3
    weights = tnp.asarray([1.0, 10.0, 100.0])
    gradient = tracer.grad(lambda x: (lax.all_gather(x, "i") * weights).sum())
    assert across(gradient) == [3.0, 30.0, 300.0]


def test_an_unknown_axis_says_which_there_are() -> None:
    with pytest.raises(ArgumentError) as caught:
        across(lambda x: lax.psum(x, "j"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("psum at ")
    assert lines[0].endswith(": no batch axis is called 'j'")
    assert lines[1:] == ["  there are 'i'", "  help: map the function by vmap(f, axis_name='j')"]


def test_pmax_has_no_derivative_and_says_so() -> None:
    with pytest.raises(NoRuleError, match="pmax has no derivative"):
        across(tracer.grad(lambda x: lax.pmax(x, "i")))


def test_stop_gradient_holds_values_constant_in_every_mode() -> None:
    def f(x: tracer.Array) -> tracer.Array:
        return x * lax.stop_gradient(x)

    assert float(tracer.grad(f)(3.0)) == 3.0
    assert float(tracer.jit(tracer.grad(f))(3.0)) == 3.0
    assert float(tracer.jvp(f, (3.0,), (1.0,))[1]) == 3.0
    assert float(tracer.grad(tracer.grad(f))(3.0)) == 0.0
    assert lax.stop_gradient({"a": 1, "b": tnp.ones(2)})["b"].tolist() == [1.0, 1.0]
