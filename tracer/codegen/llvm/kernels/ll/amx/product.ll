; Multiply matrices of bf16: out[m, n] = a[m, k] @ b[k, n], out in f32, steps in elements.
; a_column and one step of b are 1.
; Loops over columns, depths, rows, panels and blocks. Packed copies of b and a lie on the stack.
; turn: the function that transposes tiles of pairs, for b whose columns are contiguous.

define void @tracer_product_bf16(ptr %a, ptr %b, ptr %out, i64 %m, i64 %n, i64 %k, i64 %a_row, i64 %a_column, i64 %b_row, i64 %b_column, i64 %out_row, ptr %turn) #0 {
entry:
  %packed = alloca [Amx.packed_pairs x i32], align 64
  %rows.packed = alloca [Amx.packed_rows x i16], align 64
  %configuration = alloca [64 x i8], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr %configuration, ptr @tile.configuration, i64 64, i1 false)
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  %configured = alloca i64, align 8
  store i64 2080, ptr %configured, align 8
  %is.plain = icmp eq i64 %b_column, 1
  br label %columns.loop
columns.loop:
  %g = phi i64 [ 0, %entry ], [ %g.next, %columns.end ]
  %g.left = sub i64 %n, %g
  %columns = call i64 @llvm.smin.i64(i64 %g.left, i64 Amx.columns)
  br label %depth.loop
depth.loop:
  %p = phi i64 [ 0, %columns.loop ], [ %p.next, %depth.end ]
  %p.left = sub i64 %k, %p
  %depth = call i64 @llvm.smin.i64(i64 %p.left, i64 Amx.depth)
  %is.first = icmp eq i64 %p, 0
  %depth.up = add i64 %depth, 31
  %filled = and i64 %depth.up, -32
  %steps = lshr i64 %filled, 1
  %b.row.skip = mul i64 %p, %b_row
  %b.column.skip = mul i64 %g, %b_column
  %b.skip = add i64 %b.row.skip, %b.column.skip
  %b.at = getelementptr i16, ptr %b, i64 %b.skip
  br i1 %is.plain, label %plain, label %turned
plain:
  call void @pairs(ptr %b.at, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_row)
  br label %rows.loop
turned:
  call void @turned(ptr %b.at, ptr %packed, i64 %columns, i64 %depth, i64 %steps, i64 %b_column, ptr %turn)
  br label %rows.loop
rows.loop:
  %h = phi i64 [ 0, %plain ], [ 0, %turned ], [ %h.next, %rows.end ]
  %h.left = sub i64 %m, %h
  %rows = call i64 @llvm.smin.i64(i64 %h.left, i64 Amx.rows)
  %a.row.skip = mul i64 %h, %a_row
  %a.skip = add i64 %a.row.skip, %p
  %a.at = getelementptr i16, ptr %a, i64 %a.skip
  call void @rows(ptr %a.at, ptr %rows.packed, i64 %rows, i64 %depth, i64 %filled, i64 %a_row)
  br label %panel.loop
panel.loop:
  %j = phi i64 [ 0, %rows.loop ], [ %j.next, %panel.end ]
  %j.left = sub i64 %columns, %j
  %width = call i64 @llvm.smin.i64(i64 %j.left, i64 32)
  %panel.skip = mul i64 %j, %steps
  %panel = getelementptr i32, ptr %packed, i64 %panel.skip
  %column = add i64 %g, %j
  %out.panel = getelementptr float, ptr %out, i64 %column
  br label %block.loop
block.loop:
  %i = phi i64 [ 0, %panel.loop ], [ %i.next, %block.end ]
  %i.left = sub i64 %rows, %i
  %height = call i64 @llvm.smin.i64(i64 %i.left, i64 32)
  %i.skip = mul i64 %i, %filled
  %a.block = getelementptr i16, ptr %rows.packed, i64 %i.skip
  %row = add i64 %h, %i
  %out.skip = mul i64 %row, %out_row
  %out.block = getelementptr float, ptr %out.panel, i64 %out.skip
  %height.word = shl i64 %height, 6
  %wanted = add i64 %height.word, %width
  %found = load i64, ptr %configured, align 8
  %is.configured = icmp eq i64 %wanted, %found
  br i1 %is.configured, label %multiply, label %configure
configure:
  call void @configure(ptr %configuration, i64 %height, i64 %width)
  store i64 %wanted, ptr %configured, align 8
  br label %multiply
multiply:
  %is.tall = icmp sgt i64 %height, 16
  %is.wide = icmp sgt i64 %width, 16
  %tall = select i1 %is.tall, i64 2, i64 0
  %form = select i1 %is.wide, i64 1, i64 0
  %tiles = add i64 %tall, %form
  switch i64 %tiles, label %block22 [ i64 0, label %block11 i64 1, label %block12 i64 2, label %block21 ]
block11:
  call void @block11(ptr %a.block, ptr %panel, ptr %out.block, i64 %filled, i64 %out_row, i1 %is.first)
  br label %block.end
block12:
  call void @block12(ptr %a.block, ptr %panel, ptr %out.block, i64 %filled, i64 %out_row, i1 %is.first)
  br label %block.end
block21:
  call void @block21(ptr %a.block, ptr %panel, ptr %out.block, i64 %filled, i64 %out_row, i1 %is.first)
  br label %block.end
block22:
  call void @block22(ptr %a.block, ptr %panel, ptr %out.block, i64 %filled, i64 %out_row, i1 %is.first)
  br label %block.end
block.end:
  %i.next = add i64 %i, 32
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %block.loop, label %panel.end
panel.end:
  %j.next = add i64 %j, 32
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %panel.loop, label %rows.end
rows.end:
  %h.next = add i64 %h, Amx.rows
  %h.more = icmp slt i64 %h.next, %m
  br i1 %h.more, label %rows.loop, label %depth.end
depth.end:
  %p.next = add i64 %p, Amx.depth
  %p.more = icmp slt i64 %p.next, %k
  br i1 %p.more, label %depth.loop, label %columns.end
columns.end:
  %g.next = add i64 %g, Amx.columns
  %g.more = icmp slt i64 %g.next, %n
  br i1 %g.more, label %columns.loop, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}
