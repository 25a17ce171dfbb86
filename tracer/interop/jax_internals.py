"""Stand-ins for the parts of JAX's insides that libraries define their own primitives with.

A `Primitive` runs its `impl`, whose operations are tracer's; under `vmap` it runs its batching rule. Rules for JAX's
interpreters and lowerings are kept and not used: derivatives are derivatives of `impl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from tracer.custom_batching import custom_vmap
from tracer.errors import ArgumentError, TracerError, message
from tracer.flatten_util import ravel_pytree
from tracer.ir.dtypes import is_inexact
from tracer.ir.program import Program
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.shapes import optimization_barrier
from tracer.primitives.elementwise.comparison import select
from tracer.runtime.jit.signature import signature
from tracer.runtime.jit.trace_call import eval_shape as shapes_of
from tracer.runtime.jit.trace_call import shapes, trace_call
from tracer.runtime.system.meshes import PartitionSpec, get_abstract_mesh
from tracer.runtime.system.shardings import NamedSharding
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.state import named_axis, state
from tracer.trace.tracebacks import call_user
from tracer.transforms.context import to_front
from tracer.transforms.functions import name_of

batchers: Final[dict[Primitive, Callable[..., Any]]] = {}
axis_batchers: Final[dict[Primitive, Callable[..., Any]]] = {}
transposes: Final[dict[Primitive, Callable[..., Any]]] = {}


class Primitive:
    """Operation that a library defines: a name, an implementation, and rules."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.multiple_results = False
        self.impl: Callable[..., Any] = self._undefined
        self.abstract_eval: Callable[..., Any] = self._undefined

    def __repr__(self) -> str:
        return self.name

    def _undefined(self, *_: Any, **__: Any) -> Any:
        raise ArgumentError(message(f"primitive {self.name}{here()} has no implementation", help="def_impl(function)"))

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set the implementation."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule of shapes and dtypes, which `impl` gives here."""
        self.abstract_eval = rule
        return rule

    def_effectful_abstract_eval = def_abstract_eval

    def bind(self, *args: Any, **params: Any) -> Any:
        """Return the implementation's results, under `vmap` the batching rule's."""

        def run(*xs: Any) -> Any:
            result = self.impl(*xs, **params)
            return _dependent(result, xs) if self in transposes and not self.multiple_results else result

        if self not in batchers and self not in axis_batchers:
            return run(*args)
        run.__name__ = self.name
        mapped = custom_vmap(run)

        def rule(size: int, batched: Sequence[bool], *xs: Any) -> tuple[Any, Any]:
            axes = [0 if on else None for on in batched]
            if self in batchers:
                ys, found = batchers[self](xs, axes, **params)
            else:
                ys, found = axis_batchers[self](size, None, None, xs, axes, **params)
            if not self.multiple_results:
                return (ys if found is None else to_front(as_array(ys), found, size)), found is not None
            rows = [*zip(ys, found, strict=True)]
            batched = [a is not None for _, a in rows]
            return [y if a is None else to_front(as_array(y), a, size) for y, a in rows], batched

        mapped.def_vmap(rule)
        return mapped(*args)


def _dependent(result: Any, operands: Sequence[Any]) -> Any:
    """Return a result that is one of the operands as one that depends on all operands of its type.

    A rule of transposition gives each operand a cotangent, even if the implementation ignores the operand. Equinox's
    loops search for a fixed point of symbolic zeros. There is none if a carried value does not depend on itself.
    """
    if not isinstance(result, Array) or not any(result is x for x in operands):
        return result
    for x in operands:
        if x is not result and isinstance(x, Array) and x.type == result.type and is_inexact(x.dtype):
            (always,) = optimization_barrier([True])
            result = select(always, result, x)
    return result


class ShapedArray(ShapeDtypeStruct):
    """Shape and dtype of an array."""

    @property
    def sharding(self) -> Any:
        """Placement on a mesh without axes."""
        return NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * self.ndim))

    @property
    def vma(self) -> frozenset[Any]:
        """Axes of a mesh along which the values differ: none."""
        return frozenset()


