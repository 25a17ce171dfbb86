"""Loop IR: loop nests over flat typed buffers. Every backend spells it, none decides anything about it.

    Module    = functions, entry
    Function  = name, parameters (Buffer | Register), body
    Block     = statements, yields (operands handed to the enclosing statement)
    Statement = Compute | Load | Store | Update | For | While | If | Alloc | Copy | Transpose | Fault | Invoke
              | Library | Callback | Leave | Barrier | Shuffle | Prefix | StackPush | StackPop | StackRead | StackWrite
              | StackLength | StackReset
    Operand   = Register | Constant
    Address   = constant + sum of (register * constant)           in elements, never bytes

Registers are assigned once. Loops and branches hand values over explicitly: a `For` or `While` has carries
(entry value, the register its body reads, the value its body yields), an `If` yields from both arms.
A `For(kind=VECTOR, lanes=n)` runs n iterations side by side, its last iteration masked. Its registers hold one value
per lane where they depend on the index. A carry with `combine` holds n partial results. At the end they are combined by
halving (lane i with lane i + n/2, then n/4, ...), on every machine. Results depend on `lanes`, which the schedule
fixes, and never on the width of the hardware's vectors. A carry without `combine` is equal in all lanes: the value that
a `Prefix` hands on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from tracer.ir.dtypes import I64, DType, short_name
from tracer.ir.scalar import ScalarOp


class Space(Enum):
    """Memory in which a buffer lives."""

    INPUT = "input"  # an operand of the program: read only
    DONATED = "donated"  # an operand of the program that it may overwrite, and in whose memory it leaves a result
    OUTPUT = "output"  # a result of the program
    CONSTANT = "constant"  # data that belongs to the executable: read only
    ARENA = "arena"  # a slice of the call's arena, at `offset` bytes
    ARGUMENT = "argument"  # a parameter of a nest, bound by Invoke
    LOCAL = "local"  # a small private array: stack on a CPU, registers or local memory on a GPU
    SHARED = "shared"  # one per thread block


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Flat memory of `size` elements. bool is stored as one byte, 0 or 1.

    Identity is the object; `name` is for people and unique within a function.
    `written` says whether anything stores to it through this name.
    """

    name: str
    dtype: DType
    size: int
    space: Space
    offset: int = 0
    alignment: int = 1  # bytes, a power of two; 1 means "of its element"
    written: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """Value assigned once: a scalar, or one value per lane inside a vector loop. Identity is the object.

    copied: the register that holds the same value in the loops that this one's were copied from.
    """

    dtype: DType
    name: str = ""
    copied: Register | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """Typed scalar; `value` is a NumPy scalar of that dtype (NaN payloads and signed zeros kept)."""

    value: Any  # np.generic; ml_dtypes scalars are not a subclass that typing knows
    dtype: DType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.dtype == other.dtype and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((self.dtype, self.bits))

    @property
    def bits(self) -> bytes:
        return np.asarray(self.value, self.dtype).tobytes()


Operand = Register | Constant


