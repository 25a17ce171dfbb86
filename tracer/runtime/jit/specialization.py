"""Specialisation of a jitted function: its program for one signature, compiled when it first runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from tracer.lazy import LazyModule
from tracer.primitives.control.calls import call as bind_call
from tracer.runtime.jit.argument_plan import Plan, flat_plan
from tracer.runtime.jit.donation import NOTHING_DONATED, Donated, warn_of_useless
from tracer.runtime.jit.trace_call import Traced
from tracer.runtime.system.locks import ForkSafeLock
from tracer.trace.array import Array
from tracer.trace.captured_values import Seen
from tracer.trace.convert import as_array
from tracer.trace.device_trace import device_of
from tracer.trace.evaluate import evaluate
from tracer.trace.state import state

if TYPE_CHECKING:
    from tracer.runtime.compile import compile as compiling
    from tracer.runtime.compile import kept_programs, this_machine
    from tracer.runtime.jit import entry as entries
    from tracer.runtime.native.entry_point import EntryPoint
else:
    compiling = LazyModule("tracer.runtime.compile.compile")
    kept_programs = LazyModule("tracer.runtime.compile.kept_programs")
    this_machine = LazyModule("tracer.runtime.compile.this_machine")
    entries = LazyModule("tracer.runtime.jit.entry")


def is_traced(leaves: Sequence[Any], traced: Traced) -> bool:
    """Whether a call goes to a trace, which records it, or to a device, which runs it."""
    if state.staging is not None or traced.is_on_device:
        return True
    return not traced.is_closed or any(type(leaf) is Array and leaf._trace is not None for leaf in leaves)


class Specialization:
    """Traced program with its machine code. `lock` is held during tracing and compiling, so that each is done once."""

    __slots__ = (
        "__weakref__", "_compiled", "_flat", "_plannable", "_point", "_recognised", "_traced", "donated", "lock",
    )  # fmt: skip

    def __init__(self, traced: Traced | None = None, donated: Mapping[int, Donated] = NOTHING_DONATED) -> None:
        """donated: stand-ins of the leaves that a call donates, by leaf."""
        self.lock = ForkSafeLock()
        self.donated = donated
        self._traced = traced
        self._compiled: compiling.Compiled | None = None
        self._point: EntryPoint | None = None
        self._flat: Callable[..., Sequence[Array]] | None = None
        self._recognised: entries.Recognised | None = None
        self._plannable = True

    @property
    def is_traced(self) -> bool:
        return self._traced is not None

    @property
    def traced(self) -> Traced:
        assert self._traced is not None
        return self._traced

    def set(self, traced: Traced) -> None:
        """Replace the trace, and drop the machine code of the previous one."""
        self._traced, self._compiled, self._point, self._flat, self._recognised = traced, None, None, None, None

    def point(self) -> EntryPoint:
        """Return the entry of the machine code, loaded at the first call or, where no file has it, compiled."""
        with self.lock:
            if self._point is None:
                place = kept_programs.place(self.traced.program, self.traced.inputs_of(self.donated))
                kept = None if place is None else place.read()
                self._point = self.compiled(place).entry_point if kept is None else kept
            return self._point

    def compiled(self, place: kept_programs.Place | None = None) -> compiling.Compiled:
        """Return the program as machine code with its stages. place: the file to keep it in."""
        with self.lock:
            if self._compiled is None:
                traced, contracts = self.traced, this_machine.contracts()
                donated = traced.inputs_of(self.donated)
                self._compiled = compiling.compile_program(traced.program, donated, contracts=contracts, place=place)
            return self._compiled

    def warn_of_useless(self) -> None:
        """Warn of donated arrays whose memory no result can use."""
        self._warn_of_useless(self.donated, self.point().donors)

    def _warn_of_useless(self, donated: Mapping[int, Donated], donors: Mapping[int, int]) -> None:
        traced = self.traced
        types = [type for n, type in enumerate(traced.program.output_types) if n not in donors]
        warn_of_useless(donated, [donor - len(traced.captured) for donor in donors.values()], types)

    def bind(self, operands: Sequence[Array], *, inline: bool, donated: Sequence[int] = ()) -> list[Any]:
        """Return the outputs as arrays of the current trace. inline: records equations instead of one call.

        operands: the leaves, and behind them the captured arrays. donated: leaves that a device may overwrite.
        """
        traced = self.traced
        if state.outside is not None:
            seen = [Seen(guard.holder, guard.value) for guard in traced.values]
            state.outside.inherit(seen, traced.operands)
        count = len(operands) - len(traced.captured)
        program, everything = traced.program, [*operands[count:], *operands[:count]]
        if donated:
            device, inputs = device_of(operands[donated[0]]), tuple(traced.inputs_of(donated))
            self._warn_of_useless({n: self.donated[n] for n in donated}, device.donors(program, inputs))
            outputs: list[Any] = device.run(program, everything, inputs)
            return outputs
        return evaluate(program, everything) if inline else bind_call(program, *everything, inline=True)

    def execute(self, operands: Sequence[Array]) -> list[Array]:
        """Return the outputs for concrete operands, owned by the innermost trace."""
        with self.lock:
            if self._flat is None:
                self._flat = self._make_flat()
        outputs = list(self._flat(*operands))
        innermost = state.innermost
        if innermost is not None:
            for y in outputs:
                y._owner = innermost.serial
        return outputs

    def _make_flat(self) -> Callable[..., Sequence[Array]]:
        """Return the program as a function of leaves, through ctypes where the platform has no entries."""
        captured = self.traced.captured

        itself = ref(self)  # no cycle, so that its machine code goes at once

        def by_ctypes(*operands: Array) -> list[Array]:
            alive = itself()
            assert alive is not None
            return alive.compiled().call([*(as_array(array, copy=False) for array in captured), *operands])

        if not entries.entries_enabled():
            self.compiled()
            return by_ctypes
        point = self.point()
        plan = flat_plan(len(point.input_types) - len(captured))
        recognised = entries.Recognised(point, captured, plan, None, self.donated)
        recognised.trust_caller()
        return recognised.entry(by_ctypes)

    def recognise(self, make_plan: Callable[[], Plan | None], version: int) -> bool:
        """Prepare the entry for calls with the plan's structure; return whether the platform and arguments allow it."""
        if not self._plannable or not entries.entries_enabled():
            return False
        with self.lock:
            if self._recognised is None:
                plan = make_plan()
                if plan is None:
                    self._plannable = False
                    return False
                traced, point = self.traced, self.point()
                self._recognised = entries.Recognised(point, traced.captured, plan, traced.structure, self.donated)
                self._recognised.watch(traced.guards, traced.values)
            self._recognised.trust_settings(version)
        return True

    def entry(self, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a C function that runs recognised calls, and hands any other call to `fallback`."""
        assert self._recognised is not None
        return self._recognised.entry(fallback)
