"""Mixed precision: policies, loss scaling, and skipped steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jmp

from tools.as_jax.reporting import case

TREE = {"w": jnp.linspace(0.0, 1.0, 5), "n": jnp.arange(3)}
POLICY = jmp.get_policy("params=float32,compute=float16,output=float32")
case("compute", lambda: jax.tree.map(lambda x: x.astype("float64"), POLICY.cast_to_compute(TREE)))
case("params", lambda: POLICY.cast_to_param(TREE))
for scale in (jmp.StaticLossScale(2.0**15), jmp.DynamicLossScale(jnp.float32(2.0**15), period=2)):
    case(type(scale).__name__, lambda scale=scale: jax.jit(
        lambda s, x: (s.scale(x), s.unscale(x), s.adjust(jnp.asarray(True)).loss_scale))(scale, TREE["w"]))  # fmt: skip
case("finite", lambda: [jmp.all_finite(TREE), jmp.all_finite({"x": jnp.array([1.0, jnp.inf])})])
case("select", lambda: jmp.select_tree(jnp.asarray(False), TREE, jax.tree.map(lambda x: -x, TREE)))
