"""Bodies of control flow: the user's functions on trees, staged as programs, and comparison of their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tracer.errors import CarryTypeError, message
from tracer.ir import dtypes
from tracer.ir.program import Literal, Program
from tracer.ir.types import ArrayType, Type, array_type, same_up_to_weakness
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.transforms.functions import as_outputs, call_rule, flatten_arguments, name_of

Function = Callable[..., Any]


class Body(NamedTuple):
    """A user's function as a program of (constants..., inputs...), and the structure of its result."""

    program: Program
    constants: list[Array]
    structure: trees.Structure


def stage_body(
    function: Function, structure: trees.Structure, types: Sequence[Type], caller: str, wanted: Sequence[Type] = ()
) -> Body:
    """Stage `function(*arguments)`, for arguments of a structure and types.

    wanted: types of the first outputs. A weak output takes on its wanted type's weak flag if the dtype agrees.
    """
    structures: list[trees.Structure] = []

    def flat(inputs: list[Array]) -> list[Any]:
        values, found = as_outputs(call_rule(function, trees.unflatten(structure, inputs), caller), caller)
        structures.append(found)
        fitted = [_strengthened(y, type) for y, type in zip(values, wanted, strict=False)]
        return [*fitted, *map(_array, values[len(fitted) :])]

    staged = stage(flat, types, name=name_of(function))
    return Body(staged.program, staged.constants, structures[-1])


def _array(value: Any) -> Any:
    return broadcast_in_dim(value, (), ()) if isinstance(value, Literal) else value


def _fitted(value: Any, wanted: Type) -> Any:
    """Return the value with the weak flag of `wanted`, if its type differs in that alone."""
    value = _array(value)
    if isinstance(wanted, ArrayType) and value.type != wanted and same_up_to_weakness(value.type, wanted):
        return convert_element_type(value, wanted.dtype, weak=wanted.weak)
    return value


def _strengthened(value: Any, wanted: Type) -> Any:
    return _fitted(value, wanted) if isinstance(wanted, ArrayType) and not wanted.weak else _array(value)


class Carry:
    """Carries of a loop: their values, structure, and the body's name for each."""

    def __init__(self, loop: str, body: Function, position: int, init: Any) -> None:
        self.loop = loop
        self.root = parameter_name(body, position)
        self.values, self.structure = flatten_arguments(init, loop, lambda: trees.leaf_names(init, self.root))
        self.names = trees.leaf_names(init, self.root)

    @property
    def types(self) -> list[Type]:
        return [x.type for x in self.values]

    def adapt(self, returned: Sequence[Type]) -> bool:
        """Cast weak carries to the dtypes that the body returns, where promotion would. Returns whether any changed."""
        changed = False
        for number, (x, type) in enumerate(zip(self.values, returned, strict=True)):
            if not x.weak_type or not isinstance(type, ArrayType) or x.type == type:
                continue
            if x.shape == type.shape and dtypes.kind_order(x.dtype) <= dtypes.kind_order(type.dtype):
                self.values[number] = convert_element_type(x, type.dtype, weak=type.weak)
                changed = True
        return changed

    def check_structure(self, returned: trees.Structure) -> None:
        """Raise CarryTypeError unless the body returns the structure that it takes."""
        if returned != self.structure:
            path, enters, leaves = trees.parting(self.structure, returned, self.root)
            raise CarryTypeError(
                message(
                    f"{self.loop}{here()}",
                    f"carry '{path}' enters as {trees.structure_text(enters)} "
                    f"but the body returns {trees.structure_text(leaves)}",
                    help="return the structure that the body takes"
                    if returned.num_leaves
                    else "return the new carry: is there a `return`?",
                )
            )

    def check_types(self, returned: Sequence[Type]) -> None:
        """Raise CarryTypeError, naming every carry, unless the body returns the types that it takes."""
        wrong = [
            (name, x.type, type)
            for name, x, type in zip(self.names, self.values, returned, strict=True)
            if not same_up_to_weakness(x.type, type)
        ]
        if wrong:
            lines = [
                f"carry '{name}' enters as {enters} but the body returns {leaves}" for name, enters, leaves in wrong
            ]
            raise CarryTypeError(message(f"{self.loop}{here()}", *lines, help=_remedy(*wrong[0])))


def _remedy(name: str, enters: Type, leaves: Type) -> str:
    if isinstance(enters, ArrayType) and isinstance(leaves, ArrayType) and enters.shape == leaves.shape:
        article = "an" if leaves.dtype.name[0] in "iu" else "a"
        return f'cast the result, {name}.astype("{enters.dtype}"), or start from {article} {leaves.dtype} carry'
    return f"keep the type, or start from a carry {leaves}"


def parameter_name(function: Function, position: int) -> str:
    """Return the name of a function's parameter, for errors."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return names[position] if position < len(names) else "carry"


def fixpoint(carry: Carry, stage_with: Callable[[list[Type]], Body], first: int) -> Body:
    """Stage a body until weak carries enter with the types that it returns; then check them.

    first: index of the first carry among the body's inputs after its constants, and among its outputs. The body is not
    traced again for a carry whose weak flag alone changes.
    """
    for _ in range(3):
        types = carry.types
        body = stage_with(types)
        returned = body.program.output_types[first : first + len(types)]
        if not carry.adapt(returned):
            break
        if all(same_up_to_weakness(old, new) for old, new in zip(types, carry.types, strict=True)):
            body = _entered_by(body, carry.types, len(body.constants) + first)
            break
    carry.check_types(returned)
    return body


def _entered_by(body: Body, types: Sequence[Type], first: int) -> Body:
    """Return the body with other weak flags on its carries; inside, they keep the flags of the trace."""
    program = body.program
    inputs = list(program.input_types)
    inputs[first : first + len(types)] = types

    def run(arrays: list[Array]) -> list[Any]:
        return evaluate(program, [_fitted(x, v.type) for x, v in zip(arrays, program.inputs, strict=True)])

    return body._replace(program=stage(run, inputs, name=program.name).program)


def weak_join(types: Sequence[Type]) -> Type | None:
    """Return the common type of several types, where weak types follow the strong ones; None if there is none."""
    first = types[0]
    if all(type == first for type in types):
        return first
    if not all(isinstance(type, ArrayType) and type.shape == first.shape for type in types):
        return None
    arrays = [type for type in types if isinstance(type, ArrayType)]
    strong = {type.dtype for type in arrays if not type.weak}
    if len(strong) > 1:
        return None
    found = dtypes.promote(*((type.dtype, type.weak) for type in arrays))
    if found is None or (strong and found[0] not in strong):
        return None
    return array_type(found[0], first.shape, found[1])
