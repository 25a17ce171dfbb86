"""Counted loops of kernels, as LLVM text."""

from __future__ import annotations

from collections.abc import Iterable


def loop(i: str, start: str, stop: str, step: int, body: str, carried: Iterable[tuple[str, str, str]] = ()) -> str:
    """`for i in range(start, stop, step)`; what is carried, each a name, a type and a first value, is `name.new` next.

    Behind the loop they have the values that no round saw.
    """
    carries = "\n".join(
        f"  %{name} = phi {kind} [ {first}, %{i}.enter ], [ %{name}.new, %{i}.latch ]" for name, kind, first in carried
    )
    return f"""\
  br label %{i}.enter
{i}.enter:
  br label %{i}.test
{i}.test:
  %{i} = phi i64 [ {start}, %{i}.enter ], [ %{i}.next, %{i}.latch ]
{carries}
  %{i}.more = icmp slt i64 %{i}, {stop}
  br i1 %{i}.more, label %{i}.body, label %{i}.done
{i}.body:
{body}
  br label %{i}.latch
{i}.latch:
  %{i}.next = add i64 %{i}, {step}
  br label %{i}.test
{i}.done:"""
