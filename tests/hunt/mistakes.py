"""The hunt for bad input that ends in other errors than the project's: texts, settings, memory, shapes, objects."""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.hunt import drawing
from tests.hunt.calls import Outcome
from tests.hunt.drawing import Hole
from tests.laws import test_program_text
from tests.laws.programs import draw_program
from tracer import config, errors
from tracer.ir.check import check_program
from tracer.ir.text import program_text
from tracer.settings import Config, gate


class Hostile:
    """An object whose every use fails, as those of other libraries may."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def _fail(self, *_: Any) -> Any:
        raise self.error("hostile")

    __array__ = __len__ = __iter__ = __index__ = __float__ = __int__ = __bool__ = __getitem__ = _fail

    def __repr__(self) -> str:
        return f"<Hostile {self.error.__name__}>"


ODD: tuple[Any, ...] = (
    None, "", "x", b"\x00", 5, -1, 2**63, 2**200, 1.5, float("nan"), float("inf"), 1j, True, (), [], {}, set(),
    [[1], [1, 2]],
    object(), int, len, ..., slice(None), np.array(["a"]), np.array([None, 1], object), np.datetime64("2020-01-01"),
    np.ma.masked_array([1.0], [True]), types, range(3), iter([1]), Hostile(KeyError), Hostile(ValueError), "\ud800",
    (1, None), [np.ones(2), "y"], {"a": 1}, np.ones((1,) * 40), np.zeros((0, 2**40)), np.dtype("f8"), "float64", 2**32,
)  # fmt: skip
HUGE = (2**31, 2**32, 2**62, 2**63, 2**40, -1, 3)
SIZED: tuple[tuple[str, Callable[[tuple[int, ...]], Any]], ...] = (
    ("broadcast_to", lambda s: tnp.broadcast_to(1.0, s)), ("zeros", tnp.zeros),
    ("jit zeros", lambda s: tracer.jit(lambda: tnp.zeros(s).sum())()),
    ("reshape", lambda s: tnp.reshape(tnp.ones(3), s)),
    ("iota", lambda s: tracer.lax.broadcasted_iota("int8", s, 0)), ("tile", lambda s: tnp.tile(tnp.ones(2), s)),
    ("pad", lambda s: tnp.pad(tnp.ones(2), s[0])), ("normal", lambda s: tracer.random.normal(tracer.random.key(0), s)),
    ("repeat", lambda s: tnp.repeat(tnp.ones(3), s[0])), ("eye", lambda s: tnp.eye(*s[:2])),
    ("arange", lambda s: tnp.arange(s[0] * 8)), ("one_hot", lambda s: tracer.nn.one_hot(tnp.arange(3), s[0])),
    ("segment_sum", lambda s: tracer.ops.segment_sum(tnp.ones(3), tnp.arange(3), s[0])),
    ("linspace", lambda s: tnp.linspace(0, 1, s[0])),
    ("grad", lambda s: tracer.grad(lambda x: tnp.broadcast_to(x, s).sum())(1.0)),
    ("vmap", lambda s: tracer.vmap(lambda x: tnp.broadcast_to(x, s))(tnp.ones(3))),
)  # fmt: skip


def texts(rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a program's text with pieces changed."""
    text = program_text(draw_program(rng.randrange(10**6), rng.randint(1, 8)).program)
    with suppress(errors.ProgramTextError):  # a program with Python functions cannot be read back
        test_program_text.read(text)
        for mutant in test_program_text.mutants(text, np.random.default_rng(rng.randrange(10**6)), 20):
            # a program that is read and is wrong is a bug of its writer, and so an InternalError
            yield f"text {mutant!r}", lambda m=mutant: _checked(test_program_text.read(m))  # type: ignore[misc]


def _checked(program: Any) -> None:
    with suppress(errors.InternalError):
        program_text(check_program(program))


