"""`x[i]` and `x[i] = v` against NumPy: every kind of index, eagerly and compiled, and what is out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.numpy.shapes.index_strategies import SHAPES, advanced, basic, counted, on_tracer
from tracer.errors import IndexShapeError, MutationError, OutOfBoundsError, ShapeError, TracerArrayError
from tracer.numpy.arrays import methods
from tracer.numpy.shapes import updates


def same(ours: Any, theirs: Any) -> None:
    got = np.asarray(ours)
    assert got.shape == np.shape(theirs)
    assert got.dtype == np.asarray(theirs).dtype
    np.testing.assert_array_equal(got, theirs)


@given(st.data())
def test_basic_indices_take_what_numpys_do(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(basic(shape))
    x = counted(shape)
    same(tnp.asarray(x)[index], x[index])


@given(st.data())
def test_advanced_indices_take_what_numpys_do(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(advanced(shape))
    x = counted(shape)
    same(tnp.asarray(x)[index], x[index])
    same(tnp.asarray(x)[on_tracer(index, tnp.asarray)], x[index])


@given(st.data())
def test_traced_index_arrays_take_what_numpys_do(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(advanced(shape))
    x = counted(shape)
    arrays = [i for i in index if isinstance(i, np.ndarray) and i.dtype != bool]

    def take(x: Any, *given: Any) -> Any:
        rest = iter(given)
        return x[tuple(next(rest) if isinstance(i, np.ndarray) and i.dtype != bool else i for i in index)]

    same(tracer.vmap(take, in_axes=0, axis_size=1)(x[None], *(a[None] for a in arrays))[0], x[index])


@given(st.data())
def test_updates_write_what_numpys_do(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(st.one_of(basic(shape), advanced(shape)))
    x = counted(shape)
    expected = x.copy()
    taken = np.shape(x[index])
    some = tuple(data.draw(st.sampled_from([1, n])) for n in taken[data.draw(st.integers(0, len(taken))) :])
    value = -counted(some)
    if len(np.unique(counted(shape)[index])) != int(np.prod(taken)):
        value = value.reshape(-1)[:1].reshape(()) if value.size else np.asarray(-1.0)  # places named twice
    expected[index] = value
    same(tnp.asarray(x).at[index].set(value), expected)
    rebound = tnp.asarray(x)
    rebound[index] = value
    same(rebound, expected)


@given(st.data())
def test_additions_meet_where_indices_repeat(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(st.one_of(basic(shape), advanced(shape)))
    x = counted(shape)
    for name, ufunc in (("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        expected = x.copy()
        ufunc.at(expected, index, 3.0)
        same(getattr(tnp.asarray(x).at[index], name)(3.0), expected)


@each(
    ("index", "axis", "size"),
    [(3, 0, 3), (-4, 0, 3), ((0, 4), 1, 4), ((slice(None), -5), 1, 4), (np.array([0, 3]), 0, 3), ((None, 3), 0, 3)],
)
def test_known_indices_out_of_bounds_raise_at_once(index: Any, axis: int, size: int) -> None:
    x = tnp.zeros((3, 4))
    with pytest.raises(OutOfBoundsError, match=f"is out of bounds for axis {axis} with size {size}, at test_indexing"):
        x[index]
    with pytest.raises(OutOfBoundsError, match="is out of bounds"):
        x.at[index].set(1.0)
    with pytest.raises(OutOfBoundsError, match="is out of bounds"):
        tracer.make_program(lambda x: x[index])(x)


def test_the_error_names_the_index_as_it_was_written() -> None:
    with pytest.raises(IndexError) as caught:
        tnp.arange(3)[-4]
    line = str(caught.value).split(", at ")[0]
    assert line == "index -4 is out of bounds for axis 0 with size 3"


@pytest.mark.parametrize("place", [3, -4, 100])
def test_traced_indices_out_of_bounds_raise_from_compiled_code(place: int) -> None:
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 0 with size 3"):
        tracer.jit(lambda x, i: x[i])(tnp.arange(3.0), place)
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for axis 1 with size 3"):
        tracer.jit(lambda x, i: x[:, i])(tnp.zeros((2, 3)), place)


def test_a_mask_that_does_not_fit_says_so() -> None:
    with pytest.raises(OutOfBoundsError, match="it must have the shape of the axes that it stands for"):
        tnp.zeros((3, 4))[np.ones(4, bool)]


def test_too_many_indices_say_so() -> None:
    with pytest.raises(OutOfBoundsError, match="too many indices"):
        tnp.zeros(3)[0, 0]


def test_a_traced_mask_has_no_result_but_writes() -> None:
    with pytest.raises(TracerArrayError, match=r"the shape of the result depends on the mask's values"):
        tracer.jit(lambda x: x[x > 1.0])(tnp.arange(3.0))
    written = tracer.jit(lambda x: x.at[x > 0.5].set(7.0))(tnp.arange(3.0))
    same(written, np.array([0.0, 7.0, 7.0]))


@pytest.mark.parametrize("compiled", [lambda f: f, tracer.jit], ids=["eager", "jit"])
def test_index_arrays_that_do_not_broadcast_are_errors_of_indices_and_of_shapes(compiled: Any) -> None:
    x, rows, columns = np.zeros((4, 4)), np.arange(2), np.arange(3)
    with pytest.raises(IndexError):
        x[rows, columns]
    text = r"^indexing at .*: shapes \[2\], \[3\] do not broadcast together\n  axis -1 has sizes 2 and 3"

    def written(x: Any, rows: Any, columns: Any) -> Any:
        y = x.copy()
        y[rows, columns] = 1.0
        return y

    for how in (lambda x, rows, columns: x[rows, columns], written, lambda x, i, j: x.at[i, j].add(1.0)):
        with pytest.raises(IndexShapeError, match=text) as caught:
            compiled(how)(tnp.asarray(x), tnp.asarray(rows), tnp.asarray(columns))
        assert isinstance(caught.value, IndexError)
        assert isinstance(caught.value, ShapeError)


def test_values_that_do_not_fit_say_so() -> None:
    with pytest.raises(ShapeError, match="the values must broadcast to the shape that the index takes"):
        tnp.zeros((3, 4)).at[0].set(tnp.ones(3))


@pytest.mark.parametrize(
    ("mode", "expected"), [("clip", [2.0, 0.0, 2.0]), ("wrap", [0.0, 2.0, 2.0]), ("fill", [-1.0, -1.0, 2.0])]
)
def test_modes_say_what_happens_beyond_the_bounds(mode: str, expected: list[float]) -> None:
    index = tnp.asarray([3, -4, -1])
    taken = tnp.arange(3.0).at[index].get(mode=mode, fill_value=-1.0)
    same(taken, np.asarray(expected))
    same(tracer.jit(lambda i: tnp.arange(3.0).at[i].get(mode=mode, fill_value=-1.0))(index), np.asarray(expected))


def test_drop_writes_nothing_beyond_the_bounds() -> None:
    same(tnp.zeros(3).at[tnp.asarray([1, 7])].set(5.0, mode="drop"), np.array([0.0, 5.0, 0.0]))
    same(tnp.zeros(3).at[7].add(5.0, mode="drop"), np.zeros(3))


def test_take_clips_as_numpy_and_fills_as_jax() -> None:
    x = np.arange(5.0)
    same(tnp.take(x, [-1, 9], mode="clip"), np.take(x, [-1, 9], mode="clip"))
    same(tnp.take(x, [-1, 9], mode="wrap"), np.take(x, [-1, 9], mode="wrap"))
    same(tnp.take(x, [-1, 9], mode="fill"), np.array([4.0, np.nan]))
    with pytest.raises(IndexError):
        tnp.take(x, [9])


@given(st.data())
def test_take_and_take_along_axis_are_numpys(data: st.DataObject) -> None:
    shape = data.draw(SHAPES.filter(lambda s: len(s) > 0 and min(s) > 0))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = counted(shape)
    index = np.asarray(data.draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=1, max_size=3)))
    same(tnp.take(x, index, axis), np.take(x, index, axis))
    sizes = [1] * len(shape)
    sizes[axis] = len(index)
    along = np.broadcast_to(
        index.reshape(sizes), [len(index) if n == axis % len(shape) else m for n, m in enumerate(shape)]
    )
    same(tnp.take_along_axis(x, along, axis), np.take_along_axis(x, along, axis))


def test_writing_rebinds_one_handle_alone() -> None:
    x = tnp.zeros(3)
    y, z = x, x.copy()
    x[0] = 1.0
    assert y is x
    same(z, np.zeros(3))
    x[1:] += 2.0
    same(x, np.array([1.0, 2.0, 2.0]))


def test_writing_to_an_argument_of_jit_is_refused() -> None:
    def write(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(MutationError, match=r"write to a copy, x = x\.copy\(\)"):
        tracer.jit(write)(tnp.zeros(3))

    def write_copy(x: Any) -> Any:
        x = x.copy()
        x[0] = 1.0
        return x

    same(tracer.jit(write_copy)(tnp.zeros(3)), np.array([1.0, 0.0, 0.0]))


def test_random_keys_are_indexed_like_arrays() -> None:
    keys = tracer.random.split(tracer.random.key(0), 4)
    picked = keys[tnp.asarray([2, 0])]
    data = np.asarray(tracer.random.key_data(keys))
    np.testing.assert_array_equal(np.asarray(tracer.random.key_data(picked)), data[[2, 0]])
    np.testing.assert_array_equal(np.asarray(tracer.random.key_data(keys[1])), data[1])
    np.testing.assert_array_equal(np.asarray(tracer.random.key_data(keys[::-2])), data[::-2])


@pytest.mark.parametrize(
    "index", [np.s_[1:, ::2], np.s_[::-1], (np.array([0, 2, 0]),), (slice(None), np.array([1, 1]))]
)
def test_gradients_of_taking_and_writing_are_those_of_the_places(index: Any, rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(3, 4)), rng.normal(size=np.zeros((3, 4))[index].shape)
    taken = tracer.grad(lambda x: (x[index] * weights).sum())(x)
    expected = np.zeros((3, 4))
    np.add.at(expected, index, weights)
    np.testing.assert_allclose(np.asarray(taken), expected)
    kept = tracer.grad(lambda x: x.at[index].set(0.0).sum())(x)
    ones = np.ones((3, 4))
    ones[index] = 0.0
    np.testing.assert_array_equal(np.asarray(kept), ones)


@each(
    "index",
    [1, -1, slice(None), slice(2, None, -1), (1, 2), (..., 0), (None, 1), (slice(1), None, -1), (), ..., (0, 1, 2)],
)
def test_basic_indices_copy(index: Any) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)[:, :, ::-1]
    x = tnp.asarray(values)
    found = x[index]
    assert np.array_equal(found, values[index])
    assert found.shape == values[index].shape
    assert not np.shares_memory(found._value, x._value)
    assert found._value.flags.c_contiguous
    staged = tracer.jit(lambda v: v[index])(x)
    assert np.array_equal(staged, found)


def test_a_captured_array_is_indexed_when_the_program_runs() -> None:
    x = tnp.asarray([1.0, 2.0])
    f = tracer.jit(lambda: x[0] * 2)
    assert float(f()) == 2.0
    x[0] = 5.0
    assert float(f()) == 10.0


@given(st.data())
def test_writing_at_once_is_what_compiled_code_writes(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(st.one_of(basic(shape), advanced(shape)))
    dtype = data.draw(st.sampled_from(["bool", "uint8", "int64", "float16", "float32", "float64", "complex128"]))
    value = data.draw(st.sampled_from([True, 3, -3, 300, 2.5, 1e300, np.float32(1.5), tnp.asarray(2), tnp.ones(1)]))
    x = tnp.asarray(counted(shape)).astype(dtype)
    for method in ("set", "add", "multiply"):
        results = []
        for run in (lambda f: f, tracer.jit):
            try:
                results.append(run(lambda x, method=method: getattr(x.at[index], method)(value))(x))
            except (TypeError, ValueError, IndexError) as error:
                results.append(type(error))
        assert type(results[0]) is type(results[1])
        if isinstance(results[0], tracer.Array):
            assert results[0].type == results[1].type
            assert np.asarray(results[0]).tobytes() == np.asarray(results[1]).tobytes()


def test_other_numbers_at_other_places_are_written_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is staged holds for one index and number; these need none."""

    def staged(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(methods, "updated", staged)
    monkeypatch.setattr(updates, "updated", staged)
    x, flags = tnp.zeros(4), tnp.zeros(4, bool)
    for n in range(4):
        x[n] = 0.5 * n
        flags[n] = True
        x = x.at[n].add(1.0).at[n:].multiply(2).at[x > 100.0].set(7.0)
    x[tnp.asarray([0, 1])] = tnp.asarray([1.0, 2.0])
    assert x.tolist() == [1.0, 2.0, 4.0, 5.0]
    assert flags.all()


@pytest.mark.parametrize("places", [np.array([2, 1], ">i4"), np.array(1, ">i8"), np.array([[0], [3]], ">u2")])
def test_places_in_the_other_order_of_bytes(places: Any) -> None:
    x = np.arange(4.0)

    def write(x: Any) -> Any:
        x = x.copy()
        x[places] = 7.0
        return x

    expected = x.copy()
    expected[places] = 7.0
    for run in (lambda f: f, tracer.jit, lambda f: lambda x: tracer.jvp(f, (x,), (x,))[0]):
        np.testing.assert_array_equal(run(lambda x: x[places])(tnp.asarray(x)), x[places])
        np.testing.assert_array_equal(run(lambda x: x[None, places])(tnp.asarray(x)), x[None, places])
        np.testing.assert_array_equal(run(lambda x: x.at[places].set(7.0))(tnp.asarray(x)), expected)
        np.testing.assert_array_equal(run(write)(tnp.asarray(x)), expected)


@pytest.mark.parametrize("index", [[[], []], ([[], []], None), (0, [[]]), ([], [[], []])])
def test_lists_of_empty_lists_are_no_places(index: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    for run in (lambda f: f, tracer.jit):
        found = run(lambda x: x[index])(tnp.asarray(x))
        assert found.shape == x[index].shape
        np.testing.assert_array_equal(run(lambda x: x.at[index].set(1.0))(tnp.asarray(x)), x)
