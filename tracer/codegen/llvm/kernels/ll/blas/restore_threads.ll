; Give BLAS as many threads as it had before `limit_threads`.

define internal void @library.restore_threads(i32 %threads) #2 {
entry:
  %several = icmp sgt i32 %threads, 1
  br i1 %several, label %restore, label %done
restore:
  call void @tracer_blas_set_threads(i32 %threads)
  br label %done
done:
  ret void
}
