"""Ctrl-C in compiled code.

CPython's own handler for SIGINT only takes a note, and Python code on the main thread acts on it; native code is not
Python code. So for as long as a long program runs on the main thread, a handler of ours stands in front of CPython's.
It sets the stop word, which the loops of compiled code poll, and calls CPython's. The call then returns, and
`PyErr_CheckSignals` runs the user's Python handler: usually it raises KeyboardInterrupt. A handler that returns
wants the program to go on, and so it is run again, from its start, unless callbacks would be repeated by that.

Programs on other threads have a stop word that stays 0, as Python's own threads are not interrupted by Ctrl-C.
"""

from __future__ import annotations

import ctypes
import os
import threading

SIGINT = 2

main_thread = ctypes.c_int64()  # its identifier, an imported symbol of the text below


def _note_main_thread() -> None:
    main_thread.value = ctypes.c_int64(threading.main_thread().ident or 0).value


_note_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_main_thread)

TEXT = f"""\
; Ctrl-C: see tracer/runtime/native/sigint.py. All but the handler run with the GIL.
@tracer_main_thread = external global i64
@tracer.stop = internal global i32 0
@tracer.never = internal global i32 0
@tracer.depth = internal global i64 0
@tracer.previous = internal global ptr null
declare i64 @PyThread_get_thread_ident()
declare ptr @PyOS_getsig(i32)
declare ptr @PyOS_setsig(i32, ptr)

define internal void @tracer.on_interrupt(i32 %signal) {{
  store atomic i32 1, ptr @tracer.stop monotonic, align 4
  %previous = load ptr, ptr @tracer.previous
  call void %previous(i32 %signal)
  ret void
}}

; The stop word for a call that begins now. Calls within calls share the handler.
define ptr @tracer_arm() {{
  %thread = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @tracer_main_thread
  %is.main = icmp eq i64 %thread, %main
  br i1 %is.main, label %nest, label %never
never:
  ret ptr @tracer.never
nest:
  %depth = load i64, ptr @tracer.depth
  %is.inner = icmp ne i64 %depth, 0
  br i1 %is.inner, label %enter, label %outermost
outermost:
  %previous = call ptr @PyOS_getsig(i32 {SIGINT})
  %address = ptrtoint ptr %previous to i64
  %is.handler = icmp ugt i64 %address, 1 ; neither SIG_DFL nor SIG_IGN
  br i1 %is.handler, label %install, label %never
install:
  store i32 0, ptr @tracer.stop
  store ptr %previous, ptr @tracer.previous
  %replaced = call ptr @PyOS_setsig(i32 {SIGINT}, ptr @tracer.on_interrupt)
  br label %enter
enter:
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr @tracer.depth
  ret ptr @tracer.stop
}}

; The end of a call, given the stop word that it had.
define void @tracer_disarm(ptr %word) {{
  %armed = icmp eq ptr %word, @tracer.stop
  br i1 %armed, label %leave, label %done
leave:
  %depth = load i64, ptr @tracer.depth
  %outer = sub i64 %depth, 1
  store i64 %outer, ptr @tracer.depth
  %is.last = icmp eq i64 %outer, 0
  br i1 %is.last, label %restore, label %done
restore:
  %previous = load ptr, ptr @tracer.previous
  %replaced = call ptr @PyOS_setsig(i32 {SIGINT}, ptr %previous)
  store i32 0, ptr @tracer.stop
  br label %done
done:
  ret void
}}
"""
