"""The k largest elements of each row in one pass: a larger element replaces the smallest kept so far.

Vectors of a row are compared with that smallest one, and almost all hold no larger element. A larger one is inserted
among the kept, which are in order. NaN is larger than any number and equal to NaN, and -0 equals +0. Of equal elements
the first ones are kept, in their order.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_loops import keep, kept
from tracer.codegen.llvm.kernels.sort.numpy_sort import KINDS, item_size

_VECTOR: Final = 64  # bytes


def top_k_definition(kind: str) -> str:
    """Return the function for rows of n elements, 1 <= k <= n: the k largest into values, their indices beside."""
    element, size = KINDS[kind], item_size(kind)
    lanes = _VECTOR // size
    greater = {"f": "fcmp ugt", "i": "icmp sgt", "u": "icmp ugt"}[kind[0]]
    return f"""\
declare i64 @llvm.cttz.i64(i64, i1)
{_put_definition(kind, greater)}
define internal void @library.topk_{kind}(ptr %source, ptr %values, ptr %places, i64 %rows, i64 %n, i64 %k) #2 {{
entry:
  %last = sub i64 %k, 1
  %left = sub i64 %n, %k
  %vectors = and i64 %left, {-lanes}
  %whole = add i64 %vectors, %k
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %following, %row.end ]
  %at = mul i64 %i, %n
  %keys = getelementptr {element}, ptr %source, i64 %at
  %kept = mul i64 %i, %k
  %best = getelementptr {element}, ptr %values, i64 %kept
  %where = getelementptr i32, ptr %places, i64 %kept
  %least.at = getelementptr {element}, ptr %best, i64 %last
  br label %first
first:
  %f = phi i64 [ 0, %row ], [ %f.next, %first ]
  call void @library.put_{kind}(ptr %best, ptr %where, ptr %keys, i64 %f, i64 %f)
  %f.next = add i64 %f, 1
  %f.more = icmp slt i64 %f.next, %k
  br i1 %f.more, label %first, label %block
{_vectors(kind, greater)}
{_remainder(kind, greater)}
row.end:
  %following = add i64 %i, 1
  %more = icmp slt i64 %following, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}}
"""


def _vectors(kind: str, greater: str) -> str:
    """Scan a row by vectors, and insert elements larger than the smallest kept."""
    element, size = KINDS[kind], item_size(kind)
    lanes = _VECTOR // size
    vector, bits = f"<{lanes} x {element}>", f"i{lanes}"
    return f"""\
block:
  %b = phi i64 [ %k, %first ], [ %b.next, %block.end ]
  %b.more = icmp slt i64 %b, %whole
  br i1 %b.more, label %scan, label %rest
scan:
  %b.at = getelementptr {element}, ptr %keys, i64 %b
  %some = load {vector}, ptr %b.at, align {size}
  %least = load {element}, ptr %least.at, align {size}
  %least.one = insertelement {vector} poison, {element} %least, i64 0
  %least.all = shufflevector {vector} %least.one, {vector} poison, <{lanes} x i32> zeroinitializer
  %above = {greater} {vector} %some, %least.all
  %above.bits = bitcast <{lanes} x i1> %above to {bits}
  %found = {f"zext {bits} %above.bits to i64" if lanes < 64 else f"add {bits} %above.bits, 0"}
  %any = icmp ne i64 %found, 0
  br i1 %any, label %take, label %block.end
take:
  %open = phi i64 [ %found, %scan ], [ %open.next, %taken ]
  %lane = call i64 @llvm.cttz.i64(i64 %open, i1 true)
  %place = add i64 %b, %lane
{_passes(kind, greater, "take", "%place")}
  br i1 %take.passes, label %put, label %taken
put:
  call void @library.put_{kind}(ptr %best, ptr %where, ptr %keys, i64 %place, i64 %last)
  br label %taken
taken:
  %open.less = sub i64 %open, 1
  %open.next = and i64 %open, %open.less
  %open.more = icmp ne i64 %open.next, 0
  br i1 %open.more, label %take, label %block.end
block.end:
  %b.next = add i64 %b, {lanes}
  br label %block"""


def _remainder(kind: str, greater: str) -> str:
    """Scan the last elements of a row, too few for a vector."""
    return f"""\
rest:
  %r = phi i64 [ %b, %block ], [ %r.next, %rest.end ]
  %r.more = icmp slt i64 %r, %n
  br i1 %r.more, label %look, label %row.end
