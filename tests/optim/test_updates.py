"""The contract of transformations beside Optax's numbers: memory, dtypes, None, masks, transforms, what differs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, optim, tree, vmap
from tracer.optim.transformation import by_row

SHAPES = [(300, 200), (128,), (64, 64, 3, 3), ()]


def zeros(dtype: str = "float32") -> list[Any]:
    return [tnp.zeros(shape, dtype) for shape in SHAPES]


def step_of(tx: Any) -> Any:
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    return step


OPTIMIZERS = {
    "adamw": optim.adamw(optim.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100), weight_decay=0.1, mask="matrices"),
    "sgd": optim.sgd(optim.linear_schedule(1.0, 0.0, 10), momentum=0.9, nesterov=True),
    "lion": optim.lion(1e-3),
    "radam": optim.radam(1e-3),
    "adabelief": optim.adabelief(optim.exponential_decay(1e-3, 10, 0.5), nesterov=True),
    "rmsprop": optim.rmsprop(1e-3, centered=True, bias_correction=True, momentum=0.5),
    "partition": optim.partition(
        {"a": optim.adam(optim.linear_schedule(1.0, 0.0, 10)), "b": optim.sgd(0.1, momentum=0.5)}, ["a", "b", "a", "b"]
    ),
    "averaged": optim.chain(optim.adamw(1e-3), optim.ema_params(0.99)),
    "MultiSteps": optim.MultiSteps(optim.adamw(1e-3), 4),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_of_donated_trees_is_in_place_with_one_nest_an_array(name: str) -> None:
    tx = OPTIMIZERS[name]
    params = zeros()
    lowered = jit(step_of(tx), donate_argnums=(0, 1)).lower(params, tx.init(params), zeros())
    memory = lowered.memory()
    assert memory.arena == 0
    assert memory.results <= 64  # scalars
    nests = [line for line in str(lowered.loops()).splitlines() if line.startswith("nest")]
    assert len(nests) == len([shape for shape in SHAPES if shape])


@pytest.mark.parametrize("clipped", [False, True])
def test_many_equal_arrays_have_one_nest_each_of_28_bytes_a_parameter(clipped: bool) -> None:
    """Four loads and three stores of float32 an element: parameter, gradient, two moments."""
    tx = OPTIMIZERS["adamw"]
    if clipped:
        tx = optim.chain(optim.clip_by_global_norm(1.0), tx)
    params = [tnp.zeros((120, 90), "float32") for _ in range(9)]
    lowered = jit(step_of(tx), donate_argnums=(0, 1)).lower(params, tx.init(params), params)
    nests = re.findall(r"^nest\w+\(.*?^}", str(lowered.loops()), re.MULTILINE | re.DOTALL)
    updates = [nest for nest in nests if "store" in nest and "sqrt" in nest]
    assert len(updates) == 1
    (update,) = updates
    assert (update.count(" = load "), update.count("store ")) == (4, 3)
    name = update.partition("(")[0]
    assert len(re.findall(rf"\b{name}\(", str(lowered.loops()))) == 1 + 9
    assert lowered.memory().results <= 64


@pytest.mark.parametrize("shape", [(120, 90), (90,)])
def test_updates_that_read_old_moments_of_many_arrays_are_in_place(shape: tuple[int, ...]) -> None:
    """Lion's parameters read the moments of before, so both are written in one nest, or the moments need a copy."""
    params = [tnp.zeros(shape, "float32") for _ in range(12)]
    tx = optim.lion(1e-3)
    lowered = jit(step_of(tx), donate_argnums=(0, 1)).lower(params, tx.init(params), params)
    assert lowered.memory().results <= 64
    assert lowered.memory().arena == 0


def test_a_rule_is_traced_once_for_arrays_of_equal_types() -> None:
    traced = []

    def rule(x: Any, y: Any) -> Any:
        traced.append(x.shape)
        return 2 * x + y, {"sum": x.sum()}

    rows = [(tnp.full(shape, n, "float32"), tnp.ones(shape, "float32")) for shape in ((3,), (2, 2)) for n in range(9)]
    rows.append((tnp.ones(5, "float32"), tnp.ones(5, "float32")))
    expected = [np.asarray(2 * x + y) for x, y in rows]
    found = jit(lambda rows: by_row(rule, rows))(rows)
    assert traced == [(3,), (2, 2), (5,)]
    for (value, sums), wanted, (x, _) in zip(found, expected, rows, strict=True):
        np.testing.assert_array_equal(value, wanted)
        assert float(sums["sum"]) == float(x.sum())
    traced.clear()
    by_row(rule, rows)
    assert len(traced) == len(rows)  # outside `jit` every call runs the function


