"""Calls that come often are replayed: with the same bits, types and errors, and only where nothing else can happen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax, nn, random
from tracer.errors import OutOfBoundsError, ShapeError
from tracer.ir.types import array_type
from tracer.primitives.linalg.dot_general import dot_general_p
from tracer.runtime import compiled_plans
from tracer.runtime.eager import call_cache
from tracer.runtime.eager.call_cache import often, replayed
from tracer.scipy import special
from tracer.trace import trees
from tracer.trace.array import concrete_value

RNG = np.random.default_rng(5)
X = tnp.asarray(RNG.normal(size=(5, 7)))
Y = tnp.asarray(RNG.normal(size=(7, 3)).astype(np.float32))
RAW = random.PRNGKey(3)
N = tnp.asarray(RNG.integers(0, 5, size=(4,)))

CALLS: dict[str, Callable[[], Any]] = {
    "sum": X.sum,
    "sum over an axis": lambda: tnp.sum(Y, axis=0, keepdims=True),
    "mean": lambda: tnp.mean(X, axis=1),
    "var": lambda: tnp.var(Y),
    "argmax": lambda: tnp.argmax(X, axis=0),
    "matmul": lambda: X @ Y,
    "einsum": lambda: tnp.einsum("ij,jk->ki", X, Y),
    "stack": lambda: tnp.stack([X, X + 1.0], axis=1),
    "T": lambda: X.T,
    "reshape": lambda: X.reshape(7, -1),
    "astype": lambda: X.astype("int32"),
    "an index": X.at[N, 1:3].get,
    "an index of an Array": lambda: X.at[N[0]].get(mode="clip"),
    "an update": lambda: X.at[N].add(2.0),
    "a slice set": lambda: X.at[1:3].set(tnp.ones(7)),
    "zeros": lambda: tnp.zeros(3, "float32"),
    "several results": lambda: tnp.split(X, [2, 3]),
    "unstack": lambda: tnp.unstack(Y),
    "cumsum": lambda: tnp.cumsum(Y, axis=1),
    "fmin": lambda: tnp.fmin(X, 0.5),
    "gcd": lambda: tnp.gcd(N, 6),
    "logical_or": lambda: tnp.logical_or(X > 0, False),
    "frexp": lambda: tnp.frexp(X),
    "packbits": lambda: tnp.packbits(N),
    "triu_indices": lambda: tnp.triu_indices(4, 1),
    "fftshift": lambda: tnp.fft.fftshift(Y),
    "kl_div": lambda: special.kl_div(X, abs(X)),
    "igamma": lambda: lax.igamma(2.0 + abs(Y), abs(Y)),
    "lax.stack": lambda: lax.stack([X, X], 1),
    "lu": lambda: lax.linalg.lu(X),
    "solve": lambda: tnp.linalg.solve(tnp.stack([X[:5, :5]] * 2), X),
    "fold_in": lambda: random.fold_in(RAW, 7),
    "PRNGKey": lambda: random.PRNGKey(-1),
    "weak": lambda: tnp.sum(tnp.full((3,), 2.0)),
}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is made at the third call."""
    monkeypatch.setattr(often, "calls", 3)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions for which plans were made."""
    made: list[str] = []
    original = call_cache._staged

    def spy(function: Any, *rest: Any) -> Any:
        staged = original(function, *rest)
        if staged is not None:
            made.append(staged.program.name)
        return staged

    monkeypatch.setattr(call_cache, "_staged", spy)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_replayed_calls_have_the_same_bits_and_types(name: str, planned: list[str]) -> None:
    results = [trees.flatten(CALLS[name]())[0] for _ in range(6)]
    assert planned
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            assert np.asarray(first).tobytes() == np.asarray(later).tobytes()
            assert first is not later


def test_zeros_of_either_sign_are_different_calls() -> None:
    for _ in range(5):
        assert not np.signbit(tnp.full(2, 0.0)).any()
        assert np.signbit(tnp.full(2, -0.0)).all()


def test_numbers_of_different_kinds_are_different_calls() -> None:
    for _ in range(5):
        assert tnp.full(2, 1).dtype == "int64"
        assert tnp.full(2, 1.0).dtype == "float64"
        assert tnp.full(2, True).dtype == "bool"


@pytest.mark.parametrize("replays", [1, 500])
def test_errors_of_elements_are_those_of_the_first_call(replays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "replays", replays)
    messages = set()
    for index in [1] * 5 + [9]:
        place = tnp.asarray(index)
        if index == 1:
            X[place]
        else:
            for _ in range(2):
                with pytest.raises(OutOfBoundsError) as caught:
                    X[place]
                messages.add(str(caught.value))
    assert len(messages) == 1
    assert "index 9 is out of bounds for axis 0 with size 5, at test_replay.py" in messages.pop()


@pytest.mark.parametrize(
    ("call", "good", "bad"),
    [
        (lambda x: tnp.digitize(X, x), [0.0, 1.0, 2.0], [0.0, 5.0, 2.0]),
        (lambda x: tnp.quantile(X, x), [0.5, 1.0], [0.5, 1.5]),
        (lambda x: tnp.repeat(tnp.ones(2), x), [1, 2], [1, -2]),
        (tnp.bincount, [1, 2], [1, -2]),
        (lambda x: tnp.histogram(x, 3), [1.0, 2.0], [1.0, np.inf]),
        (lambda x: tnp.take(X, x), [1, 2], [1, 99]),
        (lambda x: tnp.take_along_axis(N, x, 0), [1, 2], [1, 99]),
        (lambda x: tnp.choose(x, [N, N]), [0, 1, 0, 1], [0, 1, 2, 0]),
        (lambda x: tnp.delete(N, x), [1, 2], [1, 99]),
        (lambda x: tnp.insert(N, x, 7), [1, 2], [1, 99]),
        (lambda x: tnp.reshape(N, tuple(x)), [2, 2], [2, 3]),
        (lambda x: X[x], [1, 2], [1, 99]),
        (lambda x: X.at[x].get(), [1, 2], [1, 99]),
        (lambda x: X.at[x].add(1.0), [1, 2], [1, 99]),
        (N.take, [1, 2], [1, 99]),
        (lambda x: tracer.ops.segment_sum(N, x), [0, 1, 1, 0], [0, 1, 1, 2]),
    ],
)
@pytest.mark.parametrize("replays", [1, 500])
def test_checks_of_elements_outlive_sixty_good_calls(
    call: Callable[[Any], Any], good: list[Any], bad: list[Any], replays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(elements: list[Any]) -> tuple[Any, ...]:
        try:
            leaves, _ = trees.flatten(call(tnp.asarray(elements)))
            return tuple((x.type, np.asarray(x).tobytes()) for x in leaves)
        except Exception as error:
            return type(error), str(error)

    monkeypatch.setattr(often, "replays", replays)
    first = outcome(good), outcome(bad)
    assert first[0] != first[1]
    for _ in range(60):
        assert outcome(good) == first[0]
    assert outcome(bad) == first[1]


def test_kinds_that_get_no_plan_are_not_counted_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = call_cache.Calls(lambda x: x + 1.0 if concrete_value(x) is None else x * 2.0)
    for _ in range(often.calls + 1):
        calls.call(X)
    assert [*calls.plans.values()] == [None]
    noted: list[Any] = []
    monkeypatch.setattr(calls, "note", lambda *given: noted.append(given))
    assert calls.call(X).shape == X.shape
    assert not noted
    calls.call(Y)
    assert len(noted) == 1
    calls.version -= 1  # as where a setting has changed
    calls.call(X)
    assert len(noted) == 2


def test_what_asks_for_elements_gets_no_plan(planned: list[str]) -> None:
    @replayed
    def halved(x: Any) -> Any:
        known = concrete_value(x)
        return x if known is not None and known.sum() > 1 else x / 2

    for _ in range(60):
        assert halved(tnp.ones(2)).tolist() == [1, 1]
    assert halved(tnp.zeros(2) + 0.25).tolist() == [0.125, 0.125]
    assert "halved" not in planned


def test_calls_that_fail_fail_every_time() -> None:
    for _ in range(5):
        with pytest.raises(ShapeError):
            X @ X


def test_traced_arrays_are_not_replayed(planned: list[str]) -> None:
    for _ in range(5):
        assert "reduce_sum" in str(tracer.make_program(tnp.sum)(X))
        np.testing.assert_array_equal(tracer.grad(tnp.sum)(X), np.ones((5, 7)))
    assert "sum" not in planned


@pytest.mark.parametrize("replays", [1, 500])
def test_what_is_given_back_as_it_came_is_the_same_value_on_another_handle(
    replays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(often, "replays", replays)
    x = tnp.zeros((50, 70))
    for _ in range(6):
        y = x.reshape(50, 70)
        assert y is not x
        assert y._value is x._value


def test_a_setting_that_changes_for_good_starts_anew(planned: list[str]) -> None:
    x = tnp.ones(11)
    for _ in range(4):
        tnp.sum(x)
    before = tracer.config.threads
    tracer.config.threads = 1
    try:
        for _ in range(4):
            tnp.sum(x)
    finally:
        tracer.config.threads = before
    assert planned == ["sum", "sum"]


def test_kinds_of_calls_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "kinds", 4)

    @replayed
    def double(x: Any, times: int) -> Any:
        return tnp.sum(x) * times

    for times in (*range(10), *range(10)):
        for _ in range(4):
            assert float(double(X, times)) == float(tnp.sum(X) * times)


def test_threads_replay_at_the_same_time() -> None:
    expected = np.asarray(tnp.sum(X, axis=1))
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(300):
            if np.asarray(tnp.sum(X, axis=1)).tobytes() != expected.tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_numpy_does_not_warn() -> None:
    x = tnp.asarray([1e308, 1e308])
    for _ in range(5):
        assert np.isinf(tnp.sum(x))


@pytest.mark.parametrize("name", CALLS)
def test_compiled_calls_have_the_same_bits_and_types(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "replays", 2)
    results = [trees.flatten(CALLS[name]())[0] for _ in range(12)]
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            assert np.asarray(first).tobytes() == np.asarray(later).tobytes()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions whose calls were compiled; a plan is compiled when it first ran."""
    made: list[str] = []
    original = compiled_plans.compiled_plan

    def spy(staged: Any, *rest: Any) -> Any:
        found = original(staged, *rest)
        if found is not None:
            made.append(staged.program.name)
        return found

    monkeypatch.setattr(call_cache.compiled_plans, "compiled_plan", spy)
    monkeypatch.setattr(often, "replays", 1)
    return made


