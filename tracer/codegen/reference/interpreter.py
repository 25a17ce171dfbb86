"""`interpret`: runs a loop module on NumPy arrays, slowly, and reports invalid accesses, races and missed barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tracer.codegen.reference.frame import Call, Callback, FaultRecord, Frame, Interrupted
from tracer.codegen.reference.races import Array
from tracer.codegen.reference.statements import run_block, run_function
from tracer.codegen.status import Status
from tracer.errors import InternalError
from tracer.ir.loop import Buffer, Function, Module, Space
from tracer.ir.loop.check import check_module


class Order(Enum):
    """Order of blocks and of the iterations of parallel loops: results must not depend on it."""

    FORWARD = "forward"
    BACKWARD = "backward"
    SHUFFLED = "shuffled"  # from a fixed seed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended. fault: the first recorded one. error: the exception that a callback raised."""

    status: Status
    fault: FaultRecord | None = None
    error: BaseException | None = None


def interpret(
    module: Module,
    arrays: Sequence[Array],
    *,
    callbacks: Sequence[Callback] = (),
    order: Order = Order.FORWARD,
    stop: Callable[[], bool] | None = None,
    stack_limit: int | None = None,
    verify: bool = True,
) -> Outcome:
    """Run the entry on C-contiguous `arrays`, one for each parameter; results go to the OUTPUT buffers' arrays.

    callbacks: by slot; each is called with lists of flat arrays, the inputs and the outputs to fill in.
    stop: called in every iteration of a loop; True ends the call. stack_limit: the bytes a stack may grow to.
    verify: False for a module that `check_module` has seen.
    Raises InternalError, which names function and statement, for a module that `check_module` refuses. It also does for
    an access out of bounds, of unwritten memory or in a race. So it does where threads do not meet at a barrier.

    >>> from tracer.ir.loop import Block, Buffer, Function, Module, Space
    >>> from tracer.ir.loop.build import Builder
    >>> out, b = Buffer("out", np.dtype("float32"), 1, Space.OUTPUT, written=True), Builder()
    >>> b.store(out, 0, 2.5)
    >>> result = np.zeros(1, "float32")
    >>> interpret(Module((Function("main", (out,), b.finish()),), "main"), [result]).status, result
    (<Status.DONE: 0>, array([2.5], dtype=float32))
    """
    if verify:
        check_module(module)
    call = Call(module, callbacks, _ITERATIONS[order], stop, stack_limit)
    entry = call.functions[module.entry]
    frame = Frame(call, entry, run_block)
    if len(arrays) != len(entry.parameters):
        raise InternalError(f"interpret: {len(entry.parameters)} arrays expected, got {len(arrays)}")
    for parameter, array in zip(entry.parameters, arrays, strict=True):
        assert isinstance(parameter, Buffer), "the verifier has seen to it"
        _bind(frame, entry, parameter, array)
    try:
        with np.errstate(all="ignore"):
            run_function(frame)
    except Interrupted:
        call.status = Status.INTERRUPTED
    return Outcome(call.status, call.fault, call.error)


def _bind(frame: Frame, entry: Function, parameter: Buffer, array: Array) -> None:
    """Make an array the memory of a parameter."""
    fits = array.dtype == parameter.dtype and array.size == parameter.size and array.flags.c_contiguous
    if not fits:
        got = f"{array.dtype}[{array.size}]{'' if array.flags.c_contiguous else ', not contiguous'}"
        wanted = f"{parameter.dtype}[{parameter.size}]"
        raise InternalError(f"interpret: '{parameter.name}' of '{entry.name}' is {wanted}, got {got}")
    given = parameter.space is not Space.OUTPUT
    kept = given and parameter.space is not Space.DONATED
    data = array.reshape(-1)
    frame.regions[parameter] = frame.call.region(parameter, data, written=given, read_only=kept)


def _shuffled(indices: range) -> list[int]:
    return [int(i) for i in np.random.default_rng(0).permutation(np.array(indices, np.int64))]


_ITERATIONS: dict[Order, Callable[[range], Any]] = {
    Order.FORWARD: lambda indices: indices,
    Order.BACKWARD: lambda indices: indices[::-1],
    Order.SHUFFLED: _shuffled,
}
