; Configure the tiles for a block of `height` by `width` sums, at most 32 each; unused tiles are of minimal size.
; configuration: 64 bytes as LDTILECFG reads them, whose rows and bytes a row are changed.

define internal void @configure(ptr %configuration, i64 %height, i64 %width) #0 {
  %upper = call i64 @llvm.smin.i64(i64 %height, i64 16)
  %below = sub i64 %height, 16
  %lower = call i64 @llvm.smax.i64(i64 %below, i64 1)
  %left = call i64 @llvm.smin.i64(i64 %width, i64 16)
  %beside = sub i64 %width, 16
  %right = call i64 @llvm.smax.i64(i64 %beside, i64 1)
  %rows0 = trunc i64 %upper to i8
  %rows.at0 = getelementptr i8, ptr %configuration, i64 48
  store i8 %rows0, ptr %rows.at0, align 1
  %bytes0 = shl i64 %left, 2
  %short0 = trunc i64 %bytes0 to i16
  %bytes.at0 = getelementptr i8, ptr %configuration, i64 16
  store i16 %short0, ptr %bytes.at0, align 2
  %rows1 = trunc i64 %upper to i8
  %rows.at1 = getelementptr i8, ptr %configuration, i64 49
  store i8 %rows1, ptr %rows.at1, align 1
  %bytes1 = shl i64 %right, 2
  %short1 = trunc i64 %bytes1 to i16
  %bytes.at1 = getelementptr i8, ptr %configuration, i64 18
  store i16 %short1, ptr %bytes.at1, align 2
  %rows2 = trunc i64 %lower to i8
  %rows.at2 = getelementptr i8, ptr %configuration, i64 50
  store i8 %rows2, ptr %rows.at2, align 1
  %bytes2 = shl i64 %left, 2
  %short2 = trunc i64 %bytes2 to i16
  %bytes.at2 = getelementptr i8, ptr %configuration, i64 20
  store i16 %short2, ptr %bytes.at2, align 2
  %rows3 = trunc i64 %lower to i8
  %rows.at3 = getelementptr i8, ptr %configuration, i64 51
  store i8 %rows3, ptr %rows.at3, align 1
  %bytes3 = shl i64 %right, 2
  %short3 = trunc i64 %bytes3 to i16
  %bytes.at3 = getelementptr i8, ptr %configuration, i64 22
  store i16 %short3, ptr %bytes.at3, align 2
  %rows4 = trunc i64 %upper to i8
  %rows.at4 = getelementptr i8, ptr %configuration, i64 52
  store i8 %rows4, ptr %rows.at4, align 1
  %bytes4 = shl i64 16, 2
  %short4 = trunc i64 %bytes4 to i16
  %bytes.at4 = getelementptr i8, ptr %configuration, i64 24
  store i16 %short4, ptr %bytes.at4, align 2
  %rows5 = trunc i64 %lower to i8
  %rows.at5 = getelementptr i8, ptr %configuration, i64 53
  store i8 %rows5, ptr %rows.at5, align 1
  %bytes5 = shl i64 16, 2
  %short5 = trunc i64 %bytes5 to i16
  %bytes.at5 = getelementptr i8, ptr %configuration, i64 26
  store i16 %short5, ptr %bytes.at5, align 2
  %rows6 = trunc i64 16 to i8
  %rows.at6 = getelementptr i8, ptr %configuration, i64 54
  store i8 %rows6, ptr %rows.at6, align 1
  %bytes6 = shl i64 %left, 2
  %short6 = trunc i64 %bytes6 to i16
  %bytes.at6 = getelementptr i8, ptr %configuration, i64 28
  store i16 %short6, ptr %bytes.at6, align 2
  %rows7 = trunc i64 16 to i8
  %rows.at7 = getelementptr i8, ptr %configuration, i64 55
  store i8 %rows7, ptr %rows.at7, align 1
  %bytes7 = shl i64 %right, 2
  %short7 = trunc i64 %bytes7 to i16
  %bytes.at7 = getelementptr i8, ptr %configuration, i64 30
  store i16 %short7, ptr %bytes.at7, align 2
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  ret void
}
