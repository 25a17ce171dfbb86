; Transform a block of columns from x to y, which may be the same, by a plan's passes between two buffers.
; A plan is the count of its passes, then four words a pass: its function, m, l and its roots of unity.
; step: numbers from one row of x and y to the next. end: of the last pass, see `column_passes`.

define internal void @block.passes(ptr %x, ptr %y, ptr %one, ptr %two, i64 %step, i64 %end, Line.element %scale, ptr %plan) #0 {
entry:
  %count = load i64, ptr %plan, align 8
  %last = sub i64 %count, 1
  %first.at = getelementptr i64, ptr %plan, i64 1
  %first = load ptr, ptr %first.at, align 8
  %first.m.at = getelementptr i64, ptr %plan, i64 2
  %first.m = load i64, ptr %first.m.at, align 8
  %first.roots.at = getelementptr i64, ptr %plan, i64 4
  %first.roots = load ptr, ptr %first.roots.at, align 8
  call void %first(ptr %x, ptr %one, ptr %first.roots, i64 %first.m, i64 %step)
  br label %test
test:
  %i = phi i64 [ 1, %entry ], [ %i.next, %pass ]
  %from = phi ptr [ %one, %entry ], [ %to, %pass ]
  %to = phi ptr [ %two, %entry ], [ %from, %pass ]
  %at = mul i64 %i, 4
  %words = getelementptr i64, ptr %plan, i64 %at
  %at.function = getelementptr i64, ptr %words, i64 1
  %at.m = getelementptr i64, ptr %words, i64 2
  %at.l = getelementptr i64, ptr %words, i64 3
  %at.roots = getelementptr i64, ptr %words, i64 4
  %function = load ptr, ptr %at.function, align 8
  %m = load i64, ptr %at.m, align 8
  %l = load i64, ptr %at.l, align 8
  %roots = load ptr, ptr %at.roots, align 8
  %more = icmp slt i64 %i, %last
  br i1 %more, label %pass, label %put
pass:
  call void %function(ptr %from, ptr %to, ptr %roots, i64 %m, i64 %l)
  %i.next = add i64 %i, 1
  br label %test
put:
  call void %function(ptr %from, ptr %y, i64 %l, i64 %step, i64 %end, Line.element %scale)
  ret void
}
