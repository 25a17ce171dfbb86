"""`x[i]` and `x[i] = v` of known arrays in compiled code, as LLVM text: the slots of `Array` for its items.

What an index of integers, slices, None and ... takes is found and copied here; places in arrays, masks and lists are
handed to NumPy as its own arrays. Everything else, a trace anywhere and every error go to Python's functions for the
same slots, with the same arguments, so that nothing depends on which way a call takes but its speed. Notation is as in
`entry_text`.
"""

from __future__ import annotations

import ctypes

from tracer.codegen.llvm.toolchain.native_text import expanded, fields, routines
from tracer.runtime.element_places import PLACES, Place
from tracer.runtime.element_reads import READS
from tracer.runtime.element_writes import WRITES
from tracer.runtime.native.entry_text import FOLDER, OBJECTS, names


class Elements(ctypes.Structure):
    """The objects that the code refers to, by address."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in (
        "array", "ndarray", "array_type",  # classes: ours, NumPy's, and of the type of arrays that are no keys
        "zero",  # the owner of handles outside all traces
        "int64", "float64", "f32", "f64",  # of NumPy: two classes of scalars, two dtypes
        "getitem", "setitem", "delitem",  # Python's functions for the slots
    ))  # fmt: skip


DECLARATIONS = """\
@tracer_gate = external global [2 x i64]
@tracer_elements = external global [Elements.bytes x i8]
@_Py_EllipsisObject = external global i8
@_Py_FalseStruct = external global i8
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@PyBool_Type = external global i8
@PyFloat_Type = external global i8
@PyList_Type = external global i8
@PyLong_Type = external global i8
@PySlice_Type = external global i8
@PyTuple_Type = external global i8
declare void @PyErr_Clear()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyNumber_AsSsize_t(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare i32 @PyObject_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i64 @PySlice_AdjustIndices(i64, ptr, ptr, i64)
declare i32 @PySlice_Unpack(ptr, ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyArray_NewCopy(ptr, i32)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare double @llvm.fabs.f64(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def element_text() -> str:
    """The whole text, for this Python's layout of objects."""
    return expanded(
        "\n".join((DECLARATIONS, routines(FOLDER, OBJECTS), PLACES, READS, WRITES)), names() | fields(Elements, Place)
    )
