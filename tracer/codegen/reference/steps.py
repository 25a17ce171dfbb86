"""Statements that run once an element, compiled once: each as a function of the frame it runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.codegen.reference.frame import Frame
from tracer.codegen.reference.scalar_ops import scalar_function
from tracer.ir.loop import Address, Compute, Constant, Load, Operand, Register, Store

Step = Callable[[Frame], None]


def compute_step(s: Compute) -> Step:
    """Return result = op(*operands) as a step."""
    function, result = scalar_function(s.op, s.operands[-1].dtype, s.result.dtype), s.result
    match s.operands:
        case (Register() as a, Register() as b):

            def step(f: Frame) -> None:
                values = f.values
                values[result] = function(values[a], values[b])

        case (Constant() as left, Register() as right):
            first = left.value

            def step(f: Frame) -> None:
                f.values[result] = function(first, f.values[right])

        case (Register() as before, Constant() as after):
            second = after.value

            def step(f: Frame) -> None:
                f.values[result] = function(f.values[before], second)

        case (Register() as only,):

            def step(f: Frame) -> None:
                f.values[result] = function(f.values[only])

        case operands:

            def step(f: Frame) -> None:
                f.values[result] = function(*[f.value(operand) for operand in operands])

    return step


def load_step(s: Load) -> Step:
    """Return result = buffer[address], without a mask, as a step."""
    result, buffer, place = s.result, s.buffer, place_of(s.address)

    def step(f: Frame) -> None:
        f.values[result] = f.region(buffer).read(place(f), f.mask, f.call.clock)

    return step


def store_step(s: Store) -> Step:
    """Return buffer[address] = value, without a mask, as a step."""
    buffer, place, value = s.buffer, place_of(s.address), value_of(s.value)

    def step(f: Frame) -> None:
        f.region(buffer).write(place(f), value(f), f.mask, f.call.clock)

    return step


def value_of(operand: Operand) -> Callable[[Frame], Any]:
    """Return a function of the frame that gives the operand's value."""
    if isinstance(operand, Constant):
        value = operand.value
        return lambda f: value
    return lambda f: f.values[operand]


def place_of(address: Address) -> Callable[[Frame], Any]:
    """Return a function of the frame that gives `Frame.index` of the address."""
    constant = address.constant
    if not address.terms:
        return lambda f: constant
    if len(address.terms) == 2:
        (first, by), (second, by_second) = address.terms

        def place_of_two(f: Frame) -> Any:
            a, b = f.values[first], f.values[second]
            if not isinstance(a, np.ndarray):
                a = int(a)
            return constant + by * a + by_second * (b if isinstance(b, np.ndarray) else int(b))

        return place_of_two
    if len(address.terms) > 1:
        return lambda f: f.index(address)
    ((register, coefficient),) = address.terms

    def place(f: Frame) -> Any:
        value = f.values[register]
        return constant + coefficient * (value if isinstance(value, np.ndarray) else int(value))

    return place
