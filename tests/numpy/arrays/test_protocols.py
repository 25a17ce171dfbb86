"""NumPy's functions and ufuncs on our arrays, DLPack, the array API's namespace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import betainc, erf, jv

import tracer
import tracer.numpy as tnp
from tracer.errors import ArgumentError, DTypeError, InternalError, MutationError, TracerArrayError

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)


def is_ours(result: Any, expected: Any) -> None:
    assert type(result) is tracer.Array
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        np.sin, np.sum, np.mean, lambda x: np.add(x, 1.0), lambda x: np.concatenate([x, x]), np.transpose,
        lambda x: np.where(x > 1.0, x, 0.0), np.add.reduce, lambda x: np.maximum.reduce(x, axis=1),
        lambda x: np.add.accumulate(x, axis=1), lambda x: np.multiply.outer(x[0], x[1]), np.linalg.norm,
        lambda x: np.einsum("ij->j", x), lambda x: np.stack([x, x]), lambda x: np.matmul(x, x.T), np.argmax, np.sort,
        lambda x: np.add(x, 1, dtype=np.float64), lambda x: np.clip(x, 0.6, 1.0), lambda x: np.ones((2, 1)) * x,
        lambda x: x.sum() + np.ones(3),
        lambda x: np.add(x, 1.0, where=x > 1.0, out=np.zeros((2, 3)) if type(x) is np.ndarray else tnp.zeros((2, 3))),
    ],
)  # fmt: skip
def test_numpys_functions_become_ours_eagerly_and_traced(call: Any) -> None:
    is_ours(call(tnp.asarray(X)), call(X))
    is_ours(tracer.jit(call)(X), call(X))


def test_numpys_functions_are_differentiated() -> None:
    is_ours(tracer.jit(tracer.grad(lambda x: np.sum(np.sin(x) ** 2)))(X), np.sin(2 * X))


def test_out_is_written_to_and_returned() -> None:
    target = np.zeros((2, 3))
    assert np.add(tnp.asarray(X), 1.0, out=target) is target
    np.testing.assert_allclose(target, X + 1.0)
    ours = tnp.zeros((2, 3))
    assert np.add(tnp.asarray(X), 1.0, out=ours) is ours
    is_ours(ours, X + 1.0)


def test_an_ndarray_takes_our_values_in_place_eagerly_alone() -> None:
    total = np.zeros((2, 3))
    total += tnp.asarray(X)
    np.testing.assert_allclose(total, X)

    def accumulate(x: Any) -> Any:
        total = np.zeros((2, 3))
        total += x
        return total

    with pytest.raises(MutationError, match="a traced value cannot be written into a NumPy array"):
        tracer.jit(accumulate)(X)


def test_functions_that_we_lack_are_numpys_on_values_and_refused_on_traced_arrays() -> None:
    assert type(jv(1, tnp.asarray(X))) is np.ndarray
    with pytest.raises(TracerArrayError, match=r"the ufunc jv at .* is not implemented in tracer"):
        tracer.jit(lambda x: jv(1, x))(X)
    with pytest.raises(TracerArrayError, match=r"is not implemented in tracer"):
        tracer.grad(lambda x: np.sum(jv(1, x)))(X)
    assert type(np.matmul(tnp.asarray(X), X, axes=[(0, 1), (1, 0), (0, 1)])) is np.ndarray
    with pytest.raises(TracerArrayError, match=r"the ufunc matmul with axes= at .* is not implemented in tracer"):
        tracer.jit(lambda x: np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)]))(X)


def test_only_errors_of_arguments_lead_back_from_numpys_function_to_ours() -> None:
    raised: list[type[Exception]] = [InternalError, TypeError]

    def broken(row: Any) -> Any:
        raise raised.pop()("broken")

    with pytest.raises(InternalError, match="broken"):
        np.apply_along_axis(broken, 0, tnp.asarray(X))


UFUNC_CALLS: dict[str, Any] = {
    "reduce where": lambda x: np.add.reduce(x, axis=1, where=x > 1.0),
    "reduce initial": lambda x: np.maximum.reduce(x, axis=1, where=x > 1.0, initial=-5.0),
    "reduce axes": lambda x: np.add.reduce(x, axis=(0, 1), keepdims=True),
    "reduce of any function": np.hypot.reduce, "reduce of all": lambda x: np.logaddexp.reduce(x, axis=None),
    "reduce in order": lambda x: np.subtract.reduce(x, axis=-1),
    "accumulate": lambda x: np.maximum.accumulate(x[:, ::-1], axis=1),
    "reduceat": lambda x: np.add.reduceat(x, [0, 2, 1], axis=1), "outer": lambda x: np.subtract.outer(x[0], x[1]),
    "outer dtype": lambda x: np.multiply.outer(x[0], x[1], dtype=np.float32),
    "casting": lambda x: np.multiply(x, 3, dtype=np.int64, casting="unsafe"),
    "layout": lambda x: np.add(x, 1, order="K", subok=False), "two results": lambda x: np.divmod(x, 0.7)[1],
    "special": erf, "special of two": lambda x: betainc(x, 2.0, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("call", UFUNC_CALLS.values(), ids=UFUNC_CALLS)
def test_methods_and_options_of_ufuncs_are_ours(call: Any) -> None:
    is_ours(call(tnp.asarray(X)), call(X))
    is_ours(tracer.jit(call)(X), call(X))


@pytest.mark.parametrize("name", ["add", "subtract", "maximum"])
def test_updates_by_ufuncs_rebind_arrays_of_ours(name: str) -> None:
    def call(x: Any) -> Any:
        x = x + 0.0
        assert getattr(np, name).at(x, ([0, 0, 1], [1, 1, 2]), [1.5, 2.5, 0.5]) is None
        return x

    is_ours(call(tnp.asarray(X)), call(X))
    is_ours(tracer.jit(call)(X), call(X))
    theirs, expected = X.copy(), X.copy()
    getattr(np, name).at(theirs, 0, tnp.asarray([5.0, 6.0, 7.0]))
    getattr(np, name).at(expected, 0, np.asarray([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(theirs, expected)


def test_casts_that_numpy_refuses_are_refused() -> None:
    x = tnp.asarray(X)
    for options in ({"dtype": np.int64}, {"dtype": np.float32, "casting": "safe"}):
        with pytest.raises(TypeError):
            np.add(X, 1.0, **options)
        with pytest.raises(DTypeError, match=r"add at .*: the cast to \w+ is not \w+\n  got f64\[2,3\]"):
            np.add(x, 1.0, **options)
    with pytest.raises(MutationError, match=r"^sum at .*: a traced value cannot be written into a NumPy array"):
        tracer.jit(lambda x: np.sum(x, out=np.zeros(())))(X)


def test_a_traced_array_never_becomes_a_constant() -> None:
    with pytest.raises(TracerArrayError, match="NumPy's would lose the trace"):
        tracer.jit(np.asarray)(X)


def test_results_for_numpy_are_read_only_views() -> None:
    view = np.asarray(tnp.asarray(X))
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1.0


def test_arguments_are_copied() -> None:
    given = X.copy()
    x = tnp.asarray(given)
    given[:] = 0.0
    is_ours(x, X)


@pytest.mark.parametrize("given", [X[:, ::-1], X.T, X.astype(">f8"), np.asfortranarray(X), X[::2]])
def test_any_memory_layout_is_taken(given: Any) -> None:
    is_ours(tnp.asarray(given), given)
    is_ours(tnp.sin(given), np.sin(given))


def test_dlpack_shares_memory_both_ways() -> None:
    x = tnp.asarray(X)
    assert np.shares_memory(np.from_dlpack(x), x._value)
    assert np.shares_memory(tnp.from_dlpack(X)._value, X)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(TracerArrayError, match="a traced array has no memory"):
        tracer.jit(np.from_dlpack)(X)


def test_the_namespace_is_ours() -> None:
    assert tnp.zeros(2).__array_namespace__() is tnp
    assert tnp.zeros(2).__array_namespace__(api_version="2024.12") is tnp


def test_every_public_name_is_there_and_documented() -> None:
    for name in tnp.__all__:
        value = getattr(tnp, name)
        if callable(value) and not isinstance(value, type):
            assert value.__doc__, name


def test_names_of_numpy_mean_the_same_arguments() -> None:
    """Positional calls carry over: our parameters begin as NumPy's do."""
    import inspect

    named_otherwise = {"reshape"} if np.lib.NumpyVersion(np.__version__) < "2.1.0" else set()
    for name in (
        "sum",
        "mean",
        "var",
        "reshape",
        "concatenate",
        "stack",
        "take",
        "argmax",
        "repeat",
        "roll",
        "tile",
    ):
        ours = list(inspect.signature(getattr(tnp, name)).parameters)
        if name != "concatenate":  # which is written in C, without a signature in older NumPy
            theirs = list(inspect.signature(getattr(np, name)).parameters)
            assert name in named_otherwise or ours[:2] == theirs[:2], name