def test_a_users_function_of_each_update_is_called_for_each() -> None:
    numbers = iter(range(100))
    tx = optim.stateless_with_tree_map(lambda g, p: g * next(numbers))
    params = [tnp.ones(3) for _ in range(10)]
    updates, _ = jit(lambda g: tx.update(g, tx.init(g)))(params)
    assert [float(u[0]) for u in updates] == [float(n) for n in range(10)]


def test_gradients_pass_through_updates_of_many_arrays() -> None:
    tx = optim.adamw(1e-2)
    params = [tnp.linspace(1.0, 2.0, 3) + n for n in range(9)]

    def after(rate: Any, params: Any) -> Any:
        updates, _ = tx.update(tree.map(lambda p: rate * p**2, params), tx.init(params), params)
        return sum(tnp.sum(p**3) for p in optim.apply_updates(params, updates))

    at = jit(grad(after, argnums=(0, 1)))(0.5, params)
    for found, wanted in zip(tree.leaves(at), tree.leaves(grad(after, argnums=(0, 1))(0.5, params)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    singly = [vmap(lambda p: after(0.5, [p]))(p[None])[0] for p in params]
    assert float(after(0.5, params)) == pytest.approx(float(sum(singly)), rel=1e-12)


def test_clipping_by_the_global_norm_costs_one_more_pass() -> None:
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-3))
    lowered = jit(step_of(tx), donate_argnums=(0, 1)).lower(zeros(), tx.init(zeros()), zeros())
    assert lowered.memory().arena < 1024


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_second_moments_of_short_floats_are_float32(dtype: str) -> None:
    tx = optim.adam(1.0, b2=0.999)
    params = tnp.zeros(2, dtype)
    state = tx.init(params)
    assert state[0].nu.dtype == "float32"
    assert state[0].mu.dtype == dtype
    step = jit(step_of(tx))
    for _ in range(400):
        params, state = step(params, state, tnp.asarray([1.0, 3.0], dtype))
    assert params.dtype == dtype
    np.testing.assert_allclose(state[0].nu, (1 - 0.999**400) * np.array([1.0, 9.0]), rtol=1e-4)


def test_states_keep_their_types() -> None:
    """So that a step compiles once, and may be the body of a scan."""
    params = {"w": tnp.ones(2, "bfloat16"), "b": tnp.ones(2), "n": None}
    grads = {"w": tnp.ones(2), "b": tnp.ones(2, "float32"), "n": None}
    for tx in (*OPTIMIZERS.values(), optim.novograd(0.1), optim.lamb(0.1), optim.sm3(0.1), optim.adafactor(0.1)):
        if tx is OPTIMIZERS["partition"]:
            continue
        state = tx.init(params)
        _, after = tx.update(grads, state, params)
        types = [[(x.dtype, x.shape) for x in tree.leaves(each)] for each in (state, after)]
        assert types[0] == types[1]


def test_an_update_that_is_none_changes_nothing() -> None:
    params = {"w": tnp.ones(2), "frozen": tnp.ones(3)}
    grads = {"w": tnp.ones(2), "frozen": None}
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(0.1), optim.ema_params(0.9))
    state = tx.init(params)
    updates, after = tx.update(grads, state, params)
    assert updates["frozen"] is None
    assert after[1][0].mu["frozen"] is state[1][0].mu["frozen"]
    new = optim.apply_updates(params, updates)
    assert new["frozen"] is params["frozen"]
    assert float(new["w"][0]) < 1


def test_leaves_that_are_none_everywhere_have_no_moments() -> None:
    params = {"w": tnp.ones(2), "frozen": None}
    tx = optim.adamw(0.1, mask=lambda path, x: path == "w")
    state = tx.init(params)
    assert state[0].mu["frozen"] is None
    updates, _ = tx.update(params, state, params)
    assert updates["frozen"] is None


@pytest.mark.parametrize(
    "mask",
    [
        "matrices",
        {"w": True, "b": False},
        {"w": tnp.asarray(True), "b": np.bool_(False)},
        lambda params: tree.map(lambda x: x.ndim > 1, params),
        lambda path, x: path == "w",
        lambda path, x: x.shape == (2, 2),
    ],
)
def test_masks_come_as_words_trees_and_functions(mask: Any) -> None:
    params = {"w": tnp.ones((2, 2)), "b": tnp.ones(2)}
    zero = tree.map(tnp.zeros_like, params)
    for keyword in ("mask", "weight_decay_mask"):
        tx = optim.adamw(1.0, weight_decay=0.5, **{keyword: mask})
        updates, _ = jit(tx.update)(zero, tx.init(params), params)
        assert updates["w"].tolist() == [[-0.5, -0.5], [-0.5, -0.5]]
        assert updates["b"].tolist() == [0, 0]


