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
