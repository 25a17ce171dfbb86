; Run a plan's passes from one number on, but for the last, each from one buffer to the other.
; Returns the target of the last one that ran.
; A plan is the count of its passes, then four words a pass: its function, m, l and its roots of unity.

define internal ptr @between(ptr %plan, i64 %begin, ptr %first, ptr %second) #0 {
entry:
  %count = load i64, ptr %plan, align 8
  %last = sub i64 %count, 1
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %pass ]
  %x = phi ptr [ %first, %entry ], [ %y, %pass ]
  %y = phi ptr [ %second, %entry ], [ %x, %pass ]
  %more = icmp slt i64 %i, %last
  br i1 %more, label %pass, label %done
pass:
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
  call void %function(ptr %x, ptr %y, ptr %roots, i64 %m, i64 %l)
  %i.next = add i64 %i, 1
  br label %test
done:
  ret ptr %x
}

; Run a plan's first pass, from columns to a buffer. flag: its `ahead` or `swap`, see `column_passes`.

define internal void @first.pass(ptr %plan, ptr %x, ptr %buffer, i64 %step, i64 %flag) #0 {
  %first.at = getelementptr i64, ptr %plan, i64 1
  %first = load ptr, ptr %first.at, align 8
  %m.at = getelementptr i64, ptr %plan, i64 2
  %m = load i64, ptr %m.at, align 8
  %roots.at = getelementptr i64, ptr %plan, i64 4
  %roots = load ptr, ptr %roots.at, align 8
  call void %first(ptr %x, ptr %buffer, ptr %roots, i64 %m, i64 %step, i64 %flag)
  ret void
}

; Run a plan's last pass, from a buffer to columns. flag: its `end` or `swap`.

define internal void @last.pass(ptr %plan, ptr %buffer, ptr %y, i64 %step, i64 %flag, i64 %ahead, Line.element %scale) #0 {
  %count = load i64, ptr %plan, align 8
  %before = sub i64 %count, 1
  %at = mul i64 %before, 4
  %words = getelementptr i64, ptr %plan, i64 %at
  %last.at = getelementptr i64, ptr %words, i64 1
  %last = load ptr, ptr %last.at, align 8
  %l.at = getelementptr i64, ptr %words, i64 3
  %l = load i64, ptr %l.at, align 8
  call void %last(ptr %buffer, ptr %y, i64 %l, i64 %step, i64 %flag, i64 %ahead, Line.element %scale)
  ret void
}
