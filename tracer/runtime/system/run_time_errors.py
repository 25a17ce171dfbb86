"""Errors of failed calls of compiled programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never

from tracer.codegen.llvm.toolchain.abi import Context
from tracer.codegen.status import Status
from tracer.errors import OutOfMemoryError

if TYPE_CHECKING:
    from tracer.schedule.elements.gather_bounds import FaultSite


on_failure: dict[Callable[[], None], int] = {}
"""Functions that are called when a call fails on the thread, whose number is the value."""


def failed() -> None:
    """Call the functions that wait for a failure on this thread."""
    for function, thread in tuple(on_failure.items()):
        if thread == threading.get_ident():
            function()


def error_of(sites: Sequence[FaultSite], status: Status, context: Context) -> BaseException | None:
    """Return the exception for a call's status; None for success, and where Python has a pending exception.

    sites: the program's faulting equations.
    """
    if status is not Status.DONE:
        failed()
    match status:
        case Status.DONE | Status.RAISED:
            return None
        case Status.FAULT:
            site = sites[context.fault_site]
            values: tuple[int, ...] = tuple(context.fault_values)
            error: Exception = site.error(values, int(context.fault_position))
            return error
        case Status.INTERRUPTED:
            return KeyboardInterrupt()
        case Status.NO_MEMORY:
            return OutOfMemoryError(
                "the stack of a compiled loop could not grow: the values kept for the backward pass of a while_loop, "
                "or of a scan, do not fit in memory"
            )
        case _:
            assert_never(status)
