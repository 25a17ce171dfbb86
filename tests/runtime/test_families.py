"""Functions made anew, methods, and functions among what changes: replayed, and with nothing of an earlier call's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.runtime.replays import TIMES, X, repeated, slope
from tracer import lax
from tracer.errors import OutOfBoundsError
from tracer.runtime import transformed

SCALE = 2.0
WEIGHTS = [1.0, 2.0]


pytestmark = pytest.mark.usefixtures("replayed_soon")


# What is replayed


def test_a_lambda_made_at_every_call_reads_the_arrays_of_its_own_call(planned: list[Any]) -> None:
    for n in range(TIMES):
        a, b = tnp.asarray(float(n)), tnp.arange(3.0) + n
        found = tracer.value_and_grad(lambda x: tnp.sum(a * x * b))(2.0)  # noqa: B023
        assert [float(v) for v in found] == [2.0 * n * (3 * n + 3), n * (3 * n + 3)]
    assert len(planned) > 6
    runs = {id(run) for run, _ in planned}
    assert len(runs) == 2  # by references, then compiled


CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda a: tracer.grad(lambda x: tnp.sum(tnp.sin(x * a)))(X),
    "value_and_grad with auxiliary": lambda a: tracer.value_and_grad(lambda x: (tnp.sum(x * a), x), has_aux=True)(X),
    "grad by number": lambda a: tracer.grad(lambda x, y: tnp.sum(x * y * a), argnums=1)(X, X),
    "vmap": lambda a: tracer.vmap(lambda x: x * a)(X),
    "jacfwd": lambda a: tracer.jacfwd(lambda x: x * a)(X),
    "jacrev": lambda a: tracer.jacrev(lambda x: x * a)(X),
    "hessian": lambda a: tracer.hessian(lambda x: tnp.sum(x**3 * a))(X),
    "jvp": lambda a: tracer.jvp(lambda x: x * a, (X,), (X,)),
    "hvp": lambda a: tracer.hvp(lambda x: tnp.sum(x**3 * a), (X,), (X,)),
    "scan": lambda a: lax.scan(lambda c, x: (c + x * a, c), 0.0, X),
    "while_loop": lambda a: lax.while_loop(lambda c: c < 50.0, lambda c: c * 2.0 + a, 1.0),
    "fori_loop": lambda a: lax.fori_loop(0, 3, lambda i, c: c + a * i, X),
    "cond": lambda a: lax.cond(X[0] < 1.0, lambda x: x * a, lambda x: x, X),
    "map": lambda a: lax.map(lambda x: x * a, X),
}


@pytest.mark.parametrize("name", CALLS)
def test_transforms_of_lambdas_are_replayed_with_the_values_of_the_first_calls(name: str, planned: list[Any]) -> None:
    call = CALLS[name]
    firsts = [call(tnp.asarray(n)) for n in (0.5, 1.5)]
    for _ in range(TIMES):
        for n, first in zip((0.5, 1.5), firsts, strict=True):
            for x, y in zip(tracer.tree.leaves(call(tnp.asarray(n))), tracer.tree.leaves(first), strict=True):
                assert x.type == y.type
                np.testing.assert_allclose(x, y, rtol=1e-14)
    assert planned


def test_values_keep_their_bits() -> None:
    def value(a: Any) -> bytes:
        return np.asarray(tracer.value_and_grad(lambda x: tnp.sum(tnp.sin(x * a) ** 2))(X)[0]).tobytes()

    assert len({value(tnp.asarray(1.5)) for _ in range(TIMES)}) == 1


def test_one_function_gets_plans_of_its_own_after_all(planned: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformed.often, "own", 4)

    def made(a: Any) -> Any:
        return lambda x: x * a

    for n in range(6):
        slope(made(tnp.asarray(float(n))))
    kept = made(tnp.asarray(7.0))
    derivative = tracer.grad(kept)
    for _ in range(TIMES):
        assert float(derivative(3.0)) == 7.0
    count = len(planned)
    repeated(lambda: derivative(3.0))
    assert len(planned) == count


# What is seen of cells, defaults, globals, containers


def test_numbers_in_cells_are_seen(planned: list[Any]) -> None:
    for _ in range(3):
        for by in (2.0, 5.0, True, 2, -0.0, 0.0, "ab"):
            own = by

            def scaled(x: Any) -> Any:
                return x * (len(own) if isinstance(own, str) else own)  # noqa: B023

            expected = 2.0 if by == "ab" else float(by)
            found = repeated(lambda: slope(scaled, 3.0))
            assert found == expected
            assert np.signbit(found) == np.signbit(expected)
    assert planned


def test_numbers_that_change_at_every_call_are_given_up() -> None:
    for n in range(100):
        assert slope(lambda x: x * float(n) * 1.0) == n  # noqa: B023


def test_defaults_are_seen(planned: list[Any]) -> None:
    for n in range(TIMES):
        a = tnp.asarray(float(n))
        assert slope(lambda x, a=a, *, b=2.0: x * a * b) == 2.0 * n
        assert slope(lambda x, a=a, *, b=n % 2: x * a * b) == n * (n % 2)
    assert planned


def test_functions_in_cells_are_seen_with_their_own(planned: list[Any]) -> None:
    for n in range(TIMES):
        a = tnp.asarray(float(n))
        inner = (lambda x: x * a) if n % 3 else (lambda x: x * a + x)  # noqa: B023
        assert slope(lambda x: inner(x) * 2.0) == 2.0 * (n if n % 3 else n + 1)  # noqa: B023
    assert planned
    inner.__code__ = (lambda x: x * a * 10.0).__code__
    assert slope(lambda x: inner(x) * 2.0) == 20.0 * (TIMES - 1)


def test_globals_are_seen(monkeypatch: pytest.MonkeyPatch, planned: list[Any]) -> None:
    def call() -> float:
        a = tnp.asarray(1.0)
        return slope(lambda x: abs(x * a * SCALE * WEIGHTS[0] * scale_of(a)))

    assert repeated(call) == 6.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert repeated(call) == 9.0
    WEIGHTS[0] = 2.0
    assert repeated(call) == 18.0
    monkeypatch.setitem(globals(), "WEIGHTS", (5.0,))
    assert repeated(call) == 45.0
    monkeypatch.setitem(globals(), "scale_of", lambda a: 1.0)
    assert repeated(call) == 15.0
    monkeypatch.setitem(globals(), "abs", lambda x: 0.0 * x)  # which was Python's before
    assert repeated(call) == 0.0
    assert planned


def scale_of(a: Any, by: float = 3.0) -> Any:
    return a * by


def test_defaults_and_code_of_global_functions_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> float:
        return slope(lambda x: x * scale_of(tnp.asarray(1.0)))

    assert repeated(call) == 3.0
    monkeypatch.setattr(scale_of, "__defaults__", (4.0,))
    assert repeated(call) == 4.0
    monkeypatch.setattr(scale_of, "__code__", (lambda a, by=0: a * by * 2.0).__code__)
    assert repeated(call) == 8.0


def test_lists_and_dicts_that_change_are_read(planned: list[Any]) -> None:
    kept: dict[str, Any] = {"w": [tnp.asarray(1.0), 2.0], "b": tnp.asarray(0.0)}

    def scaled(x: Any) -> Any:
        return x * kept["w"][0] * kept["w"][1] + tnp.sum(kept["b"]) + len(kept) * x

    derivative = tracer.grad(scaled)
    for n in range(60):
        kept["w"][0] = tnp.asarray(float(n))
        assert float(derivative(3.0)) == 2.0 * n + 2.0
    assert planned
    kept["w"][1] = 3.0
    assert float(repeated(lambda: derivative(3.0))) == 3.0 * 59 + 2.0
    kept["w"][0][...] = 1.0
    assert float(derivative(3.0)) == 5.0
    kept["w"].insert(0, tnp.asarray(10.0))
    assert float(repeated(lambda: derivative(3.0))) == 12.0
    kept["more"] = None
    assert float(repeated(lambda: derivative(3.0))) == 13.0
    kept["w"] = (tnp.asarray(4.0), tnp.ones(3))
    with pytest.raises(tracer.errors.ShapeError):
        derivative(3.0)


def test_an_array_under_two_names_is_not_taken_for_two(planned: list[Any]) -> None:
    a, b = tnp.asarray(2.0), tnp.asarray(5.0)

    def call(first: Any, second: Any) -> float:
        return slope(lambda x: x * first * second + (x if first is second else 0.0))

    for first, second, expected in ((a, a, 5.0), (a, b, 10.0), (b, b, 26.0), (b, a, 10.0)) * 4:
        assert call(first, second) == expected
    assert planned


def test_numpys_arrays_are_compared_and_never_kept_by_reference(planned: list[Any]) -> None:
    def call(weights: Any) -> float:
        return slope(lambda x: tnp.sum(x * weights) * float(weights[0]))

    first = np.ones(3)
    for _ in range(TIMES):
        assert call(first) == 3.0
    assert planned
    first[:] = 2.0
    assert call(first) == 12.0
    assert repeated(lambda: call(np.ones(3))) == 3.0  # as in the plan, whose array has other numbers by now
    assert repeated(lambda: call(np.ones(3, np.float32))) == 3.0
    assert repeated(lambda: call(np.ones(4))) == 4.0
    assert repeated(lambda: call(np.full(3, 2.0))) == 12.0


def test_what_tracing_looked_at_in_an_array_is_looked_at_every_time(planned: list[Any]) -> None:
    def call(a: Any) -> float:
        return slope(lambda x: x * (2.0 if a > 0 else 3.0))

    for n in range(TIMES):
        assert call(tnp.asarray(1.0 if n % 2 else -1.0)) == (2.0 if n % 2 else 3.0)
    assert not planned


def test_random_keys_are_operands(planned: list[Any]) -> None:
    found = set()
    for n in range(TIMES):
        key = tracer.random.key(n)
        found.add(slope(lambda x: x * tracer.random.uniform(key)))  # noqa: B023
        assert slope(lambda x: x * tracer.random.uniform(key)) == float(tracer.random.uniform(key))  # noqa: B023
    assert len(found) == TIMES
    assert planned


def test_other_types_are_told_apart(planned: list[Any]) -> None:
    def call(a: Any) -> Any:
        return tracer.grad(lambda x: tnp.sum(x * a) * a.ndim * len((*a.shape, 1)))(tnp.ones(3))

    for a in (tnp.ones(3), tnp.asarray(2.0), tnp.ones(3, dtype="float32"), tnp.ones((2, 3)), tnp.arange(3)):
        first = np.asarray(call(a))
        np.testing.assert_array_equal(repeated(lambda a=a: call(a)), first)
    assert planned


# What is never replayed

LOG: list[Any] = []


def test_lambdas_that_do_more_run_every_time(capsys: pytest.CaptureFixture[str], planned: list[Any]) -> None:
    LOG.clear()
    seen = np.zeros(1)
    for _ in range(TIMES):
        slope(lambda x: (LOG.append(1), x)[1])
        slope(lambda x: (print("run"), x)[1])
        slope(lambda x: (seen.__setitem__(0, seen[0] + 1), x)[1])
        slope(lambda x: (np.add.at(seen, [0], 1), x)[1])
        slope(lambda x: (tracer.debug.print("at {}", x), x)[1])
    assert len(LOG) == TIMES
    assert seen[0] == 2 * TIMES
    assert capsys.readouterr().out.count("run") == TIMES
    assert len(planned) == 0


def test_python_follows_values(planned: list[Any]) -> None:
    for n in range(TIMES):
        assert slope(lambda x: 2.0 * x if x > 0 else 3.0 * x, 1.0 if n % 2 else -1.0) == (2.0 if n % 2 else 3.0)
    assert not planned


def test_rules_that_are_set_anew_are_seen() -> None:
    @tracer.custom_jvp
    def own(x: Any) -> Any:
        return x

    own.defjvp(lambda xs, dxs: (xs[0], 10.0 * dxs[0]))
    assert repeated(lambda: slope(lambda x: 1.0 * own(x))) == 10.0
    own.defjvp(lambda xs, dxs: (xs[0], 20.0 * dxs[0]))
    assert repeated(lambda: slope(lambda x: 1.0 * own(x))) == 20.0


def test_what_a_jitted_function_reads_is_seen(planned: list[Any]) -> None:
    scale = 2.0

    @tracer.jit
    def compiled(x: Any, a: Any) -> Any:
        return x * a * scale

    def call(a: float) -> float:
        array = tnp.asarray(a)
        return slope(lambda x: compiled(x, array))

    assert repeated(lambda: call(3.0)) == 6.0
    assert call(4.0) == 8.0
    scale = 5.0
    assert repeated(lambda: call(3.0)) == 15.0
    assert planned


def test_functions_of_transforms_are_followed(planned: list[Any]) -> None:
    scale = 2.0

    def cubed(x: Any) -> Any:
        return scale * x**3

    derivative = tracer.grad(cubed)
    assert repeated(lambda: slope(lambda x: 1.0 * derivative(x))) == 36.0
    scale = 1.0
    assert repeated(lambda: slope(lambda x: 1.0 * derivative(x))) == 18.0
    assert planned


def test_settings_are_read_at_every_call() -> None:
    def call() -> Any:
        a = tnp.ones(3, dtype="float32")
        return tracer.vmap(lambda x: x * a + tnp.zeros(3))(np.ones((2, 3), np.float32)).dtype

    assert repeated(call) == "float64"
    with tracer.config.using(default_float="float32"):
        assert repeated(call) == "float32"
    assert repeated(call) == "float64"


def test_errors_are_those_of_the_call() -> None:
    messages = []
    for n in [1] * 8 + [12, 12]:
        i = tnp.asarray(n)
        try:
            tracer.grad(lambda x: x[i] * 2.0)(X)  # noqa: B023
        except OutOfBoundsError as error:
            messages.append(str(error))
    assert len(messages) == 2
    assert "index 12 is out of bounds for axis 0 with size 10, at test_families.py" in messages[0]


def test_results_are_new_handles() -> None:
    given = tnp.zeros(3)
    for _ in range(TIMES):
        result = tracer.vmap(lambda x: (given, x))(X)[0]
        result[0] = 9.0
    assert given.tolist() == [0.0, 0.0, 0.0]
