"""Cache blocks: a chain of matrix products with large intermediate values runs on a few rows at a time.

Attention multiplies queries and keys to scores of [heads, queries, keys], makes weights of them, and multiplies these
with values. Results are small, intermediate values are not, and go to memory and back at every step. Here such a chain
becomes a `scan` over blocks of its first axis. A block has as many rows as fit into a cache. Intermediate values exist
for one block only. Where a single row of the first axis is too large, it is cut in the same way itself.

A chain consists of the equations that depend on a large product and treat rows independently. These are elementwise
operations, operations on axes within rows, and products with whole matrices or row by row. Sums keep their order.
Products of fewer rows may round differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, NamedTuple

from tracer.ir.layout import byte_size
from tracer.ir.primitive import Alias, ArgReduce, Compare, Convert, Pointwise, Reduce
from tracer.ir.program import Atom, Equation, Program, Source, Var, infer_types
from tracer.ir.target import CPU, Target
from tracer.ir.types import Type, with_shape
from tracer.passes.base.rewrite import nested_first
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.shapes import reshape_p, transpose_p
from tracer.primitives.control.scan import scan_p
from tracer.primitives.linalg.dot_general import dot_general_p

_MIN_ROWS: Final = 16  # of a matrix product
_MAX_WHOLE: Final = 4  # times a block's bytes: more would come from memory for every block


def block_chains(program: Program, target: Target = CPU) -> Program:
    """Return the program with its large chains in blocks, nested programs too; the same object where there are none."""
    if not target.blocks.chain:
        return program
    return nested_first(_Blocking(target.blocks.chain_least, target.blocks.chain).run)(program)


class _Step(NamedTuple):
    """Equation of a chain, with the axes along which it is cut into blocks.

    out: axis of the output. operands: axis of each operand, None where a block reads all of it. is_copy: whether the
    equation stands outside the chain and is computed there too.
    """

    equation: Equation
    out: int
    operands: Sequence[int | None]
    is_copy: bool = False

    @property
    def output(self) -> Var:
        return self.equation.outputs[0]


@dataclass(frozen=True)
class _Chain:
    """extent: the number of rows. escaping: values that are read outside. whole: bytes that every block reads anew.

    between: bytes that the whole chain must store on its way, and the blocks need not.
    """

    steps: Sequence[_Step]
    extent: int
    least_rows: int
    escaping: Sequence[Var]
    whole: int
    between: int

    @property
    def axes(self) -> dict[Var, int]:
        return {step.output: step.out for step in self.steps if not step.is_copy}

    def rows_of_a_block(self, block_bytes: int) -> int:
        """Return the largest proper divisor of the number of rows that fits, or 0."""
        most = max(self.extent * block_bytes // self.between, self.least_rows)
        found = range(self.least_rows, min(most + 1, self.extent))
        return max((n for n in found if self.extent % n == 0), default=0)


class _Blocking:
    def __init__(self, least_bytes: int, block_bytes: int) -> None:
        self.least_bytes, self.block_bytes = least_bytes, block_bytes

    def run(self, program: Program) -> Program:
        tried: set[Var] = set()
        while (seed := next((e for e in program.equations if self._is_seed(e, tried)), None)) is not None:
            tried.add(seed.outputs[0])
            chain = _chain(program, seed)
            if chain is not None and self._pays(chain):
                rows = chain.rows_of_a_block(self.block_bytes)
                program = self._cut(program, chain, rows) if rows else program
        return program

    def _is_seed(self, equation: Equation, tried: set[Var]) -> bool:
        product = equation.primitive is dot_general_p and equation.outputs[0] not in tried
        return product and 2 * byte_size(equation.outputs[0].type) >= self.least_bytes

    def _pays(self, chain: _Chain) -> bool:
        is_large = chain.between >= self.least_bytes and chain.between > self.block_bytes
        return is_large and chain.whole <= _MAX_WHOLE * self.block_bytes

    def _cut(self, program: Program, chain: _Chain, rows: int) -> Program:
        """Return the program with the chain as a scan, after all equations that do not depend on it."""
        late = set(chain.axes)
        before: list[Equation] = []
        after: list[Equation] = []
        for equation in program.equations:
            if equation.outputs and equation.outputs[0] in chain.axes:
                continue
            depends = any(a in late for a in equation.inputs if isinstance(a, Var))
            late.update(equation.outputs if depends else ())
            if equation.effects and not depends and any(e.effects for e in after):
                return program  # effects stay in order
            (after if depends else before).append(equation)
        chain, turned = _with_matrices_turned(chain)
        return replace(program, equations=(*before, *turned, *self._scan(chain, rows), *after))

    def _scan(self, chain: _Chain, rows: int) -> Iterator[Equation]:
        source = chain.steps[0].equation.source
        body = _Body(chain, rows)
        program = _Blocking(self.block_bytes, self.block_bytes).run(body.program())
        xs = [Var(body.stacked(a.type, axis)) for a, axis in body.cut]
        for (a, _), x in zip(body.cut, xs, strict=True):
            yield _reshape(a, x, source)
        ys = [Var(body.stacked(v.type, chain.axes[v])) for v in chain.escaping]
        params = {
            "body": program, "length": body.count, "reverse": False, "consts": len(body.whole), "carries": 0,
        }  # fmt: skip
        yield Equation(scan_p, (*body.whole, *xs), params, tuple(ys), source)
        for v, y in zip(chain.escaping, ys, strict=True):
            yield _reshape(y, v, source)


def _reshape(operand: Var, result: Var, source: Source | None) -> Equation:
    return Equation(reshape_p, (operand,), {"new_sizes": result.type.shape}, (result,), source)


def _with_matrices_turned(chain: _Chain) -> tuple[_Chain, Sequence[Equation]]:
    """Return the chain with right operands transposed as products read them, and the equations that transpose them.

    Attention of 1024 queries takes a tenth less time than where each block transposes its panels of the keys.
    """
    turned: dict[Var, Equation] = {}
    steps = []
    for step in chain.steps:
        equation = step.equation
        if equation.primitive is dot_general_p and step.operands[1] is None and _is_turned(equation):
            (left, _), batch = equation.params["dimension_numbers"]
            lhs, rhs = equation.inputs
            assert isinstance(rhs, Var)
            *stack, n, k = rhs.type.shape
            order = (*range(len(stack)), len(stack) + 1, len(stack))
            if rhs not in turned:
                result = Var(with_shape(rhs.type, (*stack, k, n)))
                turned[rhs] = Equation(transpose_p, (rhs,), {"permutation": order}, (result,), equation.source)
            params = {**equation.params, "dimension_numbers": ((left, (len(stack),)), batch)}
            equation = replace(equation, inputs=(lhs, turned[rhs].outputs[0]), params=params)
        steps.append(step._replace(equation=equation))
    return replace(chain, steps=steps), list(turned.values())


def _is_turned(product: Equation) -> bool:
    """Whether the right operand is a stack of matrices that are contracted along their rows."""
    rhs, ((_, contracted), (_, batch)) = product.inputs[1], product.params["dimension_numbers"]
    last = len(rhs.type.shape) - 1
    return isinstance(rhs, Var) and contracted == (last,) and batch == tuple(range(last - 1))


class _Body:
    """Body of a block of rows. whole, cut: operands from outside, the latter with the axes that they are cut along."""

    def __init__(self, chain: _Chain, rows: int) -> None:
        self.chain, self.rows, self.count = chain, rows, chain.extent // rows
        self.made: dict[Var, Var] = {}
        self.inputs: dict[tuple[Var, int | None], Var] = {}
        self.equations: list[Equation] = []
        for step in chain.steps:
            self._add(step)
        self.whole = [a for a, axis in self.inputs if axis is None]
        self.cut = [(a, axis) for a, axis in self.inputs if axis is not None]

    def program(self) -> Program:
        inputs = (*(self.inputs[a, None] for a in self.whole), *(self.inputs[key] for key in self.cut))
        return Program(inputs, tuple(self.equations), tuple(self.made[v] for v in self.chain.escaping), "block")

    def stacked(self, type: Type, axis: int) -> Type:
        return with_shape(type, (self.count, *self._cut(type, axis).shape))

    def _cut(self, type: Type, axis: int) -> Type:
        return with_shape(type, (*type.shape[:axis], self.rows, *type.shape[axis + 1 :]))

    def _add(self, step: _Step) -> None:
        equation = step.equation
        shape = self._cut(equation.outputs[0].type, step.out).shape
        given = {"shape": shape, "new_sizes": shape}
        params = {name: given.get(name, value) for name, value in equation.params.items()}
        inputs = tuple(self._operand(a, axis) for a, axis in zip(equation.inputs, step.operands, strict=True))
        (type,) = infer_types(equation.primitive, inputs, params)
        result = self.made[step.output] = Var(type)
        self.equations.append(Equation(equation.primitive, inputs, params, (result,), equation.source))

    def _operand(self, atom: Atom, axis: int | None) -> Atom:
        if not isinstance(atom, Var) or atom in self.made:
            return self.made.get(atom, atom) if isinstance(atom, Var) else atom
        if (atom, axis) not in self.inputs:
            self.inputs[atom, axis] = Var(atom.type if axis is None else self._cut(atom.type, axis))
        return self.inputs[atom, axis]


# -- rules for cutting an equation --------------------------------------------------------------------------------


def _chain(program: Program, seed: Equation) -> _Chain | None:
    """Return the chain that begins with a product.

    Return None where it cannot be cut, or most of it is read outside.
    """
    shape = seed.outputs[0].type.shape
    axis = next((a for a, n in enumerate(shape) if n > 1), None)
    if axis is None:
        return None
    definitions = {v: e for e in program.equations for v in e.outputs}
    made: dict[Var, int] = {}
    behind: set[Var] = set()  # values that depend on the chain without belonging to it
    steps: list[_Step] = []
    for equation in program.equations[program.equations.index(seed) :]:
        operands = [a for a in equation.inputs if isinstance(a, Var)]
        is_seed = equation is seed
        if not is_seed and not any(a in made or a in behind for a in operands):
            continue
        if is_seed:
            cut = _product_from(equation, axis)
        else:
            cut = None if any(a in behind for a in operands) else _cut_of(equation, made)
        new = _steps(equation, cut, steps, definitions)
        if new is not None:
            steps += new
            made[equation.outputs[0]] = new[-1].out
        elif is_seed:
            return None
        else:
            behind.update(equation.outputs)
    batch = len(seed.params["dimension_numbers"][1][0])
    return _closed(program, steps, shape[axis], _MIN_ROWS if axis >= batch else 1)


def _closed(program: Program, steps: Sequence[_Step], extent: int, least_rows: int) -> _Chain | None:
    axes = {step.output: step.out for step in steps if not step.is_copy}
    rest = (e for e in program.equations if not (e.outputs and e.outputs[0] in axes))
    read = {a for e in rest for a in e.inputs if isinstance(a, Var)} | {
        a for a in program.outputs if isinstance(a, Var)
    }
    escaping = [v for v in axes if v in read]
    if any(prod(v.type.shape[: axes[v]]) != 1 for v in escaping):
        return None
    products = [s.equation for s in steps if s.equation.primitive is dot_general_p]
    stored = {v for e in products for v in (*e.inputs, *e.outputs) if v in axes and v not in read}
    between = sum(byte_size(v.type) for v in stored)
    enough = sum(byte_size(v.type) for v in escaping) < between
    whole = {a for s in steps for a, axis in zip(s.equation.inputs, s.operands, strict=True) if axis is None}
    shared = sum(byte_size(a.type) for a in whole)
    return _Chain(steps, extent, least_rows, escaping, shared, between) if enough else None


Cut = tuple[int, Sequence[int | None]]  # along which axis the output is cut, and each operand


def _steps(
    equation: Equation, cut: Cut | None, before: Sequence[_Step], definitions: Mapping[Var, Equation]
) -> list[_Step] | None:
    """Return the equation as a step, after copies of broadcasts over rows that it reads; None where it is no step."""
    if cut is None:
        return None
    known = {step.output: step.out for step in before}
    copies: list[_Step] = []
    for atom, axis in zip(equation.inputs, cut[1], strict=True):
        if not isinstance(atom, Var) or axis is None or known.get(atom) == axis:
            continue
        source = definitions.get(atom)
        if atom not in known and source is not None and _is_spread(source, axis):
            copies.append(_Step(source, axis, [None], is_copy=True))
        elif atom in known or prod(atom.type.shape[:axis]) != 1:
            return None
    return [*copies, _Step(equation, *cut)]


def _is_spread(equation: Equation, axis: int) -> bool:
    """Whether all rows are equal."""
    return equation.primitive is broadcast_in_dim_p and axis not in equation.params["broadcast_dimensions"]


def _cut_of(equation: Equation, made: Mapping[Var, int]) -> Cut | None:
    """Return the cut of an equation that treats rows alike, else None. made: the axes of the chain's values."""
    if equation.effects or len(equation.outputs) != 1:
        return None
    if equation.primitive is dot_general_p:
        fitting = (cut for cut in _products(equation) if _agrees(equation, cut, made))
        return next(fitting, None)
    axes = [made[a] for a in equation.inputs if isinstance(a, Var) and a in made]
    axis, params, shape = axes[0], equation.params, equation.outputs[0].type.shape
    if equation.primitive is broadcast_in_dim_p:
        to = params["broadcast_dimensions"][axis]
        return (to, [axis]) if shape[to] == equation.inputs[0].type.shape[axis] else None
    if equation.primitive is transpose_p:
        return params["permutation"].index(axis), [axis]
    if equation.primitive is reshape_p:
        rows = equation.inputs[0].type.shape
        same = (a for a, n in enumerate(shape) if n == rows[axis] and prod(shape[:a]) == prod(rows[:axis]))
        to = next(same, -1)
        return (to, [axis]) if to >= 0 else None
    match equation.primitive.lower:
        case Pointwise() | Compare() | Convert() | Alias():
            operands = [axis if a.type.shape == shape else None for a in equation.inputs]
            fits = all(on is not None or not a.type.shape for a, on in zip(equation.inputs, operands, strict=True))
            return (axis, operands) if fits and axes.count(axis) == len(axes) else None
        case Reduce() | ArgReduce() if len(equation.inputs) == 1 and axis not in params.get("axes", (axis,)):
            return axis - sum(a < axis for a in params["axes"]), [axis]
    return None


def _product_from(equation: Equation, axis: int) -> Cut | None:
    return next((cut for cut in _products(equation) if cut[0] == axis), None)


def _products(equation: Equation) -> Iterator[Cut]:
    """Yield every cut of a product: along a batch axis, the left operand's rows, or the right operand's columns."""
    (left_sums, right_sums), (left_batch, right_batch) = equation.params["dimension_numbers"]
    left, right = (range(len(operand.type.shape)) for operand in equation.inputs)
    rows = [(a, None) for a in left if a not in left_sums and a not in left_batch]
    columns = [(None, a) for a in right if a not in right_sums and a not in right_batch]
    yield from enumerate([*zip(left_batch, right_batch, strict=True), *rows, *columns])


def _agrees(equation: Equation, cut: Cut, made: Mapping[Var, int]) -> bool:
    pairs = zip(equation.inputs, cut[1], strict=True)
    return all(not isinstance(a, Var) or a not in made or made[a] == axis for a, axis in pairs)
