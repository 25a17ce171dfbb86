"""Names that JAX has and tracer has not, for libraries that read them: settings, errors, classes to compare with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from tracer import errors
from tracer.errors import SettingError, message
from tracer.interop.jax_internals import CORE, INTERNALS, Tracer, eval_shape, get_aval, make_jaxpr
from tracer.runtime.jit.jit import jit
from tracer.settings import JAXS, config
from tracer.transforms.vectorize import vmap

VERSION: Final = (0, 10, 2)  # the release of JAX whose names these are


class JaxConfig:
    """JAX's settings: `jax_enable_x64` chooses the default dtypes; further settings as in `tracer.config`."""

    def update(self, name: str, value: Any) -> None:
        if name == "jax_enable_x64":
            config.default_float, config.default_int = _widths(value)
        else:
            config.update(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in ("jax_enable_x64", "x64_enabled", "enable_x64"):
            return config.default_float.itemsize == 8
        return getattr(config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def parse_flags_with_absl(self) -> None:
        """Read no flags: settings come from `update` and the environment."""

    config_with_absl = parse_flags_with_absl


def _widths(wide: Any) -> tuple[Any, Any]:
    return ("float64", "int64") if wide else ("float32", "int32")


@contextlib.contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Make 64-bit dtypes the default, or 32-bit ones, until the block ends."""
    real, integer = _widths(new_val)
    with config.using(default_float=real, default_int=integer):
        yield


def _fixed(name: str) -> Callable[[Any], contextlib.AbstractContextManager[None]]:
    """Return the context manager of a JAX setting, which takes the values that hold in tracer."""

    def setting(value: Any = None) -> contextlib.AbstractContextManager[None]:
        if value not in JAXS[name].values and value is not None:
            config.update(name, value)
        return contextlib.nullcontext()

    return setting


def _setting(name: str) -> Callable[[Any], contextlib.AbstractContextManager[None]]:
    """Return the context manager of a setting that tracer has by JAX's name."""

    def setting(value: Any = True) -> contextlib.AbstractContextManager[None]:
        return config.using(**{name: value})

    return setting


def pmap(
    fun: Callable[..., Any], axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
    static_broadcasted_argnums: Any = (), **_: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Return `jit` of `vmap`: one device computes every lane."""
    mapped: Callable[..., Any] = jit(vmap(fun, in_axes, out_axes, axis_name), static_argnums=static_broadcasted_argnums)
    return mapped


def clear_caches() -> None:
    """Keep all caches: each jitted function has its own, f.clear_cache()."""


def refused(name: str) -> Callable[..., Any]:
    """Return a function that says that its name is internal to JAX."""

    def absent(*_: Any, **__: Any) -> Any:
        raise SettingError(message(f"{name} is internal to JAX, for which tracer stands in", help="see docs/as_jax.md"))

    return absent


class JaxRuntimeError(errors.CheckError):
    """Error in compiled code."""


# Functions that JAX gives the placement of their result
PLACING: Final = {
    "jax.lax": frozenset((
        "broadcast", "broadcast_in_dim", "broadcasted_iota", "conv_general_dilated", "dot", "dot_general", "empty",
        "reduce", "reduce_sum", "reshape",
    )),
    "jax.numpy": frozenset((
        "arange", "array", "asarray", "bincount", "broadcast_to", "dot", "einsum", "empty", "full", "full_like",
        "matmul", "ones", "ones_like", "percentile", "ravel", "repeat", "reshape", "tensordot", "zeros", "zeros_like",
    )),
    "jax.random": frozenset((
        "ball", "bernoulli", "beta", "bits", "categorical", "cauchy", "chisquare", "dirichlet", "exponential", "f",
        "gamma", "generalized_normal", "geometric", "gumbel", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
        "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint",
        "rayleigh", "t", "triangular", "truncated_normal", "uniform", "wald",
    )),
}  # fmt: skip

MODULES: Final[dict[str, dict[str, Any]]] = {
    **INTERNALS,
    "": {
        "__version__": ".".join(map(str, VERSION)),
        "__version_info__": VERSION,
        "clear_caches": clear_caches,
        "config": JaxConfig(),
        "enable_x64": enable_x64,
        "pmap": pmap,
        "numpy_dtype_promotion": _fixed("jax_numpy_dtype_promotion"),
        "numpy_rank_promotion": _fixed("jax_numpy_rank_promotion"),
        "debug_nans": _setting("debug_nans"),
        "debug_infs": _setting("debug_infs"),
        "check_tracer_leaks": _fixed("jax_check_tracer_leaks"),
        "checking_leaks": _fixed("jax_check_tracer_leaks"),
        "log_compiles": _setting("log_compiles"),
        "eval_shape": eval_shape,
        "make_jaxpr": make_jaxpr,
        "typeof": get_aval,
    },
    "core": {**CORE, "Tracer": Tracer},
    "errors": {
        "ConcretizationTypeError": errors.TracedValueError,
        "JAXIndexError": errors.IndexingError,
        "JAXTypeError": errors.ArgumentError,
        "JaxRuntimeError": errors.CheckError,
        "JAXRuntimeError": errors.CheckError,
        "NonConcreteBooleanIndexError": errors.TracerArrayError,
        "TracerArrayConversionError": errors.TracerArrayError,
        "TracerBoolConversionError": errors.TracerBoolError,
        "TracerIntegerConversionError": errors.TracerIntegerError,
        "UnexpectedTracerError": errors.LeakedTracerError,
    },
    "experimental": {"enable_x64": enable_x64},
    "version": {"__version__": ".".join(map(str, VERSION))},
}
