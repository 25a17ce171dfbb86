; Store a Python scalar of class `type` at `to`, in the dtype that the leaf takes. The cases are those of Scalar.
; Returns false where the object is of another class, or an int needs more than 64 bits.

define internal i1 @tracer.scalar(ptr %object, ptr %type, ptr %leaf, ptr %to) {
  %kind = field i64 %leaf Leaf.scalar
  switch i64 %kind, label %no [
    i64 1, label %bool
    i64 2, label %int
    i64 3, label %float
    i64 4, label %float
    i64 5, label %complex
    i64 6, label %complex
  ]
bool:
  %is.bool = icmp eq ptr %type, @PyBool_Type
  %is.true = icmp eq ptr %object, @_Py_TrueStruct
  %byte = zext i1 %is.true to i8
  store i8 %byte, ptr %to
  ret i1 %is.bool
int:
  %is.int = icmp eq ptr %type, @PyLong_Type
  br i1 %is.int, label %integer, label %no
integer:
  %in.range = call i1 @tracer.int64(ptr %object, ptr %to)
  ret i1 %in.range
float:
  %is.float = icmp eq ptr %type, @PyFloat_Type
  br i1 %is.float, label %real, label %no
real:
  %wide = call double @PyFloat_AsDouble(ptr %object)
  %is.single = icmp eq i64 %kind, 4
  br i1 %is.single, label %single, label %double
single:
  %narrow = fptrunc double %wide to float
  store float %narrow, ptr %to
  ret i1 true
double:
  store double %wide, ptr %to
  ret i1 true
complex:
  %is.complex = icmp eq ptr %type, @PyComplex_Type
  br i1 %is.complex, label %parts, label %no
parts:
  %re = call double @PyComplex_RealAsDouble(ptr %object)
  %im = call double @PyComplex_ImagAsDouble(ptr %object)
  %is.short = icmp eq i64 %kind, 6
  br i1 %is.short, label %short, label %long
short:
  %re.single = fptrunc double %re to float
  %im.single = fptrunc double %im to float
  %second = getelementptr float, ptr %to, i64 1
  store float %re.single, ptr %to
  store float %im.single, ptr %second
  ret i1 true
long:
  %imaginary = getelementptr double, ptr %to, i64 1
  store double %re, ptr %to
  store double %im, ptr %imaginary
  ret i1 true
no:
  ret i1 false
}
