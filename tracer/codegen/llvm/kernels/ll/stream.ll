; Copy to[: count] = from[: count] past the caches, in elements of `size` bytes, without overlap.
; Other threads see the stores once the call returns. The ends of `to` that do not fill cache lines are copied plainly.

declare i64 @llvm.umin.i64(i64, i64)
Stream.fence_declaration

define internal void @library.stream(ptr noalias %to, ptr noalias %from, i64 %count, i64 %size) #0 {
entry:
  %bytes = mul i64 %count, %size
  %address = ptrtoint ptr %to to i64
  %negated = sub i64 0, %address
  %to.line = and i64 %negated, 63
  %head = call i64 @llvm.umin.i64(i64 %to.line, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %head, i1 false)
  %rest = sub i64 %bytes, %head
  %lines = and i64 %rest, -64
  %end = add i64 %head, %lines
  %any = icmp ne i64 %lines, 0
  br i1 %any, label %line, label %tail
line:
  %i = phi i64 [ %head, %entry ], [ %i.next, %line ]
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %to, i64 %i
  %values = load <16 x i32>, ptr %source, align 1
  store <16 x i32> %values, ptr %target, align 64, !nontemporal !1
  %i.next = add i64 %i, 64
  %more = icmp ult i64 %i.next, %end
  br i1 %more, label %line, label %fence
fence:
  Stream.fence
  br label %tail
tail:
  %left = sub i64 %bytes, %end
  %last.source = getelementptr i8, ptr %from, i64 %end
  %last.target = getelementptr i8, ptr %to, i64 %end
  call void @llvm.memcpy.p0.p0.i64(ptr %last.target, ptr %last.source, i64 %left, i1 false)
  ret void
}
