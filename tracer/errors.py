"""Every exception that tracer raises.

    TracerError                      base of all of them
    ├── InternalError                a bug in tracer: carries the program that shows it
    ├── ShapeError (TypeError, ValueError)  shapes that do not fit
    │   ├── AxisError (np.exceptions.AxisError)  an axis out of range or given twice
    │   └── IndexShapeError (IndexError)  index arrays that do not broadcast together
    ├── DTypeError (TypeError)       dtypes that do not fit an operation
    │   └── StorageDTypeError        an operation that does not compute on a dtype for storage
    ├── ArgumentError (TypeError, ValueError)  an argument that is no array, a wrong structure, a wrong option
    │   └── IndexingError (IndexError)  an index that is no integer, slice, mask, None or ellipsis
    ├── CarryTypeError (TypeError)   a loop's body or a branch returns other types than it must
    ├── TracedValueError (TypeError) Python asked for the value of a traced array
    │   ├── TracerBoolError          `if`, `while`, `and`, `not`, `assert`
    │   ├── TracerIntegerError       `int`, indices, `range`
    │   ├── TracerFloatError         `float`, `complex`, `math.*`
    │   └── TracerArrayError         `np.asarray`, and NumPy functions that tracer does not have
    ├── LeakedTracerError            a traced array used after its trace ended
    ├── ClosureError (TypeError)     a function with rules of its own closes over an array that is differentiated
    ├── MutationError (TypeError)    `x[i] = v` on a handle that the current trace does not own
    ├── ModuleError (AttributeError)  a module's attribute written where it is closed, drawn from where it has no key
    ├── NoRuleError (TypeError)      a primitive lacks the rule that a transform needs, and why
    ├── CheckError                   `check(condition, message)` failed, eagerly or in compiled code
    ├── NonFiniteError (FloatingPointError)  a NaN or infinity was made, under `checked` or `config.debug_nans`
    ├── OutOfBoundsError (IndexError)  a checked index is out of bounds
    ├── OutOfMemoryError (MemoryError)  arrays, or a program's temporaries, do not fit in memory
    ├── NestingError (RecursionError)  calls are nested too deeply for Python's stack
    ├── DivisionError (ZeroDivisionError)  an integer is divided by zero under `config.debug_division`
    ├── MatrixError (np.linalg.LinAlgError)  a concrete matrix is singular, or not positive definite
    ├── DeviceError                  a device that is not there, arrays on different devices
    ├── ExportError (BufferError)    memory that DLPack cannot share as asked
    ├── CheckpointError (ValueError)  a file that is damaged, or holds another tree
    ├── SettingError (ValueError)    an unknown setting, or a value that it does not take
    └── ProgramTextError (ValueError)  text that is no program

A message states the operation, the place in the user's code, the expected and the given value, and the remedy. Compose
it with `message`, so that all of them look alike. Below it, tracebacks name the command that shows the documentation.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tracer.absent import absent


def message(summary: str, *lines: str, help: str | None = None) -> str:
    """Join the parts of an error's text: a summary line, indented details, and the remedy.

    >>> print(message("add at demo.py:3", "got f32[3] and f32[4]", help="slice one of them"))
    add at demo.py:3
      got f32[3] and f32[4]
      help: slice one of them
    """
    parts = [summary, *(f"  {line}" for line in lines)]
    if help is not None:
        parts.append(f"  help: {help}")
    return "\n".join(parts)


class TracerError(Exception):
    """Base of every exception that tracer raises on purpose."""

    @cached_property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        """Lines that tracebacks show below the message, and `add_note` extends. Made when they are first read."""
        return [f"  more: {self.section_command()}"]

    def _repr_html_(self) -> str:
        from tracer import markup  # noqa: PLC0415  # the base of everything, which `import tracer` reads

        first, *lines = str(self).split("\n")
        return markup.view(type(self).__name__, markup.code("\n".join(lines)), self.section(), note=first)

    def section(self) -> str:
        """Return the section of the documentation on this error, as HTML that unfolds."""
        from tracer import error_sections, markup  # noqa: PLC0415  # as above

        name = self._documented()
        return markup.folded(f"about {name}", markup.from_markdown(error_sections.section(name)))

    def section_command(self) -> str:
        """Return the command that shows the section."""
        return f"python -m tracer docs {self._documented()}"

    def _documented(self) -> str:
        """Return the name of the class of this module, which a subclass elsewhere shares its section with."""
        return next(base.__name__ for base in type(self).__mro__ if base.__module__ == __name__)


class InternalError(TracerError):
    """A bug in tracer itself."""


class ShapeError(TracerError, TypeError, ValueError):
    """Shapes that do not fit the operation. NumPy raises a ValueError for these, JAX a TypeError."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis out of range, or named twice."""

    def __init__(self, text: str) -> None:
        np.exceptions.AxisError.__init__(self, text)

    axis: int | None = None  # NumPy's class has slots for them, which not every unpickler of exceptions sets
    ndim: int | None = None

    def __str__(self) -> str:
        return str(self.args[0])


