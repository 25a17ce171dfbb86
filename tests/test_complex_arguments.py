"""Complex numbers: every public function of elements computes with them rightly, or refuses them by its own name.

`tests/test_help.py` holds what docstrings of `tracer.numpy` say of numbers; here are `nn`, `scipy.special`, and the
distributions, one operand after the other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import tracer
from tests.grids import each
from tracer import errors, nn
from tracer.scipy import special, stats

MODULES = {"nn": nn, "special": special, **{name: getattr(stats, name) for name in stats.__all__}}
Z = np.asarray([[0.3 + 0.4j, -0.7 - 0.2j, 1.5 - 2.5j], [0.1j, 2.0, -3.0 + 1j]])

# Parameters that are no operands of numbers, with what is passed for them; those that are operands though they may be
# left out; and functions of no operands of numbers.
OTHERS: dict[str, Any] = {"n": 1, "num_classes": 2, "d": 1}
OPTIONAL = {"alpha", "b", "loc", "negative_slope", "q", "scale"}
# of arrays of several axes, and of a keyword: see tests/nn/test_attention.py, tests/scipy/test_bessel.py
OF_NO_ELEMENTS = {"nn.dot_product_attention", "special.bessel_jn"}
# Losses, metrics and functions of models, which take batches or trees: see tests/nn
OF_MODELS = {f"nn.{name}" for name in nn._LATER}


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def standardized(z: Any) -> Any:
    centred = z - z.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


# What takes complex numbers, with the formula that it is to agree with, by the operand that is complex.
TAKEN: dict[str, dict[str, Callable[[Any], Any]]] = {
    "nn.identity": {"x": lambda z: z},
    "nn.log_softmax": {"x": lambda z: z - np.log(np.exp(z).sum(-1, keepdims=True))},
    "nn.logmeanexp": {"x": lambda z: np.log(np.exp(z).mean())},
    "nn.logsumexp": {"a": lambda z: np.log(np.exp(z).sum()), "b": lambda z: np.log((z * np.exp(0.5)).sum())},
    "nn.sigmoid": {"x": sigmoid},
    "nn.silu": {"x": lambda z: z * sigmoid(z)},
    "nn.softmax": {"x": lambda z: np.exp(z) / np.exp(z).sum(-1, keepdims=True)},
    "nn.standardize": {"x": standardized},
    "nn.tanh": {"x": np.tanh},
    "special.cosm1": {"x": lambda z: np.cos(z) - 1},
    "special.exp10": {"x": lambda z: 10.0**z},
    "special.exp2": {"x": lambda z: 2.0**z},
    "special.loggamma": {"x": scipy.special.loggamma},
    "special.log_softmax": {"x": lambda z: z - np.log(np.exp(z).sum())},
    "special.softmax": {"x": lambda z: np.exp(z) / np.exp(z).sum()},
    "special.expit": {"x": sigmoid},
    "special.expm1": {"x": np.expm1},
    "special.log1p": {"x": np.log1p},
    "special.logit": {"x": lambda z: np.log(z / (1 - z))},
    "special.sinc": {"x": np.sinc},
    "special.wofz": {"z": scipy.special.wofz},
    "special.xlog1py": {"x": lambda z: z * np.log1p(0.5), "y": lambda z: 0.5 * np.log1p(z)},
    "special.xlogy": {"x": lambda z: z * np.log(0.5), "y": lambda z: 0.5 * np.log(z)},
}
TAKEN["nn.swish"] = TAKEN["nn.silu"]
TAKEN["special.logsumexp"] = TAKEN["nn.logsumexp"]


def operands() -> Iterator[tuple[str, str]]:
    """Every function and each of its operands."""
    for module, namespace in MODULES.items():
        if not inspect.ismodule(namespace):
            continue
        for name in dir(namespace):
            function = getattr(namespace, name)
            if inspect.isfunction(function) and f"{module}.{name}" not in OF_NO_ELEMENTS | OF_MODELS:
                for parameter in inspect.signature(function).parameters.values():
                    needed = parameter.default is parameter.empty
                    if parameter.name not in OTHERS and (needed or parameter.name in OPTIONAL):
                        yield f"{module}.{name}", parameter.name


OPERANDS = list(operands())


def called(path: str, operand: str, z: Any) -> Any:
    """What a function gives for one complex operand, beside real ones."""
    module, name = path.split(".")
    function = getattr(MODULES[module], name)
    parameters = inspect.signature(function).parameters
    needed = [p for p in parameters if parameters[p].default is parameters[p].empty]
    options = {} if operand in needed else {operand: z}
    return function(*[z if p == operand else OTHERS.get(p, np.full(Z.shape, 0.5)) for p in needed], **options)


def test_functions_are_found() -> None:
    assert len(OPERANDS) > 110
    assert set(TAKEN) <= {path for path, _ in OPERANDS}


@each("path", dict.fromkeys(path for path, _ in OPERANDS))
def test_complex_operands_are_computed_with_rightly_or_refused_by_name(path: str) -> None:
    for operand in (operand for other, operand in OPERANDS if other == path):
        for way in (lambda f: f, tracer.jit):
            computes_or_refuses(path, operand, way)


def computes_or_refuses(path: str, operand: str, way: Any) -> None:
    module, name = path.split(".")
    formula = TAKEN.get(path, {}).get(operand)
    call = way(lambda z: called(path, operand, z))
    if formula is not None:
        found, expected = np.asarray(call(Z)), formula(Z)
        if "log" in name:  # logarithms may differ by 2 pi i
            found, expected = np.exp(found), np.exp(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        return
    function = getattr(MODULES[module], name)
    names = {function.__name__, f"{module}.{function.__name__}"}
    with pytest.raises(errors.DTypeError) as caught:
        call(Z)
    summary, *rest = str(caught.value).split("\n")
    assert summary.split(" at ")[0] in names
    assert " at test_complex_arguments.py:" in summary
    assert any(line.startswith("  got c128") or " c128[2,3]" in line for line in rest)
    assert rest[-1].startswith("  help: ")


def test_scipy_agrees_where_it_takes_complex_numbers() -> None:
    for name in ("expm1", "log1p", "xlogy", "xlog1py", "softmax", "log_softmax"):
        operands = (0.5, Z) if name.startswith("x") else (Z,)
        theirs = getattr(scipy.special, name)(*operands)
        np.testing.assert_allclose(getattr(special, name)(*operands), theirs, rtol=1e-12, atol=1e-14)
