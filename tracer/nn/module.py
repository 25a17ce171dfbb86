"""Models as plain classes: `Module`, its training copies, and the keys and state of their layers."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Self

import numpy as np
import optree

from tracer import random, torch_names
from tracer.errors import ArgumentError, ModuleError, message
from tracer.nn.layout import Layout, Role, check_array, interned, is_array, shown, with_functions
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here, warn
from tracer.trace.state import state as trace_state
from tracer.trace.tracebacks import boundary, call_user, set_method_boundaries, tidy

_OWN = frozenset(("_layout", "_mode", "_opening", "_uncast"))  # attributes of Module itself


class State:
    """Mark an array attribute as state, which layers write and gradients are not taken by.

    After the module is built, the attribute is the array itself.

    >>> class Counter(nn.Module):
    ...     def __init__(self):
    ...         self.calls = nn.State(tnp.zeros(()))
    >>> Counter().calls
    Array(0., f64)
    """

    def __init__(self, array: Any) -> None:
        self.array = array


class Keys:
    """Keys that are all different, made from one: `next(keys)`.

    >>> keys = nn.Keys(tracer.random.key(0))
    >>> bool(tnp.all(tracer.random.key_data(next(keys)) == tracer.random.key_data(next(keys))))
    False
    """

    def __init__(self, key: Array) -> None:
        self._key, self._count = key, 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Array:
        self._count += 1
        return random.fold_in(self._key, self._count)


class Mode:
    """State of a training copy: it hands out keys in the order in which the program asks, within one trace."""

    def __init__(self, root: Module, key: Array | None) -> None:
        self.root = root
        self._keys = None if key is None else Keys(key)
        self._level = trace_state.innermost

    @property
    def has_key(self) -> bool:
        """Whether there are keys to hand out."""
        return self._keys is not None

    def key(self, layer: Module) -> Array:
        """Return the next key. Raises ModuleError without a key, and within a trace that the copy was not made in."""
        if self._keys is None:
            name = f"{type(layer).__name__}{path_text(self.root, layer)}"
            raise ModuleError(
                message(f"{name} draws{here()} in a training copy without a key", help="model.training(key)")
            )
        self.check_level(layer, "draws", "pass key= to the layer")
        return next(self._keys)

    def check_level(self, layer: Module, does: str, remedy: str) -> None:
        """Raise ModuleError within a trace that the copy was not made in: a value written there would leak."""
        if trace_state.innermost is not self._level:
            raise ModuleError(
                message(
                    f"{type(layer).__name__}{path_text(self.root, layer)} {does}{here()} within a loop, branch or "
                    "transform, in a training copy made outside of it",
                    help=f"make the copy inside, return the module from it, or {remedy}; nn.Stack and nn.remat do so",
                )
            )


def with_mode(tree: Any, original: Any) -> Any:
    """Return a cast tree, whose modules are made training copies if the original's modules are.

    They remember the original, whose arrays `inference` returns.
    """
    modes: dict[int, Mode] = {}
    for (_, module), (_, old) in zip(modules(tree), modules(original), strict=True):
        if (mode := old._mode) is not None:
            if id(mode) not in modes:
                modes[id(mode)] = copy.copy(mode)
                modes[id(mode)].root = module  # shares the keys
            module.__dict__.update(_mode=modes[id(mode)], _uncast=old)
    return tree


class _Construction(threading.local):
    """Modules that are being built on this thread, and the layers that drew parameters from a key."""

    depth = 0

    def __init__(self) -> None:
        self.drawn: list[tuple[Array, Module]] = []


_construction = _Construction()


class _Calls(threading.local):
    """The outermost module whose call is running on this thread, and the names of its layers in traced programs.

    recorder: who is told of every call, with `enter(module)` and `leave(arguments, result)`.
    """

    root: Module | None = None
    scopes: dict[int, str] | None = None
    recorder: Any = None


_calls = _Calls()


@contextmanager
def recording(recorder: Any) -> Iterator[None]:
    """Tell the recorder of every call of a module on this thread."""
    before, _calls.recorder = _calls.recorder, recorder
    try:
        yield
    finally:
        _calls.recorder = before


class Module:
    """Base of models and layers: a class whose instances are trees of arrays.

    Attributes that `__init__` sets are sorted by value. Arrays, modules, and lists, tuples and dicts of these are
    children, which transforms see. All other values are settings, which belong to the structure. A module is closed
    once it is built: `replace` returns a changed copy. Float and complex arrays are trained. `grad` and `optim` skip
    integers, keys, `nn.State`, and arrays that `nn.at(model, where).freeze()` froze.

    >>> class Affine(nn.Module):
    ...     def __init__(self, n, m, *, key):
    ...         self.weight = tracer.random.normal(key, (m, n))
    ...         self.bias = tnp.zeros(m)
    ...     def __call__(self, x):
    ...         return x @ self.weight.T + self.bias
    >>> model = Affine(3, 2, key=tracer.random.key(0))
    >>> model
    Affine(weight=f64[2,3], bias=f64[2])
    >>> tracer.grad(lambda model: model(tnp.ones(3)).sum())(model).bias
    Array([1., 1.], f64)
    """

    _layout: Layout | None = None
    _mode: Mode | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = boundary(_closing(cls.__init__))  # type: ignore[method-assign]
        if "__call__" in cls.__dict__:
            cls.__call__ = _scoped(cls.__call__)  # type: ignore[method-assign]
        trees.register(
            cls,
            _take_apart,
            functools.partial(put_together, cls),
            optree.GetAttrEntry,
            _flatten,
            lambda x: x.layout.trained,
            lambda x: ({"_layout": x.layout}, x.layout.names),
        )

    @property
    def layout(self) -> Layout:
        """The module's layout; it is closed by this."""
        return self._layout or _close(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._layout is not None:
            raise ModuleError(
                message(
                    f"{type(self).__name__}.{name} is assigned{here()}, and the module is closed",
                    help=f"model.replace({name}=...) returns a changed copy"
                    + (f"; self.update({name}=...) writes state" if self._mode is not None else ""),
                )
            )
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError; for PyTorch's names of methods it tells tracer's way."""
        why = torch_names.MODELS.get(name)
        if why is None or hasattr(type(self), name):
            return object.__getattribute__(self, name)  # raises Python's own error, or a property's error
        text = f"{type(self).__name__!r} object has no attribute {name!r} ({why})"
        raise AttributeError(text, name=name, obj=self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: a model defines `__call__` itself."""
        help = "rename forward to __call__" if hasattr(type(self), "forward") else "def __call__(self, x): ..."
        raise TypeError(message(f"{type(self).__name__}{here()} has no __call__", help=help))

    def __delattr__(self, name: str) -> None:
        if self._layout is not None:
            raise ModuleError(message(f"{type(self).__name__}.{name} is deleted{here()}, and the module is closed"))
        object.__delattr__(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        layout = self.layout
        return put_together, (type(self), layout, layout.children(self))

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    def replace(self, **attributes: Any) -> Self:
        """Return a copy with other attributes. Arrays keep the role of the array that they replace.

        Of a training copy it is one, too. Raises ModuleError for names that the module lacks.
        """
        layout = self.layout
        unknown = [name for name in attributes if name not in layout.names and name not in layout.settings]
        if unknown:
            raise ModuleError(
                message(
                    f"replace{here()}: {type(self).__name__} has no attribute {unknown[0]}",
                    help=f"there are {', '.join((*layout.names, *layout.settings))}",
                )
            )
        changed: Self = put_together(type(self), layout, layout.children(self))
        own = changed.__dict__
        del own["_layout"]
        kept = {name: role for name, role in zip(layout.names, layout.roles, strict=True) if role is not Role.TREE}
        own.update(attributes)
        _close(changed, kept)
        if self._mode is not None:
            own["_mode"] = self._mode
        return changed

    def training(self, key: Array | None = None) -> Self:
        """Return a private copy in which dropout draws and layers write their state, for one step.

        key: for layers that draw; without it the copy only writes state. The copy is used in the trace in which it was
        made. `inference` turns it into a model again.
        """
        opened: Self = trees.tree_map(lambda leaf: leaf, self)
        mode = Mode(opened, key)
        for _, module in modules(opened):
            module.__dict__["_mode"] = mode
        return opened

    def inference(self) -> Self:
        """Return the model with the state that was written, closed: it draws and writes nothing.

        Of a cast training copy it is the model before the cast, in its dtypes.
        """
        uncast: Self | None = self.__dict__.get("_uncast")
        if uncast is None:
            return trees.tree_map(lambda leaf: leaf, self)  # type: ignore[no-any-return]
        closed = uncast.inference()
        for (_, old), (_, new) in zip(modules(closed), modules(self), strict=True):
            for name, role in zip(old.layout.names, old.layout.roles, strict=True):
                if role is Role.STATE:
                    old.__dict__[name] = new.__dict__[name].astype(old.__dict__[name].dtype)
        return closed

    @property
    def is_training(self) -> bool:
        """Whether this is a training copy, with something to train or to write."""
        return self._mode is not None and not self.is_frozen

    @property
    def is_frozen(self) -> bool:
        """Whether the module's own arrays are frozen."""
        roles = set(self.layout.roles)
        frozen = {Role.FROZEN, Role.FROZEN_STATE}
        return bool(roles & frozen) and not roles & {Role.PARAM, Role.STATE}

    def draw_key(self, key: Array | None = None) -> Array:
        """Return `key`, or the training copy's next key. For layers that draw."""
        if key is not None:
            return key
        if self._mode is None:
            raise ModuleError(
                message(f"{type(self).__name__} draws{here()} outside a training copy", help="model.training(key)")
            )
        return self._mode.key(self)

    def update(self, **values: Any) -> None:
        """Write state in a training copy, for layers.

        Raises ModuleError outside a training copy, and for other attributes than state and other types.
        """
        for name, value in values.items():
            if self._mode is None:
                self._refuse_update(name, " outside a training copy", help="model.training(key) makes one")
            self._mode.check_level(self, f"writes {name}", "pass the state along")
            if self.layout.role(name) is not Role.STATE:
                self._refuse_update(name, ", and it is no state", help=f"self.{name} = nn.State(array) in __init__")
            old = getattr(self, name)
            if (value.shape, value.dtype) != (old.shape, old.dtype):
                self._refuse_update(
                    name, " with another type", f"expected {_type(old)}, got {_type(value)}", help="keep its type"
                )
            self.__dict__[name] = value

    def _refuse_update(self, name: str, why: str, *lines: str, help: str) -> NoReturn:
        raise ModuleError(message(f"{name} of {place(self)} is written{here()}{why}", *lines, help=help))


def _type(array: Any) -> str:
    return "None" if array is None else str(getattr(array, "type", None) or f"{array.dtype}{list(array.shape)}")


set_method_boundaries(Module, ("__setattr__", "__delattr__"))


def _closing(init: Callable[..., None]) -> Callable[..., None]:
    """Return the `__init__` that closes the module when the outermost `__init__` of it ends."""

    @functools.wraps(init)
    def closed(self: Module, *args: Any, **kwargs: Any) -> None:
        own = self.__dict__
        if "_opening" in own or self._layout is not None:
            init(self, *args, **kwargs)
            return
        own["_opening"] = True
        _construction.depth += 1
        try:
            call_user(init, (self, *args), kwargs)
        finally:
            _construction.depth -= 1
            del own["_opening"]
            drawn, outermost = _construction.drawn, _construction.depth == 0
            if outermost:
                _construction.drawn = []
        layout = _close(self)
        if isinstance(key := kwargs.get("key"), Array) and Role.PARAM in layout.roles:
            drawn.append((key, self))
        if outermost:
            _check_aliases(self)
            _warn_of_shared_keys(self, drawn)

    return closed


def _close(module: Module, kept: Mapping[str, Role] | None = None) -> Layout:
    """Sort a module's attributes into children and settings. kept: roles of arrays from before."""
    own = module.__dict__
    names, roles, settings = [], [], {}
    for name, value in own.items():
        if name in _OWN:
            continue
        role: Role | None = None
        if isinstance(value, State):
            own[name], role = _state(name, value.array), Role.STATE
        elif is_array(value):
            role = (kept or {}).get(name, Role.PARAM)
        elif isinstance(value, np.ndarray | np.generic):
            check_array(f"{type(module).__name__}.{name}", value)
            role = Role.PARAM
        elif _holds_children(value):
            role = Role.TREE
            if not isinstance(value, Module):
                own[name] = with_functions(f"{type(module).__name__}.{name}", value)
        if role is None:
            settings[name] = value
        else:
            names.append(name)
            roles.append(role)
    own["_layout"] = layout = interned(tuple(names), tuple(roles), settings)
    return layout


def _state(name: str, value: Any) -> Any:
    if is_array(value):
        return value
    from_numpy = isinstance(value, np.ndarray | np.generic | float | int)
    if not from_numpy:
        raise ArgumentError(message(f"nn.State{here()} takes an array", f"got {type(value).__name__} for {name}"))
    return np.asarray(value)


def _holds_children(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_children, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_children, value))
    return is_array(value) or isinstance(value, Module | np.ndarray) or _is_node(value)


def _is_node(value: Any) -> bool:
    return trees.flattening(type(value)) is not None and bool(trees.flatten(value)[0])


def _take_apart(module: Module) -> tuple[Any, Layout, tuple[str, ...]]:
    layout = module._layout or _close(module)
    return layout.children(module), layout, layout.names


def _flatten(module: Module) -> tuple[Any, Layout]:
    layout = module._layout or _close(module)
    return layout.children(module), layout


def put_together(cls: type[Module], layout: Layout, children: Sequence[Any]) -> Any:
    """Return a closed module of a class, without running its `__init__`."""
    module = object.__new__(cls)
    own = module.__dict__
    own |= layout.constants
    own |= zip(layout.names, children)  # noqa: B905  # a check of lengths takes a fifth of the time
    return module


def modules(tree: Any, path: str = "") -> Iterator[tuple[str, Module]]:
    """Return the modules of a tree with their paths, each before its children: ("", model), (".head", ...)."""
    return ((at, part) for at, part in _parts(tree, path) if isinstance(part, Module))


def parts(tree: Any, path: str = "", role: Role = Role.PARAM) -> Iterator[tuple[str, Any, Role]]:
    """Yield the leaves of a tree in its order with their paths, "blocks[0].weight", and roles."""
    if isinstance(tree, Module):
        start = f"{path}." if path else ""
        for name, own in zip(tree.layout.names, tree.layout.roles, strict=True):
            yield from parts(tree.__dict__[name], f"{start}{name}", Role.PARAM if own is Role.TREE else own)
    elif tree is None:
        return
    elif trees.is_leaf(tree):
        yield path, tree, role
    else:
        for child, entry in trees.children_with_entries(tree):
            yield from parts(child, f"{path}{entry}", role)


def path_text(root: Module, layer: Module) -> str:
    """Return " .blocks[2].norm", the path of a layer below a model; nothing for the model itself."""
    found = next((path for path, module in modules(root) if module is layer), "")
    return f" {found}" if found else ""


def place(layer: Module) -> str:
    """Return the layer's class and its path below the model whose call is running: "Linear .head"."""
    return f"{type(layer).__name__}{path_text(_calls.root or layer, layer)}"


def _check_aliases(module: Module) -> None:
    """Raise ModuleError if an array or a module is found under two paths: as a tree they are two."""
    seen: dict[int, str] = {}
    for path, value in _parts(module, ""):
        first = seen.setdefault(id(value), path)
        if first != path:
            raise ModuleError(
                message(
                    f"{type(module).__name__}{here()}: {path} is {first}, and as a tree these are two",
                    "they would differ after the first update",
                    help="keep one attribute and use it twice, as self.embed.attend(x) does",
                )
            )


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the modules and arrays of a tree with their paths, each module before its parts."""
    if isinstance(value, Module):
        yield path, value
        for name in value.layout.names:
            yield from _parts(value.__dict__[name], f"{path}.{name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _parts(item, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for n, item in enumerate(value):
            yield from _parts(item, f"{path}[{n}]")
    elif isinstance(value, Array):
        yield path, value


def _warn_of_shared_keys(module: Module, drawn: Sequence[tuple[Array, Module]]) -> None:
    paths = {id(part): f"{type(part).__name__}{path and f' {path}'}" for path, part in modules(module)}
    first: dict[int, Module] = {}
    for key, layer in drawn:
        other = first.setdefault(id(key), layer)
        if other is not layer and id(layer) in paths and id(other) in paths:
            warn(
                message(
                    f"{paths[id(other)]} and {paths[id(layer)]} draw from one key{here()}",
                    help="keys = nn.Keys(key), and next(keys) for each layer",
                )
            )
            return


def _scoped(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the `__call__` that names the module's operations in traced programs by its path."""

    @functools.wraps(call)
    def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
        outermost, scope = _calls.root is None, trace_state.scope
        if outermost:
            _calls.root = self
        if trace_state.staging is not None:
            if _calls.scopes is None:
                start = f"{scope}/" if scope else ""
                _calls.scopes = {id(part): f"{start}{path[1:]}" for path, part in modules(_calls.root) if path}
            trace_state.scope = _calls.scopes.get(id(self), scope)
        recorder = _calls.recorder
        try:
            if recorder is None:
                return call(self, *args, **kwargs)
            recorder.enter(self)
            result = call(self, *args, **kwargs)
            recorder.leave(args, result)
            return result
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise
        finally:
            trace_state.scope = scope
            if outermost:
                _calls.root = _calls.scopes = None

    return scoped


def _lines(value: Any, name: str = "", indent: str = "") -> list[str]:
    """Return the lines of a module's text: one for a layer, with types and settings."""
    head = f"{indent}{name}: " if name else indent
    if isinstance(value, Module):
        layout = value.layout
        own = value.__dict__
        flat = [f"{n}={_type(own[n])}" for n in layout.names if own[n] is None or hasattr(own[n], "dtype")]
        flat += [f"{n}={shown(v)}" for n, v in layout.settings.items()]
        nested = [n for n in layout.names if not hasattr(own[n], "dtype") and own[n] is not None]
        if not nested:
            return [f"{head}{type(value).__name__}({', '.join(flat)})"]
        lines = [f"{head}{type(value).__name__}(" + ", ".join(flat)]
        for n in nested:
            lines += _lines(own[n], n, indent + "  ")
        return [*lines, f"{indent})"]
    if isinstance(value, list | tuple | dict) and _holds_children(value):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [line for key, item in items for line in _lines(item, f"{name}[{key!r}]", indent)]
    return [f"{head}{_type(value) if hasattr(value, 'dtype') else shown(value)}"]
