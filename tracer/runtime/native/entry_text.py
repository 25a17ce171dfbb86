"""The compiled entry, as LLVM text: one C function for all executables, of CPython's METH_FASTCALL | METH_KEYWORDS.

`self` is a tuple: a `Record`, the fallback, and what else must live. The entry checks the arguments against the
record, makes the results, runs the program and wraps up. Whatever it does not recognise goes to the fallback, with
the very same arguments. It is interpreted data, not code for each executable: so it costs nothing to compile a
function of fifty arguments, and object code stays free of addresses. Symbols are bound by name.

Every object whose memory the program reads is held for the length of the call, since other threads may rebind handles.
In the text, `%x = field T %p S.f` reads a field, and `set T v %p S.f` writes one: see `expanded`.
"""

from __future__ import annotations

import ctypes
import re

from tracer.codegen.llvm.toolchain.abi import Context
from tracer.codegen.llvm.toolchain.ctypes_executable import Stack
from tracer.codegen.status import Status
from tracer.runtime.native import capi
from tracer.runtime.native.entry_arguments import ARGUMENTS
from tracer.runtime.native.entry_arrays import ARRAYS
from tracer.runtime.native.entry_donation import DONATION
from tracer.runtime.native.entry_record import Common, Guard, Leaf, Record, Result, Step
from tracer.runtime.native.entry_run import RUN
from tracer.runtime.native.entry_shapes import SHAPES
from tracer.runtime.native.object_text import OBJECTS
from tracer.runtime.values.result_pool import LEAST, memory_text
from tracer.trace.tracebacks import Raised

DECLARATIONS = """\
@tracer_gate = external global [2 x i64]
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@PyBool_Type = external global i8
@PyComplex_Type = external global i8
@PyDict_Type = external global i8
@PyFloat_Type = external global i8
@PyList_Type = external global i8
@PyLong_Type = external global i8
@PySlice_Type = external global i8
declare double @PyComplex_ImagAsDouble(ptr)
declare double @PyComplex_RealAsDouble(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Clear()
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare void @PyErr_SetObject(ptr, ptr)
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromVoidPtr(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

ENTRY = """\
define ptr @tracer_entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
  %memory = field ptr %self Tuple.item0
  %record = field ptr %memory CData.pointer
  %fits = call i1 @tracer.fits(ptr %record, i64 %nargs, ptr %kwnames)
  br i1 %fits, label %known, label %fallback
known:
  %unchanged = call i1 @tracer.unchanged(ptr %record)
  br i1 %unchanged, label %flatten, label %fallback
flatten:
  %inputs = field i64 %record Record.inputs
  %objects = alloca ptr, i64 %inputs
  %found = call i1 @tracer.objects(ptr %record, ptr %args, ptr %objects)
  br i1 %found, label %given, label %fallback
given:
  %donates = field i64 %record Record.donates
  %is.donating = icmp ne i64 %donates, 0
  br i1 %is.donating, label %note, label %accept
note:
  %given.objects = alloca ptr, i64 %inputs
  %object.bytes = mul i64 %inputs, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %given.objects, ptr %objects, i64 %object.bytes, i1 false)
  br label %accept
accept:
  %handles = phi ptr [ null, %given ], [ %given.objects, %note ]
  %outputs = field i64 %record Record.outputs
  %constants = field i64 %record Record.constants
  %arrays = add i64 %inputs, %outputs
  %parameters = add i64 %arrays, %constants
  %buffers = alloca ptr, i64 %parameters
  %scalars = alloca [16 x i8], i64 %inputs, align 16
  %accepted = call i1 @tracer.accept_all(ptr %record, ptr %objects, ptr %buffers, ptr %scalars)
  br i1 %accepted, label %measure, label %fallback
measure:
  %common = alloca [Common.bytes x i8], align 8
  %agree = call i1 @tracer.common(ptr %record, ptr %objects, ptr %common)
  br i1 %agree, label %hold, label %differ
hold:
  call void @tracer.hold_donated(ptr %record, ptr %handles)
  br label %make
make:
  %results = alloca ptr, i64 %outputs
  %made = call i1 @tracer.make_all(ptr %record, ptr %results, ptr %buffers, ptr %objects, ptr %common)
  br i1 %made, label %run, label %out.of.memory
run:
  %data = field ptr %record Record.data
  %constant.buffers = getelementptr ptr, ptr %buffers, i64 %arrays
  %constant.bytes = mul i64 %constants, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %constant.buffers, ptr %data, i64 %constant.bytes, i1 false)
  %elementwise = field i64 %record Record.elementwise
  %is.elementwise = icmp ne i64 %elementwise, 0
  br i1 %is.elementwise, label %counted, label %ready
counted: ; the count of elements is the only constant
  %count.at = getelementptr i8, ptr %common, i64 Common.count
  store ptr %count.at, ptr %constant.buffers
  br label %ready
