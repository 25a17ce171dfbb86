"""Times of operations on small arrays outside `jit`, one by one, beside NumPy, JAX and PyTorch.

    python benchmarks/eager.py                      all rows
    python benchmarks/eager.py --rows x[ --rounds 3

Nanoseconds a call from the second on, the minimum of alternating rounds, since other load can only add to it. `BUDGETS`
are the bars of a few rows. The gradient of `sum(sin(x)**2)` may take twice PyTorch's time, also where the function was
called once before: the median of its next calls is a line of its own. Peers run in processes of their own, by the
interpreters that JAX_PYTHON and TORCH_PYTHON name; absent ones are left out. Every row is one expression; the arrays
are 16 numbers, or 4 x 4, of f64. JAX's results are waited for.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import statistics
import subprocess
import sys
import timeit
from pathlib import Path
from typing import Any

PEERS = ("numpy", "jax", "torch")
BUDGETS = {
    "x + y": 1500.0, "np.sin(x)": 2500.0, "np.exp(x)": 2500.0, "x[2]": 4000.0, "x.sum()": 4000.0, "np.sum(x)": 4000.0,
    "x.reshape(4, 4)": 4000.0, "m @ m": 6000.0,
}  # fmt: skip
GRADIENT = "grad(smooth)(eight)"
EARLY_CALLS = "its calls from the second on"
BESIDE_TORCH = 2.0
WARM = 2  # calls: the first prepares, the second is as all later ones
SECONDS = 2e-3  # of one measurement
EARLY = 20  # calls of a new function, from the second on
PASSES = 3  # over all rows: what others do on the machine lasts longer than the rounds of one row

OPERATORS = (
    "x + y", "x - y", "x * y", "x / y", "x + 1.0", "1.0 - x", "x * 2", "x ** 2", "x // y", "x % y", "x @ y", "m @ m",
    "m + x[:4]", "-x", "+x", "abs(x)", "k & k", "k << 1", "~b", "b & b", "x == y", "x < y", "x > 3", "x != 1.0",
    "i + 1", "x + i", "x * f", "x * np_float", "np_float * x", "x + ndarray", "ndarray + x", "b + x", "m - x4[:, None]",
    "m / m.sum(axis=1, keepdims=True)", "s * s", "s ** 2", "x ** 0.5",
)  # fmt: skip
CONVERSIONS = (
    "round(s)",
    "complex(s)",
    "bool(s > 1)",
    "x.size",
    "x.tobytes()",
    "bool(s)",
    "float(s)",
    "int(s)",
    "s.item()",
    "x.item(3)",
    "len(x)",
    "x.shape",
    "x.dtype",
    "x.ndim",
)
INDICES = (
    "x[2]", "x[-1]", "x[i]", "x[np_int]", "m[1]", "m[1, 2]", "m[:, 1]", "m[1, :]", "x[1:]", "x[::2]", "x[::-1]",
    "m[1:3, 1:3]", "x[None]", "x[...]", "x[..., None]", "x[:, None]", "x[k]", "x[[3, 1]]", "x[b]", "m[k2]",
    "m[k2, k2]", "m[:, k2]", "float(x[2])", "x[2] + x[3]", "list(x)", "[v for v in x]", "m[i, 1]", "m[..., 0]",
    "m[::2, 1]", "x[x > 3]", "x[k].sum()", "x[-3:]", "t[0, 1, 2]", "t[:, 0]", "sum(x4)", "max(x4)",
)  # fmt: skip
WRITES = (
    "w[2] = 1.0", "w[2] = 7", "w[2] = s", "w[2] = np_float", "w[i] = 1.0", "w[1:3] = 0.5", "w[:] = y", "v[1, 2] = 1.0",
    "v[1] = x4", "v[:, 1] = x4", "w[b] = 0.0", "w[k] = 1.0", "w[2] += 1.0", "w[2] = w[3]",
    "x.at[2].set(1.0)", "x.at[1:3].set(0.5)", "x.at[i].set(1.0)", "x.at[k].set(1.0)", "x.at[2].add(1.0)",
    "m.at[1, 2].set(1.0)", "x.at[1:3].add(1.0)", "x.at[2].multiply(2.0)", "x.at[k].add(1.0)", "x.at[b].set(0.0)",
    "m.at[:, 1].set(0.0)", "m.at[1, 2].add(1.0)", "w[1:3] += 1.0", "w[k] += 1.0", "v[k2] = 0.0",
)  # fmt: skip
METHODS = (
    "x.sum()", "m.sum(axis=0)", "x.mean()", "x.std()", "x.var()", "x.max()", "x.min()", "x.prod()", "x.any()",
    "b.all()", "x.argmax()", "x.cumsum()", "x.astype('float32')", "x.astype(int)", "x.reshape(4, 4)",
    "x.reshape((4, 4))", "m.reshape(-1)", "m.ravel()", "m.flatten()", "m.T", "m.transpose()", "x.copy()", "x.round()",
    "x.clip(1, 3)", "x.squeeze()", "x.dot(y)", "x.sort()", "x.argsort()", "x.tolist()", "x.real", "m.diagonal()",
    "m.trace()", "x.take(k)", "x.repeat(2)", "m.swapaxes(0, 1)", "m.sum(axis=1)", "m.sum(axis=-1, keepdims=True)",
    "m.sum(dtype='float32')", "m.mean(axis=0)", "m.var(axis=0)", "m.std(axis=1)", "m.std(axis=0, ddof=1)",
    "m.max(axis=1)", "m.argmax(axis=1)", "m.cumsum(axis=1)", "(m > 1).all(axis=0)", "x.nonzero()", "x.compress(b)",
    "m.sort(axis=0)", "m.take(k2, axis=1)", "m.clip(0.0, None)", "x.reshape(4, -1)", "x.reshape(-1, 2, 4)",
    "x.astype(bool)", "f.astype(float)", "b.sum()", "k.mean()",
)  # fmt: skip
CREATION = (
    "np.zeros(3)", "np.zeros((4, 4))", "np.ones(3)", "np.full(3, 2.0)", "np.empty(3)", "np.arange(5)",
    "np.arange(0.0, 5.0)", "np.eye(3)", "np.linspace(0.0, 1.0, 5)", "np.zeros_like(x)", "np.ones_like(x)",
    "np.full_like(x, 2.0)", "np.asarray(1.0)", "np.asarray([1.0, 2.0, 3.0])", "np.array([1, 2, 3])",
    "np.array([[1.0, 2.0], [3.0, 4.0]])", "np.asarray(ndarray)", "np.array(ndarray)", "np.asarray(x)", "np.array(x)",
    "np.asarray([1.0, 2.0], dtype='float32')", "numpy.asarray(x)", "np.asarray(x, dtype='float32')",
    "np.asarray(ndarray, dtype='float32')", "np.array([1.0, 2.0], np.float32)", "np.array([1, 2, 3], dtype=float)",
    "np.array((1.0, 2.0))", "np.array([1, 2.5])", "np.array([True, False])", "np.array([s, s])",
    "np.array([np_float, np_float])", "np.array([[[1.0], [2.0]], [[3.0], [4.0]]])", "np.asarray(np_float)",
    "np.asarray(2.0, float)", "np.array(True)", "np.float32(1.0)", "np.int32(3)", "np.zeros((2, 3), dtype='float32')",
    "np.zeros_like(x, dtype=int)", "np.linspace(0, 1, 5)", "np.identity(3)", "np.copy(x)",
)  # fmt: skip
FUNCTIONS = (
    "np.sin(x)", "np.exp(x)", "np.sqrt(x)", "np.tanh(x)", "np.maximum(x, y)", "np.maximum(x, 0.0)", "np.add(x, y)",
    "np.where(b, x, y)", "np.where(x > 3, x, 0.0)", "np.clip(x, 0.0, 1.0)", "np.sum(x)", "np.mean(m, axis=1)",
    "np.dot(x, y)", "np.matmul(m, m)", "np.einsum('ij,jk->ik', m, m)", "np.outer(x, y)", "np.stack([x, y])",
    "np.concatenate([x, y])", "np.concatenate((x, y))", "np.hstack([x, y])", "np.vstack([x, y])",
    "np.expand_dims(x, 0)", "np.squeeze(x)", "np.reshape(x, (4, 4))", "np.transpose(m)", "np.broadcast_to(x, (2, 16))",
    "np.argmax(x)", "np.sort(x)", "np.argsort(x)", "np.cumsum(x)", "np.isnan(x)", "np.isfinite(x)", "np.all(b)",
    "np.allclose(x, y)", "np.array_equal(x, y)", "np.diff(x)", "np.take(x, k)", "np.roll(x, 1)", "np.flip(x)",
    "np.tile(x, 2)", "np.split(x, 2)", "np.linalg.norm(x)", "np.linalg.solve(m, x4)", "np.linalg.inv(m)",
    "np.cross(c, c)", "np.unique(k)", "np.nonzero(b)", "np.triu(m)", "np.diag(x)", "np.where(b, x, 0.0)", "np.where(b)",
    "np.linalg.norm(m)", "np.linalg.norm(m, axis=1)", "np.linalg.det(m)", "np.linalg.slogdet(m)",
    "np.linalg.cholesky(spd)", "np.linalg.solve(m, m)", "np.linalg.matrix_power(m, 2)", "np.einsum('ij,j->i', m, x4)",
    "np.einsum('i,i->', x, y)", "np.tensordot(m, m, axes=1)", "np.inner(x, y)", "np.vdot(x, y)", "np.sort(m, axis=0)",
    "np.searchsorted(x, y)", "np.take(m, k2, axis=0)", "np.clip(x, 0, 5)", "np.stack([x, y], axis=1)",
    "np.concatenate([m, m], axis=1)", "np.append(x, 1.0)", "np.split(x, 4)", "np.split(m, 2, axis=1)",
    "np.reshape(x, (4, -1))", "np.moveaxis(m, 0, 1)", "np.broadcast_arrays(x, s)", "np.meshgrid(x4, x4)",
    "np.pad(x, 1)", "np.mean(m, axis=0)", "np.var(m, axis=0)", "np.std(m, axis=0)", "np.median(x)",
    "np.percentile(x, 50)", "np.average(x, weights=y)", "np.cov(m)", "np.sum(x, dtype=float)",
    "np.sum(m, axis=0, keepdims=True)", "np.cumprod(x)", "np.count_nonzero(b)", "np.nanmean(x)", "np.isclose(x, y)",
    "np.sign(x)", "np.abs(x)", "np.floor(x)", "np.log(y)", "np.arctan2(x, y)", "np.mod(x, 3)", "np.divmod(x, 3)",
    "np.logical_and(b, b)", "np.greater(x, 3.0)", "np.select([b, ~b], [x, y])", "np.interp(y, x, y)",
    "np.polyval(x4, 2.0)", "np.convolve(x, x4)", "np.gradient(x)", "np.bincount(k)", "np.histogram(x, bins=4)",
    "np.digitize(x, y)", "np.flatnonzero(b)", "np.tril(m)", "np.isin(k, k2)", "np.fft.fft(x)", "np.delete(x, 0)",
    "numpy.sin(x)", "numpy.sum(x)", "numpy.concatenate([x, y])",
)  # fmt: skip
RANDOM = ("random.normal(key, (3,))", "random.uniform(key, (3,))", "random.split(key)", "random.fold_in(key, 1)")
TREES = ("tree.leaves(tree_of)", "tree.map(abs, tree_of)")
DERIVATIVES = (  # of functions made anew, methods, and what has to run every time
    GRADIENT, "grad(smooth)(x)", "grad(lambda v: np.sum(np.sin(v) ** 2))(x)",
    "grad(lambda v: np.sum((m @ v - x4) ** 2))(x4)",
    "grad(lambda v, c=float(x[2]): np.sum(np.sin(v * c)))(x)", "grad(model.loss)(x4)", "grad(model.trained)(x4)",
    "grad(noting)(x)", "vmap(lambda v: 2.0 * np.sin(v))(x)", "jacfwd(lambda v: np.sin(v) ** 2)(x)",
    "hessian(lambda v: np.sum(np.sin(v) ** 2))(x4)",
)  # fmt: skip
ROWS = (*OPERATORS, *CONVERSIONS, *INDICES, *WRITES, *METHODS, *CREATION, *FUNCTIONS, *RANDOM, *TREES, *DERIVATIVES)

IN_TORCH = {
    "np.array(ndarray)": "np.tensor(ndarray)", "np.array(x)": "x.clone()", "x.copy()": "x.clone()",
    "x.astype('float32')": "x.to(np.float32)", "x.astype(int)": "x.to(np.int64)", "m.transpose()": "m.t()",
    "np.transpose(m)": "m.t()", "x.item(3)": "x[3].item()", "x.std()": "x.std(correction=0)",
    "x.var()": "x.var(correction=0)", "np.sort(x)": "np.sort(x)[0]", "x.sort()": "x.sort()[0]",
    "np.broadcast_to(x, (2, 16))": "np.broadcast_to(x, (2, 16))", "np.flip(x)": "np.flip(x, (0,))",
    "np.split(x, 2)": "np.split(x, 8)", "np.cumsum(x)": "np.cumsum(x, 0)", "x.cumsum()": "x.cumsum(0)",
    "np.asarray([1.0, 2.0], dtype='float32')": "np.asarray([1.0, 2.0], dtype=np.float32)",
    "np.array([1, 2, 3])": "np.tensor([1, 2, 3])", "m.sum(axis=0)": "m.sum(dim=0)",
    "np.mean(m, axis=1)": "m.mean(dim=1)",
    "np.array([[1.0, 2.0], [3.0, 4.0]])": "np.tensor([[1.0, 2.0], [3.0, 4.0]])",
    "np.array_equal(x, y)": "np.equal(x, y)",
    "np.concatenate([x, y])": "np.cat([x, y])", "np.concatenate((x, y))": "np.cat((x, y))",
    "np.expand_dims(x, 0)": "x.unsqueeze(0)", "x.repeat(2)": "x.repeat_interleave(2)",
    "random.normal(key, (3,))": "np.randn(3)", "random.uniform(key, (3,))": "np.rand(3)",
    "np.maximum(x, 0.0)": "np.clamp_min(x, 0.0)", "np.eye(3)": "np.eye(3)", GRADIENT: "gradient(eight)",
}  # fmt: skip


def arrays(np: Any, make: Any) -> dict[str, Any]:
    """The names that rows use: of arrays of the namespace."""
    numpy = importlib.import_module("numpy")
    x = numpy.arange(16.0)
    m = numpy.linspace(0.1, 2.0, 16).reshape(4, 4) + 3.0 * numpy.eye(4)
    values = {
        "eight": x[:8] / 8, "x": x, "y": x + 0.5, "m": m, "x4": x[:4].copy(), "s": numpy.array(2.0),
        "i": numpy.array(3), "k": numpy.array([3, 1, 0, 2]), "k2": numpy.array([2, 0]), "b": x > 3, "w": x.copy(),
        "v": m.copy(), "c": x[:3].copy(), "f": x.astype("f4"), "t": numpy.arange(24.0).reshape(2, 3, 4), "spd": m @ m.T,
    }  # fmt: skip
    made = {name: make(value) for name, value in values.items()}
    return {"np": np, "numpy": numpy, "ndarray": x, "np_int": numpy.int64(3), "np_float": numpy.float64(2.5)} | made


def names_of(peer: str) -> dict[str, Any]:
    """What the expressions are evaluated in."""
    if peer == "torch":
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)

        def gradient(v: Any) -> Any:
            v = v.detach().requires_grad_()
            return torch.autograd.grad(torch.sum(torch.sin(v) ** 2), v)[0]

        return arrays(torch, torch.tensor) | {"gradient": gradient}
    if peer == "numpy":
        numpy = importlib.import_module("numpy")
        return arrays(numpy, numpy.array)
    root = importlib.import_module(peer)
    if peer == "jax":
        root.config.update("jax_enable_x64", True)
    np = importlib.import_module(f"{peer}.numpy")
    random = importlib.import_module(f"{peer}.random")
    found = arrays(np, np.asarray) | {"random": random, "key": random.key(0), "wait": root.block_until_ready}
    found |= {name: getattr(root, name) for name in ("grad", "vmap", "jacfwd", "hessian", "tree")}
    return found | functions(np, found)


def functions(np: Any, names: dict[str, Any]) -> dict[str, Any]:
    """The functions that are differentiated, and a tree."""
    log: list[float] = []

    def smooth(v: Any) -> Any:
        return np.sum(np.sin(v) ** 2)

    def noting(v: Any) -> Any:
        log.append(1.0)
        return np.sum(np.sin(v) ** 2)

    class Model:
        """An object whose loss is differentiated, and that is trained between calls."""

        def __init__(self, m: Any, target: Any) -> None:
            self.m, self.target, self.shift = m, target, 0.0 * target

        def loss(self, v: Any) -> Any:
            return np.mean((self.m @ v + self.shift - self.target) ** 2)

        @property
        def trained(self) -> Any:
            self.shift = self.shift + 1.0
            return self.loss

    tree = {"w": names["m"], "b": names["x4"], "c": [names["x"], names["y"]]}
    return {"smooth": smooth, "noting": noting, "model": Model(names["m"], names["x4"]), "tree_of": tree}


class Bench:
    """One peer's rows."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.names = names_of(peer)
        self.timers: dict[str, tuple[timeit.Timer, int]] = {}

    def prepare(self, row: str) -> bool:
        """Make ready to measure a row; whether the peer has it."""
        text = IN_TORCH.get(row, row) if self.peer == "torch" else row
        if self.peer == "jax" and "=" not in row.replace("==", "").replace("!=", ""):
            text = f"wait({text})"
        timer = timeit.Timer(text, globals=self.names)
        try:
            taken = timer.timeit(WARM if self.peer == "tracer" else 20)
            taken = timer.timeit(20) / 20
        except Exception:  # whatever a peer says where it does not have something
            return False
        self.timers[row] = (timer, max(3, int(SECONDS / taken)))
        return True

    def time(self, row: str) -> float:
        """Nanoseconds a call."""
        timer, count = self.timers[row]
        return timer.timeit(count) / count * 1e9

    def early(self, row: str) -> float:
        """Nanoseconds of a call among the first from the second on, of functions that were not called before."""
        timer = timeit.Timer(row, globals=self.names | functions(self.names["np"], self.names))
        timer.timeit(1)
        return statistics.median(timer.repeat(EARLY, 1)) * 1e9


