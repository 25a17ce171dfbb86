"""Tables of one executable in C's layout, which the compiled entry reads and never changes.

Objects are referred to by address; the entry's `self`, a tuple, keeps all of them alive.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

Pointer, Word = ctypes.c_void_p, ctypes.c_int64


class Scalar(IntEnum):
    """Python scalar that an argument may be besides an array."""

    NONE = 0
    BOOL = 1
    INT64 = 2
    FLOAT64 = 3
    FLOAT32 = 4
    COMPLEX128 = 5
    COMPLEX64 = 6


class Leaf(ctypes.Structure):
    """One input of the program: an argument's leaf, or a captured array (`handle` is not null)."""

    _fields_ = (
        ("descr", Pointer),  # the dtype
        ("shape", Pointer),  # int64[ndim]
        ("ndim", Word),  # -1: any shape that all such leaves share
        ("handle", Pointer),
        ("weak", Pointer),  # True or False: the expected `Array._weak`
        ("kind", Pointer),  # the class of `Array._type`; null for plain arrays
        ("scalar", Word),
        ("number", Pointer),  # the class of NumPy's scalars that may replace the array, or null
        ("donated", Pointer),  # the value of a donated handle after the call; null where it is not donated
    )


class Result(ctypes.Structure):
    """One output of the program."""

    _fields_ = (
        ("descr", Pointer),
        ("shape", Pointer),
        ("ndim", Word),  # -1: the leaves' common shape
        ("size", Word),  # bytes; of one element where the shape is the leaves'
        ("weak", Pointer),
        ("type", Pointer),  # the result's `Array._type`: None for plain arrays
        ("donor", Word),  # the input whose memory it takes over, or -1
    )


class Common(ctypes.Structure):
    """The shape that all leaves of free shape have in one call. count: its elements, or 0 for no such leaves."""

    _fields_ = (("shape", Pointer), ("ndim", Word), ("count", Word))


class StepKind(IntEnum):
    """Expectation of a step of the plan about an object, or how a step of a result's plan makes one."""

    LEAF = 0  # anything: an input of the program
    SAME = 1  # the very object: None, a static argument
    EQUAL = 2  # an equal object of the same simple type: a static argument
    TUPLE = 3  # of type `object` and of `size` items, each with steps of its own
    LIST = 4
    DICT = 5  # of `size` items: for each a KEY and the value's steps
    KEY = 6
    NODE = 7  # of the registered class `object`, with `size` children: FLATTEN, OTHER and the children's steps
    FLATTEN = 8  # the function of a NODE that returns its children and its other data
    OTHER = 9  # the other data that is expected of it
    ATTRIBUTES = 10  # of the class `object`: for each of `size` attributes in its __dict__ a KEY and the value's steps


class Step(ctypes.Structure):
    """One step of the plan by which arguments are flattened: a tree in prefix form."""

    _fields_ = (("kind", Word), ("size", Word), ("object", Pointer))


class Guard(ctypes.Structure):
    """A value that tracing read, which must be unchanged: an object by identity, or an array's bytes."""

    _fields_ = (
        ("holder", Pointer),  # a dict; else a cell or a handle; or a NumPy array
        ("name", Pointer),  # the key in the dict, else null
        ("offset", Word),  # byte offset of the object in the cell or the handle
        ("expected", Pointer),  # the address of the object's address; or the bytes
        ("leaf", Pointer),  # to the Leaf that a NumPy array must match; null for objects
        ("size", Word),  # how many bytes
    )


class Record(ctypes.Structure):
    """One executable, as called with one structure of arguments."""

    _fields_ = (
        ("main", Pointer),
        ("version", Word),  # of the settings: `gate.version`; -1 for any state of the gate
        ("positional", Word),  # number of arguments by position
        ("keywords", Word),  # number of arguments by name
        ("names", Pointer),  # tuple of their names, in the caller's order
        ("order", Pointer),  # int64[positional + keywords]: the arguments in the plan's order
        ("steps", Pointer),  # null where every argument is a leaf, in order
        ("nodes", Word),  # whether any step is a NODE, whose flattening runs Python code
        ("guards", Word),
        ("guarded", Pointer),  # Guard[guards]
        ("captured", Word),
        ("inputs", Word),
        ("leaves", Pointer),  # Leaf[inputs], captured arrays first
        ("outputs", Word),
        ("results", Pointer),  # Result[outputs]
        ("constants", Word),
        ("data", Pointer),  # void*[constants]
        ("arena", Word),  # bytes
        ("spare", Pointer),  # to a cell with an unused arena, or null; exchanged atomically
        ("stacks", Word),
        ("long_from", Word),  # elements from which on a call is long; fixed shapes have a count of 0
        ("heard_from", Word),  # elements from which on a call listens to Ctrl-C
        ("patience", Word),  # steps after which a call on the main thread is long and listens, or 0
        ("elementwise", Word),  # whether shapes are free, and the constant is the count of elements
        ("repeatable", Word),  # whether it may run again, having no ordered effects
        ("donates", Word),  # whether any leaf is donated
        ("shared", Pointer),  # called with the leaf's `donated` if a donated array is copied; or null
        ("single", Word),  # whether the result is the one output itself, rather than a tuple
        ("ndarray", Pointer),
        ("array", Pointer),
        ("array_type", Pointer),  # the class ArrayType
        ("zero", Pointer),
        ("tree", Pointer),  # Step[]: the plan by which the result is made of the outputs; null for their tuple
        ("raised", Pointer),  # the class Raised: a fallback returns one for an exception
        ("failed", Pointer),  # makes an exception from a Context's address
        ("callback", Pointer),  # called as (slot, address of inputs, address of outputs); or null
    )
