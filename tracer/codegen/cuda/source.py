"""A program as CUDA source: its text, its kernels, and the steps in which a host runs them."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.ir.loop import Buffer, Copy, Invoke, Register


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel. grid and block: the number of blocks, and of threads in each. shared: bytes of static shared memory a
    block.

    A grid of 0 is not to be launched. Kernels with faults take the fault record as one parameter more.
    """

    name: str
    grid: int
    block: int
    shared: int
    parameters: tuple[Buffer | Register, ...]
    faults: bool


@dataclass(frozen=True, slots=True)
class Host:
    """A step that no kernel does yet."""

    what: str


Step = Invoke | Copy | Host


@dataclass(frozen=True, slots=True)
class CudaSource:
    """Source of a program. text: the translation unit. steps: of the entry, in order. parameters: its buffers. arena:
    bytes.

    Faults: the record is one u64, all bits set at first, lowered to `site << FAULT_SHIFT | position`.
    """

    text: str
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    parameters: tuple[Buffer, ...]
    arena: int

    @property
    def on_host(self) -> tuple[str, ...]:
        """Steps that no kernel does yet: empty where a GPU can run the whole program."""
        return tuple([step.what for step in self.steps if isinstance(step, Host)])

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a name. Raises KeyError for an unknown one."""
        return {kernel.name: kernel for kernel in self.kernels}[name]


FAULT_SHIFT = 40
"""Bits of the fault record that hold the position; the site stands above, so that the lowest of both wins."""

MAX_BLOCKS = (1 << 31) - 1
"""CUDA's limit on the first dimension of a grid."""

MAX_THREADS = 1024
"""CUDA's limit on the threads of a block."""