def test_what_goes_to_blas_is_not_compiled(compiled: list[str]) -> None:
    """NumPy's BLAS is not SciPy's."""
    x = tnp.ones((50, 50))
    for _ in range(8):
        tnp.tensordot(x, x, 2)
        tnp.stack([N, N])
    assert compiled == ["stack"]


def test_long_sums_of_floats_are_not_compiled(compiled: list[str]) -> None:
    """NumPy halves long rows; small arrays alone have its order written out."""
    short, long = tnp.arange(13.0), tnp.arange(1300.0)
    for _ in range(8):
        tnp.sum(short)
        tnp.sum(long)
        tnp.cumsum(short)
        tnp.cumsum(long)
    assert sorted(compiled) == ["cumsum", "sum"]


COMPOSITES: dict[str, Callable[[], Any]] = {
    "softmax": lambda: nn.softmax(Y, axis=1),
    "gelu": lambda: nn.gelu(X),
    "relu": lambda: nn.relu(X),
    "normals": lambda: random.normal(KEY, (3, 2)),
    "a permutation": lambda: random.permutation(KEY, X),
    "keys": lambda: random.key_data(random.split(KEY, 3)),
    "std": lambda: tnp.std(Y, axis=0),
    "prod": lambda: tnp.prod(X, axis=1),
    "a running sum": lambda: tnp.cumsum(X, axis=1),
    "a search": lambda: tnp.searchsorted(tnp.arange(5.0), X),
    "interpolation": lambda: tnp.interp(X, tnp.arange(5.0), tnp.arange(5.0) ** 2),
    "isclose": lambda: tnp.isclose(X, X + 1e-9),
    "a slice set": lambda: X.at[1:3, ::2].set(0.0, mode="clip"),  # without a mode NumPy writes it
    "additions at places": lambda: X.at[N].add(0.1),
    "elements": lambda: lax.dynamic_slice(X, (N[0], N[1]), (2, 3)),
    "a norm": lambda: tnp.linalg.norm(X),
    "halves of either sign": lambda: tnp.round(X * 2, 0),
    "percentile": lambda: tnp.percentile(X, 30, axis=0),
}
KEY = random.key(7)


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_are_compiled_to_the_same_bits(name: str, compiled: list[str]) -> None:
    results = [trees.flatten(COMPOSITES[name]())[0] for _ in range(8)]
    assert compiled
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            assert np.asarray(first).tobytes() == np.asarray(later).tobytes()


