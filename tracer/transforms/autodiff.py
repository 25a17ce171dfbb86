"""The user's derivatives: grad, value_and_grad, vjp, jvp, linearize, linear_transpose. Jacobians are next door.

All run the function once (see `tracer.transforms.run`), outside jit with values, under jit into the program.
Complex derivatives follow JAX: `grad` of a real function of complex z gives the conjugate of the ascent direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Zero
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.broadcasting import broadcast_in_dim
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.array import Array, renewed
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal
from tracer.trace.tracebacks import boundary, call_user, wrapping
from tracer.transforms.context import Tangent
from tracer.transforms.functions import (
    argument_names,
    as_output,
    check_callable,
    flatten_arguments,
    name_of,
)
from tracer.transforms.paths import dense, pull
from tracer.transforms.run import LinearTape, Tape, linear_tape, run_forward, run_reverse
from tracer.transforms.transpose import pull_back

FLOAT0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents and gradients of integers and booleans, as JAX users know it."""


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:  # fmt: skip
    """The gradient of a scalar function, as a function.

    fun: returns a real scalar (a complex one if `holomorphic`), or (scalar, aux) if `has_aux`.
    argnums: which arguments; the gradient has their tree structure, shapes and dtypes.
    allow_int: integer arguments get float0 gradients in place of an error. reduce_axes: empty, as JAX's has to be.
    Raises DTypeError for integer arguments or results, ShapeError for results that are no scalars.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.grad(tnp.sin)(0.0)
    Array(1., f64)
    """
    derivative = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wrapping(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = derivative(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[object] = (),
) -> Callable[..., Any]:  # fmt: skip
    """As `grad`, but the function returns (value, gradient), or ((value, aux), gradient).

    >>> import tracer
    >>> tracer.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., f64*), Array(6., f64))
    """
    check_callable(fun, "grad")
    _refuse_reduce_axes("grad", reduce_axes)
    single = isinstance(argnums, int)
    numbers = argument_numbers(argnums, "grad")

    @wrapping(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        positions = [argument_position(n, len(args), "grad") for n in numbers]
        chosen = tuple(args[p] for p in positions)

        def call(*values: Any) -> Any:
            full = list(args)
            for position, value in zip(positions, values, strict=True):
                full[position] = value
            return call_user(fun, full, kwargs)

        name = name_of(fun)

        def names() -> list[str]:
            return argument_names(chosen, of=fun, positions=positions)

        leaves, structure = flatten_arguments(chosen, f"grad of {name}", names)
        check_gradient_inputs(leaves, names, f"grad of {name}", holomorphic, allow_int)
        recorded = record(call, leaves, structure, has_aux, name)
        output = _scalar_output(recorded, name, holomorphic)
        cotangent = _ones(output)
        gradients = recorded.pull([cotangent])
        result = trees.unflatten(structure, gradients)
        value = trees.unflatten(recorded.structure, [output])
        return ((value, recorded.aux) if has_aux else value), (result[0] if single else result)

    return derivative


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[object] = ()) -> Any:
    """Run a function, and return its outputs with the function from cotangents of outputs to those of the inputs.

    Returns (outputs, pullback), or (outputs, pullback, aux) if `has_aux`. pullback(cotangents) takes a tree like
    the outputs and returns a tuple, one entry for each of `primals`. It may be called any number of times.

    >>> import tracer, tracer.numpy as tnp
    >>> y, pullback = tracer.vjp(tnp.sin, 0.0)
    >>> pullback(2.0)
    (Array(2., f64),)
    """
    check_callable(fun, "vjp")
    _refuse_reduce_axes("vjp", reduce_axes)
    name = name_of(fun)
    leaves, structure = flatten_arguments(primals, f"vjp of {name}", lambda: argument_names(primals, of=fun))
    recorded = record(fun, leaves, structure, has_aux, name)

    @boundary
    def pullback(cotangents: Any) -> Any:
        given = _match(cotangents, recorded.outputs, recorded.structure, f"cotangents of {name}")
        return trees.unflatten(structure, recorded.pull(given))

    outputs = trees.unflatten(recorded.structure, recorded.outputs)
    return (outputs, pullback, recorded.aux) if has_aux else (outputs, pullback)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Run a function, and return its outputs with its derivative there, a function from tangents to tangents.

    Returns (outputs, pushforward), or (outputs, pushforward, aux) if `has_aux`.

    >>> import tracer, tracer.numpy as tnp
    >>> y, pushforward = tracer.linearize(tnp.sin, 0.0)
    >>> pushforward(2.0)
    Array(2., f64)
    """
    check_callable(fun, "linearize")
    name = name_of(fun)
    leaves, structure = flatten_arguments(primals, f"linearize of {name}", lambda: argument_names(primals, of=fun))
    recorded = record(fun, leaves, structure, has_aux, name)

    @boundary
    def pushforward(*tangents: Any) -> Any:
        given = _match(tangents, leaves, structure, f"tangents of {name}")
        return trees.unflatten(recorded.structure, recorded.push(given))

    outputs = trees.unflatten(recorded.structure, recorded.outputs)
    return (outputs, pushforward, recorded.aux) if has_aux else (outputs, pushforward)


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The outputs of a function and their tangents, computed side by side.

    primals, tangents: sequences, one entry an argument, of equal structures, shapes and dtypes (float0 for integers).
    Returns (outputs, tangents), or (outputs, tangents, aux) if `has_aux`.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.jvp(tnp.sin, (0.0,), (2.0,))
    (Array(0., f64*), Array(2., f64))
    """
    check_callable(fun, "jvp")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(
            message(
                f"jvp{here()} takes tuples of primals and tangents",
                f"got {type(primals).__name__} and {type(tangents).__name__}",
                help="jvp(f, (x,), (dx,)) for a function of one argument",
            )
        )
    name = name_of(fun)
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, structure = flatten_arguments(primals, f"jvp of {name}", lambda: argument_names(primals, of=fun))
    given = _match(tangents, leaves, structure, f"tangents of {name}")
    holder = _Result(has_aux, name)
    outputs, moved = run_forward(holder.flat(fun, structure), leaves, given, name)
    count = holder.count
    ys = trees.unflatten(holder.structure, outputs[:count])
    dys = trees.unflatten(holder.structure, [tangent_array(t) for t in moved[:count]])
    return (ys, dys, holder.aux_value(outputs[count:])) if has_aux else (ys, dys)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[object] = ()) -> Callable[..., Any]:
    """The transpose of a linear function: from cotangents of its outputs to those of its arguments.

    primals: arrays, or anything with `shape` and `dtype`; their values are not used. Raises NoRuleError where
    the function is not linear.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., f64),)
    """
    check_callable(fun, "linear_transpose")
    _refuse_reduce_axes("linear_transpose", reduce_axes)
    name = name_of(fun)
    shapes, structure = trees.flatten(primals)
    types = [abstract_type(leaf) for leaf in shapes]
    holder = _Result(False, name)
    staged = stage(holder.flat(fun, structure), types, name=name, protected=True)

    @boundary
    def transposed(cotangents: Any) -> Any:
        outputs = [_Typed(type) for type in staged.program.output_types]
        given = _match(cotangents, outputs, holder.structure, f"cotangents of {name}")
        constants = len(staged.constants)
        linear = [i >= constants for i in range(len(staged.program.inputs))]
        results = pull_back(staged.program, linear, staged.constants, given)
        return trees.unflatten(structure, [tangent_array(r) for r in results])

    return transposed


