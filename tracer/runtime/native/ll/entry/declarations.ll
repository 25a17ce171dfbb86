; CPython's, NumPy's and C's symbols that the entry binds.
; tracer_gate: the number of open traces, then the version of the settings.

@tracer_gate = external global [2 x i64]
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@PyBool_Type = external global i8
@PyComplex_Type = external global i8
@PyDict_Type = external global i8
@PyFloat_Type = external global i8
@PyList_Type = external global i8
@PyLong_Type = external global i8
@PyTuple_Type = external global i8
declare double @PyComplex_ImagAsDouble(ptr)
declare double @PyComplex_RealAsDouble(ptr)
declare ptr @PyDict_Copy(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Clear()
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare void @PyErr_SetInterrupt()
declare void @PyErr_SetObject(ptr, ptr)
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromVoidPtr(ptr)
declare i32 @PyOS_InterruptOccurred()
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare i32 @PyObject_GenericSetDict(ptr, ptr, ptr)
declare ptr @PySequence_List(ptr)
declare ptr @PySequence_Tuple(ptr)
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
declare i64 @llvm.usub.sat.i64(i64, i64)
