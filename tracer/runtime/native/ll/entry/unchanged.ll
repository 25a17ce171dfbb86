; Return whether every guard of the Record holds: a name, cell or slot still refers to the expected object, and a
; guarded NumPy array still has the expected dtype, shape and bytes. Runs no Python code.

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