def work(peer: str) -> int:
    """A peer's process: a request a line, an answer a line."""
    bench = Bench(peer)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, _, row = line.rstrip("\n").partition(" ")
        print(float(getattr(bench, verb)(row)), flush=True)
    return 0


class Peer:
    """A peer's process, seen from here."""

    def __init__(self, name: str) -> None:
        python = os.environ.get(f"{name.upper()}_PYTHON", sys.executable)
        path = {"PYTHONPATH": str(Path(__file__).resolve().parents[1])} if name == "tracer" else {}
        self.process = subprocess.Popen(
            [python, __file__, "--peer", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=None if name == "tracer" else subprocess.DEVNULL, env={**os.environ, **path},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.is_there = self.process.stdout.readline() == "ready\n"

    def ask(self, verb: str, row: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{verb} {row}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.communicate()


def measure(rows: list[str], names: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Nanoseconds by row and peer."""
    peers = {name: Peer(name) for name in names}
    peers = {name: peer for name, peer in peers.items() if peer.is_there}
    found: dict[str, dict[str, float]] = {row: {} for row in rows}
    for row in rows * PASSES:
        times = found[row]
        has = [name for name, peer in peers.items() if peer.ask("prepare", row)]
        for name in has * rounds:
            times[name] = min(peers[name].ask("time", row), times.get(name, math.inf))
            if row == GRADIENT and name == "tracer":
                times[EARLY_CALLS] = min(peers[name].ask("early", row), times.get(EARLY_CALLS, math.inf))
    for peer in peers.values():
        peer.stop()
    return found


def bar_of(row: str, times: dict[str, float]) -> float:
    """Return the nanoseconds that our call may take."""
    if row == GRADIENT:
        return BESIDE_TORCH * times.get("torch", math.inf)
    return BUDGETS.get(row, math.inf)


def main() -> int:
    """Measure and print; returns 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[""], help="parts of rows' texts")
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3, help="of each pass")
    parser.add_argument("--peer", help="for the processes of peers")
    asked = parser.parse_args()
    if asked.peer:
        return work(asked.peer)
    rows = [row for row in ROWS if any(part in row for part in asked.rows)]
    names = ["tracer", *asked.peers]
    print(f"{'nanoseconds a call':<42}" + "".join(f"{name:>10}" for name in names))
    missed = 0
    for row, times in measure(rows, names, asked.rounds).items():
        bar = bar_of(row, times)
        over = max(times.get("tracer", 0.0), times.get(EARLY_CALLS, 0.0)) > bar
        missed += over
        figures = "".join(f"{times[name]:>10.0f}" if name in times else f"{'-':>10}" for name in names)
        said = "" if bar == math.inf else f"   budget {bar:.0f}{'  MISSED' * over}"
        print(f"{row:<42}{figures}{said}")
        if EARLY_CALLS in times:
            print(f"  {EARLY_CALLS:<40}{times[EARLY_CALLS]:>10.0f}")
    print(f"{missed} rows are above their budget")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