def settings(rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield odd names and odd values of settings, as updates and for a block."""
    names = [name for name in vars(Config) if not name.startswith("_")] + [
        "_values",
        "__class__",
        "update",
        "jax_enable_x64",
    ]
    name, value = rng.choice((*names, *names, *ODD)), rng.choice(ODD)
    if isinstance(name, str) and name.endswith("_dir"):
        return
    yield f"config.update({name!r}, {value!r})", lambda: config.update(name, value)
    if isinstance(name, str):
        yield f"config.using({name}={value!r})", lambda: _used(name, value)
        yield f"config.{name} = {value!r}", lambda: setattr(config, name, value)


def _used(name: str, value: Any) -> None:
    with config.using(**{name: value}):
        pass


class Lender:
    """A library that lends one capsule as often as it is asked."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


def memory(rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield capsules that are taken twice, and other objects in their place."""
    source = rng.choice(
        (np.arange(3.0), tnp.arange(3.0), np.zeros((0, 2)), np.float32(1) * np.ones((2, 3))[::-1], np.ones(()))
    )
    lender = Lender(source.__dlpack__())
    yield f"a capsule of {source!r}", lambda: tnp.from_dlpack(lender)
    yield f"a capsule of {source!r}, again", lambda: tnp.from_dlpack(lender)
    odd, device = rng.choice(ODD), rng.choice(ODD)
    yield f"capsule {odd!r}", lambda: tnp.from_dlpack(Lender(odd))
    yield f"device {device!r}", lambda: tnp.from_dlpack(Lender(np.ones(2).__dlpack__(), device))
    yield f"from_dlpack of {odd!r}", lambda: tnp.from_dlpack(odd)


def shapes(rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield arrays that fit in no memory."""
    name, build = rng.choice(SIZED)
    shape = (rng.choice((2**40, 2**62, 2**63, -1)), *(rng.choice(HUGE) for _ in range(rng.randint(1, 3))))
    if np.prod([float(abs(n)) for n in shape]) > 2.0**45:
        yield f"{name} of {shape}", lambda: build(shape)


def objects(rng: random.Random) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a drawn call in which an argument is an odd object, eager and compiled."""
    name = rng.choice([name for name in drawing.names() if not name.startswith("case ")])
    call = drawing.draw(name, rng.randrange(10**6))
    odd, options, args = rng.choice(ODD), dict(call.options or {}), list(call.args)
    keys = [*range(len(args)), *(key for key, value in options.items() if not (isinstance(value, Hole) and value.key))]
    if name.startswith("nn.initializers.") or not keys:
        return
    key = rng.choice(keys)
    (args if isinstance(key, int) else options).__setitem__(key, None)  # type: ignore[index]

    def run(root: Any, *arrays: Any) -> Any:
        found_args, found = drawing.filled((args, options), root, arrays)
        (found_args if isinstance(key, int) else found).__setitem__(key, odd)
        return attrgetter(name)(root)(*found_args, **found)

    yield f"{name}, argument {key!r} {odd!r} in {call.shown}", lambda: run(tracer, *map(tnp.asarray, call.arrays))
    yield (
        f"jit of {name}, argument {key!r} {odd!r} in {call.shown}",
        lambda: tracer.jit(lambda *xs: run(tracer, *xs))(*call.arrays),
    )


KINDS = (texts, settings, memory, shapes, objects, objects, objects, objects)


def findings(seed: int) -> Iterator[tuple[str, str]]:
    """Yield the errors of other classes that bad input ends in; settings are as before, afterwards."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    for what, run in kind(rng):
        before = dict(config._values)
        found = Outcome(run)
        config._values.clear()
        config._values.update(before)
        gate.changed()
        if found.is_foreign and "hostile" not in str(found):
            subject = what.split(",")[0].split(" of ")[0] if kind is objects else kind.__name__
            yield f"{subject}: {type(found.error).__name__}", f"{found}\n    {what}"
