"""Records of distributions, and the modules of public functions made from them: `norm.logpdf` from `NORM`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from tracer.absent import absent
from tracer.numpy import exp
from tracer.scipy.operands import at_elements
from tracer.scipy.stats.standard import QUANTILES, Formula
from tracer.trace.array import Array
from tracer.trace.docstrings import say_of_elements
from tracer.trace.tracebacks import boundary

_PACKAGE = "tracer.scipy.stats"
_LOGARITHMS = {"pdf": "logpdf", "pmf": "logpmf", "cdf": "logcdf", "sf": "logsf"}
_TEXTS = {
    "logpdf": "Return the logarithm of the density at x.\n\nWith y = (x - loc) / scale, the density is {density}.",
    "pdf": "Return the density at x, exp of `logpdf`.",
    "logpmf": "Return the logarithm of the probability of k.\n\nWith y = k - loc, it is {density}, else 0.",
    "pmf": "Return the probability of k, exp of `logpmf`.",
    "cdf": "Return the probability of at most {variable}.",
    "logcdf": "Return the logarithm of `cdf`.",
    "sf": "Return the probability of more than {variable}: 1 - `cdf`, without cancellation.",
    "logsf": "Return the logarithm of `sf`.",
    "ppf": "Return the value below which a fraction {quantile} lies.",
    "isf": "Return the value above which a fraction {quantile} lies.",
    "entropy": "Return the entropy in nats, which loc does not change.",
}
_DISCRETE_TEXTS = {"ppf": "Return the smallest k whose `cdf` is at least {quantile}; loc - 1 where {quantile} is 0."}


class DistributionModule(ModuleType):
    """A distribution as users see it: a module of functions. A missing name says why it is missing."""

    logpdf: Callable[..., Array]
    pdf: Callable[..., Array]
    logpmf: Callable[..., Array]
    pmf: Callable[..., Array]
    cdf: Callable[..., Array]
    logcdf: Callable[..., Array]
    sf: Callable[..., Array]
    logsf: Callable[..., Array]
    ppf: Callable[..., Array]
    isf: Callable[..., Array]
    entropy: Callable[..., Array]

    def __getattr__(self, name: str) -> Any:
        raise absent(self.__name__, name)

    def __dir__(self) -> list[str]:
        return sorted(name for name, value in vars(self).items() if isinstance(value, FunctionType))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A distribution of real numbers, or of counts.

    name, summary: of its module. parameters: names of the shape parameters. density: the formula that `logpdf` or
    `logpmf` documents. formulas: by function, of arrays (x, *parameters, loc, scale), without scale for counts; pdf,
    pmf, cdf and sf may be left out where the logarithm has a formula. examples: printed elements by arguments and
    function; a function is public if it has an example. quantile: the first parameter of `ppf` and `isf`. evaluate:
    applies a formula to operands as the user passed them; takes the formula, a name for errors, and the operands.
    """

    name: str
    summary: str
    parameters: tuple[str, ...] = ()
    density: str
    formulas: Mapping[str, Formula]
    examples: Mapping[str, Mapping[str, str]]
    quantile: str = "q"
    evaluate: Callable[..., Array] = at_elements

    def module(self, file: str | None) -> DistributionModule:
        """Return the module of the public functions, found under its name by `import`. file: where help points."""
        module = DistributionModule(f"{_PACKAGE}.{self.name}", self.summary)
        module.__file__ = file
        for arguments, results in self.examples.items():
            for function, result in results.items():
                setattr(module, function, self._public(function, arguments, result))
        sys.modules[module.__name__] = module
        return module

    def _public(self, function: str, arguments: str, result: str) -> Callable[..., Array]:
        """Return a public function with its signature and docstring."""
        given = self._operands(function)
        defaults = {"loc": " = 0", "scale": " = 1"}
        signature = ", ".join(f"{name}: Any{defaults.get(name, '')}" for name in given)
        source = f"def {function}({signature}) -> Array:\n    return compute({', '.join(given)})"
        namespace: dict[str, Any] = {
            "compute": self._compute(function),
            "Any": Any,
            "Array": Array,
            "__name__": f"{_PACKAGE}.{self.name}",
        }
        exec(compile(source, __file__, "exec"), namespace)  # so that Python itself checks and names the arguments
        made = namespace[function]
        template = (_DISCRETE_TEXTS.get(function) if self._discrete else None) or _TEXTS[function]
        text = template.format(density=self.density, variable=given[0], quantile=self.quantile)
        made.__doc__ = f"{text}\n\n>>> {_PACKAGE}.{self.name}.{function}({arguments})\nArray({result}, f64)\n"
        say_of_elements([made])
        return boundary(made, named=True)

    @property
    def _discrete(self) -> bool:
        return "logpmf" in self.formulas

    def _operands(self, function: str) -> tuple[str, ...]:
        """Return the names of a function's parameters."""
        first = self.quantile if function in QUANTILES else "k" if self._discrete else "x"
        names = (first, *self.parameters, "loc", *(() if self._discrete else ("scale",)))
        return names[1:] if function == "entropy" else names

    def _compute(self, function: str) -> Callable[..., Array]:
        """Return the function of any operands: by its formula, or else exp of its logarithm."""
        formula, name = self.formulas.get(function), f"{self.name}.{function}"
        if formula is not None:
            return lambda *operands: self.evaluate(formula, name, *operands)
        logarithm = self.formulas[_LOGARITHMS[function]]
        return lambda *operands: exp(self.evaluate(logarithm, name, *operands))


def published(room: ModuleType) -> Iterator[DistributionModule]:
    """Yield the public modules of a file's `DISTRIBUTIONS`, in their order."""
    for record in room.DISTRIBUTIONS:
        yield record.module(room.__file__)
