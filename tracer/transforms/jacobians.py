"""Jacobians and Hessians: jacfwd, jacrev, jacobian, hessian, hvp.

The function runs once. Then its linear part, or the transpose of that, runs on a batch of basis vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import FLOAT0
from tracer.ir.types import ArrayType, Type, array_type, size, tangent_type
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.shapes import broadcasted_iota, moveaxis, reshape
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.comparison import eq
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.device_trace import beside
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand
from tracer.trace.tracebacks import wrapping
from tracer.transforms.batch import batch_forward
from tracer.transforms.context import to_front
from tracer.transforms.functions import check_callable, result_names
from tracer.transforms.gradient_arguments import argument_numbers, chosen_arguments
from tracer.transforms.gradients import gradient_of
from tracer.transforms.jacobian_products import check_sequences, push
from tracer.transforms.recording import Recorded, record
from tracer.transforms.tangents import dense
from tracer.transforms.transpose import pull_back

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def jacfwd(fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Return the Jacobian by forward mode, one tangent per input element: for functions with few inputs.

    Each leaf of the result has the shape [*output, *input]; for an integer output it is zero, in the output's dtype.
    fun, argnums, has_aux, holomorphic: as in `grad`, but the results are arrays.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.jacfwd(lambda x: x * x)(tnp.asarray([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], f64)
    """
    return _jacobian("jacfwd", _push_basis, fun, argnums, has_aux, holomorphic, False)


