"""Arrays on the simulated device: programs run where their arrays lie, and nothing moves unasked."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering
from tracer import grad, hessian, jacfwd, jacrev, jit, jvp, lax, random, value_and_grad, vjp, vmap
from tracer.errors import DeviceError, OutOfBoundsError
from tracer.runtime.compile import compile as compiling
from tracer.runtime.cuda.simulator.driver import SimulatedDriver
from tracer.trace.device_value import DeviceValue

SIM = "cuda-sim:0"
X = np.linspace(0.1, 2.0, 12).reshape(3, 4)


@pytest.fixture
def x() -> tnp.ndarray:
    return tracer.device_put(X, SIM)


def softmax(x: Any) -> Any:
    e = tnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: 2.0 * x**2 - x / 3.0,
    "math": lambda x: tnp.tanh(tnp.exp(-x) + tnp.log1p(x)),
    "softmax": softmax,
    "sum": lambda x: x.sum(),
    "mean of columns": lambda x: tnp.mean(x, axis=0),
    "std": lambda x: tnp.std(x, axis=1),
    "argmax": lambda x: tnp.argmax(x, axis=1),
    "transpose": lambda x: x.T + 1.0,
    "masked": lambda x: tnp.where(x > 1.0, x, -x),
    "triangle": tnp.tril,
    "joined": lambda x: tnp.concatenate([x, x + 1.0], axis=1),
    "padded": lambda x: tnp.pad(x, 1),
    "taken": lambda x: x[1:, ::2],
    "cast": lambda x: x.astype("float32").astype(int),
    "cumulative": lambda x: tnp.cumsum(x, axis=1),
    "product": lambda x: tnp.sum(x[:, None, :] * x[None, :, :], axis=-1),
}


@pytest.mark.parametrize(("way", "name"), covering(["eager", "jit"], FUNCTIONS, least=16))
@pytest.mark.rung("device")
def test_functions_run_on_the_device(name: str, way: str, x: tnp.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    function = FUNCTIONS[name]
    wanted = np.asarray(function(tnp.asarray(X)))
    with monkeypatch.context() as patch:
        for owner, attribute in ((compiling, "compile_program"), (DeviceValue, "host")):
            patch.setattr(owner, attribute, _refuse)
        got = (jit(function) if way == "jit" else function)(x)
        assert str(got.device) == SIM
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
    assert got.dtype == wanted.dtype


def _refuse(*_: object, **__: object) -> Any:
    raise AssertionError("a program of the device was compiled for the CPU, or copied to the host")


def loss(x: Any) -> Any:
    return tnp.sum(tnp.sin(x) ** 2 * softmax(x))


DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": grad(loss),
    "value_and_grad": lambda x: value_and_grad(loss)(x)[1],
    "jvp": lambda x: jvp(loss, (x,), (x,))[1],
    "vjp": lambda x: vjp(softmax, x)[1](x)[0],
    "jacfwd": jacfwd(lambda x: x.sum(0) ** 2),
    "jacrev": jacrev(lambda x: x.sum(0) ** 2),
    "hessian": hessian(lambda x: (x**3).sum()),
    "vmap": vmap(lambda row: row * row.sum()),
    "grad of vmap": grad(lambda x: vmap(lambda row: (row * row.sum()).sum())(x).sum()),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.rung("device", of="arrays")
def test_transforms_run_on_the_device(name: str, x: tnp.ndarray) -> None:
    function = DERIVATIVES[name]
    wanted = np.asarray(function(tnp.asarray(X)))
    for way in (lambda f: f, jit) if THOROUGH or name in ("grad", "jvp", "vmap") else (jit,):
        got = way(function)(x)
        assert str(got.device) == SIM
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.rung("device", of="maps")
def test_elementwise_results_and_random_numbers_have_the_bits_of_the_cpu(x: tnp.ndarray) -> None:
    function = jit(lambda x: tnp.sin(x) * tnp.exp(x) + tnp.sqrt(x))
    np.testing.assert_array_equal(np.asarray(function(x)), np.asarray(function(tnp.asarray(X))))
    key = random.key(3)
    there = random.normal(tracer.device_put(key, SIM), (7,))
    np.testing.assert_array_equal(np.asarray(there), np.asarray(random.normal(key, (7,))))


def test_numpys_arrays_scalars_and_keys_follow(x: tnp.ndarray) -> None:
    function = jit(lambda x, y, s: x * y + s)
    got = function(x, X, 2)
    assert str(got.device) == SIM
    np.testing.assert_allclose(np.asarray(got), X * X + 2)
    assert str((x + tnp.asarray(1.0)).device) == SIM


def test_arrays_on_two_devices_are_refused_with_both_names(x: tnp.ndarray) -> None:
    with pytest.raises(DeviceError, match=r"add at test_devices\.py:\d+: operands lie on two devices\n") as caught:
        x + tnp.ones((3, 4))
    assert "got an array on cuda-sim:0, and f64[3,4] on cpu\n  help: move one of them" in str(caught.value)

    @jit
    def f(given: Any, table: dict[str, Any]) -> Any:
        return given + table["w"]

    with pytest.raises(DeviceError) as caught:
        f(x, {"w": tnp.ones((3, 4))})
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("f at test_devices.py:")
    assert rest == [
        "  argument 0 'given' is on cuda-sim:0, argument 1, table['w'] on cpu",
        "  help: move one of them: tracer.device_put(x, 'cuda-sim:0')",
    ]


def test_arrays_move_only_when_asked(x: tnp.ndarray) -> None:
    assert tracer.device_put(x, SIM) is x
    back = tracer.device_put(x, "cpu")
    assert str(back.device) == "cpu"
    np.testing.assert_array_equal(np.asarray(back), X)
    assert str(back.to_device(SIM).device) == SIM
    tree = tracer.device_put({"a": X, "b": [1.0]}, tracer.devices("cuda-sim")[0])
    assert {str(leaf.device) for leaf in (tree["a"], tree["b"][0])} == {SIM}
    assert tracer.devices() == [tracer.device_put(X).device]


def test_values_are_read_by_waiting(x: tnp.ndarray) -> None:
    assert float(x[0, 0]) == X[0, 0]
    assert bool((x > 0).all())
    assert x.tolist() == X.tolist()
    assert repr(x[0]) == "Array([0.1       , 0.27272727, 0.44545455, 0.61818182], f64, cuda-sim:0)"
    np.testing.assert_array_equal(tracer.device_get(x), X)
    assert tracer.block_until_ready({"x": x})["x"] is x
    total = 0.0
    for row in x:
        total += float(row.sum())
    assert total == pytest.approx(X.sum())


def test_an_array_on_a_device_is_updated_there(x: tnp.ndarray) -> None:
    y = x + 0.0
    y[0, 1] = 5.0
    wanted = X.copy()
    wanted[0, 1] = 5.0
    assert str(y.device) == SIM
    np.testing.assert_array_equal(np.asarray(y), wanted)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_a_captured_array_is_read_at_every_call(x: tnp.ndarray) -> None:
    calls = []

    @jit
    def f(s: Any) -> Any:
        calls.append(1)
        return s * x

    for s in (1.0, 2.0, 3.0):
        got = f(s)
        assert str(got.device) == SIM
        np.testing.assert_allclose(np.asarray(got), s * X)
    assert len(calls) == 1


@pytest.mark.parametrize(
    "of", [lambda s, x: s * x.sum(), jit(lambda s, x: s * s * x.sum()), lambda s, x: vmap(lambda r: r * s)(x).sum()]
)
def test_a_captured_array_is_read_at_every_call_of_a_derivative(of: Callable[[Any, Any], Any]) -> None:
    x = tracer.device_put(np.arange(3.0), SIM)
    derivative = jit(grad(lambda s: of(s, x)))
    for first in (0.0, 5.0):
        x[0] = first
        wanted = grad(of)(2.0, tnp.asarray([first, 1.0, 2.0]))
        np.testing.assert_allclose(np.asarray(derivative(2.0)), np.asarray(wanted))


def test_arrays_without_axes_are_numbers_on_a_device() -> None:
    x, n = tracer.device_put(1.5, SIM), tracer.device_put(np.array(2), SIM)
    assert (float(x), int(n), x.tolist(), f"{x} {x:.3f}", [0, 1, 2][n]) == (1.5, 2, 1.5, "1.5 1.500", 2)
    assert np.asarray(x).shape == tracer.device_get(x).shape == ()
    np.testing.assert_array_equal(np.asarray(tnp.arange(n)), np.arange(2))


def test_results_of_a_device_are_written_into_numpys_arrays(x: tnp.ndarray) -> None:
    given = np.zeros(X.shape)
    tnp.sqrt(x, out=given)
    np.testing.assert_array_equal(given, np.sqrt(X))
    np.add.at(given, 0, x[1])
    np.testing.assert_array_equal(given[0], np.sqrt(X[0]) + X[1])


def test_polynomials_are_fitted_to_points_on_a_device() -> None:
    points, values = np.arange(4.0), np.array([1.0, 3.0, 7.0, 13.0])
    for got, wanted in zip(
        tnp.polyfit(tracer.device_put(points, SIM), tracer.device_put(values, SIM), 1, full=True),
        tnp.polyfit(points, values, 1, full=True), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted))


@pytest.mark.rung("device", of="gathers")
def test_repeated_calls_see_what_changes(x: tnp.ndarray) -> None:
    factor = 2.0

    def scaled(tree: Any) -> Any:
        return {"y": factor * tree["x"]}

    f = jit(scaled)
    row, short, host = x[0], x.astype("float32"), tnp.asarray(X)
    for factor in (2.0, 2.0, 3.0):  # read by the function
        for given in (x, x, row, short, X, host, 2.0):
            got = f({"x": given})["y"]
            assert (got.dtype, str(got.device)) == (np.asarray(given).dtype, str(getattr(given, "device", "cpu")))
            np.testing.assert_allclose(np.asarray(got), factor * np.asarray(given))
    with tracer.disable_jit():
        factor = 4.0
        np.testing.assert_array_equal(np.asarray(f({"x": x})["y"]), 4.0 * X)
    slope = grad(lambda x: f({"x": x})["y"].sum())(x)
    np.testing.assert_array_equal(np.asarray(slope), np.full(X.shape, 4.0))
    np.testing.assert_array_equal(np.asarray(vmap(lambda r: f({"x": r})["y"])(x)), 4.0 * X)


def test_a_repeated_call_takes_few_steps_of_python_a_leaf() -> None:
    def steps(count: int) -> int:
        f, given = jit(lambda xs: [x + 1.0 for x in xs]), [tracer.device_put(np.ones(3), SIM) for _ in range(count)]
        f(given)
        f(given)
        calls: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SimulatedDriver, "launch", lambda *_: None)
            patch.setattr(SimulatedDriver, "address", lambda *_: 0)
            patch.setattr(SimulatedDriver, "empty", lambda _, nbytes: SimpleNamespace(nbytes=nbytes))
            sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
            try:
                f(given)
            finally:
                sys.setprofile(None)
        return len(calls)

    one, many = steps(1), steps(9)
    assert one <= 40
    assert many - one <= 8 * 7


def test_faults_are_raised_where_a_value_is_waited_for() -> None:
    x, places = tracer.device_put(np.arange(3.0), SIM), tracer.device_put(np.array([0, 7]), SIM)
    taken = jit(lambda x, i: x[i])(x, places)
    after = taken * 2.0
    for value in (taken, after):
        with pytest.raises(OutOfBoundsError, match=r"index out of bounds at test_devices\.py:\d+\n"):
            tracer.block_until_ready(value)
        with pytest.raises(OutOfBoundsError):
            np.asarray(value)


def test_other_threads_use_the_device(x: tnp.ndarray) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(np.asarray(jit(softmax)(x))))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0], np.asarray(softmax(tnp.asarray(X))))


def test_copies_and_pickles(x: tnp.ndarray) -> None:
    np.testing.assert_array_equal(np.asarray(copy.deepcopy(x)), X)
    loaded = pickle.loads(pickle.dumps(x))
    assert str(loaded.device) == "cpu"
    np.testing.assert_array_equal(np.asarray(loaded), X)


def _steps(x: Any) -> Any:
    return lax.scan(lambda c, v: (tnp.sin(0.5 * c + v.sum()), c + v), 0.0, x)


def _doubled(x: Any) -> Any:
    return lax.while_loop(
        lambda c: (c[0].sum() < 100) & (c[1] < 50), lambda c: (1.5 * c[0] + tnp.sin(c[0]), c[1] + 1), (x, 0)
    )


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "while": _doubled,
    "gradient of while": grad(lambda x: _doubled(x)[0].sum()),
    "while of lanes": vmap(lambda row: lax.while_loop(lambda c: c.sum() < 100, lambda c: 1.5 * c, row)),
    "scan": _steps,
    "gradient of scan": grad(lambda x: _steps(x)[0]),
    "cond": lambda x: lax.cond(x.sum() > 3, lambda x: 2.0 * x, lambda x: -x, x),
    "slices in a loop": lambda x: lax.fori_loop(
        0, 3, lambda i, a: a + lax.dynamic_slice(x, (i, 0), (1, 4))[0], tnp.zeros(4)
    ),
    "matrix product": lambda x: x @ x.T,
    "convolution": lambda x: lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),
    "sort": lambda x: tnp.sort(x.ravel())[::-1],
    "scatter": lambda x: tnp.zeros(5).at[tnp.array([0, 1, 1, 4])].add(x[0]),
    "cumulative": lambda x: tnp.cumsum(x.ravel()),
    "factors": lambda x: tnp.linalg.cholesky(x @ x.T + tnp.eye(3)),
    "singular values": lambda x: tnp.linalg.svd(x)[1],
    "Fourier": tnp.fft.fft,
    "callback": lambda x: tracer.pure_callback(np.sin, tracer.ShapeDtypeStruct(x.shape, x.dtype), x),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.rung("device")
def test_control_flow_and_library_calls_run_as_programs(name: str, x: tnp.ndarray) -> None:
    function = jit(PROGRAMS[name])
    wanted, got = (tracer.tree.leaves(function(v)) for v in (tnp.asarray(X), x))
    for a, b in zip(got, wanted, strict=True):
        assert str(a.device) == SIM
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_loops_of_every_length_and_their_gradients(count: int) -> None:
    def total(a: Any) -> Any:
        return lax.while_loop(lambda c: c[1] < count, lambda c: (0.9 * c[0] + tnp.sin(a), c[1] + 1), (a, 0))[0]

    a = np.float64(0.3)
    for function in (jit(total), jit(grad(total))):
        np.testing.assert_allclose(float(function(tracer.device_put(a, SIM))), float(function(a)), rtol=1e-12)


def test_a_fault_ends_a_loop_that_depends_on_it() -> None:
    def walk(table: Any, start: Any) -> Any:
        return lax.while_loop(lambda i: table[i] != 0, lambda i: i + 1, start)

    table = tracer.device_put(np.ones(5, int), SIM)
    with pytest.raises(OutOfBoundsError, match=r"index out of bounds at test_devices\.py:\d+\n"):
        int(jit(walk)(table, 2))


@pytest.mark.parametrize("transform", [jit, grad, vmap])
def test_traced_arrays_do_not_move(transform: Callable[..., Any]) -> None:
    with pytest.raises(DeviceError, match=r"device_put at test_devices\.py:\d+: a traced array does not move to"):
        transform(lambda x: tracer.device_put(x, SIM).sum())(tnp.ones(3))


def test_a_long_chain_of_calls_keeps_few_checks() -> None:
    x, place = tracer.device_put(np.ones(3), SIM), tracer.device_put(np.array(1), SIM)
    follow = jit(lambda x, i: x + x[i])
    for _ in range(70):
        x = follow(x, place)
    assert len(x._value.checks) < 65
    np.testing.assert_array_equal(np.asarray(x), np.full(3, 2.0**70))

    def follow_from_outside() -> None:
        y = follow(x, place + 7)
        for _ in range(70):
            y = follow(y, place)

    with pytest.raises(OutOfBoundsError):
        follow_from_outside()


def test_missing_devices_are_refused() -> None:
    with pytest.raises(DeviceError, match=r"device_put at test_devices\.py:\d+: no device 'tpu'\n"):
        tracer.device_put(X, "tpu")
    with pytest.raises(DeviceError, match=r"devices at test_devices\.py:\d+: no device 'cuda'\n"):
        tracer.devices("cuda")