ready:
  %count = field i64 %common Common.count
  %result = call ptr @tracer.run(ptr %record, ptr %buffers, ptr %results, i64 %count)
  call void @tracer.release(ptr %objects, i64 %inputs)
  call void @tracer.consume_donated(ptr %record, ptr %handles)
  %is.nothing = icmp eq ptr %result, null
  br i1 %is.nothing, label %nothing, label %give
give:
  ret ptr %result
nothing:
  %occurred = call ptr @PyErr_Occurred()
  %hands.on = icmp eq ptr %occurred, null
  br i1 %hands.on, label %fallback, label %give
out.of.memory:
  call void @tracer.release(ptr %objects, i64 %inputs)
  call void @tracer.consume_donated(ptr %record, ptr %handles)
  ret ptr null
differ:
  call void @tracer.release(ptr %objects, i64 %inputs)
  br label %fallback
fallback:
  %callable = field ptr %self Tuple.item1
  %handed = call ptr @PyObject_Vectorcall(ptr %callable, ptr %args, i64 %nargs, ptr %kwnames)
  %failed = icmp eq ptr %handed, null
  br i1 %failed, label %done, label %look
look:
  %handed.type = field ptr %handed Object.type
  %raised.type = field ptr %record Record.raised
  %is.raised = icmp eq ptr %handed.type, %raised.type
  br i1 %is.raised, label %raise, label %done
raise:
  %error = field ptr %handed Raised.error
  %error.type = field ptr %error Object.type
  call void @PyErr_SetObject(ptr %error.type, ptr %error)
  call void @Py_DecRef(ptr %handed)
  ret ptr null
done:
  ret ptr %handed
}

; Whether nothing is being traced, the settings are as they were, and as many arguments came, by the same names.
define internal i1 @tracer.fits(ptr %record, i64 %nargs, ptr %kwnames) {
  %closed = load atomic i64, ptr @tracer_gate monotonic, align 8
  %version.at = getelementptr i8, ptr @tracer_gate, i64 8
  %version = load atomic i64, ptr %version.at monotonic, align 8
  %known = field i64 %record Record.version
  %positional = field i64 %record Record.positional
  %always = icmp eq i64 %known, -1
  %is.open = icmp eq i64 %closed, 0
  %same.settings = icmp eq i64 %version, %known
  %same.count = icmp eq i64 %nargs, %positional
  %ok = and i1 %is.open, %same.settings
  %ok.state = or i1 %ok, %always
  %ok.count = and i1 %ok.state, %same.count
  br i1 %ok.count, label %names, label %no
names:
  %keywords = field i64 %record Record.keywords
  %none.given = icmp eq ptr %kwnames, null
  br i1 %none.given, label %nameless, label %count
nameless:
  %none.wanted = icmp eq i64 %keywords, 0
  ret i1 %none.wanted
count:
  %given = field i64 %kwnames Tuple.size
  %as.many = icmp eq i64 %given, %keywords
  br i1 %as.many, label %start, label %no
start:
  %wanted.tuple = field ptr %record Record.names
  %given.items = getelementptr i8, ptr %kwnames, i64 Tuple.item0
  %wanted.items = getelementptr i8, ptr %wanted.tuple, i64 Tuple.item0
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %compare ]
  %more = icmp ult i64 %i, %keywords
  br i1 %more, label %compare, label %yes
compare:
  %given.at = getelementptr ptr, ptr %given.items, i64 %i
  %wanted.at = getelementptr ptr, ptr %wanted.items, i64 %i
  %name = load ptr, ptr %given.at
  %wanted = load ptr, ptr %wanted.at
  %equal = icmp eq ptr %name, %wanted ; names in calls are interned
  %next = add i64 %i, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether every name stands for the object, and every array has the value, that tracing found.
define internal i1 @tracer.unchanged(ptr %record) {
entry:
  %guards = field i64 %record Record.guards
  %table = field ptr %record Record.guarded
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %same ]
  %more = icmp ult i64 %i, %guards
  br i1 %more, label %look, label %yes
look:
  %byte = mul i64 %i, Guard.bytes
  %guard = getelementptr i8, ptr %table, i64 %byte
  %holder = field ptr %guard Guard.holder
  %name = field ptr %guard Guard.name
  %expected.at = field ptr %guard Guard.expected
  %leaf = field ptr %guard Guard.leaf
  %is.object = icmp eq ptr %leaf, null
  br i1 %is.object, label %object, label %bytes
object:
  %is.slot = icmp eq ptr %name, null
  br i1 %is.slot, label %slot, label %global
slot:
  %offset = field i64 %guard Guard.offset
  %content.at = getelementptr i8, ptr %holder, i64 %offset
  %content = load ptr, ptr %content.at
  br label %compare
