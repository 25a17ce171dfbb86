"""Compiled entries: C functions that Python calls, each for one executable and one structure of arguments."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tracer.codegen.llvm.toolchain.abi import Context
from tracer.codegen.status import Status
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, Type, array_type, storage_type
from tracer.once import once
from tracer.runtime.guards.guards import Captured, ValueGuard
from tracer.runtime.guards.guards import Guard as Named
from tracer.runtime.jit.argument_plan import Plan, flat_plan, table_of
from tracer.runtime.jit.donation import NOTHING_DONATED, Donated
from tracer.runtime.jit.result_plan import result_steps
from tracer.runtime.native import capi
from tracer.runtime.native.entry_point import EntryPoint
from tracer.runtime.native.entry_record import Guard, Leaf, Record, Result, Scalar
from tracer.runtime.native.support import support
from tracer.runtime.system.long_calls import HEARD, LONG, PATIENCE
from tracer.runtime.system.run_time_errors import error_of
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.tracebacks import Raised

_NEVER = 2**62  # more elements than there are
_METH_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_SCALARS = {
    (dtypes.I64, True): Scalar.INT64,
    (dtypes.F64, True): Scalar.FLOAT64,
    (dtypes.F32, True): Scalar.FLOAT32,
    (dtypes.C128, True): Scalar.COMPLEX128,
    (dtypes.C64, True): Scalar.COMPLEX64,
    (dtypes.BOOL, False): Scalar.BOOL,
}


@once
def _method() -> capi.MethodDef:
    """Return the C function of all entries. It must outlive them, so it lives as long as the process."""
    return capi.MethodDef(b"compiled", support().entry, _METH_FASTCALL_WITH_KEYWORDS, None)


class _Switch:
    ctypes_only = False  # set by tests of calls through ctypes


switch = _Switch()


def entries_enabled() -> bool:
    """Whether compiled entries can be used with this Python and NumPy; else calls go through ctypes."""
    return not switch.ctypes_only and support().entry is not None


def _new_function(itself: tuple[Any, ...]) -> Callable[..., Any]:
    made: Callable[..., Any] = capi.new_function(_method(), itself)
    return made


def front(fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Return an entry that recognises no call: it calls `fallback`, and raises the error of a `Raised` result."""
    return _new_function((Record(positional=-1, raised=id(Raised)), fallback))