def test_only_is_zero_where_masked_is_the_identity() -> None:
    grads = {"head": {"w": tnp.ones(1)}, "body": [tnp.ones(1), tnp.ones(2)]}
    where = lambda path, x: path in ("head.w", "body.1")  # noqa: E731
    inside, outside = -0.1, {optim.only: 0.0, optim.masked: 1.0}
    for wrap, other in outside.items():
        tx = wrap(optim.sgd(0.1, momentum=0.5), where)
        state = tx.init(grads)
        assert len(tree.leaves(state)) == 2
        updates, _ = tx.update(grads, state)
        assert [float(x[0]) for x in tree.leaves(updates)] == [other, inside, inside]


def test_prefixes_of_trees_are_masks_and_labels() -> None:
    params = {"head": {"w": tnp.ones(1), "b": tnp.ones(1)}, "body": tnp.ones(1)}
    tx = optim.partition({"fast": optim.adam(1.0), "slow": optim.sgd(0.5)}, {"head": "slow", "body": "fast"})
    updates, _ = tx.update(params, tx.init(params), params)
    assert updates["head"]["b"].tolist() == [-0.5]
    assert updates["body"].round(5).tolist() == [-1.0]


def test_steps_batch_over_learning_rates_and_seeds() -> None:
    def train(rate: Any, begin: Any) -> Any:
        tx = optim.adam(rate)

        def step(carry: Any, _: Any) -> Any:
            params, state = carry
            updates, state = tx.update(2 * params, state, params)
            return (optim.apply_updates(params, updates), state), None

        return lax.scan(step, (begin, tx.init(begin)), length=5)[0][0]

    rates, begins = tnp.asarray([0.1, 0.2, 0.3]), tnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = jit(vmap(train))(rates, begins)
    for i in range(3):
        np.testing.assert_allclose(found[i], train(float(rates[i]), begins[i]), rtol=1e-12)


def test_an_update_is_differentiable_in_rates_and_gradients() -> None:
    def trained(rate: Any, slope: Any) -> Any:
        tx = optim.chain(optim.trace(0.5), optim.scale_by_learning_rate(rate))
        params = tnp.asarray([1.0])
        state = tx.init(params)
        for _ in range(2):
            updates, state = tx.update(slope * params, state, params)
            params = optim.apply_updates(params, updates)
        return params[0]

    by_hand = lambda r, s: (1 - r * s) - r * (s * (1 - r * s) + 0.5 * s)  # noqa: E731
    at = (tnp.asarray(0.1), tnp.asarray(2.0))
    for argnum in (0, 1):
        found, expected = grad(trained, argnum)(*at), grad(by_hand, argnum)(*at)
        assert float(found) == pytest.approx(float(expected), rel=1e-12)
        second = grad(grad(trained, argnum), argnum)(*at)
        assert float(second) == pytest.approx(float(grad(grad(by_hand, argnum), argnum)(*at)), rel=1e-12)


def test_empty_trees_and_arrays_are_updated_to_empty_ones() -> None:
    for params in ({}, {"w": tnp.zeros((0, 3), "float32"), "x": tnp.zeros((1, 1), "float32")}):
        tx = optim.chain(
            optim.clip_by_global_norm(1.0), optim.adamw(0.1, mask="matrices"), optim.scale_by_trust_ratio()
        )
        updates, _ = jit(tx.update)(params, tx.init(params), params)
        assert tree.structure(updates) == tree.structure(params)
        assert [x.shape for x in tree.leaves(updates)] == [x.shape for x in tree.leaves(params)]


def test_transformations_of_users_chain_with_ours() -> None:
    halve = optim.GradientTransformation(lambda params: (), lambda g, s, params=None: (tree.map(lambda x: x / 2, g), s))
    tx = optim.chain(halve, optim.sgd(1.0))
    updates, _ = tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)), value=3.0)
    assert updates.tolist() == [-1.0]


def test_the_rate_is_that_of_the_last_update() -> None:
    schedule = optim.linear_schedule(1.0, 0.0, 10)
    tx = optim.chain(optim.clip(1.0), optim.masked(optim.adamw(schedule), True))
    params = tnp.ones(1)
    state = tx.init(params)
    assert float(optim.rate(state)) == 1.0
    for count in range(3):
        _, state = tx.update(params, state, params)
        assert float(optim.rate(state)) == pytest.approx(float(schedule(count)))
    hyper = optim.inject_hyperparams(optim.adam)(learning_rate=0.25)
    assert float(optim.rate(hyper.init(params))) == 0.25


def test_values_of_states_are_found_and_replaced() -> None:
    tx = optim.chain(optim.adam(0.1), optim.adam(optim.constant_schedule(0.2)))
    state = tx.init(tnp.ones(1))
    first = lambda path, _: path[0].idx == 0  # noqa: E731
    assert len(optim.tree_get_all_with_path(state, "count")) == 3
    assert optim.tree_get(state, "nothing", 7) == 7
    after = optim.tree_set(state, first, count=tnp.asarray(5, "int32"))
    assert int(optim.tree_get(after, "count", filtering=first)) == 5
    assert int(after[1][0].count) == 0
    with pytest.raises(KeyError, match="'count' stands 3 times"):
        optim.tree_get(state, "count")
    with pytest.raises(KeyError, match="'nothing' is not in the state"):
        optim.tree_set(state, nothing=1)


