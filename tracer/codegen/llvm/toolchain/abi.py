"""Binary interface between compiled programs and the runtime that calls them.

A compiled module exports

    i32 @tracer_main(ptr %buffers, ptr %context)

`buffers` points to an array of pointers, one for each parameter of the entry function in order (INPUT, OUTPUT and
CONSTANT buffers alike); memory is C-contiguous, native-endian and aligned to its element. The result is a `Status`.
`context` points to a `Context`, which the caller owns for the length of one call. Executables hold no state, so they
may run on several threads at once.
"""

from __future__ import annotations

import ctypes

from tracer.codegen.status import Status as Status

MAIN_SYMBOL = "tracer_main"
FAULT_VALUES = 4  # i64 that a fault can carry into its message


class Context(ctypes.Structure):
    """State of one call, by offset: everything that compiled code reads and writes besides the buffers.

    arena: 64-byte aligned scratch of at least `Module.arena` bytes (null where that is 0). stop: a 4-byte word, never
    null, that another thread, or a signal handler, sets to end the call's loops. callback: i32 (*)(ptr self, i64 slot,
    ptr inputs, ptr outputs), 0 for success; called with the GIL held or not, as `callback_self` expects. stacks:
    `Module.stacks` records of type Stack, zeroed at first, grown with C's realloc and freed by the caller. lock: 0 at
    first; held by the thread that records a fault. patience: steps that a set word still means nothing in modules whose
    loops are patient, counted down by void (*listen)(ptr context, i64 steps); 0 elsewhere.
    """

    _fields_ = (
        ("status", ctypes.c_int32),
        ("fault_site", ctypes.c_int32),  # -1 for none
        ("fault_position", ctypes.c_int64),
        ("fault_values", ctypes.c_int64 * FAULT_VALUES),
        ("arena", ctypes.c_void_p),
        ("stop", ctypes.c_void_p),
        ("callback", ctypes.c_void_p),
        ("callback_self", ctypes.c_void_p),
        ("stacks", ctypes.c_void_p),
        ("lock", ctypes.c_int64),
        ("patience", ctypes.c_int64),
        ("listen", ctypes.c_void_p),
    )


class Stack(ctypes.Structure):
    """Growable stack: `used` and `capacity` in bytes."""

    _fields_ = (("data", ctypes.c_void_p), ("used", ctypes.c_int64), ("capacity", ctypes.c_int64))


def offset(field: str) -> int:
    """Return the byte offset of a field of `Context`."""
    descriptor = getattr(Context, field)
    return int(descriptor.offset)
