"""Manifests: with the text enough to run a program, by a small host that knows nothing of loop IR."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax
from tracer.runtime.cuda.simulator.kernels import built
from tracer.runtime.cuda.simulator.memory import DeviceMemory, copy

X = np.linspace(0.1, 2.0, 12).reshape(3, 4)
_NAMES = {"f16": "u2", "bf16": "u2", "bool": "u1"}  # stored as their bits


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(_NAMES.get(name) or f"{name[0]}{int(name[1:]) // 8}")


class Host:
    """Interpreter of a manifest's steps on the simulator."""

    def __init__(self, text: str, manifest: dict[str, Any], inputs: list[Any]) -> None:
        self.kernels, self.of = built(text), manifest
        self.registers: dict[str, Any] = {}
        self.stacks: list[list[DeviceMemory]] = [[] for _ in range(manifest["stacks"])]
        given, slab = iter(inputs), DeviceMemory.empty(manifest["slab"], np.uint8)
        self.record = DeviceMemory.holding(np.frombuffer(bytes.fromhex(manifest["faults"]["initial"]), np.uint64))
        self.memory: dict[str, DeviceMemory] = {}
        for p in manifest["parameters"]:
            if p["kind"] == "output":
                self.memory[p["name"]] = DeviceMemory.empty(p["bytes"], np.uint8)
            else:
                data = base64.b64decode(p["base64"]) if "base64" in p else next(given).tobytes()
                self.memory[p["name"]] = DeviceMemory.holding(np.frombuffer(data, np.uint8))
        for name, slot in manifest["slots"].items():
            self.memory[name] = slab[slot["offset"] : slot["offset"] + slot["bytes"]]
        self.dtypes = {p["name"]: _dtype(p["dtype"]) for p in manifest["parameters"]}
        self.dtypes |= {name: _dtype(slot["dtype"]) for name, slot in manifest["slots"].items()}
        self.run(manifest["steps"])

    def outputs(self) -> list[Any]:
        found = [p for p in self.of["parameters"] if p["kind"] == "output"]
        return [self.memory[p["name"]].get().view(_dtype(p["dtype"])) for p in found]

    def address(self, address: dict[str, Any]) -> int:
        return address["constant"] + sum(int(self.registers[r]) * factor for r, factor in address["terms"])

    def view(self, view: dict[str, Any], count: int | None = None) -> DeviceMemory:
        dtype, first = self.dtypes[view["buffer"]], self.address(view["start"])
        typed = self.memory[view["buffer"]].view(dtype)
        return typed[first : typed.size if count is None else first + count]

    def value(self, operand: Any) -> Any:
        if isinstance(operand, str):
            return self.registers[operand]
        return np.frombuffer(bytes.fromhex(operand["constant"]), _dtype(operand["dtype"]))[0]

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            getattr(self, step["do"])(step)

    def invoke(self, step: dict[str, Any]) -> None:
        kernel = self.of["kernels"][step["function"]]
        given: list[Any] = []
        for a, p in zip(step["arguments"], kernel["parameters"], strict=not step["stacks"]):
            given.append(self.view(a).view(_dtype(p["dtype"])) if p["pointer"] else self.value(a))
        if step["stacks"]:
            self.on_stacks(step, kernel, given)
        elif kernel["grid"]:
            self.launch(step["function"], kernel, given)

    def launch(self, name: str, kernel: dict[str, Any], given: list[Any]) -> None:
        record = [self.record] if kernel["fault_record"] else []
        self.kernels.launch(name, kernel["grid"], kernel["block"], [*given, *record])

    def copy(self, step: dict[str, Any]) -> None:
        copy(self.view(step["target"], step["count"]), self.view(step["source"], step["count"]))

    def load(self, step: dict[str, Any]) -> None:
        view = {"buffer": step["buffer"], "start": step["address"]}
        self.registers[step["result"]] = self.view(view, 1).get()[0]

    def store(self, step: dict[str, Any]) -> None:
        view = {"buffer": step["buffer"], "start": step["address"]}
        copy(
            self.view(view, 1), DeviceMemory.holding(np.array([self.value(step["value"])], self.dtypes[step["buffer"]]))
        )

    def leave(self, step: dict[str, Any]) -> None:
        assert self.record.get()[0] == (1 << 64) - 1, "a fault"

    def __getattr__(self, name: str) -> Any:
        return {"while": self._while, "if": self._if, "for": self._for}[name]

    def _for(self, step: dict[str, Any]) -> None:
        for index in range(int(self.value(step["start"])), int(self.value(step["stop"])), step["step"]):
            self.registers[step["index"]] = index
            self.run(step["body"]["steps"])

    def _while(self, step: dict[str, Any]) -> None:
        self.run(step["condition"]["steps"])
        while self.value(step["condition"]["yields"][0]):
            self.run(step["body"]["steps"])
            self.run(step["condition"]["steps"])

    def _if(self, step: dict[str, Any]) -> None:
        self.run(step["then" if self.value(step["predicate"]) else "otherwise"]["steps"])

    # Stacks: items that reverse loops keep, in memory that kernels share

    def on_stacks(self, step: dict[str, Any], kernel: dict[str, Any], given: list[Any]) -> None:
        """Launch a kernel on stacks, again while it may have ended for lack of room."""
        *memory, _ = kernel["parameters"][len(given) :]
        while True:
            sizes, held = [], []
            for use in step["stacks"]:
                stack, rounds = self.stacks[use["stack"]], 1 if use["rounds"] is None else self.value(use["rounds"])
                room = len(stack) + max(use["room"] * int(rounds), len(stack))
                held.append(DeviceMemory.empty(room * use["size"], np.uint8))
                for n, item in enumerate(stack):
                    copy(held[-1][n * use["size"] : (n + 1) * use["size"]], item)
                sizes += [len(stack), room]
            lengths = DeviceMemory.holding(np.array(sizes))
            typed = [x.view(_dtype(p["dtype"])) for x, p in zip(held, memory, strict=True)]
            self.launch(step["function"], kernel, [*given, *typed, lengths])
            is_full = False
            for use, x, length, room in zip(step["stacks"], held, lengths.get()[::2], sizes[1::2], strict=True):
                self.stacks[use["stack"]] = [x[n * use["size"] : (n + 1) * use["size"]] for n in range(length)]
                is_full |= use["rounds"] is None and length + use["room"] > room
            if not is_full:
                return

    def stackreset(self, step: dict[str, Any]) -> None:
        self.stacks[step["stack"]].clear()


