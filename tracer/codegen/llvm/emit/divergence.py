"""Registers of a vector loop: registers with one value per lane, and lane-invariant ones."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.ir import loop


class Variation:
    """Registers that depend on the index of a vector loop.

    `index_used` is whether a value of the index is needed. A `Prefix` hands a lane-invariant value from iteration to
    iteration, held in every lane.
    """

    def __init__(self, s: loop.For) -> None:
        self.index = s.index
        self.varying: set[loop.Register] = {s.index, *(carry.register for carry in s.carries)}
        self.index_used = False
        self._block(s.body)

    def _any(self, operands: Iterable[loop.Operand | None]) -> bool:
        found = False
        for operand in operands:
            if operand in self.varying:
                found = True
                if operand is self.index:
                    self.index_used = True
        return found

    def _address(self, address: loop.Address) -> bool:
        return any(register in self.varying for register, _ in address.terms)

    def _mark(self, register: loop.Register, varies: bool) -> None:
        if varies:
            self.varying.add(register)

    def _block(self, block: loop.Block) -> None:
        for s in block.statements:
            if type(s) is loop.Compute:
                if self._any(s.operands):
                    self.varying.add(s.result)
            elif type(s) is loop.Load:
                self._mark(s.result, self._any((s.mask, s.fill)) | self._address(s.address))
            elif type(s) is loop.For:
                self._for(s)
            elif type(s) is loop.If:
                self._if(s)
            elif isinstance(s, loop.Store | loop.Update):
                self._any((s.value, s.mask))
            elif type(s) is loop.Fault:
                self._any((s.predicate, s.position, *s.values))
            elif type(s) is loop.While:
                self._while(s)
            elif isinstance(s, loop.Prefix):
                self._any((s.value, s.before))
                self.varying.update((s.result, s.last))
            elif isinstance(s, loop.Shuffle):
                pass  # refused where the vector loop is written
        self._any(block.yields)

    def _for(self, s: loop.For) -> None:
        self._any((s.start, s.stop))
        for carry, result in zip(s.carries, s.results, strict=True):
            if self._any((carry.initial,)):
                self.varying.update((carry.register, result))
        while True:
            self._block(s.body)
            changed = False
            for carry, value, result in zip(s.carries, s.body.yields, s.results, strict=True):
                if value in self.varying and carry.register not in self.varying:
                    self.varying.update((carry.register, result))
                    changed = True
            if not changed:
                return

    def _while(self, s: loop.While) -> None:
        """Mark carries whose initial or yielded value varies, or all of them where lanes are divergent."""
        varying = [self._any((carry.initial,)) for carry in s.carries]
        while True:
            for carry, result, by_lane in zip(s.carries, s.results, varying, strict=True):
                if by_lane:
                    self.varying.update((carry.register, result))
            self._block(s.condition)
            self._block(s.body)
            alone = s.condition.yields[0] in self.varying
            grown = [v or alone or y in self.varying for v, y in zip(varying, s.body.yields, strict=True)]
            if grown == varying:
                return
            varying = grown

    def _if(self, s: loop.If) -> None:
        by_lane = self._any((s.predicate,))
        self._block(s.then)
        self._block(s.otherwise)
        for result, a, b in zip(s.results, s.then.yields, s.otherwise.yields, strict=True):
            self._mark(result, by_lane or a in self.varying or b in self.varying)
