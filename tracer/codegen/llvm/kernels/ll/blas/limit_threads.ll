; Limit BLAS to one thread. Returns the number of threads before, for `restore_threads`.

define internal i32 @library.limit_threads() #2 {
entry:
  %threads = load i32, ptr @tracer_blas_threads, align 4
  %several = icmp sgt i32 %threads, 1
  br i1 %several, label %limit, label %done
limit:
  call void @tracer_blas_set_threads(i32 1)
  br label %done
done:
  ret i32 %threads
}
