"""`stop_gradient`: the value, with a derivative of zero."""

from __future__ import annotations

from typing import Any

from tracer.ir.primitive import Alias, NoRule, Primitive
from tracer.ir.types import is_differentiable
from tracer.primitives.rules import pointwise_batch, zero_jvp
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.trace import bind

stop_gradient_p = Primitive(
    name="stop_gradient", infer=lambda x: x, reference=lambda x: x.copy(),
    jvp=zero_jvp, transpose=NoRule("stop_gradient has no tangents to transpose"),
    batch=pointwise_batch, lower=Alias(),
    laws={"jvp": "its derivative is zero on purpose"},
)  # fmt: skip


def stop_gradient(x: Any) -> Any:
    """The values of a tree, held constant by grad and jvp.

    >>> tracer.grad(lambda x: x * tracer.lax.stop_gradient(x))(3.0)
    Array(3., f64)
    """
    return trees.tree_map(_stopped, x)


def _stopped(leaf: Any) -> Array:
    array = as_array(leaf, "stop_gradient")
    return bind(stop_gradient_p, array) if is_differentiable(array.type) else array


GRADIENTS = (stop_gradient_p,)
