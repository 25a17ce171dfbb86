"""Tracebacks without this package's frames, where the mistake is the user's."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from tracer.errors import (
    InternalError,
    NestingError,
    OutOfMemoryError,
    ShapeError,
    TracedValueError,
    TracerError,
    message,
)
from tracer.trace.parameters import OF_OBJECTS, refused_call, refused_object
from tracer.trace.source import is_ours, place, user_source
from tracer.trace.transformed import Transformed

NOWHERE = 1 << 30  # a position after all arguments of a call


class Raised:
    """Exception that a compiled entry raises for our Python code, which thereby leaves no frame."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = (explained(error) or error).with_traceback(tidy(error))


def call_user(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the user's function. An error raised by this line is about its arguments.

    NumPy's ValueError for an element set from a traced value gives way to the error that caused it.
    """
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        cause = error.__cause__
        if not isinstance(cause, TracedValueError):
            raise
        told = cause.with_traceback(error.__traceback__)
    raise told from None


@dataclass(frozen=True, slots=True)
class Options:
    """Keywords that a function takes without having them as parameters, and the function that is called then.

    place: the position of the first positional argument that also goes to `call`.
    """

    names: frozenset[str] = frozenset()
    call: Callable[..., Any] = call_user
    place: int = NOWHERE


NO_OPTIONS = Options()


def boundary(
    function: Callable[..., Any], *, named: bool = False, options: Options = NO_OPTIONS,
    run: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return the function with its errors' tracebacks freed of our frames.

    named: whether errors name this function even if a function that it calls raised them. run: called in its place.
    """
    return wraps(function)(_bounded(function, named, options, run or function))


def _bounded(
    function: Callable[..., Any], named: bool, options: Options, run: Callable[..., Any]
) -> Callable[..., Any]:
    names, optioned, place = options.names, options.call, options.place

    def outermost(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > place or (kwargs and not names.isdisjoint(kwargs)):
                return optioned(run, args, kwargs)
            return run(*args, **kwargs)
        except BaseException as error:
            if named:
                name_caller(error, function.__name__)
            ours = explained(error, function.__name__)
            if ours is None:
                error.__traceback__ = tidy(error)
                raise  # adds no frame, as raising it by name would
            try:
                raise ours from None
            except TracerError:
                ours.__traceback__ = tidy(error)
                raise

    return outermost


def wrapping(fun: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator like functools.wraps, with a boundary, for functions that transforms make of the user's."""
    return lambda function: Transformed(_bounded(function, False, NO_OPTIONS, function), fun)


def remembering(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return the transform with its calls noted on their results, for pickles, which find it by its name."""

    @wraps(transform)
    def noting(*args: Any, **kwargs: Any) -> Any:
        result = transform(*args, **kwargs)
        if isinstance(result, Transformed):
            result._made = face, args, kwargs
        return result

    face = boundary(noting)
    return face


def set_boundaries(
    namespace: dict[str, Any], names: Iterable[str] | None = None, make: Callable[..., Any] = boundary
) -> None:
    """Put boundaries around a public namespace's functions, and make them its own.

    By default these are the functions that it defines.

    Pickle, for one, then finds them where users find them. Another name of a function stays another name of it.
    `dir` lists the public names alone.
    """
    own = namespace["__name__"]
    namespace.setdefault("__dir__", lambda: public_names(namespace))
    if names is None:
        names = [k for k, v in namespace.items() if k[0] != "_" and getattr(v, "__module__", None) == own]
    made: dict[FunctionType, Any] = {}
    for name in sorted(names, key=lambda name: name != getattr(namespace.get(name), "__name__", None)):
        function = namespace.get(name)
        if type(function) is FunctionType:
            if function not in made:
                face = made[function] = make(function)
                face.__module__, face.__qualname__ = own, name
            namespace[name] = made[function]


def public_names(namespace: dict[str, Any]) -> list[str]:
    """Return the public names of a module: `__all__`, else the names that it defines without an underscore."""
    own = namespace["__name__"]
    defined = (k for k, v in namespace.items() if k[0] != "_" and getattr(v, "__module__", None) == own)
    return sorted(namespace.get("__all__", defined))


def set_method_boundaries(cls: type, dunders: Sequence[str] = ("__call__", "__init__")) -> None:
    """Put boundaries around a public class's methods, except the methods that flatten trees."""
    for name, function in list(vars(cls).items()):
        public = name in dunders or not name.startswith(("_", "tree_"))
        if type(function) is FunctionType and public:
            setattr(cls, name, boundary(function))


def name_caller(error: BaseException, name: str) -> None:
    """Let an error of ours begin with the function that the user called, not with one that this function called.

    An error raised by a function of the user's stays as it is. Python's errors about arguments also get the name of the
    function, and the reason why a parameter is not taken.
    """
    name = name.lstrip("_")
    if type(error) is TypeError or type(error) is ValueError:
        codes = _codes(error)
        handed_on = bool(codes) and codes[-1].co_name in _HANDING_ON
        if all(map(is_ours, codes)):
            text = refused_call(error, name) if handed_on else None
            if text is not None:
                error.args = (text,)
                setattr(error, _THEIRS, True)
    if not isinstance(error, TracerError) or isinstance(error, InternalError) or not name.isidentifier():
        return
    if not all(map(is_ours, _codes(error))):
        return
    text = str(error)
    inner = _INNER.match(text)
    if inner is not None and inner[1] != name:
        error.args = (name + text[inner.end(1) :].replace(f"help({inner[1]})", f"help({name})"),)


def explained(error: BaseException, name: str | None = None) -> TracerError | None:
    """Return our error for an error of Python or NumPy that this package explains; None for any other error.

    name: the function that the user called, whose arguments may be of the wrong form.
    """
    if isinstance(error, TracerError):
        return None
    if name is not None and isinstance(error, OF_OBJECTS) and all(map(is_ours, _codes(error))):
        refused = refused_object(error, name.lstrip("_"))
        if refused is not None:
            return refused
    if isinstance(error, RecursionError):
        return too_deep(error)
    is_size = type(error) is ValueError and _SIZES.match(str(error)) is not None
    codes = _codes(error) if is_size or isinstance(error, MemoryError) else []
    if codes and not is_ours(codes[-1]):  # the user's own
        return None
    if isinstance(error, MemoryError):
        said = str(error) or "a result, or the temporaries of a program, do not fit"
        return OutOfMemoryError(
            message(
                f"memory does not suffice{place(user_source())}",
                said[0].lower() + said[1:],
                help="compute parts one after another, as by lax.map; jit(f).lower(x).memory() tells f's memory",
            )
        )
    if is_size:
        return ShapeError(message(f"the result is too large{place(user_source())}", str(error)))
    return None


_SIZES = re.compile(
    r"array is too big|Maximum allowed (size|dimension) exceeded|iterator is too large|maximum supported dim"
)


def too_deep(error: RecursionError) -> NestingError | None:
    """Return the error for calls nested too deeply; None for a recursion of the user's that passes by this package."""
    if isinstance(error, TracerError):
        return None
    source, depth, ours, same = user_source(), 0, 0, 0
    if "flattening the tree" in str(error):  # told by optree, whose recursion has no frames
        return NestingError(
            message(f"a tree is nested too deeply{place(source)}", help="keep its parts side by side, as in one list")
        )
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        depth += 1
        ours += is_ours(frame.f_code)
        same += source is not None and (frame.f_code.co_filename, frame.f_lineno) == (source.file, source.line)
        frame = frame.f_back
    if 4 * ours < depth:  # frames of a recursion through this package are mostly its own
        return None
    return NestingError(
        message(
            f"calls are nested too deeply{place(source)}",
            f"{same} of {depth} frames are at this line, and Python stops at {sys.getrecursionlimit()}",
            help="write a loop, lax.scan or lax.while_loop, in place of nested calls: both branches of a lax.cond are "
            "traced, so a function that calls itself in one has no end; sys.setrecursionlimit allows deeper nests",
        )
    )


def _codes(error: BaseException) -> list[CodeType]:
    """Return the code objects that the error passed through, the raising one last."""
    codes, traceback = [], error.__traceback__
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return codes


_HANDING_ON = ("outermost", "__call__", "handed_on", "made")  # here, in `call_cache`, `ufunc_options`, `fresh_handles`
_INNER = re.compile("([a-z_][a-z_0-9]*) at ")


def tidy(error: BaseException) -> TracebackType | None:
    """Return the traceback without our frames; all of it if our code raised an unintended error."""
    traceback = error.__traceback__
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    raised_by_us = isinstance(error, TracerError | KeyboardInterrupt | MemoryError)
    deliberate = raised_by_us and not isinstance(error, InternalError)
    if frames and not deliberate and not hasattr(error, _THEIRS):
        last = frames[-1].tb_frame.f_code
        if is_ours(last) and last not in _CALLERS:
            return error.__traceback__
        setattr(error, _THEIRS, True)
    kept: TracebackType | None = None
    for frame in reversed(frames):
        if not is_ours(frame.tb_frame.f_code):
            line = frame.tb_lineno or frame.tb_frame.f_code.co_firstlineno  # none where a call was interrupted early
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, line)
    return kept


_THEIRS = "__tracer_saw_it_is_the_users__"  # set by an inner boundary, which left no frame for an outer one
_CALLERS = (call_user.__code__, boundary(call_user).__code__)  # errors raised here are about a call's arguments
