"""Compiled modules that are called with NumPy arrays through ctypes.

Tests use it, and calls where the compiled entry for CPython is not available. Every call owns its context, arena and
stacks, so an executable may run on several threads at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.codegen.llvm.toolchain.abi import Context, Stack, Status
from tracer.codegen.llvm.toolchain.object_code import LoadedModule
from tracer.errors import InternalError
from tracer.ir.loop import Buffer, Module

Array = np.ndarray[Any, Any]
CallbackTable = Callable[[int, int, int], None]
"""Called with the slot and the addresses of two arrays of pointers: to the inputs and to the outputs."""

_MAIN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Executable:
    """`tracer_main` of a loaded module, with the sizes that a call of it needs."""

    def __init__(self, module: Module, loaded: LoadedModule) -> None:
        entry = module.entry_function
        self.parameters = tuple(p for p in entry.parameters if isinstance(p, Buffer))
        self.arena = module.arena
        self.stacks = module.stacks
        self._loaded = loaded
        self._main = _MAIN(loaded.address())

    def run(
        self,
        arrays: Sequence[Array],
        *,
        stop: ctypes.c_int32 | None = None,
        callback: CallbackTable | None = None,
    ) -> tuple[Status, Context]:
        """Call with one C-contiguous array for each parameter; results are written into the arrays of the outputs.

        stop: a word that another thread may set to end the call. The context's pointers are no longer valid when it is
        returned. An exception of `callback` propagates. Raises InternalError for arrays that do not fit.
        """
        self._check(arrays)
        errors: list[BaseException] = []
        context, keep = self._context(ctypes.c_int32(0) if stop is None else stop, callback, errors)
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        try:
            status = Status(self._main(ctypes.addressof(pointers), ctypes.addressof(context)))
        finally:
            _free_stacks(keep[0])
        if errors:
            raise errors[0]
        return status, context

    def _check(self, arrays: Sequence[Array]) -> None:
        if len(arrays) != len(self.parameters):
            raise InternalError(f"llvm: a call with {len(arrays)} arrays for {len(self.parameters)} parameters")
        for array, parameter in zip(arrays, self.parameters, strict=True):
            fits = array.dtype == parameter.dtype and array.size == parameter.size
            if not fits or not array.flags.c_contiguous or not array.flags.aligned:
                raise InternalError(
                    f"llvm: parameter '{parameter.name}' takes {parameter.size} contiguous {parameter.dtype}, "
                    f"got {array.size} of {array.dtype}"
                )

    def _context(
        self, stop: ctypes.c_int32, callback: CallbackTable | None, errors: list[BaseException]
    ) -> tuple[Context, tuple[ctypes.Array[Stack], Any, Any, Any]]:
        """Return a fresh context, and the objects that must live as long as it."""
        stacks = (Stack * self.stacks)()
        memory = np.empty(self.arena + 64, np.uint8) if self.arena else None
        entry = _CALLBACK(_catching(callback, errors))
        context = Context(fault_site=-1)
        if memory is not None:
            context.arena = memory.ctypes.data + -memory.ctypes.data % 64
        context.stop = ctypes.addressof(stop)
        context.callback = ctypes.cast(entry, ctypes.c_void_p)
        context.stacks = ctypes.addressof(stacks)
        return context, (stacks, memory, entry, stop)


def _catching(callback: CallbackTable | None, errors: list[BaseException]) -> Callable[[Any, int, Any, Any], int]:
    """Return a C callback that keeps the first exception for `run` to raise: ctypes itself would only print it."""

    def call(_: Any, slot: int, inputs: int, outputs: int) -> int:
        try:
            if callback is None:
                raise InternalError(f"llvm: callback {slot} without a table of callbacks")
            callback(slot, inputs, outputs)
        except BaseException as error:
            errors.append(error)
            return 1
        return 0

    return call


def _free_stacks(stacks: ctypes.Array[Stack]) -> None:
    if len(stacks):
        free = ctypes.CDLL(None).free
        free.argtypes = [ctypes.c_void_p]
        for stack in stacks:
            free(stack.data)
