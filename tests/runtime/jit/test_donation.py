"""Donated arguments: consumed, with an error that says so; their memory is the results' where nobody else has it."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tests.runtime.programs import arange, double, line, same, scaled, take
from tracer import lax, nn, random
from tracer.errors import ArgumentError, OutOfBoundsError
from tracer.runtime.jit.entry import entries_enabled
from tracer.runtime.jit.jit import jit
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.tree_util import tree_leaves, tree_map

pytestmark = pytest.mark.usefixtures("way")


def test_donated_arrays_are_consumed() -> None:
    f = jit(scaled, donate_argnums=0)
    x = arange(3)
    for _ in range(2):
        x = f(x, 2.0)
    same(x, [0.0, 4.0, 8.0])
    old = x
    f(x, 2.0)
    with pytest.raises(ArgumentError) as error:
        f(old, 2.0)
    assert str(error.value) == (
        f"an array was donated and cannot be used again at test_donation.py:{line(-2)}\n"
        "  got f64[3], given to scaled by donate_argnums\n"
        "  help: use the result of that call, donate a copy (x.copy()), or do not donate this argument"
    )
    for use in (lambda: double(old), lambda: np.asarray(old), lambda: jit(double)(old)):
        with pytest.raises(ArgumentError, match=r"an array was donated and cannot be used again at "):
            use()


def test_a_donated_array_is_shown_as_one() -> None:
    x, key = arange(3), random.key(0)
    jit(scaled, donate_argnums=0)(x, 2.0)
    jit(lambda k: k, donate_argnums=0)(key)
    assert f"{x} {x!r}" == "Array(donated to scaled, f64[3]) Array(donated to scaled, f64[3])"
    assert repr(key) == "Array(donated to lambda, key[])"


@pytest.mark.filterwarnings("ignore:.*donated, but given up for nothing")
def test_a_donated_array_is_consumed_even_on_a_fault() -> None:
    x = arange(3)
    with pytest.raises(OutOfBoundsError):
        jit(take, donate_argnames="x")(x, np.array([7]))
    with pytest.raises(ArgumentError, match="was donated and cannot be used again"):
        double(x)


def test_a_donated_numpy_array_is_kept_with_a_warning() -> None:
    f = jit(scaled, donate_argnums=0)
    x = np.arange(3.0)
    with pytest.warns(UserWarning, match="donated") as told:
        f(x, 2.0)
    expected = (
        f"jit of scaled at test_donation.py:{line(-2)}: donated, but kept: only tracer's own arrays can be given "
        "away, not NumPy's\n  got argument 0 'x'\n"
        "  help: pass tracer.numpy.asarray(x), or leave it out of donate_argnums"
    )
    assert [str(warning.message) for warning in told] == [expected]
    same(double(as_array(x)), [0.0, 2.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(arange(3), 2.0)


# warnings of what cannot be done: one for a function and reason


def warnings_of(f: Any, *arguments: Any) -> list[str]:
    """What a call warns of, without the place."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        f(*arguments)
    return [str(warning.message).partition(": ")[2] for warning in told]


def shared_by(name: str) -> list[str]:
    return [
        (
            "donated, but copied: a NumPy view, a DLPack export or another argument has the memory, too\n"
            f"  got {name}\n"
            "  help: let go of it before the call, or leave it out of donate_argnums"
        )
    ]


def holders() -> dict[str, Callable[[Any], Any]]:
    return {"view": np.asarray, "part of a view": lambda x: np.asarray(x)[1:], "export": np.from_dlpack}


def test_warnings_stand_at_the_users_line() -> None:
    """As tools show them, also where the warning comes from the compiled entry."""
    compiled = jit(scaled, donate_argnums=0)
    compiled(arange(3), 2.0)
    shared: list[Any] = [lambda x: compiled(x, 2.0), jit(double, donate_argnums=0)] if entries_enabled() else []
    for run in (*shared, jit(lambda x: x.sum(), donate_argnums=0)):
        x = arange(3)
        view = np.asarray(x)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run(x)
        assert view.size
        assert {warning.filename for warning in told} == {__file__}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jit(double, donate_argnums=0)(np.arange(3.0))
    assert [warning.filename for warning in told] == [__file__]


