"""Mistakes with optimizers are answered by what helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracer.numpy as tnp
from tests.grids import each
from tracer import jit, nn, optim, random
from tracer.errors import ArgumentError, DTypeError, ShapeError

PARAMS = {"w": tnp.ones(2), "layers": [{"b": tnp.ones(3)}]}
MASKS = "a tree of bools like the params, a function of the params, a function of (path, x), or 'matrices'"


def updated(tx: Any, grads: Any, *params: Any, **extra: Any) -> Any:
    return tx.update(grads, tx.init(PARAMS), *params, **extra)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no parameters": (
        lambda: updated(optim.adamw(0.1), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: pass params: adamw decays weights\n"
        "  help: updates, state = tx.update(grads, state, params)"),
    ),
    "no parameters, in a chain": (
        lambda: updated(optim.chain(optim.clip(1.0), optim.masked(optim.lamb(0.1, weight_decay=0.1), True)), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: pass params: lamb decays weights\n"
        "  help: updates, state = tx.update(grads, state, params)"),
    ),
    "another structure": (
        lambda: updated(optim.adam(0.1), {"w": tnp.ones(2), "layers": [{"bias": tnp.ones(3)}]}),
        ArgumentError,
        ("update at test_errors.py:LINE: the gradients are of another structure\n"
        "  at tree['layers'][0]: {'bias': *} in the gradients, {'b': *} in the parameters or the state\n"
        "  help: grad(loss)(params) has the structure of the params that tx.init(params) was given"),
    ),
    "another model": (
        lambda: updated(optim.adam(0.1), {"w": nn.MLP([2, 3], key=random.key(0)), "layers": [{"b": tnp.ones(3)}]}),
        ArgumentError,
        ("update at test_errors.py:LINE: the gradients are of another structure\n"
        "  at tree['w']: MLP in the gradients, * in the parameters or the state\n"
        "  help: grad(loss)(params) has the structure of the params that tx.init(params) was given"),
    ),
    "another shape": (
        lambda: updated(optim.adam(0.1), {"w": tnp.ones(2), "layers": [{"b": tnp.ones((3, 1), "float32")}]}),
        ShapeError,
        ("update at test_errors.py:LINE: the gradients are of other shapes\n"
        "  at tree['layers'][0]['b']: f32[3,1] in the gradients, f64[3] in the parameters or the state\n"
        "  help: grad(loss)(params) has the shapes of the params that tx.init(params) was given"),
    ),
    "updates of other parameters": (
        lambda: optim.apply_updates(PARAMS, {"w": tnp.ones(2)}),
        ArgumentError,
        ("update at test_errors.py:LINE: the parameters are of another structure\n"
        "  at tree: {'layers': [{'b': *}], 'w': *} in the parameters, {'w': *} in the updates\n"
        "  help: grad(loss)(params) has the structure of the params that tx.init(params) was given"),
    ),
    "parameters for a learning rate": (
        lambda: optim.adam(PARAMS),
        ArgumentError,
        ("adam at test_errors.py:LINE: a learning rate is a number, a scalar or a schedule, a function of the count\n"
        "  got dict\n"
        "  help: parameters go to init: tx = optim.adam(1e-3); state = tx.init(params)"),
    ),
    "text for a learning rate": (
        lambda: optim.sgd("0.1"),
        ArgumentError,
        ("sgd at test_errors.py:LINE: a learning rate is a number, a scalar or a schedule, a function of the count\n"
        "  got str\n"
        "  help: sgd(1e-3), or sgd(optim.cosine_decay_schedule(1e-3, steps))"),
    ),
    "none for a learning rate": (
        lambda: optim.adamw(None),
        ArgumentError,
        (
            "adamw at test_errors.py:LINE: a learning rate is a number, a scalar or a schedule, a function of the "
            "count\n  got None\n"
            "  help: adamw(1e-3), or adamw(optim.cosine_decay_schedule(1e-3, steps))"
        ),
    ),
    "an array for a learning rate": (
        lambda: optim.lion(tnp.ones(2)),
        ArgumentError,
        ("lion at test_errors.py:LINE: a learning rate is a number, a scalar or a schedule, a function of the count\n"
        "  got Array of shape (2,)\n"
        "  help: parameters go to init: tx = optim.adam(1e-3); state = tx.init(params)"),
    ),
    "the state of another chain": (
        lambda: optim.adamw(0.1).update(PARAMS, optim.chain(optim.adam(0.1)).init(PARAMS), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: the state belongs to another chain\n"
        "  expected 3 states, got 1\n  help: state = tx.init(params), then tx.update(grads, state, params)"),
    ),
    "the state of another optimizer": (
        lambda: optim.adam(0.1).update(PARAMS, optim.sgd(0.1).init(PARAMS), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: the state belongs to another transformation\n"
        "  expected ScaleByAdamState, got EmptyState\n"
        "  help: state = tx.init(params), then tx.update(grads, state, params)"),
    ),
    "a state with fields of equal names": (
        lambda: optim.scale_by_rms().update(PARAMS, optim.scale_by_adam().init(PARAMS)),
        ArgumentError,
        ("update at test_errors.py:LINE: the state belongs to another transformation\n"
        "  expected ScaleByRmsState, got ScaleByAdamState\n"
        "  help: state = tx.init(params), then tx.update(grads, state, params)"),
    ),
    "a word for a mask": (
        lambda: updated(optim.adamw(0.1, mask="biases"), PARAMS, PARAMS),
        ArgumentError,
        f"mask at test_errors.py:LINE: expected {MASKS}\n  got 'biases'\n  help: mask='matrices'",
    ),
    "numbers for a mask": (
        lambda: optim.only(optim.adam(0.1), {"w": 1, "layers": 0}).init(PARAMS),
        ArgumentError,
        f"mask at test_errors.py:LINE: expected {MASKS}\n  got int\n  help: mask='matrices'",
    ),
    "another mask": (
        lambda: optim.masked(optim.adam(0.1), {"w": True, "layers": {"b": True}}).init(PARAMS),
        ArgumentError,
        ("mask at test_errors.py:LINE: the mask has another structure than the parameters\n"
        "  at tree['layers']: {'b': *} in the mask, [{'b': *}] in the parameters\n"
        f"  help: expected {MASKS}"),
    ),
    "two masks": (
        lambda: optim.adamw(0.1, mask=True, weight_decay_mask=True),
        ArgumentError,
        "add_decayed_weights at test_errors.py:LINE: mask and weight_decay_mask are one argument\n  help: give one",
    ),
    "labels": (
        lambda: optim.partition({"a": optim.adam(0.1)}, {"w": "a", "layers": "b"}).init(PARAMS),
        ArgumentError,
        ("partition at test_errors.py:LINE: labels without a transformation\n"
        "  got b; there are a\n"
        "  help: one entry of `transforms` for each label; optim.set_to_zero() keeps parameters as they are"),
    ),
    "a constant rate": (
        lambda: optim.rate(optim.sgd(0.1).init(PARAMS)),
        ArgumentError,
        ("rate at test_errors.py:LINE: the state holds no learning rate\n"
        "  got (EmptyState(), EmptyState())\n"
        "  help: states hold rates of schedules: optim.constant_schedule(1e-3), or inject_hyperparams"),
    ),
    "several rates": (
        lambda: optim.rate(optim.muon(optim.constant_schedule(0.1)).init({"w": tnp.ones((2, 2)), "b": tnp.ones(2)})),
        ArgumentError,
        ("rate at test_errors.py:LINE: the state holds several learning rates\n"
        "  got state.inner_states['muon'].inner_state[3].rate, state.inner_states['adam'].inner_state[2].rate\n"
        "  help: take the rate of a part of the state, such as rate(state.inner_states['muon'])"),
    ),
    "no loss for a line search": (
        lambda: updated(optim.lbfgs(), PARAMS, PARAMS, value=1.0),
        ArgumentError,
        ("update at test_errors.py:LINE: scale_by_zoom_linesearch needs grad, value_fn\n"
        "  help: tx.update(grads, state, params, value=value, grad=grads, value_fn=loss)"),
    ),
    "unknown keywords for a line search": (
        lambda: updated(optim.lbfgs(), PARAMS, PARAMS, value=1.0, grad=PARAMS, value_fn=lambda params: 1.0, batch=3),
        ArgumentError,
        ("update at test_errors.py:LINE: scale_by_zoom_linesearch and its value_fn take no batch\n"
        "  value_fn takes params\n  help: keywords of update go to value_fn"),
    ),
    "no loss for a plateau": (
        lambda: updated(optim.reduce_on_plateau(), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: reduce_on_plateau needs the loss\n"
        "  help: updates, state = tx.update(grads, state, params, value=loss)"),
    ),
    "static arguments": (
        lambda: optim.inject_hyperparams(optim.sgd, static_args="rate"),
        ArgumentError,
        ("inject_hyperparams at test_errors.py:LINE: static_args names no arguments of sgd\n"
        "  got rate; there are learning_rate, momentum, nesterov, accumulator_dtype"),
    ),
    "boundaries": (
        lambda: optim.join_schedules([lambda n: 1.0], [10]),
        ArgumentError,
        ("join_schedules at test_errors.py:LINE: one boundary stands between two schedules\n"
        "  got 1 schedules and 1 boundaries"),
    ),
    "complex parameters": (
        lambda: optim.sm3(0.1).init(tnp.ones(2, "complex64")),
        DTypeError,
        "scale_by_sm3 at test_errors.py:LINE takes real parameters\n  got c64[2]",
    ),
    "names of a chain": (
        lambda: optim.named_chain(("a", optim.clip(1.0)), ("a", optim.clip(1.0))),
        ArgumentError,
        ("named_chain at test_errors.py:LINE: names must differ\n"
        "  got ['a', 'a']\n  help: name every transformation once"),
    ),
    "arguments in another order": (
        lambda: optim.adam(0.1).update(optim.adam(0.1).init(PARAMS), PARAMS),
        ArgumentError,
        ("update at test_errors.py:LINE: the state belongs to another chain\n"
        "  expected 2 states, got dict\n  help: state = tx.init(params), then tx.update(grads, state, params)"),
    ),
    "no optimizers in a chain": (
        lambda: optim.chain(1, 2),
        ArgumentError,
        "got int at test_errors.py:LINE, which is no optimizer\n  help: such as optim.adam(1e-3)",
    ),
    "coefficients": (
        lambda: optim.muon(0.1, ns_coeffs="fast"),
        ArgumentError,
        ("muon at test_errors.py:LINE: ns_coeffs are three numbers, or three for each of at most ns_steps=5 steps\n"
        "  got 'fast'\n  help: or one of 'standard', 'dion'"),
    ),
}  # fmt: skip


@each("name", MISTAKES)
def test_a_mistake_is_answered_by_what_helps(name: str) -> None:
    mistake, kind, text = MISTAKES[name]
    with pytest.raises(kind) as caught:
        mistake()
    line = mistake.__code__.co_firstlineno
    lines = range(line, line + 2)
    lines_of_updated = updated.__code__.co_firstlineno + 1
    assert str(caught.value) in {text.replace("LINE", str(n)) for n in (*lines, lines_of_updated)}


def test_a_gradient_of_another_structure_is_found_under_jit() -> None:
    tx = optim.adam(0.1)
    with pytest.raises(ArgumentError, match=r"at tree\['layers'\]: \[\] in the gradients"):
        jit(tx.update)({"w": tnp.ones(2), "layers": []}, tx.init(PARAMS))


@pytest.mark.parametrize(("name", "reason"), [("Adam", r"adam\(rate\)"), ("lr_scheduler", "a schedule is a function")])
def test_names_of_pytorch_say_what_to_use(name: str, reason: str) -> None:
    with pytest.raises(AttributeError, match=reason):
        getattr(optim, name)
