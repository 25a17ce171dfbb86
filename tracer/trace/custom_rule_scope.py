"""Functions with rules of their own, as they run: what they close over may not be differentiated with them.

A rule says how results depend on arguments. What they depend on besides would be left out, or found again by running
the function, as the mode has it: so it is an error in every mode. Staged functions have what they close over as
operands (`tracer.primitives.control.custom.rule_functions`); this is for those that run with values, where arrays come
to light when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ClosureError, message
from tracer.trace.array import Array, described
from tracer.trace.source import here
from tracer.trace.state import state

if TYPE_CHECKING:
    from tracer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A function that runs, or a rule of it.

    what: its name. level: its arrays belong to traces up to that level, and to such as were opened since `serial`;
    None where it is staged, and any open trace will do.
    """

    what: str
    level: int | None
    serial: int
    outer: Enclosure | None

    def leaves_out(self, trace: Trace) -> bool:
        """Whether what it closes over is differentiated there."""
        return self.level is not None and trace.level > self.level and trace.serial <= self.serial


def opened_last() -> int:
    """The serial of the innermost trace."""
    return 0 if state.innermost is None else state.innermost.serial


@contextmanager
def enclosed(what: str, level: int | None, since: int | None = None) -> Iterator[None]:
    """For the length of a `with` block, a function with rules of its own runs.

    since: the serial of the trace that was opened last when the function was called, if its rule runs later.
    """
    outer = state.enclosure
    state.enclosure = Enclosure(what, level, opened_last() if since is None else since, outer)
    try:
        yield
    finally:
        state.enclosure = outer


def check_enclosed(trace: Trace, operands: Sequence[Any]) -> None:
    """Raise ClosureError if an operation of this trace, which differentiates, is in a function that it leaves out."""
    enclosure = state.enclosure
    while enclosure is not None:
        if enclosure.leaves_out(trace):
            array = next(x for x in operands if isinstance(x, Array) and x._trace is trace)
            raise closure_error(enclosure.what, described(array))
        enclosure = enclosure.outer


def closure_error(what: str, array: str) -> ClosureError:
    """The error for an array, in words, that a function with rules of its own closes over."""
    batched = what.startswith("custom_vmap ")
    remedy = "pass the array as an argument, by hand or by tracer.closure_convert"
    return ClosureError(
        message(
            f"{what}{here()} closes over an array that is {'batched' if batched else 'differentiated'}",
            array,
            "its rule says what becomes of its arguments, and of nothing else",
            help=remedy if batched else f"{remedy}, or close over lax.stop_gradient of it",
        )
    )
