"""The loop IR: loop nests over flat typed buffers, which every backend spells and none decides about.

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
A `For(kind=VECTOR, lanes=n)` runs n iterations side by side, its last round masked: its registers hold one
value a lane where they depend on the index, and a carry with `combine` holds n partial results that
are joined at the end by halving (lane i with lane i + n/2, then n/4, ...), the same on every machine, so that
results depend on `lanes`, which the schedule fixes, and never on the width of the hardware's vectors. A carry without
`combine` is the same in all lanes: what a `Prefix` hands on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tracer.ir.dtypes import I64, DType
from tracer.ir.scalar import ScalarOp


class Space(Enum):
    """Where a buffer lives."""

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
    """A value assigned once: a scalar, or one value a lane inside a vector loop. Identity is the object."""

    dtype: DType
    name: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A typed scalar; `value` is a NumPy scalar of that dtype (NaN payloads and signed zeros kept)."""

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
    """constant + sum of register * coefficient, in elements. Registers are i64, coefficients not 0."""

    constant: int = 0
    terms: tuple[tuple[Register, int], ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A buffer from an address on: how Invoke and Library pass memory."""

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
    """result = op(*operands); for CONVERT and BITCAST the result's dtype is the target."""

    result: Register
    op: ScalarOp
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """result = buffer[address]; where `mask` is false memory is not touched and the result is `fill`."""

    result: Register
    buffer: Buffer
    address: Address
    mask: Operand | None = None
    fill: Operand | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[address] = value, where `mask` is true or absent.

    past: past the caches, where a vector loop stores whole lines of memory; nobody reads them soon.
    """

    buffer: Buffer
    address: Address
    value: Operand
    mask: Operand | None = None
    past: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """buffer[address] = op(buffer[address], value), in order of iteration on a CPU, atomically on a GPU."""

    buffer: Buffer
    address: Address
    op: ScalarOp
    value: Operand
    mask: Operand | None = None


@dataclass(frozen=True, slots=True)
class Carry:
    """A value handed from one round to the next.

    register: what the body reads. initial: its value in the first round.
    combine: None for an ordinary serial carry. With an operation the loop is a reduction of partial results:
    every lane (or thread) starts from the operation's `identity`, the yields are joined as the module docstring says,
    and `initial` is joined in last, as op(initial, joined).
    """

    register: Register
    initial: Operand
    combine: ScalarOp | None = None
    identity: Constant | None = None


@dataclass(frozen=True, slots=True)
class For:
    """for index in range(start, stop, step): body. `results` receive the carries after the last round."""

    index: Register
    start: Operand
    stop: Operand
    body: Block
    kind: LoopKind = LoopKind.SERIAL
    step: int = 1
    lanes: int = 1  # of a VECTOR loop; then start is 0 and step is 1
    carries: tuple[Carry, ...] = ()
    results: tuple[Register, ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """condition yields one bool; while it holds, body yields the next carries. Both read the carry registers.

    Every round polls the stop word of the call, so that an interrupt ends any loop. Inside a vector loop the condition
    may vary by lane: a lane that is done keeps its carries and takes no part in what the others still do.
    """

    carries: tuple[Carry, ...]
    condition: Block
    body: Block
    results: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class If:
    """results = yields of the arm that runs.

    Inside a vector loop the predicate may vary by lane where `then` only computes and `otherwise` holds no statements:
    results are chosen by lane, and `then` is skipped where no lane wants it.
    """

    predicate: Operand
    then: Block
    otherwise: Block = Block(())
    results: tuple[Register, ...] = ()


@dataclass(frozen=True, slots=True)
class Alloc:
    """Brings a LOCAL or SHARED buffer into being, uninitialised, until the enclosing function returns."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Copy:
    """target[: count] = source[: count]; equal dtypes, no overlap unless the views are equal."""

    target: View
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """target[r * target_stride + c] = source[c * source_stride + r] for r in range(rows), c in range(columns).

    Equal dtypes, no overlap. Elements may be stored more than once. past: past the caches, where that is whole lines.
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
    """Records a fault where `predicate` is true, and goes on.

    The call reports the recorded fault with the lowest (site, position). `site` numbers the faulting
    equations in program order; `position` is the flat index within the equation; `values` (i64) go into the message.
    """

    site: int
    predicate: Operand
    position: Operand
    values: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """Returns from the function at once if a fault was recorded or a callback raised."""


@dataclass(frozen=True, slots=True)
class Share:
    """Work that threads may share: range(count) in consecutive parts of at least `grain` (all of it, where that is
    less), in any order, at once."""

    count: int
    grain: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """Runs another function of the module: one view or operand for each of its parameters.

    share: the function's last two parameters are i64 registers, and it runs for parts (begin, end) that make up
    `share`. What the parts do must not depend on each other.
    """

    function: str
    arguments: tuple[View | Operand, ...]
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """A library routine. `name` is a key of `schedule.library.ROUTINES`, which says what arguments it takes."""

    name: str
    arguments: tuple[View | Operand, ...]


@dataclass(frozen=True, slots=True)
class Callback:
    """Calls back into Python: `slot` indexes the executable's table of callbacks. Ordered, on the calling thread."""

    slot: int
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the block meet here. Not under a condition that varies within the block."""


class ShuffleKind(Enum):
    XOR = "xor"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Shuffle:
    """result = the value that another lane of the warp holds: lane ^ offset, or lane + offset. All lanes take part."""

    result: Register
    value: Operand
    offset: int
    kind: ShuffleKind = ShuffleKind.XOR


@dataclass(frozen=True, slots=True)
class Prefix:
    """result = op(before, the values of the lanes up to this one); `last` is what the last lane has: the next `before`.

    Only directly in a vector loop. Halves are joined by halves, the last lane of each first half with every lane of the
    second (Sklansky 1960, Conditional-sum addition logic), and `before`, the same in all lanes, comes in last, from the
    left: so what is not negative never adds up to less in a later lane. Lanes that take no part do not change `last`.
    """

    result: Register
    last: Register
    op: ScalarOp
    value: Operand
    before: Operand


@dataclass(frozen=True, slots=True)
class StackPush:
    """Appends source[: count] to growable stack number `stack` of the call."""

    stack: int
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class StackPop:
    """Moves the last `count` elements of growable stack number `stack` into target; zeros where it is empty."""

    stack: int
    target: View
    count: int


@dataclass(frozen=True, slots=True)
class StackRead:
    """target[: count] = the `index`-th `count` elements of the stack, from its bottom; zeros beyond its end."""

    stack: int
    index: Operand
    target: View
    count: int


@dataclass(frozen=True, slots=True)
class StackWrite:
    """The `index`-th `count` elements of the stack = source[: count]; the stack grows to there, filled with zeros."""

    stack: int
    index: Operand
    source: View
    count: int


@dataclass(frozen=True, slots=True)
class StackLength:
    """result (i64) = how many items of `size` bytes the stack holds."""

    result: Register
    stack: int
    size: int


@dataclass(frozen=True, slots=True)
class StackReset:
    """Empties a stack. Its memory is kept until the call ends."""

    stack: int


Statement = (
    Compute | Load | Store | Update | For | While | If | Alloc | Copy | Transpose | Fault | Leave | Invoke | Library
    | Callback | Barrier | Shuffle | Prefix | StackPush | StackPop | StackRead | StackWrite | StackLength | StackReset
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A loop nest, or the entry. Parameters of space ARGUMENT do not overlap where one of them is written."""

    name: str
    parameters: tuple[Buffer | Register, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Module:
    """Functions and the name of the entry, whose parameters are the INPUT, OUTPUT and CONSTANT buffers in order.

    arena: bytes of scratch memory that a call needs, 64-byte aligned; ARENA buffers are slices of it.
    stacks: how many growable stacks a call needs.
    """

    functions: tuple[Function, ...]
    entry: str
    arena: int = 0
    stacks: int = 0

    def __str__(self) -> str:
        from tracer.ir.loop.text import loop_text  # noqa: PLC0415  # nouns know each other, as in `ir.program`

        return loop_text(self)

    __repr__ = __str__


def index_register(name: str) -> Register:
    """A fresh i64 register for a loop index."""
    return Register(I64, name)


def index_constant(value: int) -> Constant:
    """An i64 constant."""
    return Constant(np.int64(value), I64)