def test_other_arguments_go_another_way(compiled: list[str]) -> None:
    for _ in range(6):
        assert not np.signbit(X.at[0].set(0.0)[0]).any()
        assert np.signbit(X.at[0].set(-0.0)[0]).all()
        assert X.at[1:2].set(1.0)[1, 0] == 1.0
        assert X.at[1:3].set(1.0)[2, 0] == 1.0
        assert X.at[1:3].set(2.0)[2, 0] == 2.0
        assert tnp.full(2, True).dtype == "bool"
        assert tnp.full(2, 1).dtype == "int64"
    assert compiled


def test_arrays_by_name_are_told_apart_in_any_order(compiled: list[str]) -> None:
    mask, start = tnp.asarray([True, False, True]), tnp.asarray(0.5)
    x = tnp.asarray([1.0, 2.0, 4.0])
    for _ in range(6):
        assert tnp.sum(x, where=mask, initial=start) == 5.5
        assert tnp.sum(x, initial=start, where=mask) == 5.5
    assert compiled


def test_faults_of_compiled_calls_name_the_line_of_the_call(compiled: list[str]) -> None:
    for index in [1] * 6 + [9]:
        place = tnp.asarray(index)
        if index == 1:
            X.at[place].get()
            tnp.take(X, place, axis=0)
        else:
            with pytest.raises(OutOfBoundsError, match=r"index 9 is out of bounds .* at test_replay.py"):
                X.at[place].get()
            with pytest.raises(OutOfBoundsError):
                tnp.take(X, place, axis=0)
    assert compiled


