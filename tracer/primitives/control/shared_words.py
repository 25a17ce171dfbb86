"""progress: a count in a shared word, 64-bit memory that compiled code writes and Python reads from another thread."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import IO, NoRule, Primitive, Structured
from tracer.ir.types import Type, array_type
from tracer.once import once
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.base.rules import zero_jvp
from tracer.trace.source import here
from tracer.trace.trace import as_literal, bind_all

COUNT: Final = 1 << 14
"""Number of shared words."""


@once
def words() -> Any:
    """Return the words, an array of int64 that lives as long as the process."""
    return (ctypes.c_int64 * COUNT)()


class _Free:
    """Words that nobody holds, in pairs: one for a value, the next for the runs of a clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numbers = list(range(COUNT - 2, -1, -2))


_free = _Free()


class Word:
    """Pair of words that compiled code writes. Their numbers are used again once the object is gone.

    number: of the first word.
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self) -> None:
        """Raise IndexError where all are held."""
        with _free.lock:
            self.number = _free.numbers.pop()
        self.clear()
        weakref.finalize(self, _release, self.number).atexit = False

    @property
    def value(self) -> int:
        """The first word."""
        return int(words()[self.number])

    @property
    def runs(self) -> int:
        """The second word."""
        return int(words()[self.number + 1])

    def add(self, amount: int) -> None:
        """Add to the first word."""
        words()[self.number] += amount

    def clear(self) -> None:
        """Set both to 0."""
        words()[self.number] = words()[self.number + 1] = 0

    def __tracer_digest__(self) -> str:
        """Tell programs with different words apart."""
        return f"word#{self.number}"

    def __repr__(self) -> str:
        return f"<word {self.number}>"


def _release(number: int) -> None:
    with _free.lock:
        _free.numbers.append(number)


def _infer(guard: Type, *, word: Word) -> tuple[Type, ...]:
    if guard != array_type(dtypes.BOOL, ()):
        raise ShapeError(message(f"progress{here()} takes a guard bool[]", f"got {guard}"))
    return ()


def _reference(guard: Any, *, word: Word) -> tuple[()]:
    word.add(int(guard))
    return ()


def _batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, word: Word) -> Any:
    """Count once for all lanes, while one of them lives."""
    return bind_all(progress_p, [reduce_or(ctx.to_front(xs[0], axes[0]), (0,))], {"word": word}), []


progress_p = Primitive(
    name="progress", infer=_infer, reference=_reference,
    jvp=zero_jvp, transpose=NoRule("progress has no outputs"), batch=_batch,
    lower=Structured("progress"), effects=IO, multiple=True, guard=0,
    laws={"text": "the word is memory of the process, which prints as its number"},
)  # fmt: skip


def count_in(word: Word) -> None:
    """Add 1 to a shared word, each time the code runs.

    >>> word = Word()
    >>> tracer.jit(lambda: count_in(word))()
    >>> word.value
    1
    """
    bind_all(progress_p, [as_literal(True)], {"word": word})


PROGRESS = (progress_p,)
