"""`Partial`: a function with some of its arguments, which are the leaves of a tree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracer.trace import trees


class _Whole:
    """A partial as a plain function, whose arguments another partial would take for its own."""

    def __init__(self, function: functools.partial[Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


class Partial(functools.partial[Any]):
    """A `functools.partial` that is a node: its arguments are its children, its function belongs to the structure.

    func: any function; args, keywords: trees of arrays. What a partial that it is made of has for arguments belongs to
    the function.

    >>> import tracer
    >>> double = tracer.tree_util.Partial(lambda factor, x: factor * x, 2.0)
    >>> tracer.jit(lambda f, x: f(x))(double, 3.0)
    Array(6., f64*)
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        """As `functools.partial`."""
        whole = _Whole(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, whole, *args, **keywords)


trees.register(
    Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, children: Partial(func, *children[0], **children[1])
)
