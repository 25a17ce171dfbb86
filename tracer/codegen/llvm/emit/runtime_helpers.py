"""Run-time helpers that compiled modules carry along: recording faults, growable stacks. All are cold or rare."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.toolchain.abi import FAULT_VALUES, Status, offset

_VALUES: Final = ", ".join(f"i64 %value{i}" for i in range(FAULT_VALUES))


def _store_values() -> str:
    lines = []
    for i in range(FAULT_VALUES):
        lines.append(f"  %slot{i} = getelementptr i8, ptr %context, i64 {offset('fault_values') + 8 * i}")
        lines.append(f"  store i64 %value{i}, ptr %slot{i}, align 8")
    return "\n".join(lines)


FAULT: Final = f"""\
define internal void @tracer.fault(ptr %context, i32 %site, i64 %position, {_VALUES}) #1 {{
entry:
  %lock = getelementptr i8, ptr %context, i64 {offset("lock")}
  br label %wait
wait:
  %held = atomicrmw xchg ptr %lock, i64 1 acquire
  %free = icmp eq i64 %held, 0
  br i1 %free, label %locked, label %wait
locked:
  %site.slot = getelementptr i8, ptr %context, i64 {offset("fault_site")}
  %position.slot = getelementptr i8, ptr %context, i64 {offset("fault_position")}
  %old.site = load i32, ptr %site.slot, align 4
  %old.position = load i64, ptr %position.slot, align 8
  %none = icmp slt i32 %old.site, 0
  %earlier = icmp slt i32 %site, %old.site
  %same = icmp eq i32 %site, %old.site
  %before = icmp slt i64 %position, %old.position
  %same.before = and i1 %same, %before
  %first = or i1 %earlier, %same.before
  %record = or i1 %none, %first
  br i1 %record, label %write, label %done
write:
  store i32 %site, ptr %site.slot, align 4
  store i64 %position, ptr %position.slot, align 8
{_store_values()}
  %status = load i32, ptr %context, align 4
  %new = icmp eq i32 %status, 0
  %set = select i1 %new, i32 {int(Status.FAULT)}, i32 %status
  store i32 %set, ptr %context, align 4
  br label %done
done:
  store atomic i64 0, ptr %lock release, align 8
  ret void
}}
"""


def _load_lane_values() -> str:
    lines = []
    for i in range(FAULT_VALUES):
        lines.append(f"  %row{i} = mul i64 %lanes, {i + 1}")
        lines.append(f"  %at{i} = add i64 %row{i}, %lane")
        lines.append(f"  %value{i}.slot = getelementptr i64, ptr %data, i64 %at{i}")
        lines.append(f"  %value{i} = load i64, ptr %value{i}.slot, align 8")
    return "\n".join(lines)


# data: lanes positions, then lanes of each value
FAULT_LANES: Final = f"""\
define internal void @tracer.fault_lanes(ptr %context, i32 %site, i64 %lanes, ptr %mask, ptr %data) #1 {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %following, %next ]
  %flag.slot = getelementptr i8, ptr %mask, i64 %lane
  %flag = load i8, ptr %flag.slot, align 1
  %holds = icmp ne i8 %flag, 0
  br i1 %holds, label %record, label %next
record:
  %position.slot = getelementptr i64, ptr %data, i64 %lane
  %position = load i64, ptr %position.slot, align 8
{_load_lane_values()}
  call void @tracer.fault(ptr %context, i32 %site, i64 %position, {_VALUES})
  br label %next
next:
  %following = add i64 %lane, 1
  %more = icmp slt i64 %following, %lanes
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_STACK_RECORD: Final = f"""\
  %stacks.slot = getelementptr i8, ptr %context, i64 {offset("stacks")}
  %stacks = load ptr, ptr %stacks.slot, align 8
  %byte = mul i64 %stack, 24
  %record = getelementptr i8, ptr %stacks, i64 %byte
  %used.slot = getelementptr i8, ptr %record, i64 8
  %used = load i64, ptr %used.slot, align 8"""