def test_hyperparameters_change_in_the_state() -> None:
    tx = optim.inject_hyperparams(optim.sgd)(learning_rate=0.5)
    step = jit(tx.update)
    state = tx.init(tnp.ones(1))
    state.hyperparams["learning_rate"] = tnp.asarray(0.25)
    updates, state = step(tnp.ones(1), state, tnp.ones(1))
    assert updates.tolist() == [-0.25]
    assert float(state.hyperparams["learning_rate"]) == 0.25


def test_gradients_that_are_not_finite_leave_the_state() -> None:
    tx = optim.apply_if_finite(optim.adam(1.0), max_consecutive_errors=1)
    step = jit(tx.update)
    good, bad = tnp.asarray([1.0]), tnp.asarray([tnp.nan])
    _, first = step(good, tx.init(good))
    updates, second = step(bad, first)
    assert updates.tolist() == [0.0]
    assert second.inner_state[0].mu.tolist() == first.inner_state[0].mu.tolist()
    assert (int(second.notfinite_count), bool(second.last_finite)) == (1, False)
    updates, third = step(bad, second)
    assert np.isnan(updates).all()
    assert (int(third.notfinite_count), int(third.total_notfinite)) == (2, 2)


def test_averages_of_parameters_weigh_by_age() -> None:
    values = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    tx = {debias: optim.ema_params(0.8, debias) for debias in (True, False)}
    for debias, each in tx.items():
        state = each.init(tnp.asarray([2.0]))
        for value in values:
            _, state = each.update(tnp.asarray([value - 1.0]), state, tnp.asarray([1.0]))
        weights = 0.8 ** np.arange(5)[::-1]
        expected = (weights @ values) / weights.sum() if debias else 0.2 * weights @ values + 0.8**5 * 2.0
        assert float(state.ema[0]) == pytest.approx(expected, rel=1e-12)


def test_states_share_no_memory_with_parameters() -> None:
    """Donating both is then no donation of one array twice."""
    params = tnp.ones(1000)
    for tx in (optim.ema_params(0.9), optim.schedule_free_sgd(0.1), optim.sam(optim.sgd(0.1), optim.sgd(0.1))):
        step = jit(step_of(tx), donate_argnums=(0, 1))
        mine = params * 1
        step(mine, tx.init(mine), tnp.ones(1000))


def test_lbfgs_finds_a_minimum_in_one_program() -> None:
    def valley(x: Any) -> Any:
        return tnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    tx = optim.lbfgs()
    both = optim.value_and_grad_from_state(valley)

    def step(carry: Any) -> Any:
        params, state = carry
        value, slopes = both(params, state=state)
        updates, state = tx.update(slopes, state, params, value=value, grad=slopes, value_fn=valley)
        return optim.apply_updates(params, updates), state

    def far(carry: Any) -> Any:
        slopes = optim.tree_get(carry[1], "grad")
        count = optim.tree_get(carry[1], "count")
        return (count == 0) | ((optim.global_norm(slopes) > 1e-9) & (count < 200))

    begin = tnp.linspace(-1.0, 1.0, 6)
    found, state = jit(lambda carry: lax.while_loop(far, step, carry))((begin, tx.init(begin)))
    np.testing.assert_allclose(found, np.ones(6), atol=1e-8)
    assert int(state[0].count) < 100


def test_sophia_and_sam_take_what_they_need_from_keywords() -> None:
    loss = lambda x: tnp.sum(x**4)  # noqa: E731
    params = tnp.asarray([1.0, -2.0])
    tx = optim.sophia(0.1, weight_decay=0.0, gamma=1.0)
    _, state = jit(lambda g, s, p: tx.update(g, s, p, obj_fn=loss))(grad(loss)(params), tx.init(params), params)
    np.testing.assert_allclose(state[0].nu, 0.01 * 12 * np.array([1.0, 4.0]), rtol=1e-12)
    tx = optim.sam(optim.sgd(0.1), optim.sgd(0.01), opaque_mode=True)
    updates, _ = tx.update(grad(loss)(params), tx.init(params), params, grad_fn=lambda p, n: grad(loss)(p))
    climbed = np.array([1.0, -2.0]) + 0.01 * 4 * np.array([1.0, -8.0])
    np.testing.assert_allclose(updates, -0.1 * 4 * climbed**3, rtol=1e-12)


def test_public_names_of_optim_are_sorted_and_there() -> None:
    assert sorted(optim.__all__) == dir(optim)
    assert tracer.optim is optim