class Recognised:
    """Executable with a structure of arguments, shared by its entries, which differ in their fallbacks."""

    def __init__(
        self,
        point: EntryPoint,
        captured: Sequence[Captured],
        plan: Plan,
        structure: trees.Structure | None,
        donated: Mapping[int, Donated] = NOTHING_DONATED,
    ) -> None:
        """structure: of the result; None for a tuple of all outputs. donated: stand-ins of donated leaves, by leaf."""
        self._keep: list[Any] = [point, captured, plan]
        self.record = Record()
        self._set_program(point, captured)
        self._set_donated(donated)
        self._set_arguments(plan)
        self._set_handlers(point, structure)
        self.record.spare = ctypes.addressof(point.spare)

    @classmethod
    def elementwise(cls, point: EntryPoint, scalars: Sequence[bool]) -> Recognised:
        """Make one for a program of symbolic size.

        Inputs marked in `scalars` are scalars, all other inputs arrays of one shape.

        point: with the types and the work of one element, arrays with shape (1,).
        """
        made = cls(point, (), flat_plan(len(scalars)), trees.flatten(0)[1])
        made._free_shapes(scalars, max(point.work, 1.0))
        return made

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """Return the C function. It calls `fallback` with unchanged arguments where they do not fit the plan."""
        return _new_function((self.record, fallback, self._keep))

    def trust_settings(self, version: int) -> None:
        """Recognise calls at this version of the settings, which has the values that tracing read."""
        self.record.version = version

    def watch(self, guards: Sequence[Named], values: Sequence[ValueGuard]) -> None:
        """Recognise calls only while guarded names and values are as at tracing."""
        self._keep += [guards, values]
        found = [*map(self._name_guard, guards), *map(self._value_guard, values)]
        self.record.guards, self.record.guarded = len(found), self._table(Guard, found)

    def _name_guard(self, guard: Named) -> Guard:
        name, offset = None, capi.CELL_CONTENT
        if isinstance(guard.holder, dict):
            name = self._object(guard.name)
        elif isinstance(guard.holder, FunctionType):
            offset = capi.function_offsets()[guard.name]
        return Guard(id(guard.holder), name, offset, ctypes.addressof(guard.expected))

    def _value_guard(self, guard: ValueGuard) -> Guard:
        if isinstance(guard.holder, Array):
            return Guard(id(guard.holder), None, capi.slot_offsets()["_value"], ctypes.addressof(guard.expected))
        leaf = self._table(Leaf, [self._leaf(array_type(guard.value.dtype, guard.value.shape))])
        return Guard(id(guard.holder), None, 0, guard.value.ctypes.data, leaf, guard.value.nbytes)

    def trust_caller(self) -> None:
        """Skip the check of settings and open traces, which the caller has made."""
        self.record.version = -1

    def _free_shapes(self, scalars: Sequence[bool], work: float) -> None:
        leaves = (Leaf * len(scalars)).from_address(self.record.leaves)
        for leaf, scalar in zip(leaves, scalars, strict=True):
            if not scalar:
                leaf.ndim = -1
        for result in (Result * self.record.outputs).from_address(self.record.results):
            result.ndim = -1
        self.record.elementwise = 1
        self.record.long_from, self.record.heard_from = int(LONG / work), int(HEARD / work)

    def _set_program(self, point: EntryPoint, captured: Sequence[Captured]) -> None:
        r = self.record
        leaves = [self._leaf(type) for type in point.input_types]
        for leaf, array in zip(leaves, captured, strict=False):
            leaf.handle, leaf.scalar, leaf.number = self._object(array), Scalar.NONE, None
        r.main = point.loaded.address()
        r.captured, r.inputs, r.leaves = len(captured), len(leaves), self._table(Leaf, leaves)
        results = [self._result(type, point.donors.get(n, -1)) for n, type in enumerate(point.output_types)]
        r.outputs, r.results = len(results), self._table(Result, results)
        r.constants = len(point.constants)
        r.data = self._table(ctypes.c_void_p, [constant.ctypes.data for constant in point.constants])
        r.arena, r.stacks = point.arena, point.stacks
        r.long_from, r.heard_from = (0 if point.work > least else _NEVER for least in (LONG, HEARD))
        r.patience = PATIENCE if point.is_patient else 0
        r.repeatable = point.is_repeatable

    def _set_donated(self, donated: Mapping[int, Donated]) -> None:
        leaves = (Leaf * self.record.inputs).from_address(self.record.leaves)
        for number, replacement in donated.items():
            leaf = leaves[self.record.captured + number]
            leaf.donated, leaf.number = self._object(replacement), None  # a number's memory is not to be written to
        self.record.donates = bool(donated)
        self.record.shared = self._object(Donated.was_shared) if donated else None

    def _set_arguments(self, plan: Plan) -> None:
        r = self.record
        r.positional, r.keywords = plan.positional, len(plan.names)
        r.names = self._object(plan.names)
        r.order = self._table(ctypes.c_int64, plan.order)
        if plan.steps:
            steps = plan.table()
            self._keep.append(steps)
            r.steps = ctypes.addressof(steps)
            r.nodes = plan.has_nodes

    def _set_handlers(self, point: EntryPoint, structure: trees.Structure | None) -> None:
        r = self.record
        r.ndarray, r.array, r.array_type, r.zero = id(np.ndarray), id(Array), id(ArrayType), self._object(0)
        if structure is not None:
            r.single = structure.is_leaf()
            plain = structure.type is tuple and all(child.is_leaf() for child in structure.children())
            if not r.single and not plain:
                steps = result_steps(structure)
                table = table_of(steps)
                self._keep += [steps, table]
                r.tree = ctypes.addressof(table)
        r.raised = id(Raised)
        r.failed = self._object(lambda address: _error(point, address))
        if point.callback is not None:
            r.callback = self._object(point.callback)

    def _leaf(self, type: Type) -> Leaf:
        storage = storage_type(type)
        weak = isinstance(type, ArrayType) and type.weak
        plain = isinstance(type, ArrayType)
        scalar = _SCALARS.get((storage.dtype, weak), Scalar.NONE) if plain and storage.shape == () else Scalar.NONE
        kind = None if plain else self._object(type.__class__)
        takes_number = plain and not weak and storage.shape == () and storage.dtype in dtypes.OF_NUMPY
        number = self._object(storage.dtype.type) if takes_number else None
        return Leaf(
            self._object(storage.dtype), self._shape(storage), len(storage.shape), None, self._object(weak), kind,
            scalar, number,
        )  # fmt: skip

    def _result(self, type: Type, donor: int) -> Result:
        storage = storage_type(type)
        weak = isinstance(type, ArrayType) and type.weak
        known = None if isinstance(type, ArrayType) else type
        return Result(
            self._object(storage.dtype), self._shape(storage), len(storage.shape), _bytes(storage), self._object(weak),
            self._object(known), donor,
        )  # fmt: skip

    def _shape(self, storage: ArrayType) -> int:
        return self._table(ctypes.c_int64, storage.shape)

    def _object(self, thing: object) -> int:
        """Return the address of an object, and keep the object alive as long as this one."""
        self._keep.append(thing)
        return id(thing)

    def _table(self, kind: Any, items: Sequence[Any]) -> int:
        """Return the address of a new array in C's layout."""
        table = (kind * len(items))(*items)
        self._keep.append(table)
        return ctypes.addressof(table)


def _bytes(storage: ArrayType) -> int:
    return math.prod(storage.shape) * storage.dtype.itemsize


def _error(point: EntryPoint, address: int) -> BaseException | None:
    context = Context.from_address(address)
    return error_of(point.sites, Status(context.status), context)
