"""The structural hash: equal for what computes the same by construction, different for anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.ir import toys
from tests.ir.strategies import programs
from tests.ir.toys import Writer, f32, number
from tracer.ir.digest import encode
from tracer.ir.dtypes import F32, F64, I64
from tracer.ir.program import Atom, Equation, Program
from tracer.ir.types import array_type

ROOT = Path(__file__).parents[2]


def sample(
    *, primitive: Any = toys.add_p, limit: Any = None, swap: bool = False, dtype: Any = F32,
    weak: bool = False, name: str = "f", file: str | None = "demo.py", line: int = 1, **params: Any,
) -> Program:  # fmt: skip
    w = Writer(array_type(dtype, (3,), weak), array_type(dtype, (3,), weak), file=file, line=line)
    x, y = reversed(w.inputs) if swap else w.inputs
    z: Atom = w(primitive, x, limit or y)
    return w.program(w(toys.odd_p, z, **params), name=name)


def test_names_and_lines_do_not_count() -> None:
    assert sample() == sample(name="g") == sample(file=None) == sample(file="other.py") == sample(line=7)
    assert len({sample(), sample(name="g"), sample(line=7)}) == 1


CHANGES: dict[str, Callable[[], Program]] = {
    "nothing": sample,
    "primitive": lambda: sample(primitive=toys.subtract_p),
    "order of operands": lambda: sample(swap=True),
    "dtype": lambda: sample(dtype=F64),
    "weak flag": lambda: sample(weak=True),
    "literal": lambda: sample(limit=number(1.0)),
    "value of a literal": lambda: sample(limit=number(2.0)),
    "zero": lambda: sample(limit=number(0.0)),
    "sign of zero": lambda: sample(limit=number(-0.0)),
    "weak literal": lambda: sample(limit=number(1.0, F32, True)),
    "parameter": lambda: sample(axes=(0,)),
    "value of a parameter": lambda: sample(axes=(1,)),
    "nesting of a parameter": lambda: sample(axes=((0,),)),
    "name of a parameter": lambda: sample(axis=(0,)),
    "integer": lambda: sample(n=1),
    "float": lambda: sample(n=1.0),
    "complex": lambda: sample(n=1.0 + 0j),
    "bool": lambda: sample(n=True),
    "string": lambda: sample(n="1"),
    "None": lambda: sample(n=None),
    "numpy scalar": lambda: sample(n=number(1.0).value),
    "dtype as a parameter": lambda: sample(n=F32),
    "enum": lambda: sample(n=toys.Mode.CLIP),
    "other member": lambda: sample(n=toys.Mode.WRAP),
    "record": lambda: sample(n=toys.Window((1,))),
    "field of a record": lambda: sample(n=toys.Window((2,))),
    "program": lambda: sample(n=toys.doubling()),
    "other program": lambda: sample(n=toys.looping()),
    "literal in a nested program": lambda: sample(n=toys.looping(50.0)),
    "program in a tuple": lambda: sample(n=(toys.doubling(),)),
}


def test_any_change_of_what_is_computed_changes_the_digest() -> None:
    digests: dict[bytes, str] = {}
    for change, write in CHANGES.items():
        digest = write().digest
        assert digest not in digests, f"{change} and {digests.get(digest)}"
        digests[digest] = change


def test_inputs_and_outputs_count() -> None:
    w = Writer(f32(3), f32(3))
    a, b = w.inputs
    variants = [Program((a, b), (), outputs) for outputs in ((a,), (b,), (a, b), (b, a), ())]
    variants += [Program((b,), (), (b,)), Program((a, b, Writer(f32()).inputs[0]), (), (a,))]
    assert len({program.digest for program in variants}) == len(variants)


def test_order_of_equations_counts() -> None:
    w = Writer(f32(3))
    w(toys.neg_p, *w.inputs)
    w(toys.show_p, *w.inputs)
    first, second = w.equations
    a, b = (Program(w.inputs, order, ()) for order in ((first, second), (second, first)))
    assert a != b


def test_order_of_parameters_does_not_count() -> None:
    assert sample(a=1, b=2) == sample(b=2, a=1)


def test_a_program_differs_from_other_things() -> None:
    assert sample() != "f"


@given(programs())
def test_any_program_equals_itself_with_other_names_and_no_lines(program: Program) -> None:
    equations = tuple(Equation(e.primitive, e.inputs, e.params, e.outputs) for e in program.equations)
    assert program == Program(program.inputs, equations, program.outputs, "other")


def test_opaque_parameters_count_by_identity() -> None:
    def rule(x: Any) -> Any:
        return x

    assert encode(rule) == encode(rule)
    assert encode(rule) != encode(lambda x: x)


PROGRAM = """
from tests.ir.test_digest import CHANGES
print(*(write().digest.hex() for write in CHANGES.values()))
"""


@pytest.mark.parametrize("seed", ["0", "1"])
def test_digests_are_the_same_in_every_process(seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [write().digest.hex() for write in CHANGES.values()]


def test_integers_of_any_size_are_parameters() -> None:
    assert encode(2**100) != encode(2**100 + 1)
    assert sample(dtype=I64) != sample()
