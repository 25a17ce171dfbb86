"""`x[a][b] = v` is refused where the write would be lost, and nowhere else."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import MutationError
from tracer.numpy.arrays import lost_writes

counted = pytest.mark.skipif(lost_writes._WITHOUT_NAME == 0, reason="this Python lends names' references")


def chain(x: Any) -> None:
    x[0][1] = 1


def chain_in_place(x: Any) -> None:
    x[0][1] += 1


def chain_of_slices(x: Any) -> None:
    x[0][1:] = 1


def chain_of_masks(x: Any) -> None:
    x[x == 0][1] = 1


def chain_among_targets(x: Any) -> None:
    x[0][1], _ = 1, 2


def part_of_a_transpose(x: Any) -> None:
    x.T[0] = 1


def part_of_a_call(x: Any) -> None:
    tnp.reshape(x, (-1,))[0] = 1


LOST = [
    chain, chain_in_place, chain_of_slices, chain_of_masks, chain_among_targets, part_of_a_transpose, part_of_a_call,
]  # fmt: skip


@counted
@pytest.mark.parametrize("write", LOST)
def test_writes_that_would_be_lost_are_refused(write: Callable[[Any], None]) -> None:
    with pytest.raises(MutationError, match="the write would be lost") as caught:
        write(tnp.zeros((2, 3)))
    assert caught.traceback[-1].name == write.__name__


@counted
def test_the_error_names_the_line_and_the_remedy() -> None:
    with pytest.raises(MutationError) as caught:
        chain(tnp.zeros((2, 3)))
    line = chain.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"x[a][b] = v at test_lost_writes.py:{line}: the write would be lost, because x[a] is a temporary copy\n"
        "  got f64[3] to write to\n"
        "  help: index once, x[a, b] = v, or name the part and put it back: y = x[a]; y[b] = v; x[a] = y"
    )


def chained_in_a_function(x: Any) -> Any:
    y = x.copy()
    y[0][1] = 1
    return tnp.sum(y)


@counted
@pytest.mark.parametrize("transform", [tracer.jit, tracer.grad, tracer.vmap])
def test_traced_writes_are_refused_too(transform: Any) -> None:
    with pytest.raises(MutationError, match="the write would be lost"):
        transform(chained_in_a_function)(tnp.zeros((2, 2, 3)))


def written(x: Any) -> list[Any]:
    """Rows of x, the first element of each set to 5 in one of the ways that Python has."""
    made = []
    row = x[0]
    row[0] = 5
    made.append(row)
    rows = [x[0]]
    rows[0][0] = 4
    rows[0][0] += 1
    table = {"row": x[0]}
    table["row"][0:1] = 5

    class Held:
        row = None

    held = Held()
    held.row = x[0]
    held.row[0] = 5

    class Slotted:
        __slots__ = ("row",)

    slotted = Slotted()
    slotted.row = x[0]
    slotted.row[0] = 5
    first, second = x[0], x[1]
    first[0] = 5
    second[0] = 5
    for each in [x[0]]:
        each[0] = 5
        made.append(each)
    (named := x[0])[0] = 5

    @contextmanager
    def manager() -> Iterator[Any]:
        yield x[0]

    with manager() as managed:
        managed[0] = 5
    operated = x[0]
    operator.setitem(operated, 0, 5)
    called = x[0]
    partial(operator.setitem, called, 0)(5)
    enclosed = x[0]

    def inner() -> None:
        enclosed[0] = 5

    inner()

    def generator() -> Iterator[Any]:
        yielded = x[0]
        yielded[0] = 5
        yield yielded

    copied = copy.copy(x[0])
    copied[0] = 5
    listed = [x[0] for _ in range(2)]
    [r.__setitem__(0, 5) for r in listed]
    made += [rows[0], table["row"], held.row, slotted.row, first, second, named, managed, operated, called, enclosed]
    return [*made, next(generator()), copied, *listed]


def test_writes_to_what_is_held_are_made() -> None:
    expected = np.array([5.0, 0, 0])
    for _ in range(20):  # the interpreter specialises what runs often
        for found in (written(tnp.zeros((2, 3))), tracer.jit(written)(tnp.zeros((2, 3)))):
            assert len(found) == 17
            assert all(np.array_equal(row, expected) for row in found)
    jacobian = tracer.jacobian(lambda x: tnp.stack(written(x)))(tnp.zeros((2, 3)))
    assert (np.asarray(jacobian)[:, 0] == 0).all()


def test_writes_to_arrays_in_object_arrays_and_by_functions_are_made() -> None:
    box = np.empty(1, object)
    box[0] = tnp.zeros(3)
    box[0][0] = 5
    assert float(box[0][0]) == 5
    operator.setitem(tnp.zeros(3), 0, 5)  # a call is no assignment
    tnp.zeros(3).__setitem__(0, 5)
