"""LLVM text of the compiled entry, one C function for all executables, for this Python's layout of objects.

`tracer_entry` checks the arguments against a table, the executable's `Record`. It makes the results, runs the program
and wraps the results up. Arguments that the table does not describe go to the fallback unchanged. The entry reads the
table as data. So a function of fifty arguments costs no compilation, and object code stays free of addresses. The
routines are in `ll/`, one folder for each part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.abi import Context, Stack
from tracer.codegen.llvm.toolchain.native_text import expanded, fields, routines
from tracer.codegen.status import Status
from tracer.runtime.native import capi, result_pool
from tracer.runtime.native.entry_record import Common, Guard, Leaf, Record, Result, Step
from tracer.trace.tracebacks import Raised

FOLDER: Final = Path(__file__).with_name("ll")
OBJECTS: Final = ("arguments/int64", "arguments/laid_out", "arguments/count")
"""Routines on Python's and NumPy's objects that other native code shares with the entry."""
_ROUTINES: Final = (
    *(f"arguments/{name}" for name in ("objects", "walk", "walk_items", "walk_values", "walk_node")),
    *(f"arguments/{name}" for name in ("drop_leaves", "accept_all", "accept")),
    *(f"arguments/{name}" for name in ("same_array", "common", "same_shape", "scalar")),
    *(f"results/{name}" for name in ("make_all", "new_value", "wrap", "release")),
    *(f"donation/{name}" for name in ("take_donated", "hold_donated", "consume_donated")),
    *(f"run/{name}" for name in ("declarations", "run", "call", "wait", "listen", "report", "call_back")),
    *(f"results/{name}" for name in ("result", "build", "build_dict")),
    *(f"run/{name}" for name in ("take_arena", "give_arena", "free_stacks")),
)


def entry_text() -> str:
    """Return the text of the entry and the result pool, which exports `tracer_entry` and `tracer_result_*`."""
    entry = routines(FOLDER, ("entry/declarations", "entry/entry", "entry/fits", "entry/unchanged"))
    pool = routines(FOLDER / "result_pool", result_pool.routine_names())
    return expanded("\n".join((entry, pool, routines(FOLDER, (*OBJECTS, *_ROUTINES)))), names())


def names() -> dict[str, int]:
    """Return the value of every name in the text: offsets and sizes in bytes, flags, statuses."""
    found = {
        "CData.pointer": capi.CDATA_POINTER, "Dict.used": capi.DICT_USED,
        "List.items": capi.LIST_ITEMS, "List.size": capi.LIST_SIZE,
        "Ndarray.data": capi.NDARRAY_DATA, "Ndarray.descr": capi.NDARRAY_DESCR, "Ndarray.flags": capi.NDARRAY_FLAGS,
        "Ndarray.ndim": capi.NDARRAY_NDIM, "Ndarray.shape": capi.NDARRAY_SHAPE,
        "Object.references": 0, "Object.type": capi.OB_TYPE,
        "Tuple.item0": capi.TUPLE_ITEMS, "Tuple.item1": capi.TUPLE_ITEMS + 8, "Tuple.size": capi.TUPLE_SIZE,
        "Number.value": capi.NUMBER_VALUE, "Flags.laid_out": capi.LAID_OUT,
    }  # fmt: skip
    found |= {f"Array.{name}": offset for name, offset in capi.slot_offsets().items()}
    found["Raised.error"] = capi.member_offset(Raised, "error")
    found |= {f"Status.{status.name}": int(status) for status in Status}
    return found | result_pool.names() | fields(Common, Context, Guard, Leaf, Record, Result, Stack, Step)