class IndexShapeError(ShapeError, IndexError):
    """Index arrays whose shapes do not broadcast together. NumPy raises an IndexError."""


class DTypeError(TracerError, TypeError):
    """Dtypes that the operation does not take."""


class StorageDTypeError(DTypeError):
    """A dtype for storage where the operation computes; most operations then compute in a wider one."""


class ArgumentError(TracerError, TypeError, ValueError):
    """An argument of the wrong sort: no array, a wrong tree structure, an option that does not exist.

    NumPy raises now a TypeError, now a ValueError for these: handlers of either take it.
    """


class IndexingError(ArgumentError, IndexError):
    """An index that is no integer, slice, array of integers or bools, None or ellipsis. NumPy raises an IndexError."""


class CarryTypeError(TracerError, TypeError):
    """The body of a loop, or the branches of a `cond`, disagree about types."""


class TracedValueError(TracerError, TypeError):
    """Python asked a traced array for its value."""


class TracerBoolError(TracedValueError):
    """A Python branch on a traced value."""


class TracerIntegerError(TracedValueError):
    """A Python integer wanted from a traced value."""


class TracerFloatError(TracedValueError):
    """A Python float or complex wanted from a traced value."""


class TracerArrayError(TracedValueError):
    """A NumPy array wanted from a traced value."""


class LeakedTracerError(TracerError, RuntimeError):
    """A traced array outlived its trace."""


class ClosureError(TracerError, TypeError):
    """A function with rules of its own closes over an array that is differentiated."""


class MutationError(TracerError, TypeError):
    """`x[i] = v` on a handle that the current trace may not rebind."""


class ModuleError(TracerError, AttributeError):
    """An attribute of a module that is written, or a layer that draws, where the module does not allow it."""


class NoRuleError(TracerError, TypeError):
    """A primitive has no rule for a transform, for a stated reason."""


class CheckError(TracerError, ValueError):
    """The condition of a `check` was false."""


class NonFiniteError(TracerError, FloatingPointError):
    """An operation made a NaN or infinity of numbers, under `checked`, `config.debug_nans` or `config.debug_infs`."""


class OutOfBoundsError(TracerError, IndexError):
    """A checked index was out of bounds."""


class OutOfMemoryError(TracerError, MemoryError):
    """Arrays, or the temporaries of a compiled program, do not fit in memory."""


class NestingError(TracerError, RecursionError):
    """Transforms, branches or loops are nested too deeply for Python's stack."""


class DivisionError(TracerError, ZeroDivisionError):
    """An integer was divided by zero under `config.debug_division`."""


class MatrixError(TracerError, np.linalg.LinAlgError):
    """A concrete matrix has no inverse, or no factor."""


class DeviceError(TracerError, RuntimeError):
    """A device that does not exist here, or arrays that live on different devices."""


class ExportError(TracerError, BufferError):
    """DLPack cannot share the memory of an array as asked: its dtype, its layout, another device, a stream."""


class CheckpointError(TracerError, ValueError):
    """A file of arrays that is damaged, cannot be read or written, or holds another tree."""


class SettingError(TracerError, ValueError):
    """An unknown setting or a value it does not take."""


class ProgramTextError(TracerError, ValueError):
    """Text that cannot be read as a program."""


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