WRITERS: dict[str, Any] = {
    "fill_diagonal": lambda xp, x: xp.fill_diagonal(x, 7.0),
    "put": lambda xp, x: xp.put(x, [0, 5], [7.0, 8.0]),
    "place": lambda xp, x: xp.place(x, x > 1.0, [7.0, 8.0]),
    "putmask": lambda xp, x: xp.putmask(x, x > 1.0, np.arange(4.0)),
    "put_along_axis": lambda xp, x: xp.put_along_axis(x, np.array([[1], [0]]), 7.0, axis=1),
    "put_along_axis flat": lambda xp, x: xp.put_along_axis(x, np.array([1, 0]), 7.0, axis=None),
    "copyto": lambda xp, x: xp.copyto(x, x[0] + 1.0, where=x > 1.0),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("xp", [np, tnp], ids=["numpy", "tracer.numpy"])
def test_functions_that_write_in_place_do(xp: Any, write: Any) -> None:
    expected = X.copy()
    write(np, expected)

    def function(x: Any) -> Any:
        x = x + 0.0
        other = tnp.copy(x)
        write(xp, x)
        return x, other

    for found, other in (function(tnp.asarray(X)), tracer.jit(function)(X)):
        is_ours(found, expected)
        is_ours(other, X)
    theirs = X.copy()
    write(tnp, theirs)
    np.testing.assert_array_equal(theirs, expected)


def test_what_is_written_elsewhere_on_request_leaves_the_array_as_it_is() -> None:
    x = tnp.asarray(X)
    assert float(tnp.fill_diagonal(x, 7.0, inplace=False)[0, 0]) == 7.0
    is_ours(x, X)
    with pytest.raises(ArgumentError, match="only an array can be written to"):
        tnp.put([1, 2, 3], 0, 1)
    with pytest.raises(DTypeError, match="the cast is not same_kind"):
        tnp.copyto(tnp.asarray([1, 2]), tnp.asarray([0.5, 1.5]))


@pytest.mark.parametrize("take_in", [np.atleast_1d, np.atleast_2d, np.atleast_3d])
def test_what_only_takes_arguments_in_gives_numpy_arrays_of_known_values(take_in: Any) -> None:
    """Libraries hand what it returns to C code, and write to it."""
    x = tnp.asarray(X)
    taken = take_in(x)
    assert type(taken) is np.ndarray
    taken[...] = 7.0
    is_ours(x, X)
    both = np.atleast_1d(x, X)
    assert [type(part) for part in both] == [np.ndarray, np.ndarray]
    is_ours(tracer.jit(take_in)(X), take_in(X))
    is_ours(tracer.grad(lambda x: take_in(x).sum())(x), np.ones_like(X))


def test_the_special_functions_are_where_scipy_looks_for_them() -> None:
    assert tnp.special is tracer.scipy.special
    with pytest.raises(AttributeError, match=r"module 'tracer.numpy' has no attribute 'spezial'"):
        tnp.spezial  # noqa: B018


def test_arguments_that_ours_does_not_take_are_left_to_numpys_where_values_are_known() -> None:
    x = tnp.asarray(X[0])
    first, nothing = np.broadcast_arrays(x, None)
    assert first.tolist() == X[0].tolist()
    assert nothing.tolist() == [None] * 3
    assert np.mean(x, where=[True, True, False], out=np.zeros(())) == X[0, :2].mean()
    with pytest.raises(ArgumentError, match="None"):
        tracer.jit(lambda x: np.broadcast_arrays(x, None))(X)
    with pytest.raises(ArgumentError, match="None"):
        np.stack([x, None, "text"], axis=5)  # NumPy's error would be about the axis


def test_numpys_view_of_an_array_shares_its_memory() -> None:
    x = tnp.arange(6)
    for shares in (np.shares_memory, np.may_share_memory, tnp.shares_memory):
        assert shares(x, np.asarray(x))
        assert shares(np.asarray(x)[1:], x)
        assert not shares(x, np.arange(6))
        assert not shares(x, x)  # a value
    assert not tracer.jit(lambda x: tnp.where(tnp.shares_memory(x, np.ones(2)), 1, 0))(tnp.ones(2))
    for generator in (np.random.default_rng(0), np.random.RandomState(0)):
        assert sorted(generator.permutation(x).tolist()) == x.tolist() == list(range(6))