def jacrev(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Function:
    """Return the Jacobian by reverse mode, one cotangent per output element: for functions with few outputs.

    fun, argnums, has_aux, holomorphic, allow_int: as in `grad`, but the results are arrays. Each leaf of the result has
    the shape [*output, *input] and the input's dtype.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.jacrev(lambda x: tnp.sum(x * x))(tnp.asarray([1.0, 2.0]))
    Array([2., 4.], f64)
    """
    return _jacobian("jacrev", _pull_basis, fun, argnums, has_aux, holomorphic, allow_int)


jacobian = jacrev


def hessian(fun: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """Return the second derivative of a function: forward over reverse.

    fun, argnums, has_aux, holomorphic: as in `grad`. A leaf of the result has the shape [*output, *input, *input] and
    the input's dtype.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.hessian(lambda x: tnp.sum(x ** 3))(tnp.asarray([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], f64)
    """
    check_callable(fun, "hessian")
    inner = _jacobian("hessian", _pull_basis, fun, argnums, has_aux, holomorphic, False)
    return _jacobian("hessian", _push_basis, inner, argnums, has_aux, holomorphic, False)


def hvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Multiply the Hessian of a scalar function by a vector, without forming it: forward over reverse.

    fun: returns a scalar []; primals, tangents: sequences, one entry an argument, of equal structures, shapes and
    dtypes. Returns a tuple like `primals`, or (tuple, aux) if `has_aux`. It costs about as much as two gradients.
    Pearlmutter 1994, Neural Computation 6(1).

    >>> import tracer, tracer.numpy as tnp
    >>> x, v = tnp.asarray([1.0, 2.0]), tnp.asarray([1.0, 0.0])
    >>> tracer.hvp(lambda x: tnp.sum(x ** 3), (x,), (v,))
    (Array([6., 0.], f64),)
    """
    check_callable(fun, "hvp")
    check_sequences("hvp", primals, tangents)
    gradient = gradient_of("hvp", fun, tuple(range(len(primals))), has_aux)
    _, product, *aux = push("hvp", gradient, primals, tangents, has_aux)
    return (product, *aux) if has_aux else product


Blocks = list[list[Array]]  # for each differentiable output and input leaf the derivative, [*output, *input]


def _jacobian(
    caller: str, blocks_of: Callable[[Recorded], Blocks], fun: Function, argnums: Argnums, has_aux: bool,
    holomorphic: bool, allow_int: bool,
) -> Function:  # fmt: skip
    check_callable(fun, caller)
    single = isinstance(argnums, int)
    numbers = argument_numbers(argnums, caller)

    @wrapping(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        chosen = chosen_arguments(fun, caller, numbers, args, kwargs, holomorphic=holomorphic, allow_int=allow_int)
        name = chosen.name
        if blocks_of is _push_basis and not holomorphic:
            check_real([x.type for x in chosen.leaves], chosen.names, f"{caller} of {name}", "arguments")
        recorded = record(chosen.call, chosen.leaves, chosen.structure, has_aux, name, caller)
        if blocks_of is _pull_basis or holomorphic:
            found, wanted = [y.type for y in recorded.outputs], (check_complex if holomorphic else check_real)
            names = partial(result_names, trees.unflatten(recorded.structure, recorded.outputs))
            wanted(found, names, f"{caller} of {name}", "results")
        blocks = blocks_of(recorded)
        entries = _nest(recorded, chosen.structure, blocks, f"{caller} of {name}", still=blocks_of is _push_basis)
        result = trees.unflatten(recorded.structure, [entry[0] if single else entry for entry in entries])
        return (result, recorded.aux) if has_aux else result

    return derivative


def check_real(types: Sequence[Type], names: Callable[[], list[str]], where: str, kind: str) -> None:
    """Raise DTypeError for complex values, whose Jacobian would lack the derivatives by, or of, imaginary parts."""
    for number, type in enumerate(types):
        if isinstance(type, ArrayType) and dtypes.is_complex(type.dtype):
            raise DTypeError(
                message(
                    f"{where}{here()}: {kind} are real",
                    f"got {type} for {names()[number]}",
                    help="take real and imaginary parts apart, or say holomorphic=True; jvp and vjp take either",
                )
            )


def check_complex(types: Sequence[Type], names: Callable[[], list[str]], where: str, kind: str) -> None:
    """Raise DTypeError for values that are not complex, where a function is to be holomorphic."""
    for number, type in enumerate(types):
        if not (isinstance(type, ArrayType) and dtypes.is_complex(type.dtype)):
            raise DTypeError(
                message(
                    f"{where}{here()}: {kind} are complex where holomorphic=True",
                    f"got {type} for {names()[number]}",
                    help="cast with .astype(complex), or leave holomorphic out",
                )
            )


def _push_basis(recorded: Recorded) -> Blocks:
    """Compute the Jacobian by columns: the linear part on every basis vector of the inputs."""
    inputs = [x for x, on in zip(recorded.inputs, recorded.active, strict=True) if on]
    total = sum(x.size for x in inputs)
    return [_columns(y, inputs) for y in push_batch(recorded, _basis(inputs, total), total)]


def push_batch(recorded: Recorded, tangents: Sequence[Operand], total: int) -> list[Array]:
    """Return the tangents [total, *output] of the moving outputs. tangents: [total, *input], of the active inputs."""
    tape = recorded.tape
    axes = [None] * len(tape.residuals) + [0] * len(tangents)
    outputs, found = batch_forward(tape.program, [*tape.residuals, *tangents], axes, total, None)
    return [to_front(y, axis, total) for y, axis in zip(outputs, found, strict=True)]


def _pull_basis(recorded: Recorded) -> Blocks:
    """Compute the Jacobian by rows: the transpose of the linear part on every basis vector of the outputs."""
    outputs = [y for y, on in zip(recorded.outputs, recorded.moving, strict=True) if on]
    inputs = [x for x, on in zip(recorded.inputs, recorded.active, strict=True) if on]
    total = sum(size(y.type) for y in outputs)
    by_input = pull_batch(recorded, _basis(outputs, total), total)
    blocks: Blocks = []
    start = 0
    for y in outputs:
        stop = start + size(y.type)
        blocks.append([
            reshape(slice_in_dim(r, start, stop, 1, 0), (*y.type.shape, *x.shape))
            for r, x in zip(by_input, inputs, strict=True)
        ])  # fmt: skip
        start = stop
    return blocks


def pull_batch(recorded: Recorded, cotangents: Sequence[Operand], total: int) -> list[Array]:
    """Return the cotangents [total, *input] of the active inputs. cotangents: [total, *output], of moving outputs."""
    outputs = [y for y, on in zip(recorded.outputs, recorded.moving, strict=True) if on]
    tape = recorded.tape
    count = len(tape.residuals)

    def transposed(values: list[Any]) -> list[Operand]:
        return [dense(r) for r in pull_back(tape.program, tape.linear, values[:count], values[count:])]

    types = [*(r.type for r in tape.residuals), *(tangent_type(y.type) for y in outputs)]
    staged = stage(transposed, types, name="rows")
    axes = [None] * (len(staged.constants) + count) + [0] * len(outputs)
    operands = [*staged.constants, *tape.residuals, *cotangents]
    rows, found = batch_forward(staged.program, operands, axes, total, None)
    return [to_front(r, axis, total) for r, axis in zip(rows, found, strict=True)]


def _basis(values: Sequence[Operand], total: int) -> list[Array]:
    """Return [total, *shape] for each value: one where the row is the element's index among all elements, else zero."""
    result, start = [], 0
    for value in values:
        type = value.type
        assert isinstance(type, ArrayType)
        count = size(type)
        rows = broadcasted_iota(dtypes.I64, (total, count), 0)
        columns = broadcasted_iota(dtypes.I64, (total, count), 1)
        ones = convert_element_type(eq(rows, add(columns, start)), type.dtype)
        result.append(beside(value, reshape(ones, (total, *type.shape))))
        start += count
    return result


def _columns(batch_first: Array, inputs: Sequence[Array]) -> list[Array]:
    """Split [total, *output] into one [*output, *input] for each input."""
    rank = len(batch_first.shape) - 1
    last = moveaxis(batch_first, 0, rank)
    result, start = [], 0
    for x in inputs:
        block = slice_in_dim(last, start, start + x.size, 1, rank)
        result.append(reshape(block, (*last.shape[:-1], *x.shape)))
        start += x.size
    return result


def _block(block: Any, type: Type) -> Any:
    """Return a block of a Jacobian, weak if `type` is weak: the type of the result or argument that gives its width."""
    weak = isinstance(type, ArrayType) and type.weak
    return convert_element_type(block, block.dtype, weak=True) if weak else block


def _nest(recorded: Recorded, structure: trees.Structure, blocks: Blocks, caller: str, *, still: bool) -> list[Any]:
    """Return for each output a tree like the inputs. still: whether integer outputs have zeros, or raise DTypeError."""
    rows = iter(blocks)
    entries = []
    for number, (y, on) in enumerate(zip(recorded.outputs, recorded.moving, strict=True)):
        if still and isinstance(y.type, ArrayType) and dtypes.is_integer(y.type.dtype):
            shapes = [(*y.type.shape, *x.shape) for x in recorded.inputs]
            entries.append(trees.unflatten(structure, [zeros(array_type(y.type.dtype, shape)) for shape in shapes]))
            continue
        if not on:
            called = result_names(trees.unflatten(recorded.structure, recorded.outputs))[number]
            raise DTypeError(
                message(
                    f"{caller}{here()}: {called} has no derivative",
                    f"expected a floating or complex dtype, got {y.type}",
                    help="cast it with .astype(float), or return it beside the result: has_aux=True",
                )
            )
        given = iter(next(rows))
        leaves = [
            _block(next(given), y.type if still else x.type) if active else np.zeros((*y.type.shape, *x.shape), FLOAT0)
            for x, active in zip(recorded.inputs, recorded.active, strict=True)
        ]
        entries.append(trees.unflatten(structure, leaves))
    return entries