def get_aval(x: Any) -> ShapedArray:
    """Return the shape and dtype of an array or a number."""
    array = as_array(x)
    return ShapedArray(array.shape, array.dtype, weak_type=array.weak_type)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `tracer.eval_shape` of a function that may also return a `ShapeDtypeStruct` for an array."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        result = call_user(fun, args, kwargs)
        return trees.tree_map(lambda y: zeros(y.type) if isinstance(y, ShapeDtypeStruct) else y, result)

    computed.__name__ = name_of(fun)
    return shapes_of(computed, *args, **kwargs)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one lane of a batch."""
    if axis is None:
        return aval
    return ShapedArray((*aval.shape[:axis], *aval.shape[axis + 1 :]), aval.dtype)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of a batch of lanes."""
    if axis is None:
        return aval
    return ShapedArray((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)


class _Traced(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Array) and value._trace is not None


class Tracer(metaclass=_Traced):
    """Class of traced arrays, for isinstance."""


def find_top_trace(xs: Any) -> Any:
    """Return the innermost trace, which is its own `main`."""
    del xs
    return state.innermost


class ClosedJaxpr(NamedTuple):
    """Program and the arrays that it captures, which are its first inputs."""

    jaxpr: Program
    consts: list[Any]

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs that are not captured."""
        return [ShapedArray(t.shape, t.dtype) for t in self.jaxpr.input_types[len(self.consts) :]]  # type: ignore[union-attr]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the results."""
        return [ShapedArray(t.shape, t.dtype) for t in self.jaxpr.output_types]  # type: ignore[union-attr]

    @property
    def eqns(self) -> tuple[Any, ...]:
        """Equations of the program."""
        return self.jaxpr.equations


def eval_jaxpr(jaxpr: Program, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Return the results of a program for its captured arrays and its arguments."""
    return evaluate(jaxpr, [*map(as_array, consts), *map(as_array, args)])


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a program as a function of its arguments."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


class _Placeholder:
    """Class that no value of tracer's is an instance of."""

    def __init__(self, *args: Any) -> None:
        self.aval = args[0] if args else None


def _kind(name: str) -> type:
    return type(name, (_Placeholder,), {"__doc__": f"Stand-in for the class {name}."})


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _unchanged(x: Any, *_: Any, **__: Any) -> Any:
    return x


def _identity_decorator(f: Any = None, **_: Any) -> Any:
    return f if f is not None else _unchanged


_ZERO, _UNDEFINED = _kind("Zero"), _kind("UndefinedPrimal")
_STOP = Primitive("stop_gradient")
_CLASSES: Final = {name: _kind(name) for name in ("Jaxpr", "JaxprEqn", "Literal", "Var", "AbstractValue", "Atom")}

CORE: Final[dict[str, Any]] = {
    **_CLASSES, "ClosedJaxpr": ClosedJaxpr, "Jaxpr": Program, "Primitive": Primitive, "ShapedArray": ShapedArray,
    "eval_jaxpr": eval_jaxpr, "find_top_trace": find_top_trace, "get_aval": get_aval, "jaxpr_as_fun": jaxpr_as_fun,
    "mapped_aval": mapped_aval, "raise_to_shaped": _unchanged, "unmapped_aval": unmapped_aval,
}  # fmt: skip

INTERNALS: Final[dict[str, dict[str, Any]]] = {
    "core": CORE,
    "custom_derivatives": {"custom_jvp_call_p": Primitive("custom_jvp_call")},
    "extend": {},
    "extend.core": CORE,
    "interpreters": {},
    "interpreters.ad": {
        "Zero": _ZERO, "UndefinedPrimal": _UNDEFINED, "JVPTracer": Tracer, "primitive_jvps": {},
        "primitive_transposes": transposes, "is_undefined_primal": lambda x: isinstance(x, _UNDEFINED),
        "instantiate_zeros": _unchanged, "deflinear2": _nothing,
    },
    "interpreters.batching": {
        "primitive_batchers": batchers, "axis_primitive_batchers": axis_batchers,
        "fancy_primitive_batchers": axis_batchers, "not_mapped": None, "BatchTracer": _kind("BatchTracer"),
    },
    "interpreters.mlir": {"register_lowering": _nothing, "lower_fun": _nothing},
    "interpreters.partial_eval": {},
    "interpreters.xla": {},
    "_src": {},
    "_src.ad_util": {"stop_gradient_p": _STOP},
    "_src.core": CORE,
    "_src.dispatch": {"wait_for_tokens": _nothing},
    "_src.dtypes": {"TypePromotionError": TracerError},
    "_src.flatten_util": {"ravel_pytree": ravel_pytree},
    "_src.literals": {"LiteralArray": _kind("LiteralArray"), "TypedNdArray": _kind("TypedNdArray")},
    "_src.traceback_util": {
        "register_exclusion": _nothing, "include_frame": lambda _: True, "api_boundary": _identity_decorator,
    },
    "lax": {"stop_gradient_p": _STOP},
    "stages": {name: _kind(name) for name in ("Compiled", "Lowered", "Traced", "Wrapped")},
}  # fmt: skip


def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Any = (), axis_env: Any = None, return_shape: bool = False
) -> Callable[..., Any]:
    """Return `make_program` with the captured arrays beside the program, as JAX has them."""
    name = name_of(fun)
    options = signature(fun, name, (static_argnums, ()), ((), ()), "make_jaxpr")

    def made(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as axes:
            for axis, size in axis_env or ():
                axes.enter_context(named_axis(axis, size))
            traced = trace_call(fun, options.sort(args, kwargs), name, "make_jaxpr")
        closed = ClosedJaxpr(traced.program, [*traced.captured])
        return (closed, shapes(traced)) if return_shape else closed

    return made