@dataclass(frozen=True, slots=True)
class Address:
    """Sum of a constant and of register * coefficient, in elements. Coefficients are not 0.

    Registers are i64, in kernels also i32, where the schedule knows that no sum of terms is beyond it.
    """

    constant: int = 0
    terms: tuple[tuple[Register, int], ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """Buffer from an address on: the form in which Invoke and Library pass memory."""

    buffer: Buffer
    start: Address = Address()


class LoopKind(Enum):
    SERIAL = "serial"
    PARALLEL = "parallel"  # iterations are independent: threads may share them
    VECTOR = "vector"  # lanes of one thread
    BLOCK = "block"  # thread blocks of a GPU grid
    THREAD = "thread"  # threads of a block


@dataclass(frozen=True, slots=True)
class Block:
    statements: tuple[Statement, ...]
    yields: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Compute:
    """Operation: result = op(*operands). For CONVERT and BITCAST the result's dtype is the target."""

    result: Register
    op: ScalarOp
    operands: tuple[Operand, ...]

    @property
    def callee(self) -> str:
        """Name of the module's function that computes it outside vector loops, where there is one."""
        return f"{self.op.label}.{short_name(self.result.dtype)}"


@dataclass(frozen=True, slots=True)
class Load:
    """Read: result = buffer[address]. Where `mask` is false, memory is not touched and the result is `fill`."""

    result: Register
    buffer: Buffer
    address: Address
    mask: Operand | None = None
    fill: Operand | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """Write: buffer[address] = value, where `mask` is true or absent.

    past: whether a vector loop that stores whole cache lines bypasses the caches, as nothing reads them soon.
    """

    buffer: Buffer
    address: Address
    value: Operand
    mask: Operand | None = None
    past: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Update in place: buffer[address] = op(buffer[address], value).

    In order of iteration on a CPU, atomically on a GPU.
    """

    buffer: Buffer
    address: Address
    op: ScalarOp
    value: Operand
    mask: Operand | None = None


@dataclass(frozen=True, slots=True)
class Carry:
    """Value handed from one iteration to the next.

    register: read by the body. initial: its value in the first iteration.
    combine: None for an ordinary serial carry. With an operation the loop is a reduction of partial results. Every lane
    (or thread) starts from the operation's `identity`, and the yields are combined as the module docstring says.
    `initial` is combined in last, as op(initial, combined).
    """

    register: Register
    initial: Operand
    combine: ScalarOp | None = None
    identity: Constant | None = None


@dataclass(frozen=True, slots=True)
class For:
    """Counted loop: for index in range(start, stop, step): body. `results` receive the final carries.

    outlined: whether a CPU runs a VECTOR loop as a call of a function that programs share. It only reduces memory.
    multiplies_roots: whether a CPU computes a VECTOR loop's square roots of f64 by products, which have the same bits.
    unrolled: whether code has the iterations of a constant range one after another. LOCAL buffers that it indexes are
    registers on a GPU.
    """

    index: Register
    start: Operand
    stop: Operand
    body: Block
    kind: LoopKind = LoopKind.SERIAL
    step: int = 1
    lanes: int = 1  # of a VECTOR loop; then start is 0 and step is 1
    carries: tuple[Carry, ...] = ()
    results: tuple[Register, ...] = ()
    outlined: bool = False
    multiplies_roots: bool = False
    unrolled: bool = False


@dataclass(frozen=True, slots=True)
class While:
    """Loop while `condition`, which yields one bool, is true; `body` yields the next carries. Both read the carries.

    Every iteration polls the stop word of the call, so that an interrupt ends any loop. Inside a vector loop the
    condition may vary by lane. A lane that has finished keeps its carries and takes no part in further iterations.
    """

    carries: tuple[Carry, ...]
    condition: Block
    body: Block
    results: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Branch: results = yields of the arm that runs.

    Inside a vector loop the predicate may vary by lane where `then` only computes and `otherwise` holds no statements.
    Results are then chosen by lane, and `then` is skipped if the predicate is false in every lane. outlined: whether a
    CPU's vector loop calls `then` as a function that programs share, if a function can take its registers.
    """

    predicate: Operand
    then: Block
    otherwise: Block = Block(())
    results: tuple[Register, ...] = ()
    outlined: bool = False


@dataclass(frozen=True, slots=True)
class Alloc:
    """Allocation of a LOCAL or SHARED buffer, uninitialised, until the enclosing function returns."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of memory: target[: count] = source[: count]; equal dtypes, no overlap unless the views are equal.

    In a kernel it is one access, of at most 16 bytes, to memory aligned to them. The other side is LOCAL.
    """

    target: View
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """Transpose of memory: target[r * target_stride + c] = source[c * source_stride + r] for r in rows, c in columns.

    Equal dtypes, no overlap. Elements may be stored more than once. past: whether whole cache lines bypass the caches.
    """

    target: View
    target_stride: int
    source: View
    source_stride: int
    rows: Operand
    columns: Operand
    past: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Record of a fault where `predicate` is true; execution continues.

    The call reports the recorded fault with the lowest (site, position). `site` numbers the faulting
    equations in program order; `position` is the flat index within the equation; `values` (i64) go into the message.
    """

    site: int
    predicate: Operand
    position: Operand
    values: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """Return from the function at once if a fault was recorded or a callback raised.

    In a kernel all threads of the block return, or none does.
    """


@dataclass(frozen=True, slots=True)
class Share:
    """Work that threads may share: range(count) in consecutive parts, run in any order or concurrently.

    Each part has at least `grain` iterations, or all of them if there are fewer.
    """

    count: int
    grain: int


@dataclass(frozen=True, slots=True)
class StackUse:
    """Stack on whose memory an invoked kernel works. size: bytes of an item.

    room: items that must fit behind the stack's end when the kernel begins, in each of `rounds` where that is given.
    Without `rounds` the kernel ends early where no more of them fit. It then runs again, with more room.
    """

    stack: int
    size: int
    room: int = 0
    rounds: Operand | None = None


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call of another function of the module, with one view or operand for each of its parameters.

    share: the function's last two parameters are i64 registers, and it runs for parts (begin, end) that make up
    `share`. The parts must be independent of each other. inlined: whether a CPU's code has the function's body in
    place of this call, the only one. stacks: the function's last parameters are the memory of each of them, of size 0,
    and i64 `sizes`. These are the length and the room of each stack, in items. The function may change the lengths.
    """

    function: str
    arguments: tuple[View | Operand, ...]
    share: Share | None = None
    inlined: bool = False
    stacks: tuple[StackUse, ...] = ()


class Along(Enum):
    """Axis along which a library call is split: its stack of matrices, or the rows or columns of the result."""

    BATCHES = "batches"
    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class Split:
    """Sharing of a library call: `count` panels of `width` indices along an axis. The last panel may be narrower.

    at_once: panels that one thread takes at a time.
    """

    along: Along
    count: int
    width: int = 1
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """Choice of a routine's kernel. name: "" for the plain one. split: how threads share it; None for one call."""

    name: str = ""
    split: Split | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """Call of a library routine: a key of each backend's table of routines, which lists its arguments.

    kernel: chosen by the schedule for a CPU; results may depend on its name, but not on its split.
    """

    name: str
    arguments: tuple[View | Operand, ...]
    kernel: Kernel = Kernel()


@dataclass(frozen=True, slots=True)
class Callback:
    """Call into Python: `slot` indexes the executable's table of callbacks. Ordered, on the calling thread."""

    slot: int
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Point where all threads of the block meet. Not under a condition that varies within the block."""


class ShuffleKind(Enum):
    XOR = "xor"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Exchange in a warp: result = the value of lane ^ offset, or of lane + offset. All lanes take part."""

    result: Register
    value: Operand
    offset: int
    kind: ShuffleKind = ShuffleKind.XOR


@dataclass(frozen=True, slots=True)
class Prefix:
    """Prefix reduction by lane: result = op(before, lanes 0 to this lane). `last` is the last lane's result.

    Only directly in a vector loop; `last` is the next iteration's `before`. Halves are combined by halves, the last
    lane of each first half with every lane of the second (Sklansky 1960, Conditional-sum addition logic). `before`,
    equal in all lanes, comes in last, from the left. So sums of non-negative values never decrease in a later lane.
    Lanes that take no part do not change `last`.
    """

    result: Register
    last: Register
    op: ScalarOp
    value: Operand
    before: Operand


@dataclass(frozen=True, slots=True)
class StackPush:
    """Push of source[: count] on growable stack number `stack` of the call."""

    stack: int
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class StackPop:
    """Pop of the last `count` elements of growable stack number `stack` into target; zeros if it is empty."""

    stack: int
    target: View
    count: int


@dataclass(frozen=True, slots=True)
class StackRead:
    """Read of the `index`-th `count` elements of the stack, from its bottom, into target; zeros beyond its end."""

    stack: int
    index: Operand
    target: View
    count: int


@dataclass(frozen=True, slots=True)
class StackWrite:
    """Write of source[: count] to the `index`-th `count` elements of the stack, which grows with zeros up to there."""

    stack: int
    index: Operand
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class StackLength:
    """Length of a stack: result (i64) counts its items of `size` bytes."""

    result: Register
    stack: int
    size: int


@dataclass(frozen=True, slots=True)
class StackReset:
    """Removal of all items of a stack. Its memory is kept until the call ends."""

    stack: int


Statement = (
    Compute | Load | Store | Update | For | While | If | Alloc | Copy | Transpose | Fault | Leave | Invoke | Library
    | Callback | Barrier | Shuffle | Prefix | StackPush | StackPop | StackRead | StackWrite | StackLength | StackReset
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """Loop nest, the entry, or a math function. Parameters of space ARGUMENT do not overlap if one of them is written.

    A math function takes registers and yields its result: see `Compute.callee`. plain: whether a CPU's function is
    compiled without optimisations.
    """

    name: str
    parameters: tuple[Buffer | Register, ...]
    body: Block
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """Functions and the name of the entry, whose parameters are the INPUT, OUTPUT and CONSTANT buffers in order.

    arena: bytes of scratch memory that a call needs, 64-byte aligned; ARENA buffers are slices of it.
    stacks: the number of growable stacks that a call needs.
    """

    functions: tuple[Function, ...]
    entry: str
    arena: int = 0
    stacks: int = 0

    @property
    def entry_function(self) -> Function:
        """Function that a call of the program runs."""
        return next(function for function in self.functions if function.name == self.entry)

    def __str__(self) -> str:
        from tracer.ir.loop.text import loop_text  # noqa: PLC0415  # the printer needs the classes of this module

        return loop_text(self)

    __repr__ = __str__


def index_constant(value: int) -> Constant:
    """Return an i64 constant."""
    return Constant(np.int64(value), I64)