class _Typed:
    """Stands for a value of which only the type is known."""

    __slots__ = ("type",)

    def __init__(self, type: Any) -> None:
        self.type = type


def abstract_type(leaf: Any) -> Any:
    """The IR type of an array, a scalar, or a ShapeDtypeStruct."""
    if isinstance(leaf, Array):
        return leaf.type
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        return ArrayType(np.dtype(dtype), tuple(shape), bool(getattr(leaf, "weak_type", False)))
    return as_array(leaf).type


# Running a user's function


class _Result:
    """Flattens what a user's function returns, and keeps its structure."""

    def __init__(self, has_aux: bool, name: str) -> None:
        self.has_aux = has_aux
        self.name = name
        self.structure: Any = None
        self.aux_structure: Any = None
        self.count = 0

    def flat(self, function: Callable[..., Any], structure: trees.Structure) -> Callable[[list[Any]], list[Operand]]:
        def run(leaves: list[Any]) -> list[Operand]:
            result = call_user(function, trees.unflatten(structure, leaves), {})
            aux_leaves: list[Any] = []
            if self.has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise ArgumentError(
                        message(
                            f"{self.name}{here()}: has_aux=True wants a pair (result, aux)",
                            f"got {type(result).__name__}",
                            help="return a tuple of two, or leave has_aux out",
                        )
                    )
                result, aux = result
                aux_leaves, self.aux_structure = trees.flatten(aux)
            outputs, self.structure = trees.flatten(result)
            self.count = len(outputs)
            return [as_output(y, self.name) for y in (*outputs, *aux_leaves)]

        return run

    def aux_value(self, leaves: Sequence[Any]) -> Any:
        return trees.unflatten(self.aux_structure, leaves) if self.has_aux else None