@pytest.mark.parametrize("name", ["matmul", "concatenate", "sum", "take"])
def test_numpys_arrays_are_replayed_and_stay_apart(name: str, rng: np.random.Generator) -> None:
    function = replayed(getattr(tnp, name).__wrapped__)

    for call in range(2 * often.calls):
        x = rng.normal(size=(3, 3))
        given = {"concatenate": ([x, tnp.asarray(x)],), "take": (x, np.array([2, 0]), 0), "matmul": (x, x)}
        arguments = given.get(name, (x,))
        found, expected = function(*arguments), getattr(np, name)(*arguments)
        x[...] = 7.0
        np.testing.assert_array_equal(found, expected, err_msg=str(call))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quick_products_have_the_bits_of_the_reference(dtype: Any, rng: np.random.Generator) -> None:
    for m, k, n in ((4, 4, 4), (1, 5, 3), (5, 1, 2), (3, 7, 1), (17, 33, 9), (64, 64, 64), (2, 0, 3)):
        x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        for a, b in ((x, y), (x, y[:, 0]), (x[0], y), (x[0], y[:, 0])):
            types = array_type(np.dtype(dtype), a.shape), array_type(np.dtype(dtype), b.shape)
            params = {"dimension_numbers": (((a.ndim - 1,), (0,)), ((), ())), "precision": None,
                      "preferred_element_type": np.dtype(dtype)}  # fmt: skip
            assert dot_general_p.prepared is not None
            quick = dot_general_p.prepared(*types, **params)
            if quick is None:  # what is small beside a vector is added up in NumPy's order
                assert 1 in (a.ndim, b.ndim, *a.shape[:-1], *b.shape[1:])
                continue
            found = quick(a, b)
            expected = dot_general_p.reference(a, b, **params)  # type: ignore[operator]
            assert type(found) is np.ndarray
            assert found.tobytes() == expected.tobytes()
            assert found.flags.c_contiguous
            assert found.base is None


