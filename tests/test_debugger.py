"""debug.breakpoint: the debugger, driven by a given input."""

from __future__ import annotations

import bdb
import io
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap

OFFSET = 10.0


def session(commands: str, transform: Any = lambda f: f, *args: Any) -> str:
    out = io.StringIO()
    source = io.StringIO(commands)

    def inner(x: Any) -> Any:
        y = 2.0 * x
        tracer.debug.breakpoint(stdin=source, stdout=out)
        return y

    def f(x: Any) -> Any:
        outer = x + 1.0
        return inner(outer)

    transform(f)(*(args or (tnp.asarray(3.0),)))
    return out.getvalue().replace("(tracer) ", "")


WAYS = {
    "eager": lambda f: f,
    "jit": jit,
    "grad": grad,
    "jit of grad": lambda f: jit(grad(f)),
    "in a loop": lambda f: jit(lambda x: lax.fori_loop(0, 1, lambda _, v: f(v), x)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_expressions_see_the_values_of_the_frame_and_its_globals(way: Any) -> None:
    lines = session("p y + OFFSET\ny\npp {'a': 1}\nc\np y\n", way).splitlines()
    assert lines[0].startswith(f"> {__file__}(")
    assert lines[0].endswith(")inner()")
    assert lines[1] == "-> tracer.debug.breakpoint(stdin=source, stdout=out)"
    assert lines[2:] == ["np.float64(18.0)", "array(8.)", "{'a': 1}"]


def test_frames_can_be_walked() -> None:
    lines = session("up\np outer\ndown\np outer\ndown\nlocals\nwhere\nlist\n", jit).splitlines()
    assert any(line.endswith(")f()") for line in lines)
    assert "array(4.)" in lines
    assert "*** NameError: name 'outer' is not defined" in lines
    assert "*** Newest frame" in lines
    assert "y = array(8.)" in lines
    assert any(" -> " in line and "tracer.debug.breakpoint(" in line for line in lines)


def test_every_lane_of_a_batch_stops() -> None:
    lines = session("p y\nc\np y\nc\n", vmap, tnp.asarray([1.0, 2.0])).splitlines()
    assert [line for line in lines if line.startswith("array")] == ["array(4.)", "array(6.)"]


@pytest.mark.parametrize("way", [WAYS["eager"], jit])
def test_quit_stops_the_program(way: Any) -> None:
    with pytest.raises(bdb.BdbQuit):
        session("quit\n", way)


def test_the_end_of_the_input_goes_on() -> None:
    assert session("").count("\n") == 2
