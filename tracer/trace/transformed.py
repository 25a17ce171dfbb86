"""Functions that transforms return. A pickle of one stores the call of its transform."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any

from tracer.errors import ArgumentError, message
from tracer.trace.pickling import name_at_home, nameless
from tracer.trace.source import here


class Transformed:
    """Result of a transform of a function. `__call__` is a slot of the instance, so a call has no frame of its own."""

    __slots__ = ("__call__", "__dict__", "__weakref__", "_made")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __init__(self, function: Callable[..., Any], fun: Callable[..., Any]) -> None:
        """function: runs the calls. fun: the function that it is made of, whose name and signature it has."""
        self.__call__ = function  # type: ignore[method-assign]
        self._made: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None
        update_wrapper(self, fun)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        transform = "transform" if self._made is None else self._made[0].__name__
        return f"<{transform} of {getattr(self, '__name__', 'a function')}>"

    def __copy__(self) -> Transformed:
        return self

    def __deepcopy__(self, memo: Any) -> Transformed:
        return self

    def __reduce__(self) -> Any:
        name = name_at_home(self)
        if name is not None:
            return name
        missing = None
        if self._made is not None:
            transform, args, kwargs = self._made
            missing = next((text for x in (*args, *kwargs.values()) if (text := nameless(x)) is not None), None)
            if missing is None:
                return _made_again, (transform, args, kwargs)
        raise ArgumentError(
            message(
                f"pickle{here()}: {self!r} cannot be found by name where it is loaded",
                *([] if missing is None else [f"it is made of {missing}"]),
                help="define the function at the top of a module, or call jit of this once and pickle the jitted "
                "function, which carries its program",
            )
        )


def _made_again(transform: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return transform(*args, **kwargs)