look:
{_passes(kind, greater, "look", "%r")}
  br i1 %look.passes, label %rest.put, label %rest.end
rest.put:
  call void @library.put_{kind}(ptr %best, ptr %where, ptr %keys, i64 %r, i64 %last)
  br label %rest.end
rest.end:
  %r.next = add i64 %r, 1
  br label %rest"""


def _greater(kind: str, greater: str, name: str, x: str, y: str) -> str:
    """Write %name: whether x is greater than y, NaN greater than numbers."""
    element = KINDS[kind]
    if not kind.startswith("f"):
        return f"  %{name} = {greater} {element} {x}, {y}"
    return f"""\
  %{name}.above = {greater} {element} {x}, {y}
  %{name}.number = fcmp ord {element} {y}, {y}
  %{name} = and i1 %{name}.above, %{name}.number"""


def _passes(kind: str, greater: str, name: str, place: str) -> str:
    """Write whether the element at a place belongs among the kept."""
    element, size = KINDS[kind], item_size(kind)
    return f"""\
  %{name}.at = getelementptr {element}, ptr %keys, i64 {place}
  %{name}.key = load {element}, ptr %{name}.at, align {size}
  %{name}.least = load {element}, ptr %least.at, align {size}
{_greater(kind, greater, f"{name}.passes", f"%{name}.key", f"%{name}.least")}"""


def _put_definition(kind: str, greater: str) -> str:
    """Return the function that inserts an element among `count` in order; the ones behind it move on by one."""
    element, size = KINDS[kind], item_size(kind)
    return f"""\
define internal void @library.put_{kind}(ptr %best, ptr %where, ptr %keys, i64 %place, i64 %count) #2 {{
entry:
  %key.at = getelementptr {element}, ptr %keys, i64 %place
  %key = load {element}, ptr %key.at, align {size}
  br label %look
look:
  %j = phi i64 [ %count, %entry ], [ %before, %move ]
  %is.first = icmp eq i64 %j, 0
  br i1 %is.first, label %put, label %compare
compare:
  %before = sub i64 %j, 1
  %before.at = getelementptr {element}, ptr %best, i64 %before
  %other = load {element}, ptr %before.at, align {size}
{_greater(kind, greater, "passes", "%key", "%other")}
  br i1 %passes, label %move, label %put
move:
  %to = getelementptr {element}, ptr %best, i64 %j
  store {element} %other, ptr %to, align {size}
  %from.where = getelementptr i32, ptr %where, i64 %before
  %other.where = load i32, ptr %from.where, align 4
  %to.where = getelementptr i32, ptr %where, i64 %j
  store i32 %other.where, ptr %to.where, align 4
  br label %look
put:
  %key.to = getelementptr {element}, ptr %best, i64 %j
  store {element} %key, ptr %key.to, align {size}
  %place.to = getelementptr i32, ptr %where, i64 %j
  %place.i = trunc i64 %place to i32
  store i32 %place.i, ptr %place.to, align 4
  ret void
}}
"""


def split_top_k(kind: str) -> str:
    """Return the function over rows that threads share; a part has at least `grain` rows."""
    given = ("ptr %source", "ptr %values", "ptr %places", "i64 %n", "i64 %k")
    return f"""\
declare void @tracer_share(ptr, ptr, i64, i64)
define internal void @library.split.topk_{kind}(ptr %source, ptr %values, ptr %places, i64 %rows, i64 %n, \
i64 %k, i64 %grain) #2 {{
  %given = alloca [{len(given)} x i64], align 8
{keep(*given)}
  call void @tracer_share(ptr @library.part.topk_{kind}, ptr %given, i64 %rows, i64 %grain)
  ret void
}}
define internal void @library.part.topk_{kind}(ptr %given, i64 %begin, i64 %end) #2 {{
{kept(*given)}
  %rows = sub i64 %end, %begin
  %skip = mul i64 %begin, %n
  %skip.kept = mul i64 %begin, %k
  %source.part = getelementptr {KINDS[kind]}, ptr %source, i64 %skip
  %values.part = getelementptr {KINDS[kind]}, ptr %values, i64 %skip.kept
  %places.part = getelementptr i32, ptr %places, i64 %skip.kept
  call void @library.topk_{kind}(ptr %source.part, ptr %values.part, ptr %places.part, i64 %rows, i64 %n, i64 %k)
  ret void
}}
"""