@each("holder", holders())
def test_a_donated_array_that_was_exported_is_copied_with_a_warning(holder: str) -> None:
    f = jit(scaled, donate_argnums=0)
    calls = []
    for shared in (False, False, True, True, False):
        x = arange(3)
        other = holders()[holder](x) if shared else None
        calls.append(warnings_of(f, x, 2.0))
        if other is not None:
            same(as_array(other), np.arange(3.0)[-len(other) :])
    expected = shared_by("argument 0 'x'") if entries_enabled() else []
    assert calls == [[], [], expected, [], []]


def test_an_array_donated_twice_or_captured_is_copied_with_a_warning() -> None:
    x = arange(3)
    expected = entries_enabled()
    assert warnings_of(jit(lambda a, b: a + b[0], donate_argnums=0), x, x) == shared_by("argument 0 'a'") * expected
    y, z = arange(3), arange(3)
    z[...] = y
    assert warnings_of(jit(scaled, donate_argnums=0), z, 2.0) in ([], shared_by("argument 0 'x'"))
    same(y, [0.0, 1.0, 2.0])


def test_a_donated_array_that_no_result_fits_is_given_up_with_a_warning() -> None:
    f = jit(lambda x, y: (x["a"] + 1.0, y[1:]), donate_argnums=(0, 1))
    with pytest.warns(UserWarning, match="donated") as told:
        f({"a": arange(3), "b": arange(3)}, arange(4))
    expected = (
        f"jit of lambda at test_donation.py:{line(-2)}: donated, but given up for nothing: no result has the same "
        "shape and dtype, to be computed in that memory\n"
        "  got argument 1 'y'\n"
        "  help: leave it out of donate_argnums"
    )
    assert [str(warning.message) for warning in told] == [expected]
    assert warnings_of(f, {"a": arange(3), "b": arange(3)}, arange(4)) == []
    assert warnings_of(f, {"a": arange(5), "b": arange(5)}, arange(9)) == []


def test_results_that_fit_and_small_arrays_warn_of_nothing() -> None:
    after = jit(lambda x: tnp.sum(x) + x[::-1], donate_argnums=0)
    assert warnings_of(after, arange(3)) == []  # the order of reads is not the caller's business
    count = jit(lambda n, x: (n > 3, x + 1.0), donate_argnums=(0, 1))
    assert warnings_of(count, tnp.asarray(1.0), arange(3)) == []


