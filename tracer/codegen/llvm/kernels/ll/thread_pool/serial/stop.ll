; Return: there are no threads to end.

define void @tracer_pool_stop() {
  ret void
}
