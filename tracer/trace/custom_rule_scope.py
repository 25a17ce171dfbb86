"""Scopes of custom rules: check that functions with rules of their own close over no differentiated array.

A rule says how results depend on arguments. Dependence on captured arrays would be ignored, or found by running the
function, depending on the mode; so it is an error in every mode. Staged functions take captured arrays as operands
(`tracer.primitives.control.custom.rule_functions`). This check is for functions that run with values, where captured
arrays are found at their use.
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
    """Running function with a custom rule, or its running rule.

    caller: its name. level: its arrays belong to traces up to that level, or to traces opened since `serial`;
    None if it is staged, when any open trace is allowed.
    """

    caller: str
    level: int | None
    serial: int
    outer: Enclosure | None

    def leaves_out(self, trace: Trace) -> bool:
        """Whether the trace differentiates the captured arrays of the function."""
        return self.level is not None and trace.level > self.level and trace.serial <= self.serial


def opened_last() -> int:
    """Return the serial of the innermost trace."""
    return 0 if state.innermost is None else state.innermost.serial


@contextmanager
def enclosed(caller: str, level: int | None, since: int | None = None) -> Iterator[None]:
    """Mark a function with a custom rule as running, for the length of a `with` block.

    since: the serial of the innermost trace when the function was called, if its rule runs later.
    """
    outer = state.enclosure
    state.enclosure = Enclosure(caller, level, opened_last() if since is None else since, outer)
    try:
        yield
    finally:
        state.enclosure = outer


def check_enclosed(trace: Trace, operands: Sequence[Any]) -> None:
    """Raise ClosureError if this trace differentiates an array that a running function with a custom rule captured."""
    enclosure = state.enclosure
    while enclosure is not None:
        if enclosure.leaves_out(trace):
            array = next(x for x in operands if isinstance(x, Array) and x._trace is trace)
            raise closure_error(enclosure.caller, described(array))
        enclosure = enclosure.outer


def closure_error(caller: str, array: str) -> ClosureError:
    """Return the error for an array, in words, that a function with a custom rule closes over."""
    batched = caller.startswith("custom_vmap ")
    remedy = "pass the array as an argument, by hand or by tracer.closure_convert"
    return ClosureError(
        message(
            f"{caller}{here()} closes over an array that is {'batched' if batched else 'differentiated'}",
            array,
            "its rule covers its arguments only",
            help=remedy if batched else f"{remedy}, or close over lax.stop_gradient of it",
        )
    )
