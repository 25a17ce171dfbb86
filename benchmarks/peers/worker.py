"""One peer in a process of its own: it does what it is told on stdin, a JSON object a line, and answers on stdout.

    {"do": "prepare", "row": NAME, "answer": FILE}  make, call once, keep the answer -> first call, peak memory
    {"do": "time", "seconds": S}                    call for about so long -> seconds a call
    {"do": "version"}                               -> the peer's version
Between requests it waits for the next line, and it answers when all its threads are at rest, so that two workers never
run at once.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from peers import memory
from peers.catalogue import ROWS
from peers.row import Row, World

Call = Callable[[], Any]
_PAUSE = 0.005  # seconds, of which a thread that spins takes all
_LONGEST = 1.0
_SET: set[str] = set()


def _module(name: str) -> Any:
    return importlib.import_module(name)


def world(peer: str) -> World:
    """The peer's namespaces."""
    match peer:
        case "tracer":
            root, special = _module("tracer"), _module("tracer.scipy.special")
            return World(peer, _module("tracer.numpy"), root.lax, root.random, root.nn, special, root)
        case "jax":
            root, special = _module("jax"), _module("jax.scipy.special")
            root.config.update("jax_enable_x64", True)
            return World(peer, _module("jax.numpy"), root.lax, root.random, root.nn, special, root)
        case "numpy":
            return World(peer, np, special=_module("scipy.special"))
        case "numba":
            return World(peer, np, root=_module("numba"))
        case "torch":
            torch = _module("torch")
            return World(peer, torch, nn=torch.nn.functional, special=torch.special)
        case _:
            raise SystemExit(f"no peer {peer!r}")


def wake(w: World) -> None:
    """Have the peer load its compiler, so that no row's first call pays for that; `first_call.py` measures it."""
    x = np.ones(8, np.float32)
    if w.name in ("tracer", "jax"):
        w.root.block_until_ready(w.root.jit(lambda v: v + 1)(w.np.asarray(x)))
    elif w.name == "numba":
        w.root.njit(lambda v: v + 1)(x)


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, list | tuple):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree]


def _mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _mapped(function, part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_mapped(function, part) for part in tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return type(tree)(*(_mapped(function, getattr(tree, field.name)) for field in dataclasses.fields(tree)))
    return function(tree)


def _set(config: Any, settings: Mapping[str, Any]) -> None:
    """A row's settings, and those of former rows as they were."""
    for name in _SET - set(settings):
        config.update(name, getattr(type(config), name).default)
    for name, value in settings.items():
        config.update(name, value)
    _SET.update(settings)


def make_call(w: World, row: Row, arguments: Sequence[Any]) -> Call:
    """A blocking call of the row."""
    maker = row.maker(w.name)
    assert maker is not None
    function = maker(w)
    if w.name in ("numpy", "numba"):
        return lambda: function(*arguments)
    if w.name == "torch":
        tensors = [_mapped(w.np.as_tensor, argument) for argument in arguments]
        return lambda: function(*tensors)
    if w.name == "tracer":
        _set(w.root.config, row.settings)
    function = w.root.jit(function)
    on_device = [_mapped(w.np.asarray, argument) for argument in arguments]
    if w.name == "jax":
        w.root.block_until_ready(on_device)  # no call waits for copies of its arguments, or is charged for them
        return lambda: w.root.block_until_ready(function(*on_device))
    return lambda: function(*on_device)


def _give_back(w: World) -> None:
    """What the peer keeps of freed results, where it has a pool of its own."""
    if w.name == "tracer":
        _module("tracer.runtime.native.result_pool").release_kept()


def prepare(w: World, row: Row, answer: str) -> tuple[Call, dict[str, Any]]:
    """The call, its answer in a file, and what the first call cost."""
    arguments = row.arguments()
    call = make_call(w, row, arguments)
    base = memory.count_from_now(lambda: _give_back(w))
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    peak = memory.peak()
    leaves = [np.asarray(leaf) for leaf in _leaves(result)]
    np.savez(answer, *leaves)
    size = sum(leaf.nbytes for leaf in leaves)
    del result, leaves
    memory.count_from_now(lambda: _give_back(w))
    call()
    return call, {"first": first, "peak": max(peak - base, memory.peak() - base, size)}


def seconds_a_call(call: Call, seconds: float) -> float:
    """The least time of one call among those that fit into the time given: disturbances only add."""
    best, spent, repeats = float("inf"), 0.0, 1
    while spent < seconds:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        taken = time.perf_counter() - start
        spent += taken
        best = min(best, taken / repeats)
        if taken < 1e-4:
            repeats *= 4
    return best


def come_to_rest() -> None:
    """Wait until no thread of this process works.

    Threads of OpenBLAS spin behind a product for some 0.14 s, those of OpenMP for less, on cores that others want.
    """
    end = time.perf_counter() + _LONGEST
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(_PAUSE)
        if time.process_time() - before < _PAUSE / 10:
            return


def main() -> None:
    """Serve until stdin closes."""
    answers, sys.stdout = sys.stdout, sys.stderr
    w = world(sys.argv[1])
    wake(w)
    rows = {row.name: row for row in ROWS}
    call: Call = lambda: None  # noqa: E731
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["do"] == "prepare":
                call, reply = prepare(w, rows[asked["row"]], asked["answer"])
            elif asked["do"] == "version":
                reply = {"version": getattr(w.root or w.np, "__version__", "")}
            else:
                reply = {"seconds": seconds_a_call(call, asked["seconds"])}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        come_to_rest()
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
