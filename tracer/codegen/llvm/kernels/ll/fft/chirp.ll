; Transform one line by a convolution. plan: words of `plans`. memory: of three lines of the longer length.
; kind: 0 forward, 1 back, 2 from real numbers, 3 to real numbers. bits: the address of the factor of the results.

define internal void @chirp(ptr %source, ptr %target, ptr %memory, ptr %plan, i64 %kind, i64 %bits, i64 %grain) #0 {
entry:
  %h = field i64 %plan Plan.h
  %chirped = field i64 %plan Plan.chirped
  %chirp = field ptr %plan Plan.chirp
  %spectrum = field ptr %plan Plan.spectrum
  %one = alloca Line.element, align 8
  store Line.element 1.0, ptr %one, align 8
  %one.bits = ptrtoint ptr %one to i64
  %scale = inttoptr i64 %bits to ptr
  %longer = mul i64 %h, 2
  %other = getelementptr Line.element, ptr %memory, i64 %longer
  %matrix = getelementptr Line.element, ptr %other, i64 %longer
  %halved = udiv i64 %chirped, 2
  %half = add i64 %halved, 1
  switch i64 %kind, label %complex [ i64 2, label %real  i64 3, label %mirror ]
complex:
  %is.back = icmp ne i64 %kind, 0
  call void @turned.in(ptr %source, ptr %memory, ptr %chirp, i64 %chirped, i64 %h, i1 %is.back)
  br label %run
real:
  call void @turned.in.real(ptr %source, ptr %memory, ptr %chirp, i64 %chirped, i64 %h)
  br label %run
mirror:
  call void @mirrored(ptr %source, ptr %other, i64 %chirped)
  call void @turned.in(ptr %other, ptr %memory, ptr %chirp, i64 %chirped, i64 %h, i1 false)
  br label %run
run:
  call void @line(ptr %memory, ptr %other, ptr %matrix, ptr %plan, i64 0, i64 %one.bits, i64 %grain, i64 0, i64 0)
  call void @multiplied(ptr %other, ptr %spectrum, i64 %h)
  call void @line(ptr %other, ptr %memory, ptr %matrix, ptr %plan, i64 1, i64 %one.bits, i64 %grain, i64 0, i64 0)
  switch i64 %kind, label %put [ i64 2, label %put.half  i64 3, label %put.real ]
put:
  %back = icmp ne i64 %kind, 0
  call void @turned.out(ptr %memory, ptr %target, ptr %chirp, i64 %chirped, ptr %scale, i1 %back)
  ret void
put.half:
  call void @turned.out(ptr %memory, ptr %target, ptr %chirp, i64 %half, ptr %scale, i1 false)
  ret void
put.real:
  call void @turned.out.real(ptr %memory, ptr %target, ptr %chirp, i64 %chirped, ptr %scale)
  ret void
}
