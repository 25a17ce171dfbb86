"""`jit`: compiles a Python function into programs, one for each signature."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload
from weakref import ref

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.lazy import LazyModule
from tracer.runtime.jit.argument_plan import Plan, make_plan
from tracer.runtime.jit.device_entry import DeviceEntry, entry_of
from tracer.runtime.jit.donation import Donated, consume, given_away
from tracer.runtime.jit.explain import History, Text, closest
from tracer.runtime.jit.signature import Call, Key, Names, Positions, Signature, signature
from tracer.runtime.jit.specialization import Specialization, is_traced
from tracer.runtime.jit.trace_call import Traced, shapes, trace_call
from tracer.runtime.system.devices import CPU, check_device, found_device
from tracer.runtime.system.locks import ForkSafeLock
from tracer.runtime.system.meshes import PartitionSpec
from tracer.settings import config, gate
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.device_trace import together
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here, user_source
from tracer.trace.state import state
from tracer.trace.trace import default_trace
from tracer.trace.tracebacks import Raised, tidy
from tracer.transforms.functions import check_callable, name_of

if TYPE_CHECKING:
    from tracer.runtime.jit import entry as entries
    from tracer.runtime.jit import lowered, pickles
else:
    entries = LazyModule("tracer.runtime.jit.entry")
    lowered = LazyModule("tracer.runtime.jit.lowered")
    pickles = LazyModule("tracer.runtime.jit.pickles")

_CHAIN = 4  # compiled entries that are tried one after another before the way through Python


class _Switch(threading.local):
    off = 0


_switch = _Switch()


class Calls:
    """Calls of a jitted function: its specialisations, and the chain of entries that its face tries first.

    It does not keep the face alive. So a jitted function that is dropped goes at once, with its machine code. It does
    not wait for the collector to look for cycles.
    """

    def __init__(self, function: Callable[..., Any], options: Signature, *, inline: bool, device: Any) -> None:
        """device: that the calls run on, None for their arrays'."""
        self.function = function
        self.signature = options
        self.inline = inline
        self.device = device
        self.history = History(options.name)
        self.cache: dict[Key, Specialization] = {}
        self.face: Callable[[], JitFunction | None] = lambda: None
        self._lock = ForkSafeLock()
        self._warned: set[str] = set()  # why donated arrays were not used
        self._chain: list[Specialization] = []
        self._device_entries: tuple[DeviceEntry, ...] = ()

    def __repr__(self) -> str:
        return f"<calls of {self.signature.name}>"

    def _serve(self, entry: Callable[..., Any]) -> Callable[..., Any]:
        """Let the face's next call go to an entry, and return the entry."""
        face = self.face()
        if face is not None:
            face.__call__ = entry  # type: ignore[method-assign]
        return entry

    def first(self, /, *args: Any, **kwargs: Any) -> Any:
        """Make the first call, which loads native code."""
        entry = self._serve(entries.front(self.guarded) if entries.entries_enabled() else self.slow)
        try:
            return entry(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    def guarded(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the result of `_slow`, or its exception as `Raised`, so that tracer's frames are not shown."""
        try:
            return self.slow(*args, **kwargs)
        except BaseException as error:
            return Raised(error)

    def slow(self, /, *args: Any, **kwargs: Any) -> Any:
        """Make a call through Python, for arguments that no compiled entry recognises."""
        if not kwargs:
            for device_entry in self._device_entries:
                result = device_entry(args)
                if result is not NotImplemented:
                    return result
        if _switch.off or config.disable_jit:
            return self.function(*args, **kwargs)
        version = gate.version
        call = self.signature.sort(args, kwargs)
        compiled = self._specialization(call)
        traced, donated = compiled.traced, self.signature.donated(call)
        if self.device is not None or is_traced(call.leaves, traced) or default_trace(call.leaves) is not None:
            names = partial(self.signature.leaf_names, call.args, call.kwargs, call.key.statics)
            operands = [*(as_array(leaf, copy=False) for leaf in call.leaves), *map(as_array, traced.captured)]
            operands = together(operands, self.signature.name, lambda: [*names(), *traced.captured_names], self.device)
            given = given_away(call.leaves, operands, {n: compiled.donated[n] for n in donated}) if donated else ()
            try:
                outputs = compiled.bind(operands, inline=self.inline, donated=given)
            finally:
                if donated and state.staging is None:
                    consume([call.leaves[n] for n in donated], [compiled.donated[n] for n in donated])
            if not (kwargs or donated or call.key.statics or self.device):
                made = entry_of(traced, call.leaves, args)
                if made is not None:
                    self._device_entries = (made, *self._device_entries[: _CHAIN - 1])
            return trees.unflatten(traced.structure, outputs)
        if donated:
            compiled.warn_of_useless()
        self._note_copies(call, traced)
        try:
            operands = [as_array(leaf, copy=n in donated) for n, leaf in enumerate(call.leaves)]
            outputs = compiled.execute(operands)
        finally:
            if donated:
                consume([call.leaves[n] for n in donated], [compiled.donated[n] for n in donated])
        if gate.is_open_here:
            self._chain_up(compiled, lambda: make_plan(args, kwargs, call), version)
        return trees.unflatten(traced.structure, outputs)

    def _specialization(self, call: Call) -> Specialization:
        """Return the specialisation for the call's key, traced now if there is none with valid guards."""
        with self._lock:
            found = self.cache.get(call.key)
            if found is None:
                found = self.cache[call.key] = Specialization(donated=self._donated(call))
        with found.lock:
            if found.is_traced and found.traced.is_valid:
                return found
            reasons = found.traced.changes() if found.is_traced else self._reasons(call)
            traced = trace_call(self.function, call, self.signature.name)
            if not traced.is_closed:
                return Specialization(traced)
            with self._lock:
                self._chain = [member for member in self._chain if member is not found]
            found.set(traced)
            self.history.compiled(user_source(), reasons)
            for note in traced.notes:
                self.history.note(note)
        return found

    def _donated(self, call: Call) -> dict[int, Donated]:
        """Return the stand-ins of the leaves that the call donates, by leaf."""
        given = self.signature.donated(call)
        names = self.signature.leaf_names(call.args, call.kwargs, call.key.statics) if given else []
        return {n: Donated(call.key.types[n], self.signature.name, names[n], self._warned) for n in given}

    def _reasons(self, call: Call) -> list[str]:
        with self._lock:
            others = [key for key, other in self.cache.items() if key != call.key and other.is_traced]
        names = self.signature.leaf_names(call.args, call.kwargs, call.key.statics)
        return closest(others, call.key, names, self.signature.argument) or ["the first call"]

    def _chain_up(self, compiled: Specialization, plan: Callable[[], Plan | None], version: int) -> None:
        """Try this specialisation first at later calls. version: of the settings that the call was made with."""
        if not compiled.recognise(plan, version):
            return
        with self._lock:
            if compiled in self._chain:
                return
            self._chain = [compiled, *self._chain[: _CHAIN - 1]]
            entry: Callable[..., Any] = self.guarded
            for member in reversed(self._chain):
                entry = member.entry(entry)
            self._serve(entry)

    def _note_copies(self, call: Call, traced: Traced) -> None:
        if any(isinstance(array, np.ndarray) and not array.flags.c_contiguous for array in traced.captured):
            self.history.note("a captured NumPy array is not C-contiguous: it is copied at every call")
        for position, leaf in enumerate(call.leaves):
            if isinstance(leaf, np.ndarray) and not leaf.flags.c_contiguous and position not in self.history.copied:
                self.history.copied.add(position)
                names = self.signature.leaf_names(call.args, call.kwargs, call.key.statics)
                self.history.note(f"{names[position]} is not C-contiguous: it is copied at every call")

    def forget(self) -> None:
        with self._lock:
            self.cache, self._chain, self._device_entries = {}, [], ()
            self._serve(self.first)

    def traces(self) -> dict[Key, Traced]:
        """Return the traced programs so far, by signature."""
        with self._lock:
            return {key: found.traced for key, found in self.cache.items() if found.is_traced}

    def take(self, key: Key, traced: Traced, donated: Sequence[int]) -> None:
        """Add a program that another process traced. donated: the leaves that its calls donate."""
        stand_ins = {n: Donated(key.types[n], self.signature.name, f"leaf {n}", self._warned) for n in donated}
        self.cache[key] = Specialization(traced, stand_ins)


class JitFunction:
    """Jitted function. It is called as the function itself; its methods show how it compiles.

    `__call__` is a slot of the instance. It holds the compiled entry of the newest specialisation, a C function. Calls
    that it does not recognise go to the next entry, and at last to `Calls.slow`.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__", "_calls")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __init__(self, function: Callable[..., Any], options: Signature, *, inline: bool, device: Any = None) -> None:
        self._calls = Calls(function, options, inline=inline, device=device)
        self._calls.face = ref(self)
        self.__call__ = self._calls.first  # type: ignore[method-assign]
        update_wrapper(self, function)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._calls.signature.name}>"

    def __reduce__(self) -> Any:
        return pickles.reduced(self)

    def __copy__(self) -> JitFunction:
        return self

    def __deepcopy__(self, memo: Any) -> JitFunction:
        return self

    def lower(self, *args: Any, **kwargs: Any) -> lowered.Lowered:
        """Return every stage of the program for these arguments, which may be `ShapeDtypeStruct`."""
        calls = self._calls
        call = calls.signature.sort(args, kwargs)
        return lowered.Lowered(trace_call(calls.function, call, calls.signature.name), call, calls.signature)

    def trace(self, *args: Any, **kwargs: Any) -> lowered.Lowered:
        """Return `lower(...)`, under JAX's name for the object with `.jaxpr`."""
        return self.lower(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result with a `ShapeDtypeStruct` for every array, without computing it."""
        calls = self._calls
        return shapes(trace_call(calls.function, calls.signature.sort(args, kwargs), calls.signature.name))

    def explain(self) -> Text:
        """Return a text that explains the last compilations by the arguments that changed."""
        return self._calls.history.text()

    def clear_cache(self) -> None:
        """Forget all specialisations."""
        self._calls.forget()


class Options(TypedDict, total=False):
    """Keyword arguments of `jit`, for type checkers."""

    static_argnums: Positions
    static_argnames: Names
    donate_argnums: Positions
    donate_argnames: Names
    inline: bool
    keep_unused: bool
    device: Any
    in_shardings: Any
    out_shardings: Any


@overload
def jit(fun: Callable[..., Any], **options: Unpack[Options]) -> JitFunction: ...
@overload
def jit(**options: Unpack[Options]) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: Positions = None,
    static_argnames: Names = None,
    donate_argnums: Positions = None,
    donate_argnames: Names = None,
    inline: bool = False,
    keep_unused: bool = False,
    device: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Compile a function of arrays: it is traced once for each signature, then runs as one machine program.

    fun: takes and returns arrays of any shapes and dtypes and scalars, or trees of them. Without it,
    `jit(static_argnums=0)` is a decorator. static_argnums, static_argnames: arguments that are hashable Python values;
    each value compiles anew. donate_argnums, donate_argnames: arrays that cannot be used after the call. Results of
    equal type are computed in their memory if the order of reads and writes allows it. No other object may share the
    memory. A warning says once that memory was shared, or that no result has the type. inline: inside another traced
    function, record equations rather than a call. device: where calls run, by default where their arrays lie.
    keep_unused, in_shardings, out_shardings: accepted as in JAX, for the one device.

    Every call reads the arrays that `fun` captures, NumPy's too. If tracing reads their values, as masks do, other
    values compile anew. So do other objects under names that `fun` reads, and other code or defaults of functions run
    by name. NumPy reads an array under a name unseen, as in `float(w[0])`. Other values in it compile anew if it has at
    most 64 KiB. They do not if each use of the name is an operand of the program, as in `x * w`. Values read of a
    larger one are constants. Attributes of objects and items of containers are trace-time constants. A warning names
    the line where `np.random` was drawn from. Raises ArgumentError for arguments that are not arrays, and for static
    arguments that cannot be hashed.

    >>> tracer.jit(lambda x: x + 1.0)(2.0)
    Array(3., f64*)
    """
    del keep_unused  # unused arguments are never passed on
    static, donated = (static_argnums, static_argnames), (donate_argnums, donate_argnames)
    found = None if device is None else found_device(device, "jit")
    for place in trees.flatten((in_shardings, out_shardings))[0]:
        if not isinstance(place, PartitionSpec):
            check_device(place, "jit")

    def decorate(function: Callable[..., Any]) -> JitFunction:
        check_callable(function, "jit")
        name = name_of(function)
        options = signature(function, name, static, donated)
        both = options.static_numbers & options.donated_numbers
        if both:
            raise ArgumentError(
                message(
                    f"jit of {name}{here()}: {options.argument(min(both))} is both static and donated",
                    help="only arrays can be donated",
                )
            )
        return JitFunction(function, options, inline=inline, device=None if found is CPU else found)

    return decorate if fun is None else decorate(fun)


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Run jitted functions as plain Python on this thread until the block ends.

    disable: False changes nothing.

    >>> @tracer.jit
    ... def f(x):
    ...     print(x)
    ...     return 2 * x
    >>> with tracer.disable_jit():
    ...     f(tnp.asarray([1.0, 2.0]))
    [1. 2.]
    Array([2., 4.], f64)
    """
    gate.close()
    outer, _switch.off = _switch.off, int(disable)
    try:
        yield
    finally:
        _switch.off = outer
        gate.open()


def block_until_ready(x: Any) -> Any:
    """Return the argument once it is computed, which it always is on a CPU.

    x: a tree of arrays of any shapes. Raises the faults of programs on a device that computed them.

    >>> tracer.block_until_ready(tnp.asarray([1.0]))
    Array([1.], f64)
    """
    for leaf in trees.flatten(x)[0]:
        if isinstance(leaf, Array) and isinstance(leaf._value, DeviceValue):
            leaf._value.wait()
    return x


def effects_barrier() -> None:
    """Wait for the effects of earlier calls, which are over when a call returns.

    >>> tracer.jit(lambda: tracer.debug.print("now"))()
    now
    >>> tracer.effects_barrier()
    """
