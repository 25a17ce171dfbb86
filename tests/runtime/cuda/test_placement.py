"""Where arrays are made, and where programs run: on the default device, or where their arrays lie."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, optim, random, vmap
from tracer.errors import ArgumentError, DeviceError
from tracer.runtime.cuda.programs import DeviceProgram
from tracer.runtime.cuda.simulator.driver import SimulatedDriver

SIM = "cuda-sim:0"
N = np.ones((3, 4))

CREATED: dict[str, Callable[..., Any]] = {
    "zeros": lambda **to: tnp.zeros((2, 3), **to),
    "ones": lambda **to: tnp.ones(2, "float32", **to),
    "empty": lambda **to: tnp.empty(2, **to),
    "full": lambda **to: tnp.full((2,), 3.0, **to),
    "arange": lambda **to: tnp.arange(1, 6, 2, **to),
    "linspace": lambda **to: tnp.linspace(0.0, 1.0, 4, **to),
    "eye": lambda **to: tnp.eye(2, 3, 1, **to),
    "asarray of NumPy's": lambda **to: tnp.asarray(N, **to),
    "asarray of a list": lambda **to: tnp.asarray([1.0, 2.0], **to),
    "asarray with a dtype": lambda **to: tnp.asarray([1, 2], "float32", **to),
    "array": lambda **to: tnp.array(2.5, ndmin=1, **to),
    "zeros_like": lambda **to: tnp.zeros_like(N, **to),
    "ones_like": lambda **to: tnp.ones_like(N, **to),
    "empty_like": lambda **to: tnp.empty_like(N, **to),
    "full_like": lambda **to: tnp.full_like(N, 2, **to),
    "fftfreq": lambda **to: tnp.fft.fftfreq(4, **to),
}
FOLLOWING: dict[str, Callable[[], Any]] = {
    "indices": lambda: tnp.indices((2, 2)),
    "a function of NumPy's array": lambda: tnp.sin(N),
    "a key": lambda: random.key(0),
    "random numbers": lambda: random.normal(random.PRNGKey(1), (3,)),
    "jit of NumPy's array": lambda: jit(lambda x: x + 1.0)(N),
    "jit of a number": lambda: jit(lambda x: 2.0 * x)(1.0),
    "jit of nothing": jit(lambda: tnp.ones(3)),
    "grad": lambda: grad(lambda x: (x * tnp.ones(4)).sum())(N),
    "vmap": lambda: vmap(lambda x: x * tnp.arange(4))(N),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), 0.0, N[0])[0],
    "device_put": lambda: tracer.device_put(N),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation_functions_take_a_device(name: str) -> None:
    create = CREATED[name]
    here, there = create(), create(device=tracer.devices("cuda-sim")[0])
    assert (str(here.device), str(there.device)) == ("cpu", SIM)
    assert (there.dtype, there.weak_type) == (here.dtype, here.weak_type)
    np.testing.assert_array_equal(np.asarray(there), np.asarray(here))


@pytest.mark.parametrize("name", [*CREATED, *FOLLOWING])
def test_arrays_are_made_on_the_default_device(name: str) -> None:
    make = CREATED.get(name) or FOLLOWING[name]
    wanted = make()
    with tracer.default_device("cuda-sim"):
        assert tracer.default_backend() == "cuda-sim"
        got = make()
    assert str(got.device) == SIM
    if name != "a key":
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-12)
    assert str(make().device) == "cpu"


def test_the_default_device_is_a_setting() -> None:
    tracer.config.default_device = SIM
    try:
        assert str(tnp.zeros(2).device) == SIM
        assert str(tnp.zeros(2, device="cpu").device) == "cpu"
        assert str(tnp.__array_namespace_info__().default_device()) == SIM
    finally:
        tracer.config.default_device = None
    assert str(tnp.zeros(2).device) == "cpu"


@pytest.mark.parametrize(
    "call",
    [lambda x: x.sum() + 1.0, lambda x: x.sum() * x, grad(lambda x: (np.ones(3) * x**2).sum()), jit(grad(tnp.sum))],
)
def test_arrays_of_the_cpu_stay_there_under_another_default(call: Callable[[Any], Any]) -> None:
    x = tnp.arange(3.0)
    with tracer.default_device(SIM):
        for _ in range(2):
            assert str(call(x).device) == "cpu"


def test_arrays_like_others_lie_beside_them() -> None:
    x = tracer.device_put(N, SIM)
    for like in (tnp.zeros_like(x), tnp.full_like(x, 2.0)):
        assert str(like.device) == SIM
        assert like.sharding.device_set == x.devices()


def test_a_jitted_function_runs_on_its_device() -> None:
    f = jit(lambda x, y=1.0: 2.0 * x + y, device="cuda-sim")
    for x in (N, 2.0):
        assert str(f(x).device) == SIM
    with pytest.raises(DeviceError) as caught:
        f(tnp.ones(3))
    assert str(caught.value).splitlines()[1:] == [
        "  the call is on cuda-sim:0, argument 0 'x' on cpu",
        "  help: move one of them: tracer.device_put(x, 'cuda-sim:0')",
    ]


x, host = tracer.device_put(N, SIM), tnp.ones((3, 4))
MIXED: dict[str, tuple[Callable[[], Any], str]] = {
    "lax": (lambda: lax.add(x, host), "got an array on cuda-sim:0, and f64[3,4] on cpu"),
    "grad": (lambda: grad(lambda x: (x * host).sum())(x), "got an array on cuda-sim:0, and f64[3,4] on cpu"),
    "vmap": (lambda: vmap(lambda x, y: x + y)(x, host), "argument 0 is on cuda-sim:0, argument 1 on cpu"),
    "captured by vmap": (lambda: vmap(lambda x: x + host[0])(x), "got an array on cuda-sim:0, and f64[3,4] on cpu"),
    "captured by jit": (
        lambda: jit(lambda x: x + host)(x), "argument 0 'x' is on cuda-sim:0, a captured array f64[3,4] on cpu",
    ),
    "scan": (lambda: lax.scan(lambda c, r: (c + r, r), host[0], x), "got an array on cuda-sim:0, and f64[4] on cpu"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_arrays_on_two_devices_are_refused_everywhere(name: str) -> None:
    call, said = MIXED[name]
    with pytest.raises(DeviceError) as caught:
        call()
    lines = str(caught.value).splitlines()
    assert "two devices" in lines[0]
    assert "test_placement.py" in lines[0]
    assert lines[1].strip() == said


@pytest.mark.parametrize("call", [lambda: x + N, lambda: tnp.where(x > 1, N, x), lambda: x @ N.T, lambda: x[[0, 2]]])
def test_numpys_arrays_follow_operations(call: Callable[[], Any]) -> None:
    assert str(call().device) == SIM


@pytest.mark.parametrize("way", [lambda f: f, jit, lambda f: grad(lambda x: f(x).sum()), vmap])
def test_functions_with_custom_rules_run_on_a_device(way: Callable[..., Any]) -> None:
    squared = tracer.custom_vjp(lambda x: x * x)
    squared.defvjp(lambda x: (x * x, x), lambda x, ct: (2.0 * x * ct,))
    got = way(squared)(tracer.device_put(3.0 * N, SIM))
    assert str(got.device) == SIM
    np.testing.assert_array_equal(np.asarray(got), np.asarray(way(squared)(tnp.asarray(3.0 * N))))


def test_places_of_nonzero_elements_lie_beside_them() -> None:
    (places,) = tnp.nonzero(x[:, 0])
    assert str(places.device) == SIM
    np.testing.assert_array_equal(np.asarray(x[places]), N)


def test_a_device_counts_its_memory() -> None:
    device = tracer.devices("cuda-sim")[0]
    gc.collect()
    before = device.memory_stats()["bytes_in_use"]
    y = tracer.device_put(np.ones(1000), device)
    stats = device.memory_stats()
    assert stats["bytes_in_use"] == before + 8000 <= stats["peak_bytes_in_use"]
    del y
    assert device.memory_stats()["bytes_in_use"] == before
    assert tracer.devices()[0].memory_stats() is None


DONATING: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: 2.0 * x + 1.0,
    "rows": lambda x: x - x.mean(1, keepdims=True),
    "softmax": lambda x: tnp.exp(x - x.max(1, keepdims=True)) / tnp.exp(x - x.max(1, keepdims=True)).sum(1)[:, None],
    "update": lambda x: x.at[0, 1].set(5.0),
    "scatter": lambda x: x.at[tnp.asarray([1, 1])].add(x[0]),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i, i].set(tnp.sin(c[i, i])), x),
    "itself": lambda x: x,
}


@pytest.mark.parametrize("name", DONATING)
@pytest.mark.rung("device", of="arrays")
def test_results_take_the_memory_of_donated_arrays(name: str) -> None:
    device, f = tracer.devices("cuda-sim")[0], DONATING[name]
    given = np.linspace(0.0, 2.0, 40 * 40).reshape(40, 40)
    wanted = np.asarray(jit(f)(tracer.device_put(given, device)))
    donating = jit(f, donate_argnums=0)
    donating(tracer.device_put(given, device))
    x = tracer.device_put(given, device)
    gc.collect()
    before, address = device.memory_stats()["bytes_in_use"], x._value.memory.address
    result = donating(x)
    assert result._value.memory.address == address
    np.testing.assert_array_equal(np.asarray(result), wanted)
    assert device.memory_stats()["bytes_in_use"] == before
    for use in (lambda: x + 1.0, lambda: np.asarray(x), lambda: donating(x)):
        with pytest.raises(ArgumentError, match="an array was donated and cannot be used again at test_placement"):
            use()


def test_donation_saves_memory_at_its_peak() -> None:
    driver = SimulatedDriver()
    program = tracer.make_program(lambda x: tnp.sin(x) + 1.0)(np.ones(1000))
    peaks = []
    for donated in ((), (0,)):
        driver._peak = driver._used
        before = driver.usage()[0]
        DeviceProgram(program, driver, donated).run([driver.upload(np.ones(1000))])
        peaks.append(driver.usage()[1] - before)
    assert peaks == [16_000, 8_000]


SHARED: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: x.copy(), "DLPack": np.from_dlpack, "pullback": lambda x: tracer.vjp(tnp.square, x)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory_is_not_given_away(name: str) -> None:
    f = jit(lambda x, y: 2.0 * x + y, donate_argnums=0)
    x = tracer.device_put(np.full(1000, 3.0), SIM)
    other = SHARED[name](x)
    with pytest.warns(UserWarning, match=r"donated, but copied: .*\n  got argument 0 'x'"):
        f(x, 1.0)
    np.testing.assert_array_equal(
        np.asarray(other(np.ones(1000))[0]) if callable(other) else np.asarray(other),
        {"copy": 3.0, "DLPack": 3.0, "pullback": 6.0}[name],
    )


def test_an_argument_given_twice_is_not_overwritten() -> None:
    x = tracer.device_put(np.ones(1000), SIM)
    with pytest.warns(UserWarning, match="donated, but copied"):
        kept = jit(lambda x, y: 2.0 * x + y[::-1], donate_argnums=0)(x, x)
    np.testing.assert_array_equal(np.asarray(kept), np.full(1000, 3.0))


def test_devices_are_a_table_in_notebooks() -> None:
    shown = tracer.devices("cuda-sim")._repr_html_()
    for text in ("cuda-sim:0", "simulated on the CPU", "bytes in use"):
        assert text in shown
    assert isinstance(tracer.devices("cuda-sim")[0], tracer.Device)


@pytest.mark.parametrize("f", [tnp.exp, lambda x: -tnp.exp(x), lambda x: tnp.exp(x) + tnp.sin(x)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_numpys_cotangents_go_where_the_values_are(f: Any, dtype: str) -> None:
    x, ct = np.linspace(0.1, 1, 5).astype(dtype), np.arange(5).astype(dtype)
    (wanted,) = tracer.vjp(f, x)[1](ct)
    found, pullback = tracer.vjp(f, tracer.device_put(x, "cuda-sim"))
    (got,) = pullback(ct)
    assert str(got.device) == str(found.device) == "cuda-sim:0"
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-14)
    with pytest.raises(DeviceError, match="operands lie on two devices"):
        pullback(tnp.asarray(ct, device="cpu"))


def test_numpys_cotangents_of_pullbacks_follow_too() -> None:
    x, y, ct = np.array([0.5, 1.0]), np.array([2.0, 3.0]), np.ones(2)

    def pulled(x: Any, y: Any) -> Any:
        return tracer.vjp(lambda x, y: tnp.exp(x) * y, x, y)[1](ct)

    wanted = tracer.vjp(pulled, x, y)[1]((ct, ct))
    with tracer.default_device(SIM):
        got = tracer.vjp(pulled, x, y)[1]((ct, ct))
    for found, expected in zip(got, wanted, strict=True):
        assert str(found.device) == SIM
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected))


def test_states_of_optimizers_lie_beside_the_parameters() -> None:
    params = {"w": tracer.device_put(np.ones((2, 3), "float32"), SIM)}
    made = "adadelta adafactor adagrad adam adamax adamw adan lamb lbfgs lion nadam novograd radam rmsprop sm3 yogi"
    for name in made.split():
        maker = getattr(optim, name)
        tx = maker() if name in ("adafactor", "lbfgs") else maker(0.1)
        for leaf in tracer.tree.leaves(tx.init(params)):
            assert not leaf.ndim or leaf.device == params["w"].device, name
    tx = optim.adam(0.1)
    state = tx.init(params)
    for _ in range(2):
        updates, state = jit(tx.update)(params, state)
    assert updates["w"].device == params["w"].device
    np.testing.assert_allclose(updates["w"], np.full((2, 3), -0.1), rtol=1e-5)
