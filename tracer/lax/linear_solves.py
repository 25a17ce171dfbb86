"""Linear equations given by functions: `custom_linear_solve`, differentiated implicitly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.errors import ArgumentError, message
from tracer.ir.program import Program
from tracer.ir.types import Type, same_up_to_weakness
from tracer.primitives.control.linear_solve import linear_solve_p
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import bind_all
from tracer.trace.tracebacks import call_user
from tracer.transforms.functions import as_outputs, check_callable
from tracer.transforms.transpose import transpose_program

Tree = Any
Solve = Callable[[Callable[[Tree], Tree], Tree], Tree]


class _Map(NamedTuple):
    """A function of trees like the right-hand side, as a program of (captured arrays..., leaves...)."""

    program: Program
    captured: list[Array]
    aux: Any = None  # structure of aux

    def of_trees(self, structure: Any) -> Callable[[Tree], Tree]:
        def apply(x: Tree) -> Tree:
            leaves = [as_array(leaf, "custom_linear_solve") for leaf in trees.flatten(x)[0]]
            return trees.unflatten(structure, evaluate(self.program, [*self.captured, *leaves]))

        return apply


def custom_linear_solve(
    matvec: Callable[[Tree], Tree], b: Tree, solve: Solve, transpose_solve: Solve | None = None,
    symmetric: bool = False, has_aux: bool = False,
) -> Any:  # fmt: skip
    """Solve matvec(x) = b for x by `solve`, differentiable in b and in the arrays that `matvec` closes over.

    matvec: a linear function from trees like b, of arrays [*s], to such trees. solve(matvec, b): the solution, a tree
    like b, or (solution, aux) if `has_aux`; it is not differentiated, and aux has no derivative.
    transpose_solve(vecmat, ct): the solution for the transposed map, needed by derivatives in reverse unless the map is
    `symmetric`. Returns the result of `solve`. Raises ArgumentError where a function returns another tree, other shapes
    or other dtypes.

    With A x = b, dx = A^-1 (db - dA x), and the cotangent of b is A^-T times the cotangent of x. So derivatives are
    solutions.

    >>> def divided(a, b):
    ...     return tracer.lax.custom_linear_solve(lambda x: a * x, b, lambda mv, b: b / mv(1.0), symmetric=True)
    >>> tracer.grad(divided, argnums=(0, 1))(2.0, 6.0)
    (Array(-1.5, f64*), Array(0.5, f64*))
    """
    for function in (matvec, solve, *([] if transpose_solve is None else [transpose_solve])):
        check_callable(function, "custom_linear_solve")
    leaves, structure = trees.flatten(b)
    sides = [as_array(leaf, "custom_linear_solve") for leaf in leaves]
    sides = [convert_element_type(x, x.dtype) for x in sides]
    types = [x.type for x in sides]
    forward = _staged(lambda x: call_user(matvec, (x,), {}), types, structure, "matvec")
    found = _solving(solve, forward, types, structure, "solve", has_aux)
    backward = transposed = None
    if symmetric:
        backward, transposed = forward, found
    elif transpose_solve is not None:
        linear = (False,) * len(forward.captured) + (True,) * len(types)
        backward = _Map(transpose_program(forward.program, linear).program, forward.captured)
    if backward is not None and transpose_solve is not None:
        transposed = _solving(transpose_solve, backward, types, structure, "transpose_solve", has_aux)
    maps = (forward, found, backward, transposed)
    params = {
        name: None if each is None else each.program
        for name, each in zip(("matvec", "solve", "vecmat", "transpose_solve"), maps, strict=True)
    }
    params["counts"] = tuple(0 if each is None else len(each.captured) for each in maps)  # type: ignore[assignment]
    operands = [x for each in maps if each is not None for x in each.captured]
    results = bind_all(linear_solve_p, [*operands, *sides], params)
    x = trees.unflatten(structure, results[: len(sides)])
    return (x, trees.unflatten(found.aux, results[len(sides) :])) if has_aux else x


def _solving(solve: Solve, linear: _Map, types: list[Type], structure: Any, name: str, has_aux: bool) -> _Map:
    apply = linear.of_trees(structure)
    return _staged(lambda b: call_user(solve, (apply, b), {}), types, structure, name, has_aux)


def _staged(
    function: Callable[[Tree], Any], types: list[Type], structure: Any, name: str, has_aux: bool = False
) -> _Map:
    """Stage the function as a program. Raises ArgumentError unless it returns a tree like its argument."""
    caller = f"{name} of custom_linear_solve"
    extra: list[Any] = [None]

    def flat(inputs: list[Any]) -> list[Any]:
        result = function(trees.unflatten(structure, inputs))
        aux: list[Any] = []
        if has_aux:
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise ArgumentError(message(f"{caller}{here()} must return (solution, aux), as has_aux says"))
            result, rest = result
            aux, extra[0] = as_outputs(rest, caller)
        outputs, own = as_outputs(result, caller)
        found = [y.type for y in outputs]
        if own != structure or not all(map(same_up_to_weakness, found, types)):
            raise ArgumentError(
                message(
                    f"{caller}{here()} must return a tree like the right-hand side",
                    f"expected {trees.structure_text(structure)} of {', '.join(map(str, types))}",
                    f"got {trees.structure_text(own)} of {', '.join(map(str, found))}",
                    help="linear functions and their solutions keep structures, shapes and dtypes",
                )
            )
        return [*[convert_element_type(y, y.dtype) for y in outputs], *aux]

    staged = stage(flat, types, name=name)
    return _Map(staged.program, staged.constants, extra[0])