global:
  %found = call ptr @PyDict_GetItemWithError(ptr %holder, ptr %name)
  br label %compare
compare:
  %now = phi ptr [ %content, %slot ], [ %found, %global ]
  %expected = load ptr, ptr %expected.at
  %equal = icmp eq ptr %now, %expected
  br i1 %equal, label %same, label %no
bytes:
  %fits = call i1 @tracer.same_array(ptr %holder, ptr %leaf)
  %flags = field i32 %holder Ndarray.flags
  %contiguous = and i32 %flags, 1
  %is.contiguous = icmp ne i32 %contiguous, 0
  %comparable = and i1 %fits, %is.contiguous
  br i1 %comparable, label %contents, label %no
contents:
  %data = field ptr %holder Ndarray.data
  %size = field i64 %guard Guard.size
  %difference = call i32 @memcmp(ptr %data, ptr %expected.at, i64 %size)
  %is.equal = icmp eq i32 %difference, 0
  br i1 %is.equal, label %same, label %no
same:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_FIELD = re.compile(r"  (%[\w.]+) = field (\w+) ([%@][\w.]+) ([\w.]+)")
_SET = re.compile(r"  set (\w+) (\S+) (%[\w.]+) ([\w.]+)")
_NAME = re.compile(r"\b[A-Z]\w*\.\w+\b")


def names() -> dict[str, int]:
    """Offsets in bytes, `Struct.bytes` for sizes, and the statuses, by the names that the text uses."""
    found = {
        "CData.pointer": capi.CDATA_POINTER, "Dict.used": capi.DICT_USED,
        "List.items": capi.LIST_ITEMS,
        "List.size": capi.LIST_SIZE, "Ndarray.data": capi.NDARRAY_DATA, "Ndarray.descr": capi.NDARRAY_DESCR,
        "Ndarray.flags": capi.NDARRAY_FLAGS, "Ndarray.ndim": capi.NDARRAY_NDIM, "Ndarray.shape": capi.NDARRAY_SHAPE,
        "Ndarray.base": capi.NDARRAY_BASE, "Ndarray.strides": capi.NDARRAY_STRIDES,
        "Descr.kind": capi.DESCR_KIND, "Descr.order": capi.DESCR_ORDER, "Descr.size": capi.DESCR_SIZE,
        "Object.references": 0, "Object.type": capi.OB_TYPE,
        "Tuple.item0": capi.TUPLE_ITEMS, "Tuple.item1": capi.TUPLE_ITEMS + 8,
        "Tuple.size": capi.TUPLE_SIZE, "Slice.items": capi.SLICE_ITEMS,
        "Float.value": capi.FLOAT_VALUE, "Number.value": capi.NUMBER_VALUE, "Memory.least": LEAST,
        "Flags.aligned": capi.ALIGNED, "Flags.laid_out": capi.LAID_OUT,
        "Flags.own": capi.OWN,
    }  # fmt: skip
    found |= {f"Array.{name}": offset for name, offset in capi.slot_offsets().items()}
    found["Raised.error"] = capi.member_offset(Raised, "error")
    found |= {f"Status.{status.name}": int(status) for status in Status}
    return found | fields(Common, Context, Guard, Leaf, Record, Result, Stack, Step)


def fields(*structures: type[ctypes.Structure]) -> dict[str, int]:
    """The offsets of their fields, by the names that the text uses, and their sizes."""
    found = {}
    for structure in structures:
        found[f"{structure.__name__}.bytes"] = ctypes.sizeof(structure)
        for field in structure._fields_:
            found[f"{structure.__name__}.{field[0]}"] = getattr(structure, field[0]).offset
    return found


def expanded(text: str, numbers: dict[str, int]) -> str:
    """The text with `field` and `set` written out, and numbers for names."""
    lines = []
    for count, line in enumerate(text.splitlines()):
        if read := _FIELD.fullmatch(line):
            target, type_, base, name = read.groups()
            lines.append(f"  {target}.field = getelementptr i8, ptr {base}, i64 {name}")
            lines.append(f"  {target} = load {type_}, ptr {target}.field")
        elif write := _SET.fullmatch(line):
            type_, value, base, name = write.groups()
            lines.append(f"  %set.{count} = getelementptr i8, ptr {base}, i64 {name}")
            lines.append(f"  store {type_} {value}, ptr %set.{count}")
        else:
            lines.append(line)
    return _NAME.sub(lambda found: str(numbers.get(found[0], found[0])), "\n".join(lines) + "\n")


def entry_text() -> str:
    """The whole text, for this Python's layout of objects."""
    parts = (DECLARATIONS, ENTRY, memory_text(), OBJECTS, ARGUMENTS, SHAPES, ARRAYS, DONATION, RUN)
    return expanded("\n".join(parts), names())
