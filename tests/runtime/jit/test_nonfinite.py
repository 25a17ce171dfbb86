"""`first_nan`: the operation where a NaN of a result comes from, through calls, branches, loops and gradients."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import debug, grad, jit, lax, nn, optim, random


class Root(nn.Module):
    def __init__(self) -> None:
        self.weight = tnp.ones(3, "float32")

    def __call__(self, x: Any) -> Any:
        return tnp.sqrt(x) * self.weight


class Net(nn.Module):
    def __init__(self) -> None:
        self.scale = Root()

    def __call__(self, x: Any) -> Any:
        return self.scale(x).sum()


def through_loops(x: Any) -> Any:
    def body(c: Any, y: Any) -> Any:
        return jit(lambda c: tnp.log(c - y))(c), c

    return lax.scan(body, x, tnp.arange(4.0))


def through_branches(x: Any) -> Any:
    def body(c: Any) -> Any:
        n, x = c
        return n + 1, lax.cond(n == 4, lambda x: (x - 3) / (x - 3), lambda x: x, x)

    return lax.while_loop(lambda c: c[0] < 9, body, (0, x))


def through_remat(x: Any) -> Any:
    return grad(lambda x: tracer.checkpoint(lambda x: tnp.log(x) ** 2)(x).sum())(x)


def dropped(x: Any) -> Any:
    return tnp.where(x > 0, tnp.sqrt(x), 0.0).sum()


def of_double(x: Any) -> Any:
    kept = tnp.where(x > 0, tnp.sqrt(x), 0.0)
    return kept.sum() + tnp.arccos(x).sum()


CASES: dict[str, tuple[Any, tuple[Any, ...], str, Any]] = {
    "scan, a call": (through_loops, (3.0,), "log", through_loops),
    "while, cond": (through_branches, (3.0,), "div", through_branches),
    "gradient of a where": (grad(dropped), (np.asarray([-1.0, 2.0]),), "sqrt", dropped),
    "checkpoint": (through_remat, (np.asarray([-1.0, 2.0], "float32"),), "log", through_remat),
    "a NaN that is dropped is passed over": (of_double, (np.asarray([-1.5, 0.5]),), "acos", of_double),
    "vmap": (tracer.vmap(tnp.log), (np.asarray([-1.0, 2.0]),), "log", None),
    "bfloat16": (tnp.sqrt, (tnp.asarray([-1.0]).astype("bfloat16"),), "sqrt", None),
}  # fmt: skip


@each("name", CASES)
def test_the_operation_is_named_with_its_line(name: str) -> None:
    f, args, operation, at = CASES[name]
    found = debug.first_nan(f, *args)
    assert found is not None
    assert (found.operation, found.kind) == (operation, "NaN")
    assert found.source is not None
    assert found.source.file == __file__
    if at is not None:
        lines, start = inspect.getsourcelines(at)
        assert start < found.source.line < start + len(lines)


def test_layers_operands_and_arguments_are_named() -> None:
    found = debug.first_nan(jit(lambda m, x: m(x), donate_argnums=1), Net(), tnp.asarray([[-0.3], [0]], "float32"))
    assert str(found).splitlines() == [
        f"sqrt at test_nonfinite.py:{inspect.getsourcelines(Root.__call__)[1] + 1} in scale: 1 of 2 elements are NaN",
        "  operand f32[2,1] in [-0.3, 0]",
    ]
    found = debug.first_nan(lambda x, y: (x, y), {"a": np.asarray([np.nan, 1])}, 2.0)
    assert str(found) == "argument 0, x['a']: 1 of 2 elements are NaN"


def test_infinities_are_found_where_no_result_is_nan() -> None:
    found = debug.first_nan(lambda x: tnp.log(x).sum(), tnp.asarray([0.0, 1.0]))
    assert str(found).endswith("1 of 2 elements are infinite\n  operand f64[2] in [0, 1]")
    assert debug.first_nan(dropped, np.asarray([-1.0, 2.0])) is None
    assert debug.first_nan(lambda x: x, np.asarray([1, 2])) is None
    assert debug.first_nan(lambda x: x, np.zeros(0)) is None


def test_steps_of_training_are_searched_whole() -> None:
    tx, model = optim.adamw(1e-3), nn.Sequential(nn.Linear(3, 4, key=random.key(0)), nn.Dropout(0.5), tnp.log)

    @jit(donate_argnums=0)
    def step(state: Any, x: Any, key: Any) -> Any:
        def loss(model: Any) -> Any:
            return model.training(key)(x).mean()

        value, slopes = tracer.value_and_grad(loss)(state["model"])
        updates, opt = tx.update(slopes, state["opt"], state["model"])
        return {"model": optim.apply_updates(state["model"], updates), "opt": opt}, value

    state = {"model": model, "opt": tx.init(model)}
    found = optim.first_nan(step, state, np.full((2, 3), -1.0, "float32"), random.key(1))
    assert found is not None
    assert found.operation == "log"
    assert tracer.tree.leaves(state)[0].sum() != 0  # nothing was donated
