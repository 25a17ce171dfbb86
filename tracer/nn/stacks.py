"""`Stack`: equal layers in one scan; and `remat`: layers that are computed again for their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tracer import lax, random
from tracer.errors import ArgumentError, ModuleError, message
from tracer.nn.layout import Role
from tracer.nn.module import Module, modules, place
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.checkpoint import checkpoint
from tracer.transforms.vectorize import vmap


class Stack(Module):
    """Layers of one kind called one after another by one loop, which is traced and compiled once for all.

    make: makes a layer, make(key=key), such as functools.partial(nn.Linear, 8, 8); count: of layers; remat: whether
    layers keep their inputs alone for gradients; unroll: layers in an iteration of the loop. Arrays of all layers are
    stacked in `layers`, with an axis of layers first; `stack[n]` is a layer, `stack[1:3]` a stack, and neither is a
    training copy. In training copies each layer has keys and state of its own. Raises ArgumentError for no layers, and
    where make returns no module.

    >>> stack = nn.Stack(lambda key: nn.Linear(8, 8, key=key), 12, key=tracer.random.key(0))
    >>> stack.layers
    Linear(weight=f32[12,8,8], bias=f32[12,8])
    >>> stack(tnp.ones((2, 8), "float32")).shape
    (2, 8)
    """

    def __init__(
        self, make: Callable[..., Any], count: int, *, key: Array, remat: bool = False, unroll: int = 1
    ) -> None:
        if count < 1:
            raise ArgumentError(message(f"nn.Stack{here()}: there must be 1 layer or more", f"got {count}"))
        self.layers = vmap(lambda key: make(key=key))(random.split(key, count))
        if not isinstance(self.layers, Module):
            raise ArgumentError(
                message(f"nn.Stack{here()}: make returns a module", f"got {type(self.layers).__name__}")
            )
        self.count, self.remat, self.unroll = count, remat, unroll

    def __call__(self, x: Any, *args: Any, each: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
        """Return the last layer's result.

        x: an array or a tree, as the first layer takes it; each layer returns such a value. Further arguments go to
        every layer. each: named arguments with an axis of layers first, of which a layer gets its own; layers then
        return pairs (x, y), and the call returns the last x and the stacked ys.
        """
        key = _next_key(self.layers)
        slices = self.layers, None if key is None else random.split(key, self.count), dict(each or {})

        def body(x: Any, own: Any) -> Any:
            layer, key, named = own
            found, state = _apart(self.layers, layer, key, self.remat)(x, *args, **named, **kwargs)
            if not named:
                return found, (None, state)
            if not isinstance(found, tuple) or len(found) != 2:
                raise ArgumentError(
                    message(f"{place(self)}{here()}: with each=, layers return pairs", f"got {type(found).__name__}")
                )
            return found[0], (found[1], state)

        x, (ys, state) = lax.scan(body, x, slices, unroll=self.unroll)
        _write(self.layers, state)
        return (x, ys) if each else x

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(self.count))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            count = len(range(self.count)[index])
            if not count:
                raise ArgumentError(message(f"{place(self)}{here()}: the slice has no layers", f"got {index}"))
            layers = trees.tree_map(lambda leaf: leaf[index], self.layers)
            return self.replace(layers=layers, count=count)
        return trees.tree_map(lambda leaf: leaf[range(self.count)[index]], self.layers)


def remat(module: Any, policy: Callable[..., bool] | None = None) -> Remat:
    """Return a module that keeps its inputs alone for gradients and computes other values again.

    module: a module with arrays of any shapes and dtypes; in training copies its keys and state are not touched.
    policy: which values are kept nevertheless, one of `tracer.checkpoint_policies`. See `tracer.checkpoint`.

    >>> layer = nn.remat(nn.Linear(3, 2, key=tracer.random.key(0)))
    >>> layer(tnp.ones((5, 3), "float32")).shape
    (5, 2)
    """
    return Remat(module, policy)


class Remat(Module):
    """Module whose values are computed again for gradients: see `remat`."""

    def __init__(self, module: Module, policy: Callable[..., bool] | None = None) -> None:
        if not isinstance(module, Module):
            raise ModuleError(
                message(
                    f"nn.remat{here()} takes a module", f"got {type(module).__name__}",
                    help="tracer.checkpoint takes functions",
                )
            )  # fmt: skip
        self.module = module
        self.policy = policy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found, state = _apart(self.module, self.module, _next_key(self.module), True, self.policy)(*args, **kwargs)
        _write(self.module, state)
        return found


def _next_key(module: Module) -> Array | None:
    """Return a training copy's next key; None outside of one, and in one without a key."""
    mode = module._mode
    return None if mode is None or not mode.has_key else mode.key(module)


def _apart(
    outer: Module, layer: Any, key: Array | None, again: bool, policy: Callable[..., bool] | None = None
) -> Callable[..., Any]:
    """Return the call of a layer in a trace of its own, which returns the state that it wrote, too.

    outer: whose training copy decides about one for the layer.
    """
    training = outer._mode is not None

    def call(*args: Any, **kwargs: Any) -> Any:
        own = layer.training(key) if training else layer
        found = own(*args, **kwargs)
        return found, [getattr(module, name) for module, name in _states(own)] if training else []

    if not again:
        return call
    # Arguments are values that the function reads from outside: flags among them stay Python's
    return lambda *args, **kwargs: checkpoint(lambda: call(*args, **kwargs), policy=policy)()


def _states(module: Module) -> Iterator[tuple[Module, str]]:
    """Yield the arrays that layers of a module write, each by its module and name."""
    for _, part in modules(module):
        for name, role in zip(part.layout.names, part.layout.roles, strict=True):
            if role is Role.STATE:
                yield part, name


def _write(module: Module, state: list[Array]) -> None:
    """Write the state that `_states` found in copies of the module's layers."""
    if state:
        for (part, name), value in zip(_states(module), state, strict=True):
            part.update(**{name: value})
