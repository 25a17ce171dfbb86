"""What the compiled entry knows about one executable: tables in C's layout, which it reads and never changes.

Objects are referred to by address; the entry's `self`, a tuple, keeps all of them alive.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

Pointer, Word = ctypes.c_void_p, ctypes.c_int64


class Scalar(IntEnum):
    """Which Python scalar an argument may be besides an array."""

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
        ("ndim", Word),  # -1: of any shape, the same for all such leaves
        ("handle", Pointer),
        ("weak", Pointer),  # True or False: what `Array._weak` must be
        ("kind", Pointer),  # the class of `Array._type` for what is no plain array, else null
        ("scalar", Word),
        ("number", Pointer),  # the class of NumPy's numbers that may stand for the array, or null
        ("donated", Pointer),  # what a handle's value becomes when the call is over; null where it stays
    )


class Result(ctypes.Structure):
    """One output of the program."""

    _fields_ = (
        ("descr", Pointer),
        ("shape", Pointer),
        ("ndim", Word),  # -1: of the leaves' common shape
        ("size", Word),  # in bytes; of one element where the shape is the leaves'
        ("weak", Pointer),
        ("type", Pointer),  # what `Array._type` becomes: None for plain arrays
        ("donor", Word),  # the input in whose memory it is left, or -1
    )


class Common(ctypes.Structure):
    """The shape that all leaves of any shape have in one call; `count` is 0 where there are none."""

    _fields_ = (("shape", Pointer), ("ndim", Word), ("count", Word))


class StepKind(IntEnum):
    """What a step of the plan expects of an object."""

    LEAF = 0  # anything: an input of the program
    SAME = 1  # the very object: None, a static argument
    EQUAL = 2  # an equal one of the same simple type: a static argument
    TUPLE = 3  # of type `object` and of `size` items, each with steps of its own
    LIST = 4
    DICT = 5  # of `size` items: for each a KEY and the value's steps
    KEY = 6
    SLICE = 7  # start, stop and step, with steps of their own
    FLOAT = 8  # a float of the same bits: 0.0 is not -0.0


class Step(ctypes.Structure):
    """One step of the plan by which arguments are flattened: a tree in prefix form."""

    _fields_ = (("kind", Word), ("size", Word), ("object", Pointer))


class Guard(ctypes.Structure):
    """What the function read when it was traced, and what must still be there: an object, or an array's bytes."""

    _fields_ = (
        ("holder", Pointer),  # a dict; else a cell or a handle; or a NumPy array
        ("name", Pointer),  # the key in the dict, else null
        ("offset", Word),  # of the object's address in the cell or the handle
        ("expected", Pointer),  # where the object's address stands; or the bytes
        ("leaf", Pointer),  # to the Leaf that a NumPy array must match; null for objects
        ("size", Word),  # how many bytes
    )


class Record(ctypes.Structure):
    """One executable, as called with one structure of arguments."""

    _fields_ = (
        ("main", Pointer),
        ("version", Word),  # of the settings: `gate.version`; -1: run whatever the gate says
        ("positional", Word),  # how many arguments come by position
        ("keywords", Word),  # and by name
        ("names", Pointer),  # tuple of the latter's names, as the caller orders them
        ("order", Pointer),  # int64[positional + keywords]: the arguments in the plan's order
        ("steps", Pointer),  # null where every argument is a leaf, in order
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
        ("spare", Pointer),  # to a cell with an arena that no call uses at present, or null: exchanged atomically
        ("stacks", Word),
        ("long_from", Word),  # of how many elements on a call is long; 0 is the count where shapes are fixed
        ("heard_from", Word),  # and so long that Ctrl-C is listened to
        ("elementwise", Word),  # whether arrays are of any shape, and the constant is their count of elements
        ("repeatable", Word),  # whether it may be run again: it has no ordered effects
        ("donates", Word),  # whether any leaf is donated
        ("shared", Pointer),  # told of a donated array that has to be copied: takes the leaf's `donated`; or null
        ("single", Word),  # whether the result is the one output itself, rather than a tuple
        ("ndarray", Pointer),
        ("array", Pointer),
        ("array_type", Pointer),  # the class ArrayType
        ("zero", Pointer),
        ("finish", Pointer),  # makes the result of the tuple of outputs, or null
        ("raised", Pointer),  # the class Raised: a fallback returns one to have an exception raised
        ("failed", Pointer),  # makes an exception of a Context's address; null: a fault goes to the fallback
        ("callback", Pointer),  # runs a callback: (slot, address of inputs, address of outputs); or null
    )
