"""`Partial`: a function with some of its arguments bound, as a tree whose leaves are these arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracer.trace import trees


class _Whole:
    """Partial wrapped as a plain function, since another partial would absorb its arguments."""

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
    """Tree node of a `functools.partial`: its arguments are its children, its function belongs to the structure.

    func: any function; args, keywords: trees of arrays. If func is itself a partial, its arguments belong to the
    function.

    >>> import tracer
    >>> double = tracer.tree_util.Partial(lambda factor, x: factor * x, 2.0)
    >>> tracer.jit(lambda f, x: f(x))(double, 3.0)
    Array(6., f64*)
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        """Bind arguments to a function, as `functools.partial`."""
        whole = _Whole(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, whole, *args, **keywords)


trees.register(
    Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, children: Partial(func, *children[0], **children[1])
)
