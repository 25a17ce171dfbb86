"""Loaders: epochs are permutations, positions are two integers, threads end, and errors say what does not fit."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import data, errors, jit, random
from tracer.data.loader import Order

KEY = random.key(7)
ROWS = np.arange(23)


def flat(batches: Any) -> list[int]:
    return [int(row) for batch in batches for row in batch]


def threads() -> int:
    return sum(thread.name == "tracer.data" for thread in threading.enumerate())


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_epochs_are_permutations_and_differ(prefetch: int) -> None:
    loader = data.Loader(ROWS, 5, key=KEY, epochs=2, drop_last=False, prefetch=prefetch)
    batches = [batch.tolist() for batch in loader]
    first, second = flat(batches[:5]), flat(batches[5:])
    assert sorted(first) == sorted(second) == ROWS.tolist()
    assert first != second
    assert [len(batch) for batch in batches[:5]] == [5, 5, 5, 5, 3]
    assert batches[:5] == [batch.tolist() for batch in loader.batches(0)]
    assert threads() == 0


def test_without_a_key_rows_come_in_order_and_the_last_are_dropped() -> None:
    loader = data.Loader((ROWS, {"y": -ROWS}), 5, epochs=1)
    assert len(loader) == 4
    batches = list(loader)
    assert flat(x for x, _ in batches) == list(range(20))
    np.testing.assert_array_equal(batches[1][1]["y"], -np.arange(5, 10))


def test_padded_batches_have_weights_that_make_sums_exact() -> None:
    loader = data.Loader(ROWS.astype("float64"), 5, pad=True, epochs=1)
    batches = list(loader)
    assert {x.shape for x, _ in batches} == {(5,)}
    assert sum(float((x * weight).sum()) for x, weight in batches) == ROWS.sum()
    assert batches[-1][1].tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 7])
def test_a_loader_goes_on_where_another_one_was(taken: int) -> None:
    def made() -> data.Loader:
        return data.Loader(ROWS, 5, key=KEY, epochs=3, map=lambda x, key: x + random.randint(key, (), 0, 1000))

    whole = [np.asarray(batch).tolist() for batch in made()]
    loader = made()
    for batch, _ in zip(loader, range(taken), strict=False):
        del batch
    # The iterator above has handed out one more batch than the range has numbers.
    loader.seek({"epoch": taken // 4, "batch": taken % 4})
    state = loader.state
    rest = [np.asarray(batch).tolist() for batch in made().seek(state)]
    assert whole[taken:] == rest


def test_the_state_counts_what_was_consumed_not_what_was_prepared() -> None:
    loader = data.Loader(ROWS, 5, epochs=2, prefetch=4)
    seen = []
    for _ in loader:
        seen.append(tuple(loader.state.values()))
        if len(seen) == 5:
            break
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    assert flat([next(iter(loader))]) == [5, 6, 7, 8, 9]


def test_shards_divide_the_batches_of_one_process() -> None:
    whole = list(data.Loader(ROWS, 6, key=KEY, epochs=1))
    parts = [list(data.Loader(ROWS, 2, key=KEY, epochs=1, shard=(n, 3))) for n in range(3)]
    for number, batch in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[number] for part in parts]), batch)


def test_orders_of_many_rows_are_permutations() -> None:
    order = Order(whole=0, block=4, blocks=3)

    def permuted(purpose: str, number: int, count: int) -> Any:
        return np.random.default_rng([len(purpose), number]).permutation(count)

    for count in (24, 41, 47):
        whole = order.rows(permuted, count, 0, count)
        assert sorted(whole) == list(range(count)) != list(whole)
        for start in range(0, count, 5):
            np.testing.assert_array_equal(order.rows(permuted, count, start, start + 5), whole[start : start + 5])


def test_orders_are_uniform() -> None:
    """Every row is as often first: a chi-squared statistic of 15 degrees of freedom, its quantile at 1e-4."""
    loader = data.Loader(np.arange(16), 1, key=random.key(1))
    first = Counter(int(next(loader.batches(epoch))[0]) for epoch in range(800))
    assert sum((first[row] - 50) ** 2 / 50 for row in range(16)) < 44.3


def test_sources_of_other_kinds() -> None:
    windows = data.Windows(np.arange(20), 6, stride=4)
    assert len(windows) == 4
    np.testing.assert_array_equal(windows[np.array([3])], [np.arange(12, 18)])
    rows = data.Rows([{"x": np.full(2, n), "n": n} for n in range(5)])
    batch = next(iter(data.Loader(rows, 2, prefetch=0)))
    np.testing.assert_array_equal(batch["x"], [[0, 0], [1, 1]])
    ours = next(iter(data.Loader(tnp.arange(6.0), 3)))
    assert isinstance(ours, np.ndarray)
    assert float(jit(lambda x: x.sum())(ours)) == 3.0


def test_split_divides_all_rows(tmp_path: Any) -> None:
    parts = data.split(ROWS, [0.5, 3, -1], key=KEY)
    assert list(map(len, parts)) == [12, 3, 8]
    assert sorted(int(part[np.array([n])][0]) for part in parts for n in range(len(part))) == ROWS.tolist()
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(6, 2))
    mapped = data.load_npy(tmp_path / "x.npy")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(next(iter(data.Loader(mapped, 2, prefetch=0))), [[0, 1], [2, 3]])


def test_ahead_hands_on_errors_with_their_traceback_and_ends_its_thread() -> None:
    def broken() -> Any:
        yield 1
        raise KeyError("no such row")

    iterator = data.ahead(broken(), depth=3)
    assert next(iterator) == 1
    with pytest.raises(KeyError, match="no such row") as error:
        next(iterator)
    assert error.traceback[-1].name == "broken"
    assert list(iterator) == []
    assert threads() == 0


def test_threads_end_with_iterators_that_are_dropped_or_left() -> None:
    closed = []

    def endless() -> Any:
        try:
            while True:
                yield 0
        finally:
            closed.append(True)

    iterator = data.ahead(endless())
    next(iterator)
    threads_of = [thread for thread in threading.enumerate() if thread.name == "tracer.data"]
    del iterator
    gc.collect()
    for thread in threads_of:
        thread.join(10)
    assert closed == [True]
    for _ in data.Loader(ROWS, 5):
        break
    gc.collect()
    assert threads() == 0


def test_devices_take_batches() -> None:
    (x,) = data.Loader(ROWS, 23, device=tracer.devices()[0], epochs=1)
    assert isinstance(x, tracer.Array)
    assert isinstance(next(data.ahead([np.ones(2)], device=tracer.devices()[0])), tracer.Array)


@each(
    ("run", "text"),
    [
        (lambda: data.Loader((ROWS, ROWS[:3]), 2), "the arrays must have equal first axes"),
        (lambda: data.Loader(ROWS, 24), "an epoch has no batch"),
        (lambda: data.Loader(ROWS, 0), "takes a batch of at least 1"),
        (lambda: data.Loader(ROWS, 1, shard=(2, 2)), "takes a batch of at least 1 and a shard"),
        (lambda: data.Loader(iter([1]), 1), "takes a tree of arrays, or an object with __len__"),
        (lambda: data.Loader({}, 1), "takes a tree of arrays"),
        (lambda: data.Loader(ROWS, 5).seek({"epoch": 0, "batch": 4}), "an epoch has batches 0 to 3"),
        (lambda: data.Windows(ROWS, 24), "takes a sequence, a length within it"),
        (lambda: data.split(ROWS, [20, 20]), "the parts must fit"),
        (lambda: data.ahead([], depth=0), "prepares at least one element"),
    ],
)
def test_errors(run: Any, text: str) -> None:
    with pytest.raises(errors.TracerError) as error:
        run()
    assert text in str(error.value)
    assert "test_loader.py" in str(error.value)