def softmax(x: Any) -> Any:
    e = tnp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def doubled(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0].sum() < 100, lambda c: (1.5 * c[0] + tnp.sin(c[0]), c[1] + 1), (x, 0))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "constants and checked indices": lambda x: x[:, np.array([3, 0, 2])] * np.arange(3.0),
    "indices that are computed": lambda x: x[x.astype(int)[0], 1],
    "while": doubled,
    "gradient of while": grad(lambda x: doubled(x)[0].sum()),
    "scan": lambda x: lax.scan(lambda c, row: (tnp.sin(c + row.sum()), c * row), 0.5, x),
    "cond": lambda x: lax.cond(x.sum() > 3, lambda x: 2.0 * x, lambda x: -x, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_and_manifest_are_enough_to_run_a_program(name: str) -> None:
    function = PROGRAMS[name]
    source = jit(function).lower(X).cuda()
    assert source.complete
    given = json.loads(json.dumps(source.manifest()))
    for got, wanted in zip(Host(str(source), given, [X]).outputs(), tracer.tree.leaves(function(X)), strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted).ravel(), rtol=1e-12)


def test_the_source_tells_resources_and_traffic() -> None:
    source = jit(lambda x: 2.0 * x + 1.0).lower(tracer.ShapeDtypeStruct((1000,), "float32")).cuda("sm_80")
    (name,) = source.manifest()["kernels"]
    assert source.manifest()["arch"] == "sm_80"
    assert (source.resources()[name].stack, source.resources()[name].spill_stores) == (0, 0)
    assert source.traffic()[name].distinct == 2 * 4 * 1000


def test_a_loop_adds_up_the_traffic_of_its_iterations() -> None:
    many = np.tile(X, (20, 100)) / 1e4  # more elements than one block takes
    source, iterations = jit(doubled).lower(many).cuda(), int(doubled(many)[1])
    condition = many.nbytes + 5 * 8  # reads x, and writes the sums of its chunks
    assert max(c.distinct for c in source.traffic().values()) == (iterations + 1) * condition