class Recorded:
    """A user's function run at a point, with its derivative there."""

    def __init__(
        self, leaves: list[Array], active: list[bool], holder: _Result, outputs: list[Operand], run: Tape
    ) -> None:
        self.leaves = leaves
        self.active = active
        self.structure = holder.structure
        self.outputs: list[Any] = outputs[: holder.count]
        self.aux = holder.aux_value(outputs[holder.count :])
        self.run = run
        self._linear: LinearTape | None = None
        self.moving = [is_differentiable(y.type) for y in self.outputs]

    @property
    def tape(self) -> LinearTape:
        """The derivative as a linear program, written once."""
        if self._linear is None:
            self._linear = linear_tape(self.run)
        return self._linear

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients of every leaf; float0 for those without."""
        given = [c for c, on in zip(cotangents, self.moving, strict=True) if on]
        results = iter(pull(self.run, self._linear, given))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(x.type)))
            for x, on in zip(self.leaves, self.active, strict=True)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of every output."""
        given = [dense(t) for t, on in zip(tangents, self.active, strict=True) if on]
        results = iter(evaluate(self.tape.program, [*self.tape.residuals, *given]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(y.type)))
            for y, on in zip(self.outputs, self.moving, strict=True)
        ]


def record(
    function: Callable[..., Any], leaves: list[Array], structure: trees.Structure, has_aux: bool, name: str
) -> Recorded:
    """Run a user's function on arrays, keeping what its derivative needs."""
    active = [is_differentiable(x.type) for x in leaves]
    holder = _Result(has_aux, name)
    tape = run_reverse(holder.flat(function, structure), leaves, active, name)
    outputs = list(tape.outputs)
    del tape.outputs[holder.count :], tape.output_vars[holder.count :]
    return Recorded(leaves, active, holder, outputs, tape)


# Checks


def _refuse_reduce_axes(what: str, reduce_axes: Sequence[object]) -> None:
    """Raise ArgumentError for an argument that JAX once had, and takes for its place only."""
    if reduce_axes:
        text = f"{what}{here()}: reduce_axes is empty, as in JAX"
        raise ArgumentError(message(text, f"got {reduce_axes!r}", help="sum over the lanes yourself, by lax.psum"))


def argument_numbers(argnums: Any, what: str) -> tuple[int, ...]:
    """The user's `argnums` as a tuple; ArgumentError unless they are integers."""
    numbers = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for number in numbers:
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise ArgumentError(
                message(
                    f"{what}{here()}: argnums takes integers",
                    f"got {number!r}",
                    help=f"count the arguments from 0; they go to the result: {what}(f)(x)",
                )
            )
    return tuple(map(int, numbers))


def argument_position(number: int, count: int, what: str) -> int:
    """An argnum, counted from either end, as a position among the arguments."""
    if not -count <= number < count:
        raise ArgumentError(
            message(
                f"{what}{here()}: argnums names argument {number}",
                f"the call has {count} positional argument{'s' if count != 1 else ''}",
                help="pass the differentiated arguments by position",
            )
        )
    return number % count