STACK_WRITE: Final = f"""\
declare ptr @realloc(ptr, i64)

define internal i1 @tracer.stack_write(ptr %context, i64 %stack, i64 %index, ptr %source, i64 %bytes) #2 {{
entry:
{_STACK_RECORD}
  %capacity.slot = getelementptr i8, ptr %record, i64 16
  %capacity = load i64, ptr %capacity.slot, align 8
  %data.old = load ptr, ptr %record, align 8
  %place = mul i64 %index, %bytes
  %needed = add i64 %place, %bytes
  %full = icmp sgt i64 %needed, %capacity
  br i1 %full, label %grow, label %ready
grow:
  %double = mul i64 %capacity, 2
  %enough = call i64 @llvm.smax.i64(i64 %double, i64 %needed)
  %new = call i64 @llvm.smax.i64(i64 %enough, i64 4096)
  %data.new = call ptr @realloc(ptr %data.old, i64 %new)
  %failed = icmp eq ptr %data.new, null
  br i1 %failed, label %fail, label %grown
grown:
  store ptr %data.new, ptr %record, align 8
  store i64 %new, ptr %capacity.slot, align 8
  br label %ready
ready:
  %data = phi ptr [ %data.old, %entry ], [ %data.new, %grown ]
  %beyond = icmp sgt i64 %needed, %used
  br i1 %beyond, label %extend, label %copy
extend:
  %gap = sub i64 %place, %used
  %zeros = call i64 @llvm.smax.i64(i64 %gap, i64 0)
  %end = getelementptr i8, ptr %data, i64 %used
  call void @llvm.memset.p0.i64(ptr %end, i8 0, i64 %zeros, i1 false)
  store i64 %needed, ptr %used.slot, align 8
  br label %copy
copy:
  %target = getelementptr i8, ptr %data, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret i1 false
fail:
  store i32 {int(Status.NO_MEMORY)}, ptr %context, align 4
  ret i1 true
}}
"""

STACK_PUSH: Final = f"""\
define internal i1 @tracer.stack_push(ptr %context, i64 %stack, ptr %source, i64 %bytes) #2 {{
entry:
{_STACK_RECORD}
  %size = call i64 @llvm.smax.i64(i64 %bytes, i64 1)
  %index = sdiv i64 %used, %size
  %failed = call i1 @tracer.stack_write(ptr %context, i64 %stack, i64 %index, ptr %source, i64 %bytes)
  ret i1 %failed
}}
"""

STACK_READ: Final = f"""\
define internal void @tracer.stack_read(ptr %context, i64 %stack, i64 %index, ptr %target, i64 %bytes) #2 {{
entry:
{_STACK_RECORD}
  %place = mul i64 %index, %bytes
  %end = add i64 %place, %bytes
  %there = icmp sle i64 %end, %used
  br i1 %there, label %copy, label %zero
copy:
  %data = load ptr, ptr %record, align 8
  %source = getelementptr i8, ptr %data, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  ret void
zero:
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)
  ret void
}}
"""

STACK_POP: Final = f"""\
define internal void @tracer.stack_pop(ptr %context, i64 %stack, ptr %target, i64 %bytes) #2 {{
entry:
{_STACK_RECORD}
  %left = sub i64 %used, %bytes
  %there = icmp sge i64 %left, 0
  br i1 %there, label %copy, label %zero
copy:
  %data = load ptr, ptr %record, align 8
  %top = getelementptr i8, ptr %data, i64 %left
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %top, i64 %bytes, i1 false)
  store i64 %left, ptr %used.slot, align 8
  ret void
zero:
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)
  ret void
}}
"""

STACK_LENGTH: Final = f"""\
define internal i64 @tracer.stack_length(ptr %context, i64 %stack, i64 %size) #2 {{
entry:
{_STACK_RECORD}
  %length = sdiv i64 %used, %size
  ret i64 %length
}}
"""

STACK_RESET: Final = f"""\
define internal void @tracer.stack_reset(ptr %context, i64 %stack) #2 {{
entry:
{_STACK_RECORD}
  store i64 0, ptr %used.slot, align 8
  ret void
}}
"""

HELPERS: Final[dict[str, str]] = {
    "fault": FAULT,
    "fault_lanes": FAULT_LANES,
    "stack_write": STACK_WRITE,
    "stack_push": STACK_PUSH,
    "stack_read": STACK_READ,
    "stack_pop": STACK_POP,
    "stack_length": STACK_LENGTH,
    "stack_reset": STACK_RESET,
}
"""By name, in the order in which a module carries them; `fault_lanes` needs `fault`, `stack_push` `stack_write`."""

DECLARATIONS: Final[dict[str, str]] = {
    "@llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "@llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "@llvm.smax.i64": "declare i64 @llvm.smax.i64(i64, i64)",
}