@pytest.mark.parametrize("n", [1, 2, 4, 7, 8, 16, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_small_matrices_keep_their_bits(
    dtype: str, n: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(often, "replays", 3)
    multiply = replayed(tnp.matmul.__wrapped__)
    for _ in range(20):
        a, b = (rng.normal(size=(n, n)).astype(dtype) for _ in range(2))
        assert np.asarray(multiply(tnp.asarray(a), tnp.asarray(b))).tobytes() == np.dot(a, b).tobytes()


def _drawn(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    parts = 4 * rng.normal(size=(2, *shape))
    return tnp.asarray((parts[0] + 1j * parts[1] if dtype.startswith("complex") else parts[0]).astype(dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 11, 16, 31, 64, 65, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["dot", "vdot", "inner", "matmul", "vecdot"])
def test_products_of_vectors_keep_their_bits(
    name: str, dtype: str, n: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(often, "replays", 3)
    original = getattr(tnp, name).__wrapped__
    multiply = replayed(original)
    for _ in range(2 * often.calls + 3):
        a, b = (_drawn((n,), dtype, rng) for _ in range(2))
        assert np.asarray(multiply(a, b)).tobytes() == np.asarray(original(a, b)).tobytes()


@pytest.mark.parametrize(
    "shapes", [((4, 4), (4,)), ((3, 17), (17,)), ((5,), (5, 3)), ((1, 7), (7, 1)), ((32,), (32, 32))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32"])
def test_small_products_with_vectors_are_compiled_to_their_bits(
    dtype: str, shapes: Any, compiled: list[str], rng: np.random.Generator
) -> None:
    for _ in range(8):
        a, b = (_drawn(shape, dtype, rng) for shape in shapes)
        for x, y in ((a, b), (b.T, a.T)):
            found, expected = x @ y, tnp.matmul.__wrapped__(x, y)
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
            assert np.allclose(found, np.asarray(x) @ np.asarray(y), rtol=1e-4, atol=1e-4)
    assert "matmul" in compiled


def test_seeds_and_folded_numbers_are_of_one_kind(planned: list[str]) -> None:
    keys = [random.fold_in(random.key(np.uint16(n)), 2 * n) for n in range(8)]
    assert planned.count("_seeded") == 1
    assert planned.count("_folded") <= 1  # others may have folded in numbers before
    again = random.fold_in(random.wrap_key_data(np.array([0, 7], np.uint32)), np.uint32(14))
    assert random.key_data(keys[7]).tolist() == random.key_data(again).tolist()


def test_long_calls_are_planned_for_sooner(monkeypatch: pytest.MonkeyPatch, planned: list[str]) -> None:
    monkeypatch.setattr(often, "calls", 8)
    monkeypatch.setattr(often, "short", 1e-9)
    total = replayed(tnp.sum.__wrapped__)
    for _ in range(5):  # each counts for three
        total(X)
    assert planned == ["sum"]
