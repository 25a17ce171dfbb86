"""What `help` says of public names: an example, every parameter, shapes and dtypes; and that it is so."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tests.numpy.test_names import MODULES
from tracer.errors import DTypeError
from tracer.trace.docstrings import names

# Where functions take and return arrays of known shapes and dtypes. `tests/lax/test_documentation.py` has more of lax.
OF_ARRAYS = ("lax", "nn", "numpy", "ops", "random", "scipy")
OF_NO_ARRAYS = {
    "lax.axis_size", "lax.padtype_to_pads", "numpy.base_repr", "numpy.binary_repr", "numpy.get_printoptions",
    "random.key_impl",
}  # fmt: skip
OF_SETTINGS = {"numpy.errstate", "numpy.geterr", "numpy.seterr"}
# Their other arguments go to NumPy's function of the name, whose signature they have.
HANDING_ON = {
    "numpy.array2string", "numpy.format_float_positional", "numpy.format_float_scientific", "numpy.genfromtxt",
    "numpy.load", "numpy.loadtxt", "numpy.printoptions", "numpy.savetxt", "numpy.set_printoptions", "tree.static",
}  # fmt: skip


def found() -> Iterator[tuple[str, Any]]:
    """Public functions and classes of ours, once each, under the first of their names."""
    seen = set()
    for module in ("", "numpy", *MODULES):
        namespace = importlib.import_module(f"tracer.{module}".rstrip("."))
        for name in dir(namespace):
            value = getattr(namespace, name)
            if callable(value) and value.__module__.startswith("tracer") and id(value) not in seen:
                seen.add(id(value))
                yield f"{module}.{name}".lstrip("."), value


PUBLIC = dict(found())
FUNCTIONS = [name for name, value in PUBLIC.items() if inspect.isfunction(value)]


def prose(value: Any) -> str:
    """A docstring without its examples, in one line."""
    return re.sub(r"\s+", " ", (inspect.getdoc(value) or "").partition(">>>")[0])


def test_public_names_are_found() -> None:
    assert len(FUNCTIONS) > 800
    assert {"jit", "numpy.sin", "numpy.fft.fft", "scipy.stats.norm.pdf", "random.normal", "tree.map"} <= set(FUNCTIONS)


def test_every_name_has_a_docstring_with_an_example_in_lines_that_fit() -> None:
    texts = {name: inspect.getdoc(value) or "" for name, value in PUBLIC.items()}
    parser = doctest.DocTestParser()
    assert [name for name, text in texts.items() if not parser.get_examples(text)] == [], "no example"
    assert [name for name, text in texts.items() if max(map(len, text.splitlines())) > 116] == [], "long lines"
    torn = [name for name, text in texts.items() if re.search(r"\n\n *[,;.\])]", text)]
    assert torn == [], "a sentence is torn apart"


def unnamed(name: str) -> Iterator[str]:
    """Parameters of a function of which its docstring says nothing."""
    said, signature = prose(PUBLIC[name]), inspect.signature(PUBLIC[name])
    for parameter in signature.parameters.values():
        wanted = parameter.default is parameter.empty
        if parameter.name[0] == "_" or (name in HANDING_ON and not wanted):
            continue
        if not (re.search(rf"\b{parameter.name}\b", said) if wanted else names(said, parameter.name)):
            yield f"{name} says nothing of {parameter.name}"


def test_every_parameter_is_named() -> None:
    assert [problem for name in FUNCTIONS for problem in unnamed(name)] == []


@each("name", sorted(HANDING_ON))
def test_functions_that_hand_on_say_to_whom(name: str) -> None:
    assert re.search(r"`(numpy|dataclasses)\.|`set_printoptions`", prose(PUBLIC[name]))
    kinds = [parameter.kind for parameter in inspect.signature(PUBLIC[name]).parameters.values()]
    assert not {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}.intersection(kinds)


SHAPE = re.compile(r"\[[^\]]*\]|\b[Ss]hapes?\b")
DTYPE = re.compile(
    r"\bdtypes?\b|\b(?:bool|int|uint|float|complex|u?i|f|c)\d*\b|\b(?:bools|floats|numbers?|integers?|text|str|tuple)\b"
)


def test_functions_of_arrays_say_shapes_and_dtypes() -> None:
    texts = {
        name: prose(PUBLIC[name]) for name in FUNCTIONS if name.split(".")[0] in OF_ARRAYS and name not in OF_SETTINGS
    }
    assert {name for name, said in texts.items() if not SHAPE.search(said)} <= OF_NO_ARRAYS, "no word of shapes"
    silent = [name for name, said in texts.items() if not (DTYPE.search(said) or name.startswith("lax."))]
    assert silent == [], "no word of dtypes"


# What functions of elements say is tried: "x1, x2: real numbers, whose shapes broadcast to [*s]. Returns [*s]."

CLAIM = re.compile(
    r"(\w+(?:, \w+)*): (numbers|real numbers|integers)( or bools)?(?: \[\*s\]|, whose shapes broadcast to \[\*s\])\. "
    r"Returns (?:floats (?:or complex numbers )?)?\[\*s\]\. dtype: ([^.:;]*)"
)
KINDS = {
    "numbers": (np.int8, np.int64, np.float16, np.float32, np.complex64), "integers": (np.int8, np.int64),
    "real numbers": (np.int8, np.int64, np.float16, np.float32),
}  # fmt: skip
CLAIMS = {name: claim for name in FUNCTIONS if (claim := CLAIM.search(prose(PUBLIC[name])))}


def promised(text: str, dtype: Any) -> Any:
    """The dtype that a docstring promises for operands of one dtype."""
    if text.startswith("bool"):
        return np.dtype(bool)
    if text.startswith(("the promoted dtype", "the operand's")):
        return np.dtype(dtype)
    assert text.startswith("float")
    return np.dtype({np.int8: np.float32, np.int64: np.float64}.get(dtype, dtype))


def test_claims_are_found() -> None:
    assert len(CLAIMS) > 140


@each("name", CLAIMS)
@pytest.mark.filterwarnings("ignore")  # of values out of a function's domain
def test_functions_of_elements_take_and_give_what_they_say(name: str) -> None:
    operands, kinds, bools, said = CLAIMS[name].groups()
    count = len(operands.split(", "))
    turn, taken = [*CLAIMS].index(name), KINDS[kinds]
    some = taken if THOROUGH else dict.fromkeys(taken[n % len(taken)] for n in (turn, turn + 2))
    for dtype in (*some, *([np.bool_] if bools else [])):
        shapes = [(3,), (2, 1), (), (), ()][:count]
        results = PUBLIC[name](*[np.ones(shape, dtype) for shape in shapes])
        for result in results if isinstance(results, tuple) else (results,):
            assert result.shape == np.broadcast_shapes(*shapes)
            assert result.dtype == promised(said, dtype), dtype
    if name.startswith("numpy."):
        for dtype in {np.int64, np.float32, np.complex64}.difference(KINDS[kinds]):
            with pytest.raises(DTypeError):
                PUBLIC[name](*[np.ones(2, dtype)] * count)


def test_the_precision_of_printing_is_not_that_of_products() -> None:
    text = inspect.getdoc(tnp.set_printoptions) or ""
    assert "precision: how many digits" in text
    assert "products" not in text
    assert "products" in (inspect.getdoc(tnp.matmul) or "")


def test_help_of_modules_lists_what_is_for_users() -> None:
    for module, listed in ((tracer, "value_and_grad("), (tnp, "einsum("), (tracer.scipy.special, "gammaln(")):
        text = pydoc.plain(pydoc.render_doc(module))
        assert listed in text
        assert ">>>" in text.partition("PACKAGE CONTENTS")[0].partition("FUNCTIONS")[0]


def test_help_of_a_transformed_function_is_that_of_the_users() -> None:
    def volume(side: float, *, scale: float = 1.0) -> Any:
        """The volume of a cube."""
        return scale * side**3

    for made in (tracer.jit(volume), tracer.checkpoint(volume), tracer.vmap(volume), tracer.grad(volume)):
        text = pydoc.plain(pydoc.render_doc(made))
        assert "volume(side: 'float', *, scale: 'float' = 1.0) -> 'Any'\n    The volume of a cube." in text


def test_help_of_methods_of_functions_of_elements_has_signatures_and_examples() -> None:
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        value = getattr(tnp.add, method)
        assert doctest.DocTestParser().get_examples(value.__doc__)
        assert all(re.search(rf"\b{name}\b", prose(value)) for name in inspect.signature(value).parameters)
    assert list(inspect.signature(tnp.add.reduce).parameters) == ["a", "axis", "dtype", "keepdims", "initial", "where"]
