; Order n words by their bits 32 to 32 + kept, digit by digit from the least significant on. Returns the ordered words.
; first: the words. second: memory for as many; the passes go from one to the other. counts: how many words have each
; digit of each pass. A pass whose digit is the same everywhere is skipped.

define internal ptr @radix.passes(ptr %first, ptr %second, ptr %counts, i64 %n, i64 %kept) nounwind {
entry:
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r.next, %round.end ]
  %from = phi ptr [ %first, %entry ], [ %from.next, %round.end ]
  %to = phi ptr [ %second, %entry ], [ %to.next, %round.end ]
  %ordered = mul i64 %r, Digit.bits
  %is.ordered = icmp uge i64 %ordered, %kept
  br i1 %is.ordered, label %done, label %add
add:
  %own.skip = mul i64 %r, Digit.count
  %own = getelementptr i32, ptr %counts, i64 %own.skip
  %digit.at = add i64 %ordered, 32
  %any = load i64, ptr %from, align 8
  %any.shifted = lshr i64 %any, %digit.at
  %any.digit = and i64 %any.shifted, Digit.mask
  %any.slot = getelementptr i32, ptr %own, i64 %any.digit
  %any.count = load i32, ptr %any.slot, align 4
  %any.wide = zext i32 %any.count to i64
  %is.same = icmp eq i64 %any.wide, %n
  br i1 %is.same, label %round.end, label %sum
sum:
  %d = phi i64 [ 0, %add ], [ %d.next, %sum ]
  %begin = phi i32 [ 0, %add ], [ %begin.next, %sum ]
  %count.at = getelementptr i32, ptr %own, i64 %d
  %count = load i32, ptr %count.at, align 4
  store i32 %begin, ptr %count.at, align 4
  %begin.next = add i32 %begin, %count
  %d.next = add i64 %d, 1
  %d.more = icmp slt i64 %d.next, Digit.count
  br i1 %d.more, label %sum, label %move
move:
  %m = phi i64 [ 0, %sum ], [ %m.next, %move ]
  %moved.at = getelementptr i64, ptr %from, i64 %m
  %moved = load i64, ptr %moved.at, align 8
  %shifted = lshr i64 %moved, %digit.at
  %digit = and i64 %shifted, Digit.mask
  %slot = getelementptr i32, ptr %own, i64 %digit
  %place = load i32, ptr %slot, align 4
  %place.next = add i32 %place, 1
  store i32 %place.next, ptr %slot, align 4
  %place.wide = zext i32 %place to i64
  %target = getelementptr i64, ptr %to, i64 %place.wide
  store i64 %moved, ptr %target, align 8
  %m.next = add i64 %m, 1
  %m.more = icmp slt i64 %m.next, %n
  br i1 %m.more, label %move, label %round.end
round.end:
  %from.next = phi ptr [ %from, %add ], [ %to, %move ]
  %to.next = phi ptr [ %to, %add ], [ %from, %move ]
  %r.next = add i64 %r, 1
  br label %round
done:
  ret ptr %from
}
