"""Values whose derivatives are cut: `stop_gradient`, and `live` for dead lanes of a batch.

`masked` appears as tangents and cotangents of `live`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.ir.primitive import Alias, Composite, NoRule, Primitive, Zero
from tracer.ir.types import ArrayType, is_differentiable
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import pointwise_batch, zero_jvp
from tracer.primitives.base.shapes import Batched
from tracer.primitives.elementwise.comparison import select
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
    """Return the values of a tree, held constant by grad and jvp.

    x: a tree of arrays of any shapes. Returns the same tree, shapes and dtypes. Raises ArgumentError if a leaf is no
    array.

    >>> tracer.grad(lambda x: x * tracer.lax.stop_gradient(x))(3.0)
    Array(3., f64*)
    """
    return trees.tree_map(_stopped, x)


def _stopped(leaf: Any) -> Array:
    array = as_array(leaf, "stop_gradient")
    return bind(stop_gradient_p, array) if is_differentiable(array.type) else array


# masked and live: both have operands (mask [*lanes], x [*lanes, ...])


def _lanes_batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None]) -> Batched:
    """Add one more axis of lanes at the front."""
    return [bind(ctx.primitive, *(ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True)))], [0]


def _masked(mask: Any, x: Any) -> Any:
    return select(broadcast_in_dim(mask, x.type.shape, tuple(range(len(mask.type.shape)))), x, 0)


def _masked_reference(mask: Any, x: Any) -> Any:
    return np.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x, x.dtype.type(0))


masked_p = Primitive(
    name="masked", infer=lambda mask, x: x, reference=_masked_reference,
    jvp=lambda ctx, xs, dxs: [dxs[1] if isinstance(dxs[1], Zero) else masked(xs[0], dxs[1])],
    transpose=lambda ctx, cts, xs: [None, masked(xs[0], cts[0])],
    batch=_lanes_batch, lower=Composite(_masked),
)  # fmt: skip


def masked(mask: Any, x: Any) -> Any:
    """Return x [*lanes, ...] where the mask [*lanes] holds, else zero. Loops keep the mask, not its broadcast."""
    return bind(masked_p, mask, x)


live_p = Primitive(
    name="live", infer=lambda mask, x: x, reference=lambda mask, x: x.copy(),
    jvp=lambda ctx, xs, dxs: [dxs[1] if isinstance(dxs[1], Zero) else masked(xs[0], dxs[1])],
    transpose=lambda ctx, cts, xs: [None, masked(xs[0], cts[0])],
    batch=_lanes_batch, lower=Composite(lambda mask, x: x),
    laws={
        "jvp": "dead lanes have no derivative on purpose",
        "transpose": "it is the identity forward, and drops the cotangents of dead lanes",
    },
)  # fmt: skip


def live(mask: Any, x: Any) -> Any:
    """Return x [*lanes, ...], with a derivative only in the lanes that the mask [*lanes] names.

    A batch also computes dead lanes, which are done or took another branch. Slopes may be infinite there, and the zero
    cotangent times infinity is NaN. `live` drops it.
    """
    return bind(live_p, mask, x) if isinstance(x.type, ArrayType) and is_differentiable(x.type) else x


def shared_scalars(xs: Sequence[Any], batched: Sequence[bool]) -> tuple[bool, ...]:
    """Return which operands are scalars that all lanes share, and that deserve a copy per lane.

    With copies, dead lanes drop out of the gradients.
    """
    return tuple(
        isinstance(x, Array) and isinstance(x.type, ArrayType) and not on and not x.shape and is_differentiable(x.type)
        for x, on in zip(xs, batched, strict=True)
    )


GRADIENTS = (stop_gradient_p, masked_p, live_p)
