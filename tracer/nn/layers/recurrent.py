"""Recurrent layers: RNN, LSTM, GRU over sequences, and their cells for one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.activations import sigmoid
from tracer.nn.layers.dropout import Dropout
from tracer.nn.layers.linear import check_dtype, check_input, uniform
from tracer.nn.module import Keys, Module, place
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class _Cell(Module):
    """Weights of one recurrent step. Subclasses have the number of gates and the step itself."""

    gates: ClassVar[int]
    arrays: ClassVar[int] = 1  # of which the state consists

    def __init__(self, n: int, hidden: int, *, bias: bool = True, dtype: Any = "float32", key: Array) -> None:
        keys, bound, rows = random.split(key, 4), max(hidden, 1) ** -0.5, self.gates * hidden
        self.weight_ih = uniform(keys[0], (rows, n), bound, dtype)
        self.weight_hh = uniform(keys[1], (rows, hidden), bound, dtype)
        self.bias_ih = uniform(keys[2], (rows,), bound, dtype) if bias else None
        self.bias_hh = uniform(keys[3], (rows,), bound, dtype) if bias else None

    def __call__(self, x: Any, state: Any = None) -> Any:
        projected = self.projected(x)
        batch = projected.shape[:-1]
        given = self.init(batch) if state is None else state
        return self.advance(projected, checked_state(self, given, (*batch, self.weight_hh.shape[1]), projected.dtype))

    def init(self, batch: int | Sequence[int] = ()) -> Any:
        """Return a state of zeros: [*batch, hidden], as the call takes and returns it."""
        zeros = tnp.zeros((*_sizes(batch), self.weight_hh.shape[1]), self.weight_hh.dtype)
        return zeros if self.arrays == 1 else (zeros,) * self.arrays

    def projected(self, x: Any) -> Array:
        """Return the part of the gates that depends on the input alone, [..., n] -> [..., gates * hidden]."""
        n = self.weight_ih.shape[1]
        x = check_input(self, x, n, f"nn.{type(self).__name__}({np.shape(x)[-1] if np.ndim(x) else n}, ...)")
        check_dtype(self, x, "weight_ih")
        y: Array = x @ self.weight_ih.T
        return y if self.bias_ih is None else y + self.bias_ih

    def recurrent(self, h: Array) -> Array:
        """Return the part of the gates that depends on the hidden state, [..., hidden] -> [..., gates * hidden]."""
        y: Array = h @ self.weight_hh.T
        return y if self.bias_hh is None else y + self.bias_hh

    def advance(self, projected: Array, state: Any) -> Any:
        """Return the next state for a projected input."""
        raise NotImplementedError


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh). Elman 1990, Cogn. Sci. 14(2).

    n, hidden: features of the input and of the state; x: [..., n], state: [..., hidden], None for zeros; weight_ih:
    [hidden, n], weight_hh: [hidden, hidden], bias_ih, bias_hh: [hidden], all uniform within hidden**-0.5 as PyTorch's.
    activation: the function in place of tanh.

    >>> cell = nn.RNNCell(3, 4, key=tracer.random.key(0))
    >>> cell(tnp.ones((2, 3), "float32"), cell.init(2)).shape
    (2, 4)
    """

    gates = 1

    def __init__(
        self, n: int, hidden: int, *, bias: bool = True, activation: Callable[[Any], Any] = tnp.tanh,
        dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        super().__init__(n, hidden, bias=bias, dtype=dtype, key=key)
        self.activation = activation

    def advance(self, projected: Array, state: Array) -> Any:
        return self.activation(projected + self.recurrent(state))


class LSTMCell(_Cell):
    """c' = f c + i g and h' = o tanh(c'): an LSTM's step.

    i, f, o = sigmoid(a) and g = tanh(a), each with its own rows of a = W_ih x + b_ih + W_hh h + b_hh.
    Hochreiter & Schmidhuber 1997, Neural Comput. 9(8), with the forget gate of Gers et al. 2000.
    n, hidden: features of the input and of the state; x: [..., n], state: a pair (h, c), each [..., hidden], None for
    zeros; weight_ih: [4 * hidden, n], weight_hh: [4 * hidden, hidden], bias_ih, bias_hh: [4 * hidden], with gates in
    the order i, f, g, o of PyTorch, all uniform within hidden**-0.5.

    >>> cell = nn.LSTMCell(3, 4, key=tracer.random.key(0))
    >>> h, c = cell(tnp.ones((2, 3), "float32"))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates, arrays = 4, 2

    def advance(self, projected: Array, state: tuple[Array, Array]) -> Any:
        h, c = state
        i, f, g, o = tnp.split(projected + self.recurrent(h), 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * tnp.tanh(g)
        return sigmoid(o) * tnp.tanh(c), c


class GRUCell(_Cell):
    """h' = (1 - z) n + z h: a GRU's step.

    r, z = sigmoid(a + b) and n = tanh(a + r b), each with its own rows of a = W_ih x + b_ih and b = W_hh h + b_hh.
    Cho et al. 2014, arXiv:1406.1078, with the reset gate after the product, as in PyTorch and cuDNN.
    n, hidden: features of the input and of the state; x: [..., n], state: [..., hidden], None for zeros; weight_ih:
    [3 * hidden, n], weight_hh: [3 * hidden, hidden], bias_ih, bias_hh: [3 * hidden], with gates in the order r, z, n of
    PyTorch, all uniform within hidden**-0.5.

    >>> cell = nn.GRUCell(3, 4, key=tracer.random.key(0))
    >>> cell(tnp.ones((2, 3), "float32")).shape
    (2, 4)
    """

    gates = 3

    def advance(self, projected: Array, state: Array) -> Any:
        of_r, of_z, of_n = tnp.split(projected, 3, axis=-1)
        r, z, n = tnp.split(self.recurrent(state), 3, axis=-1)
        z, n = sigmoid(of_z + z), tnp.tanh(of_n + sigmoid(of_r + r) * n)
        return n + z * (state - n)


class _Recurrent(Module):
    """Cells of all layers and directions, each scanned over a sequence. Subclasses have the kind of cell."""

    cell: ClassVar[type[_Cell]]

    def __init__(
        self, n: int, hidden: int, layers: int = 1, *, bidirectional: bool = False, dropout: float = 0.0,
        bias: bool = True, dtype: Any = "float32", key: Array, **options: Any,
    ) -> None:  # fmt: skip
        if layers < 1:
            raise ArgumentError(
                message(f"nn.{type(self).__name__}{here()}: there must be 1 layer or more", f"got {layers}")
            )
        keys, directions = Keys(key), 2 if bidirectional else 1
        sizes = [n if layer == 0 else directions * hidden for layer in range(layers) for _ in range(directions)]
        self.bidirectional = bidirectional
        self.cells = [self.cell(m, hidden, bias=bias, dtype=dtype, key=next(keys), **options) for m in sizes]
        self.drop = Dropout(dropout)

    def __call__(
        self, x: Any, state: Any = None, *, lengths: Any = None, reverse: bool = False, key: Array | None = None
    ) -> tuple[Array, Any]:
        x = tnp.asarray(x)
        if x.ndim < 2:
            raise ShapeError(message(f"{place(self)} takes [..., t, n]", f"got {x.type}{here()}", help="x[None]"))
        if reverse and self.bidirectional:
            raise ArgumentError(
                message(f"{place(self)}{here()} reads both ways already", help="leave out reverse=True")
            )
        batch, hidden = x.shape[:-2], self.cells[0].weight_hh.shape[1]
        projected = self.cells[0].projected(x)
        given = self.init(batch) if state is None else state
        given = checked_state(self, given, (len(self.cells), *batch, hidden), projected.dtype)
        valid = None if lengths is None else _valid(self, lengths, x)
        directions, last = 2 if self.bidirectional else 1, []
        keys = None if key is None else Keys(key)
        for first in range(0, len(self.cells), directions):
            if first:
                x = self.drop(x, key=None if keys is None else next(keys))
            found = []
            for n in range(first, first + directions):
                inputs = projected if n == 0 else self.cells[n].projected(x)
                start = trees.tree_map(lambda s, n=n: s[n], given)
                ys, end = _scanned(self.cells[n], inputs, start, valid, reverse or n > first)
                found.append(ys)
                last.append(end)
            x = tnp.concatenate(found, axis=-1) if directions > 1 else found[0]
        return x, trees.tree_map(lambda *ends: tnp.stack(ends), *last)

    def init(self, batch: int | Sequence[int] = ()) -> Any:
        """Return a state of zeros: [layers * directions, *batch, hidden], as the call takes and returns it."""
        return trees.tree_map(lambda s: tnp.zeros((len(self.cells), *s.shape), s.dtype), self.cells[0].init(batch))


def _scanned(cell: _Cell, projected: Array, state: Any, valid: Array | None, reverse: bool) -> tuple[Array, Any]:
    """Return the outputs [..., t, hidden] and the last state of one cell; invalid positions keep the state."""

    def step(state: Any, inputs: tuple[Array, Array | None]) -> tuple[Any, Array]:
        projected, is_valid = inputs
        new = cell.advance(projected, state)
        if is_valid is None:
            return new, new if cell.arrays == 1 else new[0]
        kept = trees.tree_map(lambda new, old: tnp.where(is_valid[..., None], new, old), new, state)
        y = new if cell.arrays == 1 else new[0]
        return kept, tnp.where(is_valid[..., None], y, tnp.zeros_like(y))

    inputs = tnp.moveaxis(projected, -2, 0), None if valid is None else tnp.moveaxis(valid, -1, 0)
    state, ys = lax.scan(step, state, inputs, reverse=reverse)
    return tnp.moveaxis(ys, 0, -2), state


def _valid(layer: Module, lengths: Any, x: Array) -> Array:
    """Return whether each position is within its sequence's length: bool [..., t]."""
    counts = tnp.asarray(lengths)
    if counts.shape != x.shape[:-2] or not dtypes.is_integer(counts.dtype):
        raise ShapeError(
            message(
                f"{place(layer)}: lengths are integers {list(x.shape[:-2])}, one for each sequence",
                f"got {counts.type} for {x.type}{here()}",
            )
        )
    valid: Array = tnp.arange(x.shape[-2]) < counts[..., None]
    return valid


def checked_state(layer: Any, state: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the state in the dtype of the computation. Raises ShapeError, DTypeError for states of other types."""
    given, structure = trees.flatten(state)
    wanted = layer.init()
    name = f"{place(layer)}{here()}"
    if structure != trees.flatten(wanted)[1]:
        form = "an array" if trees.is_leaf(wanted) else "a pair (h, c)"
        raise ArgumentError(message(f"{name}: the state is {form}", f"got {trees.structure_text(structure)}"))
    arrays = [tnp.asarray(part) for part in given]
    for part in arrays:
        if part.shape != shape:
            raise ShapeError(
                message(f"{name}: the state is {list(shape)}", f"got {part.type}", help="layer.init(batch) makes one")
            )
        if not dtypes.is_float(part.dtype) or part.dtype.itemsize > np.dtype(dtype).itemsize:
            raise DTypeError(
                message(f"{name}: the state is {dtype}", f"got {part.type}", help=f'state.astype("{dtype}")')
            )
    return trees.unflatten(structure, [part.astype(dtype) for part in arrays])


def _sizes(batch: int | Sequence[int]) -> tuple[int, ...]:
    return (int(batch),) if isinstance(batch, int | np.integer) else tuple(batch)


class RNN(_Recurrent):
    """Elman network over sequences; see `RNNCell` for the step.

    n, hidden: features of the input and of the state; layers: the number of stacked layers; bidirectional:
    whether a second cell reads each sequence from its end, its results after the first's; dropout: rate between
    layers, in training copies; activation: the function in place of tanh. x: [..., t, n]. state:
    [layers * directions, ..., hidden], None for zeros. lengths: integers [...], the valid positions; results beyond are
    0, and the last state is the last valid position's. reverse: whether to read from the end. key: for dropout,
    in place of the training copy's. Returns results, [..., t, directions * hidden], in the order of the input, and the
    last state. Weights, in `cells`: the first layer's, forwards and backwards, then the next layer's; PyTorch's
    `weight_ih_l1_reverse` is `cells[3].weight_ih`.

    >>> layer = nn.RNN(3, 4, layers=2, key=tracer.random.key(0))
    >>> ys, state = layer(tnp.ones((5, 7, 3), "float32"), lengths=[1, 2, 3, 4, 7])
    >>> ys.shape, state.shape
    ((5, 7, 4), (2, 5, 4))
    """

    cell = RNNCell

    def __init__(
        self, n: int, hidden: int, layers: int = 1, *, bidirectional: bool = False, dropout: float = 0.0,
        bias: bool = True, activation: Callable[[Any], Any] = tnp.tanh, dtype: Any = "float32", key: Array,
    ) -> None:  # fmt: skip
        super().__init__(
            n, hidden, layers, bidirectional=bidirectional, dropout=dropout, bias=bias, dtype=dtype, key=key,
            activation=activation,
        )  # fmt: skip


class LSTM(_Recurrent):
    """Long short-term memory over sequences; see `LSTMCell` for the step, and `RNN` for arguments and results.

    The state is a pair (h, c), each [layers * directions, ..., hidden].

    >>> layer = nn.LSTM(3, 4, bidirectional=True, key=tracer.random.key(0))
    >>> ys, (h, c) = layer(tnp.ones((5, 7, 3), "float32"))
    >>> ys.shape, h.shape, c.shape
    ((5, 7, 8), (2, 5, 4), (2, 5, 4))
    """

    cell = LSTMCell


class GRU(_Recurrent):
    """Gated recurrent units over sequences; see `GRUCell` for the step, and `RNN` for arguments and results.

    >>> layer = nn.GRU(3, 4, key=tracer.random.key(0))
    >>> ys, state = layer(tnp.ones((5, 7, 3), "float32"), layer.init(5), reverse=True)
    >>> ys.shape, state.shape
    ((5, 7, 4), (1, 5, 4))
    """

    cell = GRUCell
