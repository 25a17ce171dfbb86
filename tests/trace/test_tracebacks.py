"""Tracebacks end in the user's file, whatever was called; the package's own frames are shown for its own bugs alone."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import data, debug, errors, io, lax, nn, ops, random, scipy, tree_util
from tracer.trace import tracebacks
from tracer.trace.tracebacks import boundary

LAYER = nn.Linear(2, 3, key=random.key(0))
X = tnp.arange(3.0)
Y = tnp.ones(4)


class MineError(Exception):
    pass


def fails(*_: Any) -> Any:
    raise MineError


def wants_two(x: Any, y: Any) -> Any:
    return x + y


def misfits(x: Any) -> Any:
    return x + Y


def with_rule(f: Callable[[Any], Any]) -> Any:
    known = tracer.custom_jvp(f)
    known.defjvp(lambda xs, dxs: (xs[0], dxs[0]))
    return known


def files_of(call: Callable[[], Any], kind: type[BaseException]) -> set[str]:
    with pytest.raises(kind) as caught:
        call()
    return {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}


OPERATIONS = {
    "a function": lambda: tnp.add(X, Y),
    "an operator": lambda: X + Y,
    "a reflected operator": lambda: [1.0, 2.0] * X,
    "another operator": lambda: X @ Y,
    "an index": lambda: X[7],
    "a wrong index": lambda: X["a"],
    "an assignment": lambda: tnp.zeros(3).__setitem__(8, 1.0),
    "a method": lambda: X.reshape(2, 2),
    "an update": lambda: X.at[9].set(0.0),
    "lax": lambda: lax.add(X, Y),
    "a lax loop": lambda: lax.while_loop(lambda x: x < 1, lambda x: (x, x), 0.0),
    "random": lambda: random.normal(random.key(0), (-1,)),
    "nn": lambda: nn.softmax(X, axis=3),
    "ops": lambda: ops.segment_sum(X, tnp.arange(4)),
    "scipy": lambda: scipy.special.xlogy(X, Y),
    "a transform": lambda: tracer.grad(3),  # type: ignore[arg-type]
    "a hash": lambda: hash(X),
    "a length": lambda: len(tnp.ones(())),
    "a truth": lambda: bool(X),
    "an element of nothing": lambda: list(tnp.ones(())),
    "a stage": lambda: tracer.jit(wants_two).lower(X),
    "a layer": lambda: LAYER(tnp.ones((3, 4), "float32")),
    "a model of layers": lambda: nn.Sequential(LAYER, LAYER)(tnp.ones((3, 2), "float32")),
    "a layer's arguments": lambda: nn.Linear(2, key=random.key(0)),  # type: ignore[call-arg]
    "an attribute of a layer": lambda: setattr(LAYER, "bias", None),
    "a changed layer": lambda: LAYER.replace(name=1),
    "a part of a layer": lambda: nn.at(LAYER, "name"),
    "a summary": lambda: nn.summary(LAYER, tnp.ones((3, 4), "float32")),
    "a file": lambda: io.load("/nowhere"),
    "a loader": lambda: data.Loader(3, 4),
    "a setting": lambda: setattr(tracer.config, "threads", -1),
    "a setting by name": lambda: tracer.config.update("name", -1),
    "a function to watch": lambda: debug.watch(3),  # type: ignore[arg-type]
    "a function to check": lambda: tracer.checked(3),  # type: ignore[arg-type]
    "a file of an exploration": lambda: tracer.explore(lambda x: x, 1.0).save("/nowhere/x"),
    "a file of a profile": lambda: tracer.profile().save("/nowhere/x"),
    "watched values": lambda: debug.watch(lambda x: x @ Y)(X),
    "a tree": lambda: tree_util.tree_map(lambda x, y: x, (1, 2), (1, 2, 3)),
}


@each("name", OPERATIONS)
def test_errors_of_operations_have_the_users_frames_alone(name: str) -> None:
    assert files_of(OPERATIONS[name], Exception) == {__file__}


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: tracer.jit(f)(X),
    "grad": lambda f: tracer.grad(f)(X),
    "value_and_grad": lambda f: tracer.value_and_grad(f)(X),
    "grad of jit": lambda f: tracer.grad(tracer.jit(f))(X),
    "jit of grad": lambda f: tracer.jit(tracer.grad(f))(X),
    "vmap": lambda f: tracer.vmap(f)(X),
    "jvp": lambda f: tracer.jvp(f, (X,), (X,)),
    "vjp": lambda f: tracer.vjp(f, X),
    "linearize": lambda f: tracer.linearize(f, X),
    "jacfwd": lambda f: tracer.jacfwd(f)(X),
    "jacrev": lambda f: tracer.jacrev(f)(X),
    "hessian": lambda f: tracer.hessian(f)(X),
    "checkpoint": lambda f: tracer.checkpoint(f)(X),
    "grad of checkpoint": lambda f: tracer.grad(tracer.checkpoint(f))(X),
    "custom_jvp": lambda f: with_rule(f)(X),
    "make_program": lambda f: tracer.make_program(f)(X),
    "eval_shape": lambda f: tracer.eval_shape(f, X),
    "cond": lambda f: lax.cond(True, f, f, X),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), X, X),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), X),
    "while_loop": lambda f: lax.while_loop(lambda x: x.sum() < 9, f, X),
    "map": lambda f: lax.map(f, X),
    "named_call": lambda f: tracer.named_call(f, name="mine")(X),
}  # fmt: skip


@each("name", TRANSFORMS)
def test_errors_within_a_transformed_function_have_the_users_frames_alone(name: str) -> None:
    assert files_of(lambda: TRANSFORMS[name](fails), MineError) == {__file__}


@each("name", [name for name in TRANSFORMS if name not in ("vmap", "map")])
def test_mistakes_within_a_transformed_function_have_the_users_frames_alone(name: str) -> None:
    assert files_of(lambda: TRANSFORMS[name](misfits), errors.ShapeError) == {__file__}


@each("name", TRANSFORMS)
def test_arguments_that_the_users_function_does_not_take_are_the_users_mistake(name: str) -> None:
    if name != "scan":  # which calls a function of this file
        assert files_of(lambda: TRANSFORMS[name](wants_two), TypeError) == {__file__}


def test_arguments_that_a_public_function_does_not_take_are_the_users_mistake() -> None:
    assert files_of(lambda: tnp.add(X), TypeError) == {__file__}  # type: ignore[call-arg]


def test_results_of_transforms_have_boundaries_too() -> None:
    _, pull = tracer.vjp(tnp.sin, X)
    _, push = tracer.linearize(tnp.sin, X)
    assert files_of(lambda: pull(Y), errors.TracerError) == {__file__}
    assert files_of(lambda: push(Y), errors.TracerError) == {__file__}


def test_bugs_of_ours_keep_every_frame() -> None:
    names: dict[str, Any] = {}
    exec(compile("def broken():\n    return [][0]", errors.__file__, "exec"), names)
    assert files_of(boundary(names["broken"]), IndexError) == {__file__, tracebacks.__file__, errors.__file__}


@each("function", [tnp.sin, tnp.absolute, lax.bitwise_and, tracer.grad, random.normal, nn.relu])
def test_public_functions_are_found_where_users_find_them(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_frames_without_a_line_are_shown_at_their_function() -> None:
    """A call that is interrupted before its first line has none; Ctrl-C stays Ctrl-C."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted.__code__ = code = interrupted.__code__.replace(co_linetable=b"")
    try:
        tracer.jit(lambda x: interrupted())(1.0)
    except KeyboardInterrupt as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        error.__traceback__ = None  # pytest cannot print it
    assert last is not None
    assert (last.tb_frame.f_code, last.tb_lineno) == (code, code.co_firstlineno)
