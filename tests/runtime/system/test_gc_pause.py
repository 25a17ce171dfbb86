"""The cyclic collector is paused while a program is compiled, and is afterwards as it was."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from tracer.runtime.system import gc_pause
from tracer.runtime.system.gc_pause import collector_paused


@pytest.fixture(autouse=True)
def collector_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The collector as in a process that has frozen nothing, which the suite has."""
    was_on = gc.isenabled()
    monkeypatch.setattr(gc_pause, "_pauses", gc_pause._Pauses())
    gc.unfreeze()
    yield
    gc.freeze()
    (gc.enable if was_on else gc.disable)()


def test_pauses_nest_and_end_with_errors() -> None:
    gc.enable()

    def fail() -> None:
        with collector_paused():
            with collector_paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_the_last_thread_turns_it_on_again() -> None:
    gc.enable()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collector_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with collector_paused():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_what_was_made_meanwhile_counts_as_old() -> None:
    gc.enable()
    with collector_paused():
        made = [[n] for n in range(5000)]
    assert gc.get_count()[0] < 5000
    assert not gc.get_freeze_count()
    assert any(x is made[7] for x in gc.get_objects(generation=2))


def test_what_the_user_froze_stays_frozen() -> None:
    gc.enable()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            pass
        assert gc.get_freeze_count() >= frozen - 100  # less what was freed in between
        assert gc_pause._pauses.froze
    finally:
        gc.unfreeze()


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts them by a visit of each, which a large server would pay at every trace."""
    counts = iter([10**6])
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    pauses = gc_pause._Pauses()
    pauses.move()
    pauses.move()
    assert pauses.froze


def test_cycles_go_once_many_objects_were_moved() -> None:
    """They lie in the oldest generation, which Python's collector rarely visits where functions are traced again and
    again.
    """

    class Node:
        pass

    gc.enable()
    node = Node()
    node.itself = node  # type: ignore[attr-defined]
    alive = weakref.ref(node)
    del node
    gc_pause._pauses.moved = 0
    with collector_paused():
        pass
    assert alive() is not None
    gc_pause._pauses.moved = 1 << 40
    with collector_paused():
        pass
    assert alive() is None
    assert gc_pause._pauses.moved == 0


def test_all_objects_are_counted_once_a_quarter_of_them_may_have_moved() -> None:
    """A count visits every object, so a large process must not count at every pause."""
    pauses = gc_pause._Pauses(many=10)
    pauses.moved = 11
    pauses.move()
    assert pauses.moved >= 11
    assert pauses.enough > 1000