def check_gradient_inputs(
    leaves: Sequence[Array], names: Callable[[], list[str]], what: str, holomorphic: bool, allow_int: bool
) -> None:
    """Raise DTypeError for arguments that have no gradient. what: the transform and its function."""
    for number, leaf in enumerate(leaves):
        type = leaf.type
        good = is_differentiable(type) or allow_int
        if holomorphic:
            good = isinstance(type, ArrayType) and dtypes.is_complex(type.dtype)
        if not good:
            path = names()[number]
            wanted = "complex" if holomorphic else "floating or complex"
            remedy = (
                "cast with .astype(complex), or leave holomorphic out"
                if holomorphic
                else "pass a float, as 2.0 for 2, or cast with .astype(float)"
                + ("; allow_int=True gives float0" if what.startswith(("grad", "jacrev")) else "")
            )
            raise DTypeError(
                message(
                    f"{what}{here()}: {path} has no {'gradient' if what.startswith('grad') else 'derivative'}",
                    f"expected a {wanted} dtype, got {type}",
                    help=remedy,
                )
            )


def _scalar_output(recorded: Recorded, name: str, holomorphic: bool) -> Any:
    if len(recorded.outputs) != 1:
        raise ArgumentError(
            message(
                f"grad of {name}{here()}: the function must return one scalar",
                f"got {trees.structure_text(recorded.structure)}",
                help="return the loss alone; has_aux=True takes (loss, aux), and jacrev takes trees"
                if recorded.outputs
                else "return the loss: is there a `return`?",
            )
        )
    (output,) = recorded.outputs
    type = output.type
    if not isinstance(type, ArrayType) or type.shape != ():
        raise ShapeError(
            message(
                f"grad of {name}{here()}: the function must return a scalar",
                f"got {type}",
                help="reduce it, as with .sum() or .mean(); jacrev and jacfwd differentiate arrays",
            )
        )
    good = dtypes.is_complex(type.dtype) if holomorphic else dtypes.is_float(type.dtype)
    if not good:
        raise DTypeError(
            message(
                f"grad of {name}{here()}: the function must return a {'complex' if holomorphic else 'real float'}",
                f"got {type}",
                help="holomorphic=True differentiates complex functions"
                if dtypes.is_complex(type.dtype)
                else "cast it with .astype(float)",
            )
        )
    return output


def _ones(output: Operand) -> Any:
    type = output.type
    assert isinstance(type, ArrayType)
    return broadcast_in_dim(as_literal(type.dtype.type(1), type.dtype), (), ())


def _match(given: Any, like: Sequence[Any], structure: trees.Structure, what: str) -> list[Tangent]:
    """Tangents or cotangents as operands: they must have the structure, shapes and tangent dtypes of `like`."""
    leaves, got = trees.flatten(given)
    if got != structure:
        raise ArgumentError(
            message(
                f"{what}{here()} must have the structure of what they belong to",
                f"expected {trees.structure_text(structure)}",
                f"got {trees.structure_text(got)}",
                help="one leaf for each array, in the same containers",
            )
        )
    names = None
    result: list[Tangent] = []
    for number, (leaf, x) in enumerate(zip(leaves, like, strict=True)):
        wanted = tangent_type(x.type)
        if not is_differentiable(x.type):
            result.append(Zero(wanted))
            continue
        array: Any = as_array(leaf, what) if not (isinstance(leaf, np.ndarray) and leaf.dtype == FLOAT0) else None
        if array is not None and array.weak_type and array.shape == wanted.shape:
            array = convert_element_type(array, wanted.dtype)  # type: ignore[union-attr]
        if array is None or not same_up_to_weakness(array.type, wanted):
            names = names or trees.leaf_names(given, what.partition(" ")[0])
            raise ArgumentError(
                message(
                    f"{what}{here()}: {names[number]} has the wrong type",
                    f"expected {wanted}, got {'float0' if array is None else array.type}",
                    help="tangents and cotangents have the shape and dtype of the values they belong to",
                )
            )
        result.append(array)
    return result


def tangent_array(t: Tangent) -> Any:
    """A tangent for the user: zeros are arrays of zeros, and float0 is NumPy's empty dtype, as in JAX."""
    if isinstance(t, Zero):
        return zeros(t.type) if is_differentiable(t.type) else np.zeros(t.type.shape, FLOAT0)
    if isinstance(t, Literal):
        return broadcast_in_dim(t, (), ())
    return renewed(t)
