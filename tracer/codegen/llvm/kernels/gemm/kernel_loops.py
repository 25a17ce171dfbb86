"""Counted loops of kernels, and the words that they pass to threads, as LLVM text."""

from __future__ import annotations

from collections.abc import Iterable


def loop(
    i: str, start: str, stop: str, step: int | str, body: str, carried: Iterable[tuple[str, str, str]] = ()
) -> str:
    """Write `for i in range(start, stop, step)`. carried: (name, type, first value); `name.new` is the next value.

    After the loop, `name` is the value that the next iteration would have had.
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


def unless_stopped(name: str, body: str) -> str:
    """Write the body for calls whose stop word, at `%halt`, is not set. Loops then end soon, their results unfinished.

    Who calls the kernel polls the word after it. name: of this place, unique in the function.
    """
    return f"""\
  %{name}.word = load atomic i32, ptr %halt monotonic, align 4
  %{name}.goes.on = icmp eq i32 %{name}.word, 0
  br i1 %{name}.goes.on, label %{name}.on, label %{name}.past
{name}.on:
{body}
  br label %{name}.past
{name}.past:"""


def onward(condition: str, name: str) -> str:
    """Write `%name`: the condition, unless the stop word is set. For loops that are spelled out."""
    return f"""\
  %{name}.word = load atomic i32, ptr %halt monotonic, align 4
  %{name}.goes.on = icmp eq i32 %{name}.word, 0
  %{name} = and i1 {condition}, %{name}.goes.on"""


def keep(*values: str) -> str:
    """Store values, each with its type, in the order in which `kept` loads them."""
    return "\n".join(
        f"  %given.{n} = getelementptr i64, ptr %given, i64 {n}\n  store {value}, ptr %given.{n}, align 8"
        for n, value in enumerate(values)
    )


def kept(*names: str) -> str:
    """Load the values that `keep` stored, under their names."""
    return "\n".join(
        f"  %given.{n} = getelementptr i64, ptr %given, i64 {n}\n"
        f"  {name.split()[1]} = load {name.split()[0]}, ptr %given.{n}, align 8"
        for n, name in enumerate(names)
    )