def test_warnings_of_donation_may_be_errors() -> None:
    f = jit(scaled, donate_argnums=0)
    f(arange(3), 2.0)
    f(arange(3), 2.0)
    x = arange(3)
    view = np.asarray(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if entries_enabled():
            with pytest.raises(UserWarning, match="donated, but copied"):
                f(x, 2.0)
    assert view.tolist() == [0.0, 1.0, 2.0]
    same(f(arange(3), 2.0), [0.0, 2.0, 4.0])


# whose memory a result has


def address(x: Any) -> int:
    """Where the elements are, with nobody left who knows of them."""
    return int(np.asarray(x).ctypes.data)


def keeps_place(function: Callable[..., Any], *arrays: Any) -> list[bool]:
    """Which results are where the arguments were; the numbers are what they are without donation."""
    expected = tree_leaves(jit(function)(*arrays))
    f = jit(function, donate_argnums=tuple(range(len(arrays))))
    kept = []
    for _ in range(3):  # traced, by the way of Python and by the compiled entry
        given = tree_map(lambda leaf: leaf + 0, arrays)
        places = {address(leaf) for leaf in tree_leaves(given)}
        results = tree_leaves(f(*given))
        for got, wanted in zip(results, expected, strict=True):
            same(got, np.asarray(wanted))
        with pytest.raises(ArgumentError, match="was donated and cannot be used again"):
            tree_leaves(given)[0] + 1
        kept.append([address(leaf) in places for leaf in results])
    assert kept[0] == kept[1] == kept[2]
    return kept[0]


def step(w: Any, b: Any) -> Any:
    return w - 0.5 * b, b * 2.0


IN_PLACE: dict[str, tuple[Callable[..., Any], int]] = {
    "element by element": (lambda x: tnp.sin(x) * 2.0 + x, 1),
    "an update": (lambda x: x.at[3].set(5.0), 1),
    "updates of what was computed": (lambda x: (x * 2.0).at[3].set(5.0).at[4].add(1.0), 1),
    "a scatter": (lambda x: x.at[tnp.asarray([1, 5, 1])].add(1.0), 1),
    "a counted loop": (lambda x: lax.fori_loop(0, 10, lambda i, c: c.at[i].add(1.0), x), 1),
    "a counted loop in lanes": (lambda x: lax.fori_loop(0, 10, lambda i, c: 0.5 * c + i, x), 1),
    "a loop": (lambda x: lax.while_loop(lambda c: c[0] < 5.0, lambda c: c * 1.5 + 1.0, x), 1),
    "a scan": (lambda x: lax.scan(lambda c, i: (c + i, None), x, tnp.arange(5.0))[0], 1),
    "handed on": (lambda x: x, 1),
    "two at once": (step, 2),
    "changing places": (lambda x, y: (y + 1.0, x + 1.0), 2),
    "rows": (nn.softmax, 1),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_results_take_the_memory_of_donated_arrays(name: str) -> None:
    function, count = IN_PLACE[name]
    kept = keeps_place(function, *(arange(4000) / (n + 3000.0) for n in range(count)))
    assert all(kept) == entries_enabled()


ELSEWHERE: dict[str, Callable[..., Any]] = {
    "read at other places": lambda x: x[::-1] + x,
    "read at other places, by a loop in lanes": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x[::-1], x),
    "read afterwards": lambda x: (x.at[0].set(1.0), tnp.sum(x)),
    "another type": lambda x: x.astype("float32"),
    "another shape": lambda x: x[1:],
    "moved, under another shape in between": lambda x: tnp.roll(x.reshape(40, 100), 3).reshape(-1),
    "a product under another name": lambda x: (x.reshape(40, 100) @ x[:100, None] @ x[None, :100]).reshape(-1),
    "a product": lambda x: x.reshape(40, 100) @ x.reshape(100, 40),
}


@pytest.mark.filterwarnings("ignore:.*given up for nothing")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_results_have_memory_of_their_own(name: str) -> None:
    assert not any(keeps_place(ELSEWHERE[name], arange(4000)))


PLACES = np.random.default_rng(0).permutation(400)

MOVES: tuple[Callable[..., Any], ...] = (
    lambda v: tnp.roll(v, 3),
    lambda v: v[::-1],
    lambda v: tnp.concatenate([v[7:], v[:7]]),
    lambda v: tnp.pad(v[:-7], (7, 0)),
    lambda v: v.reshape(4, 100).T.reshape(-1),
    lambda v: v[PLACES],
    lambda v: v[tnp.argsort(-v)],
    tnp.sort,
    lambda v: tnp.cumsum(v) * 0.01,
    lambda v: v.at[PLACES[:50]].set(v[:50]),
    lambda v: v.at[PLACES[:50]].add(v[-50:]),
    lambda v: v.at[3].set(v[5]),
    lambda v: (v.reshape(20, 20) @ v.reshape(20, 20)).reshape(-1) * 0.01,
    lambda v: v * 2.0 + 1.0,
    lambda v: v + tnp.mean(v),
    lambda v: lax.scan(lambda c, _: (tnp.roll(c, 3), None), v, None, length=1)[0],
    lambda v: lax.fori_loop(0, 3, lambda i, c: tnp.roll(c, 1) + i, v),
    lambda v: lax.fori_loop(0, 3, lambda i, c: tnp.roll(c.reshape(20, 20), 3).reshape(-1), v),
    lambda v: lax.scan(lambda c, _: (c.reshape(20, 20).T.reshape(-1) + 1.0, c[0]), v, None, length=2)[0],
    lambda v: lax.cond(v[0] > 0.5, lambda c: c, lambda c: c[::-1], v),
)
SHAPES = ((400,), (20, 20), (4, 100), (2, 10, 20), (1, 400))


@pytest.mark.parametrize("seed", range(60 if THOROUGH else 30))
def test_whatever_moves_between_shapes_is_what_it_is_without_donation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, *between = (SHAPES[n] for n in rng.integers(len(SHAPES), size=4))
    moves = [MOVES[n] for n in rng.integers(len(MOVES), size=rng.integers(1, 4))]
    also = rng.random() < 0.3

    def moved(x: Any) -> Any:
        v = x
        for move, other in zip(moves, between, strict=False):
            v = move(v.reshape(-1)).reshape(other)
        return (v.reshape(shape), x * 2.0) if also else v.reshape(shape)

    keeps_place(moved, tnp.asarray(rng.random(shape)))


@each("make", [lambda a: tnp.asarray(a, copy=True), tnp.array, lambda a: tnp.arange(a.size * 1.0), tnp.ones_like])
def test_memory_that_creation_made_is_given_away(make: Any) -> None:
    f = jit(lambda x: x + 1.0, donate_argnums=0)
    for _ in range(2):
        x = make(np.ones(1000))
        address = x._value.ctypes.data
        assert (f(x)._value.ctypes.data == address) is entries_enabled()


@pytest.mark.filterwarnings("ignore:.*donated, but copied")
def test_memory_that_somebody_else_knows_of_is_copied() -> None:
    f = jit(double, donate_argnums=0)
    for _ in range(3):
        x = arange(3)
        view = np.asarray(x)
        same(f(x), [0.0, 2.0, 4.0])
        assert view.tolist() == [0.0, 1.0, 2.0]
        twin = arange(3)
        memory = memoryview(np.asarray(twin))
        same(f(twin), [0.0, 2.0, 4.0])
        assert memory.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.filterwarnings("ignore:.*donated, but copied")
def test_an_array_may_be_given_twice() -> None:
    f, g = jit(step, donate_argnums=(0, 1)), jit(step, donate_argnums=0)
    for _ in range(3):
        x = arange(3)
        for result, expected in zip(f(x, x), ([0.0, 0.5, 1.0], [0.0, 2.0, 4.0]), strict=True):
            same(result, expected)
        y = arange(3)
        same(g(y, y)[0], [0.0, 0.5, 1.0])


@pytest.mark.filterwarnings("ignore:.*donated, but copied")
def test_a_captured_array_may_be_donated() -> None:
    x = arange(3)
    f = jit(lambda y: y * 2.0 + x, donate_argnums=0)
    same(f(x), [0.0, 3.0, 6.0])
    with pytest.raises(ArgumentError, match="was donated and cannot be used again"):
        f(arange(3))


def test_leaves_of_trees_and_keywords_are_donated() -> None:
    f = jit(lambda lr, *, params: {k: v - lr for k, v in params.items()}, donate_argnames="params")
    for _ in range(3):
        params = {"w": arange(3), "b": arange(2)}
        lr = arange(1)
        result = f(lr, params=params)
        same(result["w"], [0.0, 1.0, 2.0])
        same(lr, [0.0])
        for leaf in params.values():
            with pytest.raises(ArgumentError, match=r"given to lambda by donate_argnums"):
                double(leaf)


def test_a_fault_in_the_middle_leaves_nothing_to_read() -> None:
    f = jit(lambda x, i: (x * 2.0).at[i].set(1.0), donate_argnums=0)
    same(f(arange(3), 1), [0.0, 1.0, 4.0])
    x = arange(3)
    with pytest.raises(OutOfBoundsError):
        f(x, 7)
    with pytest.raises(ArgumentError, match="was donated and cannot be used again"):
        double(x)


def test_memory_counts_donated_results_once() -> None:
    x = np.zeros(1000)
    assert jit(double).lower(x).memory().peak == 16_000
    assert jit(double, donate_argnums=0).lower(x).memory().peak == 8_000


def test_a_function_compiled_ahead_donates() -> None:
    x = arange(3)
    same(jit(double, donate_argnums=0).lower(x).compile()(x), [0.0, 2.0, 4.0])
    with pytest.raises(ArgumentError, match="was donated and cannot be used again"):
        double(x)


def test_a_donated_array_that_is_dropped_is_let_go() -> None:
    f = jit(double, donate_argnums=0)
    for _ in range(3):
        x = arange(3)
        value = weakref.ref(x._value)
        result = f(x)
        del x, result
        assert value() is None


COPIES = [Array.copy, tnp.copy, tnp.array, copy.copy, copy.deepcopy]


@pytest.mark.parametrize("copied", COPIES, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_a_donated_copy_is_computed_in_and_leaves_its_original(copied: Callable[[Array], Array]) -> None:
    x = tnp.asarray(np.arange(64.0))
    y = copied(x)
    memory = y._value.ctypes.data
    found = jit(scaled, donate_argnums=0)(y, 2.0)
    assert not entries_enabled() or found._value.ctypes.data == memory
    same(x, np.arange(64.0))
