"""A program as CUDA source: its text, its kernels, and the steps in which a host runs them."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.ir.loop import Buffer, Function, Invoke, Register
from tracer.ir.loop.walk import statements_of


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel.

    grid, block: the number of blocks, and of threads in each. shared: bytes of static shared memory a block. A grid of
    0 is not to be launched. Kernels with faults take the fault record as one parameter more.
    """

    name: str
    grid: int
    block: int
    shared: int
    parameters: tuple[Buffer | Register, ...]
    faults: bool


@dataclass(frozen=True, slots=True)
class CudaSource:
    """Source of a program.

    text: the translation unit. entry: the host's part, see `schedule.gpu.host_plan`. arena: bytes. stacks: their count.
    Faults: the record is one u64, all bits set at first, lowered to `site << FAULT_SHIFT | position`.
    """

    text: str
    kernels: tuple[Kernel, ...]
    entry: Function
    arena: int
    stacks: int = 0

    @property
    def parameters(self) -> tuple[Buffer, ...]:
        """Buffers of the entry, in the order of its arguments."""
        return tuple([p for p in self.entry.parameters if isinstance(p, Buffer)])

    @property
    def left(self) -> tuple[str, ...]:
        """Loop nests without a kernel: empty where the host can run the entry."""
        names = {kernel.name for kernel in self.kernels}
        nests = [s.function for s in statements_of(self.entry.body) if isinstance(s, Invoke)]
        return tuple(dict.fromkeys(name for name in nests if name not in names))

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a name. Raises KeyError for an unknown one."""
        return {kernel.name: kernel for kernel in self.kernels}[name]


FAULT_SHIFT = 40
"""Bits of the fault record that hold the position; the site stands above, so that the lowest of both wins."""

MAX_BLOCKS = (1 << 31) - 1
"""CUDA's limit on the first dimension of a grid."""

MAX_THREADS = 1024
"""CUDA's limit on the threads of a block."""
