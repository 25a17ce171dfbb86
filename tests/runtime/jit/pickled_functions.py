"""Functions that tests send to other processes, which import this module."""

from __future__ import annotations

from typing import Any

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, vmap


def loss(x: Any, scale: Any = 1.0) -> Any:
    return tnp.sum(tnp.sin(x * scale) ** 2)


@jit
def decorated(x: Any) -> Any:
    return {"twice": 2 * x, "sum": [tnp.sum(x), None]}


@tracer.custom_jvp
def smooth(x: Any) -> Any:
    return tnp.log1p(tnp.exp(x))


smooth.defjvps(lambda tangent, output, x: tangent * (1 - tnp.exp(-output)))

gradient = vmap(grad(loss))
jitted = jit(grad(loss))


def apply(pair: tuple[Any, Any]) -> Any:
    """Call a function that came by pickle."""
    function, argument = pair
    return function(argument)
