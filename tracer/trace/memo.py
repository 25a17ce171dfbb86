"""Memoised transforms of programs: one result for each program and the source lines in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from tracer.ir.program import Program

P = ParamSpec("P")
Result = TypeVar("Result")


def remembered(transform: Callable[Concatenate[Program, P], Result]) -> Callable[Concatenate[Program, P], Result]:
    """Keep the last 1024 results.

    Equal programs may come from different lines, but the errors of a result must name the right lines.
    """

    @lru_cache(maxsize=1024)
    def known(lines: bytes, program: Program, args: Any, kwargs: Any) -> Result:
        return transform(program, *args, **dict(kwargs))

    @wraps(transform)
    def call(program: Program, *args: P.args, **kwargs: P.kwargs) -> Result:
        return known(program.lines, program, args, tuple(kwargs.items()))

    return cast(Callable[Concatenate[Program, P], Result], call)
