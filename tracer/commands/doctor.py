"""`python -m tracer doctor`: versions, processor, caches, GPU, and a test of the main features, in some seconds."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.toolchain import target
from tracer.commands.cache import folders
from tracer.commands.gpu import why_no_cuda

_NEEDED: Final = ("numpy", "llvmlite", "ml_dtypes", "opt_einsum", "optree", "scipy")
_OPTIONAL: Final = ("cupy-cuda13x", "cupy-cuda12x", "nvidia-cuda-nvrtc", "matplotlib", "jax", "torch")
_CLOSE: Final = 1e-12


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="show versions, processor, caches and GPU, and test the installation",
        description="Show versions, processor, caches and GPU, then test the installation for some seconds.",
    )
    parser.add_argument("--no-test", action="store_true", help="show, and test nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report. Returns the exit status: 1 where a test fails."""
    for section, lines in (("versions", _versions()), ("processor", _processor()), ("caches", _caches())):
        _show(section, lines)
    found = why_no_cuda() or "found by CuPy, on which no kernel was tried yet"
    _show("GPU", [line.strip() for line in found.splitlines()])
    if options.no_test:
        return 0
    outcomes = [_tried(name, test) for name, test in _TESTS.items()]
    _show("tests", [line for _, line in outcomes])
    return 0 if all(passed for passed, _ in outcomes) else 1


def _show(section: str, lines: Iterator[str] | list[str]) -> None:
    for i, line in enumerate(lines):
        print(f"{section if i == 0 else '':<10} {line}")


def _versions() -> Iterator[str]:
    yield f"tracer {_version('tracer')}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield ", ".join(f"{name} {_version(name)}" for name in _NEEDED)
    optional = [f"{name} {version}" for name in _OPTIONAL if (version := _version(name)) != "missing"]
    yield ", ".join(optional) if optional else "none of the optional packages"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _processor() -> Iterator[str]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"{target.llvm().get_host_cpu_name()}, {usable} cores usable of {os.cpu_count()}"
    features = sorted(name for name, has in target.features(target.preferred_bits()) if has)
    shown = [name for name in features if name.startswith(("avx", "amx", "fma", "sve", "neon", "f16c"))]
    yield f"vectors of {target.preferred_bits()} bits: {', '.join(shown) or 'no extensions'}"


def _caches() -> Iterator[str]:
    found = [str(shown) for shown, _ in folders()]
    yield from found or ["no folder is in use: set config.cache_dir to keep compiled programs"]


# -- tests -----------------------------------------------------------------------------------------------


def _tried(name: str, test: Callable[[], float]) -> tuple[bool, str]:
    """Return whether a test passed, and its line. A failure of any kind is a line of the report."""
    start = time.perf_counter()
    try:
        error = test()
    except Exception as problem:  # the user asks for any fault of the installation
        return False, f"FAILED  {name}: {type(problem).__name__}: {problem}"
    took = time.perf_counter() - start
    passed = error <= _CLOSE
    return passed, f"{'ok    ' if passed else 'FAILED'}  {name}, {took:.1f} s, off by {error:.1e}"


def _elementwise() -> float:
    import tracer.numpy as tnp  # noqa: PLC0415  # the report comes before an import that may fail
    from tracer import jit  # noqa: PLC0415

    x = np.linspace(-3, 3, 100_000)
    return float(np.abs(np.asarray(jit(lambda x: tnp.tanh(x) * x)(x)) - np.tanh(x) * x).max())


def _gradient_of_a_loop() -> float:
    from tracer import grad, jit, lax  # noqa: PLC0415

    def power(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]

    return abs(float(jit(grad(power))(1.5)) - 5 * 1.5**4)


def _linear_algebra() -> float:
    import tracer.numpy as tnp  # noqa: PLC0415
    from tracer import jit  # noqa: PLC0415

    a = np.random.default_rng(0).standard_normal((200, 200)) + 20 * np.eye(200)
    return float(np.abs(np.asarray(jit(tnp.linalg.solve)(a, a @ np.ones(200))) - 1).max())


def _threads() -> float:
    import tracer.numpy as tnp  # noqa: PLC0415
    from tracer import config, jit  # noqa: PLC0415

    x = np.random.default_rng(0).standard_normal(2_000_000)
    work = jit(lambda x: tnp.sum(tnp.sin(x)))
    with config.using(threads=1):
        alone = float(work(x))
    return abs(alone - float(work(x)))


_TESTS: Final[dict[str, Callable[[], float]]] = {
    "elementwise functions beside NumPy's": _elementwise,
    "the derivative of a loop beside its formula": _gradient_of_a_loop,
    "a linear system beside its solution": _linear_algebra,
    "one thread beside all of them": _threads,
}
