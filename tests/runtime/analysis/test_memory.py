"""`f.lower(x).memory()` is what a call takes: measured in processes of their own, where the system tells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH
from tracer import lax

ROOT = Path(__file__).resolve().parents[3]
FORK = """
import gc, json, os, sys, traceback
import numpy as np, tracer, tracer.numpy as tnp
from tracer import lax

tracer.jit(lambda x: 2.0 * x).lower(np.ones(10)).compile()
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            exec(json.loads(line))
        except BaseException:
            print("failed", json.dumps(traceback.format_exc()))
        sys.stdout.flush()
        os._exit(0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        print("failed", code, flush=True)
"""
"""Program of a process that has the compiler and has called nothing: a child of it runs each line of its input."""

MEASURE = """
def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(name)))

{setup}
{compiled}
tracer.jit(lambda x: 2.0 * x)(np.ones(10**6))  # threads have memory of their own
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
result = compiled(*args)
took = status("VmHWM") - before
memory = tracer.jit(f).lower(*args).memory()
print(took, {predicted})
"""
CALLS = {
    "elementwise": "f, args = lambda x: x * x + 2.0 * x, [np.ones(8_000_000)]",
    "every second element": "f, args = lambda x: 2.0 * x, [np.ones(16_000_000)[::2]]",
    "columns first": "f, args = lambda x: x @ x, [np.ones((2400, 2400)).T]",
    "softmax": "f, args = tracer.nn.softmax, [np.ones((2500, 2500))]",
    "argsort": "f, args = tnp.argsort, [np.random.default_rng(0).random(4_000_000)]",
    "products": "f, args = lambda x: tnp.sin(x @ x) @ x, [np.ones((2000, 2000))]",
    "convolution": """
f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")
args = [np.ones((8, 16, 256, 256), np.float32), np.ones((32, 16, 3, 3), np.float32)]
""",
    "gradient of a scan": """
f = tracer.grad(lambda x: lax.scan(lambda c, t: (tnp.sin(c), None), x, None, length=100)[0].sum())
args = [np.ones(100_000)]
""",
}
FACTORED = {
    "solve": "f, args = tnp.linalg.solve, [np.eye(1800) + 1e-3, np.ones((1800, 1800))]",
    "solve of one side": "f, args = tnp.linalg.solve, [np.eye(2600) + 1e-3, np.ones(2600)]",
    "solve in c128": "f, args = tnp.linalg.solve, [np.eye(1500) + 1e-3j, np.ones((1500, 1500))]",
    "inv": "f, args = tnp.linalg.inv, [np.eye(1800) + 1e-3]",
    "det": "f, args = tnp.linalg.det, [np.eye(2600) + 1e-3]",
    "cholesky": "f, args = tnp.linalg.cholesky, [np.eye(2000) + 1e-3]",
    "cholesky of a stack": "f, args = tnp.linalg.cholesky, [np.eye(8) + np.zeros((110_000, 1, 1))]",
    "gradient of solve": """
f = tracer.grad(lambda a, b: tnp.linalg.solve(a, b).sum())
args = [np.eye(1500) + 1e-3, np.ones((1500, 1500))]
""",
}
LOOP = """
def f(x, n):
    def step(state):
        return state[0] + 1, tnp.sin(state[1])
    return lax.while_loop(lambda state: state[0] < n, step, (0, x))[1].sum()
f = tracer.grad(f)
args = [np.ones(100_000), 700]
"""


CODE = 4 << 20  # pages that `once` counts, of which the system may have mapped more than were asked for
AHEAD = "compiled = tracer.jit(f).lower(*args).compile()"


Measure = Callable[..., tuple[int, int]]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measure]:
    """Function to the growth of a fresh process's peak in one call, and the prediction, in bytes."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell the memory of a process")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", FORK], cwd=ROOT, text=True, **pipes) as process:

        def measure(setup: str, predicted: str, compiled: str = AHEAD) -> tuple[int, int]:
            program = MEASURE.format(setup=setup, predicted=predicted, compiled=compiled)
            print(json.dumps(program), file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert re.fullmatch(r"-?\d+ \d+\n", answer), answer
            took, said = map(int, answer.split())
            return took, said

        yield measure


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_what_was_predicted(name: str, measured: Measure) -> None:
    took, said = measured(CALLS[name], "memory.peak - memory.arguments")
    assert said > 50e6
    assert took == pytest.approx(said, rel=0.05)


@pytest.mark.parametrize("name", FACTORED)
def test_a_call_of_linear_algebra_takes_what_was_predicted(name: str, measured: Measure) -> None:
    took, said = measured(FACTORED[name], "memory.peak - memory.arguments")
    assert said > 50e6
    assert took == pytest.approx(said, rel=0.05)


@pytest.mark.parametrize("name", [name for name in FACTORED if "c128" not in name][:: 1 if THOROUGH else 3])
def test_a_first_call_takes_what_was_predicted_with_the_libraries(name: str, measured: Measure) -> None:
    took, said = measured(FACTORED[name], "memory.first - memory.arguments", "compiled = tracer.jit(f)")
    assert said > 50e6
    assert took == pytest.approx(said, rel=0.05, abs=CODE)


def test_a_loop_of_unknown_length_takes_what_was_predicted(measured: Measure) -> None:
    took, said = measured(LOOP, "memory.after(700) - memory.arguments")
    assert said > 560e6
    assert took == pytest.approx(said, rel=0.06)  # and up to 32 MiB, which C's realloc copies once


def test_growth_names_loops_within_loops() -> None:
    def inner(n: object, x: object) -> object:
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, tnp.sin(s[1])), (0, x))[1]

    def f(x: object) -> object:
        step = lambda s: (s[0] + 1, inner(s[0], s[1]))  # noqa: E731
        return lax.while_loop(lambda s: s[1].sum() < 9.0, step, (0, x))[1].sum()

    memory = tracer.jit(tracer.grad(f)).lower(tnp.ones(1000)).memory()
    assert [growth.loop.split()[0] for growth in memory.growth] == ["while_loop", "while_loop"]
    assert [growth.bytes for growth in memory.growth] == [8008, 8000]
    assert memory.after(10) == memory.peak + 10 * 16008


def test_a_limited_loop_takes_its_limit() -> None:
    def f(x: object) -> object:
        return lax.while_loop(lambda y: y.sum() < 9.0, lambda y: 2.0 * y, x, memory=10**6).sum()

    memory = tracer.jit(tracer.grad(f)).lower(tnp.ones(1000)).memory()
    assert (memory.limit, memory.growth) == (10**6, ())
    assert "limit            1,000,000 B" in str(memory)
